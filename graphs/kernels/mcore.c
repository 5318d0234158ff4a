/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What the settings megatron.* mean outside attention. */
#include "graphs/kernels/mcore.h"
#include "graphs/formats/quantize.h"
#include "graphs/layers/headloss.h"
#include "graphs/layers/layers.h"
#include "graphs/machines/overheads.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#define ROW(member) (uint32_t)(offsetof(ms_training, member) / sizeof(int64_t))
#define MIB (UINT64_C(1) << 20)

static bool was_set(const ms_training *training, uint32_t row)
{
    return training->was_set >> row & 1;
}

/* ---- settings ------------------------------------------------------------ */

static ms_err refuse(const char *key, const char *what, const char *hint,
                     ms_fault *fault)
{
    return ms_fail(fault, MS_EUSAGE, key, hint, "%s", what);
}

/* megatron.* without these kernels. */
static ms_err check_idle(const ms_training *training, ms_fault *fault)
{
    char key[64];

    for (uint32_t row = ROW(mcore_spec); row <= ROW(mcore_deterministic);
         row++) {
        if (!was_set(training, row))
            continue;
        snprintf(key, sizeof key, "megatron.%s", ms_training_fields[row].name);
        return refuse(key,
                      "it changes nothing without training.kernels=megatron",
                      "add --kernels megatron", fault);
    }
    return MS_OK;
}

/* core/transformer/transformer_config.py, training/arguments.py. */
static ms_err check_pairs(const ms_training *training, ms_fault *fault)
{
    bool local = training->mcore_spec == MS_MCORE_LOCAL;

    if (local && was_set(training, ROW(mcore_attention)))
        return refuse("megatron.attention",
                      "it chooses a backend of Transformer Engine, which "
                      "megatron.spec=local does without",
                      "leave one out", fault);
    if (training->mcore_deterministic == 1 &&
        training->mcore_loss != MS_MCORE_LOSS_UNFUSED)
        return refuse("megatron.deterministic",
                      "Megatron refuses deterministic_mode with a fused loss",
                      "leave megatron.loss out", fault);
    return MS_OK;
}

ms_err ms_mcore_check(const ms_training *training, ms_fault *fault)
{
    bool autocast = training->precision == MS_AUTOCAST_FP16 ||
                    training->precision == MS_AUTOCAST_BF16;

    if (training->kernels != MS_MEGATRON)
        return check_idle(training, fault);
    if (training->device == 1)
        return refuse("training.kernels", "Megatron's kernels run on CUDA only",
                      "--set training.device=cuda", fault);
    if (autocast)
        return refuse("training.precision",
                      "autocast is not how Megatron casts: its weights are of "
                      "16 bits",
                      "--precision bf16-mixed or fp16-mixed", fault);
    if (training->attention_kernel > 0 || training->rotary_kernel > 0)
        return refuse(training->attention_kernel > 0
                          ? "training.attention_kernel"
                          : "training.rotary_kernel",
                      "Megatron's attention, rotation in it, is what "
                      "megatron.attention says",
                      "leave it out", fault);
    if (training->optimizer_in_backward == 1)
        return refuse("training.optimizer_in_backward",
                      "Megatron's gradients stay in main_grad to the step",
                      "leave it out", fault);
    return check_pairs(training, fault);
}

void ms_mcore_settle(ms_training *training)
{
    if (training->kernels == MS_MEGATRON &&
        !was_set(training, ROW(hold_output)))
        training->hold_output = MS_HOLD_NONE;
}

/* ---- gradients ----------------------------------------------------------- */

/* Who shares gradients or weights has buffers of its own for them. */
static bool has_main_grad(const ms_step_settings *settings)
{
    const ms_shape *shape = settings->shape;

    return ms_mcore_is(settings) && settings->train && !shape->part_is_master &&
           !shape->flat_step.used && shape->shared <= MS_SHARED_OPTIMIZER &&
           shape->offload.gradients == MS_DEVICE_POOL;
}

bool ms_mcore_holds_gradients(const ms_step_settings *settings)
{
    return has_main_grad(settings);
}

bool ms_mcore_fp32_gradients(const ms_step_settings *settings)
{
    return has_main_grad(settings) &&
           settings->training->precision == MS_BF16_MIXED;
}

