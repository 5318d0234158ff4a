/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/bench/growth.h"

#include "tests/bench/demand.h"
#include "tests/bench/times.h"
#include "tools/job/job.h"
#include "tools/job/result.h"
#include "tools/job/settings.h"

#include <math.h>
#include <stdio.h>

/* What a layer of GPT-2 takes at a batch of 8: 0.1 GiB of states and 0.2 GiB
 * of activations.  In two thirds of that the policies of swap have to work. */
#define FULL_MIB 400u
#define TIGHT_MIB 205u
#define BARE_MIB 300u /* the least peak of vDNN, and a little */
#define FIXED_MIB 4096u

static const struct grower {
    const char *name, *policy, *allocator, *gpus;
    uint32_t layer_mib; /* the memory of the device is these and FIXED_MIB */
} growers[] = {
    {"none", "none", "exact", "1", FULL_MIB},
    {"capuchin", "swap:capuchin", "exact", "1", TIGHT_MIB},
    {"belady", "swap:belady", "exact", "1", TIGHT_MIB},
    {"superneurons", "swap:superneurons", "exact", "1", TIGHT_MIB},
    {"vdnn_dyn", "swap:vdnn=dyn", "exact", "1", BARE_MIB},
    {"auto", "swap:auto", "exact", "1", TIGHT_MIB},
    {"dtr", "dtr", "exact", "1", TIGHT_MIB},
    {"fsdp1", "fsdp:impl=1", "exact", "8", FULL_MIB},
    {"torch", "none", "torch", "1", FULL_MIB},
    {"contiguous", "none", "contiguous", "1", FULL_MIB},
};

/* The time of one run, CPU. */
static double time_run(const struct grower *grower, uint32_t layers)
{
    char set[40], memory[40];
    const char *words[] = {
        "gpt2",   "--batch=8",    "--set",       set,
        "-p",     grower->policy, "--allocator", grower->allocator,
        "--gpus", grower->gpus,   "--memory",    memory};
    ms_arena keep = {0}, trial = {0};
    ms_arguments arguments = {0};
    ms_result result = {0};
    ms_fault fault = {0};
    ms_job job;
    snprintf(set, sizeof set, "model.layers=%u", layers);
    snprintf(memory, sizeof memory, "%uMiB",
             FIXED_MIB + layers * grower->layer_mib);
    double t0 = bench_times_now_ns();
    demand(ms_options_parse(MS_FOR_RUN, words, sizeof words / sizeof *words,
                            &keep, &arguments, &fault),
           &fault);
    demand(ms_settings_read(&arguments, &keep, &job, &fault), &fault);
    demand(ms_jobway_run(&job, &keep, &trial, &result, &fault), &fault);
    double ns = bench_times_now_ns() - t0;
    ms_arena_free(&trial);
    ms_arena_free(&keep);
    return ns;
}

static double time_layers(const struct grower *grower, uint32_t layers)
{
    struct bench_times times = {.n = layers < 500 ? 3 : 1};
    char label[64];
    for (size_t i = 0; i < times.n; i++)
        times.ns[i] = time_run(grower, layers);
    snprintf(label, sizeof label, "growth_%s_%u_ms", grower->name, layers);
    bench_times_print(label, &times, 1e6);
    return times.ns[0];
}

void bench_growth_run(const char *memsim)
{
    (void)memsim;
    for (size_t i = 0; i < sizeof growers / sizeof *growers; i++) {
        double last_ns = 0, ns = 0;
        for (uint32_t layers = 125; layers <= 2000; layers *= 2) {
            last_ns = ns;
            ns = time_layers(&growers[i], layers);
        }
        printf(",\n  \"growth_%s_exponent\": %.2f", growers[i].name,
               log2(ns / last_ns));
    }
}
