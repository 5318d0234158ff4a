/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Static planning, exactly: one depth-first search, placesearch.h.
 *
 * Buffers that no longer meet, with gaps of time between them, are searched
 * apart: a failure in one part never makes another be searched again. */

#include "sim/pools/place/placesearch.h"

#include <string.h>

#define N_VAIN (1u << 18)  /* slots of the table of states that failed */
#define ROUND UINT64_C(16) /* steps between two questions whether to stop */

enum { LOW, LEAST, PLACED };

typedef ms_placesearch search;
typedef ms_placesearch_item item;

static bool solve(search *s, uint32_t begin, uint32_t end);

/* ---- changes ------------------------------------------------------------- */

static void note(search *s, uint32_t kind, uint32_t of, uint64_t old)
{
    if (s->n_trail == s->trail_capacity) {
        ms_placesearch_change *grown =
            ms_arena_grow(s->arena, s->trail, &s->trail_capacity,
                          s->n_trail + 1, sizeof *s->trail);
        if (grown == NULL) {
            s->failed = true;
            return;
        }
        s->trail = grown;
    }
    s->trail[s->n_trail++] = (ms_placesearch_change){old, of, kind};
}

static void mark(search *s, uint32_t i)
{
    for (uint32_t t = s->items[i].lower; t < s->items[i].upper; t++)
        if (!s->dirty[t]) {
            s->dirty[t] = true;
            s->queue[s->n_queue++] = t;
        }
}

static uint64_t aligned(uint64_t offset, uint64_t align)
{
    uint64_t over = align > 1 ? offset % align : 0;
    return over > 0 ? offset + align - over : offset;
}

/* Twins lie one above the other. */
static void lift(search *s, uint32_t i, uint64_t low)
{
    for (; i != MS_NONE; i = s->items[i].twin) {
        low = aligned(low, s->items[i].align);
        if (s->placed[i] || low <= s->lows[i])
            return;
        note(s, LOW, i, s->lows[i]);
        s->lows[i] = low;
        mark(s, i);
        low += s->items[i].bytes;
    }
}

/* What meets it lies above: there is no room below (take). */
static void place(search *s, uint32_t i)
{
    const item *it = &s->items[i];
    note(s, PLACED, i, 0);
    s->placed[i] = true;
    for (uint32_t t = it->lower; t < it->upper; t++) {
        s->totals[t] -= it->bytes;
        s->n_left[t]--;
    }
    for (uint32_t k = s->meets_at[i]; k < s->meets_at[i + 1]; k++)
        lift(s, s->meets[k], s->lows[i] + it->bytes);
    mark(s, i);
}

static void take_back(search *s, uint32_t n_trail)
{
    while (s->n_trail > n_trail) {
        ms_placesearch_change change = s->trail[--s->n_trail];
        if (change.kind == LOW)
            s->lows[change.of] = change.old;
        else if (change.kind == LEAST)
            s->least[change.of] = change.old;
        else {
            const item *it = &s->items[change.of];
            s->placed[change.of] = false;
            for (uint32_t t = it->lower; t < it->upper; t++) {
                s->totals[t] += it->bytes;
                s->n_left[t]++;
            }
        }
    }
}

/* ---- does it still fit? -------------------------------------------------- */

/* Of the items to come, from the highest low down: none may lie so high that
 * those that lie no lower do not fit above its low.  At or under floor that
 * has been seen to. */
static bool high_fit(search *s, uint32_t t, uint64_t floor)
{
    uint64_t *lows = s->column, *bytes = s->column + s->n, sum = 0;
    uint32_t n = 0;
    for (uint32_t k = s->section_at[t]; k < s->section_at[t + 1]; k++) {
        uint32_t i = s->in_section[k], at = n;
        if (s->placed[i] || s->lows[i] <= floor)
            continue;
        for (; at > 0 && lows[at - 1] < s->lows[i]; at--) {
            lows[at] = lows[at - 1];
            bytes[at] = bytes[at - 1];
        }
        lows[at] = s->lows[i];
        bytes[at] = s->items[i].bytes;
        n++;
    }
    for (uint32_t k = 0; k < n; k++) {
        sum += bytes[k];
        if (lows[k] + sum > s->capacity)
            return false;
    }
    return true;
}

