/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Settings of the optimizer step beside policies that share or move its inputs:
 * what they may change, and what they must not. */
#include "sim/report.h"
#include "tests/laws/laws.h"
#include "tests/tests.h"
#include "tests/truth/truth.h"
#include "tools/job/result.h"

#include <stdio.h>
#include <string.h>

#define MANY(list) (sizeof(list) / sizeof *(list))

static const char decoder[] =
    "{\"memsim\": 1, \"family\": \"decoder\", \"config\": {\"layers\": 2, "
    "\"hidden\": 64, \"heads\": 2, \"vocab\": 100, \"positions\": 16}}";

/* tests/unit/test_stepping.c has the same in bytes for one rank. */
static const char *const shares[] = {"ddp:dp=4",
                                     "ddp:dp=4,bucket=1",
                                     "ddp:dp=4,view=1",
                                     "zero:1,dp=4",
                                     "zero:2,dp=3",
                                     "zero:3,dp=4",
                                     "zero:3,dp=4,prefetch=3",
                                     "fsdp:dp=1",
                                     "fsdp:dp=4",
                                     "fsdp:dp=4,reshard_ranks=2",
                                     "fsdp:dp=6,shard=3,reshard=but_last",
                                     "fsdp:dp=4,units=split,reduce=bf16",
                                     "fsdp:impl=1,dp=4",
                                     "fsdp:dp=4,sync=last,masters=optimizer",
                                     "fsdp:impl=1,dp=4,masters=optimizer",
                                     ("fsdp:dp=4,code=megatron,"
                                      "overlap_param_gather=1"),
                                     "fsdp:impl=1,dp=4,strategy=no_shard"};
static const char *const besides[] = {"", "+checkpoint:full",
                                      "+swap:save_on_cpu"};
static const char *const precisions[] = {"bf16-mixed", "fp32", "bf16",
                                         "autocast-bf16"};

typedef struct seen {
    ms_rank_report rank;
    double optimizer_flops;
    uint32_t step_ops;
} seen;

static seen run(const char *policy, const char *beside, const char *options)
{
    const ms_result *r =
        truth_run_json(decoder,
                       "decoder --batch 2 --allocator exact --set "
                       "optimizer_impl=fused -p %s%s %s",
                       policy, beside, options);
    seen got = {.rank = *truth_rank(r),
                .optimizer_flops = r->report->optimizer_flops};
    laws_check_clock(r->plan, r->line, r->machine);
    laws_check_levels(r->plan, r->line);
    laws_check_report(r->line, r->report, true);
    for (uint32_t op = 0; op < r->plan->n_ops; op++)
        got.step_ops += r->plan->op[op].pass == MS_STEP;
    return got;
}

/* Gradients that end with their update: never more memory, what moves and what
 * lasts is the same but for the gradients, and each parameter is updated. */
START_TEST(updates_as_reduced)
{
    for (size_t b = 0; b < MANY(besides); b++) {
        char options[128];
        const char *precision = precisions[((size_t)_i + b) % MANY(precisions)];
        truth_begin();
        snprintf(options, sizeof options, "--precision %s", precision);
        seen base = run(shares[_i], besides[b], options);
        snprintf(options, sizeof options,
                 "--precision %s --set optimizer_in_backward=yes", precision);
        seen back = run(shares[_i], besides[b], options);
        const ms_rank_report *x = &base.rank, *y = &back.rank;
        bool view = strstr(shares[_i], "view=1") != NULL;
        ck_assert_uint_le(y->peak.allocated_bytes, x->peak.allocated_bytes);
        ck_assert_uint_le(y->gradients_bytes, x->gradients_bytes);
        ck_assert_uint_eq(y->parameters_bytes, x->parameters_bytes);
        ck_assert_uint_eq(y->optimizer_state_bytes, x->optimizer_state_bytes);
        ck_assert_uint_eq(y->comm_bytes, x->comm_bytes);
        ck_assert_uint_eq(y->h2d_bytes, x->h2d_bytes);
        ck_assert_double_eq(back.optimizer_flops, base.optimizer_flops);
        ck_assert_uint_ge(back.step_ops, base.step_ops);
        if (view)
            ck_assert_uint_eq(y->levels[MS_MARK_END], x->levels[MS_MARK_END]);
        else
            ck_assert_uint_lt(y->levels[MS_MARK_END], x->levels[MS_MARK_END]);
        truth_end();
    }
}
END_TEST

static const char *const homes[] = {
    "fsdp:dp=4",
    "zero:3,dp=4",
    "zero:1,dp=4,impl=megatron",
    "zero:1,dp=4,impl=megatron,overlap_grad_reduce=0",
    "zero:1,dp=4,impl=megatron,overlap_param_gather=1",
    "offload:optimizer",
    "offload:optimizer,pin=0,tile=5000",
    "offload:optimizer,percent=40",
    "offload:optimizer/gradients",
    "offload:optimizer/gradients,delayed=1",
    "offload:optimizer/params/gradients",
    "offload:optimizer/gradients,to=nvme,tile=20000",
    "offload:optimizer/params/gradients,to=nvme",
    "offload:optimizer,impl=megatron",
    "offload:optimizer,impl=megatron,overlap=0",
    "offload:optimizer,impl=torchao",
    "offload:optimizer/gradients,impl=torchao",
    "offload:optimizer,impl=deepspeed",
    "fsdp:dp=4+offload:optimizer",
    "fsdp:dp=4+offload:optimizer/params/gradients",
    "zero:2,dp=3+offload:optimizer/gradients",
    "zero:3,dp=4+offload:optimizer/params",
    "zero:2,dp=3,impl=deepspeed+offload:optimizer",
    "zero:3,dp=4,impl=deepspeed+offload:optimizer/params",
    "zero:3,dp=4,impl=deepspeed+offload:optimizer/params,to=nvme",
    "zero:1,dp=4,impl=megatron+offload:optimizer",
    "microbatch:2+offload:optimizer/gradients",
    "microbatch:2+offload:optimizer,impl=deepspeed,topk_ratio=0.1",
    ("microbatch:2+zero:2,dp=3,impl=deepspeed+offload:optimizer,topk_ratio=0.2,"
     "overlap_step=1"),
};

