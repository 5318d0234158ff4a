/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/truth/truth.h"
#include "graphs/model.h"
#include "graphs/training.h"
#include "policies/common/policy.h"
#include "sim/base/files.h"
#include "sim/names.h"
#include "sim/plan.h"
#include "sim/report.h"
#include "tests/tests.h"
#include "tools/cli/commands.h"
#include "tools/from/from.h"
#include "tools/job/job.h"
#include "tools/job/result.h"
#include "tools/job/settings.h"
#include "tools/options/options.h"

#include <fnmatch.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_WORDS 64
#define MOST_OPTIONS (4 * TESTS_PATH)
#define MOST_BYTES (UINT64_C(1) << 26)

static ms_arena tables, keep, trial; /* tables lasts until truth_end */
static ms_result result;
static ms_job run_job; /* of the last run */
static truth_table differences;
static differ_table compared;
static char run_words[1024]; /* the last run as a user would type it */
static FILE *rows; /* each comparison is a line in it; NULL: nobody asked */

static void check(ms_err err, const ms_fault *fault, const char *what)
{
    ck_assert_msg(err == MS_OK, "%s: %s: %s", what, fault->where, fault->what);
}

void truth_begin(void)
{
    const char *path = getenv("MEMSIM_TRUTH_TABLE");
    truth_read_here("differences.tsv", &differences);
    compared = (differ_table){.name = "numbers from outside"};
    run_words[0] = '\0';
    if (path != NULL)
        rows = fopen(path, "a");
}

void truth_end(void)
{
    if (rows != NULL)
        fclose(rows);
    rows = NULL;
    ms_arena_free(&trial);
    ms_arena_free(&keep);
    ms_arena_free(&tables);
    ck_assert_msg(compared.different == 0, "%s", differ_told(&compared));
}

/* ---- runs ---------------------------------------------------------------- */

static void read_json(const ms_job *job, const char *json, ms_fault *fault)
{
    check(ms_read_model_bytes(job->model, json, strlen(json), job->overrides,
                              job->n_overrides, &keep, &result.model, fault),
          fault, job->model);
    result.training = job->training;
    check(ms_resolve_training(&result.training, &result.model, fault), fault,
          job->model);
    check(ms_dag_order(&result.model, &keep, fault), fault, job->model);
}

static void read_words(char *line, ms_job *job, ms_fault *fault)
{
    const char *word[MOST_WORDS];
    uint32_t n = 0;
    ms_from from;
    ms_arguments *arguments = ms_arena_take(&keep, 1, sizeof *arguments);
    for (char *w = strtok(line, " "); w != NULL; w = strtok(NULL, " ")) {
        ck_assert_uint_lt(n, MOST_WORDS);
        word[n++] = w;
    }
    check(ms_options_parse(MS_FOR_RUN, word, n, &keep, arguments, fault), fault,
          line);
    check(ms_from_expand("run", MS_FOR_RUN, &keep, arguments, &from, fault),
          fault, line);
    check(ms_settings_read(arguments, &keep, job, fault), fault, line);
}

static const ms_result *run(const char *json, const char *format, va_list list)
{
    char words[1024];
    ms_fault fault = {0};
    ms_arena_reset(&keep);
    ms_arena_reset(&trial);
    vsnprintf(words, sizeof words, format, list);
    snprintf(run_words, sizeof run_words, "%s", words);
    char *line = ms_arena_text(&keep, words, strlen(words));
    read_words(line, &run_job, &fault);
    result = (ms_result){0};
    if (json != NULL)
        read_json(&run_job, json, &fault);
    else
        check(ms_jobway_read(&run_job, &keep, &result, &fault), &fault, words);
    check(ms_jobway_lower(&run_job, &keep, &result, &fault), &fault, words);
    check(ms_jobway_step(&run_job, &trial, &result, &fault), &fault, words);
    return &result;
}

const ms_result *truth_run(const char *format, ...)
{
    va_list list;
    va_start(list, format);
    const ms_result *made = run(NULL, format, list);
    va_end(list);
    return made;
}

const ms_result *truth_run_json(const char *json, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    const ms_result *made = run(json, format, list);
    va_end(list);
    return made;
}

/* A device that is a file lies here, too. */
static void find_device(const char *options, char *out, size_t size)
{
    static const char word[] = "--device files/";
    char path[TESTS_PATH], relative[TESTS_PATH];
    const char *at = strstr(options, word);
    snprintf(out, size, "%s", options);
    if (at == NULL)
        return;
    at += strlen("--device ");
    size_t length = strcspn(at, " ");
    snprintf(relative, sizeof relative, "tests/truth/%.*s", (int)length, at);
    tests_source(relative, path);
    snprintf(out, size, "%.*s%s%s", (int)(at - options), options, path,
             at + length);
}

