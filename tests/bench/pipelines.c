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

#include <stdio.h>
#include <stdlib.h>

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
    ms_arguments arguments = {0};
    ms_result result = {0};
    ms_job job;
    demand(ms_options_parse(MS_FOR_RUN, words, 5, &keep, &arguments, &fault),
           &fault);
    demand(ms_settings_read(&arguments, &keep, &job, &fault), &fault);
    demand(ms_jobway_read(&job, &keep, &result, &fault), &fault);
    demand(ms_jobway_lower(&job, &keep, &result, &fault), &fault);
    job.whole_ops = UINT64_MAX;
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

void bench_pipelines_run(const char *memsim)
{
    (void)memsim;
    time_gpt3("--batch=512", "pipeline:8+microbatch:512", "pipeline_told_ms",
              "pipeline_replayed_ms");
    time_gpt3("--batch=64", "pipeline:16+microbatch:64", NULL,
              "pipeline_16x64_replayed_ms");
    time_toy();
}
