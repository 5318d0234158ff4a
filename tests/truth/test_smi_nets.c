/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What nvidia-smi showed of training runs on one DGX Station (GPUMemNet, whose
 * licence keeps its rows out of this tree): timm's models, by batch, and MLPs.
 * Sampled once a second; fp32, SGD with momentum (and timm's weight decay,
 * whose copies of all gradients are the peak of small batches) or Adam. */
#include "sim/base/files.h"
#include "sim/graph.h"
#include "sim/report.h"
#include "tests/tests.h"
#include "tests/truth/truth.h"
#include "tools/job/result.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MIB 1048576.0
#define MOST_ROWS 1024
#define N_BATCHES 5
static const uint32_t batches[N_BATCHES] = {8, 16, 32, 64, 128};

/* A run in which autotuning took all memory that there was
 * (truth/published3). */
#define ALL_MIB 39000
/* The noise of sampling: at twice the batch a figure may be lower by this
 * factor, not by more. */
#define SLACK 0.98

#define TIMM_SGD "--optimizer momentum --set training.weight_decay=yes "
#define STATION                                                                \
    "--precision fp32 --device a100-40gb-sxm --memory 80GiB "                  \
    "--allocator torch --set training.cuda=dgx-station"

typedef struct errors {
    double percent[MOST_ROWS];
    uint32_t n;
} errors;