static bool section_fits(search *s, uint32_t t)
{
    uint64_t least = UINT64_MAX, most = 0;
    if (s->n_left[t] == 0)
        return true;
    for (uint32_t k = s->section_at[t]; k < s->section_at[t + 1]; k++) {
        uint32_t i = s->in_section[k];
        if (s->placed[i])
            continue;
        least = s->lows[i] < least ? s->lows[i] : least;
        most = s->lows[i] > most ? s->lows[i] : most;
    }
    if (s->totals[t] > s->capacity || least > s->capacity - s->totals[t])
        return false;
    if (least != s->least[t])
        note(s, LEAST, t, s->least[t]);
    s->least[t] = least;
    uint64_t floor = s->capacity - s->totals[t];
    return most <= floor || high_fit(s, t, floor);
}

static bool fits(search *s)
{
    bool good = true;
    while (s->n_queue > 0) {
        uint32_t t = s->queue[--s->n_queue];
        s->dirty[t] = false;
        if (good && !section_fits(s, t)) {
            s->failures[t]++;
            good = false;
        }
    }
    return good;
}

/* ---- which is next? ------------------------------------------------------ */

/* a: MS_NONE, or one before b. */
static uint32_t lower_of(const search *s, uint32_t a, uint32_t b)
{
    if (a == MS_NONE || s->lows[b] < s->lows[a])
        return b;
    return s->lows[b] == s->lows[a] && s->keys[b] > s->keys[a] ? b : a;
}

/* A section that failed often and has little room to spare comes first, so that
 * the search fails high in the tree.  Room is counted in 1/1024 of the
 * capacity, so that a few bytes more of it change no order. */
static uint64_t urgency(const search *s, uint32_t t)
{
    if (s->rule == MS_PLACESEARCH_FAILED)
        return s->failures[t];
    uint64_t slack = s->capacity - s->totals[t] - s->least[t];
    uint64_t unit = s->capacity / 1024 + 1;
    return (s->failures[t] << 16) / (slack / unit + 1);
}

static uint32_t most_urgent(const search *s, uint32_t begin, uint32_t end)
{
    uint32_t found = MS_NONE;
    uint64_t most = 0;
    for (uint32_t t = begin; t < end; t++) {
        if (s->n_left[t] == 0)
            continue;
        uint64_t now = urgency(s, t);
        if (found == MS_NONE || now > most) {
            found = t;
            most = now;
        }
    }
    return found;
}

/* Of those that meet item i, the lowest that has room below it. */
static uint32_t find_below(const search *s, uint32_t i)
{
    uint32_t found = MS_NONE;
    for (uint32_t k = s->meets_at[i]; k < s->meets_at[i + 1]; k++) {
        uint32_t j = s->meets[k];
        if (!s->placed[j] && s->lows[j] + s->items[j].bytes <= s->lows[i])
            found = lower_of(s, found, j);
    }
    return found;
}

/* MS_NONE: none is left. */
static uint32_t take(const search *s, uint32_t begin, uint32_t end)
{
    uint32_t found = MS_NONE;
    if (s->rule == MS_PLACESEARCH_LOWEST) { /* none has room below it */
        for (uint32_t i = s->first[begin]; i < s->first[end]; i++)
            if (!s->placed[i])
                found = lower_of(s, found, i);
        return found;
    }
    uint32_t t = most_urgent(s, begin, end);
    if (t == MS_NONE)
        return MS_NONE;
    for (uint32_t k = s->section_at[t]; k < s->section_at[t + 1]; k++)
        if (!s->placed[s->in_section[k]])
            found = lower_of(s, found, s->in_section[k]);
    for (uint32_t below = found; below != MS_NONE;) {
        found = below;
        below = find_below(s, found);
    }
    return found;
}

/* The lowest end on which it could rest; UINT64_MAX: no buffer is left to
 * place. */
static uint64_t lowest_rest(const search *s, uint32_t i)
{
    uint64_t rest = UINT64_MAX;
    for (uint32_t k = s->meets_at[i]; k < s->meets_at[i + 1]; k++) {
        uint32_t j = s->meets[k];
        uint64_t end = s->lows[j] + s->items[j].bytes;
        if (!s->placed[j] && end < rest)
            rest = end;
    }
    return rest;
}

/* ---- the search ---------------------------------------------------------- */

/* What is to come and how low it may lie: all that a failure depends on.  The
 * mixer is that of splitmix64; its results are added, so that the order of the
 * items does not matter.  A collision would skip a branch as failed that was
 * not tried: with 64 bits the search takes that risk.  0 marks an empty slot.
 */
static uint64_t hash(const search *s, uint32_t begin, uint32_t end)
{
    uint64_t sum = 1;
    for (uint32_t i = s->first[begin]; i < s->first[end]; i++) {
        if (s->placed[i])
            continue;
        uint64_t x = s->lows[i] * UINT64_C(0x9e3779b97f4a7c15) + i + 1;
        x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
        x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
        sum += x ^ (x >> 31);
    }
    return sum == 0 ? 1 : sum;
}

