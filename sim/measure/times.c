/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "sim/graph.h"
#include "sim/measure/linkbytes.h"
#include "sim/plan.h"
#include "sim/report.h"
#include "sim/timeline.h"

/* What is summed up per rank. */
typedef struct rank_clock {
    uint64_t free_ns; /* end of the compute stream's last op so far */
    uint32_t last;    /* op of any stream that ends last so far, or MS_NONE; */
    uint64_t last_ns; /* when it ends: those of no length end with others */
    uint64_t pass_ns[MS_N_PASSES];
    bool overlaps; /* its step begins with its first op (ms_program) */
    ms_rank_report *out;
} rank_clock;

/* ---- the compute stream -------------------------------------------------- */

/* A wait for an update is the optimizer's time. */
static void add_stall(const ms_waits *waits, rank_clock *clock, uint8_t cause,
                      uint32_t by, uint64_t t_ns)
{
    ms_rank_report *out = clock->out;
    ms_link link = ms_waits_link(waits, by);
    if (ms_waits_is_update(waits, by)) {
        clock->pass_ns[MS_STEP] += t_ns;
        return;
    }
    out->stalls_ns[cause] += t_ns;
    if (link != MS_N_LINKS)
        out->links[link].time.exposed_ns += t_ns;
}

static void add_wait(const ms_waits *waits, rank_clock *clock, ms_wait wait)
{
    while (ms_waits_next(waits, &wait))
        add_stall(waits, clock, wait.cause, wait.by, wait.to_ns - wait.from_ns);
}

/* What lies before is of the step before. */
static void begin_here(rank_clock *clock, uint64_t t_ns)
{
    ms_rank_report *out = clock->out;
    clock->free_ns = t_ns;
    memset(out->stalls_ns, 0, sizeof out->stalls_ns);
    for (int link = 0; link < MS_N_LINKS; link++)
        out->links[link].time.exposed_ns = 0;
}

/* The wait before an op, then the op. */
static inline void add_op(const ms_waits *waits, rank_clock *clock, uint32_t op)
{
    const ms_timeline *line = waits->line;
    uint8_t pass = line->plan->op[op].pass;
    uint64_t start_ns = line->start_ns[op], end_ns = line->end_ns[op];
    assert(start_ns >= clock->free_ns);
    if (end_ns > start_ns && clock->out->last_ns == 0) {
        clock->out->first_ns = start_ns;
        if (clock->overlaps)
            begin_here(clock, start_ns);
    }
    if (end_ns > start_ns)
        clock->out->last_ns = end_ns;
    if (start_ns > clock->free_ns)
        add_wait(waits, clock, ms_waits_before(waits, op, clock->free_ns));
    clock->pass_ns[pass] += end_ns - start_ns;
    if (pass == MS_COPY)
        add_stall(waits, clock, (uint8_t)ms_waits_cause(waits, op), op,
                  end_ns - start_ns);
    clock->free_ns = end_ns;
}

/* Where steps overlap, what a rank has sent may wait for the other while its
 * own next step begins. */
static inline void note_last(const ms_waits *waits, rank_clock *clock,
                             uint32_t op)
{
    const ms_timeline *line = waits->line;
    uint64_t end_ns = line->end_ns[op];
    if (clock->overlaps && waits->kind != NULL &&
        waits->kind[op] == MS_TRANSFER_SEND)
        return;
    if (end_ns < clock->last_ns || end_ns == line->start_ns[op])
        return;
    clock->last = op;
    clock->last_ns = end_ns;
}

/* The parts of step_ns by what was under way. */
static ms_times parts_of(const rank_clock *clock, uint64_t step_ns)
{
    const uint64_t *pass = clock->pass_ns, *stall = clock->out->stalls_ns;
    return (ms_times){
        .step_ns = step_ns,
        .forward_ns = pass[MS_FORWARD] + pass[MS_LOSS],
        .backward_ns =
            pass[MS_GRAD_INPUT] + pass[MS_GRAD_WEIGHT] + pass[MS_ACCUMULATE],
        .recompute_ns = pass[MS_RECOMPUTE],
        .optimizer_ns = pass[MS_STEP],
        .exposed_comm_ns = stall[MS_CAUSE_GATHER] + stall[MS_CAUSE_REDUCE] +
                           stall[MS_CAUSE_MEETING],
        .stall_ns = stall[MS_CAUSE_TO_DEVICE] + stall[MS_CAUSE_TO_HOST] +
                    stall[MS_CAUSE_DISK] + stall[MS_CAUSE_HOST_WORK] +
                    stall[MS_CAUSE_PACK],
        .bubble_ns = stall[MS_CAUSE_RANK],
        .host_bound_ns = stall[MS_CAUSE_HOST],
        .page_wait_ns = stall[MS_CAUSE_PAGES],
        .memory_wait_ns = stall[MS_CAUSE_MEMORY],
        .idle_ns = stall[MS_CAUSE_IDLE] + pass[MS_START]};
}

