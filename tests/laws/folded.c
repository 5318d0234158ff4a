/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/laws/folded.h"

#include "sim/graph.h"
#include "sim/report.h"
#include "sim/schedule/schedule.h"
#include "sim/timeline.h"
#include "tests/laws/laws.h"
#include "tests/tests.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

ms_arena folded_keep, folded_trial;

void folded_close(void)
{
    ms_arena_free(&folded_keep);
    ms_arena_free(&folded_trial);
}

/* With several streams all of time is told, and what other memories hold. */
static void check_streamed(const ms_folded *folded, const ms_timeline *line,
                           const ms_machine *machine, const char *what)
{
    ms_fault fault = {0};
    ms_report report;
    const void *time = &folded->time, *measured;
    ck_assert_int_eq(ms_measure(line, machine, &folded_trial, &report, &fault),
                     MS_OK);
    measured = &report.ranks[0].time;
    ck_assert_msg(memcmp(time, measured, sizeof folded->time) == 0,
                  "%s, seed %llu: parts of time", what,
                  (unsigned long long)laws_seed);
    for (int pool = MS_HOST_POOL; pool < MS_N_POOLS; pool++)
        ck_assert_msg(folded->far[pool].peak_bytes ==
                              report.far[pool].peak_bytes &&
                          folded->far[pool].reserved_bytes ==
                              report.far[pool].reserved_bytes,
                      "%s, seed %llu: memory %d", what,
                      (unsigned long long)laws_seed, pool);
}

/* Of a choice: the categories at the peak, if they are told, are those of the
 * report. */
static void check_categories(ms_fold *fold, const ms_timeline *line,
                             const ms_machine *machine, folded_tally *counts)
{
    ms_fault fault = {0};
    ms_report report;
    uint64_t by_category[MS_N_CATEGORIES];
    if (!ms_fold_categories(fold, by_category))
        return;
    counts->categories++;
    ck_assert_int_eq(ms_measure(line, machine, &folded_trial, &report, &fault),
                     MS_OK);
    for (int c = 0; c < MS_N_CATEGORIES; c++)
        ck_assert_uint_eq(by_category[c], report.ranks[0].peak.by_category[c]);
}

/* What was folded is what expand and replay say; or expand refuses it, too.
 * chosen: by whom, if it is a choice. */
static void check_folded(const ms_folded *folded, ms_fold *chosen,
                         const ms_graph *graph, const ms_program *program,
                         const ms_expand_opts *opts, const ms_machine *machine,
                         const char *what, folded_tally *counts)
{
    ms_fault fault = {0};
    ms_plan plan;
    ms_timeline line;
    counts->programs++;
    counts->refused[folded->why]++;
    ms_err err = ms_expand(graph, program, opts, &folded_trial, &plan, &fault);
    if (err != MS_OK || folded->why != MS_FOLD_WHOLE) {
        ck_assert_msg(folded->why != MS_FOLD_WHOLE, "%s: %s", what, fault.what);
        ck_assert_msg(folded->why != MS_FOLD_FAULT || err != MS_OK,
                      "%s: it can be run", what);
        ck_assert_ptr_nonnull(ms_fold_sentence(folded->why));
        return;
    }
    counts->folded++;
    counts->calls += folded->calls;
    counts->learnt += folded->learnt;
    counts->repeated += folded->repeated;
    ck_assert_int_eq(ms_replay(&plan, machine, &folded_trial, &line, &fault),
                     MS_OK);
    uint64_t allocated = line.ranks[0].pool[MS_DEVICE_POOL].peak_bytes;
    uint64_t reserved = line.ranks[0].reserved_peak_bytes;
    ck_assert_msg(folded->peak_bytes == allocated,
                  "%s, seed %llu: peak %llu, replay %llu", what,
                  (unsigned long long)laws_seed,
                  (unsigned long long)folded->peak_bytes,
                  (unsigned long long)allocated);
    ck_assert_msg(folded->active_bytes == reserved,
                  "%s, seed %llu: active %llu, replay %llu", what,
                  (unsigned long long)laws_seed,
                  (unsigned long long)folded->active_bytes,
                  (unsigned long long)reserved);
    ck_assert_msg(folded->step_ns == line.step_ns,
                  "%s, seed %llu: time %llu, replay %llu", what,
                  (unsigned long long)laws_seed,
                  (unsigned long long)folded->step_ns,
                  (unsigned long long)line.step_ns);
    if (folded->streamed)
        check_streamed(folded, &line, machine, what);
    if (chosen != NULL)
        check_categories(chosen, &line, machine, counts);
}

