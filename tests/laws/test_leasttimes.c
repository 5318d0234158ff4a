/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Least times in a budget against searches that leave nothing out: of chains
 * the plain recurrence, of DAGs every order of making and dropping. */
#include "policies/solve/chain.h"
#include "policies/solve/nodedag.h"
#include "tests/laws/laws.h"
#include "tests/tests.h"

#include <inttypes.h>
#include <string.h>

#define GRAPHS 200u
#define LONG_CHAINS 10u
#define NONE UINT64_MAX

static ms_arena arena;

/* ---- chains -------------------------------------------------------------- */

#define MOST_STAGES 50u
#define MOST_UNITS 180u

static ms_chain_stage stages[MOST_STAGES + 1];
static uint64_t opt[MOST_STAGES + 1][MOST_STAGES + 1][MOST_UNITS];

static uint64_t more(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static uint64_t left(uint32_t k, uint32_t t)
{
    uint64_t bytes = 0;
    for (uint32_t l = k; l <= t; l++)
        bytes += stages[l].left_bytes;
    return bytes;
}

static uint64_t sum(uint64_t a, uint64_t b)
{
    return a == NONE || b == NONE ? NONE : a + b;
}

static uint64_t replay_ns; /* of the chain */

static uint64_t find_opt(uint32_t s, uint32_t t, uint64_t m)
{
    const ms_chain_stage *at = &stages[s];
    uint64_t best = NONE, again = 0, none = 0;
    uint64_t saved =
        more(stages[t].output_bytes + at->saved_bytes + at->forward_extra_bytes,
             at->output_bytes + at->saved_bytes + at->backward_extra_bytes +
                 left(s + 1, t));
    for (uint32_t l = s; l < t; l++)
        none = more(none, (l == s ? 0 : stages[l - 1].output_bytes) +
                              stages[l].output_bytes +
                              stages[l].forward_extra_bytes);
    none += stages[t].output_bytes;
    if (m >= saved)
        best = at->forward_ns + at->backward_ns;
    if (s == t)
        return best;
    if (best != NONE)
        best = m >= at->saved_bytes
                   ? sum(best, opt[s + 1][t][m - at->saved_bytes])
                   : NONE;
    for (uint32_t k = s + 1; k <= t && m >= none; k++) {
        uint64_t bytes = stages[k - 1].output_bytes, gone = left(k, t);
        again += stages[k - 1].forward_ns;
        if (m < more(bytes, gone))
            continue;
        uint64_t of = sum(again - stages[k - 1].tail_ns + replay_ns,
                          sum(opt[k][t][m - bytes], opt[s][k - 1][m - gone]));
        best = of < best ? of : best;
    }
    return best;
}

static void draw_chain(laws_random *random, uint32_t most, uint32_t most_kinds,
                       ms_chain *chain)
{
    uint32_t kinds = 1 + laws_below(random, most_kinds);
    chain->n = 1 + laws_below(random, most);
    chain->input_bytes = laws_below(random, 4);
    chain->stages = stages;
    chain->replay_ns = replay_ns =
        laws_chance(random, 30) ? laws_below(random, 5) : 0;
    for (uint32_t l = 1; l <= chain->n; l++) {
        if (l > kinds) { /* equal stages share rows */
            stages[l] = stages[l - kinds];
            continue;
        }
        uint64_t output = 1 + laws_below(random, 4);
        stages[l] = (ms_chain_stage){
            .forward_ns = laws_below(random, 12),
            .backward_ns = laws_below(random, 12),
            .output_bytes = output,
            .saved_bytes = output + laws_below(random, 6),
            .forward_extra_bytes = laws_below(random, 4),
            .backward_extra_bytes = 1 + laws_below(random, 8),
            .left_bytes = laws_chance(random, 30) ? laws_below(random, 3) : 0};
        if (laws_chance(random, 50))
            stages[l].tail_ns =
                laws_below(random, (uint32_t)stages[l].forward_ns + 1);
    }
}

static void check_chain(const ms_chain *chain, uint64_t units)
{
    uint32_t n = chain->n;
    for (uint32_t s = n; s > 0; s--)
        for (uint32_t t = s; t <= n; t++)
            for (uint64_t m = 0; m < units; m++)
                opt[s][t][m] = find_opt(s, t, m);
    for (uint64_t m = 0; m < units; m++) {
        ms_fault fault = {0};
        ms_optimum optimum;
        ms_err err = ms_optimum_find(chain, m + chain->input_bytes, 0, &arena,
                                     &optimum, &fault);
        ck_assert_int_eq(err, opt[1][n][m] == NONE ? MS_EINFEASIBLE : MS_OK);
        if (err == MS_OK)
            ck_assert_msg(optimum.time_ns == opt[1][n][m],
                          "seed %" PRIu64 ", %" PRIu64 " units: %" PRIu64
                          " for %" PRIu64,
                          laws_seed, m, optimum.time_ns, opt[1][n][m]);
        ms_arena_reset(&arena);
    }
}

START_TEST(chains_as_the_recurrence_has_them)
{
    for (laws_seed = 1; laws_seed <= GRAPHS; laws_seed++) {
        laws_random random = {laws_seed};
        ms_chain chain = {0};
        draw_chain(&random, 9, 4, &chain);
        check_chain(&chain, 90);
    }
    ms_arena_free(&arena);
}
END_TEST

/* Rows are filled in tiles (policies/solve/chaintable.h). */
START_TEST(chains_of_several_tiles)
{
    for (laws_seed = 1; laws_seed <= LONG_CHAINS; laws_seed++) {
        laws_random random = {laws_seed};
        ms_chain chain = {0};
        draw_chain(&random, MOST_STAGES, MOST_STAGES, &chain);
        check_chain(&chain, MOST_UNITS);
    }
    ms_arena_free(&arena);
}
END_TEST

/* ---- DAGs ---------------------------------------------------------------- */

#define MOST_NODES 7u
#define SETS (1u << MOST_NODES)

typedef struct drawn {
    uint32_t n, reads[MOST_NODES], ends, dep_at[MOST_NODES + 1];
    uint32_t dep[MOST_NODES * MOST_NODES];
    uint64_t cost_ns[MOST_NODES], bytes[MOST_NODES];
} drawn;

static void draw_dag(laws_random *random, drawn *d)
{
    uint32_t n_dep = 0, read = 0;
    memset(d, 0, sizeof *d);
    d->n = 1 + laws_below(random, MOST_NODES);
    for (uint32_t v = 0; v < d->n; v++) {
        d->cost_ns[v] = laws_below(random, 9);
        d->bytes[v] = 1 + laws_below(random, 5);
        for (uint32_t u = 0; u < v; u++)
            if (laws_chance(random, 40)) {
                d->dep[n_dep++] = u;
                d->reads[v] |= 1u << u;
            }
        d->dep_at[v + 1] = n_dep;
        read |= d->reads[v];
    }
    d->ends = ((1u << d->n) - 1) & ~read;
}

/* Least time by what is here and which of the ends have been made. */
static uint64_t least[SETS][SETS];

static bool relax(uint32_t here, uint32_t made, uint64_t time)
{
    bool lower = time < least[here][made];
    least[here][made] = lower ? time : least[here][made];
    return lower;
}

static bool relax_all(const drawn *d, uint32_t here, uint32_t made,
                      uint64_t budget)
{
    uint64_t level = 0, time = least[here][made];
    bool lower = false;
    for (uint32_t v = 0; v < d->n; v++)
        level += here >> v & 1 ? d->bytes[v] : 0;
    for (uint32_t v = 0; v < d->n; v++) {
        uint32_t bit = 1u << v;
        if (here & bit)
            lower |= relax(here & ~bit, made, time);
        else if ((d->reads[v] & ~here) == 0 && level + d->bytes[v] <= budget)
            lower |=
                relax(here | bit, made | (d->ends & bit), time + d->cost_ns[v]);
    }
    return lower;
}

static uint64_t find_least(const drawn *d, uint64_t budget)
{
    uint64_t best = NONE;
    memset(least, 0xff, sizeof least);
    least[0][0] = 0;
    for (bool lower = true; lower;) {
        lower = false;
        for (uint32_t here = 0; here < 1u << d->n; here++)
            for (uint32_t made = 0; made < 1u << d->n; made++)
                if (least[here][made] != NONE)
                    lower |= relax_all(d, here, made, budget);
    }
    for (uint32_t here = 0; here < 1u << d->n; here++)
        best = least[here][d->ends] < best ? least[here][d->ends] : best;
    return best;
}

static uint64_t all_bytes(const drawn *d)
{
    uint64_t bytes = 0;
    for (uint32_t v = 0; v < d->n; v++)
        bytes += d->bytes[v];
    return bytes;
}

START_TEST(dags_in_every_order)
{
    uint32_t refused = 0, dearer = 0;
    for (laws_seed = 1; laws_seed <= GRAPHS; laws_seed++) {
        laws_random random = {laws_seed};
        drawn d;
        draw_dag(&random, &d);
        const ms_nodedag dag = {.n = d.n,
                                .cost_ns = d.cost_ns,
                                .bytes = d.bytes,
                                .dep_at = d.dep_at,
                                .dep = d.dep};
        uint64_t once = find_least(&d, all_bytes(&d));
        for (uint64_t budget = 1; budget <= all_bytes(&d); budget++) {
            ms_fault fault = {0};
            ms_pebble pebble;
            uint64_t time, peak, want = find_least(&d, budget);
            ms_err err = ms_pebble_find(&dag, budget, &arena, &pebble, &fault);
            refused += err == MS_EINFEASIBLE;
            ck_assert_int_eq(err, want == NONE ? MS_EINFEASIBLE : MS_OK);
            if (err != MS_OK)
                continue;
            ck_assert(pebble.ended);
            ck_assert_uint_eq(pebble.time_ns, want);
            ck_assert_int_eq(ms_dagcost_find(&dag, &pebble.plan, &arena, &time,
                                             &peak, &fault),
                             MS_OK);
            ck_assert_uint_eq(time, want);
            ck_assert_uint_le(peak, budget);
            dearer += want > once;
            ms_arena_reset(&arena);
        }
    }
    ck_assert_uint_gt(refused, GRAPHS);
    ck_assert_uint_gt(dearer, 0);
    ms_arena_free(&arena);
}
END_TEST

Suite *suite_leasttimes(void)
{
    Suite *suite = suite_create("leasttimes");
    TCase *tcase = tcase_create("leasttimes");
    tcase_set_timeout(tcase, 60);
    tcase_add_test(tcase, chains_as_the_recurrence_has_them);
    tcase_add_test(tcase, chains_of_several_tiles);
    tcase_add_test(tcase, dags_in_every_order);
    suite_add_tcase(suite, tcase);
    return suite;
}
