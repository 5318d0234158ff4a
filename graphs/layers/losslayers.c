/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Losses, the layers at which a model ends. */
#include "graphs/aten/opcall.h"
#include "graphs/layers/headloss.h"
#include "graphs/layers/layers.h"
#include "graphs/layertypes.h"
#include "graphs/trace/trace.h"

#include <string.h>

/* ---- classes ------------------------------------------------------------- */

enum { UPCAST, SMOOTHING, KERNEL, SHIFT };
const ms_field ms_losslayers_cross_entropy_fields[MS_LOSSLAYERS_CROSS_ENTROPY] =
    {
        {.name = "upcast",
         .type = MS_BOOL,
         .help = "logits.float() first where they are 16-bit"},
        {.name = "label_smoothing",
         .type = MS_FLOAT,
         .low = 0,
         .high = 1,
         .help = "share of the uniform distribution"},
        {.name = "kernel",
         .type = MS_WORD,
         .words = MS_HEADLOSS_WORDS,
         .help = "liger: the logits become their gradient in forward; "
                 "liger_linear: head and loss in one, by chunks, which keeps "
                 "the gradients of the head's input and weight; "
                 "ce_with_chunked_output: torchtune's, the logits in 8 pieces, "
                 "_compiled: a kernel a piece; tiled: DeepSpeed's, head and "
                 "loss by pieces of 1 GiB of fp32 logits, and back at once; "
                 "auto: as training.loss_kernel"},
        {.name = "shift",
         .type = MS_WORD,
         .words = "none|labels|logits",
         .help = "each token predicts the next: the labels are moved, or all "
                 "logits but the last copied (transformers before 4.46)"},
};

static ms_err check_shift(ms_trace *trace, const ms_layer *layer,
                          uint32_t logits)
{
    const ms_tensor *x = ms_trace_at(trace, logits);
    if (layer->field[SHIFT].i == MS_SHIFT_NONE ||
        (x->n_dims == 3 && x->size[1] > 1))
        return MS_OK;
    return ms_trace_fail(trace, layer, "leave \"shift\" out",
                         "\"%s\" moves tokens against each other, but \"%s\" "
                         "does not give several",
                         layer->name,
                         ms_layers_source(trace->settings, layer, 0));
}

ms_err ms_losslayers_cross_entropy(ms_trace *trace, const ms_layer *layer,
                                   const uint32_t *in, uint32_t *out)
{
    MS_TRY(ms_layers_need_float(trace, layer, in[0]));
    MS_TRY(check_shift(trace, layer, in[0]));
    const ms_cross_entropy how = {.upcasts = layer->field[UPCAST].b,
                                  .smooths = layer->field[SMOOTHING].f > 0,
                                  .shift = (uint8_t)layer->field[SHIFT].i};
    const ms_loss_kernel *kernel =
        ms_headloss_kernel(trace, layer, ms_losslayers_kernel(layer));
    *out = kernel->loss(trace, &how, in[0]);
    return trace->err;
}

int64_t ms_losslayers_kernel(const ms_layer *layer)
{
    return layer->field[KERNEL].i;
}

/* ---- a target per element ------------------------------------------------ */

/* How many tensors of x's size live while the op runs: the losses before they
 * are averaged, and the terms of the loss of logits (PyTorch 1.13 has five of
 * them, later versions the result of log_sigmoid). */
static uint32_t scratch_of(const ms_step_settings *settings, const char *op)
{
    if (strcmp(op, "aten::binary_cross_entropy_with_logits") == 0)
        return settings->framework == MS_TORCH_1_13 ? 5 : 2;
    return strcmp(op, "aten::binary_cross_entropy") == 0 ? 0 : 1;
}

static uint32_t target_like(ms_trace *trace, uint32_t x)
{
    ms_tensor like = *ms_trace_at(trace, x);
    return ms_trace_input(trace, "target", like.dtype, like.n_dims, like.size);
}

