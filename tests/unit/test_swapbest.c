/* SPDX-License-Identifier: GPL-3.0-or-later */
/* swap:auto+checkpoint:auto against every plan there is on a short chain: all
 * orders in which tensors are picked and all places for them.  And what the
 * search takes, in steps that it counts, on longer ones. */
#include "policies/swap/swapplan.h"
#include "sim/graph.h"
#include "sim/machine.h"
#include "sim/program.h"
#include "sim/schedule/schedule.h"
#include "tests/laws/laws.h"
#include "tests/tests.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define N 5u /* units: a_1 .. a_(N - 1) may leave */
#define MOST (N - 1)
#define UNIT ((uint64_t)1000000)

static ms_arena arena, trial;
static ms_fault fault;
static ms_graph graph;
static ms_machine machine = {.capacity_bytes = UINT64_C(1) << 40};

static void setup(void)
{
    arena = trial = (ms_arena){0};
    fault = (ms_fault){0};
    laws_chain(N, UNIT, &arena, &graph);
}

static void teardown(void)
{
    ms_arena_free(&arena);
    ms_arena_free(&trial);
}

/* The script that the rule under test follows. */
static uint32_t script_order[MOST];
static uint32_t script_places; /* bit i: tensor i is made again */

static uint32_t pick_script(ms_swapplan *plan, uint32_t call, uint8_t *place)
{
    for (uint32_t i = 0; i < plan->profile->n_tensors; i++) {
        uint32_t tensor = script_order[i];
        *place = script_places >> tensor & 1u ? MS_GONE : MS_HOST;
        if (ms_swapplan_idle(plan, tensor, call))
            return tensor;
    }
    return MS_NONE;
}

static const ms_swapplan_rule rules[] = {
    {.pick = pick_script},
    {.pick = pick_script, .early = true},
    {.pick = pick_script, .in_order = true, .early = true}};

/* The least time of a plan for the budget over all scripts of this order. */
static void try_places(ms_swapplan *plan, uint64_t *best_ns)
{
    for (script_places = 0; script_places < 1u << MOST; script_places++)
        for (size_t r = 0; r < sizeof rules / sizeof *rules; r++) {
            ck_assert_int_eq(ms_swapplan_make(plan, &rules[r], true), MS_OK);
            if (plan->fits && plan->step_ns < *best_ns)
                *best_ns = plan->step_ns;
        }
}

static void try_orders(ms_swapplan *plan, uint32_t from, uint64_t *best_ns)
{
    uint32_t n = plan->profile->n_tensors;
    ck_assert_uint_le(n, MOST);
    if (from == n)
        try_places(plan, best_ns);
    for (uint32_t i = from; i < n; i++) {
        uint32_t a = script_order[from], b = script_order[i];
        script_order[from] = b;
        script_order[i] = a;
        try_orders(plan, from + 1, best_ns);
        script_order[from] = a;
        script_order[i] = b;
    }
}

/* A swap of the plain step, of tensors of at least 2 bytes. */
typedef struct opened {
    ms_policy_value values[MS_SWAP_N_PARAMS];
    ms_program program, made;
    ms_swap swap;
} opened;

static void open_swap(const ms_policy_context *context, uint32_t micro_batches,
                      opened *o)
{
    ms_keep keep;
    *o = (opened){.values[MS_SWAP_MIN] = {.given = true, .number = 2}};
    ck_assert_int_eq(ms_program_keep_all(&graph, &trial, &keep, &fault), MS_OK);
    ck_assert_int_eq(ms_defaultprogram_alone(&graph, &keep, micro_batches,
                                             &trial, &o->program, &fault),
                     MS_OK);
    ck_assert_int_eq(ms_program_fork(&o->program, &trial, &o->made, &fault),
                     MS_OK);
    o->swap = (ms_swap){.context = context,
                        .from = &o->program,
                        .program = &o->made,
                        .arena = &trial,
                        .fault = &fault,
                        .values = o->values};
    ck_assert_int_eq(ms_saved_find(&graph, &o->program, 2, &trial, &o->made,
                                   &o->swap.saved, &fault),
                     MS_OK);
}

static uint64_t best_of_all(const ms_policy_context *context,
                            uint64_t budget_bytes)
{
    opened o;
    ms_profile profile;
    ms_swapplan plan;
    uint64_t best_ns = UINT64_MAX;
    open_swap(context, 1, &o);
    ck_assert_int_eq(ms_profile_run(context, &o.program, 2, &profile, &fault),
                     MS_OK);
    ck_assert_int_eq(ms_swapplan_open(&plan, &o.swap, &profile, budget_bytes),
                     MS_OK);
    ck_assert_uint_eq(profile.n_tensors, MOST);
    for (uint32_t i = 0; i < MOST; i++)
        script_order[i] = i;
    try_orders(&plan, 0, &best_ns);
    return best_ns;
}

