/* SPDX-License-Identifier: GPL-3.0-or-later */

#include <assert.h>

#include "plots/figure.h"

/* Of MS_STREAM_COMPUTE by the pass of the op, of the others by the stream. */
static const uint8_t work_of_pass[MS_N_PASSES] = {
    [MS_FORWARD] = MS_WORK_FORWARD,
    [MS_LOSS] = MS_WORK_FORWARD,
    [MS_GRAD_INPUT] = MS_WORK_BACKWARD,
    [MS_GRAD_WEIGHT] = MS_WORK_BACKWARD,
    [MS_ACCUMULATE] = MS_WORK_BACKWARD,
    [MS_STEP] = MS_WORK_OPTIMIZER,
    [MS_RECOMPUTE] = MS_WORK_RECOMPUTE,
    [MS_START] = MS_WORK_IDLE,
    [MS_COPY] = MS_WORK_H2D,
};
static const uint8_t work_of_stream[MS_N_STREAMS] = {
    [MS_STREAM_H2D] = MS_WORK_H2D,         [MS_STREAM_D2H] = MS_WORK_D2H,
    [MS_STREAM_COMM] = MS_WORK_COMM,       [MS_STREAM_HOST] = MS_WORK_HOST,
    [MS_STREAM_OUTER] = MS_WORK_COMM,      [MS_STREAM_NVME_READ] = MS_WORK_NVME,
    [MS_STREAM_NVME_WRITE] = MS_WORK_NVME,
};
static const uint8_t wait_of_gap[MS_N_GAPS] = {
    [MS_GAP_NONE] = MS_WORK_IDLE,        [MS_GAP_HOST] = MS_WORK_WAIT_HOST,
    [MS_GAP_COMM] = MS_WORK_WAIT_COMM,   [MS_GAP_COPY] = MS_WORK_WAIT_COPY,
    [MS_GAP_BUBBLE] = MS_WORK_WAIT_RANK, [MS_GAP_MEMORY] = MS_WORK_WAIT_MEMORY,
    [MS_GAP_PAGES] = MS_WORK_WAIT_PAGES, [MS_GAP_IDLE] = MS_WORK_IDLE,
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

/* A copy in line on the compute stream goes where its far end is allocated. */
static uint8_t work_of(const ms_plan *plan, uint32_t op)
{
    const ms_plan_op *row = &plan->op[op];
    if (row->stream != MS_STREAM_COMPUTE)
        return work_of_stream[row->stream];
    if (row->pass == MS_COPY && row->alloc_at < row[1].alloc_at &&
        plan->row[row->alloc_at].pool == MS_HOST_POOL)
        return MS_WORK_D2H;
    return work_of_pass[row->pass];
}

/* What is left of the step: the compute stream waits for what works last on
 * the rank, then for nothing. */
static void put_rest(const ms_timeline *line, uint8_t rank, bool computes,
                     struct lane *lane)
{
    const ms_plan_op *ops = line->plan->op;
    uint64_t last_ns = 0;
    uint8_t stream = MS_STREAM_COMPUTE;
    for (uint32_t op = 0; op < line->plan->n_ops && computes; op++)
        if (ops[op].rank == rank && line->end_ns[op] >= last_ns) {
            last_ns = line->end_ns[op];
            stream = ops[op].stream;
        }
    if (computes)
        put(lane, last_ns, wait_of_gap[ms_replay_gap_of(stream)]);
    put(lane, line->step_ns, MS_WORK_IDLE);
}

static uint32_t find(const ms_timeline *line, uint8_t rank,
                     ms_stream_kind stream, ms_span *spans)
{
    const ms_plan *plan = line->plan;
    struct lane lane = {.spans = spans};
    bool computes = stream == MS_STREAM_COMPUTE;
    for (uint32_t op = 0; op < plan->n_ops; op++) {
        if (plan->op[op].rank != rank || plan->op[op].stream != stream)
            continue;
        put(&lane, line->start_ns[op],
            computes ? wait_of_gap[line->gap_cause[op]] : MS_WORK_IDLE);
        put(&lane, line->end_ns[op], work_of(plan, op));
    }
    put_rest(line, rank, computes, &lane);
    return lane.n;
}

ms_err ms_lanes_spans(const ms_timeline *line, uint8_t rank,
                      ms_stream_kind stream, ms_arena *arena, ms_span **spans,
                      uint32_t *n, ms_fault *fault)
{
    *n = find(line, rank, stream, NULL);
    *spans = ms_arena_take_raw(arena, *n, sizeof **spans);
    if (*spans == NULL)
        return ms_fail_nomem(fault);
    find(line, rank, stream, *spans);
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
