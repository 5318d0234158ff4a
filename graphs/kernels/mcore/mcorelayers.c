/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The step's inputs, products' workspaces, and the dropout that an addition
 * does with its own. */
#include "graphs/kernels/mcore/mcore.h"
#include "graphs/layertypes.h"
#include "graphs/machines/overheads.h"
#include "graphs/trace/columns.h"
#include "graphs/trace/trace.h"
#include "sim/graph.h"
#include "sim/kinds.h"

#include <string.h>

#define MIB (UINT64_C(1) << 20)

/* ---- the step's inputs --------------------------------------------------- */

static uint32_t input(ms_trace *trace, const char *role, uint8_t dtype,
                      uint32_t n_dims, const int64_t *dims)
{
    uint32_t t = ms_trace_input(trace, role, dtype, n_dims, dims);
    if (t != MS_NONE)
        trace->graph->storage_layer[ms_trace_at(trace, t)->storage] = MS_NONE;
    return t;
}

/* pretrain_gpt.py, get_batch. */
void ms_mcorelayers_batch(ms_trace *trace)
{
    int64_t batch = (int64_t)trace->settings->batch,
            sequence = (int64_t)trace->settings->sequence;
    int64_t ranks = ms_shape_context(trace->settings->shape);
    int64_t dims[4] = {batch, 1, sequence, ranks * sequence};
    int64_t tokens[2] = {batch, sequence};
    if (!trace->settings->model->tokens)
        return;
    trace->positions = input(trace, "position_ids", MS_INT64, 2, tokens);
    input(trace, "loss_mask", MS_FLOAT32, 2, tokens);
    if (trace->settings->training->mcore_mask == MS_MCORE_MASK)
        input(trace, "attention_mask", MS_BYTE, 4, dims);
}

/* ---- workspaces ---------------------------------------------------------- */

#define DETERMINISTIC_BYTES (32 * MIB) /* :4096:8 */

uint64_t ms_mcorelayers_cublas_bytes(const ms_step_settings *settings)
{
    const ms_training *training = settings->training;
    if (training->mcore_deterministic == 1 && training->cublas_workspace < 0)
        return DETERMINISTIC_BYTES;
    return ms_overheads_workspace(settings->device, training);
}

bool ms_mcorelayers_is_te_product(const ms_trace *trace, uint32_t op)
{
    const ms_model *model = trace->settings->model;
    uint32_t layer = trace->graph->op_layer[op];
    return trace->settings->training->mcore_spec != MS_MCORE_LOCAL &&
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

#define SEVERAL (MS_NONE - 1)

static void find_readers(ms_trace *trace)
{
    const ms_model *model = trace->settings->model;
    uint32_t n = model->n_layers;
    uint32_t *reader = ms_columns_take(trace, n, sizeof *reader);
    if (!reader)
        return;
    memset(reader, 0xff, n * sizeof *reader);
    for (uint32_t l = 0; l < n; l++)
        for (uint32_t k = 0; k < model->layers[l].n_in; k++) {
            uint32_t from = model->edges[model->layers[l].in_at + k];
            if (from != MS_NONE)
                reader[from] = reader[from] == MS_NONE ? l : SEVERAL;
        }
    trace->reader = reader;
}

/* The one layer that reads it, or NULL. */
static const ms_layer *reader_of(ms_trace *trace, uint32_t row)
{
    if (!trace->reader)
        find_readers(trace);
    if (!trace->reader || trace->reader[row] >= SEVERAL)
        return NULL;
    return &trace->settings->model->layers[trace->reader[row]];
}

/* Linear layers of one size and no other's weight (fields: out, bias, tied). */
static bool are_alike(const ms_layer *a, const ms_layer *b)
{
    return is_type(a, "linear") && is_type(b, "linear") &&
           a->field[0].i == b->field[0].i && a->field[1].b == b->field[1].b &&
           !(a->field[2].s && *a->field[2].s) &&
           !(b->field[2].s && *b->field[2].s) && a->block == b->block;
}

uint32_t ms_mcorelayers_joined_with(ms_trace *trace, uint32_t layer)
{
    const ms_model *model = trace->settings->model;
    const ms_layer *reader = reader_of(trace, layer);
    if (!reader || reader->kind->role != MS_ROLE_GATED || reader->n_in != 2)
        return MS_NONE;
    const uint32_t *from = &model->edges[reader->in_at];
    uint32_t other = from[0] == layer ? from[1] : from[0];
    if (other == MS_NONE || other == layer ||
        reader_of(trace, other) != reader ||
        !are_alike(&model->layers[layer], &model->layers[other]) ||
        model->edges[model->layers[layer].in_at] !=
            model->edges[model->layers[other].in_at])
        return MS_NONE;
    return other;
}

/* The addition of two that alone reads this dropout, or NULL. */
static const ms_layer *addition_of(ms_trace *trace, uint32_t row)
{
    const ms_model *model = trace->settings->model;
    if (row == MS_NONE || !drops(trace, &model->layers[row]))
        return NULL;
    const ms_layer *reader = reader_of(trace, row);
    return reader && is_type(reader, "add") && reader->n_in == 2 ? reader
                                                                 : NULL;
}

/* Of two dropouts the second. */
bool ms_mcorelayers_is_deferred(ms_trace *trace, const ms_layer *add,
                                uint32_t i)
{
    const uint32_t *from = &trace->settings->model->edges[add->in_at];
    return is_type(add, "add") && add->n_in == 2 &&
           addition_of(trace, from[i]) == add &&
           (i == 1 || addition_of(trace, from[1]) != add);
}

bool ms_mcorelayers_defers_dropout(ms_trace *trace, const ms_layer *layer)
{
    uint32_t row = (uint32_t)(layer - trace->settings->model->layers);
    const ms_layer *add = addition_of(trace, row);
    if (!add)
        return false;
    return ms_mcorelayers_is_deferred(
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

uint32_t ms_mcorelayers_dropout_add(ms_trace *trace, uint32_t x,
                                    uint32_t residual)
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
