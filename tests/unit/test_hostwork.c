/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The optimizer's step on the host: how fast it goes by threads and by the
 * queue of the disk, and what it runs beside. */
#include "graphs/device.h"
#include "sim/graph.h"
#include "sim/names.h"
#include "sim/report.h"
#include "tests/tests.h"
#include "tests/truth/truth.h"
#include "tools/job/result.h"

#include <stdio.h>

#define SMALL "gpt2 --batch 1 --sequence 64 "
#define LARGE "--batch 16 --sequence 1024 --set model.vocab=1000 "

/* What the host's cores take for the updates of the step. */
static uint64_t updates_ns(const ms_result *result)
{
    const ms_graph *graph = result->graph;
    uint64_t ns = 0;
    for (uint32_t op = graph->step_first; op < graph->n_ops; op++)
        if (graph->op_stream[op] == MS_STREAM_HOST)
            ns += graph->op_ns[op];
    return ns;
}

static uint64_t step_ns(const char *options)
{
    return truth_rank(truth_run(SMALL "%s", options))->time.step_ns;
}

/* A thread of an H100's host moves 19.5 GB/s; all of a rank alone 264. */
START_TEST(threads_bound_the_update)
{
    truth_begin();
    uint64_t all = updates_ns(truth_run(SMALL "-p offload:optimizer"));
    uint64_t one =
        updates_ns(truth_run(SMALL "-p offload:optimizer,threads=1"));
    uint64_t two =
        updates_ns(truth_run(SMALL "-p offload:optimizer,threads=2"));
    uint64_t many =
        updates_ns(truth_run(SMALL "-p offload:optimizer,threads=999"));
    ck_assert_uint_lt(one * 195 / 2640 - all + 5, 10);
    ck_assert_uint_lt(one - 2 * two + 5, 10);
    ck_assert_uint_eq(many, all);
    truth_end();
}
END_TEST

/* torchrun gives each of several ranks one thread; DeepSpeed's launcher and a
 * process alone do not. */
START_TEST(launchers_differ)
{
    static const struct {
        const char *policy;
        uint32_t threads;
    } rows[] = {
        {"offload:optimizer", 0},
        {"offload:optimizer,impl=megatron", 0},
        {"zero:1,dp=4,impl=megatron+offload:optimizer", 1},
        {"zero:1,dp=4,impl=megatron+offload:optimizer,threads=3", 3},
        {"fsdp:dp=4+offload:optimizer", 1},
        {"fsdp:dp=1+offload:optimizer", 0},
        {"zero:2,dp=4+offload:optimizer", 0},
        {"deepspeed:2,dp=4+offload:optimizer", 0},
    };
    truth_begin();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        ck_assert_uint_eq(
            truth_run(SMALL "-p %s", rows[i].policy)->shape.offload.threads,
            rows[i].threads);
    truth_end();
}
END_TEST

/* torchao updates as backward goes, so that its update hides behind backward
 * where Megatron's, which begins with the first parameter, does not. */
START_TEST(torchao_hides_behind_backward)
{
    truth_begin();
    uint64_t none = step_ns(LARGE);
    uint64_t torchao =
        step_ns(LARGE "-p "
                      "offload:optimizer,impl=torchao,threads=4");
    uint64_t gradients =
        step_ns(LARGE "-p "
                      "offload:optimizer/gradients,impl=torchao,threads=4");
    uint64_t megatron =
        step_ns(LARGE "-p "
                      "offload:optimizer,impl=megatron,threads=4");
    ck_assert_uint_lt(2 * (torchao - none), megatron - none);
    ck_assert_uint_lt(2 * (gradients - none), megatron - none);
    truth_end();
}
END_TEST

/* Parameters are as they are: of bf16 the copy, its gradient and two moments
 * are two bytes each.  Tensors below 4,096 elements stay. */
START_TEST(torchao_keeps_the_format)
{
    truth_begin();
    const ms_result *result =
        truth_run("gpt2 --precision bf16 -p offload:optimizer,impl=torchao");
    const ms_graph *graph = result->graph;
    uint64_t host = result->report->far[MS_HOST_POOL].peak_bytes, small = 0;
    for (uint32_t s = 0; s < graph->n_persistent; s++)
        if (ms_graph_is_weight(graph, s) && graph->storage_bytes[s] < 8192)
            small += graph->storage_bytes[s] / 2;
    ck_assert_uint_eq(host, 8 * (graph->parameters - small));
    truth_end();
}
END_TEST

/* With and without copies beside the update: the same bytes, one after the
 * other. */
START_TEST(turns_take_longer)
{
    truth_begin();
    uint64_t beside = step_ns("-p offload:optimizer,impl=megatron");
    uint64_t turns = step_ns("-p offload:optimizer,impl=megatron,overlap=0");
    ck_assert_uint_gt(turns, beside);
    truth_end();
}
END_TEST

/* By hand, of 10 GB/s read: 8 blocks of 1 MiB are enough, one takes 100 us and
 * its 104.9 us, one of 128 KiB 100 and 13.1 us. */
START_TEST(queues_bound_the_disk)
{
    const ms_device *h100;
    ms_fault fault = {0};
    ck_assert_int_eq(ms_device_find("h100", &h100, &fault), MS_OK);
    ms_device d = *h100;
    ck_assert_double_eq_tol(ms_device_disk_rate(&d, 1, false), 10e9, 1);
    ck_assert_double_eq_tol(ms_device_disk_rate(&d, 4, false), 2.5e9, 1);
    d.nvme_depth = 1;
    ck_assert_double_eq_tol(ms_device_disk_rate(&d, 1, false),
                            1048576 / 204.8576e-6, 1e3);
    d.nvme_block_bytes = 131072;
    ck_assert_double_eq_tol(ms_device_disk_rate(&d, 1, false),
                            131072 / 113.1072e-6, 1e3);
    d.nvme_threads = 3;
    ck_assert_double_eq_tol(ms_device_disk_rate(&d, 1, true),
                            3 * 131072 / 126.2144e-6, 1e3);
    d.nvme_depth = 1000;
    ck_assert_double_eq_tol(ms_device_disk_rate(&d, 1, true), 5e9, 1);
}
END_TEST

Suite *suite_hostwork(void)
{
    Suite *suite = suite_create("hostwork");
    TCase *tcase = tcase_create("hostwork");
    tcase_add_test(tcase, threads_bound_the_update);
    tcase_add_test(tcase, launchers_differ);
    tcase_add_test(tcase, torchao_hides_behind_backward);
    tcase_add_test(tcase, torchao_keeps_the_format);
    tcase_add_test(tcase, turns_take_longer);
    tcase_add_test(tcase, queues_bound_the_disk);
    suite_add_tcase(suite, tcase);
    return suite;
}
