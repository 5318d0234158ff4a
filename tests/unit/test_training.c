/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The settings of training: defaults, values that are refused. */
#include "graphs/kernels/kernels.h"
#include "graphs/model.h"
#include "graphs/training.h"
#include "tests/tests.h"
#include "tools/cli/commands.h"

#include <string.h>

static ms_training training;
static ms_fault fault;

static void set_up(void)
{
    ms_training_init(&training);
    fault = (ms_fault){0};
}

static const char *value_of(const char *name)
{
    static char buffer[64];
    for (uint32_t row = 0; row < ms_training_n_fields; row++)
        if (strcmp(ms_training_fields[row].name, name) == 0)
            ms_training_value(&training, row, buffer, sizeof buffer);
    return buffer;
}

START_TEST(defaults)
{
    ck_assert_int_eq(training.batch, 1);
    ck_assert_int_eq(training.sequence, 0);
    ck_assert_str_eq(value_of("precision"), "bf16-mixed");
    ck_assert_str_eq(value_of("optimizer"), "adamw");
    ck_assert_str_eq(value_of("optimizer_impl"), "auto");
    ck_assert_str_eq(value_of("kernels"), "flash");
    ck_assert_str_eq(value_of("framework"), "torch-2");
    ck_assert_str_eq(value_of("device"), "cuda");
    ck_assert_str_eq(value_of("gradients"), "auto");
    ck_assert_str_eq(value_of("hold_output"), "backward");
    ck_assert_str_eq(value_of("zero_grad"), "none");
    ck_assert_str_eq(value_of("step"), "steady");
    ck_assert_str_eq(value_of("mode"), "train");
    ck_assert_str_eq(value_of("unknown_op"), "refuse");
    ck_assert_uint_eq(training.was_set, 0);
}
END_TEST

START_TEST(sets_each_member)
{
    static const char *const settings[][2] = {
        {"training.batch", "32"},
        {"sequence", "512"},
        {"precision", "fp16-mixed"},
        {"optimizer", "momentum"},
        {"optimizer_impl", "foreach"},
        {"kernels", "korthikanti"},
        {"framework", "torch-1.13"},
        {"device", "cpu"},
        {"gradients", "fp32"},
        {"hold_output", "none"},
        {"zero_grad", "keep"},
        {"step", "first"},
        {"mode", "inference"},
        {"optimizer_in_backward", "yes"},
        {"clip_norm", "1.5"},
        {"optimizer_rank", "64"},
        {"optimizer_block", "512"},
        {"optimizer_refresh", "yes"},
        {"loss_kernel", "liger"},
        {"attention_kernel", "sdpa"},
        {"norm_kernel", "liger"},
        {"activation_kernel", "fused"},
        {"rotary_kernel", "fused"},
        {"retain_graph", "yes"},
        {"cublas_workspace", ":4096:2:16:8"},
        {"cuda_loading", "eager"},
        {"nccl_channels", "8"},
        {"nccl_buffsize", "1048576"},
        {"lora.rank", "16"},
        {"lora.targets", "all"},
        {"lora.dropout", "0.1"},
        {"lora.dtype", "fp32"},
        {"lora.base", "int8"},
        {"lora.trains", "B"},
        {"graph.unknown_op", "conservative"},
        {"fp8.recipe", "block"},
        {"fp8.weights", "kept"}};
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++)
        ck_assert_int_eq(
            ms_training_set(&training, settings[i][0], settings[i][1], &fault),
            MS_OK);
    ck_assert_int_eq(training.batch, 32);
    ck_assert_int_eq(training.sequence, 512);
    ck_assert_int_eq(training.precision, MS_FP16_MIXED);
    ck_assert_int_eq(training.optimizer, MS_MOMENTUM);
    ck_assert_int_eq(training.optimizer_impl, MS_IMPL_FOREACH);
    ck_assert_int_eq(training.kernels, MS_KORTHIKANTI);
    ck_assert_int_eq(training.framework, MS_TORCH_1_13);
    ck_assert_int_eq(training.device, 1);
    ck_assert_int_eq(training.gradients, 1);
    ck_assert_int_eq(training.hold_output, MS_HOLD_NONE);
    ck_assert_int_eq(training.zero_grad, 1);
    ck_assert_int_eq(training.step, 1);
    ck_assert_int_eq(training.mode, 1);
    ck_assert_int_eq(training.unknown_op, 1);
    ck_assert_int_eq(training.optimizer_in_backward, 1);
    ck_assert_double_eq(training.clip_norm, 1.5);
    ck_assert_str_eq(value_of("clip_norm"), "1.5");
    ck_assert_int_eq(training.optimizer_refresh, 1);
    ck_assert_int_eq(training.lora_trains, 2);
    ck_assert_int_eq(__builtin_popcountll(training.was_set),
                     sizeof settings / sizeof *settings);
    ck_assert_int_eq(training.cublas_workspace, 8519680);
    ck_assert_int_eq(training.cuda_loading, 1);
    ck_assert_int_eq(training.nccl_channels, 8);
    ck_assert_int_eq(training.nccl_buffsize, 1048576);
    ck_assert_str_eq(value_of("batch"), "32");
    ck_assert_str_eq(value_of("framework"), "torch-1.13");
}
END_TEST

