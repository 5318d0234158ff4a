/* SPDX-License-Identifier: GPL-3.0-or-later */

#include <assert.h>

#include "plots/figure.h"

/* Of MS_STREAM_COMPUTE by the pass of the op, of the others by the stream. */
static const uint8_t work_of_pass[MS_N_PASSES] = {
    [MS_FORWARD] = MS_WORK_FORWARD,     [MS_LOSS] = MS_WORK_FORWARD,
    [MS_GRAD_INPUT] = MS_WORK_BACKWARD, [MS_GRAD_WEIGHT] = MS_WORK_BACKWARD,
    [MS_ACCUMULATE] = MS_WORK_BACKWARD, [MS_STEP] = MS_WORK_OPTIMIZER,
    [MS_RECOMPUTE] = MS_WORK_RECOMPUTE, [MS_START] = MS_WORK_IDLE,
    [MS_COPY] = MS_WORK_PACK,
};
static const uint8_t work_of_stream[MS_N_STREAMS] = {
    [MS_STREAM_H2D] = MS_WORK_H2D,         [MS_STREAM_D2H] = MS_WORK_D2H,
    [MS_STREAM_COMM] = MS_WORK_COMM,       [MS_STREAM_HOST] = MS_WORK_HOST,
    [MS_STREAM_OUTER] = MS_WORK_COMM,      [MS_STREAM_NVME_READ] = MS_WORK_NVME,
    [MS_STREAM_NVME_WRITE] = MS_WORK_NVME,
};
static const uint8_t wait_of_cause[MS_N_CAUSES] = {
    [MS_CAUSE_HOST] = MS_WORK_WAIT_HOST,
    [MS_CAUSE_GATHER] = MS_WORK_WAIT_COMM,
    [MS_CAUSE_REDUCE] = MS_WORK_WAIT_COMM,
    [MS_CAUSE_TO_DEVICE] = MS_WORK_WAIT_COPY,
    [MS_CAUSE_TO_HOST] = MS_WORK_WAIT_COPY,
    [MS_CAUSE_DISK] = MS_WORK_WAIT_DISK,
    [MS_CAUSE_HOST_WORK] = MS_WORK_WAIT_CORES,
    [MS_CAUSE_PACK] = MS_WORK_WAIT_COPY,
    [MS_CAUSE_RANK] = MS_WORK_WAIT_RANK,
    [MS_CAUSE_PAGES] = MS_WORK_WAIT_PAGES,
    [MS_CAUSE_MEMORY] = MS_WORK_WAIT_MEMORY,
    [MS_CAUSE_IDLE] = MS_WORK_IDLE,
};

/* ---- spans --------------------------------------------------------------- */

/* Takes spans in order and joins equal neighbours; with spans NULL it only
 * counts. */
struct lane {
    ms_span *spans;
    uint32_t n;
    uint64_t now_ns;
    uint8_t last;
};

static void put(struct lane *lane, uint64_t to_ns, uint8_t work)
{
    assert(to_ns >= lane->now_ns);
    if (to_ns == lane->now_ns)
        return;
    if (lane->n == 0 || lane->last != work) {
        if (lane->spans != NULL)
            lane->spans[lane->n] =
                (ms_span){.from_ns = lane->now_ns, .work = work};
        lane->n++;
        lane->last = work;
    }
    if (lane->spans != NULL)
        lane->spans[lane->n - 1].to_ns = to_ns;
    lane->now_ns = to_ns;
}

/* A copy in line on the compute stream is drawn as one beside it. */
static uint8_t work_of(const ms_waits *waits, uint32_t op)
{
    const ms_plan_op *row = &waits->line->plan->op[op];
    if (row->stream != MS_STREAM_COMPUTE)
        return work_of_stream[row->stream];
    if (ms_waits_link(waits, op) == MS_LINK_H2D)
        return MS_WORK_H2D;
    return ms_waits_link(waits, op) == MS_LINK_D2H ? MS_WORK_D2H
                                                   : work_of_pass[row->pass];
}

