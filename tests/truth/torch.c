/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Measured steps of PyTorch 1.13.1 on a CPU.  The name of a case says what
 * ran: mlp8x1024_b64 is eight hidden layers of 1024 at batch 64,
 * gpt2s_b1s256_d01 GPT-2 124M at batch 1, sequence 256 and dropout 0.1; what
 * follows names an activation, an optimizer or what else was different. */
#include "tests/tests.h"
#include "tests/truth/truth.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define AS_MEASURED                                                            \
    "--kernels eager --precision fp32 --framework torch-1.13 "                 \
    "--set training.device=cpu"

/* One hidden layer's activation; "%s" stands for a dropout layer or nothing. */
static const char mlp[] =
    "{\"memsim\": 1, \"name\": \"mlp8x1024\", \"input\": {\"shape\": [784]},"
    " \"layers\": [{\"repeat\": 8, \"name\": \"hidden\", \"layers\": ["
    "{\"type\": \"linear\", \"out\": 1024}, {\"type\": \"%s\"}%s]},"
    " {\"type\": \"linear\", \"name\": \"head\", \"out\": 10},"
    " {\"type\": \"cross_entropy\"}]}";

static const char *activation_of(const char *variant)
{
    static const char *const others[] = {"gelu", "sigmoid", "silu", "tanh"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (strcmp(variant, others[i]) == 0)
            return others[i];
    return "relu";
}

static const struct {
    const char *name, *options;
} optimizers[] = {
    {"sgd", "--optimizer sgd --set optimizer_impl=loop"},
    {"sgd_foreach", "--optimizer sgd --set optimizer_impl=foreach"},
    {"sgdm", "--optimizer momentum --set optimizer_impl=loop"},
    {"sgdm_foreach", "--optimizer momentum --set optimizer_impl=foreach"},
    {"adam", "--optimizer adam --set optimizer_impl=loop"},
    {"adam_foreach", "--optimizer adam --set optimizer_impl=foreach"},
    {"adamw", "--optimizer adamw --set optimizer_impl=loop"},
    {"adamw_foreach", "--optimizer adamw --set optimizer_impl=foreach"},
};

static const char *optimizer_of(const char *name)
{
    for (size_t i = 0; i < sizeof optimizers / sizeof *optimizers; i++)
        if (strcmp(name, optimizers[i].name) == 0)
            return optimizers[i].options;
    ck_abort_msg("no such optimizer: %s", name);
    return "";
}

static const ms_result *run_mlp(const char *variant, const char *options)
{
    char json[512];
    bool drop = strcmp(variant, "drop") == 0;
    snprintf(json, sizeof json, mlp, activation_of(variant),
             drop ? ", {\"type\": \"dropout\", \"p\": 0.1}" : "");
    return truth_run_json(json, "mlp8x1024 %s", options);
}

static const ms_result *run_gpt2(const char *name, const char *variant,
                                 const char *options)
{
    unsigned batch, sequence, dropout;
    ck_assert_int_eq(
        sscanf(name, "gpt2s_b%us%u_d%2u", &batch, &sequence, &dropout), 3);
    bool newgelu = strcmp(variant, "newgelu") == 0;
    return truth_run("gpt2 --sequence %u --set model.dropout=0.%u "
                     "--set model.activation=%s %s",
                     sequence, dropout, newgelu ? "gelu_new" : "gelu", options);
}

static const ms_result *run_case(const truth_table *table, uint32_t row)
{
    char options[256];
    const char *name = truth_cell(table, row, "case");
    bool is_mlp = strncmp(name, "mlp", 3) == 0;
    const char *variant = strchr(name, '_') + 1; /* behind b64 or b1s256_d01 */
    for (int skip = is_mlp ? 1 : 2; skip > 0; skip--)
        variant += strcspn(variant, "_") + (strchr(variant, '_') != NULL);
    uint64_t accum = truth_number(table, row, "accum");
    snprintf(options, sizeof options,
             AS_MEASURED " %s --set zero_grad=%s --batch %" PRIu64
                         " -p microbatch:%" PRIu64,
             optimizer_of(truth_cell(table, row, "opt")),
             strcmp(variant, "zerograd") == 0 ? "keep" : "none",
             accum * truth_number(table, row, "batch"), accum);
    return is_mlp ? run_mlp(variant, options)
                  : run_gpt2(name, variant, options);
}

void truth_torch(const truth_table *table, uint32_t row)
{
    const ms_rank_report *rank = truth_rank(run_case(table, row));
    const uint64_t *levels = rank->levels, *peaks = rank->phase_peaks;
    uint64_t start = levels[MS_MARK_START];
    uint64_t forward = peaks[MS_PHASE_FORWARD] > peaks[MS_PHASE_LOSS]
                           ? peaks[MS_PHASE_FORWARD]
                           : peaks[MS_PHASE_LOSS];
    const struct {
        const char *column;
        uint64_t memsim;
    } quantities[] = {
        {"static_bytes", start},
        {"saved_bytes", rank->saved_for_backward_bytes},
        {"live_after_fwd_rel", levels[MS_MARK_BEFORE_LOSS] - start},
        {"live_after_loss_rel", levels[MS_MARK_AFTER_FORWARD] - start},
        {"live_after_bwd_rel", levels[MS_MARK_AFTER_BACKWARD] - start},
        {"live_after_opt_rel", levels[MS_MARK_END] - start},
        {"fwd_peak_rel_no_ws", forward - start},
        {"bwd_peak_rel_no_ws", peaks[MS_PHASE_BACKWARD] - start},
        {"opt_tmp_peak", rank->optimizer_scratch_bytes},
    };
    for (size_t i = 0; i < sizeof quantities / sizeof *quantities; i++)
        truth_compare("torch", truth_cell(table, row, "case"),
                      quantities[i].column,
                      truth_number(table, row, quantities[i].column),
                      quantities[i].memsim);
}
