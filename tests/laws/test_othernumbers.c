/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What is learnt of a graph is told of graphs that differ from it in numbers
 * alone, exactly: batch sizes of a model under compositions of policies, random
 * graphs and programs, on one stream and on several. */
#include "policies/common/policy.h"
#include "sim/fold/fold.h"
#include "sim/graph.h"
#include "sim/schedule/schedule.h"
#include "tests/inlined.h"
#include "tests/laws/folded.h"
#include "tests/laws/laws.h"
#include "tests/tests.h"
#include "tools/job/jobprogram.h"
#include "tools/job/settings.h"

#include <stdio.h>
#include <string.h>

/* The step of a batch: its graph and its program. */
static void make_step(const char *model, const char *policy, int64_t batch,
                      ms_arena *arena, ms_expand_opts *opts, ms_result *result)
{
    ms_fault fault = {0};
    ms_job job;
    *result = (ms_result){0};
    ms_settings_init(&job);
    job.training.batch = batch;
    ck_assert_msg(inlined_lower(model, policy, &job, arena, result, &fault) ==
                      MS_OK,
                  "%s: %s", policy, fault.what);
    ck_assert_msg(ms_jobprogram_make(&job, arena, opts, result, &fault) ==
                      MS_OK,
                  "%s: %s", policy, fault.what);
}

/* What is learnt of one batch size is known of others. */
static void check_batches(const char *model, const char *policy,
                          folded_tally *counts)
{
    ms_fault fault = {0};
    ms_expand_opts opts;
    ms_result results[3];
    ms_fold *fold;
    ms_arena_reset(&folded_keep);
    for (int i = 0; i < 3; i++)
        make_step(model, policy, 4 << i, &folded_keep, &opts, &results[i]);
    ck_assert_int_eq(ms_fold_open(results[0].graph, &opts, results[0].machine,
                                  &folded_keep, &fold, &fault),
                     MS_OK);
    for (int i = 0; i < 3; i++) {
        uint64_t learnt = counts->learnt;
        if (i > 0)
            ck_assert_msg(ms_fold_turn(fold, results[i].graph), "%s", policy);
        ms_arena_reset(&folded_trial);
        folded_check_program(fold, results[i].graph, results[i].program, &opts,
                             results[0].machine, policy, counts);
        ck_assert_msg(i == 0 || counts->learnt == learnt, "%s: learns again",
                      policy);
    }
    ms_fold_close(fold);
}

/* Collectives among the ranks that split layers take times that the graph
 * tells, so that each batch is learnt by itself. */
START_TEST(other_batches)
{
    folded_tally counts = {0};
    char policy[160];
    for (size_t i = 0; i < FOLDED_CHECKPOINTS * FOLDED_OTHERS; i++) {
        size_t c = i % FOLDED_CHECKPOINTS, o = i / FOLDED_CHECKPOINTS;
        if (strstr(folded_others[o], "tensor") != NULL ||
            strstr(folded_others[o], "context") != NULL)
            continue;
        snprintf(policy, sizeof policy, "none%s%s", folded_checkpoints[c],
                 folded_others[o]);
        check_batches(folded_models[0], policy, &counts);
    }
    folded_print("other batches", &counts);
    ck_assert_uint_eq(counts.folded, counts.programs);
    ck_assert_uint_ge(counts.programs, 240);
    folded_close();
}
END_TEST

/* Equal numbers stay equal, unless each is drawn by itself. */
static uint64_t *draw_numbers(laws_random *random, bool apart,
                              const uint64_t *numbers, uint32_t n)
{
    uint64_t factor = 1 + laws_below(random, 7), more = laws_below(random, 99);
    uint64_t *drawn = ms_arena_take(&folded_keep, n, sizeof *drawn);
    for (uint32_t i = 0; i < n; i++)
        drawn[i] = apart && laws_chance(random, 5)
                       ? laws_below(random, 5000)
                       : numbers[i] * factor + numbers[i] % 3 * more;
    return drawn;
}

/* same: what lasts is as large in both. */
static void copy_graph(const ms_graph *graph, laws_random *random, bool apart,
                       bool same, ms_graph *copy)
{
    ms_fault fault = {0};
    uint64_t *part = graph->storage_shard_bytes, *drawn;
    uint32_t lasts = graph->n_persistent;
    *copy = *graph;
    copy->storage_bytes =
        draw_numbers(random, apart, graph->storage_bytes, graph->n_storages);
    copy->op_ns = draw_numbers(random, apart, graph->op_ns, graph->n_ops);
    if (part != NULL) {
        drawn = draw_numbers(random, apart, part, lasts);
        copy->storage_shard_bytes = drawn;
        for (uint32_t s = 0; s < lasts; s++)
            if (part[s] == MS_UNSHARED)
                drawn[s] = MS_UNSHARED;
    }
    if (same) {
        memcpy(copy->storage_bytes, graph->storage_bytes,
               lasts * sizeof *copy->storage_bytes);
        copy->storage_shard_bytes = part;
    }
    ck_assert_int_eq(ms_prepare_graph(copy, &folded_keep, &fault), MS_OK);
}

