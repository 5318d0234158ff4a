/* SPDX-License-Identifier: GPL-3.0-or-later */
/* DAGs of measured nodes and logs of runs, against other programs' optima and
 * against DTR's simulator. */
#include "graphs/lowering/nodegraph.h"
#include "graphs/model.h"
#include "policies/solve/evictor.h"
#include "sim/graph.h"
#include "sim/report.h"
#include "tests/tests.h"
#include "tests/truth/truth.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static ms_arena arena;
static ms_fault fault;
static char json[32768];

static void setup(void)
{
    truth_begin();
}

static void teardown(void)
{
    ms_arena_free(&arena);
    truth_end();
}

/* The i-th of "a/b/c". */
static const char *part(const char *text, uint32_t i, char separator)
{
    for (; i > 0; i--)
        text = strchr(text, separator) + 1;
    return text;
}

static uint64_t number(const truth_table *table, uint32_t row, const char *name,
                       uint32_t i)
{
    return strtoull(part(truth_cell(table, row, name), i, '/'), NULL, 10);
}

static int put(int n, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    n += vsnprintf(json + n, sizeof json - (size_t)n, format, list);
    va_end(list);
    ck_assert_int_lt(n, (int)sizeof json);
    return n;
}

/* The case as a model file. */
static void write_model(const truth_table *table, uint32_t row)
{
    uint32_t nodes = 1;
    int n = put(0, "{\"memsim\": 1, \"name\": \"dag\", \"family\": \"dag\", "
                   "\"nodes\": [");
    for (const char *at = truth_cell(table, row, "cost"); *at != '\0'; at++)
        nodes += *at == '/';
    for (uint32_t v = 0; v < nodes; v++) {
        const char *deps = part(truth_cell(table, row, "deps"), v, '/');
        size_t length = *deps == '-' ? 0 : strcspn(deps, "/");
        n = put(n,
                "%s{\"id\": %" PRIu32 ", \"cost_ns\": %" PRIu64
                ", \"bytes\": %" PRIu64 ", \"backward\": %s, \"deps\": [%.*s]}",
                v > 0 ? ", " : "", v, number(table, row, "cost", v),
                number(table, row, "bytes", v),
                number(table, row, "backward", v) ? "true" : "false",
                (int)length, deps);
    }
    put(n, "]}");
}

static void read_graph(const char *bytes, const char *path, ms_graph *graph)
{
    ms_model model;
    ms_arena_reset(&arena);
    ck_assert_int_eq(path != NULL
                         ? ms_read_model(path, NULL, 0, &arena, &model, &fault)
                         : ms_read_model_bytes("dag", bytes, strlen(bytes),
                                               NULL, 0, &arena, &model, &fault),
                     MS_OK);
    ck_assert_int_eq(ms_nodegraph_lower(&model, &arena, graph, &fault), MS_OK);
    ck_assert_int_eq(ms_graph_check(graph, &fault), MS_OK);
}

static uint64_t run(const char *policy, uint64_t *peak)
{
    const ms_result *result = truth_run_json(json, "dag%s", policy);
    *peak = truth_rank(result)->peak.allocated_bytes;
    return result->report->ranks[0].time.step_ns;
}

/* ---- the least time ------------------------------------------------------ */

START_TEST(in_the_order_of_the_nodes)
{
    truth_table table;
    truth_read_here("dags.tsv", &table);
    for (uint32_t row = 0; row < table.n_rows; row++) {
        const char *name = truth_cell(&table, row, "case"), *all;
        uint64_t peak;
        char *end;
        all = truth_cell(&table, row, "all");
        write_model(&table, row);
        uint64_t time = run("", &peak);
        truth_compare("dags", name, "time", strtoull(all, &end, 10), time);
        truth_compare("dags", name, "peak", strtoull(end + 1, NULL, 10), peak);
    }
}
END_TEST

static void check_none(uint64_t budget)
{
    ms_graph graph;
    ms_nodedag dag;
    ms_pebble pebble;
    read_graph(json, NULL, &graph);
    ck_assert_int_eq(ms_nodedag_find(&graph, &arena, &dag, &fault), MS_OK);
    ck_assert_int_eq(ms_pebble_find(&dag, budget, &arena, &pebble, &fault),
                     MS_EINFEASIBLE);
    fault = (ms_fault){0};
}

