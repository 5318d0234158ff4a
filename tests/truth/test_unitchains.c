/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Chains of equal layers, as other programs checkpoint them, and DTR's
 * simulator on them; what DTR recomputed on a GPU. */
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

#define MIB (UINT64_C(1) << 20)

static ms_arena arena;
static ms_fault fault;
static char text[1 << 18];
static int length;

static void setup(void)
{
    truth_begin();
}

static void teardown(void)
{
    ms_arena_free(&arena);
    truth_end();
}

static void put(const char *format, ...)
{
    va_list list;
    va_start(list, format);
    length +=
        vsnprintf(text + length, sizeof text - (size_t)length, format, list);
    va_end(list);
    ck_assert_int_lt(length, (int)sizeof text);
}

/* ---- what is kept by a rule ---------------------------------------------- */

static uint64_t parts(uint64_t of, uint64_t whole, uint64_t unit)
{
    return (of * unit + whole / 2) / whole;
}

static uint32_t root(uint64_t n)
{
    uint32_t k = 1;
    while ((uint64_t)(k + 1) * (k + 1) <= n)
        k++;
    return k;
}

/* Backward of a layer reads the output of the layer before: that of the last
 * one is the loss'.  The loss and what is before the chain take nothing. */
static void check_sqrt(const char *name, uint64_t n, const truth_table *table,
                       uint32_t row)
{
    uint32_t k = root(n);
    length = 0;
    put("{\"memsim\": 1, \"name\": \"chain\", \"input\": {\"shape\": [1]}, "
        "\"layers\": [{\"repeat\": %" PRIu64 ", \"name\": \"layers\", "
        "\"layers\": [{\"type\": \"op\", \"shape\": [262144], \"saves\": "
        "\"input\"}]}, {\"type\": \"op\", \"shape\": [1], \"saves\": "
        "\"input\"}, {\"type\": \"mean\"}]}",
        n);
    const ms_result *result =
        truth_run_json(text,
                       "chain --precision fp32 --optimizer none -p "
                       "checkpoint:every=%" PRIu32 ",last=%s",
                       k, n % k == 0 ? "closed" : "open");
    truth_compare("unitchains", name, "forwards again, 0.1 %",
                  truth_number(table, row, "again"),
                  parts(result->report->recomputed_ops, 2 * n + 1, 1000));
    truth_compare("unitchains", name, "peak, units",
                  truth_number(table, row, "peak"),
                  truth_rank(result)->peak.allocated_bytes / MIB);
}

/* The nodes in Checkmate's order, in the least memory. */
static void check_last(const char *name, uint64_t n, const truth_table *table,
                       uint32_t row)
{
    length = 0;
    put("{\"memsim\": 1, \"name\": \"dag\", \"family\": \"dag\", \"nodes\": [");
    for (uint64_t v = 0; v <= 2 * n; v++) {
        put("%s{\"id\": %" PRIu64 ", \"cost_ns\": 1, \"bytes\": 1, "
            "\"backward\": %s, \"deps\": [",
            v > 0 ? ", " : "", v, v > n ? "true" : "false");
        if (v > n)
            put("%" PRIu64 ", ", 2 * n - v);
        if (v > 0)
            put("%" PRIu64, v - 1);
        put("]}");
    }
    put("]}");
    const ms_result *result =
        truth_run_json(text, "dag -p checkpoint:optimal,budget=3");
    truth_compare(
        "unitchains", name, "forwards again, %",
        truth_number(table, row, "again"),
        parts(result->report->ranks[0].time.recompute_ns, 2 * n + 1, 100));
    truth_compare("unitchains", name, "peak, units",
                  truth_number(table, row, "peak"),
                  truth_rank(result)->peak.allocated_bytes);
}

