/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Swapping to a budget, on a chain of equal units (tests/laws/chain.h). */
#include "policies/common/profile.h"
#include "sim/graph.h"
#include "sim/machine.h"
#include "sim/program.h"
#include "sim/schedule/schedule.h"
#include "tests/laws/chain.h"
#include "tests/laws/policy.h"
#include "tests/tests.h"
#include "tools/cli/commands.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static laws_outcome run_budget(const char *way, uint64_t budget_bytes,
                               uint64_t copy_ns, uint32_t micro_batches)
{
    char policy[128];
    snprintf(policy, sizeof policy, "%s,min=2,budget=%" PRIu64, way,
             budget_bytes);
    return chain_run(policy, copy_ns, micro_batches);
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
static uint64_t least_budget(const char *way, uint32_t micro_batches)
{
    laws_outcome out = run_budget(way, 1, 25, micro_batches);
    return laws_least_budget(&out, &chain_fault);
}

static const char *const ways[] = {"swap:belady",
                                   "swap:capuchin",
                                   "swap:auto",
                                   "checkpoint:auto+swap:auto",
                                   "checkpoint:sqrt+swap:belady",
                                   "checkpoint:every=2+swap:auto"};

static void check_budgets(const char *way, uint32_t micro_batches)
{
    uint64_t least = least_budget(way, micro_batches);
    laws_outcome none = run_budget(way, CHAIN_BYTES * 100, 25, micro_batches);
    for (uint64_t budget = least; budget <= peak_of(&none);
         budget += CHAIN_BYTES / 2) {
        laws_outcome out = run_budget(way, budget, 25, micro_batches);
        ck_assert_msg(out.err == MS_OK, "%s: %s", way, chain_fault.what);
        ck_assert_uint_le(peak_of(&out), budget);
        ck_assert_uint_ge(step_of(&out), step_of(&none));
    }
    ck_assert_int_eq(run_budget(way, least - 1, 25, micro_batches).err,
                     MS_EINFEASIBLE);
}

START_TEST(every_budget_is_kept_or_refused)
{
    for (uint32_t micro_batches = 1; micro_batches <= 3; micro_batches += 2)
        check_budgets(ways[_i], micro_batches);
}
END_TEST

START_TEST(room_enough_is_none)
{
    for (size_t i = 0; i < 4; i++) {
        laws_outcome none = chain_run("none", 25, 1);
        laws_outcome out = run_budget(ways[i], peak_of(&none), 25, 1);
        ck_assert_uint_eq(out.program.n_calls, none.program.n_calls);
        ck_assert_uint_eq(step_of(&out), CHAIN_NS);
        ck_assert_uint_eq(peak_of(&out), peak_of(&none));
    }
}
END_TEST

/* Copies that take no time leave what the op that runs needs: a gradient in
 * and out and the unit's input, beside a_0, the output and the byte of loss
 * that the training loop holds. */
START_TEST(infinite_bandwidth_leaves_the_live_window)
{
    for (size_t i = 0; i < 3; i++) {
        uint64_t least = least_budget(ways[i], 1);
        laws_outcome out = run_budget(ways[i], least, 0, 1);
        ck_assert_int_eq(out.err, MS_OK);
        ck_assert_uint_eq(step_of(&out), CHAIN_NS);
        ck_assert_uint_eq(out.report.ranks[0].time.stall_ns, 0);
        ck_assert_uint_eq(least, 5 * CHAIN_BYTES + 1);
    }
}
END_TEST

/* Calls: a mark, 8 forwards, a mark, the loss, a mark, the loss's backward,
 * then those of units 7 .. 0.  a_1 is read by unit 1 at 10 .. 20 and, six
 * backwards behind 80, at 200. */
START_TEST(profile_by_hand)
{
    ms_keep keep;
    ms_program program;
    ms_profile profile;
    ms_machine machine = {.capacity_bytes = 1};
    ms_expand_opts opts = {.copy_ns = 25};
    ms_policy_context context = {.graph = &chain_graph,
                                 .arena = &chain_arena,
                                 .opts = &opts,
                                 .machine = &machine};
    uint64_t highest = 0;
    ck_assert_int_eq(
        ms_program_keep_all(&chain_graph, &chain_arena, &keep, &chain_fault),
        MS_OK);
    ck_assert_int_eq(ms_defaultprogram_alone(&chain_graph, &keep, 1,
                                             &chain_arena, &program,
                                             &chain_fault),
                     MS_OK);
    ck_assert_int_eq(
        ms_profile_run(&context, &program, 2, &profile, &chain_fault), MS_OK);
    ck_assert_uint_eq(profile.n_tensors, CHAIN_UNITS - 1);
    for (uint32_t i = 0; i < profile.n_tensors; i++) {
        const ms_profile_tensor *t = &profile.tensors[i];
        ck_assert_uint_eq(t->out_call, 1 + t->storage);
        ck_assert_uint_eq(t->back_call, 20 - t->storage);
        ck_assert_uint_eq(t->out_ns, 10 * (t->storage + 1));
        ck_assert_uint_eq(t->back_ns, 80 + 20 * (CHAIN_UNITS - 1 - t->storage));
    }
    for (uint32_t c = 0; c < profile.n_calls; c++)
        if (profile.level_bytes[c] > highest)
            highest = profile.level_bytes[c];
    ck_assert_uint_eq(highest, profile.peak_bytes);
    ck_assert_uint_eq(highest, (CHAIN_UNITS + 3) * CHAIN_BYTES + 1);
    ck_assert_uint_eq(profile.step_ns, CHAIN_NS);
    ck_assert_uint_eq(profile.start_ns[2], 10);
    ck_assert_uint_eq(profile.start_ns[19], 200);
    ck_assert_uint_eq(ms_profile_copy_ns(&opts, CHAIN_BYTES, true), 25);
}
END_TEST

/* One and two tensors too many: a_1 has the furthest next use (and the longest
 * time between its copies), then a_2. */
START_TEST(the_furthest_leave_first)
{
    laws_outcome none = chain_run("none", 25, 1);
    for (size_t i = 0; i < 2; i++) {
        uint32_t list[2 * CHAIN_UNITS];
        laws_outcome out = run_budget(ways[i], peak_of(&none) - 1, 25, 1);
        ck_assert_uint_eq(chain_moved(&out, list), 1);
        ck_assert_uint_eq(list[0], 1);
        out = run_budget(ways[i], peak_of(&none) - CHAIN_BYTES - 1, 25, 1);
        ck_assert_uint_eq(chain_moved(&out, list), 2);
        ck_assert_uint_eq(list[0], 1);
        ck_assert_uint_eq(list[1], 2);
        ck_assert_uint_eq(step_of(&out), CHAIN_NS);
    }
}
END_TEST

/* A copy of 1000 ns: a_1 is idle from 20 to 200, to move it waits 1820, to
 * make it again from a_0 takes 10. */
START_TEST(slow_copies_are_recomputed)
{
    static const char *const both[] = {"swap:capuchin",
                                       "checkpoint:auto+swap:auto"};
    laws_outcome none = chain_run("none", 1000, 1);
    for (size_t i = 0; i < 2; i++) {
        laws_outcome out = run_budget(both[i], peak_of(&none) - 1, 1000, 1);
        ck_assert_int_eq(out.err, MS_OK);
        ck_assert_uint_eq(out.report.ranks[0].d2h_bytes, 0);
        ck_assert_uint_eq(out.report.ranks[0].time.recompute_ns, 10);
        ck_assert_uint_eq(step_of(&out), CHAIN_NS + 10);
    }
    laws_outcome moves = run_budget("swap:auto", peak_of(&none) - 1, 1000, 1);
    ck_assert_uint_eq(moves.report.ranks[0].time.recompute_ns, 0);
    ck_assert_uint_eq(moves.report.ranks[0].d2h_bytes, CHAIN_BYTES);
}
END_TEST

/* auto takes the best that the others find, and to recompute too is never
 * slower than to move alone. */
START_TEST(auto_is_the_fastest)
{
    static const uint64_t copies[] = {1, 12, 25, 60, 300};
    uint64_t least = least_budget("swap:auto", 1);
    for (size_t i = 0; i < sizeof copies / sizeof *copies; i++)
        for (uint64_t budget = least; budget < 11 * CHAIN_BYTES;
             budget += CHAIN_BYTES) {
            laws_outcome both =
                run_budget("checkpoint:auto+swap:auto", budget, copies[i], 1);
            laws_outcome swap = run_budget("swap:auto", budget, copies[i], 1);
            laws_outcome other =
                run_budget("swap:belady", budget, copies[i], 1);
            laws_outcome third =
                run_budget("swap:capuchin", budget, copies[i], 1);
            ck_assert_uint_le(step_of(&both), step_of(&swap));
            ck_assert_uint_le(step_of(&swap), step_of(&other));
            ck_assert_uint_le(step_of(&both), step_of(&third));
        }
}
END_TEST

static void check_refused(const char *policy, ms_err err, const char *what,
                          const char *hint)
{
    laws_outcome out = chain_run(policy, 25, 1);
    ck_assert_int_eq(out.err, err);
    ck_assert_str_eq(chain_fault.what, what);
    ck_assert_str_eq(chain_fault.hint, hint);
}

START_TEST(refused)
{
    check_refused("checkpoint:auto", MS_EUSAGE,
                  "checkpoint:auto goes with swap:auto only",
                  "write swap:auto+checkpoint:auto,budget=40GiB");
    check_refused("checkpoint:auto+swap:belady", MS_EUSAGE,
                  "checkpoint:auto goes with swap:auto only",
                  "write swap:auto+checkpoint:auto,budget=40GiB");
    check_refused("checkpoint:auto,budget=1GiB+swap:auto,budget=2GiB",
                  MS_EUSAGE, "swap:auto and checkpoint:auto both give a budget",
                  "leave one out");
    check_refused("swap:vdnn=all,budget=1GiB", MS_EUSAGE,
                  "a budget changes nothing here",
                  "write vdnn=dyn, or leave budget out");
    check_refused("swap:belady,budget=4MB", MS_EINFEASIBLE,
                  "no plan fits in 4,000,000 bytes: with every tensor away "
                  "until it is used the peak is 5,000,001",
                  "give it budget=5000001 or more");
}
END_TEST

Suite *suite_swapplan(void)
{
    Suite *suite = suite_create("swapplan");
    TCase *tcase = tcase_create("swapplan");
    tcase_add_checked_fixture(tcase, chain_setup, chain_teardown);
    tcase_add_loop_test(tcase, every_budget_is_kept_or_refused, 0,
                        (int)(sizeof ways / sizeof *ways));
    tcase_add_test(tcase, profile_by_hand);
    tcase_add_test(tcase, room_enough_is_none);
    tcase_add_test(tcase, infinite_bandwidth_leaves_the_live_window);
    tcase_add_test(tcase, the_furthest_leave_first);
    tcase_add_test(tcase, slow_copies_are_recomputed);
    tcase_add_test(tcase, auto_is_the_fastest);
    tcase_add_test(tcase, refused);
    suite_add_tcase(suite, tcase);
    return suite;
}
