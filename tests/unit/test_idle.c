/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Worked by hand: the chain of three units of tests/laws/laws.h, 1000 bytes and
 * 10 ns forward, 20 ns backward each.  a_1 is read until 20 and again at 50,
 * a_2 until 30, when backward reads it at once, as the loss of one byte. */
#include "policies/common/policy.h"
#include "sim/graph.h"
#include "sim/machine.h"
#include "sim/plan.h"
#include "sim/program.h"
#include "sim/report.h"
#include "sim/schedule/schedule.h"
#include "sim/timeline.h"
#include "tests/laws/laws.h"
#include "tests/tests.h"
#include "tools/cli/explain/idletimes.h"
#include "tools/job/job.h"
#include "tools/job/result.h"
#include "tools/job/settings.h"

static ms_arena arena, trial;
static ms_fault fault;
static ms_plan plan;
static ms_timeline line;
static ms_idle_tensor *list;
static uint32_t n;

#define MUST(call) ck_assert_msg((call) == MS_OK, "%s", fault.what)

static void setup(void)
{
    arena = trial = (ms_arena){0};
    fault = (ms_fault){0};
}

static void teardown(void)
{
    ms_arena_free(&arena);
    ms_arena_free(&trial);
}

/* 1e11 bytes/s: 1000 bytes take 10 ns. */
static void wait_in_chain(double bytes_per_s)
{
    static ms_graph graph;
    ms_keep keep;
    ms_program program;
    ms_machine machine = {.capacity_bytes = 10000};
    ms_expand_opts opts = {.uses = true};
    const ms_idle_links links = {bytes_per_s, bytes_per_s, 0};
    laws_chain(3, 1000, &arena, &graph);
    MUST(ms_program_keep_all(&graph, &arena, &keep, &fault));
    MUST(ms_defaultprogram_alone(&graph, &keep, 1, &arena, &program, &fault));
    MUST(ms_expand(&graph, &program, &opts, &arena, &plan, &fault));
    MUST(ms_replay(&plan, &machine, &arena, &line, &fault));
    MUST(ms_idle_list(&line, 0, &links, &arena, &list, &n, &fault));
    ck_assert_uint_eq(n, 3);
}

static void check(uint32_t i, uint64_t bytes, uint64_t from_ns, uint64_t to_ns,
                  bool hides)
{
    ck_assert_uint_eq(list[i].bytes, bytes);
    ck_assert_uint_eq(list[i].from_ns, from_ns);
    ck_assert_uint_eq(list[i].to_ns, to_ns);
    ck_assert_uint_eq(list[i].alone, hides);
    ck_assert_uint_eq(list[i].together, hides);
}

START_TEST(a_tensor_waits_between_its_uses)
{
    wait_in_chain(1e11);
    check(0, 1000, 20, 50, true);
    check(1, 1000, 30, 30, false);
    check(2, 1, 30, 30, false);
    ck_assert_uint_eq(list[0].uses, 2);
    ck_assert_uint_eq(list[1].uses, 2);
    ck_assert_uint_eq(list[2].uses, 1);
    wait_in_chain(5e10); /* out until 40, back from 30 */
    check(0, 1000, 20, 50, false);
    wait_in_chain(0.0);
    check(0, 1000, 20, 50, false);
}
END_TEST

START_TEST(classes_are_of_equal_width)
{
    ms_idletimes saved = {0};
    wait_in_chain(1e11);
    MUST(ms_idletimes_sort(list, n, &arena, &saved, &fault));
    ck_assert_uint_eq(saved.all.bytes, 2001);
    ck_assert_uint_eq(saved.all.tensors, 3);
    ck_assert_uint_eq(saved.all.hidden_bytes, 1000);
    ck_assert_uint_eq(saved.half_ns, 0); /* 1001 of 2001 do not wait */
    ck_assert_uint_eq(saved.n, 4);       /* of 10 ns */
    ck_assert_uint_eq(saved.of[0].bytes, 1001);
    ck_assert_uint_eq(saved.of[1].tensors + saved.of[2].tensors, 0);
    ck_assert_uint_eq(saved.of[3].from_ns, 30);
    ck_assert_uint_eq(saved.of[3].bytes, 1000);
    MUST(ms_idletimes_sort(list, 1, &arena, &(ms_idletimes){0}, &fault));
}
END_TEST

/* ---- a law over policies ------------------------------------------------- */

static const char *const policies[] = {"none",          "checkpoint:full",
                                       "fsdp:dp=8",     "swap:te=6",
                                       "swap:vdnn=all", "microbatch:2"};
#define N_POLICIES ((int)(sizeof policies / sizeof policies[0]))

START_TEST(classes_sum_to_what_is_saved)
{
    ms_job job;
    ms_result result;
    ms_idletimes saved;
    uint64_t bytes = 0, hidden = 0;
    ms_settings_init(&job);
    job.model = "gpt2";
    job.training.batch = 2;
    job.uses = true;
    MUST(ms_spec_parse(policies[_i], &arena, &job.spec, &fault));
    MUST(ms_jobway_run(&job, &arena, &trial, &result, &fault));
    MUST(ms_idletimes_find(&job, &result, &arena, &saved, &fault));
    for (uint32_t i = 0; i < saved.n; i++) {
        ck_assert_uint_eq(saved.of[i].from_ns,
                          i > 0 ? saved.of[i - 1].to_ns : 0);
        ck_assert_uint_le(saved.of[i].hidden_bytes, saved.of[i].alone_bytes);
        ck_assert_uint_le(saved.of[i].alone_bytes, saved.of[i].bytes);
        bytes += saved.of[i].bytes;
        hidden += saved.of[i].hidden_bytes;
    }
    ck_assert_uint_gt(bytes, 0);
    ck_assert_uint_eq(bytes, result.report->ranks[0].saved_for_backward_bytes);
    ck_assert_uint_eq(bytes, saved.all.bytes);
    ck_assert_uint_eq(hidden, saved.all.hidden_bytes);
}
END_TEST

Suite *suite_idle(void)
{
    Suite *suite = suite_create("idle");
    TCase *tcase = tcase_create("idle");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_set_timeout(tcase, 100);
    tcase_add_test(tcase, a_tensor_waits_between_its_uses);
    tcase_add_test(tcase, classes_are_of_equal_width);
    tcase_add_loop_test(tcase, classes_sum_to_what_is_saved, 0, N_POLICIES);
    suite_add_tcase(suite, tcase);
    return suite;
}
