/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Random graphs cut into the stages of pipelines, in every order and in orders
 * of no rule, with random keeps: each rank runs the ops of its units once per
 * micro-batch, in either half of backward, and recomputes what its keep drops,
 * whatever the implementation keeps besides;
 * what a micro-batch makes is gone when the step ends; the level is that of the
 * naive oracles. */
#include "policies/schedule/orders.h"
#include "sim/graph.h"
#include "sim/machine.h"
#include "sim/plan.h"
#include "sim/program.h"
#include "sim/timeline.h"
#include "tests/laws/asserts.h"
#include "tests/laws/turns.h"
#include "tests/tests.h"

#include <string.h>

#define N_TRIALS 1500u
#define MOST_RANKS 4u

static ms_arena arena;
static ms_fault fault;

/* Stages of random sizes. */
static ms_stage *cut(laws_random *random, const ms_graph *graph, ms_order order,
                     const ms_orders_size *size)
{
    uint32_t n = size->ranks * size->chunks, first = 0;
    ms_stage *stages = ms_arena_take(&arena, n, sizeof *stages);
    for (uint32_t k = 0; k < n; k++) {
        uint32_t most = graph->n_units - first - (n - k - 1);
        uint32_t units = k + 1 == n ? most : 1 + laws_below(random, most);
        stages[k] = (ms_stage){ms_orders_rank(order, size, k), first,
                               first + units - 1};
        first += units;
    }
    return stages;
}

static ms_schedule schedule_of(laws_random *random, const ms_graph *graph)
{
    ms_order order = (ms_order)laws_below(random, MS_N_ORDERS);
    bool chunks = order == MS_ORDER_INTERLEAVED ||
                  order == MS_ORDER_LOOPED_BFS ||
                  (order == MS_ORDER_ZB_H1 && laws_chance(random, 50));
    ms_orders_size size = {.chunks = ms_orders_chunks(order, chunks ? 2 : 0)};
    if (graph->n_units < size.chunks ||
        (order == MS_ORDER_DUALPIPE && graph->n_units < 2)) {
        order = MS_ORDER_ZB_H2;
        size.chunks = 1;
    }
    uint32_t most = graph->n_units / size.chunks;
    most = most < MOST_RANKS ? most : MOST_RANKS;
    size.ranks = 1 + laws_below(random, most);
    if (order == MS_ORDER_DUALPIPE)
        size.ranks = 2 * (1 + laws_below(random, most / 2));
    size.micro_batches = size.ranks * (1 + laws_below(random, 3));
    if (order >= MS_ORDER_DUALPIPEV)
        size.micro_batches += size.ranks;
    ms_schedule schedule = {
        .n_stages = size.ranks * size.chunks,
        .stages = cut(random, graph, order, &size),
        .n_ranks = (uint16_t)size.ranks,
        .n_micro_batches = size.micro_batches,
        .receives = (uint8_t)laws_below(random, MS_RECEIVE_TOGETHER + 1u),
        .turn_at =
            ms_arena_take(&arena, size.ranks + 1, sizeof *schedule.turn_at),
        .turns = ms_arena_take(&arena, ms_orders_room(&size),
                               sizeof *schedule.turns)};
    if (laws_chance(random, 30))
        schedule.keeps = (ms_schedule_keeps){
            laws_chance(random, 70), laws_chance(random, 70),
            laws_chance(random, 70), (uint8_t)laws_below(random, 3)};
    bool any = laws_chance(random, 30);
    /* Rendezvous at turns' ends may deadlock. */
    if ((any || order > MS_ORDER_GPIPE) && schedule.receives == MS_RECEIVE_NEXT)
        schedule.receives = MS_RECEIVE_AHEAD;
    if (any) {
        laws_turns(random, &arena, &schedule);
        MUST(ms_schedule_check(graph, &schedule, &fault));
        return schedule;
    }
    MUST(ms_orders_write(order, &size, &arena, &schedule, &fault));
    MUST(ms_schedule_check(graph, &schedule, &fault));
    return schedule;
}

static uint32_t rank_of(const ms_schedule *schedule, uint32_t unit,
                        uint32_t micro_batch)
{
    for (uint32_t k = 0; k < schedule->n_stages; k++)
        if (unit <= schedule->stages[k].last)
            return ms_schedule_rank(schedule, k, micro_batch);
    ck_abort_msg("unit %u", unit);
}

/* What a stage names from the step before ends, and as much is there again at
 * the end of this one. */
