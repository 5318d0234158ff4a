/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A pipeline of many micro-batches is told from few: of every rank the peak,
 * allocated and active, and each part of the time are those of the step with
 * all of them, for every order, beside every policy that stands beside it. */
#include "policies/common/policy.h"
#include "policies/schedule/orders.h"
#include "sim/graph.h"
#include "sim/machine.h"
#include "sim/plan.h"
#include "sim/program.h"
#include "sim/repeat/rounds.h"
#include "sim/timeline.h"
#include "tests/inlined.h"
#include "tests/laws/asserts.h"
#include "tests/laws/laws.h"
#include "tests/tests.h"
#include "tools/job/job.h"
#include "tools/job/result.h"
#include "tools/job/settings.h"

#include <stdio.h>
#include <string.h>

#define MANY(list) (sizeof(list) / sizeof *(list))

static const char *const orders[] = {
    "pipeline:2",
    "pipeline:4",
    "pipeline:4,overlap=1",
    "pipeline:3,layers=2/3/7",
    "pipeline:4,schedule=interleaved,chunks=2",
    "pipeline:2,schedule=interleaved,chunks=3",
    "pipeline:3,schedule=zb-h1",
    "pipeline:4,schedule=zb-h2",
    "pipeline:2,schedule=zb-h1,chunks=2",
    "pipeline:3,schedule=zb-v",
    "pipeline:4,schedule=gpipe",
    "pipeline:2,schedule=looped-bfs,chunks=2",
};
static const char *const beside[] = {"",
                                     "+checkpoint:sqrt",
                                     "+checkpoint:full,variant=reentrant",
                                     "+checkpoint:every=2",
                                     "+ddp:dp=4",
                                     "+zero:1,dp=2",
                                     "+zero:2,dp=3+checkpoint:full",
                                     "+fsdp:dp=4"};
static const uint32_t counts[] = {96, 120, 240};
/* the hosts are behind their devices, or ahead of them */
static const uint32_t samples[] = {1, 512};

static const char *const models[] = {
    "{\"memsim\": 1, \"family\": \"decoder\", \"config\": {\"layers\": 12, "
    "\"hidden\": 32, \"heads\": 2, \"vocab\": 100, \"positions\": 16}}",
    "{\"memsim\": 1, \"name\": \"mlp\", \"input\": {\"shape\": [32]}, "
    "\"layers\": [{\"repeat\": 12, \"name\": \"h\", \"layers\": ["
    "{\"type\": \"linear\", \"out\": 32}, {\"type\": \"dropout\"}, "
    "{\"type\": \"gelu\"}]}, {\"type\": \"mean\"}]}",
};

static ms_arena lowered, trial;

/* Padding counts for nothing: both were filled field by field from zeros. */
static void check_rank(const char *policy, const ms_rank_report *told,
                       const ms_rank_report *whole)
{
    const void *a = &told->time, *b = &whole->time;
    ck_assert_msg(told->peak.allocated_bytes == whole->peak.allocated_bytes,
                  "%s: rank %u", policy, (unsigned)whole->rank);
    ck_assert_msg(told->peak.reserved_bytes == whole->peak.reserved_bytes,
                  "%s: rank %u: %llu for %llu active", policy,
                  (unsigned)whole->rank,
                  (unsigned long long)told->peak.reserved_bytes,
                  (unsigned long long)whole->peak.reserved_bytes);
    ck_assert_msg(memcmp(a, b, sizeof told->time) == 0, "%s: rank %u", policy,
                  (unsigned)whole->rank);
}

/* 0: it was refused; 1: its rounds do not repeat; 2: they do. */
static int try_policy(const char *json, const char *policy, uint64_t batch)
{
    ms_fault fault = {0};
    ms_job job;
    ms_result few = {0}, all;
    ms_rank_report *told;
    ms_settings_init(&job);
    job.training.batch = (int64_t)batch;
    if (inlined_lower(json, policy, &job, &lowered, &few, &fault) != MS_OK)
        return 0;
    all = few;
    job.whole_ops = UINT64_MAX;
    if (ms_jobway_step(&job, &trial, &all, &fault) != MS_OK)
        return 0;
    ck_assert_int_eq(ms_pipelinerounds_step(&job, &trial, &few, &told, &fault),
                     MS_OK);
    if (told == NULL)
        return 1;
    for (uint16_t r = 0; r < all.report->n_ranks; r++)
        check_rank(policy, &told[r], &all.report->ranks[r]);
    return 2;
}

START_TEST(rounds_are_what_all_are)
{
    size_t n[3] = {0}, of_order[MANY(orders)] = {0};
    for (size_t i = 0; i < MANY(orders) * MANY(beside) * MANY(samples); i++) {
        size_t order = i % MANY(orders), with = i / MANY(orders);
        uint32_t count = counts[(order + with) % MANY(counts)];
        char policy[160];
        snprintf(policy, sizeof policy, "microbatch:%u+%s%s", count,
                 orders[order], beside[with % MANY(beside)]);
        int answer = try_policy(models[(order + with) % MANY(models)], policy,
                                count * samples[with / MANY(beside)]);
        n[answer]++;
        of_order[order] += answer == 2;
        ms_arena_reset(&lowered);
        ms_arena_reset(&trial);
    }
    /* All in flight at once: no round is like the one before. */
    ck_assert_uint_eq(of_order[MANY(orders) - 1], 0);
    ck_assert_uint_eq(of_order[MANY(orders) - 2], 0);
    ck_assert_uint_gt(3 * n[2], 2 * n[1]);
    for (size_t i = 0; i < MANY(orders) - 2; i++)
        ck_assert_msg(of_order[i] > 0, "%s", orders[i]);
    ms_arena_free(&lowered);
    ms_arena_free(&trial);
}
END_TEST

