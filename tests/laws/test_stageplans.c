/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Ways to checkpoint that are planned (nested, chen, optimal, mincut ...) or
 * keep outputs of ops, beside pipelines: a stage alone changes nothing, ways
 * that are one way are one in every order, each stage replays its own blocks
 * for each micro-batch, and each rank keeps to a budget. */
#include "graphs/kernels/kernels.h"
#include "sim/base/base.h"
#include "sim/graph.h"
#include "sim/plan.h"
#include "sim/program.h"
#include "sim/report.h"
#include "tests/inlined.h"
#include "tests/laws/laws.h"
#include "tests/tests.h"
#include "tools/job/job.h"
#include "tools/job/result.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MANY(list) (sizeof(list) / sizeof *(list))
#define MICRO_BATCHES 8u
#define MOST_RANKS 4u

#define MODEL(layers)                                                          \
    "{\"memsim\": 1, \"name\": \"m\", \"family\": \"decoder\", \"config\": "   \
    "{\"layers\": " layers ", \"hidden\": 256, \"heads\": 4, \"vocab\": 64, "  \
    "\"positions\": 1024, \"tied\": false, \"bias\": false}}"
static const char *model = MODEL("8");

static const char *const orders[] = {
    "pipeline:2",
    "pipeline:4,schedule=gpipe",
    "pipeline:3,layers=2/3/3,impl=torch",
    "pipeline:2,schedule=interleaved,chunks=2",
    "pipeline:4,schedule=zb-h1",
    "pipeline:2,schedule=zb-v,impl=torch",
    "pipeline:2,schedule=zb-v",
    "pipeline:2,schedule=dualpipev",
    "pipeline:2,schedule=looped-bfs,chunks=2",
    "pipeline:4,schedule=dualpipe",
};

static const char *const ways[] = {
    "none",
    "nested=2/1",
    "recursive",
    "recursive,parts=3",
    "nested=2,last=open",
    "chen",
    "chen,segment=30MiB",
    "revolve=2",
    "sac",
    "save=aten.mm",
    "recompute=aten.gelu",
    "mincut",
    "knapsack,share=40",
    "knapsack,share=0",
};

static ms_arena keep, trial;
static ms_fault fault;
static ms_result result;

static void teardown(void)
{
    ms_arena_free(&trial);
    ms_arena_free(&keep);
}

static ms_err run(const char *order, const char *way)
{
    char policy[192];
    snprintf(policy, sizeof policy, "microbatch:%u%s%s+checkpoint:%s",
             MICRO_BATCHES, order[0] != '\0' ? "+" : "", order, way);
    return inlined_run(model, MICRO_BATCHES, MS_FLASH, policy, &keep, &trial,
                       &result, &fault);
}

static void must_run(const char *order, const char *way)
{
    ms_err err = run(order, way);
    ck_assert_msg(err == MS_OK, "%s, %s: %s: %s", order, way, fault.where,
                  fault.what);
}

static uint32_t n_ranks(void)
{
    return result.program->n_ranks;
}

static uint64_t peak_of(uint32_t rank)
{
    return result.report->ranks[rank].peak.allocated_bytes;
}

/* As long as nothing else runs: a message beside it slows an op. */
static uint64_t recompute_of(uint32_t rank)
{
    const ms_plan *plan = result.plan;
    uint64_t ns = 0;
    for (uint32_t i = 0; i < plan->n_ops; i++)
        if (plan->op[i].rank == rank && plan->op[i].pass == MS_RECOMPUTE)
            ns += plan->op[i].ns;
    return ns;
}

static char *program_text(void)
{
    ms_text text = {.arena = &trial};
    ms_dump_program(result.graph, result.program, &text);
    ck_assert(!text.failed);
    return strdup(text.bytes);
}

/* ---- a stage alone ------------------------------------------------------- */

START_TEST(one_stage_is_the_model)
{
    static const char *const planned[] = {"optimal,budget=220MiB",
                                          "chen,budget=220MiB",
                                          "knapsack,budget=220MiB"};
    for (size_t i = 0; i < MANY(ways) + MANY(planned); i++) {
        const char *way = i < MANY(ways) ? ways[i] : planned[i - MANY(ways)];
        must_run("", way);
        char *without = program_text();
        must_run("pipeline:1", way);
        char *with = program_text();
        ck_assert_msg(strcmp(without, with) == 0, "%s", way);
        free(without);
        free(with);
    }
}
END_TEST

/* ---- every order --------------------------------------------------------- */

