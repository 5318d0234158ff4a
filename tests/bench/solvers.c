/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/bench/solvers.h"

#include "policies/solve/chain.h"
#include "policies/solve/nodedag.h"
#include "tests/bench/demand.h"
#include "tests/bench/times.h"

#include <math.h>
#include <stdio.h>

#define MOST 496u
#define SLOTS 500u
#define RUNS 3u

/* Sizes and times of no pattern that stages could share. */
static void fill(ms_chain_stage *stages, uint32_t n, bool differ)
{
    uint64_t seed = 1;
    for (uint32_t l = 1; l <= n; l++) {
        seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
        uint64_t more = differ ? seed >> 44 : 0;
        stages[l] = (ms_chain_stage){.forward_ns = 1000 + more % 997,
                                     .backward_ns = 2000 + more % 1999,
                                     .output_bytes = 1000003 + more,
                                     .saved_bytes = 9000007 + 5 * more,
                                     .backward_extra_bytes = 3000017 + more};
    }
}

static uint64_t all_bytes(const ms_chain *chain)
{
    uint64_t bytes = chain->input_bytes;
    for (uint32_t l = 1; l <= chain->n; l++)
        bytes += chain->stages[l].saved_bytes;
    return bytes;
}

static double time_chain(uint32_t n, bool differ)
{
    static ms_chain_stage stages[MOST + 1];
    struct bench_times times = {.n = RUNS};
    char label[32];
    fill(stages, n, differ);
    ms_chain chain = {.n = n, .input_bytes = 1000003, .stages = stages};
    for (size_t run = 0; run < RUNS; run++) {
        ms_arena arena = {0};
        ms_fault fault = {0};
        ms_optimum optimum;
        double t0 = bench_times_now_ns();
        demand(ms_optimum_find(&chain, all_bytes(&chain) / 2, SLOTS, &arena,
                               &optimum, &fault),
               &fault);
        times.ns[run] = bench_times_now_ns() - t0;
        ms_arena_free(&arena);
    }
    snprintf(label, sizeof label, "chain_%u_ms", n);
    bench_times_print(label, &times, 1e6);
    return fmin(times.ns[0], fmin(times.ns[1], times.ns[2]));
}

/* A U-Net of unit nodes, its gradients behind it, in as little as can be. */
static void time_dag(void)
{
    enum { LEVELS = 4, FORWARD = 2 * LEVELS + 2, NODES = 2 * FORWARD - 1 };
    uint64_t cost_ns[NODES], bytes[NODES];
    uint32_t dep_at[NODES + 1] = {0}, dep[4 * NODES], n = 0;
    struct bench_times times = {.n = RUNS};
    for (uint32_t v = 0; v < NODES; v++) {
        uint32_t of = 2 * FORWARD - 2 - v; /* whose gradient it is */
        cost_ns[v] = bytes[v] = 1;
        if (v > 0)
            dep[n++] = v - 1;
        if (v > LEVELS && v < FORWARD - 1)
            dep[n++] = 2 * LEVELS - v; /* the skip */
        if (v >= FORWARD)
            dep[n++] = of;
        if (v > FORWARD && of < LEVELS)
            dep[n++] = 2 * FORWARD - 2 - (2 * LEVELS - of);
        dep_at[v + 1] = n;
    }
    const ms_nodedag dag = {.n = NODES,
                            .cost_ns = cost_ns,
                            .bytes = bytes,
                            .dep_at = dep_at,
                            .dep = dep};
    for (size_t run = 0; run < RUNS; run++) {
        ms_arena arena = {0};
        ms_fault fault = {0};
        ms_pebble pebble;
        double t0 = bench_times_now_ns();
        demand(ms_pebble_find(&dag, LEVELS + 2, &arena, &pebble, &fault),
               &fault);
        times.ns[run] = bench_times_now_ns() - t0;
        ms_arena_free(&arena);
    }
    bench_times_print("dag_19_ms", &times, 1e6);
}

void bench_solvers_run(const char *memsim)
{
    double ns = 0, last_ns = 0;
    (void)memsim;
    time_chain(59, true);
    time_chain(96, false);
    for (uint32_t n = MOST / 16; n <= MOST; n *= 2) {
        last_ns = ns;
        ns = time_chain(n, true);
    }
    printf(",\n  \"chain_exponent\": %.2f", log2(ns / last_ns));
    double sums = (double)SLOTS * MOST * MOST * MOST / 6;
    time_dag();
    printf(",\n  \"chain_sums_per_us\": %.0f", sums / ns * 1e3);
}
