/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Plans over the cut points of a DAG against the least time of all orders. */
#include "policies/solve/blocks/blockplan.h"
#include "policies/solve/chain.h"
#include "tests/laws/laws.h"
#include "tests/tests.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define GRAPHS 200u
#define MOST_NODES 16u
#define MOST_DEPS 256u

static ms_arena arena;

typedef struct drawn {
    uint32_t n, n_dep, dep_at[MOST_NODES + 1], dep[MOST_DEPS];
    uint64_t cost_ns[MOST_NODES], bytes[MOST_NODES];
    uint8_t is_backward[MOST_NODES];
} drawn;

static uint32_t begin(laws_random *random, drawn *d, bool backward)
{
    uint32_t v = d->n++;
    d->cost_ns[v] = laws_below(random, 9);
    d->bytes[v] = 1 + laws_below(random, 5);
    d->is_backward[v] = backward;
    d->dep_at[v + 1] = d->n_dep;
    return v;
}

static void read_node(drawn *d, uint32_t v, uint32_t dep)
{
    d->dep[d->n_dep++] = dep;
    d->dep_at[v + 1] = d->n_dep;
}

/* Forward with skips of up to `span` nodes; a gradient of each node of forward
 * reads those of its readers, itself or what it read, in the reverse order. */
static void draw(laws_random *random, drawn *d)
{
    uint32_t n = 2 + laws_below(random, MOST_NODES / 2 - 1);
    uint32_t span = 1 + laws_below(random, 4);
    memset(d, 0, sizeof *d);
    for (uint32_t v = 0; v < n; v++) {
        begin(random, d, false);
        if (v > 0)
            read_node(d, v, v - 1);
        for (uint32_t u = v > span ? v - span : 0; u + 1 < v; u++)
            if (laws_chance(random, 30))
                read_node(d, v, u);
    }
    if (laws_chance(random, 10))
        return;
    for (uint32_t v = n; v-- > 0;) {
        uint32_t g = begin(random, d, true);
        if (v == n - 1)
            read_node(d, g, v);
        for (uint32_t r = v + 1; r < n; r++)
            for (uint32_t i = d->dep_at[r]; i < d->dep_at[r + 1]; i++)
                if (d->dep[i] == v)
                    read_node(d, g, 2 * n - 1 - r);
        if (v < n - 1 && laws_chance(random, 60))
            read_node(d, g, v);
        if (v > 0 && laws_chance(random, 50))
            read_node(d, g, v - 1);
    }
}

static ms_nodedag dag_of(const drawn *d)
{
    return (ms_nodedag){d->n,      d->cost_ns, d->bytes,
                        d->dep_at, d->dep,     d->is_backward};
}

typedef struct counts {
    uint32_t tried, equal, none;
    uint64_t ns, least_ns;
    /* Of the DAG at hand. */
    uint64_t before_ns; /* in the next smaller budget; 0: there was no plan */
    uint64_t named;     /* by the last refusal */
} counts;

/* A refusal names one budget, the same in all that are less. */
static void check_refusal(const ms_fault *fault, uint64_t budget, counts *n)
{
    const char *at = strstr(fault->hint, "such plans is ");
    ck_assert_msg(at != NULL, "seed %" PRIu64 ": %s", laws_seed, fault->hint);
    uint64_t named = strtoull(at + strlen("such plans is "), NULL, 10);
    ck_assert_uint_gt(named, budget);
    ck_assert(n->named == 0 || n->named == named);
    ck_assert_uint_eq(n->before_ns, 0); /* more never hurts */
    n->named = named;
}

/* One block is what the search over all orders has; in more room no plan takes
 * longer; in room for all nothing runs again. */
static void check_time(const ms_nodedag *dag, const ms_dagblocks *blocks,
                       uint64_t budget, uint64_t least_ns, uint64_t ns,
                       counts *n)
{
    uint64_t once_ns = 0, bytes = 0;
    for (uint32_t v = 0; v < dag->n; v++) {
        once_ns += dag->cost_ns[v];
        bytes += dag->bytes[v];
    }
    if (blocks->n == 1)
        ck_assert_uint_eq(ns, least_ns);
    ck_assert(n->before_ns == 0 || ns <= n->before_ns);
    if (n->before_ns == 0 && n->named > 0)
        ck_assert_uint_eq(budget, n->named);
    ck_assert_uint_ge(ns, once_ns);
    if (budget >= bytes)
        ck_assert_uint_eq(ns, once_ns);
    n->before_ns = ns;
}

