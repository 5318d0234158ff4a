/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What is folded is what expand and replay say, to the byte and to the
 * nanosecond, or a reason is given: on random graphs and programs, on equal
 * units, and for compositions of policies.  Refusing everything does not
 * pass. */
#include "policies/common/policy.h"
#include "sim/fold/fold.h"
#include "sim/graph.h"
#include "sim/report.h"
#include "sim/schedule/schedule.h"
#include "sim/timeline.h"
#include "tests/inlined.h"
#include "tests/laws/folded.h"
#include "tests/laws/laws.h"
#include "tests/tests.h"
#include "tools/job/jobprogram.h"
#include "tools/job/settings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GRAPHS 2000u
#define PROGRAMS_EACH 3u

static void check_random_programs(laws_random *random, const ms_graph *graph,
                                  uint32_t n, const char *what,
                                  folded_tally *counts)
{
    const ms_expand_opts opts = {0};
    ms_machine machine = {.launch_ns = laws_below(random, 150)};
    laws_framework(&machine);
    ms_fault fault = {0};
    ms_fold *fold;
    ck_assert_int_eq(
        ms_fold_open(graph, &opts, &machine, &folded_keep, &fold, &fault),
        MS_OK);
    for (uint32_t i = 0; i < n; i++) {
        ms_keep choices;
        ms_program program;
        uint32_t micro_batches = 1 + laws_below(random, 6);
        ms_arena_reset(&folded_trial);
        laws_keep(random, graph, &folded_trial, &choices);
        ck_assert_int_eq(ms_defaultprogram_alone(graph, &choices, micro_batches,
                                                 &folded_trial, &program,
                                                 &fault),
                         MS_OK);
        if (laws_chance(random, 5))
            laws_moves(random, graph, &folded_trial, &program);
        folded_check_program(fold, graph, &program, &opts, &machine, what,
                             counts);
    }
    ms_fold_close(fold);
}

/* A quarter of these graphs has ops on two streams, and a few programs move
 * storages. */
START_TEST(random_programs)
{
    folded_tally counts = {0};
    for (laws_seed = 1; laws_seed <= GRAPHS; laws_seed++) {
        laws_random random = {laws_seed};
        ms_graph graph;
        ms_arena_reset(&folded_keep);
        laws_graph(&random, &folded_keep, &graph);
        check_random_programs(&random, &graph, PROGRAMS_EACH, "random",
                              &counts);
    }
    folded_print("random", &counts);
    ck_assert_uint_eq(counts.programs, GRAPHS * PROGRAMS_EACH);
    ck_assert_uint_ge(counts.folded, counts.programs * 95 / 100);
    folded_close();
}
END_TEST

/* Some of what random programs gather outlives the call that has asked. */
START_TEST(random_streams)
{
    folded_tally counts = {0};
    for (laws_seed = 1; laws_seed <= GRAPHS; laws_seed++) {
        laws_random random = {laws_seed};
        ms_expand_opts opts;
        ms_machine machine;
        ms_fault fault = {0};
        ms_graph graph;
        ms_fold *fold;
        ms_arena_reset(&folded_keep);
        if (laws_chance(&random, 60))
            laws_graph(&random, &folded_keep, &graph);
        else
            laws_chain(1 + laws_below(&random, 20), 1000, &folded_keep, &graph);
        if (laws_chance(&random, 60))
            laws_share(&random, &graph, &folded_keep);
        folded_draw_machine(&random, &opts, &machine);
        ck_assert_int_eq(
            ms_fold_open(&graph, &opts, &machine, &folded_keep, &fold, &fault),
            MS_OK);
        for (uint32_t i = 0; i < PROGRAMS_EACH; i++) {
            ms_program program;
            folded_draw_streams(&random, &graph, &program);
            folded_check_program(fold, &graph, &program, &opts, &machine,
                                 "streams", &counts);
        }
        ms_fold_close(fold);
    }
    folded_print("streams", &counts);
    ck_assert_uint_ge(counts.folded, counts.programs * 7 / 10);
    folded_close();
}
END_TEST

