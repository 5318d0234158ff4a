/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Laws of the swap policies on a chain of N equal units (tests/laws/laws.h):
 * unit i reads and saves a_(i - 1) and makes a_i. */
#include "policies/common/policy.h"
#include "sim/graph.h"
#include "sim/machine.h"
#include "sim/plan.h"
#include "sim/program.h"
#include "sim/report.h"
#include "sim/timeline.h"
#include "tests/laws/laws.h"
#include "tests/tests.h"
#include "tests/truth/truth.h"

#include <stdio.h>
#include <string.h>

#define N 8u
#define UNIT_BYTES ((uint64_t)1000000)
#define COPY_NS 7u

static ms_arena arena;
static ms_fault fault;
static ms_graph graph;
static ms_timeline line; /* of the last run */

static void setup(void)
{
    arena = (ms_arena){0};
    fault = (ms_fault){0};
    laws_chain(N, UNIT_BYTES, &arena, &graph);
}

static void teardown(void)
{
    ms_arena_free(&arena);
}

static const ms_rank_report *run_with(const char *policy, double rate,
                                      uint64_t copy_ns)
{
    static ms_report report;
    ms_spec spec = {0};
    ms_program program;
    ms_machine machine = {0};
    ms_expand_opts opts = {
        .h2d_bytes_per_s = rate, .d2h_bytes_per_s = rate, .copy_ns = copy_ns};
    ck_assert_int_eq(ms_spec_parse(policy, &arena, &spec, &fault), MS_OK);
    ck_assert_int_eq(
        ms_apply_program(&spec,
                         &(ms_policy_context){.graph = &graph, .arena = &arena},
                         1, &program, &fault),
        MS_OK);
    ck_assert_int_eq(ms_check_program(&graph, &program, &fault), MS_OK);
    ms_plan *plan = ms_arena_take(&arena, 1, sizeof *plan);
    ck_assert_int_eq(ms_expand(&graph, &program, &opts, &arena, plan, &fault),
                     MS_OK);
    ck_assert_int_eq(ms_replay(plan, &machine, &arena, &line, &fault), MS_OK);
    ck_assert_int_eq(ms_measure(&line, &machine, &arena, &report, &fault),
                     MS_OK);
    return &report.ranks[0];
}

/* rate in bytes per second, both ways; 0: copies take no time. */
static const ms_rank_report *run(const char *policy, double rate)
{
    return run_with(policy, rate, rate > 0 ? COPY_NS : 0);
}

static uint64_t after_forward(const ms_rank_report *rank)
{
    return rank->levels[MS_MARK_AFTER_FORWARD];
}

/* L - n blocks' tensors are on the device (policies/sources.md 7). */
START_TEST(te_leaves_all_but_n_blocks)
{
    uint64_t none = after_forward(run("none", 1e9));
    for (uint32_t n = 1; n < N; n++) {
        char policy[32];
        snprintf(policy, sizeof policy, "swap:te=%u,min=1", n);
        const ms_rank_report *rank = run(policy, 1e9);
        /* Block 0 reads the input, which is no activation. */
        ck_assert_uint_eq(after_forward(rank), none - (n - 1) * UNIT_BYTES);
        ck_assert_uint_eq(rank->d2h_bytes, (n - 1) * UNIT_BYTES);
        ck_assert_uint_eq(rank->h2d_bytes, rank->d2h_bytes);
    }
}
END_TEST

/* Of 256 Ki elements of 16 bits and more, or as the words say. */
START_TEST(te_leaves_small_tensors_here)
{
    const struct {
        uint64_t bytes;
        const char *policy;
        uint64_t moves; /* units */
    } cases[] = {{(512 << 10) - 1, "swap:te=4", 0},
                 {512 << 10, "swap:te=4", 3},
                 {(512 << 10) - 1, "swap:te=4,min=1KiB", 3}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        laws_chain(N, cases[i].bytes, &arena, &graph);
        ck_assert_uint_eq(run(cases[i].policy, 1e9)->d2h_bytes,
                          cases[i].moves * cases[i].bytes);
    }
}
END_TEST