static bool push_part(search *s, uint32_t begin, uint32_t end)
{
    uint32_t need = s->n_parts + 2;
    if (need > s->parts_capacity) {
        uint32_t *grown = ms_arena_grow(s->arena, s->parts, &s->parts_capacity,
                                        need, sizeof *s->parts);
        s->failed = s->failed || grown == NULL;
        if (grown == NULL)
            return false;
        s->parts = grown;
    }
    s->parts[s->n_parts++] = begin;
    s->parts[s->n_parts++] = end;
    return true;
}

static bool find_parts(search *s, uint32_t begin, uint32_t end)
{
    uint32_t from = MS_NONE, reach = 0;
    for (uint32_t i = s->first[begin]; i < s->first[end]; i++) {
        if (s->placed[i])
            continue;
        if (from != MS_NONE && s->items[i].lower >= reach) {
            if (!push_part(s, from, reach))
                return false;
            from = MS_NONE;
        }
        from = from == MS_NONE ? s->items[i].lower : from;
        reach = s->items[i].upper > reach ? s->items[i].upper : reach;
    }
    return from == MS_NONE || push_part(s, from, reach);
}

static uint64_t part_failures(const search *s, uint32_t begin, uint32_t end)
{
    uint64_t most = 0;
    for (uint32_t t = begin; t < end; t++)
        most = s->failures[t] > most ? s->failures[t] : most;
    return most;
}

/* Those that failed more often first. */
static void sort_parts(search *s, uint32_t from)
{
    for (uint32_t a = from + 2; a < s->n_parts; a += 2) {
        uint32_t begin = s->parts[a], end = s->parts[a + 1], at = a;
        uint64_t most = part_failures(s, begin, end);
        for (; at > from &&
               part_failures(s, s->parts[at - 2], s->parts[at - 1]) < most;
             at -= 2) {
            s->parts[at] = s->parts[at - 2];
            s->parts[at + 1] = s->parts[at - 1];
        }
        s->parts[at] = begin;
        s->parts[at + 1] = end;
    }
}

static bool solve_parts(search *s, uint32_t begin, uint32_t end)
{
    uint32_t from = s->n_parts;
    bool solved = find_parts(s, begin, end);
    if (solved)
        sort_parts(s, from);
    for (uint32_t a = from; a < s->n_parts && solved; a += 2)
        solved = solve(s, s->parts[a], s->parts[a + 1]);
    s->n_parts = from;
    return solved;
}

static bool may_step(search *s)
{
    const ms_placeexact_limits *limits = s->limits;
    if (s->n_steps >= s->limit)
        s->stopped = true;
    else if (limits->stop != NULL && s->n_steps % ROUND == 0)
        s->stopped = limits->stop(limits->of);
    s->n_steps += !s->stopped;
    return !s->stopped;
}

/* Sections [begin, end), of whose items some are to come and meet no others. */
static bool solve(search *s, uint32_t begin, uint32_t end)
{
    uint32_t start = s->n_trail, i;
    uint64_t state = hash(s, begin, end);
    if (s->vain[state % N_VAIN] == state)
        return false;
    while ((i = take(s, begin, end)) != MS_NONE) {
        if (!may_step(s))
            break;
        uint32_t here = s->n_trail;
        uint64_t rest = lowest_rest(s, i);
        place(s, i);
        if (fits(s) && !s->failed && solve_parts(s, begin, end))
            return true;
        take_back(s, here);
        if (s->stopped || s->failed || rest == UINT64_MAX)
            break;
        lift(s, i, rest);
        if (!fits(s) || s->failed)
            break;
    }
    take_back(s, start);
    if (!s->stopped && !s->failed)
        s->vain[state % N_VAIN] = state;
    return false;
}

/* ---- the start ----------------------------------------------------------- */

/* Counts in at[i + 1], to where the list of i begins. */
static void add_up(uint32_t *at, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        at[i + 1] += at[i];
}

/* at[i] runs to the end of the list of i while it is filled. */
static void move_back(uint32_t *at, uint32_t n)
{
    for (uint32_t i = n; i > 0; i--)
        at[i] = at[i - 1];
    at[0] = 0;
}

static void list_sections(search *s)
{
    for (uint32_t i = 0; i < s->n; i++)
        for (uint32_t t = s->items[i].lower; t < s->items[i].upper; t++)
            s->section_at[t + 1]++;
    add_up(s->section_at, s->n_sections);
    for (uint32_t i = 0; i < s->n; i++)
        for (uint32_t t = s->items[i].lower; t < s->items[i].upper; t++)
            s->in_section[s->section_at[t]++] = i;
    move_back(s->section_at, s->n_sections);
}

