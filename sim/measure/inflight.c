/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "sim/measure/inflight.h"
#include "sim/plan.h"
#include "sim/report.h"

#include <stdlib.h>

static bool is_backward(uint8_t pass)
{
    return pass == MS_GRAD_INPUT || pass == MS_GRAD_WEIGHT ||
           pass == MS_ACCUMULATE;
}

/* A micro-batch of a rank begins or ends with this op. */
typedef struct flight_turn {
    uint32_t op;
    uint16_t rank;
    bool begins;
} flight_turn;

static int compare_turns(const void *left, const void *right)
{
    const flight_turn *a = left, *b = right;
    return (a->op > b->op) - (a->op < b->op);
}

/* first and last: per (rank, micro-batch), the op of its first forward and
 * of its last backward. */
static void find_spans(const ms_plan *plan, uint32_t *first, uint32_t *last)
{
    const ms_plan_op *it = plan->op;
    uint32_t n_micro_batches = plan->n_micro_batches;
    for (uint32_t op = 0; op < plan->n_ops; op++, it++) {
        if (it->micro_batch >= n_micro_batches)
            continue;
        uint32_t span = it->rank * n_micro_batches + it->micro_batch;
        if (it->pass == MS_FORWARD && first[span] == MS_NONE)
            first[span] = op;
        else if (is_backward(it->pass))
            last[span] = op;
    }
}

/* In the order of ops. */
static uint32_t list_turns(const ms_plan *plan, const uint32_t *first,
                           const uint32_t *last, flight_turn *turns)
{
    uint32_t n = 0, n_micro_batches = plan->n_micro_batches;
    for (uint32_t span = 0; span < plan->n_ranks * n_micro_batches; span++) {
        uint16_t rank = (uint16_t)(span / n_micro_batches);
        if (first[span] != MS_NONE)
            turns[n++] = (flight_turn){first[span], rank, true};
        if (last[span] != MS_NONE)
            turns[n++] = (flight_turn){last[span], rank, false};
    }
    qsort(turns, n, sizeof *turns, compare_turns);
    return n;
}

ms_err ms_inflight_measure(const ms_plan *plan, ms_arena *arena,
                           ms_report *report, ms_fault *fault)
{
    uint32_t n_spans = plan->n_ranks * plan->n_micro_batches;
    uint32_t *first = ms_arena_take_raw(arena, n_spans, sizeof *first);
    uint32_t *last = ms_arena_take_raw(arena, n_spans, sizeof *last);
    uint32_t *now = ms_arena_take(arena, plan->n_ranks, sizeof *now);
    flight_turn *turns =
        ms_arena_take_raw(arena, 2 * (size_t)n_spans, sizeof *turns);
    if (!first || !last || !now || !turns)
        return ms_fail_nomem(fault);
    for (uint32_t span = 0; span < n_spans; span++)
        first[span] = last[span] = MS_NONE;
    find_spans(plan, first, last);
    uint32_t n = list_turns(plan, first, last, turns);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t rank = turns[i].rank;
        uint32_t *most = &report->ranks[rank].in_flight_micro_batches;
        if (!turns[i].begins)
            now[rank]--;
        else if (++now[rank] > *most)
            *most = now[rank];
    }
    return MS_OK;
}