START_TEST(infinite_bandwidth_costs_nothing)
{
    static const char *const policies[] = {
        "swap:te=4,min=1", "swap:vdnn=all,min=1", "swap:save_on_cpu,min=1",
        "swap:torchtune,min=1"};
    uint64_t step_ns = run("none", 0)->time.step_ns;
    for (size_t i = 0; i < sizeof policies / sizeof *policies; i++) {
        const ms_rank_report *rank = run(policies[i], 0);
        ck_assert_uint_eq(rank->time.step_ns, step_ns);
        ck_assert_uint_eq(rank->time.stall_ns, 0);
        ck_assert_uint_gt(rank->d2h_bytes, 0);
    }
}
END_TEST

/* No overlap: base + each tensor out and in (policies/sources.md 7). */
START_TEST(save_on_cpu_adds_every_copy)
{
    const uint64_t tensors = N - 1; /* a_1 .. a_(N - 1) */
    uint64_t base_ns = run("none", 1e9)->time.step_ns;
    const ms_rank_report *rank = run("swap:save_on_cpu,min=1000", 1e9);
    uint64_t copy_ns = UNIT_BYTES + COPY_NS; /* at 1 byte per ns */
    ck_assert_uint_eq(rank->d2h_bytes, tensors * UNIT_BYTES);
    ck_assert_uint_eq(rank->time.step_ns, base_ns + 2 * tensors * copy_ns);
    ck_assert_uint_eq(rank->time.stall_ns, 2 * tensors * copy_ns);
}
END_TEST

/* Forward layer time = max(compute, copy out); so in backward. */
START_TEST(vdnn_waits_at_the_end_of_each_layer)
{
    const ms_rank_report *rank = run("swap:vdnn=all,min=1000", 1e9);
    uint64_t copy_ns = UNIT_BYTES + COPY_NS, base_ns;
    uint64_t layers = N - 1; /* a_1 .. a_(N - 1) are inputs that are saved */
    ck_assert_uint_eq(rank->d2h_bytes, layers * UNIT_BYTES);
    base_ns = run("none", 1e9)->time.step_ns;
    ck_assert_uint_gt(rank->time.step_ns, base_ns);
    ck_assert_uint_le(rank->time.step_ns, base_ns + 2 * layers * copy_ns);
}
END_TEST

/* By hand, each copy 25 ns, forward 10, backward 20.  a_1 .. a_7 leave, each
 * when it is there; the copies out end at 35, 60, ... 185.  Behind the readers
 * of a_6 and a_7, at 70 and 80, a_1 and a_2 (35, 60) go; five stay.  The first
 * backward, at 80, finds a_7 here; behind it the stash goes, and the compute
 * stream waits for its last copy, at 185.  From there on each node waits for
 * its tensor, whose copy waits for the one before it in the queue and for the
 * node before the last: a_6 from 185 to 210, its node to 230, a_5 to 235, its
 * node to 255, ... a_1 to 335, its node to 355, and unit 0's to 375. */
START_TEST(torchtune_by_hand)
{
    uint64_t none = after_forward(run("none", 1e9));
    const ms_rank_report *rank = run_with("swap:torchtune,min=2", 0, 25);
    ck_assert_uint_eq(rank->d2h_bytes, 7 * UNIT_BYTES);
    ck_assert_uint_eq(rank->h2d_bytes, 6 * UNIT_BYTES);
    ck_assert_uint_eq(after_forward(rank), none - 2 * UNIT_BYTES);
    ck_assert_uint_eq(rank->time.step_ns, 375);
    ck_assert_uint_eq(rank->time.stall_ns, 375 - 240);
    /* One copy under way: a_1 .. a_6 go, a_7's reader waits for a_6's. */
    rank = run_with("swap:torchtune,min=2,inflight=1", 0, 25);
    ck_assert_uint_eq(rank->h2d_bytes, 6 * UNIT_BYTES);
    ck_assert_uint_eq(after_forward(rank), none - 6 * UNIT_BYTES);
}
END_TEST

/* Each save is a copy, of a view as many bytes as it shows; by hand, 512 rows
 * of 256 fp32 numbers through linear layers with ReLU.  Each linear layer but
 * the first saves its input and, for the input's gradient, its weight turned;
 * ReLU saves its result, which the next layer saves again; the loss saves its
 * result twice, the targets (int64) and one number. */
