/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What saving memory costs: the FLOPs of Korthikanti et al. 2022 (appendix
 * A), and the time of small micro-batches. */
#include "sim/graph.h"
#include "sim/plan.h"
#include "sim/report.h"
#include "tests/tests.h"
#include "tests/truth/truth.h"
#include "tools/job/result.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define LAYERS 96u
#define HIDDEN UINT64_C(12288)
#define TOKENS UINT64_C(2048)
/* of a layer's linear maps, forward */
#define LINEAR (24 * TOKENS * HIDDEN * HIDDEN)
#define PRODUCT (2 * TOKENS * TOKENS * HIDDEN) /* of Q K^T; A V has as many */

typedef struct flops {
    uint64_t forward, backward, recompute;
} flops;

/* The FLOPs of matrix products, summed over the ops that ran. */
static flops run(unsigned layers, const char *policy)
{
    const ms_result *result =
        truth_run("gpt3 --kernels korthikanti --precision fp16-mixed "
                  "--set model.layers=%u -p %s",
                  layers, policy);
    const ms_plan *plan = result->plan;
    double sum[MS_N_PASSES] = {0};
    for (uint32_t i = 0; i < plan->n_ops; i++) {
        uint32_t op = plan->op[i].of;
        if (op != MS_NONE && strstr(result->graph->op_name[op], "mm") != NULL)
            sum[plan->op[i].pass] += result->graph->op_flops[op];
    }
    return (flops){(uint64_t)sum[MS_FORWARD],
                   (uint64_t)(sum[MS_GRAD_INPUT] + sum[MS_GRAD_WEIGHT]),
                   (uint64_t)sum[MS_RECOMPUTE]};
}

START_TEST(flops_of_a_layer)
{
    truth_begin();
    flops two = run(2, "none"), three = run(3, "none");
    truth_compare("costs", "gpt3 layer", "forward FLOPs: 24bsh^2 + 4bs^2h",
                  LINEAR + 2 * PRODUCT, three.forward - two.forward);
    truth_compare("costs", "gpt3 layer", "backward FLOPs: twice forward",
                  2 * (LINEAR + 2 * PRODUCT), three.backward - two.backward);
    truth_end();
}
END_TEST

/* The paper recomputes both products of the attention core, which is s /
 * (18h + 3s) = 0.90 % of a step. memsim recomputes what backward needs: the
 * output of the second product is saved outside the core, as the input of
 * the projection, so that it is not run again. */
START_TEST(flops_of_selective)
{
    truth_begin();
    flops all = run(LAYERS, "checkpoint:selective");
    truth_compare("costs", "gpt3 selective", "FLOPs again: one product",
                  LAYERS * PRODUCT, all.recompute);
    truth_compare("costs", "gpt3 selective", "FLOPs again: both products",
                  LAYERS * 2 * PRODUCT, all.recompute);
    double step = (double)LAYERS * 3 * (double)(LINEAR + 2 * PRODUCT);
    truth_compare("costs", "gpt3 selective", "overhead, 0.01 %", 90,
                  (uint64_t)(1e4 * (double)all.recompute / step + 0.5));
    truth_end();
}
END_TEST

START_TEST(small_micro_batches_are_slower)
{
    uint64_t before = 0;
    truth_begin();
    for (unsigned count = 1; count <= 8; count *= 2) {
        const ms_result *result =
            truth_run("gpt3-13b --batch 8 -p microbatch:%u", count);
        uint64_t step_ns = truth_rank(result)->time.step_ns;
        ck_assert_uint_gt(step_ns, before);
        before = step_ns;
    }
    truth_end();
}
END_TEST

Suite *suite_costs(void)
{
    Suite *suite = suite_create("costs");
    TCase *tcase = tcase_create("costs");
    tcase_add_test(tcase, flops_of_a_layer);
    tcase_add_test(tcase, flops_of_selective);
    tcase_add_test(tcase, small_micro_batches_are_slower);
    suite_add_tcase(suite, tcase);
    return suite;
}