/* Programs and choices of one graph, then of one like it with what was learnt
 * of the first, and so on; the machine's rates change, too. */
static void check_turns(laws_random *random, ms_graph *graph,
                        folded_tally *counts, uint32_t *turned)
{
    const ms_expand_opts opts = {0};
    ms_machine machine = {.launch_ns = laws_below(random, 150)};
    ms_fault fault = {0};
    ms_graph graphs[4];
    ms_fold *fold;
    ck_assert_int_eq(ms_prepare_graph(graph, &folded_keep, &fault), MS_OK);
    ck_assert_int_eq(
        ms_fold_open(graph, &opts, &machine, &folded_keep, &fold, &fault),
        MS_OK);
    const ms_graph *now = graph;
    for (uint32_t i = 0; i < 4; i++) {
        copy_graph(graph, random, i == 2, false, &graphs[i]);
        if (ms_fold_turn(fold, &graphs[i])) {
            now = &graphs[i];
            machine.launch_ns = laws_below(random, 150);
            ++*turned;
        }
        laws_random again = {laws_seed}; /* the same choices each time */
        for (uint32_t k = 0; k < 3; k++)
            folded_check_choice(fold, &again, now, &machine, counts);
        for (uint32_t k = 0; k < 2; k++) {
            ms_keep choices;
            ms_program program;
            ms_arena_reset(&folded_trial);
            laws_keep(&again, now, &folded_trial, &choices);
            ck_assert_int_eq(ms_defaultprogram_alone(now, &choices, 2,
                                                     &folded_trial, &program,
                                                     &fault),
                             MS_OK);
            folded_check_program(fold, now, &program, &opts, &machine, "turned",
                                 counts);
        }
    }
    ms_fold_close(fold);
}

START_TEST(other_numbers)
{
    folded_tally counts = {0};
    uint32_t turned = 0;
    for (laws_seed = 1; laws_seed <= 400; laws_seed++) {
        laws_random random = {laws_seed};
        ms_graph graph;
        ms_arena_reset(&folded_keep);
        if (laws_seed % 2 == 0)
            laws_graph(&random, &folded_keep, &graph);
        else
            laws_chain(1 + laws_below(&random, 30), 1000, &folded_keep, &graph);
        check_turns(&random, &graph, &counts, &turned);
    }
    folded_print("other numbers", &counts);
    ck_assert_uint_ge(counts.folded, counts.programs * 3 / 4);
    ck_assert_uint_ge(turned, 800);
    folded_close();
}
END_TEST

/* The same with several streams: shared states, moves, work. */
static void check_streamed_turns(laws_random *random, ms_graph *graph,
                                 folded_tally *counts, uint32_t *turned)
{
    ms_expand_opts opts;
    ms_machine machine;
    ms_fault fault = {0};
    ms_graph graphs[4];
    ms_fold *fold;
    folded_draw_machine(random, &opts, &machine);
    ck_assert_int_eq(ms_prepare_graph(graph, &folded_keep, &fault), MS_OK);
    ck_assert_int_eq(
        ms_fold_open(graph, &opts, &machine, &folded_keep, &fold, &fault),
        MS_OK);
    const ms_graph *now = graph;
    for (uint32_t i = 0; i < 5; i++) {
        laws_random again = {laws_seed}; /* the same programs each time */
        for (uint32_t k = 0; k < 2; k++) {
            ms_program program;
            folded_draw_streams(&again, now, &program);
            folded_check_program(fold, now, &program, &opts, &machine, "turned",
                                 counts);
        }
        if (i == 4)
            break;
        copy_graph(graph, random, i == 2, i % 2 > 0, &graphs[i]);
        if (ms_fold_turn(fold, &graphs[i])) {
            now = &graphs[i];
            ++*turned;
        }
    }
    ms_fold_close(fold);
}

START_TEST(other_streams)
{
    folded_tally counts = {0};
    uint32_t turned = 0;
    for (laws_seed = 1; laws_seed <= 600; laws_seed++) {
        laws_random random = {laws_seed};
        ms_graph graph;
        ms_arena_reset(&folded_keep);
        if (laws_seed % 2 == 0)
            laws_graph(&random, &folded_keep, &graph);
        else
            laws_chain(1 + laws_below(&random, 20), 1000, &folded_keep, &graph);
        if (laws_chance(&random, 60))
            laws_share(&random, &graph, &folded_keep);
        check_streamed_turns(&random, &graph, &counts, &turned);
    }
    folded_print("other streams", &counts);
    ck_assert_uint_ge(counts.folded, counts.programs * 2 / 3);
    ck_assert_uint_ge(turned, 1200);
    ck_assert_uint_lt(2 * counts.learnt, counts.calls);
    folded_close();
}
END_TEST

Suite *suite_othernumbers(void)
{
    Suite *suite = suite_create("othernumbers");
    TCase *tcase = tcase_create("othernumbers");
    tcase_set_timeout(tcase, 300);
    tcase_add_test(tcase, other_batches);
    tcase_add_test(tcase, other_numbers);
    tcase_add_test(tcase, other_streams);
    suite_add_tcase(suite, tcase);
    return suite;
}
