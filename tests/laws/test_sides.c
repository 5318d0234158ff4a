/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Forwards and backwards that are one turn, side by side: of models with
 * experts that ranks divide, with ops of random lengths, the work is that of
 * the two one after the other; a pair is never longer than that, never shorter
 * than all that its two turns compute, nor than all that they exchange; nothing
 * begins before what it reads is there; the step is no longer, and leaves as
 * much.  Of models that exchange nothing the plan is the same. */
#include "policies/schedule/orders.h"
#include "sim/graph.h"
#include "sim/machine.h"
#include "sim/plan.h"
#include "sim/program.h"
#include "sim/timeline.h"
#include "tests/inlined.h"
#include "tests/laws/asserts.h"
#include "tests/tests.h"
#include "tools/job/settings.h"

#include <stdio.h>
#include <string.h>

#define N_TRIALS 60u

static ms_arena keep_arena, arena;
static ms_fault fault;

/* Each block has experts, or none of them has. */
#define MODEL(mlp)                                                             \
    "{\"memsim\": 1, \"name\": \"m\", \"input\": {\"tokens\": true, "          \
    "\"longest\": 8}, \"layers\": [{\"type\": \"embedding\", \"vocab\": 32, "  \
    "\"dim\": 16}, {\"repeat\": %u, \"name\": \"b\", \"layers\": [{\"type\": " \
    "\"linear\", \"name\": \"a\", \"out\": 16}, " mlp                          \
    ", {\"type\": \"add\", \"inputs\": [\"e\", \"a\"]}]}, {\"type\": "         \
    "\"linear\", \"out\": 32}, {\"type\": \"cross_entropy\"}]}"
static const char sparse[] = MODEL(
    "{\"type\": \"moe\", \"name\": \"e\", \"experts\": 4, \"hidden\": 8}");
static const char dense[] =
    MODEL("{\"type\": \"linear\", \"name\": \"e\", \"out\": 16}");

typedef struct outcome {
    ms_plan plan;
    ms_timeline line;
} outcome;

static ms_graph graph_of(laws_random *random, const char *model, uint32_t n)
{
    char json[1024];
    ms_job job;
    ms_result result;
    snprintf(json, sizeof json, model, n);
    ms_settings_init(&job);
    job.training.sequence = 8;
    MUST(inlined_lower(json, model == sparse ? "expert:2" : "none", &job,
                       &keep_arena, &result, &fault));
    ms_graph graph = *result.graph;
    uint32_t most = 1 + laws_below(random, 60);
    for (uint32_t op = 0; op < graph.n_ops; op++)
        graph.op_ns[op] = graph.op_stream[op] == MS_STREAM_COMPUTE
                              ? laws_below(random, 20)
                              : laws_below(random, most);
    return graph;
}

static ms_schedule schedule_of(laws_random *random, const ms_graph *graph)
{
    static const ms_order orders[] = {MS_ORDER_DUALPIPEV, MS_ORDER_DUALPIPE,
                                      MS_ORDER_INTERLEAVED};
    ms_order order = orders[laws_below(random, 3)];
    ms_orders_size size = {.ranks = 2 + laws_below(random, 2)};
    size.ranks += order == MS_ORDER_DUALPIPE ? size.ranks % 2 : 0;
    size.chunks = order == MS_ORDER_DUALPIPE ? 1 : 2;
    size.micro_batches = size.ranks * (2 + laws_below(random, 2));
    uint32_t n = size.ranks * size.chunks, first = 0;
    ms_stage *stages = ms_arena_take(&arena, n, sizeof *stages);
    for (uint32_t k = 0; k < n; k++) {
        uint32_t most = graph->n_units - first - (n - k - 1);
        uint32_t units = k + 1 == n ? most : most / (n - k);
        stages[k] = (ms_stage){ms_orders_rank(order, &size, k), first,
                               first + units - 1};
        first += units;
    }
    ms_schedule schedule = {
        .n_stages = n,
        .stages = stages,
        .n_ranks = (uint16_t)size.ranks,
        .n_micro_batches = size.micro_batches,
        .receives =
            laws_chance(random, 70) ? MS_RECEIVE_AHEAD : MS_RECEIVE_TOGETHER,
        .turn_at =
            ms_arena_take(&arena, size.ranks + 1, sizeof *schedule.turn_at),
        .turns = ms_arena_take(&arena, ms_orders_room(&size),
                               sizeof *schedule.turns)};
    MUST(ms_orders_write(order, &size, &arena, &schedule, &fault));
    if (order == MS_ORDER_INTERLEAVED)
        ms_orders_pair(&schedule);
    MUST(ms_schedule_check(graph, &schedule, &fault));
    return schedule;
}