/* At its end the compute stream waits for the op that ends last, and then for
 * nothing. */
static void close_clock(const ms_waits *waits, rank_clock *clock)
{
    const ms_timeline *line = waits->line;
    uint32_t last = clock->last;
    if (last != MS_NONE && line->end_ns[last] > clock->free_ns) {
        add_wait(waits, clock, ms_waits_after(waits, last, clock->free_ns));
        clock->free_ns = line->end_ns[last];
    }
}

/* From one step to the next: all ranks' or, where steps overlap, that of the
 * rank that takes longest from its own first op to its last. */
static uint64_t step_of(const ms_timeline *line, const rank_clock *clocks)
{
    uint64_t longest_ns = 0;
    for (uint16_t r = 0; r < line->plan->n_ranks && line->plan->overlaps; r++) {
        uint64_t span_ns = clocks[r].free_ns - clocks[r].out->first_ns;
        longest_ns = span_ns > longest_ns ? span_ns : longest_ns;
    }
    return line->plan->overlaps ? longest_ns : line->step_ns;
}

/* What is left of the step: idle, or the wait for the slowest of ranks whose
 * steps overlap. */
static void close_times(rank_clock *clock, uint64_t step_ns)
{
    uint64_t from_ns = clock->overlaps ? clock->out->first_ns : 0;
    uint8_t cause = clock->overlaps ? MS_CAUSE_RANK : MS_CAUSE_IDLE;
    clock->out->stalls_ns[cause] += step_ns - (clock->free_ns - from_ns);
    clock->out->time = parts_of(clock, step_ns);
}

/* ---- what works beside it ------------------------------------------------ */

typedef struct interval {
    uint64_t from_ns, to_ns;
    uint8_t link, stream;
    uint16_t rank;
} interval;

/* Those of a rank's stream, which come one after the other: [at, end). */
typedef struct lane {
    uint32_t at, end;
} lane;

/* Until when each link, and each kind of links, is known to work. */
typedef struct busy_until {
    uint64_t link_ns[MS_N_LINKS], comm_ns, copies_ns;
} busy_until;

static int by_start(const void *left, const void *right)
{
    const interval *a = left, *b = right;
    if (a->from_ns != b->from_ns)
        return a->from_ns < b->from_ns ? -1 : 1;
    return (a->to_ns > b->to_ns) - (a->to_ns < b->to_ns);
}

/* Intervals come in the order of their starts, so that the new part of one lies
 * behind the end of all before it. */
static void extend(const interval *it, uint64_t *until_ns, uint64_t *busy_ns)
{
    uint64_t from_ns = it->from_ns > *until_ns ? it->from_ns : *until_ns;
    if (it->to_ns <= from_ns)
        return;
    *busy_ns += it->to_ns - from_ns;
    *until_ns = it->to_ns;
}

static void add_interval(const interval *it, busy_until *until,
                         ms_rank_report *out)
{
    extend(it, &until->link_ns[it->link], &out->links[it->link].time.busy_ns);
    if (it->link <= MS_LINK_OUTER)
        extend(it, &until->comm_ns, &out->comm.busy_ns);
    else if (it->link != MS_LINK_HOST)
        extend(it, &until->copies_ns, &out->copies.busy_ns);
}

static void put_interval(const ms_waits *waits, uint32_t op, uint64_t from_ns,
                         uint64_t to_ns, interval *list, uint32_t *n)
{
    ms_link link = ms_waits_link(waits, op);
    if (link == MS_N_LINKS)
        return;
    const ms_plan_op *it = &waits->line->plan->op[op];
    list[(*n)++] =
        (interval){from_ns, to_ns, (uint8_t)link, it->stream, it->rank};
}

