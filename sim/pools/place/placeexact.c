/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Static planning, exactly: many searches with limits of steps that slowly
 * grow, so that one is complete in the end.  A search that succeeds mostly does
 * so early, and which one does depends on what it places first; so each search
 * has another taste (measured on the files of minimalloc by memsim-bench,
 * exact_*). */

#include "sim/pools/place/placesearch.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_LIMIT 1000u /* steps */
#define LIMIT_GROWTH 10u  /* a tenth more each cycle of the tastes */

typedef struct taste {
    ms_placesearch_rule rule;
    char key; /* T longest life, C in the most crowded section */
} taste;

static const taste tastes[] = {{MS_PLACESEARCH_LOWEST, 'T'},
                               {MS_PLACESEARCH_FAILED, 'T'},
                               {MS_PLACESEARCH_LOWEST, 'C'},
                               {MS_PLACESEARCH_TIGHT, 'T'}};
#define N_TASTES (sizeof tastes / sizeof *tastes)

/* How far keys are randomized, in thousandths; not at all in the first cycle.
 */
static const uint64_t stirs[] = {0, 50, 300};

/* ---- sections ------------------------------------------------------------ */

/* Times become sections.  A time matters only where a buffer begins after
 * another one ended: all buffers of any other time also live at the next such
 * time. of[rank] is the section at or after the time. */
static uint32_t number_sections(const ms_placement_life *lives, uint32_t n,
                                uint32_t *of, uint32_t n_times)
{
    enum { BEGINS = 1, ENDS = 2 };
    uint32_t n_sections = 0;
    bool begun = false;
    for (uint32_t i = 0; i < n; i++) {
        of[lives[i].lower] |= BEGINS;
        of[lives[i].upper - 1] |= ENDS;
    }
    for (uint32_t t = 0; t < n_times; t++) {
        uint32_t what = of[t];
        begun |= (what & BEGINS) != 0;
        of[t] = n_sections;
        if (begun && (what & ENDS) != 0) {
            n_sections++;
            begun = false;
        }
    }
    of[n_times] = n_sections;
    return n_sections;
}

static int by_section(const void *left, const void *right)
{
    const ms_placesearch_item *a = left, *b = right;
    if (a->lower != b->lower)
        return a->lower < b->lower ? -1 : 1;
    return (a->id > b->id) - (a->id < b->id);
}

static bool same(const ms_placesearch_item *a, const ms_placesearch_item *b)
{
    return a->lower == b->lower && a->upper == b->upper &&
           a->bytes == b->bytes && a->align == b->align;
}

static void find_twins(ms_placesearch_item *items, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        items[i].twin = MS_NONE;
        for (uint32_t j = i + 1; j < n && items[j].lower == items[i].lower; j++)
            if (same(&items[i], &items[j])) {
                items[i].twin = j;
                break;
            }
    }
}

ms_err ms_placeexact_items(ms_placesearch *s,
                           const ms_placement_buffer *buffers, uint32_t n,
                           uint32_t *n_sections, ms_fault *fault)
{
    uint32_t n_times;
    size_t room = (size_t)n + 1;
    ms_placement_life *lives = ms_arena_take(s->arena, room, sizeof *lives);
    uint32_t *of = ms_arena_take(s->arena, 2 * room, sizeof *of);
    s->items = ms_arena_take(s->arena, room, sizeof *s->items);
    if (lives == NULL || of == NULL || s->items == NULL)
        return ms_fail_nomem(fault);
    MS_TRY(ms_placement_rank(buffers, n, s->arena, lives, &n_times, fault));
    *n_sections = number_sections(lives, n, of, n_times);
    for (uint32_t i = 0; i < n; i++)
        s->items[i] = (ms_placesearch_item){.lower = of[lives[i].lower],
                                            .upper = of[lives[i].upper],
                                            .id = i,
                                            .bytes = buffers[i].bytes,
                                            .align = buffers[i].align};
    qsort(s->items, n, sizeof *s->items, by_section);
    find_twins(s->items, n);
    return MS_OK;
}

