/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Plans of chains against the optima that others have found. */
#include "policies/solve/chain.h"
#include "sim/report.h"
#include "tests/tests.h"
#include "tests/truth/truth.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_STAGES 128u

static ms_arena arena;
static ms_fault fault;
static ms_chain_stage stages[MOST_STAGES];

static void setup(void)
{
    truth_begin();
}

static void teardown(void)
{
    ms_arena_free(&arena);
    truth_end();
}

/* "7/8/4": how many, each to where it belongs in a stage. */
static uint32_t read_column(const char *text, size_t offset)
{
    uint32_t n = 0;
    for (char *end; *text != '\0'; text = *end == '/' ? end + 1 : end) {
        uint64_t value = strtoull(text, &end, 10);
        ck_assert_uint_lt(n, MOST_STAGES);
        memcpy((char *)&stages[n++] + offset, &value, sizeof value);
    }
    return n;
}

static ms_chain read_chain(const truth_table *table, uint32_t row)
{
    static const struct {
        const char *name;
        size_t offset;
    } columns[] = {
        {"output", offsetof(ms_chain_stage, output_bytes)},
        {"saved", offsetof(ms_chain_stage, saved_bytes)},
        {"forward", offsetof(ms_chain_stage, forward_ns)},
        {"backward", offsetof(ms_chain_stage, backward_ns)},
        {"forward_extra", offsetof(ms_chain_stage, forward_extra_bytes)},
        {"backward_extra", offsetof(ms_chain_stage, backward_extra_bytes)}};
    uint32_t n = 0;
    for (size_t i = 0; i < sizeof columns / sizeof *columns; i++)
        n = read_column(truth_cell(table, row, columns[i].name),
                        columns[i].offset);
    return (ms_chain){
        .n = n - 1, .input_bytes = stages[0].output_bytes, .stages = stages};
}

/* The plan costs what the table of the search said, within the budget. */
static void check_best(const ms_chain *chain, const char *name, uint64_t budget,
                       uint64_t time)
{
    ms_optimum optimum;
    uint64_t time_ns, peak_bytes;
    char quantity[64];
    ms_arena_reset(&arena);
    ck_assert_int_eq(
        ms_optimum_find(chain, budget, 0, &arena, &optimum, &fault), MS_OK);
    ck_assert(optimum.exact);
    ck_assert_int_eq(ms_chain_cost(chain, &optimum.plan, &arena, &time_ns,
                                   &peak_bytes, &fault),
                     MS_OK);
    ck_assert_uint_eq(time_ns, optimum.time_ns);
    ck_assert_uint_le(peak_bytes, budget);
    snprintf(quantity, sizeof quantity, "least time in %" PRIu64, budget);
    truth_compare("optimum", name, quantity, time, optimum.time_ns);
}

START_TEST(rotor_optima)
{
    truth_table table;
    truth_read_here("rotor.tsv", &table);
    for (uint32_t row = 0; row < table.n_rows; row++) {
        const char *name = truth_cell(&table, row, "case");
        const char *best = truth_cell(&table, row, "best");
        ms_chain chain = read_chain(&table, row);
        uint64_t least;
        ck_assert_int_eq(
            ms_leastmemory_find(&chain, &arena, &least, NULL, &fault), MS_OK);
        truth_compare("optimum", name, "least budget",
                      truth_number(&table, row, "least"), least);
        ms_optimum optimum;
        ck_assert_int_eq(
            ms_optimum_find(&chain, least - 1, 0, &arena, &optimum, &fault),
            MS_EINFEASIBLE);
        fault = (ms_fault){0};
        for (char *end = NULL; *best != '\0';
             best = *end == '/' ? end + 1 : end) {
            uint64_t budget = strtoull(best, &end, 10);
            uint64_t time = strtoull(end + 1, &end, 10);
            strtoull(end + 1, &end, 10);
            check_best(&chain, name, budget, time);
        }
    }
}
END_TEST

