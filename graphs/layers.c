/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The table of layer types: fields as data, forward as the Python code that
 * people write, variable by variable. */
#include "graphs/layers.h"

#include <stdio.h>
#include <string.h>

/* ---- helpers ------------------------------------------------------------- */

ms_err ms_layers_need_float(ms_trace *trace, const ms_layer *layer, uint32_t x)
{
    if (trace->err)
        return trace->err;
    const ms_tensor *tensor = ms_trace_at(trace, x);
    if (tensor->dtype != MS_INT64 && tensor->n_dims > 0)
        return MS_OK;
    return ms_trace_fail(trace, layer, "put an embedding layer in between",
                         "layer \"%s\" reads token ids, but its type works on "
                         "numbers",
                         layer->name);
}

const char *ms_layers_source(const ms_trace *trace, const ms_layer *layer,
                             uint32_t i)
{
    uint32_t from = trace->model->edges[layer->in_at + i];

    return from == MS_NONE ? "input" : trace->model->layers[from].name;
}

const char *ms_layers_shape(const ms_tensor *tensor, char text[MS_LAYERS_SHAPE])
{
    size_t n = 0;

    text[n++] = '[';
    for (uint32_t d = 1; d < tensor->n_dims; d++)
        n += (size_t)snprintf(text + n, MS_LAYERS_SHAPE - n, "%s%lld",
                              d > 1 ? ", " : "", (long long)tensor->size[d]);
    text[n++] = ']';
    text[n] = '\0';
    return text;
}

int64_t ms_layers_last_dim(ms_trace *trace, uint32_t x)
{
    const ms_tensor *tensor = ms_trace_at(trace, x);

    return tensor->size[tensor->n_dims - 1];
}

uint32_t ms_layers_vector(ms_trace *trace, const char *role, int64_t n)
{
    return ms_trace_parameter(trace, role, 1, &n);
}

/* ---- the table ----------------------------------------------------------- */

#define FIELDS(table) sizeof(table) / sizeof *(table), table
#define IN_PLACE FIELDS(ms_pointlayers_in_place_fields)
#define CONV FIELDS(ms_convlayers_conv_fields)
#define POOL FIELDS(ms_convlayers_pool_fields)

