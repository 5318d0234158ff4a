/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "sim/fold/knowntape.h"

#include "sim/fold/calls/renumber.h"
#include "sim/graph.h"
#include "sim/program.h"

#include <string.h>

/* Programs that are remembered, and bytes that their tapes take: at most. */
#define MOST_KNOWN 1024u
#define MOST_BYTES (UINT64_C(16) << 20)

/* ---- which program ------------------------------------------------------- */

static uint64_t mix(uint64_t hash, const void *list, size_t bytes)
{
    const char *at = list;
    uint64_t word;
    for (; bytes >= sizeof word; bytes -= sizeof word, at += sizeof word) {
        memcpy(&word, at, sizeof word);
        hash = (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
        hash ^= hash >> 32;
    }
    word = 0;
    if (bytes > 0)
        memcpy(&word, at, bytes);
    return (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
}

/* Says where to look; sets and buffers are compared. */
static uint64_t hash_of(const ms_program *program, uint32_t context)
{
    return mix(context, program->calls,
               program->n_calls * sizeof *program->calls);
}

static bool same_list(const void *a, const void *b, size_t bytes)
{
    return bytes == 0 || memcmp(a, b, bytes) == 0;
}

static bool same_buffers(const ms_program *a, const ms_program *b)
{
    bool same = true;
    for (uint32_t i = 0; i < a->n_buffers; i++) {
        const ms_buffer *x = &a->buffers[i], *y = &b->buffers[i];
        same &= x->bytes == y->bytes && x->category == y->category &&
                x->pool == y->pool && x->stream == y->stream &&
                x->home == y->home && x->waited == y->waited;
    }
    return same;
}

/* Calls that differ in bytes that mean nothing count as others; where groups
 * are the program's own, they are in the context. */
static bool same_program(const ms_program *a, const ms_program *b)
{
    return a->n_calls == b->n_calls && a->n_sets == b->n_sets &&
           a->set_items == b->set_items && a->n_buffers == b->n_buffers &&
           a->n_micro_batches == b->n_micro_batches &&
           same_list(a->calls, b->calls, a->n_calls * sizeof *a->calls) &&
           (a->n_sets == 0 || same_list(a->set_at, b->set_at,
                                        (a->n_sets + 1) * sizeof *a->set_at)) &&
           same_list(a->set_item, b->set_item,
                     a->set_items * sizeof *a->set_item) &&
           same_buffers(a, b);
}

/* Tasks and a column of its own are of one program. */
static bool may_come_again(const ms_program *program)
{
    return program->n_tasks == 0 && program->saved_in == NULL;
}

ms_knowntape *ms_knowntape_find(ms_knowntapes *tapes, const ms_program *program,
                                uint32_t context)
{
    if (tapes->n == 0 || !may_come_again(program))
        return NULL;
    uint64_t hash = hash_of(program, context);
    for (uint32_t i = 0; i < tapes->n; i++) {
        ms_knowntape *it = &tapes->one[i];
        if (it->hash == hash && it->context == context &&
            (it->n_steps == 0 || same_program(&it->program, program)))
            return it;
    }
    return NULL;
}

/* ---- keeping ------------------------------------------------------------- */

void ms_knowntape_forget(ms_knowntapes *tapes)
{
    ms_arena arena = tapes->arena;
    ms_arena_reset(&arena);
    *tapes = (ms_knowntapes){.arena = arena};
}

static ms_err copy_program(const ms_program *program, ms_arena *arena,
                           ms_program *copy, ms_fault *fault)
{
    size_t ends = program->n_sets > 0 ? program->n_sets + 1 : 0;
    *copy = *program;
    MS_TRY(ms_tape_copy_list(arena, program->calls, program->n_calls,
                             sizeof *program->calls, &copy->calls, fault));
    MS_TRY(ms_tape_copy_list(arena, program->set_at, ends,
                             sizeof *program->set_at, &copy->set_at, fault));
    MS_TRY(ms_tape_copy_list(arena, program->set_item, program->set_items,
                             sizeof *program->set_item, &copy->set_item,
                             fault));
    return ms_tape_copy_list(arena, program->buffers, program->n_buffers,
                             sizeof *program->buffers, &copy->buffers, fault);
}

static ms_err note_program(ms_knowntapes *tapes, const ms_program *program,
                           uint32_t context, ms_fault *fault)
{
    ms_knowntape *one = ms_arena_grow(
        &tapes->arena, tapes->one, &tapes->capacity, tapes->n + 1, sizeof *one);
    if (one == NULL)
        return ms_fail_nomem(fault);
    tapes->one = one;
    one[tapes->n++] =
        (ms_knowntape){.hash = hash_of(program, context), .context = context};
    return MS_OK;
}

ms_err ms_knowntape_see(ms_knowntapes *tapes, const ms_callwalk *walk,
                        ms_fault *fault)
{
    const ms_program *program = walk->program;
    uint32_t context = walk->learner.context;
    if (!may_come_again(program) || walk->n_steps == 0)
        return MS_OK;
    if (tapes->n >= MOST_KNOWN || tapes->arena.used_bytes > MOST_BYTES)
        ms_knowntape_forget(tapes);
    ms_knowntape *known = ms_knowntape_find(tapes, program, context);
    if (known == NULL)
        return note_program(tapes, program, context, fault);
    MS_TRY(copy_program(program, &tapes->arena, &known->program, fault));
    MS_TRY(ms_tape_copy(&walk->tape, &tapes->arena, &known->tape, fault));
    MS_TRY(ms_tape_copy_list(&tapes->arena, walk->steps, walk->n_steps,
                             sizeof *walk->steps, &known->steps, fault));
    known->n_steps = walk->n_steps;
    return MS_OK;
}

/* ---- telling ------------------------------------------------------------- */

ms_effect ms_knowntape_tell(ms_knowntape *known, ms_learner *learner,
                            const ms_program *program)
{
    ms_tape *tape = &known->tape;
    ms_effect effect = {0};
    ms_tape_place at =
        ms_tape_renumber_start(tape, learner->far, learner->n_far);
    for (uint32_t i = 0; i < known->n_steps; i++) {
        const ms_answer *answer = ms_renumber_answer(learner, known->steps[i]);
        effect = ms_effect_then(effect, answer->effect);
        ms_tape_renumber(tape, &learner->spans, answer->span, &at);
    }
    tape->plan.buffers = program->buffers;
    return effect;
}
