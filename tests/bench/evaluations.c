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

/* Evaluates with a value of the key that the job has not seen: the format and a
 * number that begins at 2. */
static void time_key(memsim_job *job, const char *key, const char *format,
                     struct bench_times *times)
{
    char value[64];
    times->n = RUNS;
    for (unsigned i = 0; i < RUNS; i++) {
        snprintf(value, sizeof value, format, i + 2);
        double from_ns = bench_times_now_ns();
        expect(memsim_set(job, key, value), job);
        evaluate(job);
        times->ns[i] = bench_times_now_ns() - from_ns;
    }
}

static void time_allocator(const char *allocator)
{
    char name[64];
    struct bench_times times;
    memsim_job *job = open_job(allocator);
    time_key(job, "policy", "checkpoint:every=%u", &times);
    snprintf(name, sizeof name, "library_policy_%s_us", allocator);
    bench_times_print(name, &times, 1e3);
    expect(memsim_set(job, "policy", NULL), job);
    time_key(job, "batch", "%u", &times);
    snprintf(name, sizeof name, "library_batch_%s_us", allocator);
    bench_times_print(name, &times, 1e3);
    memsim_free(job);
}

void bench_evaluations_run(const char *memsim)
{
    (void)memsim;
    time_allocator("exact");
    time_allocator("torch");
}
