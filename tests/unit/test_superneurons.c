/* SPDX-License-Identifier: GPL-3.0-or-later */
/* SuperNeurons on chains (tests/laws/laws.h): unit i reads and saves a_i (a_0
 * is an input) and makes a_(i + 1), forward takes 10 ns, backward 20; storage
 * i is a_i.  Some units convolve; what these make are the checkpoints. */
#include "policies/common/policy.h"
#include "sim/graph.h"
#include "sim/kinds.h"
#include "sim/machine.h"
#include "sim/plan.h"
#include "sim/program.h"
#include "tests/laws/laws.h"
#include "tests/laws/policy.h"
#include "tests/tests.h"
#include "tools/cli/commands.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define U ((uint64_t)1000000)

static ms_arena arena;
static ms_fault fault;
static ms_graph graph;
static ms_plan plan;

static void setup(void)
{
    arena = (ms_arena){0};
    fault = (ms_fault){0};
}

static void teardown(void)
{
    ms_arena_free(&arena);
}

/* A chain of n units in which each `every`-th convolves, the first too. */
static void build(uint32_t n, uint32_t every)
{
    laws_chain(n, U, &arena, &graph);
    for (uint32_t u = 0; u < n; u += every)
        graph.op_kind[graph.forward_at[u]] = MS_KIND_CONVOLUTION;
}

/* a_i and its gradient; the chain's gradients stand in descending order. */
static void resize(uint32_t i, uint64_t bytes)
{
    uint32_t n = graph.loss_unit;
    graph.storage_bytes[i] = bytes;
    graph.storage_bytes[n + 2 + (n - i)] = bytes;
}

static laws_outcome run(const char *policy, uint64_t copy_ns,
                        uint32_t micro_batches)
{
    return laws_run_policy(&graph, policy, copy_ns, micro_batches, &arena,
                           &fault);
}

static laws_outcome run_with(const char *recompute, uint64_t budget_bytes,
                             uint64_t copy_ns, uint32_t micro_batches)
{
    char policy[128];
    snprintf(policy, sizeof policy,
             "swap:superneurons,min=2,recompute=%s,budget=%" PRIu64, recompute,
             budget_bytes);
    return run(policy, copy_ns, micro_batches);
}

static uint64_t peak_of(const laws_outcome *out)
{
    return out->report.ranks[0].peak.allocated_bytes;
}

static uint64_t step_of(const laws_outcome *out)
{
    return out->report.ranks[0].time.step_ns;
}

/* The budget that the refusal names. */
static uint64_t least_budget(const char *recompute, uint32_t micro_batches)
{
    laws_outcome out = run_with(recompute, 1, 25, micro_batches);
    return laws_least_budget(&out, &fault);
}

/* ---- how often ops run again --------------------------------------------- */

static uint32_t ops_again(const char *recompute)
{
    laws_outcome out = run_with(recompute, 100 * U, 25, 1);
    ck_assert_int_eq(out.err, MS_OK);
    ck_assert_uint_eq(out.report.ranks[0].d2h_bytes, 0);
    ck_assert_uint_eq(out.report.ranks[0].time.recompute_ns,
                      10 * out.plan.recomputed_ops);
    ck_assert_uint_eq(step_of(&out), 8 * 30 + 10 * out.plan.recomputed_ops);
    return out.plan.recomputed_ops;
}

/* Units 0 and 6 of 8 convolve: a_2 .. a_6 are made again, a_8 is the output,
 * which the training loop keeps.  Once each, or for the backward of unit u =
 * 2 .. 6 all from a_1 on: u - 1 ops. */
START_TEST(speed_is_once_memory_is_quadratic)
{
    build(8, 6);
    ck_assert_uint_eq(ops_again("speed"), 5);
    ck_assert_uint_eq(ops_again("memory"), 1 + 2 + 3 + 4 + 5);
    ck_assert_uint_eq(ops_again("none"), 0);
}
END_TEST

/* The largest backward holds three units' worth; the segment, run once, five
 * and two gradients.  With a_2 .. a_6 of a tenth it holds a_2 .. a_6, one of
 * their gradients and that of a_7: 1.6. */
