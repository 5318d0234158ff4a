/* SPDX-License-Identifier: GPL-3.0-or-later */
/* DeepSpeed's ZenFlow: what travels, what lies where, what runs beside what. */
#include "sim/graph.h"
#include "sim/names.h"
#include "sim/report.h"
#include "sim/timeline.h"
#include "tests/inlined.h"
#include "tests/tests.h"
#include "tests/truth/truth.h"
#include "tools/job/result.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Four matrices of 256 by 256 elements, without biases, on two ranks. */
static const char matrices[] =
    "{\"memsim\": 1, \"name\": \"matrices\", \"input\": {\"shape\": [256]},"
    " \"layers\": [{\"repeat\": 4, \"name\": \"hidden\", \"layers\": ["
    "{\"type\": \"linear\", \"out\": 256, \"bias\": false}]}, {\"type\": "
    "\"mean\"}]}";
#define ELEMENTS (4u * 256 * 256)
#define PART (ELEMENTS / 2)

#define OFFLOAD "+deepspeed:2,dp=2+offload:optimizer/gradients"

static const ms_result *run(const char *policy)
{
    return truth_run_json(matrices,
                          "model --precision bf16-mixed --batch 8 "
                          "--device a100-40gb-sxm --allocator exact -p %s",
                          policy);
}

/* Sums of micro-batches go to the host and back in 16 bits, the last one goes
 * in 32 (async_accumulate_grad_in_cpu_via_gpu); the weights come as fp32. */
START_TEST(sums_travel_in_their_format)
{
    static const struct {
        const char *policy;
        uint32_t batches;
    } rows[] = {{"microbatch:1" OFFLOAD, 1},
                {"microbatch:4" OFFLOAD, 4},
                {"microbatch:4" OFFLOAD ",topk_ratio=0.1", 4},
                {"microbatch:4" OFFLOAD ",topk_ratio=0.1,overlap_step=1", 4}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        truth_begin();
        const ms_result *result = run(rows[i].policy);
        uint64_t more = 2 * (uint64_t)(rows[i].batches - 1) * PART;
        ck_assert_uint_eq(truth_rank(result)->d2h_bytes, 4 * PART + more);
        ck_assert_uint_eq(truth_rank(result)->h2d_bytes, 4 * PART + more);
        truth_end();
    }
}
END_TEST

/* A rank alone adds to the whole gradient, as far as it was made before. */
START_TEST(sums_of_one_rank_travel)
{
    static const char *const policies[] = {
        "offload:optimizer/gradients,impl=deepspeed",
        "offload:optimizer/gradients,impl=deepspeed,topk_ratio=0.1",
        "deepspeed:2,dp=1+offload:optimizer/gradients"};
    for (size_t i = 0; i < sizeof policies / sizeof *policies; i++) {
        char policy[128];
        truth_begin();
        snprintf(policy, sizeof policy, "microbatch:4+%s", policies[i]);
        const ms_rank_report *rank = truth_rank(run(policy));
        ck_assert_uint_eq(rank->d2h_bytes, (4 + 3 * 2) * (uint64_t)ELEMENTS);
        ck_assert_uint_eq(rank->h2d_bytes, (4 + 3 * 2) * (uint64_t)ELEMENTS);
        truth_end();
    }
}
END_TEST

/* On the device two moments of a tenth of the columns, in bf16.  On the host
 * master, two moments, a gradient; with micro-batches a sum in bf16; beside the
 * step the gradient, the moments and the weights a second time. */
START_TEST(what_lies_where)
{
    static const struct {
        const char *policy;
        double device, host; /* bytes of an element */
    } rows[] = {{"microbatch:1" OFFLOAD, 0, 16},
                {"microbatch:2" OFFLOAD, 0, 18},
                {"microbatch:2" OFFLOAD ",topk_ratio=0.25", 1, 18},
                {"microbatch:2" OFFLOAD ",topk_ratio=0.25,overlap_step=1", 1,
                 18 + 4 + 8 + 4}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        truth_begin();
        const ms_result *result = run(rows[i].policy);
        const ms_rank_report *rank = truth_rank(result);
        ck_assert_uint_eq(rank->optimizer_state_bytes,
                          (uint64_t)(rows[i].device * ELEMENTS));
        ck_assert_uint_eq(result->report->host_peak_bytes,
                          (uint64_t)(rows[i].host * PART));
        truth_end();
    }
}
END_TEST