/* Messages take no time. */
static outcome run(const ms_graph *graph, ms_schedule *schedule,
                   const ms_keep *keep, bool sides)
{
    outcome it;
    ms_program program;
    ms_machine machine = {0};
    ms_expand_opts opts = {.groups = LAWS_GROUPS};
    schedule->sides = sides;
    MUST(ms_defaultprogram(graph, keep, schedule, &arena, &program, &fault));
    MUST(ms_check_program(graph, &program, &fault));
    MUST(ms_expand(graph, &program, &opts, &arena, &it.plan, &fault));
    for (uint32_t i = 0; i < it.plan.n_ops; i++)
        if (it.plan.op[i].of == MS_NONE)
            it.plan.op[i].ns = 0;
    MUST(ms_replay(&it.plan, &machine, &arena, &it.line, &fault));
    return it;
}

/* ---- laws ---------------------------------------------------------------- */

/* How often each op of the graph runs, for each rank and micro-batch. */
static uint8_t *counts(const ms_schedule *schedule, const outcome *it)
{
    const ms_graph *graph = it->plan.graph;
    size_t n = (size_t)schedule->n_ranks * schedule->n_micro_batches;
    uint8_t *of = ms_arena_take(&arena, n * graph->n_ops, 1);
    for (uint32_t i = 0; i < it->plan.n_ops; i++) {
        const ms_plan_op *op = &it->plan.op[i];
        size_t row = op->rank * (size_t)schedule->n_micro_batches;
        if (op->of != MS_NONE)
            of[(row + op->micro_batch) * graph->n_ops + op->of]++;
    }
    return of;
}

typedef struct pair_time {
    uint64_t from_ns, to_ns, compute_ns, exchange_ns;
} pair_time;

/* Of the turns of a pair: is the op one of theirs? */
static bool is_of(const ms_schedule *schedule, const ms_plan_op *op,
                  const ms_graph *graph, const ms_turn *turn)
{
    const ms_stage *stage = &schedule->stages[turn->stage];
    if (op->of == MS_NONE || op->micro_batch != turn->micro_batch ||
        graph->op_unit[op->of] == MS_NONE)
        return false;
    uint32_t unit = graph->op_unit[op->of];
    bool forward = op->of < graph->forward_at[graph->n_units];
    return unit >= stage->first && unit <= stage->last &&
           forward == (turn->kind == MS_TURN_FORWARD);
}

static pair_time time_of(const ms_schedule *schedule, const outcome *it,
                         uint32_t rank, const ms_turn *turns)
{
    pair_time of = {.from_ns = UINT64_MAX};
    for (uint32_t i = 0; i < it->plan.n_ops; i++) {
        const ms_plan_op *op = &it->plan.op[i];
        uint64_t from = it->line.start_ns[i], to = it->line.end_ns[i];
        if (op->rank != rank ||
            (!is_of(schedule, op, it->plan.graph, turns) &&
             !is_of(schedule, op, it->plan.graph, turns + 1)))
            continue;
        of.from_ns = from < of.from_ns ? from : of.from_ns;
        of.to_ns = to > of.to_ns ? to : of.to_ns;
        if (op->stream == MS_STREAM_COMPUTE)
            of.compute_ns += to - from;
        else
            of.exchange_ns += to - from;
    }
    return of;
}

/* Returns how many of the pairs are shorter than their turns in sequence. */
static uint32_t check_pairs(const ms_schedule *schedule, const outcome *it)
{
    uint32_t shorter = 0;
    for (uint32_t r = 0; r < schedule->n_ranks; r++)
        for (uint32_t i = schedule->turn_at[r]; i < schedule->turn_at[r + 1];
             i++) {
            if (!schedule->turns[i].pairs)
                continue;
            pair_time of = time_of(schedule, it, r, &schedule->turns[i]);
            uint64_t ns = of.to_ns - of.from_ns;
            HOLDS(ns <= of.compute_ns + of.exchange_ns && ns >= of.compute_ns &&
                      ns >= of.exchange_ns,
                  "rank %u, turn %u: %llu ns of %llu and %llu", r, i,
                  (unsigned long long)ns, (unsigned long long)of.compute_ns,
                  (unsigned long long)of.exchange_ns);
            shorter += ns < of.compute_ns + of.exchange_ns;
        }
    return shorter;
}

