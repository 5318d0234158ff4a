/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The table of layer types: fields as data, forward as the Python code that
 * people write, variable by variable. */
#include "graphs/layers.h"

#include <string.h>

/* ---- helpers ------------------------------------------------------------- */

static const ms_tensor *at(ms_trace *trace, uint32_t tensor)
{
    return ms_trace_at(trace, tensor);
}

static int64_t last_dim(const ms_tensor *tensor)
{
    return tensor->size[tensor->n_dims - 1];
}

ms_err ms_layers_need_float(ms_trace *trace, const ms_layer *layer, uint32_t x)
{
    if (trace->err)
        return trace->err;
    if (at(trace, x)->dtype != MS_INT64 && at(trace, x)->n_dims > 0)
        return MS_OK;
    return ms_trace_fail(trace, layer, "put an embedding layer in between",
                         "layer \"%s\" reads token ids, but its type works on "
                         "numbers",
                         layer->name);
}

static uint32_t vector(ms_trace *trace, const char *role, int64_t n)
{
    return ms_trace_parameter(trace, role, 1, &n);
}

/* ---- embedding, linear --------------------------------------------------- */

enum { EMBEDDING_VOCAB, EMBEDDING_DIM, EMBEDDING_IDS };
enum { IDS_TOKENS, IDS_POSITIONS, IDS_TYPES };
static const ms_field embedding_fields[] = {
    {.name = "vocab",
     .type = MS_INT,
     .required = true,
     .low = 1,
     .high = INT64_C(1) << 31,
     .help = "rows of the table"},
    {.name = "dim",
     .type = MS_INT,
     .required = true,
     .low = 1,
     .high = INT64_C(1) << 24,
     .help = "width of a row"},
    {.name = "ids",
     .type = MS_WORD,
     .words = "tokens|positions|types",
     .help = "what indexes the table"},
};

static ms_err embedding_forward(ms_trace *trace, const ms_layer *layer,
                                const uint32_t *in, uint32_t *out)
{
    int64_t dims[2] = {layer->field[EMBEDDING_VOCAB].i,
                       layer->field[EMBEDDING_DIM].i};
    const ms_tensor *ids = at(trace, in[0]);

    if (ids->dtype != MS_INT64 || ids->n_dims != 2)
        return ms_trace_fail(
            trace, layer, "feed it the model's input of token ids",
            "embedding \"%s\" needs token ids [batch, sequence]", layer->name);
    int64_t sequence = ids->size[1];
    uint32_t weight = ms_trace_parameter(trace, "weight", 2, dims);
    trace->layer_weight[trace->layer] = weight;
    switch (layer->field[EMBEDDING_IDS].i) {
    case IDS_POSITIONS: {
        uint32_t positions = ms_lookup_arange(trace, sequence);
        *out = ms_lookup_embedding(trace, weight, positions);
        ms_trace_drop(trace, positions);
        break;
    }
    case IDS_TYPES: {
        int64_t zeros[2] = {1, sequence};
        uint32_t types =
            ms_trace_buffer(trace, "token_type_ids", MS_INT64, 2, zeros);
        *out = ms_lookup_embedding(trace, weight, types);
        break;
    }
    default:
        *out = ms_lookup_embedding(trace, weight, in[0]);
    }
    return trace->err;
}

enum { LINEAR_OUT, LINEAR_BIAS, LINEAR_TIED };
static const ms_field linear_fields[] = {
    {.name = "out",
     .type = MS_INT,
     .required = true,
     .low = 1,
     .high = INT64_C(1) << 31,
     .help = "output features"},
    {.name = "bias", .type = MS_BOOL, .fallback.b = true, .help = "add a bias"},
    {.name = "tied",
     .type = MS_NAME,
     .help = "embedding whose weight this layer shares"},
};

static ms_err tied_weight(ms_trace *trace, const ms_layer *layer,
                          const char *name, const int64_t *dims,
                          uint32_t *weight)
{
    const ms_model *model = trace->model;

    for (uint32_t i = 0; i < model->n_layers; i++) {
        uint32_t w = trace->layer_weight[i];
        if (w == MS_NONE || strcmp(model->layers[i].name, name) != 0)
            continue;
        const ms_tensor *shared = at(trace, w);
        if (shared->size[0] != dims[0] || shared->size[1] != dims[1])
            return ms_trace_fail(
                trace, layer, "tie layers of one shape",
                "\"%s\" is tied to \"%s\", but their weights are "
                "[%lld, %lld] and [%lld, %lld]",
                layer->name, name, (long long)dims[0], (long long)dims[1],
                (long long)shared->size[0], (long long)shared->size[1]);
        *weight = w;
        return MS_OK;
    }
    return ms_trace_fail(trace, layer,
                         "name an embedding or linear layer that comes before",
                         "\"%s\" is tied to \"%s\", which has no weight here",
                         layer->name, name);
}