/* ---- tastes -------------------------------------------------------------- */

/* xorshift64 with a fixed seed: results are the same on every run. */
static uint64_t draw(uint64_t *random)
{
    *random ^= *random << 13;
    *random ^= *random >> 7;
    *random ^= *random << 17;
    return *random;
}

/* The crowd in 65536ths of the capacity, so that both fit into one number. */
static uint64_t key_of(const ms_placesearch *s, uint32_t i, char key)
{
    const ms_placesearch_item *it = &s->items[i];
    uint64_t sections = it->upper - it->lower;
    uint64_t crowd = it->crowd / (s->capacity / 65536 + 1);
    crowd = crowd < 65535 ? crowd : 65535;
    return key == 'T' ? sections << 16 | crowd : crowd << 16 | sections;
}

static void set_keys(ms_placesearch *s, char key, uint64_t stir,
                     uint64_t *random)
{
    for (uint32_t i = 0; i < s->n; i++) {
        uint64_t whole = key_of(s, i, key) * 1000;
        s->keys[i] = whole + whole / 1000 * (draw(random) % (stir + 1));
    }
}

static bool search(ms_placesearch *s, uint64_t most_steps, uint64_t *failures)
{
    uint64_t piece = FIRST_LIMIT, random = UINT64_C(88172645463325252);
    uint32_t n_stirs = sizeof stirs / sizeof *stirs;
    for (uint32_t round = 0; s->n_steps < most_steps; round++) {
        uint32_t at = round % N_TASTES, cycle = (uint32_t)(round / N_TASTES);
        uint64_t left = most_steps - s->n_steps;
        uint32_t stir = cycle == 0 ? 0 : 1 + (cycle - 1) % (n_stirs - 1);
        if (cycle > 0 && at == 0)
            piece += piece / LIMIT_GROWTH;
        s->rule = tastes[at].rule;
        s->failures = failures + at * (size_t)s->n_sections;
        s->limit = s->n_steps + (left < piece ? left : piece);
        set_keys(s, tastes[at].key, stirs[stir], &random);
        if (ms_placesearch_run(s))
            return true;
        if (s->failed || !s->stopped || s->n_steps < s->limit)
            return false;
    }
    return false;
}

ms_err ms_placeexact_search(const ms_placement_buffer *buffers, uint32_t n,
                            uint64_t capacity,
                            const ms_placeexact_limits *limits, ms_arena *arena,
                            uint64_t *offsets, ms_placeexact_result *result,
                            ms_fault *fault)
{
    ms_placesearch s = {.capacity = capacity, .limits = limits, .arena = arena};
    uint32_t n_sections = 0;
    if (n > MS_PLACEEXACT_MOST)
        return ms_fail(fault, MS_EINPUT, NULL, NULL,
                       "the exact search is for at most %u buffers",
                       MS_PLACEEXACT_MOST);
    MS_TRY(ms_placeexact_items(&s, buffers, n, &n_sections, fault));
    MS_TRY(ms_placesearch_begin(&s, n, n_sections, fault));
    size_t n_failures = N_TASTES * (size_t)n_sections;
    uint64_t *failures = ms_arena_take(arena, n_failures + 1, sizeof *failures);
    if (failures == NULL)
        return ms_fail_nomem(fault);
    for (size_t k = 0; k < n_failures; k++)
        failures[k] = 1;
    bool found = search(&s, limits->most_steps, failures);
    if (s.failed)
        return ms_fail_nomem(fault);
    *result = (ms_placeexact_result){found       ? MS_PLACEEXACT_FOUND
                                     : s.stopped ? MS_PLACEEXACT_UNKNOWN
                                                 : MS_PLACEEXACT_NONE,
                                     s.n_steps};
    for (uint32_t i = 0; i < n && found; i++)
        offsets[s.items[i].id] = s.lows[i];
    return MS_OK;
}