/* What Checkmate's own class reaches in the budget; UINT64_MAX: not told. */
static uint64_t ilp_of(const char *text, uint64_t budget)
{
    for (char *end; *text >= '0'; text = *end == '/' ? end + 1 : end) {
        uint64_t at = strtoull(text, &end, 10);
        uint64_t time = strtoull(end + 1, &end, 10);
        if (at == budget)
            return time;
    }
    return UINT64_MAX;
}

START_TEST(least_times)
{
    truth_table table;
    truth_read_here("dags.tsv", &table);
    for (uint32_t row = 0; row < table.n_rows; row++) {
        const char *best = truth_cell(&table, row, "best");
        write_model(&table, row);
        for (char *end; *best != '\0'; best = *end == '/' ? end + 1 : end) {
            char policy[80];
            uint64_t budget = strtoull(best, &end, 10), peak;
            int64_t least = strtoll(end + 1, &end, 10);
            snprintf(policy, sizeof policy,
                     " -p checkpoint:optimal,budget=%" PRIu64, budget);
            if (least < 0) {
                check_none(budget);
                continue;
            }
            uint64_t time = run(policy, &peak);
            ck_assert_uint_le(peak, budget);
            ck_assert_uint_le(time,
                              ilp_of(truth_cell(&table, row, "ilp"), budget));
            truth_compare("dags", truth_cell(&table, row, "case"), policy + 4,
                          (uint64_t)least, time);
        }
    }
}
END_TEST

/* ---- dtr ----------------------------------------------------------------- */

static const char *const heuristics[] = {"dtr",  "local",  "msps", "lru",
                                         "size", "random", "eq"};

static ms_evictor_run evict(const ms_graph *graph, const char *heuristic,
                            uint64_t budget, uint64_t most, uint64_t seed)
{
    ms_evictor_run made;
    ms_evictor_setup how = {
        .seed = seed, .budget_bytes = budget, .most_again_ns = most};
    uint32_t h = 0;
    while (strncmp(heuristics[h], heuristic, strlen(heuristics[h])) != 0)
        h++;
    how.heuristic = (ms_evictor_heuristic)h;
    ck_assert_int_eq(ms_evictor_find(graph, &how, &arena, &made, &fault),
                     MS_OK);
    return made;
}

START_TEST(dtr_on_dags)
{
    truth_table table;
    truth_read_here("dags.tsv", &table);
    for (uint32_t row = 0; row < table.n_rows; row++) {
        const char *text = truth_cell(&table, row, "dtr");
        ms_graph graph;
        write_model(&table, row);
        read_graph(json, NULL, &graph);
        for (char *end; *text > '-'; text = *end == '/' ? end + 1 : end) {
            char policy[96];
            size_t length = strcspn(text, "=");
            uint64_t budget = strtoull(text + length + 1, &end, 10), peak;
            int64_t time = strtoll(end + 1, &end, 10);
            if (time < 0) {
                ms_evictor_run made =
                    evict(&graph, text, budget, UINT64_MAX, 1);
                ck_assert_int_eq(made.status, MS_EVICTOR_OOM);
                continue;
            }
            snprintf(policy, sizeof policy,
                     " -p dtr:h=%.*s,most=1000,budget=%" PRIu64, (int)length,
                     text, budget);
            uint64_t got = run(policy, &peak);
            ck_assert_uint_le(peak, budget);
            truth_compare("dtr", truth_cell(&table, row, "case"), policy + 4,
                          (uint64_t)time, got);
        }
    }
}
END_TEST

/* ---- logs ---------------------------------------------------------------- */

static const char *const statuses[] = {"ok", "oom", "thrash"};

