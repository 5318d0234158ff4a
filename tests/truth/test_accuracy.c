/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What memsim says of its own errors (graphs/machines/accuracy.c) is what the
 * measured steps of times.tsv say on which no rate was fitted: each kind of run
 * of which there are enough has its row, with their number and their errors. */
#include "graphs/device.h"
#include "graphs/machines/accuracy.h"
#include "sim/graph.h"
#include "sim/report.h"
#include "tests/tests.h"
#include "tests/truth/truth.h"
#include "tools/job/result.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_RUNS 256u
#define MOST_KINDS 64u
#define DEFAULT_DEVICE "h100"

typedef struct kind {
    ms_accuracy of;
    double percent[MOST_RUNS];
} kind;

static kind kinds[MOST_KINDS];
static uint32_t n_kinds;

static void add(const char *device, int64_t kernels, uint64_t tokens,
                double percent)
{
    uint32_t i = 0;
    while (i < n_kinds &&
           (strcmp(kinds[i].of.device, device) != 0 ||
            kinds[i].of.kernels != kernels || kinds[i].of.tokens != tokens))
        i++;
    ck_assert_uint_lt(i, MOST_KINDS);
    if (i == n_kinds)
        kinds[n_kinds++].of = (ms_accuracy){
            .device = device, .kernels = kernels, .tokens = tokens};
    ck_assert_uint_lt(kinds[i].of.runs, MOST_RUNS);
    kinds[i].percent[kinds[i].of.runs++] = percent;
}

/* The full name of the device that a run names. */
static const char *device_of(const char *options)
{
    char name[64] = DEFAULT_DEVICE;
    const char *at = strstr(options, "--device ");
    const ms_device *device;
    ms_fault fault = {0};
    if (at != NULL)
        ck_assert_int_eq(sscanf(at, "--device %63s", name), 1);
    ck_assert_int_eq(ms_device_find(name, &device, &fault), MS_OK);
    return device->name;
}

static void run(const truth_table *table, uint32_t row)
{
    const char *options = truth_cell(table, row, "options");
    const char *device = device_of(options);
    const ms_result *result = truth_timed(options);
    double us = (double)truth_number(table, row, "microseconds");
    double told = (double)truth_rank(result)->time.step_ns / 1e3;
    double percent = 100 * fabs(told / us - 1);
    int64_t kernels = result->training.kernels;
    uint64_t tokens =
        result->graph->tokens > 0 ? (uint64_t)result->training.sequence : 0;
    add(device, kernels, ms_accuracy_range(tokens), percent);
    if (tokens > 0)
        add(device, kernels, MS_ACCURACY_ANY, percent);
    const ms_accuracy *said = ms_accuracy_find(device, kernels, tokens);
    ck_assert_ptr_eq(result->accuracy, said);
    if (said != NULL)
        ck_assert_uint_eq(truth_rank(result)->time.error_percent,
                          (uint64_t)ceil(said->most_percent));
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Errors are told to a tenth of a percent. */
static void compare(const char *name, const char *quantity, double truth,
                    double said)
{
    truth_compare("accuracy", name, quantity, (uint64_t)llround(10 * truth),
                  (uint64_t)llround(10 * said));
}

static void check(kind *it)
{
    const ms_accuracy *row = NULL;
    char name[96];
    for (uint32_t i = 0; i < MS_ACCURACY_ROWS; i++) {
        const ms_accuracy *at = &ms_accuracy_rows[i];
        if (strcmp(at->device, it->of.device) == 0 &&
            at->kernels == it->of.kernels && at->tokens == it->of.tokens)
            row = at;
    }
    snprintf(name, sizeof name, "%s, kernels %d, range %llu", it->of.device,
             (int)it->of.kernels, (unsigned long long)it->of.tokens);
    ck_assert_msg((row != NULL) == (it->of.runs >= MS_ACCURACY_LEAST),
                  "%s: %u runs", name, it->of.runs);
    if (row == NULL)
        return;
    qsort(it->percent, it->of.runs, sizeof *it->percent, ascending);
    uint32_t last = (uint32_t)(0.95 * (it->of.runs - 1) + 0.5);
    truth_compare("accuracy", name, "runs", it->of.runs, row->runs);
    compare(name, "median error, 0.1 %", it->percent[it->of.runs / 2],
            row->median_percent);
    compare(name, "error of 95 of 100, 0.1 %", it->percent[last],
            row->most_percent);
}

START_TEST(errors_are_what_is_said)
{
    truth_table table;
    uint32_t rows = 0;
    truth_begin();
    truth_read_here("times.tsv", &table);
    for (uint32_t row = 0; row < table.n_rows; row++)
        if (strcmp(truth_cell(&table, row, "half"), "report") == 0)
            run(&table, row);
    for (uint32_t i = 0; i < n_kinds; i++) {
        check(&kinds[i]);
        rows += kinds[i].of.runs >= MS_ACCURACY_LEAST;
    }
    ck_assert_uint_eq(rows, MS_ACCURACY_ROWS);
    truth_end();
}
END_TEST

/* What is not of a kind that was measured has no error. */
START_TEST(others_are_not_known)
{
    truth_begin();
    static const char *const others[] = {
        "gpt2 --device 4090",
        "gpt2 --kernels fused",
        "resnet50",
        "gpt2 -p swap:save_on_cpu",
        "gpt2 -p offload:optimizer",
        "gpt2 --batch 4 -p microbatch:4 --set training.mode=inference"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        const ms_result *result = truth_run("%s --allocator exact", others[i]);
        ck_assert_msg(result->accuracy == NULL, "%s", others[i]);
        ck_assert_uint_eq(truth_rank(result)->time.error_percent, 0);
        ck_assert_uint_eq(truth_rank(result)->time.measured_runs, 0);
    }
    truth_end();
}
END_TEST

Suite *suite_accuracy(void)
{
    Suite *suite = suite_create("accuracy");
    TCase *tcase = tcase_create("accuracy");
    tcase_set_timeout(tcase, 240);
    tcase_add_test(tcase, errors_are_what_is_said);
    tcase_add_test(tcase, others_are_not_known);
    suite_add_tcase(suite, tcase);
    return suite;
}
