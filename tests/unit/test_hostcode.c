/* SPDX-License-Identifier: GPL-3.0-or-later */
/* How long the framework's code keeps the host. */
#include "graphs/machines/hostcode.h"
#include "graphs/training.h"
#include "sim/graph.h"
#include "sim/machine.h"
#include "sim/report.h"
#include "tests/tests.h"
#include "tests/truth/truth.h"
#include "tools/job/result.h"

#include <string.h>

#define SMALL "gpt2 --set model.layers=2 --batch 1 --sequence 64 "
#define LOOP "--set training.optimizer_impl=loop "

static uint64_t step_ns(const ms_result *result)
{
    return truth_rank(result)->time.step_ns;
}

/* By hand: 13.48 us for the forward of a Linear less 5 of the launch; the step
 * of n parameters is shared by its ops. */
START_TEST(torch_takes_what_was_measured)
{
    truth_begin();
    const ms_result *result = truth_run(SMALL);
    const uint32_t *ns = result->machine->framework_ns;
    const ms_graph *graph = result->graph;
    uint32_t n_step = graph->n_ops - graph->step_first, n_weights = 0;
    for (uint32_t s = 0; s < graph->n_persistent; s++)
        n_weights += ms_graph_is_weight(graph, s);
    ck_assert_uint_eq(ns[MS_FORWARD], 8500);
    ck_assert_uint_eq(ns[MS_RECOMPUTE], 8500);
    ck_assert_uint_eq(ns[MS_GRAD_WEIGHT], 4000);
    ck_assert_uint_eq(ns[MS_STEP], 10000 * n_weights / n_step);
    ck_assert_uint_eq(ns[MS_COPY], 0);
    truth_end();
}
END_TEST

/* Megatron-Core's modules take longer than torch's, whose kernels are no
 * shorter, and its step waits for the host. */
START_TEST(megatron_waits_for_its_host)
{
    truth_begin();
    uint64_t torch_ns = step_ns(truth_run(SMALL));
    const ms_result *megatron = truth_run(SMALL "--kernels megatron");
    const ms_times *time = &truth_rank(megatron)->time;
    ck_assert_uint_gt(time->step_ns, 2 * torch_ns);
    ck_assert_uint_gt(time->host_bound_ns, time->step_ns / 2);
    truth_end();
}
END_TEST

/* A host of half the speed; a CPU's ops are its own work. */
START_TEST(hosts_differ)
{
    truth_begin();
    uint32_t fast_ns =
        truth_run(SMALL "--device h100")->machine->framework_ns[MS_FORWARD];
    uint32_t slow_ns =
        truth_run(SMALL "--device a100")->machine->framework_ns[MS_FORWARD];
    ck_assert_uint_eq(slow_ns, fast_ns * 12 / 10);
    const ms_result *cpu = truth_run(SMALL "--set training.device=cpu");
    for (uint32_t pass = 0; pass < MS_N_PASSES; pass++)
        ck_assert_uint_eq(cpu->machine->framework_ns[pass], 0);
    truth_end();
}
END_TEST

/* What the device is busy with for long enough hides the host, and hooks. */
START_TEST(long_kernels_hide_it)
{
    static const char *const who[] = {"none", "fsdp:dp=8", "deepspeed:3,dp=8"};
    for (uint32_t i = 0; i < 3; i++) {
        truth_begin();
        const ms_result *result =
            truth_run("gpt3 --set model.layers=2 -p %s", who[i]);
        ck_assert_uint_lt(truth_rank(result)->time.host_bound_ns,
                          step_ns(result) / 1000);
        truth_end();
    }
}
END_TEST

/* What the ops of some passes have beyond torch's own code, in us, all of
 * them together. */
