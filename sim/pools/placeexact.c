/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Static planning, exactly: depth first over canonical plans.
 *
 * Any plan can be pushed down until each buffer lies at 0 or on another, and
 * then be built from below: offsets never fall.  So a buffer's offset follows
 * from what lies below it when its turn comes, and the search decides turns
 * only.  Time is cut into sections in which nothing begins or ends; of each
 * the search knows its floor, the highest end so far, and its total, what is
 * still to come.  Where floor and total exceed the capacity, it turns back.
 * Buffers that no longer meet, with gaps of time between them, are searched
 * apart: a failure in one never makes the other be searched again. */

#include "sim/pools/placement.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* Most searches that succeed do so early: many short ones, each a little
 * different, and slowly longer ones, so that the last is a whole one. */
#define FIRST_LIMIT 500u
#define LIMIT_GROWTH 30u
#define N_FAILURES (1u << 18)

typedef struct item {
    uint32_t lower, upper; /* sections */
    uint32_t id;           /* the caller's */
    uint32_t twin;         /* the same buffer again, earlier; MS_NONE */
    uint64_t bytes, align;
    uint64_t crowd; /* the most bytes of a section that it is in */
} item;

/* One way to order the items: where turns are free, it decides. */
typedef struct taste {
    const char *keys; /* C crowd, T sections, S size, A area */
    bool low_first;   /* the lowest first; keys decide between those */
} taste;

/* In a list: how low the item may lie at best. */
typedef struct entry {
    uint64_t lowest;
    uint32_t item;
} entry;

typedef struct search {
    item *items; /* in the order of the taste */
    uint64_t *offsets;
    bool *placed;
    uint64_t *totals, *least; /* by section */
    uint64_t capacity, n_steps, limit;
    ms_arena *arena;
    entry *stack; /* the lists of the nodes */
    uint32_t top, capacity_entries;
    uint32_t *trail; /* items placed */
    uint32_t n_trail;
    uint64_t *failures; /* states that were searched in vain, hashed */
    bool low_first, out_of_steps, failed;
    uint64_t random;
} search;

/* Items stack[at, at + n) are to be placed, by their first section. */
typedef struct node {
    uint32_t at, n;
} node;

/* ---- placing, taking back ------------------------------------------------ */

static bool push(search *s, entry e)
{
    if (s->top == s->capacity_entries) {
        entry *grown = ms_arena_grow(s->arena, s->stack, &s->capacity_entries,
                                     s->top + 1, sizeof *s->stack);
        if (grown == NULL) {
            s->failed = true;
            return false;
        }
        s->stack = grown;
    }
    s->stack[s->top++] = e;
    return true;
}

static void place(search *s, entry turn)
{
    const item *it = &s->items[turn.item];
    for (uint32_t t = it->lower; t < it->upper; t++)
        s->totals[t] -= it->bytes;
    s->offsets[turn.item] = turn.lowest;
    s->placed[turn.item] = true;
    s->trail[s->n_trail++] = turn.item;
}

static void take_back(search *s, uint32_t n_trail)
{
    while (s->n_trail > n_trail) {
        uint32_t i = s->trail[--s->n_trail];
        const item *it = &s->items[i];
        for (uint32_t t = it->lower; t < it->upper; t++)
            s->totals[t] += it->bytes;
        s->placed[i] = false;
    }
}

/* ---- one node ------------------------------------------------------------ */

static uint64_t aligned(uint64_t offset, uint64_t align)
{
    uint64_t over = align > 1 ? offset % align : 0;
    return over > 0 ? offset + align - over : offset;
}

/* The lowest of the items in each section. */
static void find_least(search *s, const node *at)
{
    const entry *list = s->stack + at->at;
    for (uint32_t k = 0, t = 0; k < at->n; k++) {
        const item *it = &s->items[list[k].item];
        for (t = t > it->lower ? t : it->lower; t < it->upper; t++)
            s->least[t] = UINT64_MAX;
    }
    for (uint32_t k = 0; k < at->n; k++) {
        const item *it = &s->items[list[k].item];
        uint64_t low = list[k].lowest;
        for (uint32_t t = it->lower; t < it->upper; t++)
            s->least[t] = low < s->least[t] ? low : s->least[t];
    }
}