/* These ops reduce into the tensor of their terms, and its storage does not
 * become smaller (ATen/native/BinaryOps.cpp: mse_loss and smooth_l1_loss;
 * Loss.cpp: binary_cross_entropy). */
static bool keeps_terms(const char *op)
{
    static const char *const ops[] = {"aten::mse_loss", "aten::smooth_l1_loss",
                                      "aten::binary_cross_entropy"};
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
        if (strcmp(op, ops[i]) == 0)
            return true;
    return false;
}

ms_err ms_losslayers_like(ms_trace *trace, const ms_layer *layer,
                          const uint32_t *in, uint32_t *out)
{
    const ms_layer_kind *kind = layer->kind;
    MS_TRY(ms_layers_need_float(trace, layer, in[0]));
    uint32_t inputs[2] = {in[0], target_like(trace, in[0])};
    ms_opcall call = {.op = kind->op,
                      .scratch = scratch_of(trace->settings, kind->op),
                      .flops = kind->flops};
    call.made[0].dtype = ms_trace_at(trace, in[0])->dtype;
    if (keeps_terms(kind->op))
        ms_opcall_like(trace, &call.made[0], in[0]);
    *out = ms_opcall_run(trace, &call, inputs, 2);
    if (!trace->err)
        ms_trace_at(trace, *out)->n_dims = 0;
    return trace->err;
}

/* (x - target).abs().mean() */
ms_err ms_losslayers_l1(ms_trace *trace, const ms_layer *layer,
                        const uint32_t *in, uint32_t *out)
{
    MS_TRY(ms_layers_need_float(trace, layer, in[0]));
    uint32_t target = target_like(trace, in[0]);
    uint32_t difference = ms_pointwise_sub(trace, in[0], target);
    uint32_t size = ms_opcall_like_run(trace, "aten::abs", &difference, 1);
    ms_trace_drop(trace, difference);
    *out = ms_loss_mean(trace, size);
    ms_trace_drop(trace, size);
    return trace->err;
}

static uint32_t sum_of_all(ms_trace *trace, uint32_t x)
{
    ms_opcall call = {.op = "aten::sum", .flops = 1};
    if (trace->err)
        return MS_NONE;
    call.made[0].dtype = ms_trace_at(trace, x)->dtype;
    return ms_opcall_run(trace, &call, &x, 1);
}

/* (xlogy(target, target) - target x).sum() / batch */
ms_err ms_losslayers_kl_div(ms_trace *trace, const ms_layer *layer,
                            const uint32_t *in, uint32_t *out)
{
    MS_TRY(ms_layers_need_float(trace, layer, in[0]));
    uint32_t target = target_like(trace, in[0]);
    ms_trace_begin(trace, "aten::xlogy");
    ms_trace_read(trace, target);
    uint32_t entropy = ms_trace_make_like(trace, "entropy", target);
    ms_trace_end(trace, 0, false);
    uint32_t cross = ms_pointwise_mul(trace, target, in[0]);
    uint32_t each = ms_pointwise_sub(trace, entropy, cross);
    uint32_t sum = sum_of_all(trace, each);
    ms_trace_drop(trace, entropy);
    ms_trace_drop(trace, cross);
    ms_trace_drop(trace, each);
    *out = trace->err ? MS_NONE : ms_pointwise_div_scalar(trace, sum);
    ms_trace_drop(trace, sum);
    return trace->err;
}

/* The op reads log-probabilities and classes; its second output is the sum of
 * the weights of the classes. */
ms_err ms_losslayers_nll(ms_trace *trace, const ms_layer *layer,
                         const uint32_t *in, uint32_t *out)
{
    ms_opcall call = {.op = "aten::nll_loss_forward", .flops = 1};
    MS_TRY(ms_layers_need_float(trace, layer, in[0]));
    uint32_t inputs[2] = {in[0], ms_losskernels_targets(trace, in[0])};
    for (uint32_t k = 0; k < MS_OPCALL_OUTPUTS; k++)
        call.made[k].dtype = ms_trace_at(trace, in[0])->dtype;
    *out = ms_opcall_run(trace, &call, inputs, 2);
    return trace->err;
}