void folded_check_program(ms_fold *fold, const ms_graph *graph,
                          const ms_program *program, const ms_expand_opts *opts,
                          const ms_machine *machine, const char *what,
                          folded_tally *counts)
{
    ms_fault fault = {0};
    ms_folded folded;
    ck_assert_int_eq(ms_fold_program(fold, program, &folded, &fault), MS_OK);
    check_folded(&folded, NULL, graph, program, opts, machine, what, counts);
}

#define MOST_STRETCHES 8u

/* Stretches of random lengths, between which units are open. */
static uint32_t draw_stretches(laws_random *random, uint32_t n_units,
                               ms_fold_stretch *stretches)
{
    uint32_t at = laws_below(random, 3), n = 0;
    while (n < MOST_STRETCHES && at < n_units) {
        uint32_t left = n_units - at;
        uint32_t most = left < 6 || laws_chance(random, 30) ? left : 6;
        uint32_t units = 1 + laws_below(random, most);
        uint32_t segments = 1 + laws_below(random, left / units);
        stretches[n++] = (ms_fold_stretch){at, units, segments};
        at += units * segments + laws_below(random, 4) / 2;
    }
    return laws_chance(random, 10) ? 0 : n;
}

void folded_check_choice(ms_fold *fold, laws_random *random,
                         const ms_graph *graph, const ms_machine *machine,
                         folded_tally *counts)
{
    const ms_expand_opts opts = {0};
    ms_fold_stretch stretches[MOST_STRETCHES];
    ms_fault fault = {0};
    ms_folded folded;
    ms_keep choices;
    ms_program program;
    ms_fold_choice choice = {
        .stretches = stretches,
        .n_stretches = draw_stretches(random, graph->n_units, stretches),
        .micro_batches = 1 + laws_below(random, 6),
        .reentrant = laws_chance(random, 30),
        .early_stop = laws_chance(random, 70)};
    ms_arena_reset(&folded_trial);
    ck_assert_int_eq(
        ms_program_keep_all(graph, &folded_trial, &choices, &fault), MS_OK);
    ms_choice_keep(graph, &choice, &choices);
    ck_assert_int_eq(ms_defaultprogram_alone(graph, &choices,
                                             choice.micro_batches,
                                             &folded_trial, &program, &fault),
                     MS_OK);
    ck_assert_int_eq(ms_fold_choose(fold, &choice, &folded, &fault), MS_OK);
    check_folded(&folded, fold, graph, &program, &opts, machine, "choice",
                 counts);
}

void folded_print(const char *what, const folded_tally *counts)
{
    if (getenv("MEMSIM_TALK") == NULL)
        return;
    printf("%s: %u programs, %u folded, %u with categories, %llu calls, %llu "
           "learnt, %llu repeated\n",
           what, counts->programs, counts->folded, counts->categories,
           (unsigned long long)counts->calls,
           (unsigned long long)counts->learnt,
           (unsigned long long)counts->repeated);
    for (uint32_t why = 1; why < MS_N_FOLD_WHYS; why++)
        if (counts->refused[why] > 0)
            printf("    %u: %s\n", counts->refused[why],
                   ms_fold_sentence((ms_fold_why)why));
}

