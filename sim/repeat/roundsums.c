/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "sim/measure/requests.h"
#include "sim/plan.h"
#include "sim/repeat/rounds.h"
#include "sim/replay/hostclock.h"
#include "sim/replay/latebytes.h"
#include "sim/timeline.h"

#include <stddef.h>
#include <string.h>

/* A rank's memory, op by op. */
typedef struct rank_ops {
    ms_latebytes_op *op; /* n + 1 */
    ms_latebytes_free *late;
    uint32_t n, n_late;
    uint64_t peak_bytes; /* allocated */
} rank_ops;

static ms_err take_ops(const ms_plan *plan, const ms_rounds *rounds,
                       uint32_t rank, ms_arena *arena, rank_ops *ops,
                       ms_fault *fault)
{
    uint32_t releases = 0;
    *ops = (rank_ops){.n = rounds->op_at[rank + 1] - rounds->op_at[rank]};
    for (uint32_t i = rounds->op_at[rank]; i < rounds->op_at[rank + 1]; i++) {
        const ms_plan_op *op = &plan->op[rounds->op[i]];
        releases += op[1].release_at - op->release_at;
    }
    ops->op = ms_arena_take_raw(arena, ops->n + 1u, sizeof *ops->op);
    ops->late = ms_arena_take_raw(arena, releases, sizeof *ops->late);
    return ops->op != NULL && ops->late != NULL ? MS_OK : ms_fail_nomem(fault);
}

/* What the op takes, and what is free behind it, at once or late. */
static uint64_t fill_op(const ms_plan *plan, uint32_t op, rank_ops *ops,
                        ms_latebytes_op *to)
{
    const ms_plan_op *it = &plan->op[op];
    uint64_t late_bytes = 0;
    for (uint32_t row = it->alloc_at; row < it[1].alloc_at; row++)
        to->taken_bytes += plan->row[row].bytes;
    to->takes = it[1].alloc_at > it->alloc_at;
    to->late_at = ops->n_late;
    for (uint32_t i = it->release_at; i < it[1].release_at; i++) {
        const ms_row *row = &plan->row[plan->release[i]];
        ms_streams streams = ms_active_foreign(plan, row);
        if (streams == 0) {
            to->given_bytes += row->bytes;
            continue;
        }
        ops->late[ops->n_late++] = (ms_latebytes_free){row->bytes, streams};
        late_bytes += row->bytes;
    }
    return late_bytes;
}

static ms_err list_ops(const ms_timeline *line, const ms_machine *machine,
                       const ms_rounds *rounds, uint32_t rank, ms_arena *arena,
                       rank_ops *ops, ms_fault *fault)
{
    const ms_plan *plan = line->plan;
    uint64_t now_bytes = 0;
    ms_hostclock clock = ms_hostclock_open(line, machine, rank);
    MS_TRY(take_ops(plan, rounds, rank, arena, ops, fault));
    for (uint32_t i = 0; i < ops->n; i++) {
        uint32_t op = rounds->op[rounds->op_at[rank] + i];
        ms_latebytes_op *to = &ops->op[i];
        ms_hostclock_sync(&clock, op);
        *to = (ms_latebytes_op){.host_ns = clock.host_ns,
                                .end_ns = line->end_ns[op],
                                .stream = plan->op[op].stream};
        uint64_t late_bytes = fill_op(plan, op, ops, to);
        ms_hostclock_issue(&clock, op);
        now_bytes += to->taken_bytes;
        if (now_bytes > ops->peak_bytes)
            ops->peak_bytes = now_bytes;
        now_bytes -= to->given_bytes + late_bytes;
    }
    ops->op[ops->n].late_at = ops->n_late;
    return MS_OK;
}

/* With what waits for other streams, of which a host that runs ahead sees later
 * and later that they have passed. */
static ms_err find_active(const ms_roundcut *cut, const ms_rounds *rounds,
                          uint32_t rank, const rank_ops *ops, ms_arena *arena,
                          uint64_t *active_bytes, ms_fault *fault)
{
    ms_latebytes late;
    const struct ms_rounds_rank *own = &rounds->ranks[rank];
    uint32_t to = own->cut - rounds->op_at[rank], from = to - own->ops;
    uint32_t more = ops->op[to].late_at - ops->op[from].late_at;
    uint64_t host_ns = own->host_ns, ns = rounds->period_ns;
    uint64_t n_frees = ops->n_late + (uint64_t)more * cut->times;
    *active_bytes = ops->peak_bytes;
    if (ops->n_late == 0)
        return MS_OK;
    if (n_frees > UINT32_MAX)
        return ms_fail_nomem(fault);
    MS_TRY(ms_latebytes_open(&late, 0, (uint32_t)n_frees, arena, fault));
    ms_latebytes_run(&late, ops->op, to, ops->late, 0, 0);
    for (uint32_t k = 1; k <= cut->times; k++)
        ms_latebytes_run(&late, ops->op + from, to - from, ops->late,
                         k * host_ns, k * ns);
    ms_latebytes_run(&late, ops->op + to, ops->n - to, ops->late,
                     cut->times * host_ns, cut->times * ns);
    *active_bytes = late.most_bytes;
    return MS_OK;
}

static ms_err tell_peak(const ms_timeline *line, const ms_machine *machine,
                        const ms_roundcut *cut, const ms_rounds *rounds,
                        uint32_t rank, ms_arena *arena, ms_peak *peak,
                        ms_fault *fault)
{
    rank_ops ops;
    uint64_t active_bytes;
    MS_TRY(list_ops(line, machine, rounds, rank, arena, &ops, fault));
    MS_TRY(find_active(cut, rounds, rank, &ops, arena, &active_bytes, fault));
    *peak = (ms_peak){.allocated_bytes = ops.peak_bytes,
                      .active_bytes = active_bytes,
                      .requested_bytes = active_bytes,
                      .reserved_bytes = active_bytes};
    return MS_OK;
}

/* The parts of a step's time, all of them uint64_t that add up. */
#define PARTS (offsetof(ms_times, error_percent) / sizeof(uint64_t))

/* time, and so many times the round before the cut. */
static ms_times stretch(const ms_waits *waits, const ms_roundcut *cut,
                        const ms_rounds *rounds, uint32_t rank, ms_times time)
{
    const struct ms_rounds_rank *own = &rounds->ranks[rank];
    const uint32_t *ops = rounds->op + own->cut - own->ops;
    ms_times round = ms_times_of_ops(waits, ops, own->ops);
    uint64_t sum[PARTS], part[PARTS];
    memcpy(sum, &time, sizeof sum);
    memcpy(part, &round, sizeof part);
    for (size_t i = 0; i < PARTS; i++)
        sum[i] += cut->times * part[i];
    memcpy(&time, sum, sizeof sum);
    return time;
}

ms_err ms_roundsums_ranks(const ms_timeline *line, const ms_machine *machine,
                          const ms_roundcut *cut, const ms_rounds *rounds,
                          ms_arena *arena, ms_rank_report *ranks,
                          ms_fault *fault)
{
    ms_waits waits;
    uint16_t n = line->plan->n_ranks;
    MS_TRY(ms_waits_open(&waits, line, arena, fault));
    MS_TRY(ms_times_parts(&waits, arena, ranks, fault));
    for (uint16_t r = 0; r < n; r++) {
        ms_times time = stretch(&waits, cut, rounds, r, ranks[r].time);
        ranks[r] = (ms_rank_report){.rank = r, .time = time};
        MS_TRY(tell_peak(line, machine, cut, rounds, r, arena, &ranks[r].peak,
                         fault));
    }
    return MS_OK;
}
