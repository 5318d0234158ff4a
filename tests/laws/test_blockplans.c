/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Plans over the cut points of a DAG against the least time of all orders. */
#include "policies/solve/blocks/blockplan.h"
#include "tests/laws/laws.h"
#include "tests/tests.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define GRAPHS 300u
#define MOST_NODES 18u
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

static uint64_t all_ns(const drawn *d)
{
    uint64_t ns = 0;
    for (uint32_t v = 0; v < d->n; v++)
        ns += d->cost_ns[v];
    return ns;
}

typedef struct counts {
    uint32_t tried, equal, above, none;
    uint64_t ns, least_ns;
} counts;

static void check_budget(const ms_nodedag *dag, uint64_t budget,
                         const ms_dagblocks *blocks,
                         const ms_blockmenus *menus, counts *n)
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
        return;
    }
    ck_assert_int_eq(best, MS_OK);
    ck_assert_int_eq(err, MS_OK);
    ck_assert_int_eq(
        ms_dagcost_find(dag, &plan.plan, &arena, &time, &peak, &fault), MS_OK);
    ck_assert_msg(time == plan.time_ns && peak <= budget &&
                      time >= pebble.time_ns,
                  "seed %" PRIu64 ", budget %" PRIu64 ": %" PRIu64 " ns (%" PRIu64
                  " told, %" PRIu64 " least) in %" PRIu64 " bytes",
                  laws_seed, budget, time, plan.time_ns, pebble.time_ns, peak);
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
        for (uint64_t budget = 1; budget <= all + 1; budget++)
            check_budget(&dag, budget, &blocks, &menus, &n);
        ck_assert_uint_gt(n.tried, 0);
        (void)all_ns;
        ms_arena_reset(&arena);
    }
    fprintf(stderr, "cut %u tried %u equal %u none %u ns %lu least %lu\n", cut, n.tried, n.equal, n.none, n.ns, n.least_ns);
    ms_arena_free(&arena);
}
END_TEST

Suite *suite_blockplans(void)
{
    Suite *suite = suite_create("blockplans");
    TCase *tcase = tcase_create("blockplans");
    tcase_set_timeout(tcase, 60);
    tcase_add_test(tcase, no_better_than_all_orders_and_rarely_worse);
    suite_add_tcase(suite, tcase);
    return suite;
}