/* What the compute stream waits for until to_ns; *parts lie in order. */
static void put_waits(struct lane *lane, const ms_wait **parts, uint64_t to_ns)
{
    while (lane->now_ns < to_ns) {
        put(lane, (*parts)->to_ns, wait_of_cause[(*parts)->cause]);
        (*parts)++;
    }
}

static uint32_t find(const ms_lanes *lanes, ms_stream_kind stream,
                     ms_span *spans)
{
    const ms_timeline *line = lanes->waits.line;
    const ms_plan *plan = line->plan;
    const ms_wait *parts = lanes->parts, *end = parts + lanes->n_parts;
    struct lane lane = {.spans = spans};
    bool computes = stream == MS_STREAM_COMPUTE;
    for (uint32_t op = 0; op < plan->n_ops; op++) {
        if (plan->op[op].rank != lanes->rank || plan->op[op].stream != stream)
            continue;
        if (computes)
            put_waits(&lane, &parts, line->start_ns[op]);
        else
            put(&lane, line->start_ns[op], MS_WORK_IDLE);
        put(&lane, line->end_ns[op], work_of(&lanes->waits, op));
    }
    if (computes && parts < end)
        put_waits(&lane, &parts, end[-1].to_ns);
    put(&lane, line->step_ns, MS_WORK_IDLE);
    return lane.n;
}

ms_err ms_lanes_open(ms_lanes *lanes, const ms_timeline *line, uint8_t rank,
                     ms_arena *arena, ms_fault *fault)
{
    const ms_plan *plan = line->plan;
    *lanes = (ms_lanes){.rank = rank};
    for (uint32_t op = 0; op < plan->n_ops; op++)
        if (plan->op[op].rank == rank)
            lanes->busy_ns[plan->op[op].stream] +=
                line->end_ns[op] - line->start_ns[op];
    MS_TRY(ms_waits_open(&lanes->waits, line, arena, fault));
    return ms_waits_list(&lanes->waits, rank, arena, &lanes->parts,
                         &lanes->n_parts, fault);
}

ms_err ms_lanes_spans(const ms_lanes *lanes, ms_stream_kind stream,
                      ms_arena *arena, ms_span **spans, uint32_t *n,
                      ms_fault *fault)
{
    *n = find(lanes, stream, NULL);
    *spans = ms_arena_take_raw(arena, *n, sizeof **spans);
    if (*spans == NULL)
        return ms_fail_nomem(fault);
    find(lanes, stream, *spans);
    return MS_OK;
}

/* ---- slices -------------------------------------------------------------- */

/* A last slice that is short takes what is missing from the one before it, or
 * joins it. */
static uint32_t close_last(ms_slice *slices, uint32_t n, uint64_t least_ns)
{
    ms_slice *last = &slices[n - 1], *before = &slices[n - 2];
    if (last->to_ns - before->from_ns >= 2 * least_ns) {
        before->to_ns = last->from_ns = last->to_ns - least_ns;
        return n;
    }
    before->to_ns = last->to_ns;
    for (int work = 0; work < MS_N_WORKS; work++)
        before->work_ns[work] += last->work_ns[work];
    return n - 1;
}

/* A group of short spans ends where it is long enough, or takes what is
 * missing from the long span behind it: only its place, not its time. */
uint32_t ms_lanes_thicken(const ms_span *spans, uint32_t n, uint64_t least_ns,
                          ms_slice *slices)
{
    uint32_t kept = 0;
    bool is_open = false; /* the last slice is shorter than least_ns */
    for (uint32_t i = 0; i < n; i++) {
        const ms_span *span = &spans[i];
        uint64_t from_ns = span->from_ns, span_ns = span->to_ns - from_ns;
        if (is_open && span_ns >= 2 * least_ns) {
            from_ns = slices[kept - 1].from_ns + least_ns;
            slices[kept - 1].to_ns = from_ns;
            is_open = false;
        }
        if (!is_open)
            slices[kept++] = (ms_slice){.from_ns = from_ns};
        slices[kept - 1].to_ns = span->to_ns;
        slices[kept - 1].work_ns[span->work] += span_ns;
        is_open = span->to_ns - slices[kept - 1].from_ns < least_ns;
    }
    if (is_open && kept > 1)
        kept = close_last(slices, kept, least_ns);
    return kept;
}
