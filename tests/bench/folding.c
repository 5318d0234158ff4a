/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/bench/folding.h"

#include "graphs/modelgraph.h"
#include "policies/common/policy.h"
#include "sim/fold/fold.h"
#include "sim/graph.h"
#include "sim/machine.h"
#include "sim/plan.h"
#include "sim/program.h"
#include "sim/timeline.h"
#include "tests/bench/demand.h"
#include "tests/bench/times.h"
#include "tools/cli/commands.h"

#include <stdio.h>
#include <stdlib.h>

#define MOST_PROGRAMS 97u
#define ROUNDS 7u

/* Programs of one graph, and what they come to. */
typedef struct choices {
    ms_arena keep, programs, trial;
    ms_model model;
    ms_training training;
    ms_graph graph;
    uint32_t n;
    ms_program program[MOST_PROGRAMS];
    ms_fold *fold;
} choices;

static const ms_expand_opts opts;
static const ms_machine machine = {.launch_ns = 5000,
                                   .capacity_bytes = UINT64_C(80) << 30};

static void open_choices(choices *all, const char *model, const char *layers)
{
    const ms_device *device;
    const ms_override override = {.key = "layers", .value = layers};
    const ms_shape shape = {.micro_batches = 1, .data_ranks = 1};
    ms_fault fault = {0};
    *all = (choices){0};
    ms_training_init(&all->training);
    demand(ms_read_model(model, &override, layers != NULL, &all->keep,
                         &all->model, &fault),
           &fault);
    demand(ms_resolve_training(&all->training, &all->model, &fault), &fault);
    demand(ms_dag_order(&all->model, &all->keep, &fault), &fault);
    demand(ms_device_find("h100", &device, &fault), &fault);
    demand(ms_lower(&all->model, &all->training, device, &shape, &all->keep,
                    &all->graph, &fault),
           &fault);
    demand(ms_fold_open(&all->graph, &opts, &machine, &all->keep, &all->fold,
                        &fault),
           &fault);
}

static void close_choices(choices *all)
{
    ms_fold_close(all->fold);
    ms_arena_free(&all->trial);
    ms_arena_free(&all->programs);
    ms_arena_free(&all->keep);
}

static void add_program(choices *all, const char *policy,
                        uint32_t micro_batches)
{
    ms_spec spec = {0};
    ms_fault fault = {0};
    const ms_policy_context context = {.graph = &all->graph,
                                       .arena = &all->programs};
    demand(ms_spec_parse(policy, &all->programs, &spec, &fault), &fault);
    demand(ms_apply_program(&spec, &context, micro_batches,
                            &all->program[all->n++], &fault),
           &fault);
}

/* Ends the benchmark where a fold is not what the replay says. */
static void check(choices *all, uint32_t i, const ms_folded *folded)
{
    ms_plan plan;
    ms_timeline line;
    ms_fault fault = {0};
    ms_arena_reset(&all->trial);
    demand(ms_expand(&all->graph, &all->program[i], &opts, &all->trial, &plan,
                     &fault),
           &fault);
    demand(ms_replay(&plan, &machine, &all->trial, &line, &fault), &fault);
    if (folded->why == MS_FOLD_WHOLE && folded->step_ns == line.step_ns &&
        folded->peak_bytes == line.ranks[0].reserved_peak_bytes)
        return;
    fprintf(stderr, "memsim-bench: program %u is folded wrongly: %s\n", i,
            ms_fold_sentence(folded->why));
    exit(EXIT_FAILURE);
}

static double fold_all(choices *all, bool checks)
{
    ms_folded folded;
    ms_fault fault = {0};
    double from_ns = bench_times_now_ns();
    for (uint32_t i = 0; i < all->n; i++) {
        demand(ms_fold_program(all->fold, &all->program[i], &folded, &fault),
               &fault);
        if (checks)
            check(all, i, &folded);
    }
    return bench_times_now_ns() - from_ns;
}

static double replay_all(choices *all)
{
    ms_plan plan;
    ms_timeline line;
    ms_fault fault = {0};
    double from_ns = bench_times_now_ns();
    for (uint32_t i = 0; i < all->n; i++) {
        ms_arena_reset(&all->trial);
        demand(ms_expand(&all->graph, &all->program[i], &opts, &all->trial,
                         &plan, &fault),
               &fault);
        demand(ms_replay(&plan, &machine, &all->trial, &line, &fault), &fault);
    }
    return bench_times_now_ns() - from_ns;
}

/* Prints both in us a program; the first fold, which learns, is not timed. */
static void time_both(choices *all, const char *label)
{
    struct bench_times folds = {.n = ROUNDS}, replays = {.n = ROUNDS};
    char name[64];
    fold_all(all, true);
    for (uint32_t i = 0; i < ROUNDS; i++) {
        replays.ns[i] = replay_all(all);
        folds.ns[i] = fold_all(all, false);
    }
    snprintf(name, sizeof name, "fold_%s_us", label);
    bench_times_print(name, &folds, 1e3 * all->n);
    snprintf(name, sizeof name, "replay_%s_us", label);
    bench_times_print(name, &replays, 1e3 * all->n);
}

static void time_choices(const char *layers, const char *label)
{
    choices all;
    char policy[64];
    open_choices(&all, "gpt3.json", layers);
    add_program(&all, "none", 1);
    for (unsigned k = 1; k <= 96; k++) {
        snprintf(policy, sizeof policy, "checkpoint:every=%u", k);
        add_program(&all, policy, 1);
    }
    time_both(&all, label);
    close_choices(&all);
}

static void time_micro_batches(uint32_t n, const char *label)
{
    choices all;
    open_choices(&all, "gpt3.json", NULL);
    add_program(&all, "checkpoint:sqrt", n);
    time_both(&all, label);
    close_choices(&all);
}

void bench_folding_run(const char *memsim)
{
    (void)memsim;
    time_choices(NULL, "choices");
    time_micro_batches(64, "micro_64");
    time_micro_batches(4096, "micro_4096");
    time_choices("192", "layers_192");
    time_choices("384", "layers_384");
    time_choices("768", "layers_768");
    time_choices("1536", "layers_1536");
}