static double hooks_us(const ms_result *result, ms_pass first, ms_pass end)
{
    const uint32_t *ns = result->machine->framework_ns;
    const ms_graph *graph = result->graph;
    double sum = 0;
    for (uint32_t op = 0; op < graph->n_ops; op++) {
        uint8_t pass = graph->op_pass[op];
        double own = pass == MS_FORWARD ? 8500 : 4000;
        if (graph->op_ns[op] > 0 && pass >= first && pass < end)
            sum += (ns[pass] - own) / 1000;
    }
    return sum;
}

/* By hand: 2 blocks and what is in none are 3 units; 28 parameters (4 of the
 * embeddings and the last norm, 12 a block), less than 1 ns an op rounded off.
 */
START_TEST(hooks_take_their_time)
{
    static const struct {
        const char *who;
        double forward_us, backward_us;
    } of[] = {
        {"ddp:dp=8", 0, 0},
        {"zero:2,dp=8", 0, 0},
        {"fsdp:dp=8", 3 * 153 + 28 * 42, 3 * 247 + 28 * 84},
        {"fsdp:dp=8,impl=1", 3 * 213 + 28 * 8.5, 3 * (213 + 136) + 28 * 8.5},
        {"deepspeed:0,dp=8 --precision fp16-mixed", 0, 0},
        {"deepspeed:1,dp=8", 0, 28 * 200},
        {"deepspeed:2,dp=8", 0, 28 * 200},
        {"deepspeed:3,dp=8", 28 * 220, 28 * 420}};
    for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
        truth_begin();
        const ms_result *result = truth_run(SMALL "-p %s", of[i].who);
        const uint32_t *ns = result->machine->framework_ns;
        bool again = strncmp(of[i].who, "deepspeed:3", 11) == 0;
        ck_assert_double_eq_tol(hooks_us(result, MS_FORWARD, MS_LOSS),
                                of[i].forward_us, 0.5);
        ck_assert_uint_eq(ns[MS_RECOMPUTE], again ? ns[MS_FORWARD] : 8500);
        ck_assert_double_eq_tol(hooks_us(result, MS_GRAD_INPUT, MS_ACCUMULATE),
                                of[i].backward_us, 0.5);
        truth_end();
    }
}
END_TEST

/* FSDP2's parameters are DTensors in the step: by hand, 287 us each in one
 * kernel, 920 in lists, 128 an op. */
START_TEST(dtensors_are_slow_to_update)
{
    static const struct {
        const char *impl;
        double us, op_us; /* of a parameter, of an op */
    } of[] = {{"fused", 297, 0}, {"foreach", 930, 0}, {"loop", 10, 128}};
    for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
        truth_begin();
        const ms_result *result = truth_run(
            SMALL "-p fsdp:dp=8 --set training.optimizer_impl=%s", of[i].impl);
        const ms_graph *graph = result->graph;
        double n_step = graph->n_ops - graph->step_first;
        ck_assert_double_eq_tol(n_step * result->machine->framework_ns[MS_STEP],
                                1000 * (28 * of[i].us + n_step * of[i].op_us),
                                n_step + 1);
        truth_end();
    }
}
END_TEST

/* Frozen weights are gathered, but neither reduced nor updated: 4 adapters of
 * two matrices each beside 28 weights. */
START_TEST(frozen_weights_have_less)
{
    truth_begin();
    const ms_result *result =
        truth_run(SMALL "-p fsdp:dp=8 --set lora.rank=4 "
                        "--set lora.targets=attention "
                        "--set training.optimizer_impl=fused");
    double n_step = result->graph->n_ops - result->graph->step_first;
    ck_assert_double_eq_tol(hooks_us(result, MS_FORWARD, MS_LOSS),
                            3 * 153 + 36 * 42, 0.5);
    ck_assert_double_eq_tol(hooks_us(result, MS_GRAD_INPUT, MS_ACCUMULATE),
                            3 * 247 + 36 * 42 + 8 * 42, 0.5);
    ck_assert_double_eq_tol(n_step * result->machine->framework_ns[MS_STEP],
                            1000 * (36 * 10 + 8 * 287), n_step + 1);
    truth_end();
}
END_TEST