/* ---- through the whole program ------------------------------------------- */

static char json[32768];

/* The chain as a model file. */
static void write_model(const ms_chain *chain)
{
    int n = snprintf(json, sizeof json,
                     "{\"memsim\": 1, \"name\": \"chain\", \"family\": "
                     "\"chain\", \"input_bytes\": %" PRIu64 ", \"stages\": [",
                     chain->input_bytes);
    for (uint32_t l = 1; l <= chain->n; l++) {
        const ms_chain_stage *s = &chain->stages[l];
        n += snprintf(
            json + n, sizeof json - (size_t)n,
            "%s{\"forward_ns\": %" PRIu64 ", \"backward_ns\": %" PRIu64
            ", \"output_bytes\": %" PRIu64 ", \"saved_bytes\": %" PRIu64
            ", \"forward_workspace_bytes\": %" PRIu64
            ", \"backward_workspace_bytes\": %" PRIu64 "}",
            l > 1 ? ", " : "", s->forward_ns, s->backward_ns, s->output_bytes,
            s->saved_bytes, s->forward_extra_bytes, s->backward_extra_bytes);
    }
    n += snprintf(json + n, sizeof json - (size_t)n, "]}");
    ck_assert_int_lt(n, (int)sizeof json);
}

static uint64_t run_plan(const char *name, const char *plan, uint64_t *time)
{
    const ms_result *result =
        truth_run_json(json, "%s%s%s", name,
                       strcmp(plan, "none") == 0 ? "" : " -p checkpoint:",
                       strcmp(plan, "none") == 0 ? "" : plan);
    *time = result->report->ranks[0].time.step_ns;
    return truth_rank(result)->peak.allocated_bytes;
}

/* "every~2=303=79": its time and its peak. */
static const char *check_plan(const char *name, const char *text)
{
    char plan[64], quantity[96], *end;
    size_t length = strcspn(text, "=");
    uint64_t time, peak;
    bool none = length == 4 && strncmp(text, "none", 4) == 0;
    snprintf(plan, sizeof plan, "%.*s%s", (int)length, text,
             none ? "" : ",early_stop=0");
    for (char *sign = plan; *sign != '\0'; sign++)
        *sign = *sign == '~' ? '=' : *sign;
    peak = run_plan(name, plan, &time);
    snprintf(quantity, sizeof quantity, "%s, time", plan);
    truth_compare("chainplans", name, quantity,
                  strtoull(text + length + 1, &end, 10), time);
    snprintf(quantity, sizeof quantity, "%s, peak", plan);
    truth_compare("chainplans", name, quantity, strtoull(end + 1, &end, 10),
                  peak);
    return *end == '/' ? end + 1 : end;
}

START_TEST(plans_of_chains)
{
    truth_table chains, plans;
    truth_read_here("rotor.tsv", &chains);
    truth_read_here("chainplans.tsv", &plans);
    ck_assert_uint_eq(chains.n_rows, plans.n_rows);
    for (uint32_t row = 0; row < chains.n_rows; row++) {
        const char *name = truth_cell(&chains, row, "case");
        const char *text = truth_cell(&plans, row, "plans");
        ck_assert_str_eq(name, truth_cell(&plans, row, "case"));
        ms_chain chain = read_chain(&chains, row);
        write_model(&chain);
        while (*text != '\0')
            text = check_plan(name, text);
    }
}
END_TEST

/* The optimum, as the program runs it, takes the time that rotor has, within
 * the budget. */