/* Equal units share what is learnt. */
START_TEST(equal_units)
{
    folded_tally counts = {0};
    for (laws_seed = 1; laws_seed <= 200; laws_seed++) {
        laws_random random = {laws_seed};
        ms_graph graph;
        ms_arena_reset(&folded_keep);
        laws_chain(1 + laws_below(&random, 40), 1000, &folded_keep, &graph);
        check_random_programs(&random, &graph, 20, "chain", &counts);
    }
    folded_print("equal units", &counts);
    ck_assert_uint_ge(counts.folded, counts.programs * 9 / 10);
    ck_assert_uint_lt(3 * counts.learnt, counts.calls);
    folded_close();
}
END_TEST

/* Steps of the job through the evaluator, and through expand and replay. */
static void check_policy(const char *model, const char *policy,
                         folded_tally *counts)
{
    static ms_arena lowered;
    ms_fault fault = {0};
    ms_job job;
    ms_result result = {0};
    ms_expand_opts opts;
    ms_fold *fold;
    ms_arena_reset(&lowered);
    ms_arena_reset(&folded_trial);
    ms_settings_init(&job);
    job.training.batch = 4;
    if (inlined_lower(model, policy, &job, &lowered, &result, &fault) != MS_OK)
        return;
    ck_assert_msg(ms_jobprogram_make(&job, &folded_trial, &opts, &result,
                                     &fault) == MS_OK,
                  "%s: %s", policy, fault.what);
    ck_assert_int_eq(ms_fold_open(result.graph, &opts, result.machine, &lowered,
                                  &fold, &fault),
                     MS_OK);
    for (int again = 0; again < 2; again++)
        folded_check_program(fold, result.graph, result.program, &opts,
                             result.machine, policy, counts);
    ms_fold_close(fold);
    ms_arena_free(&lowered);
}

/* Every composition is folded, whatever its streams. */
START_TEST(compositions)
{
    folded_tally plain = {0}, rest = {0};
    char policy[160];
    for (size_t i = 0; i < FOLDED_MODELS * FOLDED_CHECKPOINTS *
                               FOLDED_MICRO_BATCHES * FOLDED_OTHERS;
         i++) {
        size_t k = i / FOLDED_MODELS, c = k % FOLDED_CHECKPOINTS;
        size_t m = k / FOLDED_CHECKPOINTS % FOLDED_MICRO_BATCHES;
        size_t o = k / FOLDED_CHECKPOINTS / FOLDED_MICRO_BATCHES;
        snprintf(policy, sizeof policy, "none%s%s%s", folded_checkpoints[c],
                 folded_micro_batches[m], folded_others[o]);
        check_policy(folded_models[i % FOLDED_MODELS], policy,
                     o == 0 ? &plain : &rest);
    }
    folded_print("compositions", &plain);
    folded_print("with others", &rest);
    ck_assert_uint_ge(plain.programs, 60);
    ck_assert_uint_eq(plain.folded, plain.programs);
    ck_assert_uint_ge(rest.programs, 500);
    ck_assert_uint_eq(rest.folded, rest.programs);
    folded_close();
}
END_TEST

static void check_choices(laws_random *random, const ms_graph *graph,
                          uint32_t n, folded_tally *counts)
{
    const ms_expand_opts opts = {0};
    ms_machine machine = {.launch_ns = laws_below(random, 150)};
    laws_framework(&machine);
    ms_fault fault = {0};
    ms_fold *fold;
    ck_assert_int_eq(
        ms_fold_open(graph, &opts, &machine, &folded_keep, &fold, &fault),
        MS_OK);
    for (uint32_t i = 0; i < n; i++)
        folded_check_choice(fold, random, graph, &machine, counts);
    ms_fold_close(fold);
}

