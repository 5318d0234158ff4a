/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Minimum cuts, knapsacks and cut points against other programs' answers. */
#include "policies/solve/blocks/dagblocks.h"
#include "policies/solve/cut/knapsack.h"
#include "policies/solve/cut/mincut.h"
#include "tests/tests.h"
#include "tests/truth/truth.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST 1024u

static ms_arena arena;
static ms_fault fault;

static void setup(void)
{
    truth_begin();
}

static void teardown(void)
{
    ms_arena_free(&arena);
    truth_end();
}

/* Numbers of "1/2/3"; how many. */
static uint32_t numbers(const char *text, uint64_t *list)
{
    uint32_t n = 0;
    for (char *end; *text >= '0' && *text <= '9';
         text = *end == '/' ? end + 1 : end) {
        list[n++] = strtoull(text, &end, 10);
        ck_assert_uint_lt(n, MOST);
    }
    return n;
}

static uint32_t flags(const char *text, uint8_t *list)
{
    static uint64_t read[MOST];
    uint32_t n = numbers(text, read);
    for (uint32_t i = 0; i < n; i++)
        list[i] = read[i] != 0;
    return n;
}

/* "-/0/0,1" */
static uint32_t deps(const char *text, uint32_t *at, uint32_t *dep)
{
    uint32_t n = 0, k = 0;
    for (at[0] = 0; *text != '\0'; n++) {
        for (char *end; *text >= '0' && *text <= '9';
             text = *end == ',' ? end + 1 : end)
            dep[k++] = (uint32_t)strtoul(text, &end, 10);
        text += *text == '-';
        text += *text == '/';
        at[n + 1] = k;
    }
    return n;
}

START_TEST(minimum_cuts)
{
    static uint32_t dep_at[MOST], dep[8 * MOST];
    static uint64_t weight[MOST], saved[MOST];
    static uint8_t banned[MOST], needed[MOST], is_saved[MOST];
    truth_table table;
    truth_read_here("graphcut.tsv", &table);
    for (uint32_t row = 0; row < table.n_rows; row++) {
        const char *name = truth_cell(&table, row, "case");
        uint64_t total, same = 0;
        ms_mincut_net net = {.dep_at = dep_at,
                             .dep = dep,
                             .weight = weight,
                             .banned = banned,
                             .needed = needed};
        net.n = deps(truth_cell(&table, row, "deps"), dep_at, dep);
        ck_assert_uint_eq(net.n,
                          numbers(truth_cell(&table, row, "weight"), weight));
        flags(truth_cell(&table, row, "banned"), banned);
        flags(truth_cell(&table, row, "needed"), needed);
        ck_assert_int_eq(ms_mincut_find(&net, &arena, is_saved, &total, &fault),
                         MS_OK);
        truth_compare("graphcut", name, "cut", truth_number(&table, row, "cut"),
                      total);
        uint32_t n = numbers(truth_cell(&table, row, "saved"), saved);
        for (uint32_t i = 0; i < n; i++)
            same += is_saved[saved[i]];
        truth_compare("graphcut", name, "saved", n, same);
        ms_arena_reset(&arena);
    }
}
END_TEST

static uint64_t sum(const uint64_t *value, const uint8_t *is_in, uint32_t n)
{
    uint64_t total = 0;
    for (uint32_t i = 0; i < n; i++)
        total += is_in[i] ? value[i] : 0;
    return total;
}

START_TEST(knapsacks)
{
    static uint64_t weight[MOST], value[MOST];
    static uint8_t is_saved[MOST];
    truth_table table;
    truth_read_here("knapsacks.tsv", &table);
    for (uint32_t row = 0; row < table.n_rows; row++) {
        const char *name = truth_cell(&table, row, "case");
        ms_knapsack sack = {.weight = weight, .value = value};
        sack.n = numbers(truth_cell(&table, row, "bytes"), weight);
        sack.room = truth_number(&table, row, "cap");
        numbers(truth_cell(&table, row, "time"), value);
        ck_assert_int_eq(ms_knapsack_best(&sack, &arena, is_saved, &fault),
                         MS_OK);
        ck_assert_uint_le(sum(weight, is_saved, sack.n), sack.room);
        truth_compare("knapsacks", name, "best",
                      truth_number(&table, row, "best"),
                      sum(value, is_saved, sack.n));
        ck_assert_int_eq(ms_knapsack_greedy(&sack, &arena, is_saved, &fault),
                         MS_OK);
        truth_compare("knapsacks", name, "greedy",
                      truth_number(&table, row, "greedy"),
                      sum(value, is_saved, sack.n));
        ms_arena_reset(&arena);
    }
}
END_TEST

/* "0-1/1-2" as a DAG. */
static ms_nodedag read_edges(const char *text)
{
    static uint32_t dep_at[MOST], dep[8 * MOST];
    static uint64_t ones[MOST];
    static uint8_t is_backward[MOST];
    uint32_t from[MOST], to[MOST], n_edges = 0, n = 0, k = 0;
    for (char *end; *text != '\0'; text = *end == '/' ? end + 1 : end) {
        from[n_edges] = (uint32_t)strtoul(text, &end, 10);
        to[n_edges] = (uint32_t)strtoul(end + 1, &end, 10);
        n = to[n_edges] >= n ? to[n_edges] + 1 : n;
        n_edges++;
    }
    for (uint32_t v = 0; v < n; v++) {
        dep_at[v] = k;
        for (uint32_t i = 0; i < n_edges; i++)
            if (to[i] == v)
                dep[k++] = from[i];
        dep_at[v + 1] = k;
    }
    return (ms_nodedag){n, ones, ones, dep_at, dep, is_backward};
}

/* A dominator is a cut point; where several nodes read nothing there may be
 * more of these. */
START_TEST(cut_points)
{
    static uint64_t want[MOST];
    truth_table table;
    truth_read_here("cutpoints.tsv", &table);
    for (uint32_t row = 0; row < table.n_rows; row++) {
        ms_dagblocks blocks;
        const ms_nodedag dag = read_edges(truth_cell(&table, row, "edges"));
        uint32_t n = numbers(truth_cell(&table, row, "dominators"), want);
        uint64_t found = 0;
        ck_assert_int_eq(ms_dagblocks_find(&dag, &arena, &blocks, &fault),
                         MS_OK);
        for (uint32_t i = 0; i < n; i++)
            for (uint32_t b = 0; b < blocks.n; b++)
                found +=
                    blocks.forward[blocks.forward_at[b + 1] - 1] == want[i];
        truth_compare("cutpoints", truth_cell(&table, row, "case"),
                      "dominators", n, found);
        ms_arena_reset(&arena);
    }
}
END_TEST

Suite *suite_graphcut(void)
{
    Suite *suite = suite_create("graphcut");
    TCase *tcase = tcase_create("graphcut");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, minimum_cuts);
    tcase_add_test(tcase, knapsacks);
    tcase_add_test(tcase, cut_points);
    suite_add_tcase(suite, tcase);
    return suite;
}