static ms_err linear_forward(ms_trace *trace, const ms_layer *layer,
                             const uint32_t *in, uint32_t *out)
{
    const char *tied = layer->field[LINEAR_TIED].s;
    uint32_t weight = MS_NONE, bias = MS_NONE;

    MS_TRY(ms_layers_need_float(trace, layer, in[0]));
    int64_t dims[2] = {layer->field[LINEAR_OUT].i, last_dim(at(trace, in[0]))};
    if (tied && *tied)
        MS_TRY(tied_weight(trace, layer, tied, dims, &weight));
    else
        weight = ms_trace_parameter(trace, "weight", 2, dims);
    if (layer->field[LINEAR_BIAS].b)
        bias = vector(trace, "bias", dims[0]);
    trace->layer_weight[trace->layer] = weight;
    *out = ms_matmul_linear(trace, in[0], weight, bias);
    return trace->err;
}

/* ---- activations --------------------------------------------------------- */

static ms_err unary(ms_trace *trace, const ms_layer *layer,
                    const ms_unary *kind, uint32_t x, uint32_t *out)
{
    MS_TRY(ms_layers_need_float(trace, layer, x));
    *out = ms_pointwise_unary(trace, kind, x);
    return trace->err;
}

#define UNARY_LAYER(name)                                                      \
    static ms_err name##_forward(ms_trace *trace, const ms_layer *layer,       \
                                 const uint32_t *in, uint32_t *out)            \
    {                                                                          \
        return unary(trace, layer, &ms_pointwise_##name, in[0], out);          \
    }

UNARY_LAYER(relu)
UNARY_LAYER(gelu)
UNARY_LAYER(silu)
UNARY_LAYER(sigmoid)
UNARY_LAYER(tanh)

/* GPT-2's tanh approximation: seven ops where kernels are eager, else one. */
static ms_err gelu_new_forward(ms_trace *trace, const ms_layer *layer,
                               const uint32_t *in, uint32_t *out)
{
    MS_TRY(ms_layers_need_float(trace, layer, in[0]));
    if (trace->training->kernels == MS_EAGER)
        *out = ms_pointwise_gelu_new(trace, in[0]);
    else
        *out = ms_pointwise_unary(trace, &ms_pointwise_gelu, in[0]);
    return trace->err;
}

static const ms_field dropout_fields[] = {
    {.name = "p",
     .type = MS_FLOAT,
     .fallback.f = 0.1,
     .low = 0,
     .high = 1,
     .help = "probability of a zero; 0 keeps the input itself"},
};

static ms_err dropout_forward(ms_trace *trace, const ms_layer *layer,
                              const uint32_t *in, uint32_t *out)
{
    MS_TRY(ms_layers_need_float(trace, layer, in[0]));
    *out = ms_pointwise_dropout(trace, in[0], layer->field[0].f);
    return trace->err;
}

static const ms_field layer_norm_fields[] = {
    {.name = "affine",
     .type = MS_BOOL,
     .fallback.b = true,
     .help = "learned scale and shift"},
};

static ms_err layer_norm_forward(ms_trace *trace, const ms_layer *layer,
                                 const uint32_t *in, uint32_t *out)
{
    uint32_t weight = MS_NONE, bias = MS_NONE;

    MS_TRY(ms_layers_need_float(trace, layer, in[0]));
    if (layer->field[0].b) {
        weight = vector(trace, "weight", last_dim(at(trace, in[0])));
        bias = vector(trace, "bias", last_dim(at(trace, in[0])));
    }
    *out = ms_norm_layer(trace, in[0], weight, bias);
    return trace->err;
}

/* ---- joins --------------------------------------------------------------- */

/* b's sizes, aligned at the end, are a's or 1. */
static bool broadcasts(const ms_tensor *a, const ms_tensor *b)
{
    if (b->n_dims > a->n_dims)
        return false;
    for (uint32_t d = 1; d <= b->n_dims; d++) {
        int64_t size = b->size[b->n_dims - d];
        if (size != 1 && size != a->size[a->n_dims - d])
            return false;
    }
    return true;
}

static ms_err need_same_shape(ms_trace *trace, const ms_layer *layer,
                              const uint32_t *in)
{
    const ms_model *model = trace->model;
    const char *names[2];

    MS_TRY(ms_layers_need_float(trace, layer, in[0]));
    MS_TRY(ms_layers_need_float(trace, layer, in[1]));
    if (broadcasts(at(trace, in[0]), at(trace, in[1])) ||
        broadcasts(at(trace, in[1]), at(trace, in[0])))
        return MS_OK;
    for (uint32_t i = 0; i < 2; i++) {
        uint32_t from = model->edges[layer->in_at + i];
        names[i] = from == MS_NONE ? "input" : model->layers[from].name;
    }
    return ms_trace_fail(
        trace, layer, "both inputs need one shape, or one that broadcasts",
        "\"%s\" joins \"%s\" and \"%s\", whose shapes do not "
        "agree (last dimensions %lld and %lld)",
        layer->name, names[0], names[1], (long long)last_dim(at(trace, in[0])),
        (long long)last_dim(at(trace, in[1])));
}

static ms_err add_forward(ms_trace *trace, const ms_layer *layer,
                          const uint32_t *in, uint32_t *out)
{
    MS_TRY(need_same_shape(trace, layer, in));
    *out = ms_pointwise_add(trace, in[0], in[1]);
    return trace->err;
}

static ms_err mul_forward(ms_trace *trace, const ms_layer *layer,
                          const uint32_t *in, uint32_t *out)
{
    MS_TRY(need_same_shape(trace, layer, in));
    *out = ms_pointwise_mul(trace, in[0], in[1]);
    return trace->err;
}

static const ms_field select_fields[] = {
    {.name = "index",
     .type = MS_INT,
     .low = 0,
     .high = INT64_C(1) << 31,
     .help = "which position of the sequence"},
};

static ms_err select_forward(ms_trace *trace, const ms_layer *layer,
                             const uint32_t *in, uint32_t *out)
{
    MS_TRY(ms_layers_need_float(trace, layer, in[0]));
    const ms_tensor *x = at(trace, in[0]);
    if (x->n_dims < 3 || layer->field[0].i >= x->size[1])
        return ms_trace_fail(trace, layer, "index counts from 0",
                             "\"%s\" selects position %lld of a sequence that "
                             "is shorter",
                             layer->name, (long long)layer->field[0].i);
    *out = ms_view_select(trace, in[0], layer->field[0].i);
    return trace->err;
}

/* ---- losses -------------------------------------------------------------- */

static const ms_field cross_entropy_fields[] = {
    {.name = "upcast",
     .type = MS_BOOL,
     .help = "logits.float() first where they are 16-bit"},
};

static ms_err cross_entropy_forward(ms_trace *trace, const ms_layer *layer,
                                    const uint32_t *in, uint32_t *out)
{
    MS_TRY(ms_layers_need_float(trace, layer, in[0]));
    const ms_tensor *logits = at(trace, in[0]);
    uint32_t target =
        ms_trace_input(trace, "target", MS_INT64,
                       (uint32_t)(logits->n_dims - 1), logits->size);
    if (trace->training->kernels == MS_KORTHIKANTI) {
        *out = ms_loss_fused_cross_entropy(trace, in[0], target);
        return trace->err;
    }
    uint32_t x = in[0];
    if (layer->field[0].b)
        x = ms_pointwise_cast(trace, in[0], MS_FLOAT32);
    else
        ms_trace_ref(trace, x);
    *out = ms_loss_cross_entropy(trace, x, target);
    ms_trace_drop(trace, x);
    return trace->err;
}

static ms_err mse_loss_forward(ms_trace *trace, const ms_layer *layer,
                               const uint32_t *in, uint32_t *out)
{
    MS_TRY(ms_layers_need_float(trace, layer, in[0]));
    const ms_tensor *x = at(trace, in[0]);
    uint32_t target =
        ms_trace_input(trace, "target", x->dtype, x->n_dims, x->size);
    *out = ms_loss_mse(trace, in[0], target);
    return trace->err;
}

static ms_err mean_forward(ms_trace *trace, const ms_layer *layer,
                           const uint32_t *in, uint32_t *out)
{
    MS_TRY(ms_layers_need_float(trace, layer, in[0]));
    *out = ms_loss_mean(trace, in[0]);
    return trace->err;
}

/* ---- raw ----------------------------------------------------------------- */

static const ms_field parameters_fields[] = {
    {.name = "count",
     .type = MS_INT,
     .required = true,
     .low = 1,
     .high = INT64_C(1) << 50,
     .help = "elements"},
};

static ms_err parameters_forward(ms_trace *trace, const ms_layer *layer,
                                 const uint32_t *in, uint32_t *out)
{
    (void)in;
    *out = MS_NONE;
    uint32_t states = vector(trace, "weight", layer->field[0].i);
    if (!trace->err && trace->train)
        ms_raw_states(trace, states);
    return trace->err;
}

enum { OP_SHAPE, OP_SAVES, OP_FLOPS, OP_WORKSPACE };
enum { SAVES_NONE, SAVES_INPUT, SAVES_OUTPUT, SAVES_BOTH };
static const ms_field op_fields[] = {
    {.name = "shape",
     .type = MS_INTS,
     .required = true,
     .low = 1,
     .high = INT64_C(1) << 50,
     .help = "sizes of the output of one sample"},
    {.name = "saves",
     .type = MS_WORD,
     .words = "none|input|output|both",
     .help = "what backward needs"},
    {.name = "flops",
     .type = MS_FLOAT,
     .low = 0,
     .high = INT64_MAX,
     .help = "FLOPs of one sample, forward; backward counts twice"},
    {.name = "forward_workspace",
     .type = MS_INT,
     .low = 0,
     .high = INT64_C(1) << 50,
     .help = "bytes that live only while it runs"},
};

static ms_err op_forward(ms_trace *trace, const ms_layer *layer,
                         const uint32_t *in, uint32_t *out)
{
    int64_t dims[MS_MAX_DIMS] = {(int64_t)trace->batch};
    int64_t saves = layer->field[OP_SAVES].i;

    if (layer->n_ints >= MS_MAX_DIMS)
        return ms_trace_fail(trace, layer, "fold some sizes into one",
                             "\"%s\" has %u dimensions; at most %u are "
                             "supported",
                             layer->name, layer->n_ints, MS_MAX_DIMS - 1);
    for (uint32_t i = 0; i < layer->n_ints; i++)
        dims[i + 1] = (int64_t)layer->ints[i];
    ms_raw raw = {.dims = dims,
                  .n_dims = layer->n_ints + 1,
                  .saves_input = saves == SAVES_INPUT || saves == SAVES_BOTH,
                  .saves_output = saves == SAVES_OUTPUT || saves == SAVES_BOTH,
                  .flops = layer->field[OP_FLOPS].f * (double)trace->batch,
                  .workspace_bytes = (uint64_t)layer->field[OP_WORKSPACE].i};
    *out = ms_raw_op(trace, in[0], &raw);
    return trace->err;
}

/* ---- the table ----------------------------------------------------------- */

#define FIELDS(table) sizeof(table) / sizeof *(table), table

const ms_layer_kind ms_layer_kinds[] = {
    {"embedding", "look rows of a table up", 1, 1, FIELDS(embedding_fields),
     embedding_forward},
    {"linear", "x W^T + b", 1, 1, FIELDS(linear_fields), linear_forward},
    {"relu", "max(x, 0); saves its output", 1, 1, 0, NULL, relu_forward},
    {"gelu", "exact GELU; saves its input", 1, 1, 0, NULL, gelu_forward},
    {"gelu_new", "GPT-2's tanh GELU; eager: seven ops", 1, 1, 0, NULL,
     gelu_new_forward},
    {"silu", "x sigmoid(x); saves its input", 1, 1, 0, NULL, silu_forward},
    {"sigmoid", "saves its output", 1, 1, 0, NULL, sigmoid_forward},
    {"tanh", "saves its output", 1, 1, 0, NULL, tanh_forward},
    {"dropout", "saves a mask: 1 byte per element (CPU: of x's dtype)", 1, 1,
     FIELDS(dropout_fields), dropout_forward},
    {"layer_norm", "saves its input, mean and rstd", 1, 1,
     FIELDS(layer_norm_fields), layer_norm_forward},
    {"attention", "multi-head attention with its four projections", 1, 1,
     MS_SELFATTENTION_FIELDS, ms_selfattention_fields,
     ms_selfattention_forward},
    {"add", "a + b, broadcasting", 2, 2, 0, NULL, add_forward},
    {"mul", "a * b, broadcasting; saves both", 2, 2, 0, NULL, mul_forward},
    {"select", "one position of the sequence", 1, 1, FIELDS(select_fields),
     select_forward},
    {"cross_entropy", "loss of class logits", 1, 1,
     FIELDS(cross_entropy_fields), cross_entropy_forward},
    {"mse_loss", "mean squared error against a target of x's shape", 1, 1, 0,
     NULL, mse_loss_forward},
    {"mean", "the mean as a loss", 1, 1, 0, NULL, mean_forward},
    {"parameters", "states only: weights that no op reads", 0, 0,
     FIELDS(parameters_fields), parameters_forward},
    {"op", "an op of your own: one output", 1, 1, FIELDS(op_fields),
     op_forward},
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
