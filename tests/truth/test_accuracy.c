/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What memsim says of its own errors (graphs/machines/accuracyrows.c) is what
 * the measured steps of times.tsv say on which no rate was fitted, and the
 * measured peaks of peaks.tsv: each kind of run of which there are enough has
 * its row, with their number and their errors.
 *
 * accuracy.sh lets this suite write those rows (MEMSIM_ACCURACY names the file)
 * and a line for each run (MEMSIM_ACCURACY_POINTS), instead of comparing. */
#include "graphs/device.h"
#include "graphs/machines/accuracy.h"
#include "sim/graph.h"
#include "sim/machine.h"
#include "sim/report.h"
#include "tests/tests.h"
#include "tests/truth/truth.h"
#include "tools/job/result.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_RUNS 256u
#define MOST_KINDS 64u

/* Of times: device, kernels, tokens; of peaks: library, again. */
typedef struct kind {
    const char *device;
    uint64_t key[2];
    double percent[MOST_RUNS];
    ms_accuracy of;
} kind;

typedef struct kinds {
    kind all[MOST_KINDS];
    uint32_t n;
} kinds;

static kinds times, peaks;
static FILE *points;

static void add(kinds *of, const char *device, uint64_t first, uint64_t second,
                double percent)
{
    uint32_t i = 0;
    while (i < of->n &&
           (strcmp(of->all[i].device, device) != 0 ||
            of->all[i].key[0] != first || of->all[i].key[1] != second))
        i++;
    ck_assert_uint_lt(i, MOST_KINDS);
    if (i == of->n)
        of->all[of->n++] = (kind){.device = device, .key = {first, second}};
    ck_assert_uint_lt(of->all[i].of.runs, MOST_RUNS);
    of->all[i].percent[of->all[i].of.runs++] = percent;
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static int by_key(const void *a, const void *b)
{
    const kind *x = a, *y = b;
    int order = strcmp(x->device, y->device);
    for (uint32_t i = 0; i < 2 && order == 0; i++)
        order = (x->key[i] > y->key[i]) - (x->key[i] < y->key[i]);
    return order;
}

static void settle(kinds *of)
{
    qsort(of->all, of->n, sizeof *of->all, by_key);
    for (uint32_t i = 0; i < of->n; i++) {
        kind *it = &of->all[i];
        qsort(it->percent, it->of.runs, sizeof *it->percent, ascending);
        it->of.median_percent = it->percent[it->of.runs / 2];
        it->of.most_percent =
            it->percent[(uint32_t)ceil(0.95 * it->of.runs) - 1];
    }
}

/* ---- runs ---------------------------------------------------------------- */

/* The device that a run was on; that of a file is one of ours, in a machine
 * with other links. */
static const char *device_of_run(void)
{
    const ms_device *device;
    ms_fault fault = {0};
    ck_assert_int_eq(ms_device_find(truth_job()->device->name, &device, &fault),
                     MS_OK);
    return device->name;
}

static void put_point(const truth_table *table, uint32_t row, const char *half,
                      const char *group, double measured, double told)
{
    if (points != NULL)
        fprintf(points, "%s\t%s\t%s\t%.6g\t%.6g\n",
                truth_cell(table, row, "id"), half, group, measured, told);
}

static bool is_split(const ms_result *result)
{
    return result->machine->split_ranks > 1 ||
           result->shape.context_ranks > 1 || result->shape.expert_split > 0 ||
           result->report->n_ranks > 1;
}

static void run_time(const truth_table *table, uint32_t row)
{
    const char *options = truth_cell(table, row, "options");
    const char *half = truth_cell(table, row, "half");
    bool report = strcmp(half, "report") == 0;
    if (!report && points == NULL)
        return;
    const ms_result *result = truth_timed(options);
    double us = (double)truth_number(table, row, "microseconds");
    double told = truth_step_us(result);
    put_point(table, row, half, truth_cell(table, row, "group"), us, told);
    if (!report || result->report->ranks[0].h2d_bytes > 0)
        return; /* states on the host */
    const char *device = device_of_run();
    double percent = 100 * fabs(told / us - 1);
    uint64_t kernels = (uint64_t)result->training.kernels;
    uint64_t tokens = is_split(result) ? MS_ACCURACY_SPLIT
                      : result->graph->tokens > 0
                          ? (uint64_t)result->training.sequence
                          : 0;
    bool split = tokens == MS_ACCURACY_SPLIT;
    add(&times, device, kernels, split ? tokens : ms_accuracy_range(tokens),
        percent);
    if (tokens > 0 && !split)
        add(&times, device, kernels, MS_ACCURACY_ANY, percent);
    ck_assert_ptr_eq(result->accuracy,
                     ms_accuracy_time(device, (int64_t)kernels, tokens));
}

/* "allocated2": of rank 2; without a number, of the rank with the highest. */
static uint64_t read_of(const ms_report *report, const char *quantity)
{
    static const char digits[] = "0123456789";
    size_t word = strcspn(quantity, digits);
    uint32_t rank = quantity[word] == '\0'
                        ? report->worst
                        : (uint32_t)strtoul(quantity + word, NULL, 10);
    ck_assert_uint_lt(rank, report->n_ranks);
    const ms_peak *peak = &report->ranks[rank].peak;
    if (strncmp(quantity, "reserved", word) == 0)
        return peak->reserved_bytes;
    if (strncmp(quantity, "active", word) == 0)
        return peak->active_bytes;
    ck_assert(strncmp(quantity, "allocated", word) == 0);
    return peak->allocated_bytes;
}

static void run_peak(const truth_table *table, uint32_t row)
{
    ms_accuracy_peaks of;
    const ms_result *result = truth_peak(truth_cell(table, row, "options"));
    double bytes = (double)truth_number(table, row, "bytes");
    double told =
        (double)read_of(result->report, truth_cell(table, row, "quantity"));
    put_point(table, row, "peak", truth_cell(table, row, "source"), bytes,
              told);
    if (!ms_stepaccuracy_kind(truth_job(), result, &of))
        return;
    double percent = 100 * fabs(told / bytes - 1);
    add(&peaks, "", of.library, of.again, percent);
    add(&peaks, "", of.library, MS_ACCURACY_ANY, percent);
    ck_assert_ptr_eq(result->peak_accuracy,
                     ms_accuracy_peak(of.library, of.again != 0));
}

static void run_all(void)
{
    truth_table table;
    const char *path = getenv("MEMSIM_ACCURACY_POINTS");
    points = path != NULL ? fopen(path, "w") : NULL;
    times.n = peaks.n = 0;
    truth_read_here("times.tsv", &table);
    for (uint32_t row = 0; row < table.n_rows; row++)
        run_time(&table, row);
    truth_read_here("peaks.tsv", &table);
    for (uint32_t row = 0; row < table.n_rows; row++)
        run_peak(&table, row);
    if (points != NULL)
        fclose(points);
    settle(&times);
    settle(&peaks);
}

/* ---- the rows, compared -------------------------------------------------- */

/* Errors are told to a tenth of a percent. */
static void compare(const char *name, const char *quantity, double truth,
                    double said)
{
    truth_compare("accuracy", name, quantity, (uint64_t)llround(10 * truth),
                  (uint64_t)llround(10 * said));
}

static void check(const char *name, const kind *it, const ms_accuracy *said)
{
    ck_assert_msg((said != NULL) == (it->of.runs >= MS_ACCURACY_LEAST),
                  "%s: %u runs", name, it->of.runs);
    if (said == NULL)
        return;
    truth_compare("accuracy", name, "runs", it->of.runs, said->runs);
    compare(name, "median error, 0.1 %", it->of.median_percent,
            said->median_percent);
    compare(name, "error of 95 of 100, 0.1 %", it->of.most_percent,
            said->most_percent);
}

static uint32_t check_times(void)
{
    uint32_t rows = 0;
    char name[96];
    for (uint32_t i = 0; i < times.n; i++) {
        const kind *it = &times.all[i];
        const ms_accuracy *said = NULL;
        for (uint32_t k = 0; k < ms_accuracyrows_n_times; k++) {
            const ms_accuracy_times *at = &ms_accuracyrows_times[k];
            if (strcmp(at->device, it->device) == 0 &&
                (uint64_t)at->kernels == it->key[0] && at->tokens == it->key[1])
                said = &at->of;
        }
        snprintf(name, sizeof name, "%s, kernels %d, range %" PRIu64,
                 it->device, (int)it->key[0], it->key[1]);
        check(name, it, said);
        rows += it->of.runs >= MS_ACCURACY_LEAST;
    }
    return rows;
}

static uint32_t check_peaks(void)
{
    uint32_t rows = 0;
    char name[96];
    for (uint32_t i = 0; i < peaks.n; i++) {
        const kind *it = &peaks.all[i];
        const ms_accuracy *said = NULL;
        for (uint32_t k = 0; k < ms_accuracyrows_n_peaks; k++) {
            const ms_accuracy_peaks *at = &ms_accuracyrows_peaks[k];
            if (at->library == it->key[0] && at->again == it->key[1])
                said = &at->of;
        }
        snprintf(name, sizeof name, "peaks, library %d, again %" PRIu64,
                 (int)it->key[0], it->key[1]);
        check(name, it, said);
        rows += it->of.runs >= MS_ACCURACY_LEAST;
    }
    return rows;
}

/* ---- the rows, written --------------------------------------------------- */

static void put_key(FILE *file, uint64_t key)
{
    if (key == MS_ACCURACY_ANY)
        fprintf(file, "MS_ACCURACY_ANY");
    else if (key == MS_ACCURACY_SPLIT)
        fprintf(file, "MS_ACCURACY_SPLIT");
    else if (key == MS_ACCURACY_ANY - 1)
        fprintf(file, "MS_ACCURACY_ANY - 1");
    else
        fprintf(file, "%" PRIu64, key);
}

static void write_kinds(FILE *file, const kinds *of, bool has_device)
{
    for (uint32_t i = 0; i < of->n; i++) {
        const kind *it = &of->all[i];
        if (it->of.runs < MS_ACCURACY_LEAST)
            continue;
        fprintf(file, "    {");
        if (has_device)
            fprintf(file, "\"%s\", ", it->device);
        put_key(file, it->key[0]);
        fprintf(file, ", ");
        put_key(file, it->key[1]);
        fprintf(file, ", {%u, %.1f, %.1f}},\n", it->of.runs,
                it->of.median_percent, it->of.most_percent);
    }
}

static void write_rows(FILE *file)
{
    fprintf(file, "/* SPDX-License-Identifier: GPL-3.0-or-later */\n"
                  "/* Made by tests/truth/accuracy.sh; do not edit. */\n"
                  "#include \"graphs/machines/accuracy.h\"\n\n"
                  "/* clang-format off */\n"
                  "/* device, ms_kernels, tokens, {runs, median, most} */\n"
                  "const ms_accuracy_times ms_accuracyrows_times[] = {\n");
    write_kinds(file, &times, true);
    fprintf(file, "};\nconst uint32_t ms_accuracyrows_n_times =\n"
                  "    sizeof ms_accuracyrows_times / "
                  "sizeof *ms_accuracyrows_times;\n\n"
                  "/* ms_accuracy_library, again, {runs, median, most} */\n"
                  "const ms_accuracy_peaks ms_accuracyrows_peaks[] = {\n");
    write_kinds(file, &peaks, false);
    fprintf(file, "};\nconst uint32_t ms_accuracyrows_n_peaks =\n"
                  "    sizeof ms_accuracyrows_peaks / "
                  "sizeof *ms_accuracyrows_peaks;\n");
}

START_TEST(errors_are_what_is_said)
{
    const char *path = getenv("MEMSIM_ACCURACY");
    truth_begin();
    run_all();
    if (path != NULL) {
        FILE *file = fopen(path, "w");
        ck_assert_ptr_nonnull(file);
        write_rows(file);
        fclose(file);
    } else {
        ck_assert_uint_eq(check_times(), ms_accuracyrows_n_times);
        ck_assert_uint_eq(check_peaks(), ms_accuracyrows_n_peaks);
    }
    truth_end();
}
END_TEST

/* What is not of a kind that was measured has no error. */
START_TEST(others_are_not_known)
{
    truth_begin();
    static const struct {
        const char *run;
        bool peak; /* is known */
    } others[] = {
        {"gpt2 --device 4090", true},
        {"gpt2 --kernels fused", true},
        {"resnet50 --device 4090", false},
        {"gpt2 -p swap:save_on_cpu", false},
        {"gpt2 -p offload:optimizer", false},
        {"gpt2 --device 4090 -p zero:1,dp=8", false},
        {"gpt2 --device 4090 --set training.device=cpu", false},
        {"gpt2 --gpus 2 -p tensor:2", false},
        {"gpt2 --kernels nanotron", true},
        {"gpt2 --kernels nanotron --gpus 8 -p tensor:4,sp+zero:1", true},
        {"gpt2 --kernels nanotron --batch 4 -p pipeline:2+microbatch:4", true},
        {"gpt2 --kernels nanotron -p zero:3,dp=8", false},
        {"gpt2 --kernels nanotron -p swap:save_on_cpu", false},
        {"gpt2 --kernels megatron", true},
        {"gpt2 --kernels megatron --gpus 8 -p tensor:4,sp+zero:1", true},
        {"gpt2 --kernels megatron --batch 4 -p pipeline:2+microbatch:4", true},
        {"gpt2 --kernels megatron --gpus 8 -p tensor:4+zero:3", false},
        {"gpt2 --batch 4 -p microbatch:4 --set training.mode=inference",
         false}};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        const ms_result *result =
            truth_run("%s --allocator exact", others[i].run);
        const ms_report *report = result->report;
        const ms_rank_report *rank = &report->ranks[report->worst];
        ck_assert_msg(result->accuracy == NULL, "%s", others[i].run);
        ck_assert_uint_eq(rank->time.error_percent, 0);
        ck_assert_uint_eq(rank->time.measured_runs, 0);
        ck_assert_msg((result->peak_accuracy != NULL) == others[i].peak, "%s",
                      others[i].run);
        ck_assert_int_eq(rank->peak.error_percent > 0, others[i].peak);
    }
    truth_end();
}
END_TEST

/* What a user reads is the row, rounded up to a whole percent. */
START_TEST(known_ones_are_told)
{
    truth_begin();
    const ms_result *result = truth_run("gpt2 --device a100 --batch 8");
    const ms_rank_report *rank = truth_rank(result);
    const ms_accuracy *time = result->accuracy, *peak = result->peak_accuracy;
    ck_assert_ptr_nonnull(time);
    ck_assert_ptr_nonnull(peak);
    ck_assert_uint_eq(rank->time.error_percent,
                      (uint64_t)ceil(time->most_percent));
    ck_assert_uint_eq(rank->time.measured_runs, time->runs);
    ck_assert_uint_eq(rank->peak.error_percent,
                      (uint64_t)ceil(peak->most_percent));
    ck_assert_uint_eq(rank->peak.measured_runs, peak->runs);
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
    tcase_add_test(tcase, known_ones_are_told);
    suite_add_tcase(suite, tcase);
    return suite;
}