bool ms_mcore_casts_gradients(const ms_trace *trace)
{
    return has_main_grad(trace->settings) && trace->grad_dtype == MS_FLOAT16;
}

void ms_mcore_add_wgrad(ms_trace *trace, uint32_t weight)
{
    if (trace->err || !has_main_grad(trace->settings) ||
        trace->settings->training->mcore_wgrad != MS_MCORE_WGRAD_FUSED)
        return;
    const ms_tensor *tensor = ms_trace_at(trace, weight);
    if (tensor->parameter == MS_NONE)
        return;
    ms_parameter *parameter = &trace->parameters[tensor->parameter];
    if (parameter->grad_storage == MS_NONE)
        return;
    uint64_t bytes = trace->graph.storage_bytes[parameter->grad_storage];
    ms_trace_read_storage(trace, parameter->grad_storage, bytes);
    uint64_t *written = &trace->graph.op_write_bytes[trace->graph.n_ops - 1];
    *written += bytes; /* and nothing to the tensor that stands for it */
    *written -= ms_trace_bytes(tensor);
    parameter->added = true;
}

/* ---- attention's backend ------------------------------------------------- */

/* TE, dot_product_attention/utils.py, get_attention_backend. */
int64_t ms_mcore_backend(const ms_step_settings *settings)
{
    const ms_training *training = settings->training;
    uint32_t capability = settings->device->compute_capability;
    bool late = capability >= MS_BLACKWELL;

    if (training->mcore_spec == MS_MCORE_LOCAL)
        return MS_MCORE_UNFUSED;
    if (training->mcore_attention != MS_MCORE_AUTO)
        return training->mcore_attention;
    if (capability < MS_HOPPER || (late && training->mcore_deterministic == 1))
        return MS_MCORE_FLASH;
    return MS_MCORE_FUSED;
}

void ms_mcore_kernels(ms_trace *trace)
{
    const ms_training *training = trace->settings->training;

    if (!ms_mcore_is(trace->settings))
        return;
    if (ms_mcore_backend(trace->settings) == MS_MCORE_UNFUSED)
        trace->kernels.attention = MS_ATTENTION_EAGER;
    if (training->loss_kernel == MS_LOSS_AUTO &&
        training->mcore_loss == MS_MCORE_LOSS_TE)
        trace->kernels.loss = MS_LOSS_LIGER;
}

/* ---- the step's inputs --------------------------------------------------- */

static uint32_t input(ms_trace *trace, const char *role, uint8_t dtype,
                      uint32_t n_dims, const int64_t *dims)
{
    uint32_t t = ms_trace_input(trace, role, dtype, n_dims, dims);

    if (t != MS_NONE)
        trace->graph.storage_layer[ms_trace_at(trace, t)->storage] = MS_NONE;
    return t;
}

/* pretrain_gpt.py, get_batch. */
void ms_mcore_batch(ms_trace *trace)
{
    int64_t batch = (int64_t)trace->settings->batch,
            sequence = (int64_t)trace->settings->sequence;
    int64_t dims[4] = {batch, 1, sequence, sequence};
    int64_t tokens[2] = {batch, sequence};

    if (!ms_mcore_is(trace->settings) || !trace->settings->model->tokens)
        return;
    trace->positions = input(trace, "position_ids", MS_INT64, 2, tokens);
    input(trace, "loss_mask", MS_FLOAT32, 2, tokens);
    if (trace->settings->training->mcore_mask == MS_MCORE_MASK)
        input(trace, "attention_mask", MS_BYTE, 4, dims);
}

/* ---- workspaces ---------------------------------------------------------- */

#define DETERMINISTIC_BYTES (32 * MIB) /* :4096:8 */

uint64_t ms_mcore_cublas_bytes(const ms_step_settings *settings)
{
    const ms_training *training = settings->training;

    if (ms_mcore_is(settings) && training->mcore_deterministic == 1 &&
        training->cublas_workspace < 0)
        return DETERMINISTIC_BYTES;
    return ms_overheads_workspace(settings->device, training);
}