/* Segments written as plans are what the default program makes of them. */
START_TEST(plans_are_the_segments_that_they_say)
{
    static const char *const same[][2] = {
        {"nested=1", "every=1"},
        {"nested=1,last=open", "every=1,last=open"},
        {"recursive,parts=8", "full"},
        {"chen,segment=0,last=open", "full,last=open"},
        {"chen,segment=1GiB,last=open", "none"},
    };
    for (size_t o = 0; o < MANY(orders); o++)
        for (size_t i = 0; i < MANY(same); i++) {
            uint64_t peaks[MOST_RANKS], redone[MOST_RANKS], step_ns;
            must_run(orders[o], same[i][1]);
            for (uint32_t r = 0; r < n_ranks(); r++) {
                peaks[r] = peak_of(r);
                redone[r] = recompute_of(r);
            }
            step_ns = result.report->ranks[0].time.step_ns;
            must_run(orders[o], same[i][0]);
            ck_assert_uint_eq(result.report->ranks[0].time.step_ns, step_ns);
            for (uint32_t r = 0; r < n_ranks(); r++) {
                ck_assert_uint_eq(recompute_of(r), redone[r]);
                ck_assert_msg(peak_of(r) == peaks[r],
                              "%s, %s, rank %u: %" PRIu64 ", %" PRIu64,
                              orders[o], same[i][0], r, peak_of(r), peaks[r]);
            }
        }
}
END_TEST

/* How many blocks the rank's stages have. */
static uint32_t blocks_of(uint32_t rank)
{
    const ms_program *program = result.program;
    const ms_graph *graph = result.graph;
    uint32_t n = 0;
    for (uint32_t k = 0; k < program->n_stages; k++)
        for (uint32_t u = program->stages[k].first;
             program->stages[k].rank == rank && u <= program->stages[k].last;
             u++)
            n += graph->unit_block[u] != MS_NONE &&
                 graph->unit_block[u] != graph->unit_block[u - 1];
    return n;
}

/* Where each block is replayed by itself a stage takes the time of its own. */
START_TEST(a_stage_replays_its_blocks)
{
    static const char *const single[] = {"nested=1", "sac", "save=aten.mm",
                                         "recompute=aten.gelu", "full"};
    for (size_t i = 0; i < MANY(single); i++) {
        must_run("", single[i]);
        uint64_t each_ns = recompute_of(0) / 8;
        for (size_t o = 0; o < MANY(orders); o++) {
            bool copies = strstr(orders[o], "=dualpipe") != NULL &&
                          strstr(orders[o], "dualpipev") == NULL;
            must_run(orders[o], single[i]);
            for (uint32_t r = 0; r < n_ranks(); r++)
                ck_assert_msg(recompute_of(r) * (copies ? 2 : 1) ==
                                  each_ns * blocks_of(r),
                              "%s, %s, rank %u: %" PRIu64 ", %u of %" PRIu64,
                              orders[o], single[i], r, recompute_of(r),
                              blocks_of(r), each_ns);
        }
    }
}
END_TEST

/* A stage of four blocks replays them as a model of four does. */
START_TEST(a_stage_is_cut_as_a_model)
{
    static const char *const cut[] = {"nested=2/1",
                                      "nested=4/2/1",
                                      "nested=3/1,last=open",
                                      "recursive",
                                      "recursive,parts=3",
                                      "chen,segment=12MiB,last=closed",
                                      "chen,segment=0,last=open"};
    for (size_t i = 0; i < MANY(cut); i++) {
        model = MODEL("4");
        must_run("", cut[i]);
        uint64_t alone_ns = recompute_of(0);
        ck_assert_uint_gt(alone_ns, 0);
        model = MODEL("8");
        must_run("pipeline:2", cut[i]);
        for (uint32_t r = 0; r < 2; r++)
            ck_assert_msg(recompute_of(r) == alone_ns,
                          "%s, rank %u: %" PRIu64 ", %" PRIu64, cut[i], r,
                          recompute_of(r), alone_ns);
    }
}
END_TEST

/* All ways run in all orders, and none needs more than what saves all but for
 * what is held between the halves of backward. */
START_TEST(all_ways_run_in_all_orders)
{
    const char *order = orders[_i];
    uint64_t most[MOST_RANKS];
    bool splits = strstr(order, "zb-") || strstr(order, "dual");
    must_run(order, "none");
    for (uint32_t r = 0; r < n_ranks(); r++)
        most[r] = peak_of(r);
    for (size_t i = 0; i < MANY(ways); i++) {
        /* these hold what no node saves, too */
        bool more = splits || strstr(ways[i], "recompute=") != NULL ||
                    strstr(ways[i], "knapsack") || strstr(ways[i], "mincut");
        must_run(order, ways[i]);
        for (uint32_t r = 0; r < n_ranks() && !more; r++)
            ck_assert_msg(peak_of(r) <= most[r],
                          "%s, %s, rank %u: %" PRIu64 ", %" PRIu64, order,
                          ways[i], r, peak_of(r), most[r]);
    }
}
END_TEST

