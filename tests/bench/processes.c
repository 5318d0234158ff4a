/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/bench/processes.h"
#include "tests/bench/families.h"
#include "tests/bench/times.h"

#include <fcntl.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define MAIN_JOB "run", "gpt3.json", "--policy", "checkpoint:sqrt", "--json"
#define BLOCKS 32u /* of llama-2-7b */
#define MILLION 1000000u

static double process_ns(const char *const *argv)
{
    extern char **environ;
    posix_spawn_file_actions_t actions;
    pid_t pid;
    int status = 0;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
    double t0 = bench_times_wall_ns();
    if (posix_spawn(&pid, argv[0], &actions, NULL, (char *const *)argv,
                    environ) != 0 ||
        waitpid(pid, &status, 0) != pid || status != 0) {
        fprintf(stderr, "memsim-bench: %s %s failed\n", argv[0], argv[1]);
        exit(EXIT_FAILURE);
    }
    posix_spawn_file_actions_destroy(&actions);
    return bench_times_wall_ns() - t0;
}

static void time_runs(const char *label, const char *const *argv, size_t runs)
{
    struct bench_times times = {.n = runs};
    for (size_t i = 0; i < times.n; i++)
        times.ns[i] = process_ns(argv);
    bench_times_print(label, &times, 1e6);
}

#define MANY "run", "gpt3.json", "--batch=128", "-p", "microbatch:128", "-q"

static void time_figure(const char *memsim)
{
    char folder[] = "/tmp/memsim-bench-XXXXXX", path[40];
    if (mkdtemp(folder) == NULL) {
        fprintf(stderr, "memsim-bench: /tmp: cannot write\n");
        exit(EXIT_FAILURE);
    }
    snprintf(path, sizeof path, "%s/a.png", folder);
    struct bench_times times = {.n = 5};
    const char *without[] = {memsim, MANY, NULL};
    const char *with[] = {memsim, MANY, "--plot", path, NULL};
    for (size_t i = 0; i < times.n; i++) {
        double plain_ns = process_ns(without), all_ns = process_ns(with);
        times.ns[i] = all_ns > plain_ns ? all_ns - plain_ns : 0;
    }
    unlink(path);
    rmdir(folder);
    bench_times_print("figure_million_ms", &times, 1e6);
}

void bench_processes_fit(const char *memsim)
{
    const char *small[] = {memsim,    "fit", "llama-2-7b", "--gpus", "8",
                           "--batch", "8",   "--json",     NULL};
    const char *large[] = {memsim, "fit",    "gpt3", "--gpus",
                           "64",   "--json", NULL};
    time_runs("fit_7b_ms", small, 5);
    time_runs("fit_175b_ms", large, 5);
}

/* Writes each layer out, since a template may repeat only fewer; equal ones, or
 * none like those before it. */
static void write_million(const char *path, bool equal)
{
    FILE *out = fopen(path, "w");
    bool written =
        out != NULL &&
        fputs("{\"input\": {\"shape\": [16]}, \"layers\": [", out) >= 0;
    for (uint32_t i = 0; written && i < MILLION; i++)
        written = i % 2 == 0
                      ? fprintf(out, "{\"type\": \"linear\", \"out\": %u},\n",
                                equal ? 16 : 1 + i / 2 % 1021) > 0
                      : fputs("{\"type\": \"relu\"},\n", out) >= 0;
    written = written && fputs("{\"type\": \"mean\"}]}\n", out) >= 0;
    if (out != NULL && fclose(out) == 0 && written)
        return;
    fprintf(stderr, "memsim-bench: %s: cannot write\n", path);
    exit(EXIT_FAILURE);
}

/* Tells the time, and the most memory that a process has taken so far. */
static void time_million(const char *name, const char *const *argv)
{
    struct bench_times times = {.n = 3};
    char label[64];
    struct rusage children;
    for (size_t i = 0; i < times.n; i++)
        times.ns[i] = process_ns(argv);
    snprintf(label, sizeof label, "%s_ms", name);
    bench_times_print(label, &times, 1e6);
    getrusage(RUSAGE_CHILDREN, &children);
    printf(",\n  \"%s_mib\": %.0f", name, (double)children.ru_maxrss / 1024);
}