/* DeepSpeedExamples training/bf16_master_weight: 104.2 ms on a GPU that is not
 * named, by a clock that does not wait for it; the rate of its hooks is from
 * this row, which is held here alone. */
START_TEST(stage_3_waits_for_its_hooks)
{
    char path[TESTS_PATH];
    tests_source("tests/truth/files/post-norm.json", path);
    truth_begin();
    const ms_result *result =
        truth_run("%s --batch 4 --precision bf16-mixed --device h100 "
                  "-p deepspeed:3,dp=1",
                  path);
    const ms_rank_report *rank = truth_rank(result);
    uint64_t ns = rank->time.step_ns;
    ck_assert_double_eq_tol((double)ns / 1e6, 104.2, 5);
    ck_assert_uint_eq(rank->time.error_percent, 0); /* no band for such */
    truth_end();
}
END_TEST

/* Recorded ops take the host no time; compiled code is between.  A host that
 * launches two graphs is ready for the optimizer's step long before the device
 * is. */
START_TEST(graphs_need_no_host)
{
    static const char *const ways[] = {"eager", "compiled", "graph",
                                       "graph-step"};
    uint64_t ns[4], host_ns[4];
    truth_begin();
    for (uint32_t i = 0; i < 4; i++) {
        const ms_result *result =
            truth_run(SMALL LOOP "--set training.launch=%s", ways[i]);
        ns[i] = step_ns(result);
        host_ns[i] = truth_rank(result)->time.host_bound_ns;
    }
    ck_assert_uint_gt(ns[0], ns[1]);
    ck_assert_uint_gt(ns[1], ns[2]);
    ck_assert_uint_ge(ns[2], ns[3]);
    ck_assert_uint_gt(host_ns[0], host_ns[1]);
    ck_assert_uint_gt(host_ns[1], host_ns[2]);
    ck_assert_uint_eq(host_ns[3], 0);
    truth_end();
}
END_TEST

static void is_refused(int64_t launch, int64_t device, const ms_shape *shape)
{
    ms_fault fault = {0};
    const ms_training training = {.launch = launch, .device = device};
    ck_assert_int_eq(ms_hostcode_check(&training, shape, &fault), MS_EUSAGE);
    ck_assert_uint_gt(strlen(fault.hint), 0);
}

/* Where the host takes part, nothing can be recorded. */
START_TEST(what_cannot_be_recorded)
{
    const ms_shape none = {0}, offload = {.offload.optimizer = MS_HOST_POOL},
                   paged = {.paging.page_bytes = 4096};
    const ms_training compiled = {.launch = MS_LAUNCH_COMPILED};
    is_refused(MS_LAUNCH_GRAPH, 0, &offload);
    is_refused(MS_LAUNCH_GRAPH_STEP, 0, &paged);
    is_refused(MS_LAUNCH_COMPILED, 1, &none);
    ck_assert_int_eq(ms_hostcode_check(&compiled, &offload, NULL), MS_OK);
}
END_TEST

Suite *suite_hostcode(void)
{
    Suite *suite = suite_create("hostcode");
    TCase *tcase = tcase_create("hostcode");
    tcase_add_test(tcase, torch_takes_what_was_measured);
    tcase_add_test(tcase, megatron_waits_for_its_host);
    tcase_add_test(tcase, graphs_need_no_host);
    tcase_add_test(tcase, what_cannot_be_recorded);
    tcase_add_test(tcase, hosts_differ);
    tcase_add_test(tcase, long_kernels_hide_it);
    tcase_add_test(tcase, hooks_take_their_time);
    tcase_add_test(tcase, dtensors_are_slow_to_update);
    tcase_add_test(tcase, frozen_weights_have_less);
    tcase_add_test(tcase, stage_3_waits_for_its_hooks);
    suite_add_tcase(suite, tcase);
    return suite;
}
