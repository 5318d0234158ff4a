/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Times of convolutions: by layout, and channel by channel. */
#include "sim/graph.h"
#include "sim/report.h"
#include "tests/tests.h"
#include "tests/truth/truth.h"

#include <stdio.h>
#include <string.h>

#define NET "resnet18 --batch 64 --device a100 --optimizer sgd "
#define LAST "--set memory_format=channels_last "

typedef struct took {
    uint64_t step_ns, peak_bytes;
} took;

static took run(const char *words)
{
    const ms_rank_report *rank = truth_rank(truth_run("%s", words));
    return (took){rank->time.step_ns, rank->peak.allocated_bytes};
}

/* Tensor cores have the channels innermost: other layouts are turned round and
 * back.  The bytes are the same. */
START_TEST(layouts)
{
    truth_begin();
    took rows = run(NET "--precision autocast-fp16");
    took last = run(NET LAST "--precision autocast-fp16");
    ck_assert_uint_gt(rows.step_ns, last.step_ns + last.step_ns / 10);
    ck_assert_uint_eq(rows.peak_bytes, last.peak_bytes);
    rows = run(NET "--precision tf32");
    last = run(NET LAST "--precision tf32");
    ck_assert_uint_gt(rows.step_ns, last.step_ns + last.step_ns / 10);
    truth_end();
}
END_TEST

/* Nor is fp32, whose 3 x 3 are Winograd's with the channels outside alone. */
START_TEST(fp32_is_not_turned_round)
{
    truth_begin();
    took rows = run(NET "--precision fp32");
    took last = run(NET LAST "--precision fp32");
    ck_assert_uint_lt(rows.step_ns, last.step_ns);
    ck_assert_uint_eq(rows.peak_bytes, last.peak_bytes);
    truth_end();
}
END_TEST

static uint64_t forward_ns(const char *groups, double *flops)
{
    static const char *const layer =
        "{\"memsim\": 1, \"name\": \"one\", \"input\": {\"shape\": [256, 56, "
        "56]}, \"layers\": [{\"type\": \"conv2d\", \"out\": 256, \"kernel\": "
        "3, \"padding\": 1, \"bias\": false, \"groups\": %s}, {\"type\": "
        "\"mean\"}]}";
    char json[512];
    snprintf(json, sizeof json, layer, groups);
    const ms_graph *g =
        truth_run_json(json, "one --batch 64 --precision autocast-fp16 "
                             "--device a100 " LAST)
            ->graph;
    for (uint32_t op = 0; op < g->n_ops; op++)
        if (strcmp(g->op_name[op], "aten::convolution") == 0) {
            *flops = g->op_flops[op];
            return g->op_ns[op];
        }
    ck_abort_msg("no convolution");
}

/* One channel each: 256 times fewer FLOPs, in a fraction of the time that is
 * much larger, but never longer. */
START_TEST(depthwise_is_bound_by_memory)
{
    double all = 0, each = 0;
    truth_begin();
    uint64_t dense_ns = forward_ns("1", &all);
    uint64_t depthwise_ns = forward_ns("256", &each);
    ck_assert_double_eq(all, 256 * each);
    ck_assert_uint_lt(depthwise_ns, dense_ns);
    ck_assert_uint_gt(depthwise_ns, dense_ns / 50);
    truth_end();
}
END_TEST

Suite *suite_convtimes(void)
{
    Suite *suite = suite_create("convtimes");
    TCase *tcase = tcase_create("convtimes");
    tcase_add_test(tcase, layouts);
    tcase_add_test(tcase, fp32_is_not_turned_round);
    tcase_add_test(tcase, depthwise_is_bound_by_memory);
    suite_add_tcase(suite, tcase);
    return suite;
}
