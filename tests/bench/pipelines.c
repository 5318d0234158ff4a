/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/bench/pipelines.h"

#include "sim/graph.h"
#include "sim/machine.h"
#include "sim/plan.h"
#include "sim/report.h"
#include "sim/timeline.h"
#include "tests/bench/demand.h"
#include "tests/bench/ranks.h"
#include "tests/bench/times.h"
#include "tools/cli/commands.h"
#include "tools/job/job.h"
#include "tools/job/result.h"
#include "tools/job/settings.h"
#include "tools/options/options.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define RUNS 5

/* Ends the benchmark where what is told is not what the replay says. */
static void check(const ms_rank_report *told, const ms_report *all)
{
    for (uint16_t r = 0; r < all->n_ranks; r++) {
        const ms_rank_report *rank = &all->ranks[r];
        if (told != NULL &&
            told[r].peak.reserved_bytes == rank->peak.reserved_bytes &&
            told[r].peak.allocated_bytes == rank->peak.allocated_bytes &&
            told[r].time.step_ns == rank->time.step_ns &&
            told[r].time.bubble_ns == rank->time.bubble_ns)
            continue;
        fprintf(stderr, "memsim-bench: rank %u is told wrongly\n", (unsigned)r);
        exit(EXIT_FAILURE);
    }
}

/* A job whose report alone is asked for, as of a point of a sweep, lowered. */
static void open_job(const char *const *words, uint32_t n, ms_arena *keep,
                     ms_job *job, ms_result *result)
{
    ms_fault fault = {0};
    ms_arguments arguments = {0};
    demand(ms_options_parse(MS_FOR_RUN, words, n, keep, &arguments, &fault),
           &fault);
    demand(ms_settings_read(&arguments, keep, job, &fault), &fault);
    demand(ms_jobway_read(job, keep, result, &fault), &fault);
    demand(ms_jobway_lower(job, keep, result, &fault), &fault);
    job->whole_ops = UINT64_MAX;
    job->brief = job->unmerged = true;
}

/* GPT-3 on so many stages, with so many micro-batches: told from few of them
 * (told_ms NULL: they are too few for that), and replayed. */
static void time_gpt3(const char *batch, const char *policy,
                      const char *told_ms, const char *replayed_ms)
{
    const char *words[] = {"gpt3.json", batch, "--allocator=exact", "-p",
                           policy};
    struct bench_times tells = {.n = RUNS}, replays = {.n = RUNS};
    ms_arena keep = {0}, trial = {0};
    ms_fault fault = {0};
    ms_result result = {0};
    ms_job job;
    open_job(words, 5, &keep, &job, &result);
    for (size_t i = 0; i < RUNS; i++) {
        ms_rank_report *told;
        ms_arena_reset(&trial);
        double t0 = bench_times_now_ns();
        demand(ms_pipelinerounds_step(&job, &trial, &result, &told, &fault),
               &fault);
        double t1 = bench_times_now_ns();
        demand(ms_jobway_step(&job, &trial, &result, &fault), &fault);
        replays.ns[i] = bench_times_now_ns() - t1;
        tells.ns[i] = t1 - t0;
        if (told_ms != NULL)
            check(told, result.report);
    }
    if (told_ms != NULL)
        bench_times_print(told_ms, &tells, 1e6);
    bench_times_print(replayed_ms, &replays, 1e6);
    ms_arena_free(&trial);
    ms_arena_free(&keep);
}

static void time_toy(void)
{
    static const ms_graph graph = {.name = "toy"};
    static const ms_machine machine = {.launch_ns = 1000};
    struct bench_times times = {.n = RUNS};
    ms_arena keep = {0}, trial = {0};
    ms_fault fault = {0};
    ms_plan plan;
    if (!bench_ranks_plan((bench_ranks_size){64, 512, 8}, &graph, &keep, &plan))
        exit(EXIT_FAILURE);
    for (size_t i = 0; i < RUNS; i++) {
        ms_timeline line;
        ms_arena_reset(&trial);
        double t0 = bench_times_now_ns();
        demand(ms_replay(&plan, &machine, &trial, &line, &fault), &fault);
        times.ns[i] = bench_times_now_ns() - t0;
    }
    bench_times_print("pipeline_toy_replayed_ms", &times, 1e6);
    ms_arena_free(&trial);
    ms_arena_free(&keep);
}

/* ---- what grows ---------------------------------------------------------- */