static void add(errors *all, const ms_result *result, double truth_mib)
{
    double mib = (double)ms_capacity_used(result->report) / MIB;
    ck_assert_uint_lt(all->n, MOST_ROWS);
    all->percent[all->n++] = fabs(mib - truth_mib) / truth_mib * 100;
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Checks that this share of the errors is within so many hundredths of a
 * percent. */
static void within(errors *all, const char *name, const char *quantity,
                   double share, uint64_t hundredths)
{
    ck_assert_uint_gt(all->n, 0);
    qsort(all->percent, all->n, sizeof *all->percent, ascending);
    double is = ceil(all->percent[(uint32_t)(share * all->n)] * 100);
    truth_compare("nvidia-smi nets", name, quantity, hundredths,
                  is > (double)hundredths ? (uint64_t)is : hundredths);
}

static void read_rows(const char *path, ms_arena *arena, char **rows)
{
    ms_fault fault = {0};
    size_t length;
    ck_assert_int_eq(ms_files_read(path, 1 << 26, arena, rows, &length, &fault),
                     MS_OK);
}

/* ---- timm ---------------------------------------------------------------- */

/* The figure of a model at a batch; 0: it has no row. */
static double value_of(const char *rows, const char *name, uint32_t batch)
{
    char id[128];
    snprintf(id, sizeof id, "\"gmn_timm_%s_b%u\"", name, (unsigned)batch);
    const char *row = strstr(rows, id);
    const char *value = row ? strstr(row, "\"value\":") : NULL;
    return value ? strtod(value + 8, NULL) : 0;
}

static bool rises(const double *mib, uint32_t set)
{
    double last = 0;
    for (uint32_t i = 0; i < N_BATCHES; i++) {
        if ((set >> i & 1) == 0)
            continue;
        if (mib[i] == 0 || mib[i] >= ALL_MIB || mib[i] < last * SLACK)
            return false;
        last = mib[i];
    }
    return true;
}

/* Finds the largest set of batches whose figures rise. Those left out ran
 * out of memory (they show less than half the batch does), or were sampled
 * while kernels were being tried (they show more than twice the batch does). */
static uint32_t steady(const double *mib)
{
    uint32_t best = 0;
    for (uint32_t set = 1; set < 1u << N_BATCHES; set++)
        if (rises(mib, set) &&
            __builtin_popcount(set) > __builtin_popcount(best))
            best = set;
    return best;
}

static const ms_result *run_net(const char *command, uint32_t batch)
{
    char path[TESTS_PATH], relative[TESTS_PATH];
    if (strncmp(command, "files/", 6) != 0)
        return truth_run("%s --batch %u " TIMM_SGD STATION, command,
                         (unsigned)batch);
    size_t length = strcspn(command, " ");
    snprintf(relative, sizeof relative, "tests/truth/%.*s", (int)length,
             command);
    tests_source(relative, path);
    return truth_run("%s%s --batch %u " TIMM_SGD STATION, path,
                     command + length, (unsigned)batch);
}

static void add_net(errors *all, const char *rows, const char *name,
                    const char *command)
{
    double mib[N_BATCHES];
    for (uint32_t i = 0; i < N_BATCHES; i++)
        mib[i] = value_of(rows, name, batches[i]);
    uint32_t set = steady(mib);
    for (uint32_t i = 0; i < N_BATCHES; i++)
        if (set >> i & 1)
            add(all, run_net(command, batches[i]), mib[i]);
}

/* The half of the models on which no rate was fitted. */
START_TEST(timm_models)
{
    char path[TESTS_PATH], *rows = NULL;
    truth_table table;
    ms_arena arena = {0};
    errors all = {.n = 0};
    if (!tests_truth("published3/timm_memory.json", path))
        return;
    truth_begin();
    read_rows(path, &arena, &rows);
    truth_read_here("smi_nets.tsv", &table);
    for (uint32_t row = 0; row < table.n_rows; row++)
        if (strcmp(truth_cell(&table, row, "half"), "report") == 0)
            add_net(&all, rows, truth_cell(&table, row, "case"),
                    truth_cell(&table, row, "command"));
    within(&all, "timm", "median error within 4 %", 0.5, 400);
    within(&all, "timm", "95 of 100 within 12 %", 0.95, 1200);
    ms_arena_free(&arena);
    truth_end();
}
END_TEST

START_TEST(timm_parameters)
{
    truth_table table;
    truth_begin();
    truth_read_here("smi_nets.tsv", &table);
    for (uint32_t row = 0; row < table.n_rows; row++) {
        uint64_t truth = truth_number(&table, row, "parameters");
        const ms_result *result =
            run_net(truth_cell(&table, row, "command"), 1);
        if (truth > 0)
            truth_compare("timm", truth_cell(&table, row, "case"),
                          "parameters, 10^4", truth,
                          (result->graph->parameters + 5000) / 10000);
    }
    truth_end();
}
END_TEST

/* ---- MLPs ---------------------------------------------------------------- */

static const char *const mlp_layers[][2] = {
    {"batch_normalization", "batch_norm"},
    {"dropout", "dropout"},
    {"Softmax", "softmax"},
    {"Softplus", "softplus"},
    {"PReLU", "prelu"},
    {"SiLU", "silu"},
    {"SELU", "selu"},
    {"ReLU", "relu"},
    {"GELU", "gelu"},
    {"Mish", "mish"},
    {"LeakyReLU", "leaky_relu"},
    {"Tanh", "tanh"},
    {"ELU", "elu"},
    {"Sigmoid", "sigmoid"}};

/* Reads "('linear', 1307, 3419112)": the length of the type, and the
 * numbers. */
static size_t read_layer(const char *text, uint64_t *out, uint64_t *parameters)
{
    size_t length = strcspn(text + 2, "'");
    char *end;
    *out = strtoull(text + 2 + length + 3, &end, 10);
    *parameters = strtoull(end + 2, NULL, 10);
    return length;
}

/* Writes "('linear', 1307, 3419112), ..." as the layers of a model; *inputs
 * follows from the parameters of the first. */
static void put_layers(const char *text, ms_text *json, uint64_t *inputs)
{
    *inputs = 0;
    while ((text = strstr(text, "('")) != NULL) {
        uint64_t out, parameters;
        size_t length = read_layer(text, &out, &parameters);
        const char *type = text + 2;
        if (strncmp(type, "linear'", 7) == 0) {
            if (*inputs == 0)
                *inputs = (parameters - out) / out;
            ms_text_add(json, "{\"type\": \"linear\", \"out\": %llu}, ",
                        (unsigned long long)out);
        }
        for (size_t i = 0; i < sizeof mlp_layers / sizeof *mlp_layers; i++)
            if (strlen(mlp_layers[i][0]) == length &&
                strncmp(type, mlp_layers[i][0], length) == 0)
                ms_text_add(json, "{\"type\": \"%s\"}, ", mlp_layers[i][1]);
        text = type;
    }
}

static void add_mlp(errors *all, const char *row, ms_arena *arena)
{
    ms_text layers = {.arena = arena}, json = {.arena = arena};
    uint64_t inputs;
    char line[4096];
    snprintf(line, sizeof line, "%.*s", (int)strcspn(row, "\n"), row);
    char *end = strstr(line, "\",\"batch\":");
    ck_assert_ptr_nonnull(end);
    *end = '\0';
    put_layers(strstr(line, "\"layers\":"), &layers, &inputs);
    ms_text_add(&json,
                "{\"memsim\": 1, \"input\": {\"shape\": [%llu]}, \"layers\": "
                "[%s{\"type\": \"cross_entropy\"}]}",
                (unsigned long long)inputs, layers.bytes);
    long batch = strtol(end + 10, NULL, 10);
    const char *value = strstr(end + 1, "\"value\":");
    add(all,
        truth_run_json(json.bytes,
                       "mlp --batch %ld --optimizer adam "
                       "--set training.optimizer_impl=foreach " STATION,
                       batch),
        strtod(value + 8, NULL));
}

START_TEST(mlps)
{
    char path[TESTS_PATH], *rows = NULL;
    ms_arena arena = {0};
    errors all = {.n = 0};
    if (!tests_truth("published3/mlp_memory.json", path))
        return;
    truth_begin();
    read_rows(path, &arena, &rows);
    for (const char *row = strstr(rows, "{\"id\""); row != NULL;
         row = strstr(row + 1, "{\"id\""))
        add_mlp(&all, row, &arena);
    within(&all, "MLPs", "median error within 0.3 %", 0.5, 30);
    within(&all, "MLPs", "95 of 100 within 2 %", 0.95, 200);
    ms_arena_free(&arena);
    truth_end();
}
END_TEST

Suite *suite_smi_nets(void)
{
    Suite *suite = suite_create("smi_nets");
    TCase *tcase = tcase_create("smi_nets");
    tcase_set_timeout(tcase, 240);
    tcase_add_test(tcase, timm_models);
    tcase_add_test(tcase, timm_parameters);
    tcase_add_test(tcase, mlps);
    suite_add_tcase(suite, tcase);
    return suite;
}