static void check_budget(const ms_nodedag *dag, uint64_t budget,
                         const ms_dagblocks *blocks, const ms_blockmenus *menus,
                         counts *n)
{
    ms_fault fault = {0};
    ms_pebble pebble;
    ms_blockplan plan;
    uint64_t time, peak;
    ms_err best = ms_pebble_find(dag, budget, &arena, &pebble, &fault);
    fault = (ms_fault){0};
    ms_err err =
        ms_blockplan_find(dag, blocks, menus, budget, &arena, &plan, &fault);
    if (err == MS_EINFEASIBLE) {
        n->none += best == MS_OK;
        ck_assert(blocks->n > 1 || best != MS_OK);
        check_refusal(&fault, budget, n);
        return;
    }
    ck_assert_int_eq(best, MS_OK);
    ck_assert_int_eq(err, MS_OK);
    ck_assert_int_eq(
        ms_dagcost_find(dag, &plan.plan, &arena, &time, &peak, &fault), MS_OK);
    ck_assert_msg(
        time == plan.time_ns && peak <= budget && time >= pebble.time_ns,
        "seed %" PRIu64 ", budget %" PRIu64 ": %" PRIu64 " ns (%" PRIu64
        " told, %" PRIu64 " least) in %" PRIu64 " bytes",
        laws_seed, budget, time, plan.time_ns, pebble.time_ns, peak);
    check_time(dag, blocks, budget, pebble.time_ns, time, n);
    n->tried++;
    n->equal += time == pebble.time_ns;
    n->ns += time;
    n->least_ns += pebble.time_ns;
}

START_TEST(no_better_than_all_orders_and_rarely_worse)
{
    counts n = {0};
    uint32_t cut = 0;
    for (laws_seed = 1; laws_seed <= GRAPHS; laws_seed++) {
        laws_random random = {laws_seed};
        ms_fault fault = {0};
        ms_dagblocks blocks;
        ms_blockmenus menus;
        drawn d;
        draw(&random, &d);
        const ms_nodedag dag = dag_of(&d);
        uint64_t all = ms_dagcost_all(&dag, &arena);
        ck_assert_int_eq(ms_dagblocks_find(&dag, &arena, &blocks, &fault),
                         MS_OK);
        ck_assert_int_eq(
            ms_blockmenu_find(&dag, &blocks, &arena, &menus, &fault), MS_OK);
        ck_assert_uint_eq(menus.unsolved, MS_NONE);
        cut += blocks.n > 1;
        n.before_ns = n.named = 0;
        for (uint64_t budget = 1; budget <= all + 1; budget++)
            check_budget(&dag, budget, &blocks, &menus, &n);
        if (n.before_ns == 0)
            check_budget(&dag, n.named, &blocks, &menus, &n);
        check_budget(&dag, UINT32_MAX, &blocks, &menus, &n);
        ck_assert_uint_gt(n.tried, 0);
        ms_arena_reset(&arena);
    }
    ck_assert_uint_gt(cut, GRAPHS / 2);
    ck_assert_uint_gt(2 * n.equal, n.tried);
    ck_assert_uint_lt(6 * n.none, n.tried);
    ck_assert_uint_lt(n.ns, n.least_ns + n.least_ns / 16);
    ms_arena_free(&arena);
}
END_TEST

/* ---- a chain of equal layers --------------------------------------------- */

#define LONGEST 400u
static uint32_t dep_at[2 * LONGEST + 2], dep[4 * LONGEST + 2];
static uint64_t ones[2 * LONGEST + 2];
static uint8_t is_backward[2 * LONGEST + 2];

/* Checkmate's: layers, the loss, and a gradient of each layer that reads the
 * one behind it, and the layer. */
static ms_nodedag draw_chain(uint32_t layers)
{
    uint32_t n = 2 * layers + 1, n_dep = 0;
    for (uint32_t v = 0; v < n; v++) {
        ones[v] = 1;
        is_backward[v] = v > layers;
        if (v > 0)
            dep[n_dep++] = v - 1;
        if (v > layers)
            dep[n_dep++] = n - 1 - v;
        dep_at[v + 1] = n_dep;
    }
    return (ms_nodedag){n, ones, ones, dep_at, dep, is_backward};
}

/* The optimum is a sweep of Revolve (binomial.c) with two bytes fewer, and each
 * gradient and the loss once. */
START_TEST(equal_layers_as_revolve_has_them)
{
    static const uint32_t layers[] = {10, 40, 100, LONGEST};
    for (uint32_t i = 0; i < sizeof layers / sizeof *layers; i++)
        for (uint32_t budget = 3; budget <= 15; budget += 4) {
            const ms_nodedag dag = draw_chain(layers[i]);
            uint64_t again = ms_binomial_advances(layers[i] + 1, budget - 2);
            ms_fault fault = {0};
            ms_dagblocks blocks;
            ms_blockmenus menus;
            ms_blockplan plan;
            ms_dagblocks_find(&dag, &arena, &blocks, &fault);
            ms_blockmenu_find(&dag, &blocks, &arena, &menus, &fault);
            ck_assert_int_eq(ms_blockplan_find(&dag, &blocks, &menus, budget,
                                               &arena, &plan, &fault),
                             MS_OK);
            if (budget < layers[i] + 2)
                ck_assert_uint_eq(plan.time_ns, layers[i] + 1 + again);
            else
                ck_assert_uint_eq(plan.time_ns, 2 * layers[i] + 1);
        }
    ms_arena_free(&arena);
}
END_TEST

Suite *suite_blockplans(void)
{
    Suite *suite = suite_create("blockplans");
    TCase *tcase = tcase_create("blockplans");
    tcase_set_timeout(tcase, 60);
    tcase_add_test(tcase, no_better_than_all_orders_and_rarely_worse);
    tcase_add_test(tcase, equal_layers_as_revolve_has_them);
    suite_add_tcase(suite, tcase);
    return suite;
}