static void check_inputs(const ms_schedule *schedule, const ms_plan *plan,
                         const uint8_t *ended)
{
    uint8_t keeps = schedule->keeps.inputs;
    uint64_t before = 0, after = 0;
    for (uint32_t r = 0; r < plan->n_rows; r++) {
        const ms_row *row = &plan->row[r];
        if (row->storage != MS_NONE ||
            strncmp(plan->buffers[row->buffer].name, "input_tensor", 12) != 0)
            continue;
        *(ended[r] ? &before : &after) += row->bytes;
    }
    LAW(keeps != MS_INPUTS_GO || after == 0);
    LAW(before == (keeps == MS_INPUTS_STAY ? after : 0));
}

/* What a micro-batch makes ends with it, but for .grad that is stolen. */
static void check_ends(const ms_schedule *schedule, const ms_plan *plan)
{
    uint8_t *ended = ms_arena_take(&arena, plan->n_rows, 1);
    for (uint32_t i = 0; i < plan->op[plan->n_ops].release_at; i++)
        ended[plan->release[i]] = 1;
    for (uint32_t r = 0; r < plan->n_rows; r++) {
        uint32_t s = plan->row[r].storage;
        HOLDS(
            ended[r] || s == MS_NONE || s < plan->graph->n_persistent ||
                plan->graph->storage_grad[s] != MS_NONE,
            "storage %u of rank %u, which op %u of the plan makes, never ends",
            s, (unsigned)plan->op[plan->row[r].op].rank, plan->row[r].op);
    }
    check_inputs(schedule, plan, ended);
}

/* An op that a rank runs is of its units.  How often: forward, loss and
 * backward once per micro-batch. */
static void check_ops(const ms_schedule *schedule, const ms_plan *plan)
{
    const ms_graph *g = plan->graph;
    uint32_t *n = ms_arena_take(&arena, g->n_ops, sizeof *n);
    for (uint32_t i = 0; i < plan->n_ops; i++) {
        uint32_t of = plan->op[i].of;
        if (of == MS_NONE || of >= g->step_first)
            continue;
        HOLDS(rank_of(schedule, g->op_unit[of], plan->op[i].micro_batch) ==
                  plan->op[i].rank,
              "op %u runs on rank %u", of, (unsigned)plan->op[i].rank);
        n[of] += plan->op[i].pass != MS_RECOMPUTE;
    }
    for (uint32_t op = 0; op < g->step_first; op++)
        if (g->op_pass[op] != MS_ACCUMULATE)
            HOLDS(n[op] == plan->n_micro_batches, "op %u ran %u times", op,
                  n[op]);
}

/* What is dropped and lies in no segment is made again from what its op read,
 * which may have come from another rank and gone: a policy that does so holds
 * that. */
static void keep_open_units(const ms_graph *graph, ms_keep *keep)
{
    for (uint32_t op = 0; op < graph->forward_at[graph->n_units]; op++)
        for (uint32_t i = graph->out_at[op]; i < graph->out_at[op + 1]; i++)
            if (keep->segment[graph->op_unit[op]] == MS_NONE)
                keep->place[graph->out[i]] = MS_HERE;
}

/* Sometimes a second keep, for some turns. */
static void add_other(laws_random *random, const ms_graph *graph,
                      const ms_schedule *schedule, ms_keep *keep)
{
    size_t n = (size_t)schedule->n_stages * schedule->n_micro_batches;
    ms_keep *other = ms_arena_take(&arena, 1, sizeof *other);
    if (laws_chance(random, 60))
        return;
    laws_keep(random, graph, &arena, other);
    keep_open_units(graph, other);
    keep->other = other;
    keep->turns = ms_arena_take(&arena, n, 1);
    for (uint32_t m = 0; m < schedule->n_micro_batches; m++)
        for (uint32_t r = 0; r < schedule->n_ranks; r++) {
            bool takes = laws_chance(random, 50);
            for (uint32_t k = 0; k < schedule->n_stages; k++)
                if (schedule->stages[k].rank == r)
                    keep->turns[k * schedule->n_micro_batches + m] = takes;
        }
}

static bool keeps_all(const ms_graph *graph, const ms_keep *keep)
{
    if (keep->other != NULL)
        return false;
    for (uint32_t u = 0; u < graph->n_units; u++)
        if (keep->segment[u] != MS_NONE)
            return false;
    for (uint32_t s = 0; s < graph->n_storages; s++)
        if (keep->place[s] == MS_GONE)
            return false;
    return true;
}