static bool has(const char *text, const char *word)
{
    return strstr(text, word) != NULL;
}

/* The disk is read once more for all gradients where the host computes the
 * norm. */
static bool reads_again(const char *policy)
{
    return has(policy, "gradients,to=nvme");
}

/* Clipping leaves nothing behind and moves nothing, wherever the gradients lie;
 * it takes time, but DeepSpeed's step is the same with and without. */
START_TEST(clips_wherever_gradients_lie)
{
    const char *policy = homes[_i];
    truth_begin();
    seen base = run(policy, "", "--set clip_norm=0");
    seen clip = run(policy, "", "--set clip_norm=1");
    const ms_rank_report *x = &base.rank, *y = &clip.rank;
    const uint64_t scratch = 16u << 10; /* scalars, and sums of stretches */
    ck_assert_uint_eq(y->levels[MS_MARK_START], x->levels[MS_MARK_START]);
    ck_assert_uint_eq(y->levels[MS_MARK_END], x->levels[MS_MARK_END]);
    ck_assert_uint_eq(y->gradients_bytes, x->gradients_bytes);
    ck_assert_uint_eq(y->optimizer_state_bytes, x->optimizer_state_bytes);
    ck_assert_uint_ge(y->peak.allocated_bytes, x->peak.allocated_bytes);
    ck_assert_uint_le(y->peak.allocated_bytes,
                      x->peak.allocated_bytes + scratch);
    ck_assert_uint_eq(y->comm_bytes, x->comm_bytes);
    ck_assert_uint_eq(y->h2d_bytes, x->h2d_bytes);
    ck_assert_uint_eq(y->d2h_bytes, x->d2h_bytes);
    if (reads_again(policy))
        ck_assert_uint_gt(y->nvme_bytes, x->nvme_bytes);
    else
        ck_assert_uint_eq(y->nvme_bytes, x->nvme_bytes);
    if (has(policy, "impl=deepspeed")) {
        ck_assert_uint_eq(y->time.step_ns, x->time.step_ns);
        ck_assert_uint_eq(clip.step_ops, base.step_ops);
    } else {
        ck_assert_uint_gt(y->time.step_ns, x->time.step_ns);
        ck_assert_uint_gt(clip.step_ops, base.step_ops);
    }
    truth_end();
}
END_TEST

static const char *const engines[] = {
    "zero:1,dp=4,impl=deepspeed",
    "zero:2,dp=4,impl=deepspeed",
    "zero:2,dp=4,impl=deepspeed,overlap_comm=1,reduce_bucket_size=9000",
    "zero:3,dp=4,impl=deepspeed,param_persistence_threshold=0",
    "zero:2,dp=4,impl=deepspeed+offload:optimizer",
    "zero:3,dp=4,impl=deepspeed+offload:optimizer/params",
};

/* DeepSpeed's weights of fp32 have a clone that is updated: what has 16 bits
 * in bf16-mixed doubles, what has 32 stays (runtime/zero/stage_1_and_2.py,
 * single_partition_of_fp32_groups; stage3.py, fp32_partitioned_groups_flat). */
START_TEST(fp32_doubles_what_has_16_bits)
{
    const char *policy = engines[_i];
    truth_begin();
    seen half = run(policy, "", "--precision bf16-mixed");
    seen full = run(policy, "", "--precision fp32");
    const ms_rank_report *x = &half.rank, *y = &full.rank;
    ck_assert_uint_eq(y->parameters_bytes, 2 * x->parameters_bytes);
    ck_assert_uint_eq(y->gradients_bytes, 2 * x->gradients_bytes);
    ck_assert_uint_eq(y->optimizer_state_bytes, x->optimizer_state_bytes);
    ck_assert_uint_eq(y->comm_bytes, 2 * x->comm_bytes);
    ck_assert_double_eq(full.optimizer_flops, half.optimizer_flops);
    truth_end();
}
END_TEST

Suite *suite_steps(void)
{
    Suite *suite = suite_create("steps");
    TCase *tcase = tcase_create("steps");
    tcase_set_timeout(tcase, 60);
    tcase_add_loop_test(tcase, updates_as_reduced, 0, (int)MANY(shares));
    tcase_add_loop_test(tcase, clips_wherever_gradients_lie, 0,
                        (int)MANY(homes));
    tcase_add_loop_test(tcase, fp32_doubles_what_has_16_bits, 0,
                        (int)MANY(engines));
    suite_add_tcase(suite, tcase);
    return suite;
}