static void check_inputs(const outcome *it)
{
    const ms_plan *plan = &it->plan;
    for (uint32_t i = 0; i < plan->n_ops && plan->wait_at; i++)
        for (uint32_t k = plan->wait_at[i]; k < plan->wait_at[i + 1]; k++)
            LAW(it->line.end_ns[plan->wait[k]] <= it->line.start_ns[i]);
}

static uint64_t makespan(const outcome *it)
{
    uint64_t ns = 0;
    for (uint32_t i = 0; i < it->plan.n_ops; i++)
        ns = it->line.end_ns[i] > ns ? it->line.end_ns[i] : ns;
    return ns;
}

/* Half of the trials run ops again that their keeps let go, which are of no
 * turn. */
START_TEST(pairs_go_side_by_side)
{
    uint32_t shorter = 0;
    for (uint32_t trial = 0; trial < N_TRIALS; trial++) {
        laws_random random = {laws_seed = 99000 + trial};
        ms_graph graph = graph_of(&random, sparse, 6 + laws_below(&random, 6));
        ms_schedule schedule = schedule_of(&random, &graph);
        ms_keep keep;
        MUST(ms_program_keep_all(&graph, &arena, &keep, &fault));
        for (uint32_t s = 0; trial % 2 == 1 && s < graph.n_storages; s++)
            if (laws_chance(&random, 20))
                keep.place[s] = MS_GONE;
        outcome after = run(&graph, &schedule, &keep, false);
        outcome beside = run(&graph, &schedule, &keep, true);
        size_t n =
            (size_t)schedule.n_ranks * schedule.n_micro_batches * graph.n_ops;
        LAW(memcmp(counts(&schedule, &after), counts(&schedule, &beside), n) ==
            0);
        check_inputs(&beside);
        if (trial % 2 == 0) {
            shorter += check_pairs(&schedule, &beside);
            LAW(makespan(&beside) <= makespan(&after));
        }
        for (uint32_t r = 0; r < schedule.n_ranks; r++)
            LAW(beside.line.ranks[r].pool[MS_DEVICE_POOL].now_bytes ==
                after.line.ranks[r].pool[MS_DEVICE_POOL].now_bytes);
        ms_arena_reset(&keep_arena);
        ms_arena_reset(&arena);
    }
    ck_assert_uint_gt(shorter, N_TRIALS);
    ms_arena_free(&keep_arena);
    ms_arena_free(&arena);
}
END_TEST

/* From op i on, the next of the graph; a pair waits for what comes besides. */
static uint32_t next_op(const ms_plan *plan, uint32_t i)
{
    while (i < plan->n_ops && plan->op[i].of == MS_NONE)
        i++;
    return i;
}

START_TEST(pairs_without_exchanges_follow_each_other)
{
    for (uint32_t trial = 0; trial < N_TRIALS / 4; trial++) {
        laws_random random = {laws_seed = 99500 + trial};
        ms_graph graph = graph_of(&random, dense, 6 + laws_below(&random, 6));
        ms_schedule schedule = schedule_of(&random, &graph);
        ms_keep keep;
        MUST(ms_program_keep_all(&graph, &arena, &keep, &fault));
        outcome after = run(&graph, &schedule, &keep, false);
        outcome beside = run(&graph, &schedule, &keep, true);
        LAW(makespan(&beside) == makespan(&after));
        for (uint32_t i = 0, k = 0;; i++, k++) {
            i = next_op(&after.plan, i);
            k = next_op(&beside.plan, k);
            LAW((i == after.plan.n_ops) == (k == beside.plan.n_ops));
            if (i == after.plan.n_ops)
                break;
            LAW(beside.plan.op[k].of == after.plan.op[i].of &&
                beside.plan.op[k].rank == after.plan.op[i].rank &&
                beside.plan.op[k].alloc_at == after.plan.op[i].alloc_at &&
                beside.plan.op[k].release_at == after.plan.op[i].release_at &&
                beside.line.start_ns[k] == after.line.start_ns[i]);
        }
        ms_arena_reset(&keep_arena);
        ms_arena_reset(&arena);
    }
    ms_arena_free(&keep_arena);
    ms_arena_free(&arena);
}
END_TEST

Suite *suite_sides(void)
{
    Suite *suite = suite_create("sides");
    TCase *tcase = tcase_create("sides");
    tcase_set_timeout(tcase, 120);
    tcase_add_test(tcase, pairs_go_side_by_side);
    tcase_add_test(tcase, pairs_without_exchanges_follow_each_other);
    suite_add_tcase(suite, tcase);
    return suite;
}
