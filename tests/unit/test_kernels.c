/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Kernel sets: the table and its settings, what scaled_dot_product_attention
 * chooses, what each set keeps, and kernels that write over what they read. */
#include "sim/report.h"
#include "tests/tests.h"
#include "tests/truth/truth.h"

#include "graphs/kernels/kernels.h"
#include "graphs/layers/attention/sdpa.h"
#include "graphs/layers/headloss.h"
#include "graphs/layers/layers.h"
#include "sim/graph.h"
#include "sim/names.h"
#include "sim/plan.h"
#include "tools/job/result.h"

#include <stdio.h>
#include <string.h>

/* ---- the table ----------------------------------------------------------- */

/* The rest of "a|b|c" behind its first word, which must be name. */
static const char *after(const char *words, const char *name)
{
    size_t n = strlen(name);
    ck_assert_msg(strncmp(words, name, n) == 0 &&
                      (words[n] == '|' || words[n] == '\0'),
                  "\"%s\" does not begin with \"%s\"", words, name);
    return words[n] == '|' ? words + n + 1 : words + n;
}

/* Settings and fields name rows of tables by their place. */
START_TEST(names_are_the_words_of_the_setting)
{
    static const ms_field code = MS_LAYERS_CODE_FIELD;
    const char *words = after(code.words, ms_modelcodes[0].name);
    for (uint32_t i = 1; *words; i++)
        words = after(words, ms_modelcodes[i].name);
    words = after(MS_HEADLOSS_WORDS, "auto");
    for (int64_t i = 1; *words; i++)
        words = after(words, ms_headloss_named(i)->name);
    ms_training training;
    ms_training_init(&training);
    words = after(MS_KERNELS_ATTENTION, "auto");
    while (*words) {
        training.attention_kernel++;
        words = after(words, ms_kernels_of(&training).attention->name);
    }
}
END_TEST

START_TEST(settings_replace_single_kernels)
{
    ms_fault fault = {0};
    ms_training training;
    ms_training_init(&training);
    ck_assert_ptr_eq(ms_kernels_of(&training).norm.maker, &ms_torchkernels);
    ck_assert(ms_kernels_apart(ms_kernels_of(&training).norm, true));
    ck_assert_int_eq(ms_training_set(&training, "kernels", "fused", &fault),
                     MS_OK);
    ms_kernel_set set = ms_kernels_of(&training);
    ck_assert_ptr_eq(set.norm.maker, &ms_ligerkernels);
    ck_assert(!ms_kernels_apart(set.rotary, true));
    ck_assert_ptr_eq(set.loss, &ms_headloss_liger_linear);
    ms_training_set(&training, "norm_kernel", "torch", &fault);
    ms_training_set(&training, "rotary_kernel", "eager", &fault);
    ms_training_set(&training, "activation_kernel", "fused", &fault);
    ms_training_set(&training, "attention_kernel", "sdpa", &fault);
    ms_training_set(&training, "loss_kernel", "eager", &fault);
    set = ms_kernels_of(&training);
    ck_assert_ptr_eq(set.norm.maker, &ms_torchkernels);
    ck_assert(!ms_kernels_apart(set.norm, true));
    ck_assert(ms_kernels_apart(set.rotary, false));
    ck_assert_ptr_eq(set.activation.maker, &ms_ligerkernels);
    ck_assert_ptr_eq(set.attention, &ms_sdpa_first);
    ck_assert_ptr_eq(set.loss, &ms_losskernels_eager);
}
END_TEST

/* ---- what PyTorch chooses ------------------------------------------------ */

static const char model[] =
    "{\"memsim\": 1, \"name\": \"y\", \"input\": {\"shape\": [40, %d]},"
    " \"layers\": [{\"type\": \"op\", \"name\": \"x\", \"shape\": [40, %d]},"
    "{\"type\": \"attention\", \"heads\": 4, \"kv_heads\": %d, "
    "\"bias\": false, \"fused_qkv\": false%s}, {\"type\": \"mean\"}]}";

static bool runs(const ms_result *result, const char *op)
{
    for (uint32_t i = 0; i < result->graph->n_ops; i++)
        if (strcmp(result->graph->op_name[i], op) == 0)
            return true;
    return false;
}

static const ms_result *attend(int width, int kv_heads, const char *fields,
                               const char *settings)
{
    char json[512];
    snprintf(json, sizeof json, model, width, width, kv_heads, fields);
    return truth_run_json(json, "y --kernels sdpa %s", settings);
}

static const char *chosen(int width, int kv_heads, const char *fields,
                          const char *settings)
{
    const ms_result *result = attend(width, kv_heads, fields, settings);
    if (runs(result, "aten::_scaled_dot_product_flash_attention"))
        return "flash";
    if (runs(result, "aten::_scaled_dot_product_efficient_attention"))
        return "efficient";
    return "ops";
}

