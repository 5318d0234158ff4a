/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "sim/plan.h"
#include "sim/timeline.h"

/* ---- the events ---------------------------------------------------------- */

/* The last op that has at most so many events before it. */
static uint32_t op_at(const ms_plan *plan, uint32_t event)
{
    uint32_t low = 0, high = plan->n_ops;
    while (low + 1 < high) {
        uint32_t middle = low + (high - low) / 2;
        if (plan->op[middle].alloc_at + plan->op[middle].release_at <= event)
            low = middle;
        else
            high = middle;
    }
    return low;
}

void ms_timeline_walk(const ms_timeline *line, uint32_t first,
                      ms_eventwalk *walk)
{
    if (!line->events) {
        ms_timeline_walk_plan(line, first, walk);
        return;
    }
    walk->line = line;
    walk->made = line->n_events;
    walk->at = line->events + first;
    walk->end = line->events + line->n_events;
}

void ms_timeline_walk_plan(const ms_timeline *line, uint32_t first,
                           ms_eventwalk *walk)
{
    const ms_plan *plan = line->plan;
    walk->line = line;
    walk->at = walk->end = walk->some;
    walk->made = first;
    if (first >= line->n_events)
        return;
    uint32_t op = op_at(plan, first);
    uint32_t own = first - plan->op[op].alloc_at - plan->op[op].release_at;
    uint32_t rows = plan->op[op + 1].alloc_at - plan->op[op].alloc_at;
    walk->op = op;
    walk->row = plan->op[op].alloc_at + (own < rows ? own : rows);
    walk->release = plan->op[op].release_at + (own < rows ? 0 : own - rows);
}