/* ---- spans --------------------------------------------------------------- */

/* x[:, :, piece].squeeze(-1).contiguous() */
static uint32_t column_of(ms_trace *trace, uint32_t piece)
{
    if (trace->err)
        return MS_NONE;
    const ms_tensor *x = ms_trace_at(trace, piece);
    int64_t dims[2] = {x->size[0], x->size[1]};
    uint32_t view = ms_view_reshape(trace, piece, 2, dims);
    return ms_trace_rebind(trace, view, ms_view_contiguous(trace, view));
}

/* positions.clamp(0, length): a position outside of the sequence becomes
 * length, the index that cross entropy ignores (transformers,
 * loss/loss_utils.py, ForQuestionAnsweringLoss). */
static uint32_t clamped_index(ms_trace *trace, const char *role, int64_t batch)
{
    uint32_t given = ms_trace_input(trace, role, MS_INT64, 1, &batch);
    ms_trace_begin(trace, "aten::clamp");
    ms_trace_read(trace, given);
    uint32_t place = ms_trace_make_like(trace, "place", given);
    ms_trace_end(trace, 0, false);
    return place;
}

/* The loss of answers to questions: a cross entropy over the tokens for where
 * an answer starts, another for where it ends, and the mean of both. */
ms_err ms_losslayers_span(ms_trace *trace, const ms_layer *layer,
                          const uint32_t *in, uint32_t *out)
{
    static const char *const roles[2] = {"start_positions", "end_positions"};
    const int64_t sizes[2] = {1, 1};
    uint32_t pieces[2], columns[2], losses[2];
    const ms_tensor *x = ms_trace_at(trace, in[0]);
    int64_t batch = x->size[0];
    MS_TRY(ms_layers_need_float(trace, layer, in[0]));
    if (x->n_dims != 3 || x->size[2] != 2)
        return ms_trace_fail(trace, layer, "give it a linear layer of 2",
                             "\"%s\" wants logits of start and end for each "
                             "token, which \"%s\" does not give",
                             layer->name,
                             ms_layers_source(trace->settings, layer, 0));
    ms_split_sizes(trace, in[0], 2, 2, sizes, pieces);
    for (int i = 0; i < 2; i++)
        columns[i] = column_of(trace, pieces[i]);
    ms_split_drop(trace, 2, pieces);
    for (int i = 0; i < 2 && !trace->err; i++) {
        uint32_t place = clamped_index(trace, roles[i], batch);
        losses[i] = ms_loss_cross_entropy(trace, columns[i], place);
        ms_trace_drop(trace, place);
    }
    if (trace->err)
        return trace->err;
    uint32_t sum = ms_pointwise_add(trace, losses[0], losses[1]);
    *out = ms_pointwise_div_scalar(trace, sum);
    ms_trace_drop(trace, sum);
    for (int i = 0; i < 2; i++) {
        ms_trace_drop(trace, losses[i]);
        ms_trace_drop(trace, columns[i]);
    }
    return trace->err;
}

/* ---- several ------------------------------------------------------------- */

/* first + number second + number third ... */
ms_err ms_losslayers_total(ms_trace *trace, const ms_layer *layer,
                           const uint32_t *in, uint32_t *out)
{
    uint32_t sum = in[0];
    for (uint32_t i = 0; i < layer->n_in; i++)
        if (!trace->err && ms_trace_at(trace, in[i])->n_dims > 0)
            return ms_trace_fail(trace, layer, "give it losses",
                                 "\"%s\" adds losses, but \"%s\" is none",
                                 layer->name,
                                 ms_layers_source(trace->settings, layer, i));
    ms_trace_ref(trace, sum);
    for (uint32_t i = 1; i < layer->n_in; i++) {
        uint32_t part = ms_pointwise_mul_scalar(trace, in[i]);
        sum = ms_trace_rebind(trace, sum, ms_pointwise_add(trace, sum, part));
        ms_trace_drop(trace, part);
    }
    *out = sum;
    return trace->err;
}