enum { STAGES, CHUNKS, MICRO_BATCHES, LAYERS, N_AXES };
#define DOUBLINGS 4u

/* From these sizes on each axis is doubled, the others stay. */
static const struct axis {
    const char *name;
    uint32_t from[N_AXES];
} axes[N_AXES] = {
    [STAGES] = {"stages", {4, 1, 64, 64}},
    [CHUNKS] = {"chunks", {2, 2, 16, 64}},
    [MICRO_BATCHES] = {"micro_batches", {4, 1, 8, 8}},
    [LAYERS] = {"layers", {4, 1, 16, 8}},
};

/* What the process holds in memory now. */
static double held_bytes(void)
{
    char line[200] = "", *resident;
    FILE *file = fopen("/proc/self/statm", "r");
    if (file == NULL || fgets(line, sizeof line, file) == NULL)
        fprintf(stderr, "memsim-bench: /proc/self/statm says nothing\n");
    if (file != NULL)
        fclose(file);
    strtoul(line, &resident, 10); /* pages of all, then those */
    return (double)strtoul(resident, NULL, 10) * (double)sysconf(_SC_PAGESIZE);
}

/* The best time of a step of GPT-2 of this size, lowered before, and what the
 * step takes of memory. */
static double time_size(const uint32_t *size, double *bytes)
{
    char layers[40], batch[40], policy[120];
    const char *words[] = {"gpt2", "--set", layers, batch, "--allocator=exact",
                           "-p",   policy};
    ms_arena keep = {0}, trial = {0};
    ms_fault fault = {0};
    ms_result result = {0};
    ms_job job;
    double best_ns = 0;
    snprintf(layers, sizeof layers, "model.layers=%u", size[LAYERS]);
    snprintf(batch, sizeof batch, "--batch=%u", size[MICRO_BATCHES]);
    int n = snprintf(policy, sizeof policy, "microbatch:%u+pipeline:%u",
                     size[MICRO_BATCHES], size[STAGES]);
    if (size[CHUNKS] > 1)
        snprintf(policy + n, sizeof policy - (size_t)n,
                 ",schedule=interleaved,chunks=%u", size[CHUNKS]);
    open_job(words, sizeof words / sizeof *words, &keep, &job, &result);
    double before_bytes = held_bytes();
    for (size_t i = 0; i < RUNS; i++) {
        ms_arena_reset(&trial);
        double t0 = bench_times_now_ns();
        demand(ms_jobway_step(&job, &trial, &result, &fault), &fault);
        double ns = bench_times_now_ns() - t0;
        best_ns = i == 0 || ns < best_ns ? ns : best_ns;
        *bytes = i == 0 ? held_bytes() - before_bytes : *bytes;
    }
    ms_arena_free(&trial);
    ms_arena_free(&keep);
    return best_ns;
}

/* Prints the sizes of an axis, and the exponent of the last doubling. */
static void print_growth(const char *axis, const char *unit,
                         const double *sizes, double scale)
{
    printf(",\n  \"growth_pipeline_%s_%s\": [", axis, unit);
    for (uint32_t i = 0; i <= DOUBLINGS; i++)
        printf("%s%.3f", i > 0 ? ", " : "", sizes[i] / scale);
    printf("],\n  \"growth_pipeline_%s_%s_exponent\": %.2f", axis, unit,
           log2(sizes[DOUBLINGS] / sizes[DOUBLINGS - 1]));
}

static void time_growth(uint32_t axis)
{
    uint32_t size[N_AXES];
    double ns[DOUBLINGS + 1], bytes[DOUBLINGS + 1];
    memcpy(size, axes[axis].from, sizeof size);
    for (uint32_t i = 0; i <= DOUBLINGS; i++, size[axis] *= 2)
        ns[i] = time_size(size, &bytes[i]);
    print_growth(axes[axis].name, "ms", ns, 1e6);
    if (axis == STAGES) /* the first: nothing of the process is left over */
        print_growth(axes[axis].name, "mib", bytes, 0x1p20);
}

void bench_pipelines_run(const char *memsim)
{
    (void)memsim;
    time_gpt3("--batch=512", "pipeline:8+microbatch:512", "pipeline_told_ms",
              "pipeline_replayed_ms");
    time_gpt3("--batch=64", "pipeline:16+microbatch:64", NULL,
              "pipeline_16x64_replayed_ms");
    time_toy();
    for (uint32_t axis = 0; axis < N_AXES; axis++)
        time_growth(axis);
}
