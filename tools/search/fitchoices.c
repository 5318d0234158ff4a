/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What fit searches: a table of choices per dimension, and which of them a job
 * can take. */

#include "graphs/training.h"
#include "policies/common/policy.h"
#include "sim/graph.h"
#include "sim/kinds.h"
#include "tools/job/job.h"
#include "tools/job/result.h"
#include "tools/options/options.h"
#include "tools/search/fit.h"

#include <string.h>

#define CHOICES(rows) (rows), (uint32_t)(sizeof(rows) / sizeof(rows)[0])
/* values of first=N; evenly spread where there are more blocks */
#define MOST_BLOCKS 16u
#define MOST_DIVISOR 64u /* micro-batches; beyond that only one per sample */
#define MOST_SAMPLES 8u  /* of a micro-batch of a pipeline */
/* of an axis: all of the above and the lengths of segments */
#define MOST_OPTIONS 96u

static const ms_fit_choice checkpoints[] = {
    {.spec = "", .label = "none"},
    {.spec = "checkpoint:selective",
     .words = "recomputed attention cores",
     .label = "selective"},
    {.spec = "checkpoint:sac",
     .words = "checkpoints that keep every second matmul",
     .label = "sac"},
    {.spec = "checkpoint:first=%u",
     .words = "checkpoints of the first %u blocks",
     .values = MS_FIT_BLOCKS,
     .label = "first"},
    {.spec = "checkpoint:first=%s",
     .words = "as many checkpoints on each stage as leave %u % of the memory",
     .values = MS_FIT_SPARE,
     .label = "stages",
     .where = MS_FIT_PIPELINED},
    {.spec = "checkpoint:full",
     .words = "a checkpoint per block",
     .label = "full"},
    {.spec = "checkpoint:sqrt",
     .words = "checkpoints by the square root of the blocks",
     .label = "sqrt"},
    {.spec = "checkpoint:every=%u",
     .words = "a checkpoint every %u blocks",
     .values = MS_FIT_LENGTHS,
     .label = "every"},
};

static const ms_fit_choice micro_batches[] = {
    {.spec = ""},
    {.spec = "microbatch:%u",
     .words = "%u micro-batches",
     .values = MS_FIT_DIVISORS,
     .where = MS_FIT_UNPIPED},
    {.spec = "microbatch:size=%u",
     .words = "micro-batches of %u",
     .values = MS_FIT_SAMPLES,
     .where = MS_FIT_PIPELINED},
};

/* For jobs on several GPUs: one GPU has nothing to share. */
static const ms_fit_choice shares[] = {
    {.spec = "ddp", .words = "DDP"},
    {.spec = "zero:1", .words = "ZeRO stage 1"},
    {.spec = "zero:2", .words = "ZeRO stage 2"},
    {.spec = "zero:3", .words = "ZeRO stage 3", .where = MS_FIT_UNPIPED},
    {.spec = "fsdp", .words = "FSDP", .where = MS_FIT_UNPIPED},
};

/* A part of the ways to checkpoint, and nothing on the host, keep the search
 * short: that much is left out is told. */
#define BESIDE_RANKS "none|selective|sac|full|stages"
static const ms_fit_choice tensors[] = {
    {.spec = ""},
    {.spec = "tensor:%u,sp",
     .words = "layers split over %u GPUs",
     .values = MS_FIT_NODE,
     .beside = BESIDE_RANKS,
     .on_device = true},
};

/* Beside their micro-batches pipelines have no others: a set-up without a size
 * has none. */
static const ms_fit_choice pipelines[] = {
    {.spec = ""},
    {.spec = "pipeline:%u",
     .words = "a pipeline of %u ranks",
     .values = MS_FIT_RANKS,
     .beside = "none|selective|full|stages",
     .on_device = true},
};

/* gpipe and looped-bfs hold all micro-batches for no less time than others. */
/* Between the halves of a backward a segment's tensors stay, made again: beside
 * such schedules checkpoints save little. */