START_TEST(the_first_kernel_that_can)
{
    static const struct {
        int width, kv_heads;
        const char *fields, *settings, *kernel;
    } cases[] = {
        {64, 4, "", "", "flash"},
        {64, 2, "", "--precision fp16", "flash"},
        {64, 4, "", "--precision autocast-fp16", "flash"},
        {64, 4, ", \"dropout\": 0.1", "", "flash"},
        {1024, 4, "", "", "flash"},
        {2048, 4, "", "", "efficient"}, /* 512 channels */
        {64, 4, "", "--precision fp32", "efficient"},
        {64, 4, ", \"window\": 8", "", "efficient"},
        {64, 4, ", \"window\": 64", "", "flash"}, /* masks nothing */
        {24, 4, "", "--precision fp32", "ops"},   /* rows of 24 bytes */
        {64, 4, ", \"softcap\": true", "", "ops"},
        {64, 4, "", "--device t4 --precision fp16", "efficient"},
        {64, 4, "", "--device t4", "ops"}, /* bfloat16 */
        {64, 4, "", "--framework torch-2.0", "flash"},
        {64, 4, "", "--framework torch-1.13", "ops"},
        {64, 4, "", "--set device=cpu --precision fp32", "flash"},
        {64, 4, ", \"dropout\": 0.1", "--set device=cpu --precision fp32",
         "ops"},
    };
    truth_begin();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        ck_assert_msg(strcmp(chosen(cases[i].width, cases[i].kv_heads,
                                    cases[i].fields, cases[i].settings),
                             cases[i].kernel) == 0,
                      "case %zu: not %s", i, cases[i].kernel);
    truth_end();
}
END_TEST

/* Flash shares heads of keys and values from torch 2.4 on: before, and for
 * other kernels, they are repeated. */
START_TEST(heads_are_repeated_for_kernels_that_do_not_share)
{
    truth_begin();
    uint64_t shared = truth_rank(attend(64, 2, "", "--precision bf16"))
                          ->saved_for_backward_bytes;
    uint64_t repeated =
        truth_rank(attend(64, 2, "", "--precision bf16 --framework torch-2.0"))
            ->saved_for_backward_bytes;
    ck_assert_uint_eq(repeated - shared, 2 * 2 * 2 * 40 * 16);
    truth_end();
}
END_TEST

/* ---- what fused kernels keep --------------------------------------------- */

#define WIDTH 64u
#define ROWS 128u

static uint64_t saved(const char *layers, const char *settings)
{
    char json[768];
    snprintf(json, sizeof json,
             "{\"memsim\": 1, \"name\": \"y\", \"input\": {\"shape\": [1]}, "
             "\"layers\": [{\"type\": \"op\", \"name\": \"x\", \"shape\": "
             "[64]}, %s, {\"type\": \"mean\"}]}",
             layers);
    return truth_rank(truth_run_json(json, "y --batch 128 --precision bf16 %s",
                                     settings))
        ->saved_for_backward_bytes;
}

START_TEST(norms_keep_x_and_a_number_a_row)
{
    truth_begin();
    ck_assert_uint_eq(saved("{\"type\": \"rms_norm\"}", "--kernels fused"),
                      ROWS * (2 * WIDTH + 4));
    ck_assert_uint_eq(saved("{\"type\": \"layer_norm\"}", "--kernels fused"),
                      ROWS * (2 * WIDTH + 2 + 2));
    ck_assert_uint_eq(saved("{\"type\": \"layer_norm\"}", "--kernels eager"),
                      ROWS * (2 * WIDTH + 4 + 4));
    /* fp32 of x, its scale, the cast product */
    ck_assert_uint_eq(saved("{\"type\": \"rms_norm\", \"upcast\": true}", ""),
                      ROWS * (4 * WIDTH + 4 + 2 * WIDTH));
    ck_assert_uint_eq(saved("{\"type\": \"rms_norm\", \"upcast\": true}",
                            "--set norm_kernel=torch"),
                      ROWS * (2 * WIDTH + 4));
    truth_end();
}
END_TEST

static const char gates[] =
    "{\"type\": \"linear\", \"name\": \"a\", \"out\": 64, \"bias\": false}, "
    "{\"type\": \"linear\", \"name\": \"b\", \"out\": 64, \"bias\": false, "
    "\"inputs\": [\"x\"]}, "
    "{\"type\": \"swiglu\", \"inputs\": [\"a\", \"b\"]}";

START_TEST(gates_write_over_what_they_keep)
{
    truth_begin();
    ck_assert_uint_eq(saved(gates, "--kernels eager"), 4 * ROWS * 2 * WIDTH);
    ck_assert_uint_eq(saved(gates, "--kernels flash"), 3 * ROWS * 2 * WIDTH);
    ck_assert_uint_eq(saved(gates, "--kernels fused"), 3 * ROWS * 2 * WIDTH);
    truth_end();
}
END_TEST

/* A branch that no gradient reaches lets go what its kernel held. */
START_TEST(gates_that_no_gradient_reaches)
{
    static const char dead[] =
        "{\"memsim\": 1, \"name\": \"y\", \"input\": {\"shape\": [64]}, "
        "\"layers\": [{\"type\": \"linear\", \"name\": \"a\", \"out\": 64}, "
        "{\"type\": \"swiglu\", \"name\": \"g\", \"inputs\": [\"a\", \"a\"]}, "
        "{\"type\": \"mul\", \"name\": \"m\", \"inputs\": [\"g\", \"a\"]}, "
        "{\"type\": \"mean\"}]}";
    truth_begin();
    truth_run_json(dead, "y --batch 4 --kernels fused");
    truth_run_json(dead, "y --batch 4 --kernels fused --set mode=inference");
    truth_end();
}
END_TEST