/* The ratio moves nothing but what the device has. */
START_TEST(more_columns_take_more)
{
    static const char *const ratios[] = {"0.05", "0.1", "0.5"};
    uint64_t bytes = 0, step_ns = 0;
    for (size_t i = 0; i < sizeof ratios / sizeof *ratios; i++) {
        char policy[128];
        truth_begin();
        snprintf(policy, sizeof policy,
                 "microbatch:4" OFFLOAD ",topk_ratio=%s,overlap_step=1",
                 ratios[i]);
        const ms_rank_report *rank = truth_rank(run(policy));
        ck_assert_uint_gt(rank->optimizer_state_bytes, bytes);
        ck_assert_uint_ge(rank->time.step_ns, step_ns);
        bytes = rank->optimizer_state_bytes;
        step_ns = rank->time.step_ns;
        truth_end();
    }
}
END_TEST

#define LARGE                                                                  \
    "gpt2-xl --precision bf16-mixed --batch 32 --device a100-40gb-sxm "        \
    "--allocator exact -p microbatch:%u+deepspeed:2,dp=4"                      \
    "+offload:optimizer/gradients%s"

/* Apart, the host's update hides behind micro-batches: the more of them, the
 * less is waited for, down to the pass that unscales. */
START_TEST(the_update_hides)
{
    uint64_t now, later;
    truth_begin();
    now = truth_rank(truth_run(LARGE, 8u, ",topk_ratio=0.1"))
              ->stalls_ns[MS_CAUSE_HOST_WORK];
    later = truth_rank(truth_run(LARGE, 8u, ",topk_ratio=0.1,overlap_step=1"))
                ->stalls_ns[MS_CAUSE_HOST_WORK];
    ck_assert_uint_gt(later, 0);
    ck_assert_uint_lt(4 * later, now);
    truth_end();
}
END_TEST

static const struct {
    const char *policy, *says;
} refused[] = {
    {"offload:optimizer,topk_ratio=0.1", "DeepSpeed"},
    {"offload:optimizer,impl=deepspeed,topk_ratio=1", "between 0 and 1"},
    {"offload:optimizer,impl=deepspeed,topk_ratio=0.1/0.2", "between 0 and 1"},
    {"offload:optimizer,impl=deepspeed,overlap_step=1", "topk_ratio"},
    {"zero:3,dp=2,impl=deepspeed+offload:optimizer,topk_ratio=0.1", "stage 2"},
    {"zero:1,dp=2,impl=deepspeed+offload:optimizer,topk_ratio=0.1", "stage 2"},
    {"ddp:dp=2+offload:optimizer,impl=deepspeed,topk_ratio=0.1", "stage 2"},
    {"offload:optimizer,impl=deepspeed,to=nvme,topk_ratio=0.1", "host memory"},
    {"offload:optimizer/params,impl=deepspeed,topk_ratio=0.1", "host memory"},
    {"swap:layers+offload:optimizer,impl=deepspeed,topk_ratio=0.1", "swap"},
};

START_TEST(bad_input)
{
    ms_arena keep = {0}, trial = {0};
    ms_fault fault;
    ms_job job;
    ms_result result;
    inlined_begin(&job, &keep, &trial, &fault);
    ms_err err = inlined_step(matrices, refused[_i].policy, &job, &keep, &trial,
                              &result, &fault);
    ck_assert_int_eq(err, MS_EUSAGE);
    ck_assert_msg(strstr(fault.what, refused[_i].says) ||
                      strstr(fault.hint, refused[_i].says),
                  "%s: %s", refused[_i].policy, fault.what);
    ck_assert_str_ne(fault.hint, "");
    ms_arena_free(&keep);
    ms_arena_free(&trial);
}
END_TEST

Suite *suite_zenflow(void)
{
    Suite *suite = suite_create("zenflow");
    TCase *tcase = tcase_create("zenflow");
    tcase_add_test(tcase, sums_travel_in_their_format);
    tcase_add_test(tcase, sums_of_one_rank_travel);
    tcase_add_test(tcase, what_lies_where);
    tcase_add_test(tcase, more_columns_take_more);
    tcase_add_test(tcase, the_update_hides);
    tcase_add_loop_test(tcase, bad_input, 0,
                        (int)(sizeof refused / sizeof *refused));
    suite_add_tcase(suite, tcase);
    return suite;
}