#define HALVES "none|selective"
static const ms_fit_choice schedules[] = {
    {.spec = ""},
    {.spec = ",chunks=%u",
     .words = "%u chunks on each rank",
     .values = MS_FIT_CHUNKS,
     .where = MS_FIT_PIPELINED},
    {.spec = ",schedule=zb-h1",
     .words = "schedule zb-h1",
     .beside = HALVES,
     .where = MS_FIT_PIPELINED},
    {.spec = ",schedule=zb-h2",
     .words = "schedule zb-h2",
     .beside = HALVES,
     .where = MS_FIT_PIPELINED},
    {.spec = ",schedule=zb-v",
     .words = "schedule zb-v",
     .beside = HALVES,
     .where = MS_FIT_PIPELINED,
     .pair = true},
    {.spec = ",schedule=v-half",
     .words = "schedule v-half",
     .beside = HALVES,
     .where = MS_FIT_PIPELINED,
     .pair = true},
    {.spec = ",schedule=v-min",
     .words = "schedule v-min",
     .beside = HALVES,
     .where = MS_FIT_PIPELINED,
     .pair = true},
    {.spec = ",schedule=dualpipev",
     .words = "schedule dualpipev",
     .beside = HALVES,
     .where = MS_FIT_PIPELINED,
     .pair = true},
};

static const ms_fit_choice contexts[] = {
    {.spec = ""},
    {.spec = "context:%u",
     .words = "sequences divided among %u GPUs",
     .values = MS_FIT_GPUS,
     .beside = BESIDE_RANKS,
     .on_device = true},
};

static const ms_fit_choice experts[] = {
    {.spec = ""},
    {.spec = "expert:%u",
     .words = "experts divided among %u GPUs",
     .values = MS_FIT_GPUS,
     .beside = BESIDE_RANKS,
     .on_device = true},
};

static const ms_fit_choice offloads[] = {
    {.spec = ""},
    {.spec = "offload:optimizer", .words = "the optimizer on the host"},
    {.spec = "offload:optimizer/gradients",
     .words = "optimizer and gradients on the host"},
    {.spec = "offload:optimizer/params/gradients",
     .words = "all model states on the host"},
};

static const ms_fit_choice swaps[] = {
    {.spec = ""},
    {.spec = "swap:te=%u",
     .words = "activations of %u blocks swapped",
     .values = MS_FIT_EIGHTHS,
     .beside = "none"},
    {.spec = "swap:torchtune",
     .words = "all activations swapped (torchtune)",
     .beside = "none|full"},
    {.spec = "swap:save_on_cpu",
     .words = "all activations swapped (save_on_cpu)",
     .beside = "none|full"},
    {.spec = "swap:checkpoints",
     .words = "checkpoints swapped",
     .beside = "full|every"},
};

static const ms_fit_choice batches[] = {
    {.spec = ""},
    {.spec = "%u", .words = "batch %u", .values = MS_FIT_POWERS},
};

/* Searched only on request (--vary precision), because it changes numbers. */
static const ms_fit_choice precisions[] = {
    {.spec = ""},
    {.spec = "bf16", .words = "everything in bf16"},
    {.spec = "fp8", .words = "fp8 products"},
};

static const ms_fit_choice losses[] = {
    {.spec = ""},
    {.spec = "liger_linear", .words = "loss in chunks (Liger)"},
    {.spec = "ce_with_chunked_output", .words = "loss in chunks (torchtune)"},
};

static const ms_fit_choice kernels[] = {
    {.spec = ""},
    {.spec = "fused", .words = "fused kernels"},
};

static const ms_fit_choice optimizers[] = {
    {.spec = ""},
    {.spec = "fused", .words = "a fused optimizer"},
};