/* ---- budgets ------------------------------------------------------------- */

static const char *const budgeted[] = {"optimal", "chen", "knapsack"};

/* The budget that a refusal names. */
static uint64_t named(void)
{
    const char *at = strstr(fault.hint, "budget=");
    ck_assert_msg(at != NULL, "%s: %s", fault.what, fault.hint);
    return strtoull(at + strlen("budget="), NULL, 10);
}

/* Each rank keeps to it; one that is refused names one that is not. */
static void check_budget(const char *order, const char *way, uint64_t bytes)
{
    char budget[96];
    snprintf(budget, sizeof budget, "%s,budget=%" PRIu64, way, bytes);
    ms_err err = run(order, budget);
    if (err == MS_EINFEASIBLE) {
        uint64_t least = named();
        ck_assert_uint_gt(least, bytes);
        snprintf(budget, sizeof budget, "%s,budget=%" PRIu64, way, least);
        must_run(order, budget);
        bytes = least;
    } else
        ck_assert_msg(err == MS_OK, "%s, %s: %s", order, budget, fault.what);
    for (uint32_t r = 0; r < n_ranks(); r++)
        ck_assert_msg(peak_of(r) <= bytes, "%s, %s, rank %u: %" PRIu64, order,
                      budget, r, peak_of(r));
}

START_TEST(each_rank_keeps_to_the_budget)
{
    const char *order = orders[_i];
    uint64_t most = 0;
    must_run(order, "none");
    for (uint32_t r = 0; r < n_ranks(); r++)
        most = peak_of(r) > most ? peak_of(r) : most;
    for (size_t i = 0; i < MANY(budgeted); i++) {
        check_budget(order, budgeted[i], most / 10 * 9);
        check_budget(order, budgeted[i], most / 2);
    }
}
END_TEST

/* Ways that save blocks whole, or run them again whole, as the optimum does. */
static const char *const whole[] = {"full", "sqrt",       "first=2",
                                    "chen", "nested=2/1", "sequential=2"};

/* In the peak of another way's highest rank each rank runs again for no longer
 * than with that way. */
START_TEST(no_way_beats_the_optimum)
{
    const char *order = orders[_i];
    for (size_t i = 0; i < MANY(whole); i++) {
        char budget[64];
        uint64_t again_ns[MOST_RANKS], most = 0;
        must_run(order, whole[i]);
        for (uint32_t r = 0; r < n_ranks(); r++) {
            again_ns[r] = recompute_of(r);
            most = peak_of(r) > most ? peak_of(r) : most;
        }
        snprintf(budget, sizeof budget, "optimal,budget=%" PRIu64, most);
        must_run(order, budget);
        for (uint32_t r = 0; r < n_ranks(); r++)
            ck_assert_msg(recompute_of(r) <= again_ns[r],
                          "%s, %s, rank %u: %" PRIu64 " ns again for %" PRIu64,
                          order, whole[i], r, recompute_of(r), again_ns[r]);
    }
}
END_TEST

/* In which all may be saved the plan is to save all. */
START_TEST(a_wide_budget_changes_nothing)
{
    for (size_t o = 0; o < MANY(orders); o++) {
        must_run(orders[o], "none");
        char *none = program_text();
        must_run(orders[o], "optimal,budget=1GiB");
        char *wide = program_text();
        ck_assert_msg(strcmp(none, wide) == 0, "%s", orders[o]);
        free(none);
        free(wide);
    }
}
END_TEST

Suite *suite_stageplans(void)
{
    Suite *suite = suite_create("stageplans");
    TCase *tcase = tcase_create("stageplans");
    tcase_set_timeout(tcase, 60);
    tcase_add_checked_fixture(tcase, NULL, teardown);
    tcase_add_test(tcase, one_stage_is_the_model);
    tcase_add_test(tcase, plans_are_the_segments_that_they_say);
    tcase_add_test(tcase, a_stage_replays_its_blocks);
    tcase_add_test(tcase, a_stage_is_cut_as_a_model);
    tcase_add_loop_test(tcase, all_ways_run_in_all_orders, 0, MANY(orders));
    tcase_add_loop_test(tcase, each_rank_keeps_to_the_budget, 0, MANY(orders));
    tcase_add_loop_test(tcase, no_way_beats_the_optimum, 0, MANY(orders));
    tcase_add_test(tcase, a_wide_budget_changes_nothing);
    suite_add_tcase(suite, tcase);
    return suite;
}