/* Rates, groups, and ops that slow each other, all at random. */
void folded_draw_machine(laws_random *random, ms_expand_opts *opts,
                         ms_machine *machine)
{
    *opts = (ms_expand_opts){.h2d_bytes_per_s = 1e11,
                             .d2h_bytes_per_s = 5e10,
                             .host_bytes_per_s = 2e11,
                             .nvme_read_bytes_per_s = 1e10,
                             .nvme_write_bytes_per_s = 5e9,
                             .hbm_bytes_per_s = 1e12,
                             .copy_ns = laws_below(random, 20),
                             .groups = LAWS_GROUPS};
    *machine = (ms_machine){.launch_ns = laws_below(random, 150)};
    laws_framework(machine);
    for (uint32_t s = 0; s < MS_N_STREAMS && laws_chance(random, 60); s++)
        machine->demand[s][laws_below(random, MS_N_RESOURCES)] =
            (ms_demand){.held = (uint16_t)laws_below(random, 400),
                        .shared = (uint16_t)laws_below(random, 1000)};
}

/* One micro-batch after the other with what several policies add: shared
 * states, moves, work. */
void folded_draw_streams(laws_random *random, const ms_graph *graph,
                         ms_program *program)
{
    ms_fault fault = {0};
    ms_keep choices;
    ms_arena_reset(&folded_trial);
    laws_keep(random, graph, &folded_trial, &choices);
    ck_assert_int_eq(ms_defaultprogram_alone(graph, &choices,
                                             1 + laws_below(random, 4),
                                             &folded_trial, program, &fault),
                     MS_OK);
    if (laws_chance(random, 50))
        laws_collectives(random, graph, &folded_trial, program);
    if (laws_chance(random, 50))
        laws_moves(random, graph, &folded_trial, program);
    if (laws_chance(random, 30))
        laws_work(random, graph, &folded_trial, program);
}

const char *const folded_models[FOLDED_MODELS] = {
    "{\"memsim\": 1, \"family\": \"decoder\", \"config\": {\"layers\": 6, "
    "\"hidden\": 32, \"heads\": 2, \"vocab\": 100, \"positions\": 16}}",
    "{\"memsim\": 1, \"name\": \"cnn\", \"input\": {\"shape\": [3, 16, 16]}, "
    "\"layers\": [{\"repeat\": 5, \"name\": \"b\", \"layers\": ["
    "{\"type\": \"conv2d\", \"out\": 8, \"kernel\": 3, \"padding\": 1}, "
    "{\"type\": \"batch_norm\"}, {\"type\": \"relu\", \"inplace\": true}]}, "
    "{\"type\": \"flatten\"}, {\"type\": \"linear\", \"out\": 10}, "
    "{\"type\": \"cross_entropy\"}]}",
};
const char *const folded_checkpoints[FOLDED_CHECKPOINTS] = {
    "",
    "+checkpoint:full",
    "+checkpoint:sqrt",
    "+checkpoint:every=2",
    "+checkpoint:every=4",
    "+checkpoint:every=2,last=open",
    "+checkpoint:each=2",
    "+checkpoint:selective",
    "+checkpoint:sac",
    "+checkpoint:full,variant=reentrant",
    "+checkpoint:sqrt,variant=reentrant"};
const char *const folded_micro_batches[FOLDED_MICRO_BATCHES] = {
    "", "+microbatch:4"};
/* With more than one stream, behind the first. */
const char *const folded_others[FOLDED_OTHERS] = {
    "",
    "+ddp:dp=4",
    "+zero:1,dp=4",
    "+zero:2,dp=4",
    "+zero:3,dp=4",
    "+fsdp:dp=4",
    "+fsdp:dp=4,impl=1",
    "+deepspeed:3,dp=4",
    "+offload:optimizer",
    "+swap:vdnn=all",
    "+tensor:2,sp+zero:2,dp=4",
    "+context:2,mode=ring+zero:3,dp=4"};