const ms_fit_dimension ms_fitchoices_all[MS_FIT_N_AXES] = {
    [MS_FIT_OFFLOAD] = {"offload", "offload", NULL, CHOICES(offloads)},
    [MS_FIT_SWAP] = {"swap", "swap", NULL, CHOICES(swaps)},
    [MS_FIT_CHECKPOINT] = {"checkpointing", "checkpoint", NULL,
                           CHOICES(checkpoints)},
    [MS_FIT_MICROBATCH] = {"micro-batches", "microbatch", NULL,
                           CHOICES(micro_batches)},
    [MS_FIT_BATCH] = {"batch", "", "training.batch", CHOICES(batches)},
    [MS_FIT_PRECISION] = {"precision", "", "training.precision",
                          CHOICES(precisions)},
    [MS_FIT_LOSS] = {"loss", "", "training.loss_kernel", CHOICES(losses)},
    [MS_FIT_KERNELS] = {"kernels", "", "training.kernels", CHOICES(kernels)},
    [MS_FIT_OPTIMIZER] = {"optimizer step", "", "training.optimizer_impl",
                          CHOICES(optimizers)},
    [MS_FIT_SCHEDULE] = {"schedule", "pipeline", NULL, CHOICES(schedules)},
    [MS_FIT_PIPELINE] = {"pipeline", "pipeline", NULL, CHOICES(pipelines)},
    [MS_FIT_EXPERT] = {"expert", "expert", NULL, CHOICES(experts)},
    [MS_FIT_CONTEXT] = {"context", "context", NULL, CHOICES(contexts)},
    [MS_FIT_TENSOR] = {"tensor", "tensor", NULL, CHOICES(tensors)},
    [MS_FIT_SHARE] = {"sharing", "ddp|zero|fsdp", NULL, CHOICES(shares)},
};

/* ---- the options of a dimension ------------------------------------------ */

static void add_option(ms_fit_axis *axis, const ms_fit_choice *choice,
                       uint32_t value)
{
    const ms_fit_option *last = &axis->options[axis->n - (axis->n > 0)];
    if (axis->n > 0 && last->choice == choice && last->value == value)
        return;
    axis->options[axis->n++] = (ms_fit_option){choice, value};
}

/* Of the lengths k that cut n blocks into equally many segments only the least
 * is added: longer segments would be uneven and need more memory. */
static void add_lengths(ms_fit_axis *axis, const ms_fit_choice *choice,
                        uint32_t n)
{
    for (uint32_t k = 2; k <= n && axis->n + MOST_BLOCKS < MOST_OPTIONS; k++)
        if ((n + k - 1) / k < (n + k - 2) / (k - 1))
            add_option(axis, choice, k);
}

static void add_blocks(ms_fit_axis *axis, const ms_fit_choice *choice,
                       uint32_t n)
{
    uint64_t most = n > 0 ? n - 1 : 0;
    uint64_t steps = most < MOST_BLOCKS ? most : MOST_BLOCKS;
    for (uint64_t i = 1; i <= steps; i++)
        add_option(axis, choice, (uint32_t)(most * i / steps));
}

static void add_eighths(ms_fit_axis *axis, const ms_fit_choice *choice,
                        uint32_t n)
{
    for (uint64_t i = 1; i <= 7 && n > 1; i++)
        add_option(axis, choice, (uint32_t)((n * i + 7) / 8));
    if (n > 8)
        add_option(axis, choice, n - 1);
}

static void add_divisors(ms_fit_axis *axis, const ms_fit_choice *choice,
                         uint64_t batch)
{
    for (uint32_t k = 2; k <= MOST_DIVISOR && k <= batch; k++)
        if (batch % k == 0)
            add_option(axis, choice, k);
    if (batch > MOST_DIVISOR && batch <= UINT32_MAX)
        add_option(axis, choice, (uint32_t)batch);
}

/* Adds powers of two as long as doubling the batch saves time per sample. That
 * is judged by the lower bound of the model alone, which needs no replay. */
static ms_err add_powers(ms_fit *fit, const ms_fit_choice *choice,
                         ms_fit_axis *axis, ms_fault *fault)
{
    uint64_t before_ns =
        ms_fitbounds_graph(fit->model.graph, &fit->model.shape).step_ns;
    for (uint32_t k = 2; k <= MS_FIT_MOST_BATCH; k *= 2) {
        uint64_t step_ns;
        MS_TRY(ms_fitalone_step(fit, k, &step_ns, fault));
        if (step_ns / k > before_ns / (k / 2) / 100 * (100 - MS_FIT_GAIN))
            return MS_OK;
        add_option(axis, choice, k);
        before_ns = step_ns;
    }
    return MS_OK;
}

