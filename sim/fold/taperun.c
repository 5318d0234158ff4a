/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "sim/fold/taperun.h"

#include "sim/machine.h"
#include "sim/timeline.h"

/* The highest level of each of these memories, in host order. */
static void find_far(const ms_plan *plan, struct ms_far_memory *far)
{
    uint64_t now_bytes[MS_N_POOLS] = {0};
    for (uint32_t op = 0; op < plan->n_ops && plan->n_rows > 0; op++) {
        const ms_plan_op *it = &plan->op[op];
        for (uint32_t r = it->alloc_at; r < it[1].alloc_at; r++) {
            uint8_t pool = plan->row[r].pool;
            now_bytes[pool] += plan->row[r].bytes;
            if (now_bytes[pool] > far[pool].peak_bytes)
                far[pool].peak_bytes = now_bytes[pool];
        }
        for (uint32_t i = it->release_at; i < it[1].release_at; i++) {
            const ms_row *row = &plan->row[plan->release[i]];
            now_bytes[row->pool] -= row->bytes;
        }
    }
}

ms_err ms_taperun(ms_tape *tape, const ms_machine *machine, ms_folded *folded,
                  ms_fault *fault)
{
    ms_timeline line;
    ms_rank_report rank = {0};
    ms_report report = {.n_ranks = 1, .ranks = &rank};
    MS_TRY(ms_tape_end(tape, fault));
    MS_TRY(ms_replay_clock(&tape->plan, machine, &tape->arena, &line, fault));
    MS_TRY(ms_times_measure(&line, &tape->arena, &report, fault));
    find_far(&tape->plan, report.far);
    MS_TRY(ms_hostmemory_measure(&line, machine, &tape->arena, &report, fault));
    for (int pool = 0; pool < MS_N_POOLS; pool++)
        folded->far[pool] = report.far[pool];
    folded->time = rank.time;
    folded->step_ns = line.step_ns;
    folded->recompute_ns = rank.time.recompute_ns;
    return MS_OK;
}
