/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "sim/program.h"
#include "tests/laws/laws.h"

#include <check.h>

#define DO(call) ck_assert_int_eq((call), MS_OK)

/* The offsets of a rank's sets, buffers and tasks in the joint program, and its
 * next call. */
typedef struct rank_part {
    const ms_program *of;
    uint32_t first_set, first_buffer, first_task, next;
} rank_part;

static void add_tables(ms_program *program, rank_part *part, ms_arena *arena)
{
    const ms_program *of = part->of;
    ms_fault fault = {0};
    uint32_t id;
    part->first_set = program->n_sets;
    part->first_buffer = program->n_buffers;
    part->first_task = program->n_tasks;
    for (uint32_t s = 0; s < of->n_sets; s++)
        DO(ms_program_add_set(program, of->set_item + of->set_at[s],
                              of->set_at[s + 1] - of->set_at[s], arena, &id,
                              &fault));
    for (uint32_t b = 0; b < of->n_buffers; b++)
        DO(ms_program_add_buffer(program, of->buffers[b], arena, &id, &fault));
    for (uint32_t t = 0; t < of->n_tasks; t++)
        DO(ms_program_add_task(program, of->tasks[t], arena, &id, &fault));
    if (of->n_frames > program->n_frames)
        program->n_frames = of->n_frames;
    if (of->n_micro_batches > program->n_micro_batches)
        program->n_micro_batches = of->n_micro_batches;
}

static uint32_t shifted(uint32_t set, uint32_t first)
{
    return set == MS_ALL || set == MS_NOTHING ? set : set + first;
}

static void add_call(ms_program *program, rank_part *part, uint16_t rank,
                     ms_arena *arena)
{
    ms_fault fault = {0};
    ms_call call = part->of->calls[part->next++];
    call.rank = rank;
    call.set = shifted(call.set, part->first_set);
    if (call.verb == MS_RUN)
        call.run.keep = shifted(call.run.keep, part->first_set);
    if (call.verb == MS_WORK)
        call.work.task += part->first_task;
    if (call.buffer != MS_NONE)
        call.buffer += part->first_buffer;
    DO(ms_program_add(program, call, arena, &fault));
}

ms_program laws_ranks(laws_random *random, const ms_program *const *of,
                      uint32_t n, ms_arena *arena)
{
    enum { IN_SEQUENCE, IN_TURN, AT_RANDOM, N_ORDERS };
    ms_program program = {.n_ranks = (uint16_t)n};
    rank_part *parts = ms_arena_take(arena, n, sizeof *parts);
    uint32_t order = laws_below(random, N_ORDERS), rank = 0, left = 0;
    ck_assert_ptr_nonnull(parts);
    for (uint32_t r = 0; r < n; r++) {
        parts[r].of = of[r];
        left += of[r]->n_calls;
        add_tables(&program, &parts[r], arena);
    }
    while (left > 0) {
        if (order == AT_RANDOM)
            rank = laws_below(random, n);
        if (parts[rank].next < of[rank]->n_calls) {
            add_call(&program, &parts[rank], (uint16_t)rank, arena);
            left--;
        }
        if (order == IN_TURN || parts[rank].next == of[rank]->n_calls)
            rank = (rank + 1) % n;
    }
    return program;
}