/* Chains of a million layers; each takes more memory than those before it. */
void bench_processes_million(const char *memsim)
{
    char path[] = "/tmp/memsim-bench-XXXXXX";
    const char *exact[] = {memsim,        "run",   path, "--json",
                           "--allocator", "exact", NULL};
    const char *run[] = {memsim, "run", path, "--json", NULL};
    int file = mkstemp(path);
    if (file >= 0)
        close(file);
    write_million(path, true);
    time_million("layers_million_exact", exact);
    time_million("layers_million", run);
    write_million(path, false);
    time_million("layers_unequal", run);
    unlink(path);
}

/* Choices of checkpoints of one graph after the other, which need no program
 * of a policy's own, and in which no stream runs beside another. */
static void time_choices(const char *memsim)
{
    char policies[1024] = "policy=none";
    const char *run[] = {memsim,   "sweep",  "llama-2-7b", "-q",          "-j1",
                         "--grid", policies, "--grid",     "batch=1..60", NULL};
    struct bench_times times = {.n = 5};
    size_t at = strlen(policies);
    for (unsigned k = 2; k <= BLOCKS; k++)
        at += (size_t)snprintf(policies + at, sizeof policies - at,
                               ";checkpoint:every=%u", k);
    for (size_t i = 0; i < times.n; i++)
        times.ns[i] = process_ns(run);
    bench_times_print("sweep_choices_us", &times, 1e3 * 60 * BLOCKS);
}

/* Adds a value to a list of at most size bytes. */
static size_t add_value(char *list, size_t at, size_t size, const char *first,
                        const char *rest)
{
    return at + (size_t)snprintf(list + at, size - at, "%s%s%s",
                                 at > 0 ? ";" : "policy=", first, rest);
}

/* Writes a grid of 96 policies of all kinds. */
static void write_policies(char *list, size_t size)
{
    static const char *const places[] = {
        "zero:1,dp=8",       "zero:2,dp=8",  "zero:3,dp=8",  "ddp:dp=8",
        "fsdp:dp=8",         "zero:1,dp=64", "microbatch:4", "microbatch:8",
        "offload:optimizer", "swap:vdnn=all"};
    static const char *const keeps[] = {"",
                                        "+checkpoint:sqrt",
                                        "+checkpoint:full",
                                        "+checkpoint:selective",
                                        "+checkpoint:every=2",
                                        "+checkpoint:every=8"};
    char every[40];
    size_t at =
        add_value(list, 0, size, "none",
                  ";checkpoint:sqrt;checkpoint:full;checkpoint:selective");
    for (unsigned k = 2; k <= 33; k++) {
        snprintf(every, sizeof every, "checkpoint:every=%u", k);
        at = add_value(list, at, size, every, "");
    }
    for (size_t i = 0; i < 10 * 6; i++)
        at = add_value(list, at, size, places[i / 6], keeps[i % 6]);
}

/* Such policies by batch, sequence and precision, on two threads: some points
 * of a million. */
static void time_mixed(const char *memsim)
{
    char policies[4096];
    const char *run[] = {memsim,
                         "sweep",
                         "llama-2-7b",
                         "-q",
                         "-j2",
                         "--grid",
                         policies,
                         "--grid",
                         "batch=8..64+8",
                         "--grid",
                         "sequence=512..4096*2",
                         "--grid",
                         "precision=bf16-mixed;fp16-mixed;autocast-bf16;bf16",
                         NULL};
    struct bench_times times = {.n = 3};
    write_policies(policies, sizeof policies);
    for (size_t i = 0; i < times.n; i++)
        times.ns[i] = process_ns(run);
    bench_times_print("sweep_mixed_us", &times, 1e3 * 96 * 8 * 4 * 4);
}

