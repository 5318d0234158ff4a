/* SPDX-License-Identifier: GPL-3.0-or-later */
/* vDNN's window (Rhu et al. 2016, figure 10): the search for what to send for
 * ends at the first convolution behind the layer whose backward begins, so
 * that what comes back is used by the next convolution at the latest. */
#include "sim/graph.h"
#include "sim/program.h"
#include "sim/report.h"
#include "tests/laws/laws.h"
#include "tests/tests.h"
#include "tests/truth/truth.h"
#include "tools/job/result.h"

#include <string.h>

static bool convolves(const ms_graph *graph, uint32_t unit)
{
    for (uint32_t op = graph->forward_at[unit];
         op < graph->forward_at[unit + 1]; op++)
        if (strstr(graph->op_name[op], "convolution") != NULL)
            return true;
    return false;
}

/* The last unit whose forward reads the storage. */
static uint32_t reader(const ms_graph *graph, uint32_t storage)
{
    uint32_t unit = MS_NONE;
    for (uint32_t op = 0; op < graph->forward_at[graph->n_units]; op++)
        for (uint32_t i = graph->in_at[op]; i < graph->in_at[op + 1]; i++)
            if (graph->in[i] == storage)
                unit = graph->op_unit[op];
    return unit;
}

/* Between the unit whose backward comes next and the reader of what is
 * prefetched there is no other convolution. */
static void check_window(const ms_result *result, uint32_t move)
{
    const ms_graph *graph = result->graph;
    const ms_program *program = result->program;
    uint32_t set = program->calls[move].set, next = move;
    while (program->calls[next].verb != MS_RUN)
        ck_assert_uint_lt(++next, program->n_calls);
    uint32_t unit = program->calls[next].unit;
    for (uint32_t i = program->set_at[set]; i < program->set_at[set + 1]; i++) {
        uint32_t from = reader(graph, program->set_item[i]);
        ck_assert_uint_lt(from, unit);
        for (uint32_t u = from + 1; u < unit; u++)
            ck_assert_msg(!convolves(graph, u), "%s before the backward of %s",
                          graph->storage_name[program->set_item[i]],
                          graph->unit_name[unit]);
    }
}

static const char *const networks[] = {
    "alexnet --batch 2",      "vgg11 --batch 2",      "vgg19 --batch 2",
    "resnet18 --batch 2",     "resnet50 --batch 2",   "densenet121 --batch 2",
    "mobilenet-v2 --batch 2", "convnext-t --batch 2", "unet --batch 1"};

START_TEST(nothing_comes_back_beyond_a_convolution)
{
    static const char *const ways[] = {"all", "conv"};
    for (size_t w = 0; w < sizeof ways / sizeof *ways; w++) {
        truth_begin();
        const ms_result *result =
            truth_run("%s -p swap:vdnn=%s", networks[_i], ways[w]);
        const ms_program *program = result->program;
        uint32_t moves = 0;
        for (uint32_t c = 0; c < program->n_calls; c++)
            if (program->calls[c].verb == MS_MOVE &&
                program->calls[c].move.to == MS_HERE) {
                check_window(result, c);
                moves++;
            }
        ck_assert_uint_gt(moves, 1);
        ck_assert_uint_eq(truth_rank(result)->h2d_bytes,
                          truth_rank(result)->d2h_bytes);
        truth_end();
    }
}
END_TEST

/* VGG-16 without workspaces: what is missing of a copy's time is waited for,
 * layer by layer, and what convolves at most two inputs are here. */
START_TEST(vgg16_by_its_window)
{
    truth_begin();
    const char *words = "vgg16 --batch 256 --precision fp32 --optimizer "
                        "momentum --set training.cublas_workspace=0 -p %s";
    uint64_t none =
        truth_rank(truth_run(words, "none"))->peak.allocated_bytes >> 20;
    const ms_rank_report *rank = truth_rank(truth_run(words, "swap:vdnn=conv"));
    ck_assert_uint_eq(none, 19538);
    ck_assert_uint_eq(rank->peak.allocated_bytes >> 20, 14275);
    ck_assert_uint_eq(rank->time.step_ns / 1000000, 442);
    truth_end();
}
END_TEST

Suite *suite_vdnn(void)
{
    Suite *suite = suite_create("vdnn");
    TCase *tcase = tcase_create("vdnn");
    tcase_add_loop_test(tcase, nothing_comes_back_beyond_a_convolution, 0,
                        (int)(sizeof networks / sizeof *networks));
    tcase_add_test(tcase, vgg16_by_its_window);
    suite_add_tcase(suite, tcase);
    return suite;
}
