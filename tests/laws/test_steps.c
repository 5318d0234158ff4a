/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Settings of the optimizer step beside policies that share or move what it
 * reads: what they may change, and what not. */
#include "tests/laws/laws.h"
#include "tests/tests.h"
#include "tests/truth/truth.h"

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
                .optimizer_flops = r->report.optimizer_flops};
    laws_check_clock(&r->plan, &r->line, &r->machine);
    laws_check_levels(&r->plan, &r->line);
    laws_check_report(&r->line, &r->report, true);
    for (uint32_t op = 0; op < r->plan.n_ops; op++)
        got.step_ops += r->plan.op[op].pass == MS_STEP;
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

Suite *suite_steps(void)
{
    Suite *suite = suite_create("steps");
    TCase *tcase = tcase_create("steps");
    tcase_set_timeout(tcase, 60);
    tcase_add_loop_test(tcase, updates_as_reduced, 0, (int)MANY(shares));
    suite_add_tcase(suite, tcase);
    return suite;
}
