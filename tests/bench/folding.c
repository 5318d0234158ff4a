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
    /* The same as stretches of units, where there are any. */
    ms_fold_choice choice[MOST_PROGRAMS];
    ms_fold_stretch stretches[MOST_PROGRAMS][2];
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

/* checkpoint:every=k of equal blocks: the last segment may be shorter. */
static void add_choice(choices *all, uint32_t k, uint32_t micro_batches)
{
    const ms_graph *graph = &all->graph;
    ms_fold_stretch *stretch = all->stretches[all->n - 1];
    ms_fold_choice *choice = &all->choice[all->n - 1];
    uint32_t first = 0, n = graph->n_blocks, units = 0;
    while (graph->unit_block[first] == MS_NONE)
        first++;
    for (uint32_t u = 0; u < graph->n_units; u++)
        units += graph->unit_block[u] != MS_NONE;
    units /= n;
    *choice = (ms_fold_choice){.stretches = stretch,
                               .micro_batches = micro_batches,
                               .early_stop = true};
    if (k == 0)
        return;
    stretch[0] = (ms_fold_stretch){first, k * units, n / k};
    stretch[1] = (ms_fold_stretch){first + n / k * k * units, n % k * units, 1};
    choice->n_stretches = n % k > 0 ? 2 : 1;
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

static double choose_all(choices *all, bool checks)
{
    ms_folded folded;
    ms_fault fault = {0};
    double from_ns = bench_times_now_ns();
    for (uint32_t i = 0; i < all->n; i++) {
        demand(ms_fold_choose(all->fold, &all->choice[i], &folded, &fault),
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

static void print(const choices *all, const char *what, const char *label,
                  struct bench_times *times)
{
    char name[64];
    snprintf(name, sizeof name, "%s_%s_us", what, label);
    bench_times_print(name, times, 1e3 * all->n);
}

/* Prints all in us a program: first choices that are new to the evaluator, then
 * those that it knows, programs that were written, and their replay. */
static void time_both(choices *all, const char *label)
{
    struct bench_times news = {.n = 1}, knowns = {.n = ROUNDS};
    struct bench_times folds = {.n = ROUNDS}, replays = {.n = ROUNDS};
    news.ns[0] = choose_all(all, false);
    choose_all(all, true);
    fold_all(all, true);
    for (uint32_t i = 0; i < ROUNDS; i++) {
        replays.ns[i] = replay_all(all);
        folds.ns[i] = fold_all(all, false);
        knowns.ns[i] = choose_all(all, false);
    }
    print(all, "new", label, &news);
    print(all, "choice", label, &knowns);
    print(all, "program", label, &folds);
    print(all, "replay", label, &replays);
}

static void time_choices(const char *layers, const char *label)
{
    choices all;
    char policy[64];
    open_choices(&all, "gpt3.json", layers);
    add_program(&all, "none", 1);
    add_choice(&all, 0, 1);
    for (unsigned k = 1; k <= 96; k++) {
        snprintf(policy, sizeof policy, "checkpoint:every=%u", k);
        add_program(&all, policy, 1);
        add_choice(&all, k, 1);
    }
    time_both(&all, label);
    close_choices(&all);
}

static void time_micro_batches(uint32_t n, const char *label)
{
    choices all;
    open_choices(&all, "gpt3.json", NULL);
    add_program(&all, "checkpoint:every=10", n);
    add_choice(&all, 10, n);
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