/* Nothing in a section can lie lower than the lowest of its items, so neither
 * can an item that passes through it, whatever lies there now. */
static void lift(search *s, const node *at)
{
    entry *list = s->stack + at->at;
    for (bool lifted = true; lifted;) {
        lifted = false;
        find_least(s, at);
        for (uint32_t k = 0; k < at->n; k++) {
            const item *it = &s->items[list[k].item];
            uint64_t low = list[k].lowest;
            for (uint32_t t = it->lower; t < it->upper; t++)
                low = s->least[t] > low ? s->least[t] : low;
            low = aligned(low, it->align);
            lifted |= low > list[k].lowest;
            list[k].lowest = low;
        }
    }
}

/* Does every section still fit?  *most: no turn may be above that. */
static bool fits(search *s, const node *at, uint64_t *most)
{
    const entry *list = s->stack + at->at;
    *most = UINT64_MAX;
    for (uint32_t k = 0, t = 0; k < at->n; k++) {
        const item *it = &s->items[list[k].item];
        for (t = t > it->lower ? t : it->lower; t < it->upper; t++) {
            if (s->totals[t] > s->capacity ||
                s->least[t] > s->capacity - s->totals[t])
                return false;
            if (s->capacity - s->totals[t] < *most)
                *most = s->capacity - s->totals[t];
        }
    }
    return true;
}

static bool before(const search *s, entry a, entry b)
{
    return s->low_first && a.lowest != b.lowest ? a.lowest < b.lowest
                                                : a.item < b.item;
}

/* Pushes those whose turn it may be, in the order to try them in. */
static uint32_t find_turns(search *s, const node *at, uint64_t most)
{
    uint32_t n = 0, first = s->top;
    uint64_t under = UINT64_MAX; /* above that, one could still lie below */
    for (uint32_t k = 0; k < at->n; k++) {
        entry e = s->stack[at->at + k];
        if (e.lowest + s->items[e.item].bytes < under)
            under = e.lowest + s->items[e.item].bytes;
    }
    for (uint32_t k = 0; k < at->n; k++) {
        entry e = s->stack[at->at + k];
        uint32_t twin = s->items[e.item].twin;
        if (e.lowest >= under || e.lowest > most ||
            (twin != MS_NONE && !s->placed[twin]))
            continue;
        if (!push(s, e))
            return 0;
        uint32_t j = first + n++;
        for (; j > first && before(s, e, s->stack[j - 1]); j--)
            s->stack[j] = s->stack[j - 1];
        s->stack[j] = e;
    }
    return n;
}

/* What is to come and how low each may lie: all that a failure depends on. */
static uint64_t hash(const search *s, const node *at)
{
    uint64_t sum = 1;
    for (uint32_t k = 0; k < at->n; k++) {
        entry e = s->stack[at->at + k];
        uint64_t x = e.lowest * UINT64_C(0x9e3779b97f4a7c15) + e.item + 1;
        x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
        x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
        sum += x ^ (x >> 31);
    }
    return sum;
}

static bool solve(search *s, node at);

/* Pushes the list without the turn that was placed, what meets it above it; at
 * its own offset only items after it, or one plan would come up twice. */
static bool push_rest(search *s, const node *at, entry turn)
{
    const item *it = &s->items[turn.item];
    for (uint32_t k = 0; k < at->n; k++) {
        entry e = s->stack[at->at + k];
        const item *of = &s->items[e.item];
        if (e.item == turn.item)
            continue;
        uint64_t low = turn.lowest + (e.item < turn.item);
        if (of->lower < it->upper && it->lower < of->upper)
            low = turn.lowest + it->bytes;
        if (low > e.lowest)
            e.lowest = aligned(low, of->align);
        if (!push(s, e))
            return false;
    }
    return true;
}

