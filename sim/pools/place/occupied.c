/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "sim/pools/place/occupied.h"

#include <string.h>

/* A node and the times [first, first + n) that it stands for; its halves are
 * nodes 2 at + 1 and 2 at + 2. */
typedef struct node {
    uint32_t at, first, n;
} node;

#define MOST_DEPTH 34u /* of a tree over 2^32 times, and a node more */
/* A life has at most two nodes at each depth, and two above these. */
#define MOST_SETS (4u * MOST_DEPTH)

static node half(node of, uint32_t which)
{
    uint32_t n = of.n / 2;
    return (node){2 * of.at + 1 + which, of.first + which * n, n};
}

static bool is_apart(node of, ms_placement_life life)
{
    return life.upper <= of.first || of.first + of.n <= life.lower;
}

static bool is_within(node of, ms_placement_life life)
{
    return life.lower <= of.first && of.first + of.n <= life.upper;
}

ms_err ms_occupied_begin(ms_occupied *o, uint32_t n_times, ms_arena *arena,
                         ms_fault *fault)
{
    *o = (ms_occupied){.n_times = 1, .arena = arena};
    while (o->n_times < n_times)
        o->n_times *= 2;
    size_t n_nodes = 2 * (size_t)o->n_times;
    o->whole = ms_arena_take(arena, n_nodes, sizeof *o->whole);
    o->some = ms_arena_take(arena, n_nodes, sizeof *o->some);
    o->sets = ms_arena_take(arena, MOST_SETS, sizeof(ms_occupied_spans *));
    o->next = ms_arena_take(arena, MOST_SETS, sizeof *o->next);
    if (!o->whole || !o->some || !o->sets || !o->next)
        return ms_fail_nomem(fault);
    return MS_OK;
}

/* ---- putting ------------------------------------------------------------- */

/* From span `low` on, the first that ends at `address` or above. */
static uint32_t find_end(const ms_occupied_spans *set, uint32_t low,
                         uint64_t address)
{
    uint32_t high = set->n;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (set->at[middle].to < address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static ms_err add(ms_occupied *o, ms_occupied_spans *set, ms_occupied_span span,
                  ms_fault *fault)
{
    uint32_t first = find_end(set, 0, span.from), end = first;
    for (; end < set->n && set->at[end].from <= span.to; end++) {
        const ms_occupied_span *other = &set->at[end];
        span.from = other->from < span.from ? other->from : span.from;
        span.to = other->to > span.to ? other->to : span.to;
    }
    if (end == first) {
        set->at = ms_arena_grow(o->arena, set->at, &set->capacity, set->n + 1,
                                sizeof *set->at);
        if (set->at == NULL)
            return ms_fail_nomem(fault);
    }
    memmove(set->at + first + 1, set->at + end,
            (set->n - end) * sizeof *set->at);
    set->n += first + 1 - end;
    set->at[first] = span;
    return MS_OK;
}

static ms_err put(ms_occupied *o, node of, ms_placement_life life,
                  ms_occupied_span span, ms_fault *fault)
{
    if (is_apart(of, life))
        return MS_OK;
    MS_TRY(add(o, &o->some[of.at], span, fault));
    if (is_within(of, life))
        return add(o, &o->whole[of.at], span, fault);
    MS_TRY(put(o, half(of, 0), life, span, fault));
    return put(o, half(of, 1), life, span, fault);
}

ms_err ms_occupied_put(ms_occupied *o, ms_placement_life life,
                       ms_occupied_span span, ms_fault *fault)
{
    return put(o, (node){0, 0, o->n_times}, life, span, fault);
}

/* ---- looking ------------------------------------------------------------- */

static void take(ms_occupied *o, const ms_occupied_spans *set)
{
    if (set->n == 0)
        return;
    o->next[o->n_sets] = 0;
    o->sets[o->n_sets++] = set;
}

static void look(ms_occupied *o, node of, ms_placement_life life)
{
    if (is_apart(of, life))
        return;
    if (is_within(of, life)) {
        take(o, &o->some[of.at]);
        return;
    }
    take(o, &o->whole[of.at]);
    look(o, half(of, 0), life);
    look(o, half(of, 1), life);
}

void ms_occupied_look(ms_occupied *o, ms_placement_life life)
{
    o->n_sets = 0;
    look(o, (node){0, 0, o->n_times}, life);
}

/* The first span of a set that ends above `address`, or none. */
static const ms_occupied_span *reach(ms_occupied *o, uint32_t set,
                                     uint64_t address)
{
    const ms_occupied_spans *s = o->sets[set];
    uint32_t i = o->next[set];
    if (i < s->n && s->at[i].to <= address)
        o->next[set] = i = find_end(s, i + 1, address + 1);
    return i < s->n ? &s->at[i] : NULL;
}

ms_occupied_span ms_occupied_gap(ms_occupied *o, uint64_t from)
{
    ms_occupied_span gap = {from, UINT64_MAX};
    for (uint32_t clear = 0, i = 0; clear < o->n_sets;) {
        const ms_occupied_span *span = reach(o, i, gap.from);
        bool covers = span != NULL && span->from <= gap.from;
        if (covers)
            gap.from = span->to;
        clear = covers ? 1 : clear + 1;
        i = i + 1 < o->n_sets ? i + 1 : 0;
    }
    for (uint32_t i = 0; i < o->n_sets; i++) {
        const ms_occupied_span *span = reach(o, i, gap.from);
        if (span != NULL && span->from < gap.to)
            gap.to = span->from;
    }
    return gap;
}
