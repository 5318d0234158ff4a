/* SPDX-License-Identifier: GPL-3.0-or-later */
/* cuDNN's workspaces are freed with the call that takes them, and nothing else
 * changes; benchmark empties the pool's cache once, after trying algorithms. */
#include "sim/graph.h"
#include "sim/report.h"
#include "tests/tests.h"
#include "tests/truth/truth.h"
#include "tools/job/result.h"

#include <string.h>

static const char *const nets[] = {
    "alexnet --batch 64",     "vgg11 --batch 64",     "vgg19 --batch 32",
    "resnet18 --batch 128",   "resnet50 --batch 128", "densenet121 --batch 8",
    "mobilenet-v2 --batch 8", "convnext-t --batch 8", "unet --batch 8",
    "efficientnet-b0",        "resnext50-32x4d",      "swin-t --batch 2",
    "vit-b16 --batch 2",      "gpt2 --sequence 64",   "lstm-lm --batch 2"};
#define N_NETS ((int)(sizeof nets / sizeof *nets))

static const char *const precisions[] = {"fp32", "tf32", "autocast-bf16"};

static bool convolves(const ms_graph *graph, uint32_t op)
{
    return strncmp(graph->op_name[op], "aten::convolution", 17) == 0;
}

static uint64_t workspace_of(const ms_graph *graph, uint32_t op)
{
    for (uint32_t i = graph->out_at[op]; i < graph->out_at[op + 1]; i++)
        if (graph->storage_category[graph->out[i]] == MS_WORKSPACE)
            return graph->storage_bytes[graph->out[i]];
    return 0;
}

/* Without the workspaces, the rows are the same. */
START_TEST(nothing_else_changes)
{
    for (size_t p = 0; p < 3; p++) {
        ms_rank_report with;
        truth_begin();
        with = *truth_rank(
            truth_run("%s --precision %s --set training.cudnn=benchmark",
                      nets[_i], precisions[p]));
        const ms_rank_report *without =
            truth_rank(truth_run("%s --precision %s --set training.cudnn=none",
                                 nets[_i], precisions[p]));
        for (uint32_t i = 0; i < MS_N_MARKS; i++)
            ck_assert_uint_eq(with.levels[i], without->levels[i]);
        for (uint32_t i = 0; i < MS_N_PHASES; i++)
            ck_assert_uint_eq(with.phase_peaks[i], without->phase_peaks[i]);
        truth_end();
    }
}
END_TEST

/* Only gradients of fp32 weights have one, as large as the rate says. */
START_TEST(only_wide_gradients_of_weights)
{
    for (size_t p = 0; p < 3; p++) {
        truth_begin();
        const ms_result *result =
            truth_run("%s --precision %s --set training.cudnn=benchmark",
                      nets[_i], precisions[p]);
        const ms_graph *graph = result->graph;
        for (uint32_t op = 0; op < graph->n_ops; op++) {
            uint64_t bytes = convolves(graph, op) ? workspace_of(graph, op) : 0;
            ck_assert_uint_eq(graph->op_flags[op] & MS_OP_EMPTIES, 0);
            if (bytes == 0)
                continue;
            ck_assert_uint_lt(p, 2);
            ck_assert_int_eq(graph->op_pass[op], MS_GRAD_WEIGHT);
            ck_assert_uint_ge(bytes, 2 * (UINT64_C(430) << 20));
            ck_assert_uint_le(bytes, 2 * graph->op_read_bytes[op]);
        }
        truth_end();
    }
}
END_TEST

/* Auto is benchmark through PyTorch's allocator, else none: bytes are those of
 * the word that it stands for. */
START_TEST(auto_is_one_of_them)
{
    static const char *const pools[][2] = {
        {"exact", "none"}, {"bfc", "none"}, {"torch", "benchmark"}};
    for (size_t i = 0; i < 3; i++) {
        truth_begin();
        ms_peak left =
            truth_rank(truth_run("%s --precision fp32 --allocator %s", nets[_i],
                                 pools[i][0]))
                ->peak;
        const ms_rank_report *said = truth_rank(truth_run(
            "%s --precision fp32 --allocator %s --set training.cudnn=%s",
            nets[_i], pools[i][0], pools[i][1]));
        ck_assert_uint_eq(left.reserved_bytes, said->peak.reserved_bytes);
        ck_assert_uint_eq(left.allocated_bytes, said->peak.allocated_bytes);
        truth_end();
    }
}
END_TEST

/* The first step tries out each convolution once: a net of n equal blocks
 * empties the cache as often as one of n + 1. */
START_TEST(each_convolution_is_tried_once)
{
    uint32_t n[2] = {0, 0};
    for (int blocks = 0; blocks < 2; blocks++) {
        truth_begin();
        const ms_graph *graph =
            truth_run("convnext-t --precision fp32 --batch 2 "
                      "--set model.blocks3=%d --set training.step=first "
                      "--set training.cudnn=benchmark",
                      4 + blocks)
                ->graph;
        for (uint32_t op = 0; op < graph->n_ops; op++)
            if (graph->op_flags[op] & MS_OP_EMPTIES) {
                ck_assert(convolves(graph, op));
                n[blocks]++;
            }
        truth_end();
    }
    ck_assert_uint_eq(n[0], n[1]);
    ck_assert_uint_eq(n[0], 3 * 4 - 1); /* the image has no gradient */
}
END_TEST

Suite *suite_cudnn(void)
{
    Suite *suite = suite_create("cudnn");
    TCase *tcase = tcase_create("cudnn");
    tcase_set_timeout(tcase, 60);
    tcase_add_loop_test(tcase, nothing_else_changes, 0, N_NETS);
    tcase_add_loop_test(tcase, only_wide_gradients_of_weights, 0, N_NETS);
    tcase_add_loop_test(tcase, auto_is_one_of_them, 0, N_NETS);
    tcase_add_test(tcase, each_convolution_is_tried_once);
    suite_add_tcase(suite, tcase);
    return suite;
}
