/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "sim/schedule/rooms.h"
#include "sim/graph.h"
#include "sim/program.h"

static void add_up(const ms_graph *graph, const ms_schedule *schedule,
                   const ms_handovers *handovers, const ms_program *program,
                   uint64_t *bytes)
{
    for (uint32_t i = 0; i < handovers->n; i++) {
        const ms_handover *it = &handovers->all[i];
        uint64_t each = it->local ? 0 : ms_handover_bytes(graph, program, it);
        for (uint32_t m = 0; m < schedule->n_micro_batches; m++)
            bytes[ms_schedule_rank(schedule, it->to, m)] += each;
    }
}

ms_err ms_rooms_find(const ms_graph *graph, const ms_schedule *schedule,
                     const ms_handovers *handovers, ms_arena *arena,
                     ms_program *program, uint32_t **rooms, ms_fault *fault)
{
    uint32_t n = schedule->n_ranks;
    *rooms = NULL;
    if (!schedule->keeps.messages)
        return MS_OK;
    uint64_t *bytes = ms_arena_take(arena, n, sizeof *bytes);
    uint32_t *list = ms_arena_take_raw(arena, n, sizeof *list);
    if (bytes == NULL || list == NULL)
        return ms_fail_nomem(fault);
    add_up(graph, schedule, handovers, program, bytes);
    for (uint32_t r = 0; r < n; r++) {
        ms_buffer room = {.name = "receive_buffers",
                          .bytes = bytes[r],
                          .category = MS_COMMUNICATION,
                          .pool = MS_DEVICE_POOL,
                          .stream = MS_STREAM_COMPUTE};
        list[r] = MS_NONE;
        if (bytes[r] > 0)
            MS_TRY(
                ms_program_add_buffer(program, room, arena, &list[r], fault));
    }
    *rooms = list;
    return MS_OK;
}

static bool share(const ms_program *program, uint32_t a, uint32_t b)
{
    if (a == MS_NOTHING || b == MS_NOTHING)
        return false;
    for (uint32_t i = program->set_at[a]; i < program->set_at[a + 1]; i++)
        for (uint32_t k = program->set_at[b]; k < program->set_at[b + 1]; k++)
            if (program->set_item[i] == program->set_item[k])
                return true;
    return false;
}

bool ms_rooms_overflows(const ms_handovers *handovers,
                        const ms_program *program, const ms_handover *it)
{
    const ms_handovers *h = handovers;
    for (uint32_t i = h->out_at[it->to];
         it->backward && i < h->out_at[it->to + 1]; i++) {
        const ms_handover *out = &h->all[h->out[i]];
        if (out->backward && share(program, it->set, out->set))
            return true;
    }
    return false;
}