START_TEST(optima_as_they_run)
{
    truth_table table;
    truth_read_here("rotor.tsv", &table);
    for (uint32_t row = 0; row < table.n_rows; row++) {
        const char *name = truth_cell(&table, row, "case");
        const char *best = truth_cell(&table, row, "best");
        ms_chain chain = read_chain(&table, row);
        write_model(&chain);
        for (char *end = NULL; *best != '\0';
             best = *end == '/' ? end + 1 : end) {
            char plan[64];
            uint64_t budget = strtoull(best, &end, 10), time;
            uint64_t least = strtoull(end + 1, &end, 10);
            strtoull(end + 1, &end, 10);
            snprintf(plan, sizeof plan, "optimal,early_stop=0,budget=%" PRIu64,
                     budget);
            ck_assert_uint_le(run_plan(name, plan, &time), budget);
            truth_compare("chainplans", name, plan, least, time);
        }
    }
}
END_TEST

/* ---- equal stages -------------------------------------------------------- */

/* A plan of so many equal stages: how often one runs forward and saves nothing,
 * and the most inputs that are there at a time. */
static uint64_t count_advances(uint32_t n, uint32_t slots)
{
    ms_chain chain = {.n = n, .input_bytes = 1, .stages = stages};
    ms_chain_plan plan;
    uint64_t time_ns, peak_bytes;
    ms_arena_reset(&arena);
    ck_assert_int_eq(ms_binomial_plan(n, slots, &arena, &plan, &fault), MS_OK);
    ck_assert_int_eq(
        ms_chain_cost(&chain, &plan, &arena, &time_ns, &peak_bytes, &fault),
        MS_OK);
    /* the inputs, an output beside the last of them, and its gradient */
    ck_assert_uint_le(peak_bytes, slots + 3u);
    return time_ns - n;
}

START_TEST(revolve_tables)
{
    truth_table table;
    for (uint32_t l = 1; l < MOST_STAGES; l++)
        stages[l] = (ms_chain_stage){
            .forward_ns = 1, .output_bytes = 1, .saved_bytes = 1};
    truth_read_here("revolve.tsv", &table);
    for (uint32_t row = 0; row < table.n_rows; row++) {
        uint32_t slots = (uint32_t)truth_number(&table, row, "slots");
        const char *text = truth_cell(&table, row, "advances");
        uint32_t n = 0;
        for (char *end; *text != '\0'; text = *end == '/' ? end + 1 : end) {
            uint64_t advances = strtoull(text, &end, 10);
            char name[48];
            snprintf(name, sizeof name, "%u stages, %u checkpoints", ++n,
                     slots);
            truth_compare("revolve", name, "forward runs", advances,
                          ms_binomial_advances(n, slots));
            ck_assert_uint_eq(count_advances(n, slots), advances);
        }
    }
}
END_TEST

START_TEST(revolve_far)
{
    static const struct {
        uint32_t l, c;
        uint64_t t;
    } far[] = {{1000, 3, 12155},         {1000, 10, 3636},
               {1000, 32, 2405},         {10000, 10, 57624},
               {10000, 100, 24747},      {1000000, 20, 6815960},
               {1000000, 1000, 2497497}, {1000000000, 30, 9878900592}};
    for (size_t i = 0; i < sizeof far / sizeof *far; i++) {
        char name[48];
        snprintf(name, sizeof name, "%u stages, %u checkpoints", far[i].l,
                 far[i].c);
        truth_compare("revolve", name, "forward runs", far[i].t,
                      ms_binomial_advances(far[i].l, far[i].c));
    }
}
END_TEST

/* Equal stages share their tables: the answer does not know it. */
START_TEST(equal_stages_share_tables)
{
    ms_optimum shared, apart;
    for (uint32_t l = 1; l <= 24; l++)
        stages[l] = (ms_chain_stage){.forward_ns = 10,
                                     .backward_ns = 20,
                                     .output_bytes = 4,
                                     .saved_bytes = l % 2 == 0 ? 12 : 20,
                                     .backward_extra_bytes = 5};
    ms_chain chain = {.n = 24, .input_bytes = 4, .stages = stages};
    for (uint64_t budget = 70; budget < 400; budget += 30) {
        ms_arena_reset(&arena);
        ck_assert_int_eq(
            ms_optimum_find(&chain, budget, 0, &arena, &shared, &fault), MS_OK);
        for (uint32_t l = 1; l <= 24; l++)
            stages[l].backward_ns += l;
        ck_assert_int_eq(
            ms_optimum_find(&chain, budget, 0, &arena, &apart, &fault), MS_OK);
        for (uint32_t l = 1; l <= 24; l++)
            stages[l].backward_ns -= l;
        ck_assert_uint_eq(shared.time_ns + 24 * 25 / 2, apart.time_ns);
    }
}
END_TEST