/* Into list, with the copies that came again. */
static uint32_t list_intervals(const ms_waits *waits, interval *list)
{
    const ms_timeline *line = waits->line;
    const uint8_t *kind = waits->kind;
    uint32_t n = 0;
    for (uint32_t op = 0; op < line->plan->n_ops; op++) {
        bool moves = kind != NULL && kind[op] < MS_N_TRANSFERS;
        if (moves || line->plan->op[op].stream == MS_STREAM_HOST)
            put_interval(waits, op, line->start_ns[op], line->end_ns[op], list,
                         &n);
    }
    for (uint32_t i = 0; i < line->n_revoked; i++)
        if (line->revoked[i].came)
            put_interval(waits, line->revoked[i].op, line->revoked[i].start_ns,
                         line->revoked[i].end_ns, list, &n);
    return n;
}

static uint32_t lane_of(const interval *it)
{
    return it->rank * (uint32_t)MS_N_STREAMS + it->stream;
}

/* Copies that came again lie behind those that came in time. */
static void sort_lane(interval *first, interval *end)
{
    for (interval *it = first + 1; it < end; it++)
        if (by_start(it - 1, it) > 0) {
            qsort(first, (size_t)(end - first), sizeof *first, by_start);
            return;
        }
}

/* n intervals by lane, and in the order of their starts on each; lanes: n_lanes
 * of them, zero. */
static void divide(const interval *list, uint32_t n, interval *to, lane *lanes,
                   uint32_t n_lanes)
{
    uint32_t at = 0;
    for (uint32_t i = 0; i < n; i++)
        lanes[lane_of(&list[i])].end++;
    for (uint32_t l = 0; l < n_lanes; l++) {
        uint32_t length = lanes[l].end;
        lanes[l] = (lane){at, at};
        at += length;
    }
    for (uint32_t i = 0; i < n; i++)
        to[lanes[lane_of(&list[i])].end++] = list[i];
    for (uint32_t l = 0; l < n_lanes; l++)
        if (lanes[l].at < lanes[l].end)
            sort_lane(to + lanes[l].at, to + lanes[l].end);
}

/* The intervals of a rank in the order of their starts. */
static void merge_lanes(const interval *list, const lane *lanes,
                        ms_rank_report *out)
{
    lane left[MS_N_STREAMS];
    busy_until until = {0};
    uint32_t n = 0;
    for (uint32_t s = 0; s < MS_N_STREAMS; s++)
        if (lanes[s].at < lanes[s].end)
            left[n++] = lanes[s];
    while (n > 0) {
        uint32_t first = 0;
        for (uint32_t i = 1; i < n; i++)
            if (list[left[i].at].from_ns < list[left[first].at].from_ns)
                first = i;
        add_interval(&list[left[first].at++], &until, out);
        if (left[first].at == left[first].end)
            left[first] = left[--n];
    }
}

static ms_err fold_busy(const ms_waits *waits, ms_arena *arena,
                        ms_report *report, ms_fault *fault)
{
    if (!waits->kind && !waits->before)
        return MS_OK; /* all is on the compute stream */
    size_t most = (size_t)waits->line->plan->n_ops + waits->line->n_revoked;
    uint32_t n_lanes = report->n_ranks * (uint32_t)MS_N_STREAMS;
    interval *list = ms_arena_take_raw(arena, most, sizeof *list);
    lane *lanes = ms_arena_take(arena, n_lanes, sizeof *lanes);
    uint32_t n = list ? list_intervals(waits, list) : 0;
    interval *sorted = ms_arena_take_raw(arena, n, sizeof *sorted);
    if (!list || !sorted || !lanes)
        return ms_fail_nomem(fault);
    divide(list, n, sorted, lanes, n_lanes);
    for (uint32_t r = 0; r < report->n_ranks; r++)
        merge_lanes(sorted, lanes + r * (size_t)MS_N_STREAMS,
                    &report->ranks[r]);
    return MS_OK;
}

static void close_links(ms_rank_report *out)
{
    const ms_link_use *links = out->links;
    out->comm.exposed_ns = out->time.exposed_comm_ns;
    for (int link = MS_LINK_H2D; link <= MS_LINK_NVME_WRITE; link++)
        out->copies.exposed_ns += links[link].time.exposed_ns;
    out->h2d_bytes = links[MS_LINK_H2D].bytes;
    out->d2h_bytes = links[MS_LINK_D2H].bytes;
    out->comm_bytes = links[MS_LINK_COMM].bytes + links[MS_LINK_OUTER].bytes;
    out->nvme_bytes =
        links[MS_LINK_NVME_READ].bytes + links[MS_LINK_NVME_WRITE].bytes;
}