/* A random step reads what other ranks' parts of it make: test_stages.c has
 * steps. */
static void leave_step_out(ms_program *program)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < program->n_calls; i++)
        if (program->calls[i].verb != MS_STEP_SET)
            program->calls[n++] = program->calls[i];
    program->n_calls = n;
}

/* How many of the next n events are of the rank. */
static uint32_t count_of(ms_eventwalk *walk, uint32_t n, uint16_t rank)
{
    uint32_t count = 0;
    for (uint32_t e = 0; e < n; e++) {
        const ms_event *event = ms_timeline_next(walk);
        count += walk->line->plan->op[event->op_act >> 1].rank == rank;
    }
    return count;
}

/* Before a mark lie the same events of its rank in the order of the plan, where
 * all marks are found at once, and merged by time. */
static void check_marks(const ms_timeline *line)
{
    uint32_t *until;
    ms_eventwalk merged, plan;
    MUST(ms_timeline_marks(line, &arena, &until, &fault));
    for (uint16_t r = 0; r < line->plan->n_ranks; r++)
        for (uint32_t mark = 0; mark < MS_N_MARKS; mark++) {
            uint32_t n = ms_timeline_until(line, r, (ms_mark)mark);
            uint32_t own = until[r * (uint32_t)MS_N_MARKS + mark];
            LAW((n == MS_NONE) == (own == MS_NONE));
            if (n == MS_NONE)
                continue;
            ms_timeline_walk(line, 0, &merged);
            ms_timeline_walk_plan(line, 0, &plan);
            HOLDS(count_of(&merged, n, r) == count_of(&plan, own, r),
                  "rank %u, mark %u", (unsigned)r, mark);
        }
}

/* The text of the program reads back to itself. */
static void check_text(const ms_graph *graph, const ms_program *program)
{
    ms_text one = {.arena = &arena}, two = {.arena = &arena};
    ms_program again;
    ms_dump_program(graph, program, &one);
    LAW(!one.failed);
    MUST(ms_dumpread_program(graph, "p", one.bytes, one.length, &arena, &again,
                             &fault));
    for (uint32_t i = 0; i < again.n_buffers; i++) /* a comment */
        again.buffers[i].name = program->buffers[i].name;
    ms_dump_program(graph, &again, &two);
    ck_assert_str_eq(one.bytes, two.bytes);
}

static void check_trial(laws_random *random)
{
    ms_graph graph;
    ms_keep keep;
    ms_program program;
    ms_plan plan;
    ms_timeline line;
    ms_expand_opts opts = {.uses = true, .groups = LAWS_GROUPS};
    ms_machine machine = {.launch_ns = 3, .capacity_bytes = 1u << 30};
    laws_graph(random, &arena, &graph);
    if (laws_chance(random, 50))
        laws_keep(random, &graph, &arena, &keep);
    else
        MUST(ms_program_keep_all(&graph, &arena, &keep, &fault));
    keep_open_units(&graph, &keep);
    ms_schedule schedule = schedule_of(random, &graph);
    add_other(random, &graph, &schedule, &keep);
    MUST(ms_defaultprogram(&graph, &keep, &schedule, &arena, &program, &fault));
    leave_step_out(&program);
    MUST(ms_check_program(&graph, &program, &fault));
    MUST(ms_expand(&graph, &program, &opts, &arena, &plan, &fault));
    MUST(ms_replay(&plan, &machine, &arena, &line, &fault));
    check_text(&graph, &program);
    laws_check_rows(&plan);
    laws_check_clock(&plan, &line, &machine);
    laws_check_levels(&plan, &line);
    check_marks(&line);
    check_ends(&schedule, &plan);
    check_ops(&schedule, &plan);
    if (keeps_all(&graph, &keep))
        for (uint32_t i = 0; i < plan.n_ops; i++)
            LAW(plan.op[i].pass != MS_RECOMPUTE);
}

START_TEST(stages_in_every_order)
{
    for (uint32_t trial = 0; trial < N_TRIALS; trial++) {
        laws_random random = {laws_seed = 71000 + trial};
        check_trial(&random);
        ms_arena_reset(&arena);
    }
    ms_arena_free(&arena);
}
END_TEST

Suite *suite_schedules(void)
{
    Suite *suite = suite_create("schedules");
    TCase *tcase = tcase_create("schedules");
    tcase_set_timeout(tcase, 120);
    tcase_add_test(tcase, stages_in_every_order);
    suite_add_tcase(suite, tcase);
    return suite;
}