/* The powers of two from 2 to `most` that divide a number of GPUs. */
static void add_degrees(ms_fit_axis *axis, const ms_fit_choice *choice,
                        uint32_t gpus, uint32_t most)
{
    for (uint32_t k = 2; k <= most && gpus % k == 0; k *= 2)
        add_option(axis, choice, k);
}

bool ms_fitchoices_even(uint32_t n_blocks, uint32_t stages, bool *counted)
{
    *counted = n_blocks % stages != 0 && (n_blocks + 2) % stages == 0;
    return n_blocks % stages == 0 || *counted;
}

/* Stages per rank that cut the blocks evenly for some number of ranks. */
static void add_chunks(const ms_fit *fit, ms_fit_axis *axis,
                       const ms_fit_choice *choice)
{
    const ms_fit_axis *ranks = &fit->axes[MS_FIT_PIPELINE];
    for (uint32_t v = 2; v <= MS_FIT_MOST_CHUNKS; v++)
        for (uint32_t k = 1; k < ranks->n; k++) {
            uint32_t stages = v * ranks->options[k].value;
            bool counted;
            if (stages <= fit->n_blocks &&
                ms_fitchoices_even(fit->n_blocks, stages, &counted))
                add_option(axis, choice, v);
        }
}

static bool has_pipelines(const ms_fit *fit)
{
    return fit->axes[MS_FIT_PIPELINE].n > 1;
}

static void add_spare(ms_fit_axis *axis, const ms_fit_choice *choice)
{
    add_option(axis, choice, 3);
    add_option(axis, choice, 6);
    add_option(axis, choice, 12);
}

static uint32_t largest(const ms_fit_axis *axis)
{
    uint32_t value = axis->options[axis->n - 1].value;
    return value > 0 ? value : 1;
}

/* The samples of the set-up with the fewest data-parallel ranks: where the
 * job's are given, ranks that share samples have more of them. */
static uint64_t most_samples(const ms_fit *fit)
{
    uint64_t batch = fit->model.shape.batch;
    if (fit->model.model.fixed_batch != 0)
        return 1;
    if (fit->job->global_batch > 0)
        batch *= (uint64_t)largest(&fit->axes[MS_FIT_TENSOR]) *
                 largest(&fit->axes[MS_FIT_CONTEXT]);
    return batch < fit->job->global_batch || fit->job->global_batch == 0
               ? batch
               : fit->job->global_batch;
}

/* A model whose batch is fixed (an op graph) cannot be cut into micro-batches.
 */
static ms_err add_choice(ms_fit *fit, const ms_fit_choice *choice,
                         ms_fit_axis *axis, ms_fault *fault)
{
    uint32_t gpus = fit->job->gpus;
    switch (choice->values) {
    case MS_FIT_ONE:
        add_option(axis, choice, 0);
        break;
    case MS_FIT_LENGTHS:
        add_lengths(axis, choice, fit->n_blocks);
        break;
    case MS_FIT_BLOCKS:
        add_blocks(axis, choice, fit->n_blocks);
        break;
    case MS_FIT_EIGHTHS:
        add_eighths(axis, choice, fit->n_blocks);
        break;
    case MS_FIT_DIVISORS:
        add_divisors(axis, choice, most_samples(fit));
        break;
    case MS_FIT_NODE:
        add_degrees(axis, choice, gpus, fit->job->device->gpus_per_node);
        break;
    case MS_FIT_GPUS:
        add_degrees(axis, choice, gpus, gpus);
        break;
    case MS_FIT_RANKS:
        add_degrees(axis, choice, gpus,
                    fit->n_blocks < gpus ? fit->n_blocks : gpus);
        break;
    case MS_FIT_CHUNKS:
        add_chunks(fit, axis, choice);
        break;
    case MS_FIT_SAMPLES:
        for (uint32_t k = 1; k <= MOST_SAMPLES && has_pipelines(fit); k *= 2)
            add_option(axis, choice, k);
        break;
    case MS_FIT_SPARE:
        if (has_pipelines(fit))
            add_spare(axis, choice);
        break;
    case MS_FIT_POWERS:
        return add_powers(fit, choice, axis, fault);
    }
    return MS_OK;
}