/* ---- all of it ----------------------------------------------------------- */

/* Since when the op's stream is free for it. */
static uint64_t free_before(const ms_waits *waits, uint32_t op)
{
    uint32_t before = waits->before != NULL ? waits->before[op] : op - 1;
    return before == MS_NONE ? 0 : waits->line->end_ns[before];
}

static void fold_ops(const ms_waits *waits, rank_clock *clocks)
{
    const ms_timeline *line = waits->line;
    const ms_plan *plan = line->plan;
    for (uint32_t op = 0; op < plan->n_ops; op++) {
        rank_clock *clock = &clocks[plan->op[op].rank];
        if (plan->op[op].stream == MS_STREAM_COMPUTE)
            add_op(waits, clock, op);
        note_last(waits, clock, op);
    }
}

static void sum_flops(const ms_plan *plan, ms_report *report)
{
    const double *flops = plan->graph->op_flops;
    double by_pass[MS_N_PASSES] = {0};
    for (uint32_t op = 0; op < plan->n_ops; op++) {
        const ms_plan_op *row = &plan->op[op];
        if (row->of != MS_NONE)
            by_pass[row->pass] += flops[row->of] * ms_plan_part(row);
    }
    report->forward_flops = by_pass[MS_FORWARD] + by_pass[MS_LOSS];
    report->backward_flops = by_pass[MS_GRAD_INPUT] + by_pass[MS_GRAD_WEIGHT] +
                             by_pass[MS_ACCUMULATE];
    report->recompute_flops = by_pass[MS_RECOMPUTE];
    report->optimizer_flops = by_pass[MS_STEP];
}

ms_times ms_times_of_ops(const ms_waits *waits, const uint32_t *ops, uint32_t n)
{
    ms_rank_report out = {0};
    rank_clock clock = {.free_ns = free_before(waits, ops[0]), .out = &out};
    uint64_t from_ns = clock.free_ns;
    for (uint32_t i = 0; i < n; i++)
        if (waits->line->plan->op[ops[i]].stream == MS_STREAM_COMPUTE)
            add_op(waits, &clock, ops[i]);
    return parts_of(&clock, clock.free_ns - from_ns);
}

ms_err ms_times_parts(const ms_waits *waits, ms_arena *arena,
                      ms_rank_report *ranks, ms_fault *fault)
{
    uint16_t n_ranks = waits->line->plan->n_ranks;
    rank_clock *clocks = ms_arena_take(arena, n_ranks, sizeof *clocks);
    if (!clocks)
        return ms_fail_nomem(fault);
    for (uint16_t rank = 0; rank < n_ranks; rank++)
        clocks[rank] = (rank_clock){.last = MS_NONE,
                                    .overlaps = waits->line->plan->overlaps,
                                    .out = &ranks[rank]};
    fold_ops(waits, clocks);
    for (uint16_t rank = 0; rank < n_ranks; rank++)
        close_clock(waits, &clocks[rank]);
    uint64_t step_ns = step_of(waits->line, clocks);
    for (uint16_t rank = 0; rank < n_ranks; rank++)
        close_times(&clocks[rank], step_ns);
    return MS_OK;
}

ms_idle_times ms_times_idle(const ms_rank_report *rank)
{
    const ms_times *time = &rank->time;
    uint64_t span_ns = rank->last_ns - rank->first_ns;
    uint64_t busy_ns = time->forward_ns + time->backward_ns +
                       time->recompute_ns + time->optimizer_ns;
    return (ms_idle_times){busy_ns, time->step_ns - busy_ns, span_ns,
                           span_ns > busy_ns ? span_ns - busy_ns : 0};
}

ms_err ms_times_measure(const ms_timeline *line, ms_arena *arena,
                        ms_report *report, ms_fault *fault)
{
    ms_waits waits;
    MS_TRY(ms_waits_open(&waits, line, arena, fault));
    MS_TRY(ms_times_parts(&waits, arena, report->ranks, fault));
    sum_flops(line->plan, report);
    MS_TRY(fold_busy(&waits, arena, report, fault));
    ms_linkbytes_add(&waits, report);
    for (uint16_t rank = 0; rank < report->n_ranks; rank++)
        close_links(&report->ranks[rank]);
    return MS_OK;
}