/* The same step under policies that end and remake what was saved. */
START_TEST(fused_kernels_under_policies)
{
    static const char *const policies[] = {"checkpoint:full", "microbatch:2",
                                           "offload:optimizer",
                                           "swap:save_on_cpu", "fsdp:dp=2"};
    truth_begin();
    const ms_result *plain = truth_run("llama-3.2-1b --batch 2 --sequence 64 "
                                       "--kernels fused --set model.layers=2");
    double flops = 0;
    for (uint32_t op = 0; op < plain->graph->n_ops; op++)
        flops += plain->graph->op_flops[op];
    ck_assert(flops > 0);
    for (size_t i = 0; i < sizeof policies / sizeof *policies; i++) {
        const ms_result *r =
            truth_run("llama-3.2-1b --batch 2 --sequence 64 --kernels fused "
                      "--set model.layers=2 -p %s",
                      policies[i]);
        ck_assert_uint_gt(truth_rank(r)->peak.allocated_bytes, 0);
    }
    truth_end();
}
END_TEST

/* ---- backward(retain_graph=True) ----------------------------------------- */

START_TEST(a_retained_graph_keeps_what_was_saved)
{
    static const char chain[] =
        "{\"memsim\": 1, \"name\": \"y\", \"input\": {\"shape\": [64]}, "
        "\"layers\": [{\"repeat\": 4, \"name\": \"h\", \"layers\": ["
        "{\"type\": \"linear\", \"out\": 64, \"bias\": false}, "
        "{\"type\": \"gelu\"}]}, {\"type\": \"mean\"}]}";
    truth_begin();
    const ms_result *r = truth_run_json(chain, "y --batch 4096");
    uint64_t released = truth_rank(r)->phase_peaks[MS_PHASE_BACKWARD];
    r = truth_run_json(chain, "y --batch 4096 --set retain_graph=yes");
    const ms_rank_report *rank = truth_rank(r);
    ck_assert_uint_gt(rank->phase_peaks[MS_PHASE_BACKWARD], released);
    ck_assert_uint_ge(rank->phase_peaks[MS_PHASE_BACKWARD],
                      rank->levels[MS_MARK_AFTER_FORWARD] +
                          rank->gradients_bytes);
    truth_end();
}
END_TEST

/* The last block's backward begins with the gradient that a loss with the head
 * made in forward: no replay of the block makes it again. */
START_TEST(gradients_of_the_loss_are_not_replayed)
{
    static const char json[] =
        "{\"memsim\": 1, \"name\": \"m\", \"input\": {\"tokens\": true}, "
        "\"layers\": [{\"type\": \"embedding\", \"vocab\": 512, \"dim\": 64}, "
        "{\"repeat\": 3, \"name\": \"block\", \"layers\": [{\"type\": "
        "\"linear\", \"out\": 64}, {\"type\": \"gelu\"}]}, {\"type\": "
        "\"linear\", \"out\": 512, \"bias\": false}, {\"type\": "
        "\"cross_entropy\", \"kernel\": \"liger_linear\"}]}";
    truth_begin();
    const ms_result *r =
        truth_run_json(json, "y --sequence 32 -p checkpoint:full");
    uint32_t of_loss = 0;
    for (uint32_t op = 0; op < r->plan->n_ops; op++) {
        uint32_t of = r->plan->op[op].of;
        of_loss += of != MS_NONE && r->graph->op_pass[of] == MS_LOSS &&
                   r->plan->op[op].pass == MS_RECOMPUTE;
    }
    for (uint32_t row = 0; row < r->plan->n_rows; row++)
        ck_assert_uint_lt(r->plan->row[row].category, MS_N_CATEGORIES);
    ck_assert_uint_eq(of_loss, 0);
    ck_assert_uint_gt(truth_rank(r)->time.recompute_ns, 0);
    truth_end();
}
END_TEST

Suite *suite_kernels(void)
{
    Suite *suite = suite_create("kernels");
    TCase *tcase = tcase_create("kernels");
    tcase_add_test(tcase, names_are_the_words_of_the_setting);
    tcase_add_test(tcase, settings_replace_single_kernels);
    tcase_add_test(tcase, the_first_kernel_that_can);
    tcase_add_test(tcase, heads_are_repeated_for_kernels_that_do_not_share);
    tcase_add_test(tcase, norms_keep_x_and_a_number_a_row);
    tcase_add_test(tcase, gates_write_over_what_they_keep);
    tcase_add_test(tcase, gates_that_no_gradient_reaches);
    tcase_add_test(tcase, fused_kernels_under_policies);
    tcase_add_test(tcase, a_retained_graph_keeps_what_was_saved);
    tcase_add_test(tcase, gradients_of_the_loss_are_not_replayed);
    suite_add_tcase(suite, tcase);
    return suite;
}