/* Most units are equal, or every p-th, and a few are like no other. */
static void draw_chain(laws_random *random, ms_graph *graph)
{
    uint32_t n = 1 + laws_below(random, 60), p = 1 + laws_below(random, 4);
    laws_chain(n, 1000, &folded_keep, graph);
    for (uint32_t u = 0; u < n && laws_chance(random, 98); u++) {
        graph->op_ns[graph->forward_at[u]] += u % p;
        graph->storage_bytes[u + 1] += UINT64_C(8) * (u % p);
    }
    for (uint32_t i = 0; i < 3 && laws_chance(random, 40); i++)
        graph->op_ns[graph->forward_at[laws_below(random, n)]] += 5 + i;
}

/* Choices by stretches of units, without a program. */
START_TEST(random_choices)
{
    folded_tally random_graphs = {0}, chains = {0};
    for (laws_seed = 1; laws_seed <= 500; laws_seed++) {
        laws_random random = {laws_seed};
        ms_graph graph;
        ms_arena_reset(&folded_keep);
        laws_graph(&random, &folded_keep, &graph);
        check_choices(&random, &graph, 5, &random_graphs);
        ms_arena_reset(&folded_keep);
        draw_chain(&random, &graph);
        check_choices(&random, &graph, 10, &chains);
    }
    folded_print("choices", &random_graphs);
    folded_print("choices of chains", &chains);
    ck_assert_uint_ge(random_graphs.categories, random_graphs.folded / 4);
    ck_assert_uint_ge(chains.categories, chains.folded / 2);
    ck_assert_uint_ge(random_graphs.folded, random_graphs.programs / 2);
    ck_assert_uint_eq(chains.folded, chains.programs);
    ck_assert_uint_ge(chains.repeated, 10 * (uint64_t)chains.programs);
    folded_close();
}
END_TEST

/* What is learnt of the same programs is learnt once, and many others do not
 * make the evaluator grow without end. */
START_TEST(bounded_memory)
{
    const ms_expand_opts opts = {0};
    const ms_machine machine = {.launch_ns = 5};
    ms_fault fault = {0};
    ms_fold *fold;
    ms_graph graph;
    uint64_t bytes = 0, most_bytes = 0;
    laws_chain(100, 1000, &folded_keep, &graph);
    ck_assert_int_eq(
        ms_fold_open(&graph, &opts, &machine, &folded_keep, &fold, &fault),
        MS_OK);
    for (uint32_t i = 0; i < 6000; i++) {
        laws_random random = {i % 2 == 0 ? 7 : i};
        ms_keep choices;
        ms_program program;
        ms_folded folded;
        ms_arena_reset(&folded_trial);
        laws_keep(&random, &graph, &folded_trial, &choices);
        ck_assert_int_eq(ms_defaultprogram_alone(&graph, &choices, 2,
                                                 &folded_trial, &program,
                                                 &fault),
                         MS_OK);
        ck_assert_int_eq(ms_fold_program(fold, &program, &folded, &fault),
                         MS_OK);
        ck_assert_int_eq(folded.why, MS_FOLD_WHOLE);
        bytes = ms_fold_bytes(fold);
        most_bytes = bytes > most_bytes ? bytes : most_bytes;
    }
    ms_fold_close(fold);
    ck_assert_uint_lt(most_bytes, UINT64_C(64) << 20);
    folded_close();
}
END_TEST

Suite *suite_folds(void)
{
    Suite *suite = suite_create("folds");
    TCase *tcase = tcase_create("folds");
    tcase_set_timeout(tcase, 300);
    tcase_add_test(tcase, random_programs);
    tcase_add_test(tcase, random_streams);
    tcase_add_test(tcase, equal_units);
    tcase_add_test(tcase, random_choices);
    tcase_add_test(tcase, compositions);
    tcase_add_test(tcase, bounded_memory);
    suite_add_tcase(suite, tcase);
    return suite;
}
