/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/bench/streams.h"
#include "sim/machine.h"
#include "sim/plan.h"

#define LIFE 20u /* a row lives for so many ops */

/* Op i makes row i, waits for the op two before it, and row i - LIFE goes. */
bool bench_streams_plan(uint32_t n_ops, const ms_graph *graph, ms_arena *arena,
                        ms_plan *plan)
{
    *plan = (ms_plan){.graph = graph, .n_ranks = 1};
    plan->op = ms_arena_take(arena, n_ops + 1u, sizeof *plan->op);
    plan->row = ms_arena_take(arena, n_ops, sizeof *plan->row);
    plan->release = ms_arena_take(arena, n_ops, sizeof *plan->release);
    plan->wait_at = ms_arena_take(arena, n_ops + 1u, sizeof *plan->wait_at);
    plan->wait = ms_arena_take(arena, n_ops, sizeof *plan->wait);
    if (!plan->op || !plan->row || !plan->release || !plan->wait_at ||
        !plan->wait)
        return false;
    plan->n_ops = plan->n_rows = n_ops;
    for (uint32_t i = 0; i < n_ops; i++) {
        uint8_t stream = (uint8_t)(i % MS_N_STREAMS);
        uint8_t reader = (uint8_t)((i + 2) % MS_N_STREAMS);
        plan->op[i].stream = stream;
        plan->op[i].ns = 4000 + i * 7919u % 40000;
        plan->op[i + 1].alloc_at = i + 1;
        plan->op[i + 1].release_at = i >= LIFE ? i - LIFE + 1 : 0;
        plan->wait_at[i + 1] = i >= 1 ? i - 1 : 0;
        plan->row[i] = (ms_row){.bytes = 1024u + i % 4096u,
                                .op = i,
                                .streams = (uint8_t)(1u << reader)};
        plan->release[i] = i;
        if (i >= 2)
            plan->wait[i - 2] = i - 2;
    }
    return true;
}

ms_machine bench_streams_machine(bool interfering)
{
    ms_machine machine = {.launch_ns = 1000};
    for (uint32_t s = 0; s < MS_N_STREAMS && interfering; s++)
        machine.demand[s][MS_HOST_DRAM].shared = (uint16_t)(200 + 50 * s);
    return machine;
}
