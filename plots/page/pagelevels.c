/* SPDX-License-Identifier: GPL-3.0-or-later */

#include <string.h>

#include "plots/page/htmlpage.h"
#include "sim/plan.h"
#include "sim/timeline.h"

/* A state of the memory, or none. */
typedef struct state {
    uint32_t number;
    uint64_t t_ns, total_bytes;
    uint64_t bytes[MS_N_CATEGORIES];
} state;

typedef struct walk {
    const ms_timeline *line;
    uint16_t rank;
    state now, put; /* put: the last point that was written */
    state lowest, highest;
    bool is_open;  /* the part has states */
    uint64_t part; /* of the step, from 0 */
    uint32_t shown;
    ms_text *text;
} walk;

static bool is_ours(const walk *w, const ms_event *event)
{
    const ms_plan *plan = w->line->plan;
    return plan->op[event->op_act >> 1].rank == w->rank &&
           plan->row[event->row].pool == MS_DEVICE_POOL;
}

static void take(walk *w, const ms_event *event)
{
    const ms_row *row = &w->line->plan->row[event->row];
    uint64_t bytes = event->op_act & 1 ? row->bytes : 0 - row->bytes;
    w->now.number++;
    w->now.t_ns = event->t_ns;
    w->now.bytes[row->category] += bytes;
    w->now.total_bytes += bytes;
}

/* states, ns: behind the point before. */
static void put_point(uint32_t states, uint64_t ns, const uint64_t *before,
                      const uint64_t *now, ms_text *text)
{
    uint32_t n = 0;
    for (uint32_t c = 0; c < MS_N_CATEGORIES; c++)
        n += now[c] != before[c];
    ms_text_add(text, "%u,", states);
    ms_text_u64(text, ns);
    ms_text_add(text, ",%u", n);
    for (uint32_t c = 0; c < MS_N_CATEGORIES; c++) {
        if (now[c] == before[c])
            continue;
        ms_text_add(text, ",%u,", c);
        ms_text_i64(text, (int64_t)(now[c] - before[c]));
    }
}

static void put_state(walk *w, const state *of)
{
    if (w->shown++ > 0)
        ms_text_add(w->text, ",");
    put_point(of->number - w->put.number, of->t_ns - w->put.t_ns, w->put.bytes,
              of->bytes, w->text);
    w->put = *of;
}

/* The extremes of the part, in their order, each once, then its last state. */
static void close_part(walk *w)
{
    bool rises = w->lowest.number < w->highest.number;
    const state *in_order[] = {rises ? &w->lowest : &w->highest,
                               rises ? &w->highest : &w->lowest, &w->now};
    for (int i = 0; w->is_open && i < 3; i++)
        if (w->shown == 0 || in_order[i]->number > w->put.number)
            put_state(w, in_order[i]);
    w->is_open = false;
}

static void see(walk *w)
{
    if (!w->is_open || w->now.total_bytes < w->lowest.total_bytes)
        w->lowest = w->now;
    if (!w->is_open || w->now.total_bytes > w->highest.total_bytes)
        w->highest = w->now;
    w->is_open = true;
}

/* In which part of the step an event is; of a step that takes no time, parts
 * are of its events. */
static uint64_t part_of(const walk *w, const ms_event *event, uint32_t n)
{
    uint64_t end_ns = w->line->step_ns;
    double share = end_ns > 0 ? (double)event->t_ns / (double)end_ns
                              : (double)w->now.number / (double)n;
    return (uint64_t)(share * MS_PAGE_PARTS);
}

static uint32_t count(walk *w)
{
    uint32_t n = 0;
    ms_eventwalk events;
    ms_timeline_walk(w->line, 0, &events);
    for (uint32_t e = 0; e < w->line->n_events; e++)
        n += is_ours(w, ms_timeline_next(&events));
    return n;
}

ms_err ms_pagelevels_put(const ms_timeline *line, uint16_t rank, uint32_t most,
                         ms_text *text, ms_fault *fault)
{
    walk w = {.line = line, .rank = rank, .text = text};
    uint32_t n = count(&w);
    ms_eventwalk events;
    ms_text_add(text, "\"events\":%u,\"points\":[", n);
    ms_timeline_walk(line, 0, &events);
    for (uint32_t e = 0; e < line->n_events; e++) {
        const ms_event *event = ms_timeline_next(&events);
        if (!is_ours(&w, event))
            continue;
        uint64_t part = part_of(&w, event, n);
        if (n > most && part != w.part)
            close_part(&w);
        w.part = part;
        take(&w, event);
        if (n > most)
            see(&w);
        else
            put_state(&w, &w.now);
    }
    close_part(&w);
    ms_text_add(text, "],\"shown\":%u", w.shown);
    return text->failed ? ms_fail_nomem(fault) : MS_OK;
}

void ms_pagelevels_record(const ms_record_rank *rank, ms_text *text)
{
    static const ms_point empty = {0};
    const ms_point *before = &empty;
    ms_text_add(text, "\"events\":0,\"points\":[");
    for (uint32_t i = 0; i < rank->n_points; i++) {
        const ms_point *now = &rank->points[i];
        if (i > 0)
            ms_text_add(text, ",");
        put_point(1, now->t_ns - before->t_ns, before->bytes, now->bytes, text);
        before = now;
    }
    ms_text_add(text, "],\"shown\":%u", rank->n_points);
}