START_TEST(cost_takes_speed_where_the_segment_is_small)
{
    build(8, 6);
    ck_assert_uint_eq(ops_again("cost"), 15);
    for (uint32_t i = 2; i <= 6; i++)
        resize(i, U / 10);
    ck_assert_uint_eq(ops_again("cost"), 5);
    ck_assert_uint_eq(ops_again("memory"), 15);
}
END_TEST

/* ---- the ladder of peaks ------------------------------------------------- */

/* Units 0, 3 and 6 of 9 convolve, a_4 is of 4 U.  The input a_0, the output a_9
 * and the byte of loss are there throughout backward.
 *
 * Liveness: at unit 8 all is there and the gradients of a_9 and a_8: 12 U of
 * tensors, a_0, 2 U.  UTP: at unit 4 the gradients of a_5 and a_4, a_4, and
 * a_2 and a_3, which nothing but their backward frees; a_1 is away.
 * Recomputation: the same without these two, max_i(l_i) = l_4 = 9 U. */
START_TEST(the_ladder_by_hand)
{
    static const char *const ways[] = {"cost", "speed", "memory"};
    build(9, 3);
    resize(4, 4 * U);
    laws_outcome none = run("none", 25, 1);
    ck_assert_uint_eq(peak_of(&none), (12 + 1 + 2) * U + 1);
    ck_assert_uint_eq(least_budget("none", 1), (2 + 9 + 2) * U + 1);
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        uint64_t least = least_budget(ways[i], 1);
        ck_assert_uint_eq(least, (2 + 9) * U + 1);
        laws_outcome out = run_with(ways[i], least, 25, 1);
        ck_assert_int_eq(out.err, MS_OK);
        ck_assert_uint_eq(peak_of(&out), least);
        ck_assert_int_eq(run_with(ways[i], least - 1, 25, 1).err,
                         MS_EINFEASIBLE);
    }
}
END_TEST

static void check_budgets(const char *recompute, uint32_t micro_batches)
{
    laws_outcome none = run("none", 25, micro_batches);
    uint64_t last_ns = UINT64_MAX,
             least = least_budget(recompute, micro_batches);
    laws_outcome most = run_with(recompute, 100 * U, 25, micro_batches);
    ck_assert_uint_le(peak_of(&most), peak_of(&none));
    for (uint64_t budget = least; budget <= peak_of(&none); budget += U / 2) {
        laws_outcome out = run_with(recompute, budget, 25, micro_batches);
        ck_assert_msg(out.err == MS_OK, "%s: %s", recompute, fault.what);
        ck_assert_uint_le(peak_of(&out), budget);
        ck_assert_uint_ge(step_of(&out), step_of(&most));
        ck_assert_uint_eq(out.report.ranks[0].d2h_bytes,
                          out.report.ranks[0].h2d_bytes);
        last_ns = step_of(&out);
    }
    ck_assert_uint_eq(last_ns, step_of(&most)); /* nothing moves any more */
}

START_TEST(every_budget_is_kept)
{
    static const char *const ways[] = {"cost", "speed", "memory", "none"};
    static const uint32_t every[] = {1, 2, 3, 5};
    for (size_t i = 0; i < sizeof every / sizeof *every; i++) {
        build(9, every[i]);
        check_budgets(ways[_i], 1);
        check_budgets(ways[_i], 3);
    }
}
END_TEST

/* ---- the cache ----------------------------------------------------------- */

/* The call of this verb whose set is the storage alone. */
static uint32_t call_of(const ms_program *program, ms_verb verb, uint8_t place,
                        uint32_t storage)
{
    uint32_t found = MS_NONE;
    for (uint32_t i = 0; i < program->n_calls; i++) {
        const ms_call *call = &program->calls[i];
        if (call->verb != verb || (verb == MS_MOVE && call->move.to != place))
            continue;
        ck_assert_uint_eq(program->set_at[call->set] + 1,
                          program->set_at[call->set + 1]);
        ck_assert_uint_eq(program->set_item[program->set_at[call->set]],
                          storage);
        ck_assert_uint_eq(found, MS_NONE);
        found = i;
    }
    ck_assert_uint_ne(found, MS_NONE);
    return found;
}