START_TEST(every_save_is_a_copy)
{
    const char *json =
        "{\"memsim\": 1, \"name\": \"mlp\", \"input\": {\"shape\": [256]}, "
        "\"layers\": [{\"repeat\": 6, \"name\": \"h\", \"layers\": ["
        "{\"type\": \"linear\", \"out\": 256}, {\"type\": \"relu\"}]}, "
        "{\"type\": \"linear\", \"out\": 10}, {\"type\": "
        "\"cross_entropy\"}]}";
    const char *words = "mlp --precision fp32 --batch 512 -p swap:%s";
    const uint64_t x = 512 * 256 * 4, weight = 256 * 256 * 4;
    const uint64_t head = 10 * 256 * 4, loss = 2 * 512 * 10 * 4 + 512 * 8 + 4;
    truth_begin();
    const ms_rank_report *rank =
        truth_rank(truth_run_json(json, words, "save_on_cpu"));
    uint64_t all = 7 * x + 6 * x + 5 * weight + head + loss;
    ck_assert_uint_eq(rank->d2h_bytes, all);
    ck_assert_uint_eq(rank->h2d_bytes, all);
    /* The head's input and weight stay, ReLU's last result is in the stash. */
    rank = truth_rank(truth_run_json(json, words, "torchtune"));
    ck_assert_uint_eq(rank->d2h_bytes, 12 * x + 5 * weight);
    ck_assert_uint_eq(rank->h2d_bytes, 11 * x + 5 * weight);
    /* What a layer saves again is here, ReLU's results; in torchtune's stash
     * the last three. */
    uint64_t after = rank->levels[MS_MARK_BEFORE_LOSS];
    rank = truth_rank(truth_run_json(json, words, "trl"));
    ck_assert_uint_eq(rank->d2h_bytes, 7 * x);
    ck_assert_uint_eq(rank->h2d_bytes, 6 * x);
    ck_assert_uint_eq(rank->levels[MS_MARK_BEFORE_LOSS], after + 3 * x);
    truth_end();
}
END_TEST

/* DeepSpeed's cpu_checkpointing: the same bytes, and the compute stream waits
 * for all of them, over a link of half the rate. */
START_TEST(checkpoints_wait_for_deepspeed)
{
    const char *words = "gpt2 --batch 8 -p checkpoint:full+swap:checkpoints%s";
    truth_begin();
    ms_rank_report ideal = *truth_rank(truth_run(words, ""));
    ms_rank_report slow = *truth_rank(truth_run(words, ",impl=deepspeed"));
    ck_assert_uint_eq(slow.d2h_bytes, ideal.d2h_bytes);
    ck_assert_uint_eq(slow.h2d_bytes, ideal.h2d_bytes);
    ck_assert_uint_gt(slow.time.stall_ns, ideal.time.stall_ns);
    ck_assert_uint_gt(slow.time.step_ns, ideal.time.step_ns);
    truth_end();
}
END_TEST

/* Copies of two kinds that are under way at once, in ns, over all pairs. */
static uint64_t overlap_ns(void)
{
    const ms_plan *plan = line.plan;
    uint64_t ns = 0;
    for (uint32_t i = 0; i < plan->n_ops; i++)
        for (uint32_t k = 0; k < plan->n_ops; k++) {
            uint64_t from = line.start_ns[i], to = line.end_ns[i];
            if (plan->op[i].stream != MS_STREAM_D2H ||
                plan->op[k].stream != MS_STREAM_H2D)
                continue;
            from = line.start_ns[k] > from ? line.start_ns[k] : from;
            to = line.end_ns[k] < to ? line.end_ns[k] : to;
            ns += to > from ? to - from : 0;
        }
    return ns;
}

/* torchtune and Transformer Engine have one stream for both directions.  By
 * hand, with copies of 40 ns: those out end at 50, 90, ... 290, when the first
 * one in starts. */
START_TEST(one_side_stream_is_one_queue)
{
    static const char *const policies[] = {
        "swap:torchtune,min=2", "swap:torchtune,min=2,inflight=7",
        "swap:torchtune,min=2,inflight=2", "swap:te=4,min=2",
        "swap:te=7,min=2,prefetch=3"};
    for (size_t i = 0; i < sizeof policies / sizeof *policies; i++)
        for (uint64_t copy_ns = 5; copy_ns < 200; copy_ns += 35) {
            ck_assert_uint_gt(run_with(policies[i], 0, copy_ns)->d2h_bytes, 0);
            ck_assert_uint_eq(overlap_ns(), 0);
        }
    uint64_t first_in_ns = UINT64_MAX;
    run_with("swap:torchtune,min=2", 0, 40);
    for (uint32_t op = 0; op < line.plan->n_ops; op++)
        if (line.plan->op[op].stream == MS_STREAM_H2D &&
            line.start_ns[op] < first_in_ns)
            first_in_ns = line.start_ns[op];
    ck_assert_uint_eq(first_in_ns, 290);
}
END_TEST