static const ms_result *run_row(const char *row, const char *more)
{
    char path[TESTS_PATH], relative[TESTS_PATH], options[MOST_OPTIONS];
    find_device(row, options, sizeof options);
    if (strncmp(options, "files/", 6) != 0 && strncmp(options, "./", 2) != 0)
        return truth_run("%s%s", options, more);
    size_t length = strcspn(options, " ");
    snprintf(relative, sizeof relative, "tests/truth/%.*s", (int)length,
             options);
    tests_source(relative, path);
    return truth_run("%s%s%s", path, options + length, more);
}

const ms_result *truth_timed(const char *options)
{
    return run_row(options, " --allocator exact");
}

const ms_result *truth_peak(const char *options)
{
    return run_row(options, "");
}

const ms_job *truth_job(void)
{
    return &run_job;
}

const ms_rank_report *truth_rank(const ms_result *made)
{
    ck_assert_uint_eq(made->report->n_ranks, 1);
    return &made->report->ranks[0];
}

double truth_step_us(const ms_result *made)
{
    uint64_t most_ns = 0;
    for (uint32_t i = 0; i < made->report->n_ranks; i++)
        most_ns = truth_larger(most_ns, made->report->ranks[i].time.step_ns);
    return (double)most_ns / 1e3;
}

uint64_t truth_larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* ---- comparisons --------------------------------------------------------- */

static bool matches(const char *pattern, const char *text)
{
    return fnmatch(pattern, text, 0) == 0;
}

/* The difference that is listed as expected, with its mechanism. */
static int64_t expected(const char *group, const char *name,
                        const char *quantity, const char **mechanism)
{
    *mechanism = "";
    for (uint32_t r = 0; r < differences.n_rows; r++) {
        if (!matches(truth_cell(&differences, r, "group"), group) ||
            !matches(truth_cell(&differences, r, "case"), name) ||
            !matches(truth_cell(&differences, r, "quantity"), quantity))
            continue;
        *mechanism = truth_cell(&differences, r, "mechanism");
        return strtoll(truth_cell(&differences, r, "difference"), NULL, 10);
    }
    return 0;
}

static void note(const char *group, const char *name, const char *quantity,
                 uint64_t truth, uint64_t memsim, int64_t want,
                 const char *mechanism)
{
    int64_t is = (int64_t)(memsim - truth);
    if (rows != NULL)
        fprintf(rows, "%s\t%s\t%s\t%" PRIu64 "\t%" PRIu64 "\t%" PRId64 "\t%s\n",
                group, name, quantity, truth, memsim, is,
                is == want ? mechanism : "NOT EXPECTED");
}

/* Says where to look: at the run, then at the list of understood
 * differences. */
static void look_at(int64_t want, char *at, size_t size)
{
    int n = 0;
    if (run_words[0] != '\0')
        n = snprintf(at, size, "memsim run %s; ", run_words);
    n += snprintf(at + n, size - (size_t)n, "tests/truth/differences.tsv");
    if (want != 0)
        snprintf(at + n, size - (size_t)n, ", which says %+" PRId64, want);
}

void truth_compare(const char *group, const char *name, const char *quantity,
                   uint64_t truth, uint64_t memsim)
{
    const char *mechanism;
    int64_t want = expected(group, name, quantity, &mechanism);
    note(group, name, quantity, truth, memsim, want, mechanism);
    char row[256], at[1400];
    snprintf(row, sizeof row, "%s, %s", group, name);
    look_at(want, at, sizeof at);
    differ_number(&compared, row, quantity, truth + (uint64_t)want, memsim, at);
}

void truth_compare_words(const char *group, const char *name,
                         const char *quantity, const char *truth,
                         const char *memsim)
{
    char row[256], at[1400];
    const char *mechanism;
    bool same = strcmp(truth, memsim) == 0;
    int64_t want = expected(group, name, quantity, &mechanism);
    note(group, name, quantity, 1, same, want, mechanism);
    if ((int64_t)same - 1 == want)
        return;
    snprintf(row, sizeof row, "%s, %s", group, name);
    look_at(want, at, sizeof at);
    differ_words(&compared, row, quantity, truth, memsim, at);
}

/* ---- errors of kernels --------------------------------------------------- */

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void within(const char *group, const char *name, const char *quantity,
                   uint64_t percent, double error)
{
    uint64_t is = (uint64_t)ceil(100 * error - 1e-9);
    truth_compare(group, name, quantity, percent, is > percent ? is : percent);
}

static void tell(const char *name, uint32_t n, double median, double most)
{
    const char *path = getenv("MEMSIM_KERNELS");
    FILE *file = path != NULL ? fopen(path, "a") : NULL;
    if (file == NULL)
        return;
    const char *comma = strchr(name, ',');
    ck_assert_ptr_nonnull(comma);
    fprintf(file, "%.*s\t%s\t%" PRIu32 "\t%.1f\t%.1f\n", (int)(comma - name),
            name, comma + 2, n, 100 * median, 100 * most);
    fclose(file);
}

