/* SPDX-License-Identifier: GPL-3.0-or-later */

#include <assert.h>
#include <stdlib.h>

#include "plots/record/lanes.h"
#include "plots/record/record.h"
#include "plots/record/works.h"
#include "sim/measure/waits.h"
#include "sim/plan.h"
#include "sim/timeline.h"

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
    [MS_STREAM_NVME_WRITE] = MS_WORK_NVME, [MS_STREAM_NEXT] = MS_WORK_COMM,
    [MS_STREAM_BEFORE] = MS_WORK_COMM,
};

/* ---- slices -------------------------------------------------------------- */

static ms_slice *add(ms_slicer *slicer)
{
    if (slicer->n == slicer->capacity)
        slicer->slices =
            ms_arena_grow(slicer->arena, slicer->slices, &slicer->capacity,
                          slicer->n + 1, sizeof *slicer->slices);
    slicer->failed |= slicer->slices == NULL;
    return slicer->failed ? NULL : &slicer->slices[slicer->n++];
}

/* A group of short spans ends where it is long enough, or takes what is
 * missing from the long span behind it: only its place, not its time. */
void ms_lanes_cut(ms_slicer *slicer, const ms_span *span)
{
    uint64_t from_ns = span->from_ns, span_ns = span->to_ns - from_ns;
    uint64_t least_ns = slicer->least_ns;
    if (slicer->failed)
        return;
    if (slicer->is_open && span_ns >= 2 * least_ns) {
        from_ns = slicer->slices[slicer->n - 1].from_ns + least_ns;
        slicer->slices[slicer->n - 1].to_ns = from_ns;
        slicer->is_open = false;
    }
    if (!slicer->is_open) {
        ms_slice *slice = add(slicer);
        if (slice == NULL)
            return;
        *slice = (ms_slice){.from_ns = from_ns};
    }
    ms_slice *last = &slicer->slices[slicer->n - 1];
    last->to_ns = span->to_ns;
    last->work_ns[span->work] += span_ns;
    slicer->work_ns[span->work] += span_ns;
    slicer->is_open = span->to_ns - last->from_ns < least_ns;
}

/* A last slice that is short takes what is missing from the one before it, or
 * joins it. */
void ms_lanes_close(ms_slicer *slicer)
{
    if (slicer->failed || !slicer->is_open || slicer->n < 2)
        return;
    ms_slice *last = &slicer->slices[slicer->n - 1], *before = last - 1;
    if (last->to_ns - before->from_ns >= 2 * slicer->least_ns) {
        before->to_ns = last->from_ns = last->to_ns - slicer->least_ns;
        return;
    }
    before->to_ns = last->to_ns;
    for (int work = 0; work < MS_N_WORKS; work++)
        before->work_ns[work] += last->work_ns[work];
    slicer->n--;
}

/* ---- spans --------------------------------------------------------------- */

/* Takes spans in order and joins equal neighbours. */
struct lane {
    ms_slicer *slicer;
    ms_span open; /* empty: none yet */
};

static void put(struct lane *lane, uint64_t to_ns, uint8_t work)
{
    ms_span *open = &lane->open;
    assert(to_ns >= open->to_ns);
    if (to_ns == open->to_ns)
        return;
    if (open->work != work && open->to_ns > open->from_ns) {
        ms_lanes_cut(lane->slicer, open);
        open->from_ns = open->to_ns;
    }
    open->work = work;
    open->to_ns = to_ns;
}

static void end(struct lane *lane)
{
    if (lane->open.to_ns > lane->open.from_ns)
        ms_lanes_cut(lane->slicer, &lane->open);
    ms_lanes_close(lane->slicer);
}

/* A copy that the compute stream makes itself has the colour of one that has a
 * stream of its own. */
static uint8_t work_of(const ms_waits *waits, uint32_t op)
{
    const ms_plan_op *row = &waits->line->plan->op[op];
    if (ms_waits_is_update(waits, op))
        return MS_WORK_OPTIMIZER;
    if (row->stream != MS_STREAM_COMPUTE)
        return work_of_stream[row->stream];
    if (ms_waits_link(waits, op) == MS_LINK_H2D)
        return MS_WORK_H2D;
    return ms_waits_link(waits, op) == MS_LINK_D2H ? MS_WORK_D2H
                                                   : work_of_pass[row->pass];
}

/* What the compute stream waits for: the parts come from the last one on. */
static void put_wait(ms_lanes *lanes, struct lane *lane, ms_wait wait)
{
    uint32_t n = 0;
    while (ms_waits_next(&lanes->waits, &wait)) {
        if (n == lanes->parts_capacity)
            lanes->parts =
                ms_arena_grow(lane->slicer->arena, lanes->parts,
                              &lanes->parts_capacity, n + 1, sizeof(ms_wait));
        lane->slicer->failed |= lanes->parts == NULL;
        if (lane->slicer->failed)
            return;
        lanes->parts[n++] = wait;
    }
    while (n-- > 0) {
        const ms_wait *part = &lanes->parts[n];
        bool update = ms_waits_is_update(&lanes->waits, part->by);
        put(lane, part->to_ns,
            update ? MS_WORK_OPTIMIZER : ms_works_wait[part->cause]);
    }
}