/* What the flag does, by itself: a_1 out and in, of 30 ns each, from 20 on. */
START_TEST(side_copies_wait_for_each_other)
{
    static const char *const queues[] = {"", " side"};
    for (size_t i = 0; i < 2; i++) {
        ms_program program;
        ms_plan plan;
        ms_machine machine = {0};
        ms_expand_opts opts = {.copy_ns = 30};
        const char *text = ms_arena_format(
            &arena,
            "memsim-program 1\nframes 1 ranks 1 micro-batches 1\n"
            "set 0 = 1\nset 1 = 2\n"
            "run forward unit 0 keep all\nrun forward unit 1 keep all\n"
            "move 0 to host\n" /* 10 .. 40 */
            "sync\n"           /* the host is at 40 */
            "move 1 to host later%s\nmove 0 to here%s\n",
            queues[i], queues[i]);
        ck_assert_int_eq(ms_dumpread_program(&graph, "text", text, strlen(text),
                                             &arena, &program, &fault),
                         MS_OK);
        ck_assert_int_eq(
            ms_expand(&graph, &program, &opts, &arena, &plan, &fault), MS_OK);
        ck_assert_int_eq(ms_replay(&plan, &machine, &arena, &line, &fault),
                         MS_OK);
        ck_assert_uint_eq(line.step_ns, i == 0 ? 70 : 100);
        ck_assert_uint_eq(overlap_ns(), i == 0 ? 30 : 0);
        ms_text out = {.arena = &arena};
        ms_dump_program(&graph, &program, &out);
        ck_assert_int_eq(strstr(out.bytes, " side") != NULL, i == 1);
    }
}
END_TEST

START_TEST(nothing_large_enough_is_none)
{
    static const char *const policies[] = {
        "swap:te=4,min=1MiB", "swap:vdnn=all,min=1MiB",
        "swap:save_on_cpu,min=1MiB", "swap:torchtune,min=1MiB"};
    uint64_t step_ns = run("none", 1e9)->time.step_ns;
    uint64_t peak_bytes = run("none", 1e9)->peak.allocated_bytes;
    for (size_t i = 0; i < sizeof policies / sizeof *policies; i++) {
        const ms_rank_report *rank = run(policies[i], 1e9);
        ck_assert_uint_eq(rank->time.step_ns, step_ns);
        ck_assert_uint_eq(rank->peak.allocated_bytes, peak_bytes);
        ck_assert_uint_eq(rank->d2h_bytes, 0);
    }
}
END_TEST

START_TEST(every_block_away_is_refused)
{
    ms_spec spec = {0};
    ms_program program;
    ck_assert_int_eq(ms_spec_parse("swap:te=8", &arena, &spec, &fault), MS_OK);
    ck_assert_int_eq(
        ms_apply_program(&spec,
                         &(ms_policy_context){.graph = &graph, .arena = &arena},
                         1, &program, &fault),
        MS_EUSAGE);
    ck_assert_str_eq(fault.what, "the model has 8 blocks");
}
END_TEST

Suite *suite_swap(void)
{
    Suite *suite = suite_create("swap");
    TCase *tcase = tcase_create("swap");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, te_leaves_all_but_n_blocks);
    tcase_add_test(tcase, te_leaves_small_tensors_here);
    tcase_add_test(tcase, infinite_bandwidth_costs_nothing);
    tcase_add_test(tcase, save_on_cpu_adds_every_copy);
    tcase_add_test(tcase, vdnn_waits_at_the_end_of_each_layer);
    tcase_add_test(tcase, torchtune_by_hand);
    tcase_add_test(tcase, every_save_is_a_copy);
    tcase_add_test(tcase, checkpoints_wait_for_deepspeed);
    tcase_add_test(tcase, one_side_stream_is_one_queue);
    tcase_add_test(tcase, side_copies_wait_for_each_other);
    tcase_add_test(tcase, nothing_large_enough_is_none);
    tcase_add_test(tcase, every_block_away_is_refused);
    suite_add_tcase(suite, tcase);
    return suite;
}