static bool is_given(const ms_spec *spec, const char *policies)
{
    for (uint32_t i = 0; i < spec->n; i++)
        if (ms_options_one_of(policies,
                              ms_policy_family(spec->items[i].policy)))
            return true;
    return false;
}

static bool is_set(const ms_training *training, const char *key)
{
    for (uint32_t row = 0; row < ms_training_n_fields; row++)
        if (ms_training_fields[row].group == NULL &&
            strcmp(ms_training_fields[row].name, strchr(key, '.') + 1) == 0)
            return training->was_set >> row & 1;
    return false;
}

/* Is the batch given? The goals step and memory are for the batch of the job,
 * and steps with lengths of their own bring batches of their own. */
static bool has_batch(const ms_fit *fit)
{
    const ms_job *job = fit->job;
    return fit->goal != MS_FIT_TOKENS || job->global_batch > 0 ||
           job->lengths != NULL || fit->model.model.fixed_batch != 0;
}

static bool has_experts(const ms_graph *graph)
{
    for (uint32_t l = 0; l < graph->n_layers; l++)
        if (graph->layer_role[l] == MS_ROLE_EXPERTS)
            return true;
    return false;
}

/* Are there ranks that could divide the model, its samples or its experts? */
static bool can_divide(const ms_fit *fit, ms_fit_axis_id id)
{
    const ms_result *model = &fit->model;
    if (fit->job->gpus <= 1 || model->model.fixed_batch != 0)
        return false;
    if (id == MS_FIT_EXPERT)
        return has_experts(model->graph);
    if (id == MS_FIT_PIPELINE || id == MS_FIT_SCHEDULE)
        return fit->job->global_batch > 0 && fit->n_blocks > 1;
    return id == MS_FIT_TENSOR || model->training.sequence >= MS_FIT_LONG;
}

static bool is_fixed(const ms_fit *fit, ms_fit_axis_id id)
{
    const ms_fit_dimension *dimension = &ms_fitchoices_all[id];
    const ms_job *job = fit->job;
    if (fit->frozen[id] || is_given(&job->spec, dimension->policies) ||
        (dimension->key != NULL && is_set(&job->training, dimension->key)))
        return true;
    if (id == MS_FIT_TENSOR || id == MS_FIT_CONTEXT || id == MS_FIT_EXPERT ||
        id == MS_FIT_PIPELINE || id == MS_FIT_SCHEDULE)
        return !can_divide(fit, id);
    return (id == MS_FIT_SHARE && job->gpus <= 1) ||
           (id == MS_FIT_BATCH && has_batch(fit)) ||
           (id == MS_FIT_PRECISION && !fit->vary_precision);
}

ms_err ms_fitchoices_open(ms_fit *fit, ms_fit_axis_id id, ms_fault *fault)
{
    static const ms_fit_choice nothing = {.spec = ""};
    const ms_fit_dimension *dimension = &ms_fitchoices_all[id];
    ms_fit_axis *axis = &fit->axes[id];
    *axis =
        (ms_fit_axis){.fixed = is_fixed(fit, id),
                      .given = is_given(&fit->job->spec, dimension->policies)};
    axis->options =
        ms_arena_take(fit->arena, MOST_OPTIONS, sizeof *axis->options);
    if (axis->options == NULL)
        return ms_fail_nomem(fault);
    if (axis->fixed)
        add_option(axis, &nothing, 0);
    for (uint32_t i = 0; i < dimension->n_choices && !axis->fixed; i++)
        MS_TRY(add_choice(fit, &dimension->choices[i], axis, fault));
    return MS_OK;
}