/* The whole way: a log without a budget, or one that fits in it. */
static void check_run(const char *path, const truth_table *table, uint32_t row)
{
    const char *h = truth_cell(table, row, "h");
    char policy[96] = "", name[160];
    uint64_t budget = truth_number(table, row, "budget");
    bool none = strcmp(h, "none") == 0;
    if (!none)
        snprintf(policy, sizeof policy,
                 " -p dtr:h=%s,most=1000,budget=%" PRIu64, h, budget);
    snprintf(name, sizeof name, "%s%s", truth_cell(table, row, "log"), policy);
    const ms_result *result = truth_run("%s%s", path, policy);
    const ms_times *time = &result->report->ranks[0].time;
    truth_compare("dtrlogs", name, none ? "ns" : "again, ns",
                  truth_number(table, row, "again"),
                  none ? time->step_ns : time->recompute_ns);
    truth_compare("dtrlogs", name, "peak, bytes",
                  truth_number(table, row, "peak"),
                  truth_rank(result)->peak.allocated_bytes);
}

static void check_row(const ms_graph *graph, const truth_table *table,
                      uint32_t row)
{
    const char *h = truth_cell(table, row, "h");
    char name[160];
    uint64_t budget = truth_number(table, row, "budget");
    ms_evictor_run made =
        evict(graph, h, budget, truth_number(table, row, "most"), 1);
    snprintf(name, sizeof name, "%s h=%s budget=%" PRIu64,
             truth_cell(table, row, "log"), h, budget);
    truth_compare_words("dtrlogs", name, "ends",
                        truth_cell(table, row, "status"),
                        statuses[made.status]);
    truth_compare("dtrlogs", name, "again, ns",
                  truth_number(table, row, "again"), made.again_ns);
    truth_compare("dtrlogs", name, "peak, bytes",
                  truth_number(table, row, "peak"), made.peak_bytes);
    truth_compare("dtrlogs", name, "runs", truth_number(table, row, "runs"),
                  made.n_runs);
    truth_compare("dtrlogs", name, "evictions",
                  truth_number(table, row, "evictions"), made.n_evictions);
}

/* Seeds of one program are none of the other's: their ranges meet. */
static void check_random(const ms_graph *graph, const truth_table *table,
                         uint32_t row)
{
    uint64_t least = UINT64_MAX, most = 0;
    for (uint64_t seed = 1; seed <= 10; seed++) {
        ms_evictor_run made =
            evict(graph, "random", truth_number(table, row, "budget"),
                  truth_number(table, row, "most"), seed);
        if (made.status != MS_EVICTOR_OK)
            continue;
        least = made.again_ns < least ? made.again_ns : least;
        most = made.again_ns > most ? made.again_ns : most;
    }
    ck_assert_uint_le(least, truth_number(table, row, "runs"));
    ck_assert_uint_ge(most, truth_number(table, row, "again"));
}

START_TEST(logs)
{
    truth_table table;
    char path[TESTS_PATH] = "", relative[160];
    ms_graph graph;
    truth_read_here("dtrlogs.tsv", &table);
    const char *before = "";
    for (uint32_t row = 0; row < table.n_rows; row++) {
        const char *log = truth_cell(&table, row, "log");
        const char *h = truth_cell(&table, row, "h");
        snprintf(relative, sizeof relative, "checkpoint/dtr_logs/%s.log.gz",
                 log);
        if (!tests_truth(relative, path))
            return;
        if (strcmp(before, log) != 0)
            read_graph(NULL, path, &graph);
        before = log;
        bool none = strcmp(h, "none") == 0;
        if (none ||
            (strncmp(log, "resnet", 6) == 0 && strcmp(h, "random") != 0 &&
             strcmp(truth_cell(&table, row, "status"), "ok") == 0))
            check_run(path, &table, row);
        if (strcmp(h, "random") == 0)
            check_random(&graph, &table, row);
        else if (!none)
            check_row(&graph, &table, row);
    }
}
END_TEST

Suite *suite_dags(void)
{
    Suite *suite = suite_create("dags");
    TCase *tcase = tcase_create("dags");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_set_timeout(tcase, 120);
    tcase_add_test(tcase, in_the_order_of_the_nodes);
    tcase_add_test(tcase, least_times);
    tcase_add_test(tcase, dtr_on_dags);
    tcase_add_test(tcase, logs);
    suite_add_tcase(suite, tcase);
    return suite;
}