/* A byte too little for the backward of unit 7: a_1, used longest ago, leaves
 * before it (the host issues at once: the copy begins when a_1 is made, at 10)
 * and comes back with the backward of unit 2, which takes 20 ns, for that of
 * unit 1.  With copies of 100 ns unit 7, due at 80, waits until 110 and unit 1
 * for 80 ns of the copy in. */
START_TEST(the_least_recently_used_leaves)
{
    build(8, 1);
    laws_outcome none = run("none", 25, 1);
    laws_outcome out = run_with("none", peak_of(&none) - 1, 25, 1);
    uint32_t leaves = call_of(&out.program, MS_MOVE, MS_HOST, 1);
    uint32_t comes = call_of(&out.program, MS_MOVE, MS_HERE, 1);
    ck_assert_uint_eq(out.program.calls[leaves + 2].verb, MS_RUN);
    ck_assert_uint_eq(out.program.calls[leaves + 2].unit, 7);
    ck_assert_uint_eq(out.program.calls[comes + 1].unit, 2);
    ck_assert_uint_eq(out.report.ranks[0].d2h_bytes, U);
    ck_assert_uint_eq(step_of(&out), 8 * 30 + 5);
    out = run_with("none", peak_of(&none) - 1, 15, 1);
    ck_assert_uint_eq(step_of(&out), 8 * 30);
    out = run_with("none", peak_of(&none) - 1, 100, 1);
    ck_assert_uint_eq(step_of(&out), 8 * 30 + 30 + 80);
}
END_TEST

START_TEST(room_enough_moves_nothing)
{
    build(8, 1);
    laws_outcome none = run("none", 25, 1);
    laws_outcome out = run_with("none", peak_of(&none), 25, 1);
    ck_assert_uint_eq(out.program.n_calls, none.program.n_calls);
    ck_assert_uint_eq(step_of(&out), step_of(&none));
    out = run("swap:superneurons", 25, 1);
    ck_assert_uint_eq(out.report.ranks[0].d2h_bytes, 0);
}
END_TEST

/* ---- any graph ----------------------------------------------------------- */

/* Steps with skips, of several streams, some of whose ops are expensive. */
static void build_random(uint64_t seed)
{
    laws_random random = {seed};
    laws_seed = seed;
    laws_graph(&random, &arena, &graph);
    for (uint32_t op = 0; op < graph.forward_at[graph.n_units]; op++) {
        if (laws_chance(&random, 30))
            graph.op_kind[op] = MS_KIND_CONVOLUTION;
        else if (laws_chance(&random, 30))
            graph.op_kind[op] = MS_KIND_ADD;
    }
}

START_TEST(random_steps_keep_to_the_least_budget)
{
    static const char *const ways[] = {"cost", "speed", "memory", "none"};
    uint32_t moved = 0;
    for (uint64_t seed = 1; seed <= 400; seed++) {
        build_random(seed);
        const char *way = ways[seed % 4];
        uint32_t micro_batches = 1 + (uint32_t)(seed % 3);
        uint64_t least = least_budget(way, micro_batches);
        for (uint64_t i = 0; i < 3; i++) {
            uint64_t budget = least + i * least / 16;
            laws_outcome out = run_with(way, budget, 25, micro_batches);
            ck_assert_msg(out.err == MS_OK, "seed %" PRIu64 ": %s", seed,
                          fault.what);
            ck_assert_uint_le(peak_of(&out), budget);
            moved += out.report.ranks[0].d2h_bytes > 0;
        }
        if (least > 2)
            ck_assert_int_eq(run_with(way, least - 1, 25, micro_batches).err,
                             MS_EINFEASIBLE);
        ms_arena_reset(&arena);
    }
    ck_assert_uint_gt(moved, 100);
}
END_TEST

/* ---- a set made again, by itself ----------------------------------------- */