const ms_layer_kind ms_layer_kinds[] = {
    {"embedding", "look rows of a table up", 1, 1,
     FIELDS(ms_denselayers_embedding_fields), ms_denselayers_embedding},
    {"linear", "x W^T + b", 1, 1, FIELDS(ms_denselayers_linear_fields),
     ms_denselayers_linear},
    {"relu", "max(x, 0); saves its output", 1, 1, IN_PLACE,
     ms_pointlayers_relu},
    {"gelu", "exact GELU; saves its input", 1, 1, 0, NULL, ms_pointlayers_gelu},
    {"gelu_new", "GPT-2's tanh GELU; eager: seven ops", 1, 1, 0, NULL,
     ms_pointlayers_gelu_new},
    {"silu", "x sigmoid(x); saves its input", 1, 1, IN_PLACE,
     ms_pointlayers_silu},
    {"sigmoid", "saves its output", 1, 1, IN_PLACE, ms_pointlayers_sigmoid},
    {"tanh", "saves its output", 1, 1, IN_PLACE, ms_pointlayers_tanh},
    {"leaky_relu", "saves its input", 1, 1, IN_PLACE,
     ms_pointlayers_leaky_relu},
    {"elu", "saves its input", 1, 1, IN_PLACE, ms_pointlayers_elu},
    {"hardswish", "saves its input", 1, 1, IN_PLACE, ms_pointlayers_hardswish},
    {"relu6", "min(max(x, 0), 6); saves its input", 1, 1, IN_PLACE,
     ms_pointlayers_relu6},
    {"softmax", "over the last dimension; saves its output", 1, 1, 0, NULL,
     ms_pointlayers_softmax},
    {"dropout", "saves a mask: 1 byte per element (CPU: of x's dtype)", 1, 1,
     FIELDS(ms_pointlayers_dropout_fields), ms_pointlayers_dropout},
    {"layer_norm", "saves its input, mean and rstd", 1, 1,
     FIELDS(ms_normlayers_affine_fields), ms_normlayers_layer},
    {"rms_norm", "saves its input and rstd; eager: six ops", 1, 1, 0, NULL,
     ms_normlayers_rms},
    {"batch_norm", "per channel; saves its input, mean and inverse deviation",
     1, 1, FIELDS(ms_normlayers_batch_fields), ms_normlayers_batch},
    {"group_norm", "per group of channels; saves its input, mean and rstd", 1,
     1, FIELDS(ms_normlayers_group_fields), ms_normlayers_group},
    {"attention", "self-attention with its projections", 1, 1,
     FIELDS(ms_selfattention_fields), ms_selfattention_forward},
    {"swiglu", "silu(gate) * up; saves gate and up", 2, 2, 0, NULL,
     ms_pointlayers_swiglu},
    {"geglu", "gelu(gate) * up; saves gate and up", 2, 2, 0, NULL,
     ms_pointlayers_geglu},
    {"conv1d", "of [channels, length]; saves its input", 1, 1, CONV,
     ms_convlayers_conv1d},
    {"conv2d", "of [channels, height, width]; saves its input", 1, 1, CONV,
     ms_convlayers_conv2d},
    {"conv3d", "of [channels, depth, height, width]; saves its input", 1, 1,
     CONV, ms_convlayers_conv3d},
    {"conv_transpose2d", "of [channels, height, width]; saves its input", 1, 1,
     CONV, ms_convlayers_conv_transpose2d},
    {"max_pool2d", "saves its input and 8-byte indices", 1, 1, POOL,
     ms_convlayers_max_pool2d},
    {"avg_pool2d", "saves its input", 1, 1, POOL, ms_convlayers_avg_pool2d},
    {"adaptive_avg_pool2d", "to a given size; saves its input", 1, 1,
     FIELDS(ms_convlayers_adaptive_fields), ms_convlayers_adaptive_avg_pool2d},
    {"upsample", "of [channels, height, width]; saves nothing", 1, 1,
     FIELDS(ms_convlayers_upsample_fields), ms_convlayers_upsample},
    {"add", "a + b, broadcasting", 2, 2, IN_PLACE, ms_pointlayers_add},
    {"sub", "a - b, broadcasting", 2, 2, 0, NULL, ms_pointlayers_sub},
    {"mul", "a * b, broadcasting; saves both", 2, 2, 0, NULL,
     ms_pointlayers_mul},
    {"div", "a / b, broadcasting; saves both", 2, 2, 0, NULL,
     ms_pointlayers_div},
    {"cat", "inputs end to end: a copy", 2, MS_ANY_INPUTS,
     FIELDS(ms_shapelayers_cat_fields), ms_shapelayers_cat},
    {"select", "one position of the sequence", 1, 1,
     FIELDS(ms_shapelayers_select_fields), ms_shapelayers_select},
    {"slice", "the first elements of a dimension: a view", 1, 1,
     FIELDS(ms_shapelayers_slice_fields), ms_shapelayers_slice},
    {"flatten", "all dimensions of a sample into one", 1, 1, 0, NULL,
     ms_shapelayers_flatten},
    {"reshape", "other sizes; a view where strides allow it", 1, 1,
     FIELDS(ms_shapelayers_reshape_fields), ms_shapelayers_reshape},
    {"permute", "dimensions in another order: a view", 1, 1,
     FIELDS(ms_shapelayers_permute_fields), ms_shapelayers_permute},
    {"cross_entropy", "loss of class logits", 1, 1,
     FIELDS(ms_losslayers_cross_entropy_fields), ms_losslayers_cross_entropy},
    {"mse_loss", "mean squared error against a target of x's shape", 1, 1, 0,
     NULL, ms_losslayers_mse},
    {"mean", "the mean as a loss", 1, 1, 0, NULL, ms_losslayers_mean},
    {"parameters", "states only: weights that no op reads", 0, 0,
     FIELDS(ms_rawlayers_parameters_fields), ms_rawlayers_parameters},
    {"op", "an op of your own: one output", 1, 1,
     FIELDS(ms_rawlayers_op_fields), ms_rawlayers_op},
};
const uint32_t ms_layer_n_kinds =
    sizeof ms_layer_kinds / sizeof *ms_layer_kinds;

uint32_t ms_layer_find(const char *type)
{
    for (uint32_t k = 0; k < ms_layer_n_kinds; k++)
        if (strcmp(ms_layer_kinds[k].type, type) == 0)
            return k;
    return MS_NONE;
}
