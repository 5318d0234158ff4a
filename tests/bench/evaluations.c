/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/bench/evaluations.h"
#include "tests/bench/times.h"
#include "tools/library/memsim.h"

#include <stdio.h>
#include <stdlib.h>

#define RUNS 21u

/* Ends the benchmark with the job's fault, if there is one. */
static void expect(memsim_status status, const memsim_job *job)
{
    if (status == MEMSIM_OK)
        return;
    fprintf(stderr, "memsim-bench: %s: %s\n", memsim_where(job),
            memsim_what(job));
    exit(EXIT_FAILURE);
}

static void fold(memsim_job *job)
{
    memsim_brief numbers = {.size = sizeof numbers};
    expect(memsim_peak(job, &numbers), job);
}

static void evaluate(memsim_job *job)
{
    memsim_numbers numbers = {.size = sizeof numbers};
    expect(memsim_evaluate(job, &numbers), job);
}

static memsim_job *open_job(const char *allocator)
{
    memsim_job *job = memsim_open("gpt3.json");
    expect(memsim_set(job, "allocator", allocator), job);
    evaluate(job);
    return job;
}

/* Asks with a value of the key that the job has not seen: the format and a
 * number that begins at 2. */
static void time_key(memsim_job *job, void (*ask)(memsim_job *),
                     const char *key, const char *format,
                     struct bench_times *times)
{
    char value[64];
    times->n = RUNS;
    for (unsigned i = 0; i < RUNS; i++) {
        snprintf(value, sizeof value, format, i + 2);
        double from_ns = bench_times_now_ns();
        expect(memsim_set(job, key, value), job);
        ask(job);
        times->ns[i] = bench_times_now_ns() - from_ns;
    }
}

static void time_allocator(const char *allocator)
{
    char name[64];
    struct bench_times times;
    memsim_job *job = open_job(allocator);
    time_key(job, evaluate, "policy", "checkpoint:every=%u", &times);
    snprintf(name, sizeof name, "library_policy_%s_us", allocator);
    bench_times_print(name, &times, 1e3);
    expect(memsim_set(job, "policy", NULL), job);
    time_key(job, evaluate, "batch", "%u", &times);
    snprintf(name, sizeof name, "library_batch_%s_us", allocator);
    bench_times_print(name, &times, 1e3);
    memsim_free(job);
}

/* Peak and time alone of policies on one stream and on several: folded (new
 * ones, of which the first two are replayed), against all of the report. */
static void time_policies(const char *name, const char *format)
{
    char what[64];
    struct bench_times times;
    memsim_job *job = open_job("exact");
    time_key(job, fold, "policy", format, &times);
    snprintf(what, sizeof what, "library_peak_%s_us", name);
    bench_times_print(what, &times, 1e3);
    time_key(job, evaluate, "policy", format, &times);
    snprintf(what, sizeof what, "library_all_%s_us", name);
    bench_times_print(what, &times, 1e3);
    memsim_free(job);
}

void bench_evaluations_run(const char *memsim)
{
    (void)memsim;
    time_allocator("exact");
    time_allocator("torch");
    time_policies("checkpoint", "checkpoint:every=%u");
    time_policies("ddp", "ddp:dp=8+checkpoint:every=%u");
    time_policies("zero1", "zero:1,dp=8+checkpoint:every=%u");
    time_policies("zero3", "zero:3,dp=8+checkpoint:every=%u");
    time_policies("fsdp", "fsdp:dp=8+checkpoint:every=%u");
    time_policies("offload", "offload:optimizer+checkpoint:every=%u");
    time_policies("swap", "swap:vdnn=all+checkpoint:every=%u");
}