void truth_errors(const char *group, const char *name, double *error,
                  uint32_t n, uint64_t median, uint64_t most)
{
    ck_assert_uint_gt(n, 0);
    qsort(error, n, sizeof *error, ascending);
    double half = error[n / 2], last = error[(uint32_t)(0.95 * (n - 1) + 0.5)];
    within(group, name, "median error, %", median, half);
    within(group, name, "error of 95 of 100, %", most, last);
    tell(name, n, half, last);
}

/* ---- tables -------------------------------------------------------------- */

/* Ends the cell at *at and moves *at behind it; *last: the line ended as
 * well. */
static char *next_cell(char **at, char separator, bool *last)
{
    const char ends[] = {separator, '\r', '\n', '\0'};
    char *cell = *at;
    char *end = cell + strcspn(cell, ends);
    *last = *end != separator;
    *at = *last ? end + strspn(end, "\r\n") : end + 1;
    *end = '\0';
    return cell;
}

static void skip_comments(char **at)
{
    while (**at == '#') {
        *at += strcspn(*at, "\n");
        *at += strspn(*at, "\n");
    }
}

static void split(char *at, char separator, truth_table *table)
{
    uint32_t n = 0, capacity = 0;
    skip_comments(&at);
    while (*at != '\0') {
        bool last;
        table->cell = ms_arena_grow(&tables, table->cell, &capacity, n + 1,
                                    sizeof *table->cell);
        ck_assert_ptr_nonnull(table->cell);
        table->cell[n++] = next_cell(&at, separator, &last);
        if (!last)
            continue;
        if (table->n_columns == 0)
            table->n_columns = n;
        ck_assert_msg(n % table->n_columns == 0, "ragged: %s",
                      table->cell[n - 1]);
        skip_comments(&at);
    }
    ck_assert_uint_gt(table->n_columns, 0);
    table->n_rows = n / table->n_columns - 1;
}

void truth_read(const char *path, truth_table *table)
{
    ms_fault fault = {0};
    char *bytes;
    size_t length;
    const char *ending = strrchr(path, '.');
    *table = (truth_table){0};
    check(ms_files_read(path, MOST_BYTES, &tables, &bytes, &length, &fault),
          &fault, path);
    split(bytes, ending != NULL && strcmp(ending, ".csv") == 0 ? ',' : '\t',
          table);
}

void truth_read_here(const char *name, truth_table *table)
{
    char relative[64], path[TESTS_PATH];
    snprintf(relative, sizeof relative, "tests/truth/%s", name);
    tests_source(relative, path);
    truth_read(path, table);
}

const char *truth_cell(const truth_table *table, uint32_t row,
                       const char *column)
{
    for (uint32_t c = 0; c < table->n_columns; c++)
        if (strcmp(table->cell[c], column) == 0)
            return table->cell[(row + 1) * table->n_columns + c];
    ck_abort_msg("no column %s", column);
    return NULL;
}

uint64_t truth_number(const truth_table *table, uint32_t row,
                      const char *column)
{
    const char *cell = truth_cell(table, row, column);
    char *end;
    uint64_t number = strtoull(cell, &end, 10);
    ck_assert_msg(end != cell && *end == '\0', "not a number: %s", cell);
    return number;
}

/* ---- op graphs ----------------------------------------------------------- */

static char *read_file(const char *name)
{
    char relative[TESTS_PATH], path[TESTS_PATH];
    snprintf(relative, sizeof relative, "tests/truth/%s", name);
    tests_source(relative, path);
    FILE *file = fopen(path, "r");
    ck_assert_msg(file != NULL, "cannot read %s", path);
    ck_assert_int_eq(fseek(file, 0, SEEK_END), 0);
    size_t n = (size_t)ftell(file);
    rewind(file);
    char *bytes = calloc(1, n + 1);
    ck_assert_uint_eq(fread(bytes, 1, n, file), n);
    fclose(file);
    return bytes;
}

char *truth_graph(const char *file, const char *name)
{
    char key[128];
    char *bytes = read_file(file);
    snprintf(key, sizeof key, "\"case\":\"%s\",", name);
    const char *at = strstr(bytes, key);
    ck_assert_msg(at != NULL, "%s has no %s", file, name);
    while (at > bytes && at[-1] != '\n')
        at--;
    char *line = strndup(at, strcspn(at, "\n"));
    free(bytes);
    return line;
}

/* ---- plans --------------------------------------------------------------- */

bool truth_is_state(const ms_plan *plan, uint32_t op)
{
    uint32_t loss = MS_NONE;
    for (uint32_t m = 0; m < plan->n_marks; m++)
        if (plan->marks[m].mark == MS_MARK_AFTER_FORWARD)
            loss = plan->marks[m].op;
    return plan->op[op].pass == MS_COPY && op > loss;
}
