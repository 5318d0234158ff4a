/* SPDX-License-Identifier: GPL-3.0-or-later */

#include <string.h>

#include "plots/page/htmlpage.h"
#include "sim/plan.h"
#include "sim/timeline.h"

typedef struct state {
    uint32_t number;
    uint64_t t, total_bytes;
    uint64_t bytes[MS_PAGE_CATEGORIES];
} state;

/* Writes the states that it is told of, or of each part of the time the lowest,
 * the highest and the last. */
typedef struct walk {
    uint64_t end;   /* of the time */
    uint32_t parts; /* of it; 0: each state is told */
    state now, put; /* put: the last point that was written */
    state lowest, highest;
    bool is_open;  /* the part has states */
    uint64_t part; /* of the time, from 0 */
    uint32_t shown;
    ms_text *text;
} walk;

/* states, t: behind the point before. */
static void put_point(uint32_t states, uint64_t t, const uint64_t *before,
                      const uint64_t *now, uint32_t n_categories, ms_text *text)
{
    uint32_t n = 0;
    for (uint32_t c = 0; c < n_categories; c++)
        n += now[c] != before[c];
    ms_text_add(text, "%u,", states);
    ms_text_u64(text, t);
    ms_text_add(text, ",%u", n);
    for (uint32_t c = 0; c < n_categories; c++) {
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
    put_point(of->number - w->put.number, of->t - w->put.t, w->put.bytes,
              of->bytes, MS_PAGE_CATEGORIES, w->text);
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

/* The next event, at t. */
static void take(walk *w, uint64_t t, uint32_t category, int64_t bytes)
{
    uint64_t part = (uint64_t)((double)t / (double)w->end * (double)w->parts);
    if (w->parts > 0 && part != w->part)
        close_part(w);
    w->part = part;
    w->now.number++;
    w->now.t = t;
    w->now.bytes[category] += (uint64_t)bytes;
    w->now.total_bytes += (uint64_t)bytes;
    if (w->parts > 0)
        see(w);
    else
        put_state(w, &w->now);
}

static walk open_walk(uint32_t n, const ms_pageshare *most, uint64_t end,
                      ms_text *text)
{
    ms_text_add(text, "\"events\":%u,\"points\":[", n);
    return (walk){.end = end > 0 ? end : 1,
                  .parts = n > most->events ? most->parts : 0,
                  .text = text};
}

static ms_err close_walk(walk *w, ms_fault *fault)
{
    close_part(w);
    ms_text_add(w->text, "],\"shown\":%u", w->shown);
    return w->text->failed ? ms_fail_nomem(fault) : MS_OK;
}

/* ---- of a step that was simulated ---------------------------------------- */

static bool is_ours(const ms_timeline *line, uint16_t rank,
                    const ms_event *event)
{
    const ms_plan *plan = line->plan;
    return plan->op[event->op_act >> 1].rank == rank &&
           plan->row[event->row].pool == MS_DEVICE_POOL;
}

static uint32_t count(const ms_timeline *line, uint16_t rank)
{
    uint32_t n = 0;
    ms_eventwalk events;
    ms_timeline_walk(line, 0, &events);
    for (uint32_t e = 0; e < line->n_events; e++)
        n += is_ours(line, rank, ms_timeline_next(&events));
    return n;
}

ms_err ms_pagelevels_put(const ms_timeline *line, uint16_t rank,
                         const ms_pageshare *most, ms_text *text,
                         ms_fault *fault)
{
    uint32_t n = count(line, rank);
    bool is_timed = line->step_ns > 0;
    walk w = open_walk(n, most, is_timed ? line->step_ns : n, text);
    ms_eventwalk events;
    ms_timeline_walk(line, 0, &events);
    for (uint32_t e = 0; e < line->n_events; e++) {
        const ms_event *event = ms_timeline_next(&events);
        const ms_row *row = &line->plan->row[event->row];
        int64_t bytes = (int64_t)row->bytes;
        if (is_ours(line, rank, event))
            take(&w, is_timed ? event->t_ns : w.now.number, row->category,
                 event->op_act & 1 ? bytes : -bytes);
    }
    return close_walk(&w, fault);
}

/* ---- of a record --------------------------------------------------------- */

void ms_pagelevels_record(const ms_record_rank *rank, ms_text *text)
{
    static const ms_point empty = {0};
    const ms_point *before = &empty;
    ms_text_add(text, "\"events\":0,\"points\":[");
    for (uint32_t i = 0; i < rank->n_points; i++) {
        const ms_point *now = &rank->points[i];
        if (i > 0)
            ms_text_add(text, ",");
        put_point(1, now->t_ns - before->t_ns, before->bytes, now->bytes,
                  MS_N_CATEGORIES, text);
        before = now;
    }
    ms_text_add(text, "],\"shown\":%u", rank->n_points);
}

/* ---- of lives ------------------------------------------------------------ */

ms_err ms_pagelevels_lives(const ms_pagelives *of, ms_text *text,
                           ms_fault *fault)
{
    uint32_t n = of->n_states;
    int64_t *bytes = ms_arena_take(text->arena, n + 1, sizeof *bytes);
    uint8_t *category = ms_arena_take(text->arena, n + 1, sizeof *category);
    if (bytes == NULL || category == NULL)
        return ms_fail_nomem(fault);
    walk w = open_walk(n, &of->most, n, text);
    for (uint32_t i = 0; i < of->n; i++) {
        const ms_pagelife *life = &of->lives[i];
        if (life->from == 0) {
            w.now.bytes[life->category] += life->bytes;
            w.now.total_bytes += life->bytes;
        } else {
            bytes[life->from] = (int64_t)life->bytes;
            category[life->from] = life->category;
        }
        if (life->to == MS_NONE)
            continue;
        bytes[life->to] = -(int64_t)life->bytes;
        category[life->to] = life->category;
    }
    if (w.now.total_bytes > 0)
        put_state(&w, &w.now);
    for (uint32_t s = 1; s <= n; s++)
        take(&w, s, category[s], bytes[s]);
    return close_walk(&w, fault);
}