static uint64_t step_of_auto(const ms_policy_context *context,
                             uint64_t budget_bytes)
{
    char text[80];
    ms_spec spec = {0};
    ms_program program;
    uint64_t peak_bytes, step_ns;
    snprintf(text, sizeof text,
             "swap:auto,min=2,budget=%" PRIu64 "+checkpoint:auto",
             budget_bytes);
    ck_assert_int_eq(ms_spec_parse(text, &trial, &spec, &fault), MS_OK);
    ck_assert_int_eq(ms_apply_program(&spec, context, 1, &program, &fault),
                     MS_OK);
    ck_assert_int_eq(
        ms_profile_measure(context, &program, &peak_bytes, &step_ns, &fault),
        MS_OK);
    ck_assert_uint_le(peak_bytes, budget_bytes);
    return step_ns;
}

static const uint64_t copies[] = {3, 8, 15, 22, 40, 90};

START_TEST(auto_finds_the_best)
{
    for (uint64_t budget = 5 * UNIT + 1; budget < 9 * UNIT; budget += UNIT) {
        ms_expand_opts opts = {.copy_ns = copies[_i]};
        ms_policy_context context = {.graph = &graph,
                                     .arena = &trial,
                                     .opts = &opts,
                                     .machine = &machine};
        ck_assert_uint_eq(step_of_auto(&context, budget),
                          best_of_all(&context, budget));
        ms_arena_reset(&trial);
    }
}
END_TEST

/* ---- what the search takes ----------------------------------------------- */

static uint64_t peak_of_plain(const ms_policy_context *context,
                              uint32_t micro_batches)
{
    opened o;
    uint64_t peak_bytes, step_ns;
    open_swap(context, micro_batches, &o);
    ck_assert_int_eq(
        ms_profile_measure(context, &o.program, &peak_bytes, &step_ns, &fault),
        MS_OK);
    return peak_bytes;
}

static uint64_t steps_of_auto(ms_policy_context *context,
                              uint32_t micro_batches, bool recompute,
                              uint64_t budget_bytes)
{
    ms_spec spec = {0};
    opened o;
    uint64_t steps, peak_bytes, step_ns;
    ck_assert_int_eq(
        ms_spec_parse(recompute ? "checkpoint:auto+swap:auto" : "swap:auto",
                      &trial, &spec, &fault),
        MS_OK);
    context->spec = &spec;
    open_swap(context, micro_batches, &o);
    o.values[MS_SWAP_BUDGET].given = true;
    o.values[MS_SWAP_BUDGET].number = (int64_t)budget_bytes;
    ck_assert_int_eq(ms_swapauto_search(&o.swap, &steps), MS_OK);
    ck_assert_int_eq(
        ms_profile_measure(context, &o.made, &peak_bytes, &step_ns, &fault),
        MS_OK);
    ck_assert_uint_le(peak_bytes, budget_bytes);
    return steps;
}

/* A tensor that was picked to leave and need not is picked once in the next
 * plan, too: every search comes to its end, far from the bound. */
START_TEST(the_search_ends)
{
    ms_expand_opts opts = {.copy_ns = copies[_i]};
    ms_policy_context context = {
        .graph = &graph, .arena = &trial, .opts = &opts, .machine = &machine};
    laws_chain(16, UNIT, &arena, &graph);
    for (uint32_t s = 0; s < graph.n_storages; s++)
        graph.storage_bytes[s] = UNIT / 8 * (1 + s * 7 % 16);
    uint64_t most = peak_of_plain(&context, 1);
    for (uint64_t budget = most / 2; budget < most; budget += most / 20)
        for (int recompute = 0; recompute < 2; recompute++) {
            uint64_t steps = steps_of_auto(&context, 1, recompute, budget);
            ck_assert_uint_le(steps, MS_SWAPAUTO_STEPS / 4);
            ms_arena_reset(&trial);
        }
}
END_TEST

/* A chain whose search does not end in the bound is stopped by it: what the
 * last plan takes comes on top. */
START_TEST(the_bound_holds)
{
    ms_expand_opts opts = {.copy_ns = 40};
    ms_policy_context context = {
        .graph = &graph, .arena = &trial, .opts = &opts, .machine = &machine};
    laws_chain(60, UNIT, &arena, &graph);
    uint64_t budget = peak_of_plain(&context, 8) - 30 * UNIT;
    uint64_t steps = steps_of_auto(&context, 8, _i == 1, budget);
    ck_assert_uint_gt(steps, MS_SWAPAUTO_STEPS);
    ck_assert_uint_le(steps, MS_SWAPAUTO_STEPS + MS_SWAPAUTO_STEPS / 100);
}
END_TEST

Suite *suite_swapbest(void)
{
    Suite *suite = suite_create("swapbest");
    TCase *tcase = tcase_create("swapbest");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_set_timeout(tcase, 120);
    tcase_add_loop_test(tcase, auto_finds_the_best, 0,
                        (int)(sizeof copies / sizeof *copies));
    tcase_add_loop_test(tcase, the_search_ends, 0,
                        (int)(sizeof copies / sizeof *copies));
    tcase_add_loop_test(tcase, the_bound_holds, 0, 2);
    suite_add_tcase(suite, tcase);
    return suite;
}