/* The first item that begins when item i has ended. */
static uint32_t end_of(const search *s, uint32_t i)
{
    return s->first[s->items[i].upper];
}

static void list_meets(search *s)
{
    for (uint32_t i = 0; i < s->n; i++)
        for (uint32_t j = i + 1; j < end_of(s, i); j++) {
            s->meets_at[i + 1]++;
            s->meets_at[j + 1]++;
        }
    add_up(s->meets_at, s->n);
    for (uint32_t i = 0; i < s->n; i++)
        for (uint32_t j = i + 1; j < end_of(s, i); j++) {
            s->meets[s->meets_at[i]++] = j;
            s->meets[s->meets_at[j]++] = i;
        }
    move_back(s->meets_at, s->n);
}

static void list_first(search *s)
{
    for (uint32_t t = 0, i = 0; t <= s->n_sections; t++) {
        while (i < s->n && s->items[i].lower < t)
            i++;
        s->first[t] = i;
    }
}

static bool take_lists(search *s)
{
    size_t meets = 0, lives = 0, room = (size_t)s->n + 1;
    size_t sections = (size_t)s->n_sections + 1;
    s->first = ms_arena_take(s->arena, sections, sizeof *s->first);
    if (s->first == NULL)
        return false;
    list_first(s);
    for (uint32_t i = 0; i < s->n; i++) {
        lives += s->items[i].upper - s->items[i].lower;
        meets += 2 * (size_t)(end_of(s, i) - i - 1);
    }
    s->meets_at = ms_arena_take(s->arena, room, sizeof *s->meets_at);
    s->meets = ms_arena_take_raw(s->arena, meets + 1, sizeof *s->meets);
    s->section_at = ms_arena_take(s->arena, sections, sizeof *s->section_at);
    s->in_section =
        ms_arena_take_raw(s->arena, lives + 1, sizeof *s->in_section);
    return s->meets_at != NULL && s->meets != NULL && s->section_at != NULL &&
           s->in_section != NULL;
}

static bool take_columns(search *s)
{
    size_t room = (size_t)s->n + 1, sections = (size_t)s->n_sections + 1;
    s->lows = ms_arena_take(s->arena, room, sizeof *s->lows);
    s->keys = ms_arena_take(s->arena, room, sizeof *s->keys);
    s->placed = ms_arena_take(s->arena, room, sizeof *s->placed);
    s->column = ms_arena_take(s->arena, room, 2 * sizeof *s->column);
    s->totals = ms_arena_take(s->arena, sections, sizeof *s->totals);
    s->least = ms_arena_take(s->arena, sections, sizeof *s->least);
    s->n_left = ms_arena_take(s->arena, sections, sizeof *s->n_left);
    s->dirty = ms_arena_take(s->arena, sections, sizeof *s->dirty);
    s->queue = ms_arena_take(s->arena, sections, sizeof *s->queue);
    s->vain = ms_arena_take(s->arena, N_VAIN, sizeof *s->vain);
    return s->lows != NULL && s->keys != NULL && s->placed != NULL &&
           s->column != NULL && s->totals != NULL && s->least != NULL &&
           s->n_left != NULL && s->dirty != NULL && s->queue != NULL &&
           s->vain != NULL;
}

ms_err ms_placesearch_begin(search *s, uint32_t n, uint32_t n_sections,
                            ms_fault *fault)
{
    s->n = n;
    s->n_sections = n_sections;
    if (!take_lists(s) || !take_columns(s))
        return ms_fail_nomem(fault);
    list_sections(s);
    list_meets(s);
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t t = s->items[i].lower; t < s->items[i].upper; t++) {
            s->totals[t] += s->items[i].bytes;
            s->n_left[t]++;
        }
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t t = s->items[i].lower; t < s->items[i].upper; t++)
            if (s->totals[t] > s->items[i].crowd)
                s->items[i].crowd = s->totals[t];
    return MS_OK;
}

/* Twins begin on top of each other, all other buffers at the bottom. */
bool ms_placesearch_run(search *s)
{
    s->stopped = false;
    for (uint32_t i = 0; i < s->n; i++) {
        mark(s, i);
        if (s->items[i].twin != MS_NONE)
            lift(s, s->items[i].twin, s->lows[i] + s->items[i].bytes);
    }
    bool found = fits(s) && !s->failed && solve_parts(s, 0, s->n_sections);
    if (!found)
        take_back(s, 0);
    return found;
}