static ms_err read_and_run(const char *calls, laws_outcome *out)
{
    const char *text =
        ms_arena_format(&arena,
                        "memsim-program 1\nframes 1 ranks 1 micro-batches 1\n"
                        "set 0 = 3\nset 1 = 1\n%s",
                        calls);
    fault = (ms_fault){0};
    ck_assert_int_eq(ms_dumpread_program(&graph, "text", text, strlen(text),
                                         &arena, &out->program, &fault),
                     MS_OK);
    return ms_expand(&graph, &out->program, &(ms_expand_opts){0}, &arena, &plan,
                     &fault);
}

/* a_1 is kept; a_3 is made again from it, a_2 on the way is not kept. */
START_TEST(again_keeps_the_set_alone)
{
    laws_outcome out;
    build(4, 9);
    ck_assert_int_eq(read_and_run("run forward unit 0 keep 1\n"
                                  "run forward unit 1 keep nothing\n"
                                  "run forward unit 2 keep nothing\n"
                                  "run forward unit 3 keep nothing\n"
                                  "hold 0 again\n"
                                  "hold 0 again\n"
                                  "drop 0\n"
                                  "drop 0\n",
                                  &out),
                     MS_OK);
    ck_assert_uint_eq(plan.recomputed_ops, 2);
    uint32_t again = 0, alive = 0;
    for (uint32_t r = 0; r < plan.n_rows; r++)
        again += plan.op[plan.row[r].op].pass == MS_RECOMPUTE;
    ck_assert_uint_eq(again, 2);
    for (uint32_t r = 0; r < plan.n_rows; r++)
        alive++;
    for (uint32_t i = 0; i < plan.op[plan.n_ops].release_at; i++)
        alive--;
    ck_assert_uint_eq(alive, 3); /* a_0, a_1 and the output a_4 */
    ms_text dumped = {.arena = &arena};
    ms_dump_program(&graph, &out.program, &dumped);
    ck_assert_ptr_nonnull(strstr(dumped.bytes, "hold 0 frame 0 micro 0 again"));
}
END_TEST

START_TEST(again_needs_a_first_time)
{
    laws_outcome out;
    build(4, 9);
    ck_assert_int_eq(read_and_run("run forward unit 0 keep all\n"
                                  "hold 0 again\n",
                                  &out),
                     MS_EINPUT);
    ck_assert_str_eq(fault.what,
                     "a hold asks again for s3, which does not exist at this "
                     "point of the program and cannot be made again");
    ck_assert_str_eq(fault.hint, "run the unit that makes it first");
}
END_TEST

/* ---- refusals ------------------------------------------------------------ */

static void check_refused(const char *policy, ms_err err, const char *what,
                          const char *hint)
{
    laws_outcome out = run(policy, 25, 1);
    ck_assert_int_eq(out.err, err);
    ck_assert_str_eq(fault.what, what);
    ck_assert_str_eq(fault.hint, hint);
}

START_TEST(refused)
{
    build(9, 3);
    check_refused("checkpoint:full+swap:superneurons", MS_EUSAGE,
                  "superneurons recomputes by a rule of its own, and another "
                  "policy recomputes already",
                  "leave the other policy out");
    check_refused("swap:superneurons,budget=1MB", MS_EINFEASIBLE,
                  "no plan fits in 1,000,000 bytes: with every checkpoint away "
                  "until it is used the peak is 6,000,001",
                  "give it budget=6000001 or more");
}
END_TEST

Suite *suite_superneurons(void)
{
    Suite *suite = suite_create("superneurons");
    TCase *tcase = tcase_create("superneurons");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_set_timeout(tcase, 60);
    tcase_add_test(tcase, speed_is_once_memory_is_quadratic);
    tcase_add_test(tcase, cost_takes_speed_where_the_segment_is_small);
    tcase_add_test(tcase, the_ladder_by_hand);
    tcase_add_loop_test(tcase, every_budget_is_kept, 0, 4);
    tcase_add_test(tcase, the_least_recently_used_leaves);
    tcase_add_test(tcase, room_enough_moves_nothing);
    tcase_add_test(tcase, random_steps_keep_to_the_least_budget);
    tcase_add_test(tcase, again_keeps_the_set_alone);
    tcase_add_test(tcase, again_needs_a_first_time);
    tcase_add_test(tcase, refused);
    suite_add_tcase(suite, tcase);
    return suite;
}
