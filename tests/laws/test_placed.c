/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The greedy plans of an arena, held to an oracle that looks at every address
 * that could serve: 0 and the aligned end of each buffer that it meets. */
#include "sim/pools/place/placement.h"
#include "tests/laws/laws.h"
#include "tests/tests.h"

#include <string.h>

#define N_TRIALS 400u
#define MOST 40u

typedef struct naive {
    const ms_placement_buffer *buffers;
    uint64_t offsets[MOST], height;
    bool placed[MOST];
    uint32_t n;
} naive;

static bool meet(const ms_placement_buffer *a, const ms_placement_buffer *b)
{
    return a->lower < b->upper && b->lower < a->upper;
}

/* The key as the table's help words it: smaller goes first. */
static double key(const ms_placement_buffer *b, char which)
{
    double life = (double)(b->upper - b->lower), bytes = (double)b->bytes;
    return which == 'S'   ? -bytes
           : which == 'T' ? -life
           : which == 'A' ? -bytes * life
                          : (double)b->lower;
}

static uint32_t next_of(const naive *p, const char *keys)
{
    uint32_t best = MS_NONE;
    for (uint32_t i = 0; i < p->n; i++) {
        int order = 0;
        for (const char *k = keys; best != MS_NONE && *k && order == 0; k++) {
            double a = key(&p->buffers[i], *k);
            double b = key(&p->buffers[best], *k);
            order = (a > b) - (a < b);
        }
        if (!p->placed[i] && (best == MS_NONE || order < 0))
            best = i;
    }
    return best;
}

/* The bytes from `at` to the next buffer that `id` meets; 0: it has no room. */
static uint64_t room_at(const naive *p, uint32_t id, uint64_t at)
{
    uint64_t next = UINT64_MAX;
    for (uint32_t i = 0; i < p->n; i++) {
        if (!p->placed[i] || !meet(&p->buffers[i], &p->buffers[id]))
            continue;
        if (p->offsets[i] + p->buffers[i].bytes > at &&
            p->offsets[i] < at + p->buffers[id].bytes)
            return 0;
        if (p->offsets[i] >= at && p->offsets[i] < next)
            next = p->offsets[i];
    }
    return next - at;
}

/* How good an address is, less is better; the space above all comes last. */
static uint64_t badness(const naive *p, uint32_t id, uint64_t at,
                        ms_placement_fit fit)
{
    uint64_t room = room_at(p, id, at), end = at + p->buffers[id].bytes;
    if (room == 0)
        return UINT64_MAX;
    bool above = room == UINT64_MAX - at;
    if (above && fit == MS_PLACEMENT_TOP && end <= p->height)
        return p->height - at;
    if (above)
        return UINT64_MAX - 1;
    return fit == MS_PLACEMENT_FIRST ? at : room;
}

static void place(naive *p, uint32_t id, ms_placement_fit fit)
{
    const ms_placement_buffer *b = &p->buffers[id];
    uint64_t best = 0, least = badness(p, id, 0, fit);
    for (uint32_t i = 0; i < p->n; i++) {
        if (!p->placed[i] || !meet(&p->buffers[i], b))
            continue;
        uint64_t at = p->offsets[i] + p->buffers[i].bytes, bad;
        at = (at + b->align - 1) / b->align * b->align;
        bad = badness(p, id, at, fit);
        if (bad < least || (bad == least && at < best)) {
            best = at;
            least = bad;
        }
    }
    p->placed[id] = true;
    p->offsets[id] = best;
    if (best + b->bytes > p->height)
        p->height = best + b->bytes;
}

static void draw(laws_random *random, ms_placement_buffer *buffers, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        uint64_t lower = laws_below(random, 12);
        buffers[i] = (ms_placement_buffer){
            lower, lower + 1 + laws_below(random, 9),
            1 + laws_below(random, laws_chance(random, 30) ? 1000 : 8),
            laws_chance(random, 20) ? 1u << laws_below(random, 5) : 1};
    }
}

START_TEST(plans_are_the_oracles)
{
    for (laws_seed = 1; laws_seed <= N_TRIALS; laws_seed++) {
        laws_random random = {laws_seed};
        ms_placement_buffer buffers[MOST];
        uint32_t n = 1 + laws_below(&random, MOST);
        draw(&random, buffers, n);
        for (uint32_t rule = 0; rule < MS_PLACEMENT_N_RULES; rule++) {
            const ms_placement_row *row = &ms_placement_rows[rule];
            naive p = {.buffers = buffers, .n = n};
            uint64_t offsets[MOST], height;
            ms_fault fault = {0};
            for (uint32_t i = 0; i < n; i++)
                place(&p, next_of(&p, row->keys), row->fit);
            ck_assert_int_eq(ms_placement_greedy(buffers, n,
                                                 (ms_placement_rule)rule,
                                                 offsets, &height, &fault),
                             MS_OK);
            ck_assert_msg(
                height == p.height &&
                    memcmp(offsets, p.offsets, n * sizeof *offsets) == 0,
                "seed %llu, %s: height %llu, oracle %llu",
                (unsigned long long)laws_seed, row->name,
                (unsigned long long)height, (unsigned long long)p.height);
        }
    }
}
END_TEST

Suite *suite_placed(void)
{
    Suite *suite = suite_create("placed");
    TCase *all = tcase_create("all");
    tcase_add_test(all, plans_are_the_oracles);
    suite_add_tcase(suite, all);
    return suite;
}