/* Policies vary fastest, since those that only place tensors share a graph. */
void bench_processes_sweep(const char *memsim)
{
    time_choices(memsim);
    time_mixed(memsim);
    static const char policies[] =
        "policy=none;checkpoint:sqrt;checkpoint:full;checkpoint:every=2;"
        "checkpoint:selective;zero:1,dp=8;zero:3,dp=8;offload:optimizer;"
        "zero:1,dp=8+checkpoint:sqrt;zero:3,dp=8+checkpoint:sqrt";
    const char *run[] = {
        memsim,   "sweep",        "llama-2-7b", "-q",
        "--grid", "batch=1..250", "--grid",     "sequence=512..4096*2",
        "--grid", policies,       "-j1",        NULL};
    struct bench_times one = {.n = 3}, two = {.n = 3};
    for (size_t i = 0; i < one.n; i++) {
        run[10] = "-j1";
        one.ns[i] = process_ns(run);
        run[10] = "-j2";
        two.ns[i] = process_ns(run);
    }
    bench_times_print("sweep_10000_one_ms", &one, 1e6);
    bench_times_print("sweep_10000_ms", &two, 1e6);
    printf(",\n  \"sweep_threads\": %.2f", one.ns[0] / two.ns[0]);
}

#define TRACE_BYTES 200000000

/* A call of the host, its launch, the kernel and the arrow between them, as
 * Kineto writes them; ts in us. */
static int write_call(FILE *file, uint32_t i)
{
    uint32_t ts = 1000 + 30 * i, m = 64 * (1 + i % 97);
    return fprintf(
        file,
        "%s{\"ph\": \"X\", \"cat\": \"cuda_runtime\", \"name\": "
        "\"cudaLaunchKernel\", \"pid\": 7, \"tid\": 100, \"ts\": %u.125, "
        "\"dur\": 4.000, \"args\": {\"External id\": %u, \"correlation\": %u, "
        "\"cbid\": 211}},\n  {\"ph\": \"X\", \"cat\": \"kernel\", \"name\": "
        "\"sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n\", \"pid\": 0, \"tid\": 7, "
        "\"ts\": %u.500, \"dur\": %u.250, \"args\": {\"External id\": %u, "
        "\"correlation\": %u, \"device\": 0, \"context\": 1, \"stream\": 7, "
        "\"grid\": [64, 8, 1], \"block\": [128, 1, 1]}},\n  {\"ph\": \"s\", "
        "\"id\": %u, \"pid\": 7, \"tid\": 100, \"ts\": %u.125, \"cat\": "
        "\"ac2g\", \"name\": \"ac2g\"},\n  {\"ph\": \"X\", \"cat\": "
        "\"cpu_op\", "
        "\"name\": \"aten::mm\", \"pid\": 7, \"tid\": 100, \"ts\": %u.000, "
        "\"dur\": 9.500, \"args\": {\"External id\": %u, \"Record function "
        "id\": 0, \"Concrete Inputs\": [\"\", \"\"], \"Input type\": "
        "[\"c10::BFloat16\", \"c10::BFloat16\"], \"Input Dims\": [[%u, 1024], "
        "[1024, 4096]], \"Ev Idx\": %u}}",
        i > 0 ? ",\n  " : "", ts, i, i, ts + 9, 5 + m / 40, i, i, i, ts, ts, i,
        m, i);
}

void bench_processes_calibrate(const char *memsim)
{
    char path[] = "/tmp/memsim-bench-XXXXXX";
    int descriptor = mkstemp(path);
    FILE *file = descriptor >= 0 ? fdopen(descriptor, "w") : NULL;
    const char *run[] = {memsim, "calibrate", path, "-q", NULL};
    if (file == NULL) {
        fprintf(stderr, "memsim-bench: /tmp: cannot write\n");
        exit(EXIT_FAILURE);
    }
    fputs("{\"traceEvents\": [\n  ", file);
    for (long bytes = 0, i = 0; bytes < TRACE_BYTES; i++)
        bytes += write_call(file, (uint32_t)i);
    fputs("\n]}\n", file);
    fclose(file);
    time_runs("calibrate_200mb_ms", run, 3);
    unlink(path);
}

void bench_processes_start(const char *memsim)
{
    const char *version[] = {memsim, "--version", NULL};
    const char *exact[] = {memsim, MAIN_JOB, "--allocator", "exact", NULL};
    const char *run[] = {memsim, MAIN_JOB, NULL};
    time_runs("process_version_ms", version, 21);
    time_runs("process_exact_ms", exact, 21);
    time_runs("process_run_ms", run, 21);
    bench_families_run(memsim, process_ns);
    time_figure(memsim);
}