/* ---- random graphs ------------------------------------------------------- */

#define N_TRIALS 400u
#define FEW 24u

static ms_fault fault;

static ms_schedule schedule_of(const ms_graph *graph, uint32_t ranks,
                               ms_order order, uint32_t micro_batches)
{
    const ms_orders_size size = {ranks, 1, micro_batches, 0};
    ms_stage *stages = ms_arena_take(&trial, ranks, sizeof *stages);
    ms_schedule schedule = {
        .n_stages = ranks,
        .stages = stages,
        .n_ranks = (uint16_t)ranks,
        .n_micro_batches = micro_batches,
        .receives = MS_RECEIVE_AHEAD,
        .turn_at = ms_arena_take(&trial, ranks + 1, sizeof *schedule.turn_at),
        .turns = ms_arena_take(&trial, ms_orders_room(&size),
                               sizeof *schedule.turns)};
    for (uint32_t k = 0; k < ranks; k++)
        stages[k] = (ms_stage){(uint16_t)k, graph->n_units * k / ranks,
                               graph->n_units * (k + 1) / ranks - 1};
    MUST(ms_orders_write(order, &size, &trial, &schedule, &fault));
    return schedule;
}

/* A random step reads what other ranks' parts of it make. */
static void expand(const ms_graph *graph, const ms_keep *keep,
                   const ms_schedule *schedule, ms_plan *plan)
{
    ms_program program;
    const ms_expand_opts opts = {.groups = LAWS_GROUPS};
    uint32_t n = 0;
    MUST(ms_defaultprogram(graph, keep, schedule, &trial, &program, &fault));
    for (uint32_t i = 0; i < program.n_calls; i++)
        if (program.calls[i].verb != MS_STEP_SET)
            program.calls[n++] = program.calls[i];
    program.n_calls = n;
    MUST(ms_expand(graph, &program, &opts, &trial, plan, &fault));
}

/* Messages slow what computes on their rank, or do not. */
static ms_machine machine_of(laws_random *random)
{
    ms_machine machine = {.launch_ns = laws_below(random, 30),
                          .capacity_bytes = 1u << 30};
    if (laws_chance(random, 50))
        return machine;
    machine.demand[MS_STREAM_COMPUTE][MS_MULTIPROCESSORS].shared = 1000;
    machine.demand[MS_STREAM_COMM][MS_MULTIPROCESSORS].held = 200;
    machine.demand[MS_STREAM_OUTER][MS_MULTIPROCESSORS].held = 100;
    return machine;
}

static bool check_trial(laws_random *random)
{
    ms_graph graph;
    ms_keep keep;
    ms_plan plan;
    ms_timeline line;
    ms_rounds rounds;
    bool found;
    ms_roundcut cut = {.round = 1};
    laws_graph(random, &trial, &graph);
    MUST(ms_program_keep_all(&graph, &trial, &keep, &fault));
    if (graph.n_units < 2)
        return false;
    uint32_t ranks = 2 + laws_below(random, graph.n_units < 4 ? 1 : 3);
    uint32_t n = FEW + 1 + laws_below(random, 60);
    ms_order order = laws_chance(random, 50) ? MS_ORDER_1F1B : MS_ORDER_ZB_H1;
    ms_machine machine = machine_of(random);
    ms_schedule few = schedule_of(&graph, ranks, order, FEW);
    ms_schedule many = schedule_of(&graph, ranks, order, n);
    cut.before = ms_roundcut_before(&many, 1);
    MUST(ms_roundcut_find(&few, &many, &trial, &cut, &found, &fault));
    LAW(found);
    expand(&graph, &keep, &few, &plan);
    MUST(ms_replay_clock(&plan, &machine, &trial, &line, &fault));
    MUST(
        ms_rounds_find(&line, &machine, &cut, &trial, &rounds, &found, &fault));
    if (!found)
        return false;
    ms_rank_report *told = ms_arena_take(&trial, ranks, sizeof *told);
    ms_report whole;
    MUST(ms_roundsums_ranks(&line, &machine, &cut, &rounds, &trial, told,
                            &fault));
    expand(&graph, &keep, &many, &plan);
    MUST(ms_replay(&plan, &machine, &trial, &line, &fault));
    MUST(ms_measure(&line, &machine, &trial, &whole, &fault));
    for (uint32_t r = 0; r < ranks; r++)
        check_rank("random", &told[r], &whole.ranks[r]);
    return true;
}

START_TEST(rounds_of_random_graphs)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < N_TRIALS; i++) {
        laws_random random = {laws_seed = 83000 + i};
        n += check_trial(&random);
        ms_arena_reset(&trial);
    }
    ck_assert_uint_gt(n, N_TRIALS / 4);
    ms_arena_free(&trial);
}
END_TEST

Suite *suite_rounds(void)
{
    Suite *suite = suite_create("rounds");
    TCase *tcase = tcase_create("rounds");
    tcase_set_timeout(tcase, 240);
    tcase_add_test(tcase, rounds_are_what_all_are);
    tcase_add_test(tcase, rounds_of_random_graphs);
    suite_add_tcase(suite, tcase);
    return suite;
}
