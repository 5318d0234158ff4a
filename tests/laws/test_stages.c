/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Random graphs cut into stages: what each rank starts with is what a naive
 * walk over its units finds, all of it together is the model, each storage as
 * often as ranks read it, and the shares of the step sum to the step. */
#include "sim/graph.h"
#include "sim/machine.h"
#include "sim/plan.h"
#include "sim/program.h"
#include "tests/laws/asserts.h"
#include "tests/tests.h"

#define N_TRIALS 1000u
#define MOST_RANKS 5u
#define MOST_UNITS 32u

static ms_arena arena;

/* Each unit goes to a rank, each rank gets a unit at least; neighbours of one
 * rank are sometimes one range. */
static void cut(laws_random *random, const ms_graph *graph, uint16_t *of,
                ms_program *program)
{
    ms_fault fault = {0};
    uint32_t n = program->n_ranks, first = 0;
    for (uint32_t u = 0; u < graph->n_units; u++)
        of[u] = (uint16_t)(u < n ? u : laws_below(random, n));
    for (uint32_t u = graph->n_units; u-- > 1;) {
        uint32_t other = laws_below(random, u + 1);
        uint16_t was = of[u];
        of[u] = of[other];
        of[other] = was;
    }
    for (uint32_t u = 0; u < graph->n_units; u++) {
        if (u + 1 < graph->n_units && of[u] == of[u + 1] &&
            laws_chance(random, 70))
            continue;
        ck_assert_int_eq(
            ms_stage_add(program, (ms_stage){of[u], first, u}, &arena, &fault),
            MS_OK);
        first = u + 1;
    }
    ck_assert_int_eq(ms_check_program(graph, program, &fault), MS_OK);
}

static bool lists(const uint32_t *list, uint32_t from, uint32_t to, uint32_t s)
{
    for (uint32_t i = from; i < to; i++)
        if (list[i] == s)
            return true;
    return false;
}

static bool op_touches(const ms_graph *graph, uint32_t op, uint32_t s)
{
    return lists(graph->in, graph->in_at[op], graph->in_at[op + 1], s) ||
           lists(graph->out, graph->out_at[op], graph->out_at[op + 1], s);
}

/* Does an op of one of the rank's units (MS_NONE: of any) touch s, or the
 * weight whose .grad it is? */
static bool unit_touches(const ms_graph *graph, const uint16_t *of,
                         uint32_t rank, uint32_t s)
{
    for (uint32_t op = 0; op < graph->step_first; op++) {
        uint32_t unit = graph->op_unit[op];
        if (rank != MS_NONE && of[unit] != rank)
            continue;
        if (op_touches(graph, op, s))
            return true;
        for (uint32_t w = 0; w < graph->n_persistent; w++)
            if (graph->storage_grad[w] == s && op_touches(graph, op, w))
                return true;
    }
    return false;
}

/* The ops of the step that the rank runs: they touch something of its units, or
 * of no unit at all. */
static bool runs(const ms_graph *graph, const uint16_t *of, uint32_t rank,
                 uint32_t op)
{
    bool owned = false, own = false;
    for (uint32_t s = 0; s < graph->n_persistent; s++) {
        if (!op_touches(graph, op, s))
            continue;
        owned |= unit_touches(graph, of, MS_NONE, s);
        own |= unit_touches(graph, of, rank, s);
    }
    return own || !owned;
}

static bool is_held(const ms_graph *graph, const uint16_t *of, uint32_t rank,
                    uint32_t s)
{
    bool named = false;
    if (unit_touches(graph, of, MS_NONE, s))
        return unit_touches(graph, of, rank, s);
    for (uint32_t op = graph->step_first; op < graph->n_ops; op++) {
        if (!op_touches(graph, op, s))
            continue;
        if (runs(graph, of, rank, op))
            return true;
        named = true;
    }
    return !named;
}

/* The start of each rank is op r of the plan. */
static void check_starts(const ms_graph *graph, const uint16_t *of,
                         const ms_plan *plan)
{
    for (uint32_t r = 0; r < plan->n_ranks; r++) {
        uint32_t row = plan->op[r].alloc_at;
        for (uint32_t s = 0; s < graph->n_persistent; s++) {
            if (!graph->storage_at_start[s] || !is_held(graph, of, r, s))
                continue;
            HOLDS(row < plan->op[r + 1].alloc_at &&
                      plan->row[row].storage == s &&
                      plan->row[row].bytes == graph->storage_bytes[s],
                  "rank %u starts without storage %u", r, s);
            row++;
        }
        HOLDS(row == plan->op[r + 1].alloc_at, "rank %u starts with more", r);
    }
}

/* The steps: each op on the ranks that run it, in order. */
static void check_steps(const ms_graph *graph, const uint16_t *of,
                        const ms_plan *plan)
{
    uint32_t next = plan->n_ranks;
    for (uint32_t r = 0; r < plan->n_ranks; r++)
        for (uint32_t op = graph->step_first; op < graph->n_ops; op++) {
            if (!runs(graph, of, r, op))
                continue;
            HOLDS(next < plan->n_ops && plan->op[next].of == op &&
                      plan->op[next].rank == r &&
                      plan->op[next].ns <= graph->op_ns[op],
                  "rank %u does not run op %u", r, op);
            next++;
        }
    HOLDS(next == plan->n_ops, "%u ops too many", plan->n_ops - next);
}

/* .grad of each weight is there when a step begins that clears none. */
static void keep_grads(ms_graph *graph)
{
    for (uint32_t w = 0; w < graph->n_persistent; w++)
        if (graph->storage_grad[w] != MS_NONE)
            graph->storage_at_start[graph->storage_grad[w]] = 1;
}

START_TEST(ranks_hold_their_stages)
{
    for (uint32_t trial = 0; trial < N_TRIALS; trial++) {
        laws_random random = {laws_seed = 51000 + trial};
        ms_graph graph;
        ms_plan plan;
        ms_fault fault = {0};
        uint16_t of[MOST_UNITS];
        laws_graph(&random, &arena, &graph);
        keep_grads(&graph);
        graph.storage_layer = NULL;
        uint32_t n = 1 + laws_below(&random, MOST_RANKS);
        n = n < graph.n_units ? n : graph.n_units;
        ms_program program = {
            .n_frames = 1, .n_ranks = (uint16_t)n, .n_micro_batches = 1};
        cut(&random, &graph, of, &program);
        for (uint32_t r = 0; r < n; r++) {
            ms_call step = ms_program_call(MS_STEP_SET);
            step.set = MS_ALL;
            step.rank = (uint16_t)r;
            ck_assert_int_eq(ms_program_add(&program, step, &arena, &fault),
                             MS_OK);
        }
        ms_expand_opts opts = {.uses = laws_chance(&random, 50)};
        MUST(ms_expand(&graph, &program, &opts, &arena, &plan, &fault));
        check_starts(&graph, of, &plan);
        check_steps(&graph, of, &plan);
        ms_arena_reset(&arena);
    }
    ms_arena_free(&arena);
}
END_TEST

Suite *suite_stages(void)
{
    Suite *suite = suite_create("stages");
    TCase *tcase = tcase_create("stages");
    tcase_set_timeout(tcase, 120);
    tcase_add_test(tcase, ranks_hold_their_stages);
    suite_add_tcase(suite, tcase);
    return suite;
}