static uint32_t least(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

bool ms_timeline_make(ms_eventwalk *walk)
{
    const ms_timeline *line = walk->line;
    const ms_plan_op *op = line->plan->op + walk->op;
    const uint32_t *list = line->plan->release;
    ms_event *restrict to = walk->some;
    uint32_t left = least(MS_EVENTWALK, line->n_events - walk->made);
    uint32_t row = walk->row, i = walk->release, act = walk->op << 1;
    walk->at = to;
    walk->end = to + left;
    walk->made += left;
    for (; left > 0; op++, act += 2) {
        uint64_t start_ns = line->start_ns[act >> 1];
        uint64_t end_ns = line->end_ns[act >> 1];
        uint32_t last = row + least(op[1].alloc_at - row, left);
        left -= last - row;
        for (; row < last; row++)
            *to++ = (ms_event){start_ns, row, act | 1u};
        last = i + least(op[1].release_at - i, left);
        left -= last - i;
        for (; i < last; i++)
            *to++ = (ms_event){end_ns, list[i], act};
        walk->op = act >> 1;
    }
    walk->row = row;
    walk->release = i;
    return to > walk->some;
}

ms_event ms_timeline_event(const ms_timeline *line, uint32_t event)
{
    const ms_plan *plan = line->plan;
    if (line->events)
        return line->events[event];
    uint32_t op = op_at(plan, event);
    uint32_t own = event - plan->op[op].alloc_at - plan->op[op].release_at;
    uint32_t rows = plan->op[op + 1].alloc_at - plan->op[op].alloc_at;
    if (own < rows)
        return (ms_event){line->start_ns[op], plan->op[op].alloc_at + own,
                          op << 1 | 1u};
    own += plan->op[op].release_at - rows;
    return (ms_event){line->end_ns[op], plan->release[own], op << 1};
}

static bool on_device(const ms_plan *plan, uint32_t row, uint16_t rank)
{
    return plan->row[row].pool == MS_DEVICE_POOL &&
           plan->op[plan->row[row].op].rank == rank;
}

/* ---- named instants ------------------------------------------------------ */

static bool is_of(const ms_timeline *line, const ms_event *event, uint16_t rank)
{
    return line->plan->op[event->op_act >> 1].rank == rank;
}

/* The events up to the mark in host order.  Those of several ranks are merged,
 * so that the last one of this rank counts. */
static uint32_t until_in_host_order(const ms_timeline *line,
                                    const struct ms_plan_mark *mark)
{
    const ms_plan *plan = line->plan;
    uint32_t drops = mark->releases - plan->op[mark->op].release_at;
    uint32_t until = 0;
    for (uint32_t e = 0; e < line->n_events; e++) {
        const ms_event *event = &line->events[e];
        uint32_t op = event->op_act >> 1;
        bool allocates = event->op_act & 1u;
        if (!is_of(line, event, mark->rank))
            continue;
        if (op > mark->op || (op == mark->op && !allocates && drops-- == 0))
            break;
        until = e + 1;
    }
    return until;
}

/* The first event at or after t_ns. */
static uint32_t first_at(const ms_timeline *line, uint64_t t_ns)
{
    uint32_t low = 0, high = line->n_events;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (line->events[middle].t_ns < t_ns)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* The events up to the end of the op of the mark, before any later op that
 * begins at the same time allocates. */
static uint32_t until_by_device(const ms_timeline *line,
                                const struct ms_plan_mark *mark)
{
    uint64_t end_ns = line->end_ns[mark->op];
    uint32_t e = first_at(line, end_ns);
    for (; e < line->n_events && line->events[e].t_ns == end_ns; e++) {
        const ms_event *event = &line->events[e];
        bool allocates = event->op_act & 1u;
        if (allocates && event->op_act >> 1 > mark->op &&
            is_of(line, event, mark->rank))
            break;
    }
    return e;
}

/* In host order the rows and releases before the mark. */
static uint32_t until_in_plan(const ms_timeline *line,
                              const struct ms_plan_mark *mark)
{
    return line->plan->op[mark->op + 1].alloc_at + mark->releases;
}

/* Of the marks of a rank and kind the one that counts is the first, or the
 * last. */
static bool replaces(bool is_first, const struct ms_plan_mark *mark)
{
    return is_first || mark->mark > MS_MARK_AFTER_FORWARD;
}

uint32_t ms_timeline_until(const ms_timeline *line, uint16_t rank, ms_mark mark)
{
    const struct ms_plan_mark *found = NULL;
    for (uint32_t m = 0; m < line->plan->n_marks; m++) {
        const struct ms_plan_mark *it = &line->plan->marks[m];
        if (it->rank == rank && it->mark == mark && replaces(found == NULL, it))
            found = it;
    }
    if (found == NULL)
        return MS_NONE;
    if (line->by_device)
        return until_by_device(line, found);
    return line->plan->n_ranks > 1 && line->events != NULL
               ? until_in_host_order(line, found)
               : until_in_plan(line, found);
}

ms_err ms_timeline_marks(const ms_timeline *line, ms_arena *arena,
                         uint32_t **until, ms_fault *fault)
{
    const ms_plan *plan = line->plan;
    uint32_t n = plan->n_ranks * (uint32_t)MS_N_MARKS;
    uint32_t *found = ms_arena_take_raw(arena, n, sizeof *found);
    if (found == NULL)
        return ms_fail_nomem(fault);
    memset(found, 0xff, n * sizeof *found);
    for (uint32_t m = 0; m < plan->n_marks; m++) { /* its mark, then event */
        const struct ms_plan_mark *mark = &plan->marks[m];
        uint32_t i = mark->rank * (uint32_t)MS_N_MARKS + mark->mark;
        found[i] = replaces(found[i] == MS_NONE, mark) ? m : found[i];
    }
    for (uint32_t i = 0; i < n; i++)
        if (found[i] != MS_NONE)
            found[i] = line->by_device
                           ? until_by_device(line, &plan->marks[found[i]])
                           : until_in_plan(line, &plan->marks[found[i]]);
    *until = found;
    return MS_OK;
}

/* ---- rows alive ---------------------------------------------------------- */

typedef struct sized_row {
    uint64_t bytes;
    uint32_t row;
} sized_row;

/* Largest first; the row breaks ties, so the order is total. */
static int compare_sized(const void *left, const void *right)
{
    const sized_row *a = left, *b = right;
    if (a->bytes != b->bytes)
        return a->bytes < b->bytes ? 1 : -1;
    return (a->row > b->row) - (a->row < b->row);
}

static uint32_t mark_alive(const ms_timeline *line, uint32_t event,
                           uint16_t rank, uint8_t *alive)
{
    ms_eventwalk walk;
    ms_timeline_walk(line, 0, &walk);
    uint32_t n = 0;
    for (uint32_t e = 0; e <= event && e < line->n_events; e++) {
        const ms_event *at = ms_timeline_next(&walk);
        uint32_t row = at->row;
        if (!on_device(line->plan, row, rank))
            continue;
        alive[row] = at->op_act & 1u;
        n += alive[row] ? 1u : UINT32_MAX;
    }
    return n;
}

ms_err ms_timeline_alive(const ms_timeline *line, uint32_t event, uint16_t rank,
                         ms_arena *arena, uint32_t **rows, uint32_t *n,
                         ms_fault *fault)
{
    const ms_plan *plan = line->plan;
    uint8_t *alive = ms_arena_take(arena, plan->n_rows, 1);
    if (!alive)
        return ms_fail_nomem(fault);
    *n = mark_alive(line, event, rank, alive);
    sized_row *sized = ms_arena_take_raw(arena, *n, sizeof *sized);
    *rows = ms_arena_take_raw(arena, *n, sizeof **rows);
    if (!sized || !*rows)
        return ms_fail_nomem(fault);
    for (uint32_t row = 0, i = 0; row < plan->n_rows; row++)
        if (alive[row])
            sized[i++] = (sized_row){plan->row[row].bytes, row};
    qsort(sized, *n, sizeof *sized, compare_sized);
    for (uint32_t i = 0; i < *n; i++)
        (*rows)[i] = sized[i].row;
    return MS_OK;
}

/* ---- thinning ------------------------------------------------------------ */

enum { FIRST, LOWEST, HIGHEST, LAST, N_KINDS };

/* The events that one pixel column keeps, and the totals that decide. */
typedef struct column {
    uint32_t event[N_KINDS];
    uint64_t lowest_bytes, highest_bytes;
} column;

static uint64_t signed_bytes(const ms_timeline *line, const ms_event *event)
{
    uint64_t bytes = line->plan->row[event->row].bytes;
    return event->op_act & 1u ? bytes : 0 - bytes;
}

/* Earlier events win ties, so that the highest of all columns is the peak. */
static void see(column *in, uint32_t event, uint64_t total_bytes)
{
    if (in->event[FIRST] == MS_NONE) {
        for (int kind = 0; kind < N_KINDS; kind++)
            in->event[kind] = event;
        in->lowest_bytes = in->highest_bytes = total_bytes;
    }
    if (total_bytes < in->lowest_bytes) {
        in->lowest_bytes = total_bytes;
        in->event[LOWEST] = event;
    }
    if (total_bytes > in->highest_bytes) {
        in->highest_bytes = total_bytes;
        in->event[HIGHEST] = event;
    }
    in->event[LAST] = event;
}

/* The end of the axis: the time of the last event of the rank or, in a step
 * that takes no time, the number of events. */
static uint64_t end_of(const ms_timeline *line, uint16_t rank)
{
    ms_event event = {0};
    uint32_t e = line->n_events;
    for (; e > 0; e--) {
        event = ms_timeline_event(line, e - 1);
        if (is_of(line, &event, rank))
            break;
    }
    return e > 0 && event.t_ns > 0 ? event.t_ns : line->n_events;
}

static bool takes_time(const ms_timeline *line)
{
    uint32_t n = line->n_events;
    return n > 0 && ms_timeline_event(line, n - 1).t_ns > 0;
}

static void fill_columns(const ms_timeline *line, uint16_t rank,
                         column *columns, uint32_t n_columns)
{
    uint64_t width = end_of(line, rank) / n_columns + 1;
    bool has_time = takes_time(line);
    uint64_t total_bytes = 0, number = 0;
    ms_eventwalk walk;
    ms_timeline_walk(line, 0, &walk);
    for (uint32_t e = 0; e < line->n_events; e++) {
        const ms_event *event = ms_timeline_next(&walk);
        if (!on_device(line->plan, event->row, rank))
            continue;
        uint64_t at = has_time ? event->t_ns : number++;
        total_bytes += signed_bytes(line, event);
        see(&columns[at / width], e, total_bytes);
    }
}

/* The events to show, ascending, each once; returns how many. */
static uint32_t list_shown(const column *columns, uint32_t n_columns,
                           uint32_t *shown)
{
    uint32_t n = 0;
    for (uint32_t c = 0; c < n_columns; c++) {
        const uint32_t *event = columns[c].event;
        if (event[FIRST] == MS_NONE)
            continue;
        bool low_first = event[LOWEST] < event[HIGHEST];
        uint32_t ordered[N_KINDS] = {
            event[FIRST], event[low_first ? LOWEST : HIGHEST],
            event[low_first ? HIGHEST : LOWEST], event[LAST]};
        for (int kind = 0; kind < N_KINDS; kind++)
            if (n == 0 || shown[n - 1] != ordered[kind])
                shown[n++] = ordered[kind];
    }
    return n;
}

static uint32_t list_all(const ms_timeline *line, uint16_t rank,
                         uint32_t *shown)
{
    uint32_t n = 0;
    ms_eventwalk walk;
    ms_timeline_walk(line, 0, &walk);
    for (uint32_t e = 0; e < line->n_events; e++)
        if (on_device(line->plan, ms_timeline_next(&walk)->row, rank))
            shown[n++] = e;
    return n;
}

static ms_err choose(const ms_timeline *line, uint16_t rank,
                     uint32_t max_points, ms_arena *arena, uint32_t **shown,
                     uint32_t *n, ms_fault *fault)
{
    *shown = ms_arena_take_raw(arena, max_points, sizeof **shown);
    if (!*shown)
        return ms_fail_nomem(fault);
    if (line->n_events <= max_points) {
        *n = list_all(line, rank, *shown);
        return MS_OK;
    }
    uint32_t n_columns = max_points / N_KINDS;
    column *columns = ms_arena_take_raw(arena, n_columns, sizeof *columns);
    if (!columns)
        return ms_fail_nomem(fault);
    for (uint32_t c = 0; c < n_columns; c++)
        columns[c] = (column){{MS_NONE, MS_NONE, MS_NONE, MS_NONE}, 0, 0};
    fill_columns(line, rank, columns, n_columns);
    *n = list_shown(columns, n_columns, *shown);
    return MS_OK;
}

static void fill_points(const ms_timeline *line, uint16_t rank,
                        const uint32_t *shown, uint32_t n, ms_point *points)
{
    const ms_plan *plan = line->plan;
    bool has_time = takes_time(line);
    uint64_t number = 0;
    ms_point now = {0};
    ms_eventwalk walk;
    ms_timeline_walk(line, 0, &walk);
    for (uint32_t e = 0, i = 0; i < n; e++) {
        const ms_event *event = ms_timeline_next(&walk);
        if (!on_device(plan, event->row, rank))
            continue;
        now.t_ns = has_time ? event->t_ns : number++;
        now.total_bytes += signed_bytes(line, event);
        now.bytes[plan->row[event->row].category] += signed_bytes(line, event);
        if (e == shown[i])
            points[i++] = now;
    }
}

ms_err ms_timeline_points(const ms_timeline *line, uint16_t rank,
                          uint32_t max_points, ms_arena *arena,
                          ms_point **points, uint32_t *n, ms_fault *fault)
{
    assert(max_points >= N_KINDS);
    uint32_t *shown;
    MS_TRY(choose(line, rank, max_points, arena, &shown, n, fault));
    *points = ms_arena_take_raw(arena, *n, sizeof **points);
    if (!*points)
        return ms_fail_nomem(fault);
    fill_points(line, rank, shown, *n, *points);
    return MS_OK;
}