static void check_rotor(const char *name, uint64_t n, const truth_table *table,
                        uint32_t row)
{
    uint64_t percent = truth_number(table, row, "percent");
    uint64_t budget = (percent * (17 * n + 2) + 99) / 100;
    char quantity[64];
    length = 0;
    put("{\"memsim\": 1, \"name\": \"chain\", \"family\": \"chain\", "
        "\"input_bytes\": 0, \"stages\": [");
    for (uint64_t l = 0; l < n; l++)
        put("{\"forward_ns\": 1, \"backward_ns\": 2, \"output_bytes\": 1, "
            "\"saved_bytes\": 17, \"forward_workspace_bytes\": 0, "
            "\"backward_workspace_bytes\": 1}, ");
    put("{\"forward_ns\": 0, \"backward_ns\": 0, \"output_bytes\": 0, "
        "\"saved_bytes\": 0, \"forward_workspace_bytes\": 0, "
        "\"backward_workspace_bytes\": 1}]}");
    const ms_result *result = truth_run_json(
        text, "chain -p checkpoint:optimal,budget=%" PRIu64, budget);
    ck_assert_uint_le(truth_rank(result)->peak.allocated_bytes, budget);
    snprintf(quantity, sizeof quantity, "again in %" PRIu64 " %%, 0.01 %%",
             percent);
    truth_compare(
        "unitchains", name, quantity, truth_number(table, row, "again"),
        parts(result->report->ranks[0].time.recompute_ns, 3 * n, 10000));
}

START_TEST(plans)
{
    static const struct {
        const char *name;
        void (*check)(const char *name, uint64_t n, const truth_table *table,
                      uint32_t row);
    } cases[] = {
        {"sqrt", check_sqrt}, {"last", check_last}, {"rotor", check_rotor}};
    truth_table table;
    truth_read_here("unitchains.tsv", &table);
    for (uint32_t row = 0; row < table.n_rows; row++) {
        const char *case_name = truth_cell(&table, row, "case");
        uint64_t n = truth_number(&table, row, "n");
        uint32_t c = 0;
        char name[64];
        while (strcmp(cases[c].name, case_name) != 0)
            c++;
        snprintf(name, sizeof name, "%s n=%" PRIu64, case_name, n);
        cases[c].check(name, n, &table, row);
    }
}
END_TEST

/* ---- DTR's simulator ----------------------------------------------------- */

static void put_call(char way, uint64_t i)
{
    put("],\"RESULT\":[\"%c%" PRIu64 "\"],\"TIME\":\"1\"}\n"
        "{\"INSTRUCTION\":\"MEMORY\",\"NAME\":\"%c%" PRIu64
        "\",\"MEMORY\":\"1\"}\n"
        "{\"INSTRUCTION\":\"ALIAS\",\"NAME\":\"%c%" PRIu64
        "\",\"ALIAS\":\"-1\"}\n",
        way, i, way, i, way, i);
}

static void put_release(char way, uint64_t i)
{
    put("{\"INSTRUCTION\":\"RELEASE\",\"NAME\":\"%c%" PRIu64 "\"}\n", way, i);
}

/* As simrd's experiment calls its runtime: backward of a layer reads what its
 * forward read, and its own output is let go before. */
static void write_log(uint64_t n)
{
    static const char call[] =
        "{\"INSTRUCTION\":\"CALL\",\"NAME\":\"op\",\"ARGS\":[";
    length = 0;
    put("{\"INSTRUCTION\":\"ANNOTATE\",\"ANNOTATION\":\"START\"}\n");
    for (uint64_t i = 0; i < n; i++) {
        put(call);
        if (i > 0)
            put("\"f%" PRIu64 "\"", i - 1);
        put_call('f', i);
    }
    for (uint64_t i = n; i-- > 0;) {
        put_release('f', i);
        put(call);
        if (i > 0 && i + 1 < n)
            put("\"f%" PRIu64 "\",", i - 1);
        if (i + 1 < n)
            put("\"b%" PRIu64 "\"", i + 1);
        put_call('b', i);
        if (i + 1 < n)
            put_release('b', i + 1);
    }
}

