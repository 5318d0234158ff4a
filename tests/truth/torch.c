/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Measured steps of PyTorch 1.13.1 on a CPU.  The name of a case says what
 * ran: mlp8x1024_b64 is eight hidden layers of 1024 at batch 64,
 * gpt2s_b1s256_d01 GPT-2 124M at batch 1, sequence 256 and dropout 0.1,
 * llama8_b1s128 eight small LLaMA layers, unet32_b1 a U-Net; what follows
 * names an activation, an optimizer or what else was different. */
#include "sim/report.h"
#include "tests/tests.h"
#include "tests/truth/truth.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define AS_MEASURED                                                            \
    "--kernels eager --precision fp32 --framework torch-1.13 "                 \
    "--set training.device=cpu"

/* An activation of a hidden layer; "%s" stands for a dropout layer or
 * nothing. */
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

/* ---- models that are built in -------------------------------------------- */

/* Says whether torch.jsonl has the graph of a case. What follows the batch
 * in the name of a case (an optimizer, micro-batches) is not in the name of
 * the graph. */
static bool is_graph(const char *name)
{
    return strncmp(name, "bert", 4) == 0 || strncmp(name, "alexnet_", 8) == 0;
}

static const ms_result *run_graph(const char *name, const char *options)
{
    static const char *const after[] = {"_accum", "_adam", "_nomkldnn"};
    char graph[64];
    size_t n = strlen(name);
    for (size_t i = 0; i < sizeof after / sizeof *after; i++)
        if (strstr(name, after[i]) != NULL)
            n = (size_t)(strstr(name, after[i]) - name);
    snprintf(graph, sizeof graph, "%.*s", (int)n, name);
    char *json = truth_graph("torch.jsonl", graph);
    const ms_result *result = truth_run_json(json, "graph %s", options);
    free(json);
    return result;
}

#define LLAMA8                                                                 \
    "llama-2-7b --set model.layers=8 --set model.hidden=512 "                  \
    "--set model.heads=8 --set model.ffn=1376 --set model.positions=512 "

static const struct {
    const char *prefix, *model;
} models[] = {
    {"llama8_", LLAMA8 "--set model.kv_heads=2"},
    {"llama8mha_", LLAMA8},
    {"resnet18_", "resnet18"},
    {"resnet50_", "resnet50"},
    {"vgg16_", "vgg16"},
    {"unet32_",
     "unet --set model.width=32 --set model.classes=4 --set model.image=128"},
};

/* The row in models; the number of rows where there is none. */
static size_t model_of(const char *name)
{
    size_t m = 0;
    while (m < sizeof models / sizeof *models &&
           strncmp(name, models[m].prefix, strlen(models[m].prefix)) != 0)
        m++;
    return m;
}

static const ms_result *run_model(size_t m, const char *name,
                                  const char *options)
{
    char words[64] = "";
    unsigned batch, sequence;
    const char *model = models[m].model;
    if (sscanf(name + strlen(models[m].prefix), "b%us%u", &batch, &sequence) ==
        2)
        snprintf(words, sizeof words, "--sequence %u", sequence);
    return truth_run("%s %s %s", model, words, options);
}

/* ---- all ----------------------------------------------------------------- */

/* What follows b64 or b1s256_d01 in the name of a case. */
static const char *variant_of(const char *name, int skip)
{
    const char *variant = strchr(name, '_') + 1;
    for (; skip > 0; skip--)
        variant += strcspn(variant, "_") + (strchr(variant, '_') != NULL);
    return variant;
}

/* The policy of a checkpointed case: each residual block, or
 * checkpoint_sequential. */
static void checkpoint_of(const char *name, char policy[64])
{
    const char *sequential = strstr(name, "_ckptseq");
    policy[0] = '\0';
    if (sequential != NULL)
        snprintf(policy, 64, "-p checkpoint:sequential=%c", sequential[8]);
    else if (strstr(name, "_ckptblock_nr") != NULL)
        snprintf(policy, 64,
                 "-p checkpoint:full,variant=nonreentrant,early_stop=0");
    else if (strstr(name, "_ckptblock") != NULL)
        snprintf(policy, 64, "-p checkpoint:full,variant=reentrant");
}

/* An op graph has a fixed batch, which is that of a micro-batch. */
static void options_of(const truth_table *table, uint32_t row,
                       char options[320])
{
    char policy[64], batch[32] = "";
    const char *name = truth_cell(table, row, "case");
    uint64_t accum = truth_number(table, row, "accum");
    checkpoint_of(name, policy);
    if (!is_graph(name))
        snprintf(batch, sizeof batch, "--batch %" PRIu64,
                 accum * truth_number(table, row, "batch"));
    snprintf(options, 320,
             AS_MEASURED " %s --set zero_grad=%s %s %s -p microbatch:%" PRIu64,
             optimizer_of(truth_cell(table, row, "opt")),
             strstr(name, "_zerograd") != NULL ? "keep" : "none", policy, batch,
             accum);
}

static const ms_result *run_case(const truth_table *table, uint32_t row)
{
    char options[320];
    const char *name = truth_cell(table, row, "case");
    size_t m = model_of(name);
    options_of(table, row, options);
    if (m < sizeof models / sizeof *models)
        return run_model(m, name, options);
    if (is_graph(name))
        return run_graph(name, options);
    if (strncmp(name, "mlp", 3) == 0)
        return run_mlp(variant_of(name, 1), options);
    return run_gpt2(name, variant_of(name, 2), options);
}

static void compare_peak(const truth_table *table, uint32_t row,
                         const ms_rank_report *rank)
{
    static const char *const words[MS_N_PHASES] = {
        [MS_PHASE_FORWARD] = "forward",
        [MS_PHASE_LOSS] = "loss",
        [MS_PHASE_BACKWARD] = "backward",
        [MS_PHASE_OPTIMIZER] = "optimizer"};
    const char *name = truth_cell(table, row, "case");
    const char *phase = truth_cell(table, row, "peak_phase_no_ws");
    uint32_t truth = MS_N_PHASES, highest = 0;
    for (uint32_t p = 0; p < MS_N_PHASES; p++) {
        if (rank->phase_peaks[p] > rank->phase_peaks[highest])
            highest = p;
        if (strncmp(phase, words[p], strlen(words[p])) == 0)
            truth = p; /* "backward.1" is of the second micro-batch */
    }
    truth_compare("torch", name, "peak_rel_no_ws",
                  truth_number(table, row, "peak_rel_no_ws"),
                  rank->phase_peaks[highest] - rank->levels[MS_MARK_START]);
    truth_compare("torch", name, "peak_phase_no_ws", truth, highest);
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
    compare_peak(table, row, rank);
}