/* From begin on, in the parts that do not meet. */
static bool solve_parts(search *s, uint32_t begin)
{
    uint32_t stop = s->top, end = 0;
    node part = {.at = begin};
    for (uint32_t k = begin; k < stop; k++) {
        const item *it = &s->items[s->stack[k].item];
        part.n = k - part.at;
        if (part.n > 0 && it->lower >= end) {
            if (!solve(s, part))
                return false;
            part.at = k;
        }
        end = it->upper > end ? it->upper : end;
    }
    part.n = stop - part.at;
    return part.n == 0 || solve(s, part);
}

static bool solve(search *s, node at)
{
    uint64_t most;
    uint32_t first = s->top, n_trail = s->n_trail;
    lift(s, &at);
    if (!fits(s, &at, &most))
        return false;
    uint64_t state = hash(s, &at);
    uint64_t *failure = &s->failures[state % N_FAILURES];
    if (*failure == state)
        return false;
    uint32_t n = find_turns(s, &at, most), turns_end = s->top;
    for (uint32_t k = 0; k < n && !s->failed; k++) {
        entry turn = s->stack[first + k];
        if (s->n_steps == s->limit)
            s->out_of_steps = true;
        if (s->out_of_steps)
            break;
        s->n_steps++;
        place(s, turn);
        bool done = push_rest(s, &at, turn) && solve_parts(s, turns_end);
        s->top = turns_end;
        if (done) {
            s->top = first;
            return true;
        }
        take_back(s, n_trail);
    }
    s->top = first;
    if (!s->out_of_steps && !s->failed)
        *failure = state;
    return false;
}

/* ---- the start ----------------------------------------------------------- */

static const taste tastes[] = {{"CTS", true},  {"CTS", false}, {"TSC", true},
                               {"TSC", false}, {"STC", true},  {"STC", false},
                               {"AST", true},  {"AST", false}};
#define N_TASTES (sizeof tastes / sizeof *tastes)

typedef struct ticket {
    uint64_t keys[3];
    item of;
} ticket;

static int by_keys(const void *left, const void *right)
{
    const ticket *a = left, *b = right;
    for (uint32_t i = 0; i < 3; i++)
        if (a->keys[i] != b->keys[i])
            return a->keys[i] > b->keys[i] ? -1 : 1;
    return (a->of.id > b->of.id) - (a->of.id < b->of.id);
}

static uint64_t key_of(const item *it, char key)
{
    uint64_t span = it->upper - it->lower;
    return key == 'C'   ? it->crowd
           : key == 'T' ? span
           : key == 'S' ? it->bytes
                        : it->bytes / 16 * span;
}

/* Up to a third more or less, from the same numbers every time. */
static uint64_t stir(search *s, uint64_t key)
{
    s->random ^= s->random << 13;
    s->random ^= s->random >> 7;
    s->random ^= s->random << 17;
    return key / 64 * (s->random % 64) + key * 2;
}

static void sort_items(search *s, ticket *tickets, uint32_t n, const taste *of,
                       bool stirred)
{
    s->low_first = of->low_first;
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t k = 0; k < 3; k++) {
            uint64_t key = key_of(&tickets[i].of, of->keys[k]) << 6;
            tickets[i].keys[k] = stirred ? stir(s, key) : key;
        }
    qsort(tickets, n, sizeof *tickets, by_keys);
    for (uint32_t i = 0; i < n; i++) {
        item *it = &s->items[i];
        *it = tickets[i].of;
        it->twin = MS_NONE;
        for (uint32_t j = i; j-- > 0 && it->twin == MS_NONE;)
            if (s->items[j].lower == it->lower &&
                s->items[j].upper == it->upper &&
                s->items[j].bytes == it->bytes &&
                s->items[j].align == it->align)
                it->twin = j;
    }
}

static bool make_room(search *s, uint32_t n, uint32_t n_times)
{
    size_t room = (size_t)n + 1;
    s->items = ms_arena_take(s->arena, room, sizeof *s->items);
    s->offsets = ms_arena_take(s->arena, room, sizeof *s->offsets);
    s->placed = ms_arena_take(s->arena, room, sizeof *s->placed);
    s->trail = ms_arena_take(s->arena, room, sizeof *s->trail);
    s->totals = ms_arena_take(s->arena, (size_t)n_times + 1, sizeof(uint64_t));
    s->least = ms_arena_take(s->arena, (size_t)n_times + 1, sizeof(uint64_t));
    s->failures = ms_arena_take(s->arena, N_FAILURES, sizeof *s->failures);
    return s->items != NULL && s->offsets != NULL && s->placed != NULL &&
           s->trail != NULL && s->totals != NULL && s->least != NULL &&
           s->failures != NULL;
}

