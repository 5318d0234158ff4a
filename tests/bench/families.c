/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/bench/families.h"

#include "graphs/device.h"
#include "graphs/model.h"
#include "graphs/training.h"
#include "policies/common/policy.h"
#include "sim/graph.h"
#include "tests/bench/demand.h"
#include "tests/bench/times.h"
#include "tools/cli/commands.h"
#include "tools/job/job.h"
#include "tools/job/result.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEEPSEEK "{\"model_type\": \"deepseek_v3\"}"
#define RUNS 21
#define PROCESSES 3

/* Reads the configuration and lowers it; times of both. */
static void lower(const ms_job *job, ms_arena *keep, ms_result *result,
                  double *read_ns, double *lower_ns)
{
    ms_fault fault = {0};
    *result = (ms_result){0};
    result->training = job->training;
    double t0 = bench_times_now_ns();
    demand(ms_read_model_bytes("deepseek-v3.json", DEEPSEEK, strlen(DEEPSEEK),
                               NULL, 0, keep, &result->model, &fault),
           &fault);
    demand(ms_resolve_training(&result->training, &result->model, &fault),
           &fault);
    demand(ms_dag_order(&result->model, keep, &fault), &fault);
    double t1 = bench_times_now_ns();
    demand(ms_jobway_lower(job, keep, result, &fault), &fault);
    *read_ns = t1 - t0;
    *lower_ns = bench_times_now_ns() - t1;
}

void bench_families_lower(void)
{
    struct bench_times reads = {.n = RUNS}, lowers = {.n = RUNS},
                       steps = {.n = RUNS};
    ms_arena keep = {0}, trial = {0};
    ms_fault fault = {0};
    ms_result result;
    ms_job job = {.gpus = 1};
    ms_training_init(&job.training);
    demand(ms_device_find("h100", &job.device, &fault), &fault);
    for (size_t i = 0; i < RUNS; i++) {
        ms_arena_reset(&keep);
        ms_arena_reset(&trial);
        lower(&job, &keep, &result, &reads.ns[i], &lowers.ns[i]);
        double t0 = bench_times_now_ns();
        demand(ms_jobway_step(&job, &trial, &result, &fault), &fault);
        steps.ns[i] = bench_times_now_ns() - t0;
    }
    printf(",\n  \"deepseek_v3_ops\": %u", result.graph->n_ops);
    bench_times_print("deepseek_v3_read_ms", &reads, 1e6);
    bench_times_print("deepseek_v3_lower_ms", &lowers, 1e6);
    bench_times_print("deepseek_v3_step_ms", &steps, 1e6);
    ms_arena_free(&trial);
    ms_arena_free(&keep);
}

/* A built-in model, of so many layers, or of as many as it has (NULL). */
struct lowered {
    const char *model, *layers;
    bool mega; /* by Megatron's kernels, each block by itself */
};

/* Lowers it once; the time of that and the ops. */
static double time_lowering(const struct lowered *it, ms_arena *keep,
                            double *ops)
{
    ms_override override = {.key = "layers", .value = it->layers};
    ms_fault fault = {0};
    ms_job job = {.gpus = 1};
    ms_result result = {0};
    ms_training_init(&job.training);
    demand(ms_device_find("h100", &job.device, &fault), &fault);
    if (it->mega) {
        demand(ms_training_set(&job.training, "kernels", "megatron", &fault),
               &fault);
        demand(ms_training_set(&job.training, "retain_graph", "yes", &fault),
               &fault);
    }
    result.training = job.training;
    ms_arena_reset(keep);
    demand(ms_read_model(it->model, &override, it->layers != NULL, keep,
                         &result.model, &fault),
           &fault);
    demand(ms_resolve_training(&result.training, &result.model, &fault),
           &fault);
    demand(ms_dag_order(&result.model, keep, &fault), &fault);
    double t0 = bench_times_now_ns();
    demand(ms_jobway_lower(&job, keep, &result, &fault), &fault);
    double ns = bench_times_now_ns() - t0;
    *ops = result.graph->n_ops;
    return ns;
}

static void time_stamps(const char *what, const char *layers, bool mega)
{
    const struct lowered it = {"gpt3", layers, mega};
    struct bench_times times = {.n = 5};
    ms_arena keep = {0};
    char label[48];
    double ops = 1;
    for (size_t i = 0; i < times.n; i++)
        times.ns[i] = time_lowering(&it, &keep, &ops);
    snprintf(label, sizeof label, "%s_%s_ns_per_op", what, layers);
    bench_times_print(label, &times, ops);
    ms_arena_free(&keep);
}

static void time_builtin(const char *model)
{
    const struct lowered it = {model, NULL, false};
    struct bench_times times = {.n = RUNS};
    ms_arena keep = {0};
    char label[48];
    double ops = 1;
    for (size_t i = 0; i < times.n; i++)
        times.ns[i] = time_lowering(&it, &keep, &ops);
    snprintf(label, sizeof label, "lower_%s_us", model);
    bench_times_print(label, &times, 1e3);
    ms_arena_free(&keep);
}

void bench_families_stamp(void)
{
    static const char *const layers[] = {"100", "200", "400", "800", "1600"};
    time_builtin("gpt3");
    time_builtin("llama-2-7b");
    time_builtin("deepseek-v3");
    for (size_t i = 0; i < sizeof layers / sizeof *layers; i++)
        time_stamps("stamps", layers[i], false);
    for (size_t i = 0; i < sizeof layers / sizeof *layers; i++)
        time_stamps("megatron_apart", layers[i], true);
}

void bench_families_run(const char *memsim,
                        double (*process_ns)(const char *const *argv))
{
    double slowest_ns = 0;
    const char *slowest = "";
    printf(",\n  \"builtin_runs_ms\": {");
    for (uint32_t i = 0; i < ms_builtin_n_models; i++) {
        const char *name = ms_builtin_models[i].name;
        const char *run[] = {memsim, "run", name, "--json", NULL};
        double best_ns = process_ns(run);
        for (int k = 1; k < PROCESSES; k++) {
            double ns = process_ns(run);
            best_ns = ns < best_ns ? ns : best_ns;
        }
        printf("%s\"%s\": %.1f", i > 0 ? ", " : "", name, best_ns / 1e6);
        if (best_ns > slowest_ns) {
            slowest_ns = best_ns;
            slowest = name;
        }
    }
    printf("},\n  \"builtin_slowest_ms\": %.1f, \"builtin_slowest\": \"%s\"",
           slowest_ns / 1e6, slowest);
}