static const struct {
    const char *key, *value, *what, *hint;
} refused[] = {
    {"bach", "1", "unknown setting \"bach\"", "\"batch\""},
    {"training.zzzzzz", "1", "unknown setting", "keys: batch, sequence"},
    {"batch", "0", "from 1 to", ""},
    {"batch", "-1", "from 1 to", ""},
    {"batch", "1.5", "not \"1.5\"", ""},
    {"batch", "", "not \"\"", ""},
    {"batch", "1-2", "not \"1-2\"", ""},
    {"batch", " 1", "not \" 1\"", ""},
    {"batch", "0x10", "not \"0x10\"", ""},
    {"batch", "99999999999999999999", "from 1 to", ""},
    {"precision", "bf16-mixt", "cannot be", "\"bf16-mixed\""},
    {"precision", "posit", "cannot be", "one of: fp32, tf32"},
    {"precision", "amp", "cannot be", "--precision autocast-bf16"},
    {"micro_batch", "4", "unknown setting", "-p microbatch:4"},
    {"optimizer", "adamv", "cannot be", "\"adam\""},
    {"unknown_op", "refuse", "unknown setting", "keys: batch, sequence"},
    {"training.unknown_op", "refuse", "unknown setting", ""},
    {"graphs.unknown_op", "refuse", "unknown setting", ""},
};

START_TEST(refuses)
{
    ms_err err =
        ms_training_set(&training, refused[_i].key, refused[_i].value, &fault);
    ck_assert_int_eq(err, MS_EUSAGE);
    ck_assert_int_eq(strncmp(fault.where, "training.", 9), 0);
    ck_assert_msg(strstr(fault.what, refused[_i].what) != NULL, "%s",
                  fault.what);
    ck_assert_msg(strstr(fault.hint, refused[_i].hint) != NULL, "%s",
                  fault.hint);
    ck_assert_uint_eq(training.was_set, 0);
}
END_TEST

START_TEST(refuses_in_its_group)
{
    ck_assert_int_eq(ms_training_set(&training, "graph.unknwn_op", "x", &fault),
                     MS_EUSAGE);
    ck_assert_str_eq(fault.where, "graph.unknwn_op=x");
    ck_assert_ptr_nonnull(strstr(fault.hint, "unknown_op"));
    fault = (ms_fault){0};
    ck_assert_int_eq(ms_training_set(&training, "graph.batch", "1", &fault),
                     MS_EUSAGE);
    fault = (ms_fault){0};
    ck_assert_int_eq(
        ms_training_set(&training, "graph.unknown_op", "keep", &fault),
        MS_EUSAGE);
    ck_assert_str_eq(fault.where, "graph.unknown_op=keep");
    ms_model model = {.name = "m"};
    fault = (ms_fault){0};
    ck_assert_int_eq(
        ms_training_set(&training, "graph.unknown_op", "refuse", &fault),
        MS_OK);
    ck_assert_int_eq(ms_resolve_training(&training, &model, &fault), MS_EUSAGE);
}
END_TEST

START_TEST(sequence_follows_the_model)
{
    ms_model model = {.name = "m", .sequence_input = true};
    ck_assert_int_eq(ms_resolve_training(&training, &model, &fault), MS_OK);
    ck_assert_int_eq(training.sequence, 2048);
    training.sequence = 0;
    model.max_sequence = 512;
    ck_assert_int_eq(ms_resolve_training(&training, &model, &fault), MS_OK);
    ck_assert_int_eq(training.sequence, 512);
    training.sequence = 513;
    ck_assert_int_eq(ms_resolve_training(&training, &model, &fault), MS_EUSAGE);
    ck_assert_ptr_nonnull(strstr(fault.what, "513"));
    ck_assert_ptr_nonnull(strstr(fault.what, "512"));
}
END_TEST

START_TEST(sequence_needs_a_sequence)
{
    ms_model model = {.name = "mlp"};
    ck_assert_int_eq(ms_resolve_training(&training, &model, &fault), MS_OK);
    ck_assert_int_eq(training.sequence, 0);
    training.sequence = 16;
    ck_assert_int_eq(ms_resolve_training(&training, &model, &fault), MS_EUSAGE);
}
END_TEST

Suite *suite_training(void)
{
    Suite *suite = suite_create("training");
    TCase *tcase = tcase_create("training");
    tcase_add_checked_fixture(tcase, set_up, NULL);
    tcase_add_test(tcase, defaults);
    tcase_add_test(tcase, sets_each_member);
    tcase_add_loop_test(tcase, refuses, 0,
                        (int)(sizeof refused / sizeof *refused));
    tcase_add_test(tcase, refuses_in_its_group);
    tcase_add_test(tcase, sequence_follows_the_model);
    tcase_add_test(tcase, sequence_needs_a_sequence);
    suite_add_tcase(suite, tcase);
    return suite;
}