static void count_sections(search *s, ticket *tickets, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t t = tickets[i].of.lower; t < tickets[i].of.upper; t++)
            s->totals[t] += tickets[i].of.bytes;
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t t = tickets[i].of.lower; t < tickets[i].of.upper; t++)
            if (s->totals[t] > tickets[i].of.crowd)
                tickets[i].of.crowd = s->totals[t];
}

static int by_start(const void *left, const void *right)
{
    const ticket *a = left, *b = right;
    return (a->keys[0] > b->keys[0]) - (a->keys[0] < b->keys[0]);
}

/* One whole search, with one taste. */
static bool try(search *s, ticket *tickets, uint32_t n)
{
    s->top = 0;
    s->n_trail = 0;
    s->out_of_steps = false;
    memset(s->failures, 0, N_FAILURES * sizeof *s->failures);
    for (uint32_t i = 0; i < n; i++)
        tickets[i].keys[0] = ((uint64_t)s->items[i].lower << 32) | i;
    qsort(tickets, n, sizeof *tickets, by_start);
    for (uint32_t i = 0; i < n; i++)
        if (!push(s, (entry){0, (uint32_t)tickets[i].keys[0]}))
            return false;
    return solve_parts(s, 0);
}

ms_err ms_placeexact_search(const ms_placement_buffer *buffers, uint32_t n,
                            uint64_t capacity, uint64_t most_steps,
                            ms_arena *arena, uint64_t *offsets,
                            ms_placeexact_result *result, ms_fault *fault)
{
    if (n > MS_PLACEEXACT_MOST)
        return ms_fail(fault, MS_EINPUT, NULL, NULL,
                       "the exact search is for at most %u buffers",
                       MS_PLACEEXACT_MOST);
    search s = {.arena = arena, .capacity = capacity, .random = 1};
    uint32_t n_times;
    ticket *tickets = ms_arena_take(arena, (size_t)n + 1, sizeof *tickets);
    ms_placement_life *lives =
        ms_arena_take(arena, (size_t)n + 1, sizeof *lives);
    if (tickets == NULL || lives == NULL)
        return ms_fail_nomem(fault);
    MS_TRY(ms_placement_rank(buffers, n, arena, lives, &n_times, fault));
    if (!make_room(&s, n, n_times))
        return ms_fail_nomem(fault);
    for (uint32_t i = 0; i < n; i++)
        tickets[i].of = (item){.lower = lives[i].lower,
                               .upper = lives[i].upper,
                               .id = i,
                               .bytes = buffers[i].bytes,
                               .align = buffers[i].align};
    count_sections(&s, tickets, n);
    *result = (ms_placeexact_result){MS_PLACEEXACT_UNKNOWN, 0};
    uint64_t piece = FIRST_LIMIT;
    for (uint32_t round = 0; s.n_steps < most_steps; round++) {
        sort_items(&s, tickets, n, &tastes[round % N_TASTES],
                   round >= N_TASTES);
        if (round > 0 && round % N_TASTES == 0)
            piece += piece / LIMIT_GROWTH + 1;
        s.limit =
            most_steps - s.n_steps < piece ? most_steps : s.n_steps + piece;
        bool found = try(&s, tickets, n);
        if (s.failed)
            return ms_fail_nomem(fault);
        result->n_steps = s.n_steps;
        if (found) {
            for (uint32_t i = 0; i < n; i++)
                offsets[s.items[i].id] = s.offsets[i];
            result->answer = MS_PLACEEXACT_FOUND;
            return MS_OK;
        }
        take_back(&s, 0);
        if (!s.out_of_steps) {
            result->answer = MS_PLACEEXACT_NONE;
            return MS_OK;
        }
    }
    return MS_OK;
}