static void walk_compute(ms_lanes *lanes, struct lane *lane)
{
    const ms_timeline *line = lanes->waits.line;
    uint32_t last = MS_NONE;
    uint64_t free_ns = 0;
    for (uint32_t op = 0; op < line->plan->n_ops; op++) {
        if (line->plan->op[op].rank != lanes->rank)
            continue;
        last = ms_waits_later(line, op, last);
        if (line->plan->op[op].stream != MS_STREAM_COMPUTE)
            continue;
        if (line->start_ns[op] > free_ns)
            put_wait(lanes, lane, ms_waits_before(&lanes->waits, op, free_ns));
        put(lane, line->end_ns[op], work_of(&lanes->waits, op));
        free_ns = line->end_ns[op];
    }
    if (last != MS_NONE && line->end_ns[last] > free_ns)
        put_wait(lanes, lane, ms_waits_after(&lanes->waits, last, free_ns));
}

static bool is_on(const ms_lanes *lanes, uint32_t op, ms_stream_kind stream)
{
    const ms_plan_op *row = &lanes->waits.line->plan->op[op];
    return row->rank == lanes->rank && row->stream == stream;
}

static void put_busy(struct lane *lane, uint64_t from_ns, uint64_t to_ns,
                     uint8_t work)
{
    if (from_ns > lane->open.to_ns)
        put(lane, from_ns, MS_WORK_IDLE);
    if (to_ns > lane->open.to_ns)
        put(lane, to_ns, work);
}

/* The copies of the stream that came again, from *next on, up to those that
 * began at until_ns or later. */
static void put_again(const ms_lanes *lanes, ms_stream_kind stream,
                      uint64_t until_ns, uint32_t *next, struct lane *lane)
{
    for (; *next < lanes->n_again; ++*next) {
        const struct ms_revoked *it = lanes->again[*next];
        if (it->start_ns >= until_ns)
            return;
        if (is_on(lanes, it->op, stream))
            put_busy(lane, it->start_ns, it->end_ns,
                     work_of(&lanes->waits, it->op));
    }
}

static void walk_other(const ms_lanes *lanes, ms_stream_kind stream,
                       struct lane *lane)
{
    const ms_timeline *line = lanes->waits.line;
    uint32_t next = 0;
    for (uint32_t op = 0; op < line->plan->n_ops; op++) {
        if (!is_on(lanes, op, stream))
            continue;
        put_again(lanes, stream, line->start_ns[op], &next, lane);
        put_busy(lane, line->start_ns[op], line->end_ns[op],
                 work_of(&lanes->waits, op));
    }
    put_again(lanes, stream, UINT64_MAX, &next, lane);
}

static int by_start(const void *left, const void *right)
{
    const struct ms_revoked *a = *(const struct ms_revoked *const *)left;
    const struct ms_revoked *b = *(const struct ms_revoked *const *)right;
    if (a->start_ns != b->start_ns)
        return a->start_ns < b->start_ns ? -1 : 1;
    return (a->op > b->op) - (a->op < b->op);
}

static ms_err list_again(ms_lanes *lanes, const ms_timeline *line,
                         ms_arena *arena, ms_fault *fault)
{
    if (line->n_revoked == 0)
        return MS_OK;
    lanes->again = ms_arena_take_raw(arena, line->n_revoked, sizeof(void *));
    if (lanes->again == NULL)
        return ms_fail_nomem(fault);
    for (uint32_t i = 0; i < line->n_revoked; i++)
        if (line->revoked[i].came)
            lanes->again[lanes->n_again++] = &line->revoked[i];
    qsort(lanes->again, lanes->n_again, sizeof(void *), by_start);
    return MS_OK;
}

ms_err ms_lanes_open(ms_lanes *lanes, const ms_timeline *line, uint16_t rank,
                     ms_arena *arena, ms_fault *fault)
{
    const ms_plan *plan = line->plan;
    *lanes = (ms_lanes){.rank = rank};
    for (uint32_t op = 0; op < plan->n_ops; op++)
        if (plan->op[op].rank == rank)
            lanes->busy_ns[plan->op[op].stream] +=
                line->end_ns[op] - line->start_ns[op];
    MS_TRY(list_again(lanes, line, arena, fault));
    for (uint32_t i = 0; i < lanes->n_again; i++)
        if (plan->op[lanes->again[i]->op].rank == rank)
            lanes->busy_ns[plan->op[lanes->again[i]->op].stream] +=
                lanes->again[i]->end_ns - lanes->again[i]->start_ns;
    return ms_waits_open(&lanes->waits, line, arena, fault);
}

ms_err ms_lanes_slices(ms_lanes *lanes, ms_stream_kind stream,
                       ms_slicer *slicer, ms_fault *fault)
{
    struct lane lane = {.slicer = slicer};
    if (stream == MS_STREAM_COMPUTE)
        walk_compute(lanes, &lane);
    else
        walk_other(lanes, stream, &lane);
    put(&lane, lanes->waits.line->step_ns, MS_WORK_IDLE);
    end(&lane);
    return slicer->failed ? ms_fail_nomem(fault) : MS_OK;
}