bool ms_mcore_is_te_product(const ms_trace *trace, uint32_t op)
{
    const ms_model *model = trace->settings->model;
    uint32_t layer = trace->graph.op_layer[op];

    return ms_mcore_is(trace->settings) &&
           trace->settings->training->mcore_spec != MS_MCORE_LOCAL &&
           !model->ops && layer < model->n_layers &&
           model->layers[layer].block != MS_NONE;
}

/* ---- dropout and addition ------------------------------------------------ */

static bool is_type(const ms_layer *layer, const char *type)
{
    return strcmp(layer->kind->type, type) == 0;
}

static bool drops(const ms_trace *trace, const ms_layer *layer)
{
    return trace->settings->train && is_type(layer, "dropout") &&
           layer->field[0].f > 0 && !layer->field[1].b; /* not in place */
}

/* The one layer that reads it, or NULL. */
static const ms_layer *reader_of(const ms_model *model, uint32_t row)
{
    const ms_layer *reader = NULL;

    for (uint32_t l = 0; l < model->n_layers; l++)
        for (uint32_t k = 0; k < model->layers[l].n_in; k++) {
            if (model->edges[model->layers[l].in_at + k] != row)
                continue;
            if (reader)
                return NULL;
            reader = &model->layers[l];
        }
    return reader;
}

/* The addition of two that alone reads this dropout, or NULL. */
static const ms_layer *addition_of(const ms_trace *trace, uint32_t row)
{
    const ms_model *model = trace->settings->model;

    if (row == MS_NONE || !drops(trace, &model->layers[row]))
        return NULL;
    const ms_layer *reader = reader_of(model, row);
    return reader && is_type(reader, "add") && reader->n_in == 2 ? reader
                                                                 : NULL;
}

/* Of two dropouts the second. */
bool ms_mcore_is_deferred(const ms_trace *trace, const ms_layer *add,
                          uint32_t i)
{
    const uint32_t *from = &trace->settings->model->edges[add->in_at];

    return ms_mcore_is(trace->settings) && is_type(add, "add") &&
           add->n_in == 2 && addition_of(trace, from[i]) == add &&
           (i == 1 || addition_of(trace, from[1]) != add);
}

bool ms_mcore_defers_dropout(const ms_trace *trace, const ms_layer *layer)
{
    uint32_t row = (uint32_t)(layer - trace->settings->model->layers);

    if (!ms_mcore_is(trace->settings))
        return false;
    const ms_layer *add = addition_of(trace, row);
    if (!add)
        return false;
    return ms_mcore_is_deferred(
        trace, add, trace->settings->model->edges[add->in_at] == row ? 0 : 1);
}

/* Inputs: x, residual. */
static void dropout_add_backward(ms_trace *trace, const ms_node *node,
                                 const uint32_t *grads, uint32_t *out)
{
    double elements = (double)ms_trace_elements(ms_trace_at(trace, grads[0]));

    if (node->needs[0]) {
        ms_trace_begin_backward(trace, node, grads[0]);
        out[0] = ms_trace_make_like(trace, "grad", node->input[0]);
        ms_trace_end(trace, elements, false);
    }
    if (node->needs[1]) {
        ms_trace_ref(trace, grads[0]);
        out[1] = grads[0];
    }
}

static const ms_rule dropout_add_rule = {"BiasDropoutAddBackward",
                                         "bias_dropout_add_backward",
                                         dropout_add_backward};

uint32_t ms_mcore_dropout_add(ms_trace *trace, uint32_t x, uint32_t residual)
{
    uint32_t inputs[2] = {x, residual};

    if (trace->err)
        return MS_NONE;
    ms_tensor tensor = *ms_trace_at(trace, x);
    ms_trace_begin(trace, "bias_dropout_add");
    ms_trace_read(trace, x);
    ms_trace_read(trace, residual);
    uint32_t mask =
        ms_trace_make(trace, "mask", MS_BYTE, tensor.n_dims, tensor.size);
    uint32_t y = ms_trace_make_like(trace, "out", residual);
    ms_trace_end(trace, 2 * (double)ms_trace_elements(&tensor), false);
    uint32_t n = ms_trace_node(trace, &dropout_add_rule, inputs, 2, &y, 1);
    ms_trace_save(trace, n, mask);
    ms_trace_drop(trace, mask);
    return y;
}
