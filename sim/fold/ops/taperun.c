/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "sim/fold/ops/tape.h"

#include "sim/machine.h"
#include "sim/measure/waits.h"
#include "sim/replay/hostclock.h"
#include "sim/replay/latebytes.h"
#include "sim/timeline.h"

/* ---- what waits for other streams ---------------------------------------- */

static ms_err list_ops(ms_tape *tape, const ms_timeline *line,
                       const ms_machine *machine, ms_latebytes_op **list,
                       ms_latebytes_free **frees, ms_fault *fault)
{
    const ms_plan *plan = &tape->plan;
    ms_hostclock clock = ms_hostclock_open(line, machine, 0);
    uint32_t n = 0;
    *list = ms_arena_take_raw(&tape->arena, plan->n_ops + 1u, sizeof **list);
    *frees = ms_arena_take_raw(&tape->arena, tape->n_late, sizeof **frees);
    if (*list == NULL || *frees == NULL)
        return ms_fail_nomem(fault);
    for (uint32_t op = 0; op < plan->n_ops; op++) {
        const ms_tape_level *level = &tape->level[op];
        ms_hostclock_sync(&clock, op);
        (*list)[op] = (ms_latebytes_op){clock.host_ns,
                                        line->end_ns[op],
                                        level->taken_bytes,
                                        level->given_bytes,
                                        n,
                                        plan->op[op].stream,
                                        level->takes};
        ms_hostclock_issue(&clock, op);
        for (; n < tape->n_late && tape->late[n].op == op; n++)
            (*frees)[n] =
                (ms_latebytes_free){tape->late[n].bytes, tape->late[n].streams};
    }
    (*list)[plan->n_ops].late_at = n;
    return MS_OK;
}

static ms_err find_active(ms_tape *tape, const ms_timeline *line,
                          const ms_machine *machine, uint64_t start_bytes,
                          ms_folded *folded, ms_fault *fault)
{
    ms_latebytes late;
    ms_latebytes_op *list;
    ms_latebytes_free *frees;
    folded->active_bytes = folded->peak_bytes;
    if (tape->n_late == 0)
        return MS_OK;
    MS_TRY(list_ops(tape, line, machine, &list, &frees, fault));
    MS_TRY(ms_latebytes_open(&late, start_bytes, tape->n_late, &tape->arena,
                             fault));
    ms_latebytes_run(&late, list, tape->plan.n_ops, frees, 0, 0);
    if (late.most_bytes > folded->active_bytes)
        folded->active_bytes = late.most_bytes;
    return MS_OK;
}

/* ---- other memories ------------------------------------------------------ */

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

ms_err ms_taperun(ms_tape *tape, const ms_machine *machine,
                  uint64_t start_bytes, ms_folded *folded, ms_fault *fault)
{
    ms_timeline line;
    ms_waits waits;
    ms_rank_report rank = {0};
    ms_report report = {.n_ranks = 1, .ranks = &rank};
    MS_TRY(ms_tape_end(tape, fault));
    MS_TRY(ms_replay_clock(&tape->plan, machine, &tape->arena, &line, fault));
    MS_TRY(ms_waits_open(&waits, &line, &tape->arena, fault));
    MS_TRY(ms_times_parts(&waits, &tape->arena, &rank, fault));
    MS_TRY(find_active(tape, &line, machine, start_bytes, folded, fault));
    find_far(&tape->plan, report.far);
    MS_TRY(ms_hostmemory_measure(&line, machine, &tape->arena, &report, fault));
    for (int pool = 0; pool < MS_N_POOLS; pool++)
        folded->far[pool] = report.far[pool];
    folded->time = rank.time;
    folded->step_ns = line.step_ns;
    folded->recompute_ns = rank.time.recompute_ns;
    return MS_OK;
}