/* path: NULL: the text. */
static void read_log(const char *path, ms_graph *graph)
{
    ms_model model;
    ms_arena_reset(&arena);
    ms_err err = path != NULL
                     ? ms_read_model(path, NULL, 0, &arena, &model, &fault)
                     : ms_read_model_bytes("log", text, (size_t)length, NULL, 0,
                                           &arena, &model, &fault);
    ck_assert_msg(err == MS_OK, "%s", fault.what);
    ck_assert_int_eq(ms_nodegraph_lower(&model, &arena, graph, &fault), MS_OK);
}

static ms_evictor_heuristic heuristic(const char *name)
{
    static const char *const names[] = {"dtr",  "local",  "msps", "lru",
                                        "size", "random", "eq",   "esize"};
    uint32_t h = 0;
    while (strcmp(names[h], name) != 0)
        h++;
    return (ms_evictor_heuristic)h;
}

static void check_unit(const ms_graph *graph, const truth_table *table,
                       uint32_t row)
{
    static const char *const statuses[] = {"ok", "oom", "thrash"};
    uint64_t n = truth_number(table, row, "n");
    ms_evictor_setup how = {.heuristic = heuristic(truth_cell(table, row, "h")),
                            .budget_bytes = truth_number(table, row, "budget"),
                            .most_again_ns = 20 * n};
    ms_evictor_run made;
    char name[64];
    ck_assert_int_eq(ms_evictor_find(graph, &how, &arena, &made, &fault),
                     MS_OK);
    snprintf(name, sizeof name, "n=%" PRIu64 " h=%s budget=%" PRIu64, n,
             truth_cell(table, row, "h"), how.budget_bytes);
    truth_compare_words("linearunits", name, "ends",
                        truth_cell(table, row, "status"),
                        statuses[made.status]);
    truth_compare("linearunits", name, "again",
                  truth_number(table, row, "again"), made.again_ns);
    truth_compare("linearunits", name, "first",
                  truth_number(table, row, "first"),
                  made.n_runs - made.again_ns);
    truth_compare("linearunits", name, "peak", truth_number(table, row, "peak"),
                  made.peak_bytes);
}

START_TEST(linear_units)
{
    truth_table table;
    ms_graph graph;
    uint64_t before = 0;
    truth_read_here("linearunits.tsv", &table);
    for (uint32_t row = 0; row < table.n_rows; row++) {
        uint64_t n = truth_number(&table, row, "n");
        if (n != before) {
            write_log(n);
            read_log(NULL, &graph);
        }
        before = n;
        check_unit(&graph, &table, row);
    }
}
END_TEST

/* ---- DTR on a GPU -------------------------------------------------------- */

START_TEST(hardware)
{
    truth_table table;
    truth_read_here("dtrhardware.tsv", &table);
    for (uint32_t row = 0; row < table.n_rows; row++) {
        const char *log = truth_cell(&table, row, "log");
        char relative[160], path[TESTS_PATH] = "", name[160];
        snprintf(relative, sizeof relative, "checkpoint/dtr_logs/%s.log.gz",
                 log);
        if (!tests_truth(relative, path))
            return;
        uint64_t budget = truth_number(&table, row, "budget");
        uint64_t again = truth_number(&table, row, "again");
        const ms_result *result =
            truth_run("%s -p dtr:h=eq,budget=%" PRIu64, path, budget);
        const ms_times *time = &result->report->ranks[0].time;
        uint64_t ours = parts(time->recompute_ns,
                              time->step_ns - time->recompute_ns, 10000);
        uint64_t off = ours > again ? ours - again : again - ours;
        ck_assert_uint_le(off, truth_number(&table, row, "within"));
        snprintf(name, sizeof name, "%s budget=%" PRIu64, log, budget);
        truth_compare("dtrhardware", name, "again, 0.01 %", again, ours);
    }
}
END_TEST

Suite *suite_unitchains(void)
{
    Suite *suite = suite_create("unitchains");
    TCase *tcase = tcase_create("unitchains");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_set_timeout(tcase, 60);
    tcase_add_test(tcase, plans);
    tcase_add_test(tcase, linear_units);
    tcase_add_test(tcase, hardware);
    suite_add_tcase(suite, tcase);
    return suite;
}