/* One table answers each budget as a table of its own does, and one of few
 * stages is no long one. */
START_TEST(one_table_for_many_budgets)
{
    ms_optimum_table *table;
    for (uint32_t l = 1; l <= 30; l++)
        stages[l] = (ms_chain_stage){.forward_ns = 5 + l % 7,
                                     .backward_ns = 11 + l % 5,
                                     .output_bytes = 3 + l % 4,
                                     .saved_bytes = 9 + l % 6,
                                     .backward_extra_bytes = 7};
    ms_chain chain = {.n = 30, .input_bytes = 4, .stages = stages};
    ms_arena tables = {0};
    ck_assert_int_eq(ms_optimum_open(&chain, 400, 0, &tables, &table, &fault),
                     MS_OK);
    ck_assert(!ms_optimum_is_long(table));
    for (uint64_t budget = 20; budget <= 400; budget += 19) {
        ms_optimum one, many;
        ms_arena_reset(&arena);
        ms_err err = ms_optimum_find(&chain, budget, 0, &arena, &one, &fault);
        ck_assert_int_eq(ms_optimum_read(table, budget, &arena, &many, &fault),
                         err);
        if (err == MS_OK)
            ck_assert_uint_eq(one.time_ns, many.time_ns);
    }
    ms_arena_free(&tables);
}
END_TEST

/* In fewer units than the sizes have the plan is never better, and it keeps to
 * the budget. */
START_TEST(coarse_units_stay_within_the_budget)
{
    uint64_t scale = 1000003;
    for (uint32_t l = 1; l <= 40; l++)
        stages[l] = (ms_chain_stage){.forward_ns = 5 + l % 7,
                                     .backward_ns = 11 + l % 5,
                                     .output_bytes = scale * (3 + l % 4) + l,
                                     .saved_bytes = scale * (9 + l % 6) + 2 * l,
                                     .backward_extra_bytes = scale * 7};
    ms_chain chain = {.n = 40, .input_bytes = scale * 3 + 1, .stages = stages};
    uint64_t before = UINT64_MAX;
    for (uint32_t slots = 125; slots <= 2000; slots *= 2) {
        ms_optimum optimum;
        uint64_t time_ns, peak_bytes, budget = scale * 120;
        ms_arena_reset(&arena);
        ck_assert_int_eq(
            ms_optimum_find(&chain, budget, slots, &arena, &optimum, &fault),
            MS_OK);
        ck_assert(!optimum.exact);
        ck_assert_int_eq(ms_chain_cost(&chain, &optimum.plan, &arena, &time_ns,
                                       &peak_bytes, &fault),
                         MS_OK);
        ck_assert_uint_le(peak_bytes, budget);
        ck_assert_uint_le(time_ns, before);
        before = time_ns;
    }
}
END_TEST

Suite *suite_optimum(void)
{
    Suite *suite = suite_create("optimum");
    TCase *tcase = tcase_create("optimum");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, rotor_optima);
    tcase_add_test(tcase, plans_of_chains);
    tcase_add_test(tcase, optima_as_they_run);
    tcase_add_test(tcase, revolve_tables);
    tcase_add_test(tcase, revolve_far);
    tcase_add_test(tcase, equal_stages_share_tables);
    tcase_add_test(tcase, one_table_for_many_budgets);
    tcase_add_test(tcase, coarse_units_stay_within_the_budget);
    suite_add_tcase(suite, tcase);
    return suite;
}
