/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Layers of one matrix: embeddings and linear layers. */
#include "graphs/layers/headloss.h"
#include "graphs/layers/layers.h"
#include "graphs/layers/splitproducts.h"
#include "graphs/layertypes.h"
#include "graphs/parallel/partlookup.h"
#include "graphs/parallel/shards.h"
#include "graphs/parallel/tensorops.h"
#include "graphs/trace/trace.h"
#include "sim/graph.h"
#include "sim/kinds.h"

#include <string.h>

static const ms_tensor *at(ms_trace *trace, uint32_t tensor)
{
    return ms_trace_at(trace, tensor);
}

enum { EMBEDDING_VOCAB, EMBEDDING_DIM, EMBEDDING_IDS, EMBEDDING_TIED };
enum { IDS_TOKENS, IDS_POSITIONS, IDS_TYPES };
const ms_field ms_denselayers_embedding_fields[MS_DENSELAYERS_EMBEDDING] = {
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
    {.name = "tied",
     .type = MS_NAME,
     .help = "embedding whose table this layer shares"},
};

enum { LINEAR_OUT, LINEAR_BIAS, LINEAR_TIED };
const ms_field ms_denselayers_linear_fields[MS_DENSELAYERS_LINEAR] = {
    {.name = "out",
     .type = MS_INT,
     .required = true,
     .low = 1,
     .high = INT64_C(1) << 31,
     .help = "output features"},
    MS_LAYERS_BIAS_FIELD,
    {.name = "tied",
     .type = MS_NAME,
     .help = "embedding whose weight this layer shares"},
};

/* Finds the layer of that name, by an index that the first tied layer builds: a
 * search of the list for each would be quadratic. */
static ms_err layer_row(ms_trace *trace, const char *name, uint32_t *row)
{
    const ms_model *model = trace->settings->model;
    ms_index *rows = &trace->layer_rows;
    if (rows->capacity == 0) {
        MS_TRY(
            ms_index_make(rows, model->n_layers, trace->scratch, trace->fault));
        for (uint32_t i = 0; i < model->n_layers; i++)
            ms_index_add(rows, model->layers[i].name, i);
    }
    *row = ms_index_find(rows, name);
    return MS_OK;
}

/* The stages of a pipeline have copies of a tied weight, each with a .grad and
 * states of its own (Megatron-LM, core/models/common/language_module/
 * language_module.py, setup_embeddings_and_output_layer). */
static ms_err copied_weight(ms_trace *trace, const int64_t *dims,
                            uint32_t *weight)
{
    const ms_tensor *shared = at(trace, *weight);
    uint32_t p = shared->parameter, original = shared->storage;
    if (p != MS_NONE && trace->parameters[p].original != MS_NONE)
        original = trace->parameters[p].original;
    *weight = ms_trace_parameter(trace, "weight", 2, dims);
    if (*weight != MS_NONE)
        trace->parameters[trace->n_parameters - 1].original = original;
    return trace->err;
}

/* Is it a layer of multi-token prediction, all of which are one stage's? */
static bool predicts(const ms_model *model, const ms_layer *layer)
{
    return layer->block != MS_NONE &&
           ms_graph_is_predicting(model->block_names[layer->block]);
}

/* Do no blocks come behind the layer?  Then it is the last stage's. */
static bool is_last(const ms_model *model, const ms_layer *layer)
{
    for (uint32_t l = (uint32_t)(layer - model->layers); l < model->n_layers;
         l++)
        if (model->layers[l].block != MS_NONE)
            return false;
    return model->n_blocks > 0;
}

/* The first layer of multi-token prediction that is tied as this one is, or the
 * row of what they are tied to. */
static uint32_t shared_row(const ms_trace *trace, const ms_layer *layer,
                           const char *name, uint32_t row)
{
    const ms_model *model = trace->settings->model;
    for (const ms_layer *l = model->layers; l < layer; l++) {
        const ms_value *tied =
            predicts(model, l) ? ms_layertypes_field(l, "tied") : NULL;
        if (tied != NULL && tied->s != NULL && strcmp(tied->s, name) == 0)
            return (uint32_t)(l - model->layers);
    }
    return row;
}

/* A pipeline's stages have copies of a weight; layers that are always one
 * stage's share it. */
static bool needs_copy(const ms_trace *trace, const ms_layer *layer,
                       const char *name, uint32_t *row)
{
    const ms_model *model = trace->settings->model;
    const ms_layer *to = &model->layers[*row];
    if (trace->settings->shape->pipeline_ranks <= 1 ||
        (is_last(model, to) && is_last(model, layer)))
        return false;
    uint32_t first =
        predicts(model, layer) ? shared_row(trace, layer, name, *row) : *row;
    bool copies = first == *row;
    *row = first;
    return copies;
}

static ms_err tied_weight(ms_trace *trace, const ms_layer *layer,
                          const char *name, const int64_t *dims,
                          uint32_t *weight)
{
    uint32_t row;
    MS_TRY(layer_row(trace, name, &row));
    if (row == MS_NONE || trace->layer_weight[row] == MS_NONE)
        return ms_trace_fail(
            trace, layer, "name an embedding or linear layer that comes before",
            "\"%s\" is tied to \"%s\", which has no weight here", layer->name,
            name);
    const ms_tensor *shared = at(trace, trace->layer_weight[row]);
    if (shared->size[0] != dims[0] || shared->size[1] != dims[1])
        return ms_trace_fail(trace, layer, "tie layers of one shape",
                             "\"%s\" is tied to \"%s\", but their weights are "
                             "[%lld, %lld] and [%lld, %lld]",
                             layer->name, name, (long long)dims[0],
                             (long long)dims[1], (long long)shared->size[0],
                             (long long)shared->size[1]);
    bool copies = needs_copy(trace, layer, name, &row);
    *weight = trace->layer_weight[row];
    return copies ? copied_weight(trace, dims, weight) : MS_OK;
}

/* The layer's own weight, or that of the layer it is tied to ("": none). */
static ms_err weight_of(ms_trace *trace, const ms_layer *layer,
                        const char *tied, const int64_t *dims, uint32_t *weight)
{
    if (tied && *tied)
        return tied_weight(trace, layer, tied, dims, weight);
    *weight = ms_trace_parameter(trace, "weight", 2, dims);
    return trace->err;
}

ms_err ms_denselayers_embedding(ms_trace *trace, const ms_layer *layer,
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
    uint32_t weight;
    bool split = ms_shards_split(trace) == MS_SPLIT_VOCABULARY;
    if (split)
        dims[0] = ms_shards_part(trace, dims[0]);
    ms_shards_make_parts(trace, split);
    MS_TRY(
        weight_of(trace, layer, layer->field[EMBEDDING_TIED].s, dims, &weight));
    ms_shards_make_parts(trace, false);
    trace->layer_weight[trace->layer] = weight;
    switch (layer->field[EMBEDDING_IDS].i) {
    case IDS_POSITIONS: {
        /* Positions may be an input of the step; else the forward makes them
         * and drops them with its other variables. */
        uint32_t given = trace->positions;
        if (given != MS_NONE && at(trace, given)->size[1] != sequence)
            given = MS_NONE;
        uint32_t positions =
            given == MS_NONE ? ms_lookup_arange(trace, sequence) : given;
        *out = ms_lookup_embedding(trace, weight, positions);
        if (given == MS_NONE)
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
        *out = split ? ms_partlookup_embedding(trace, weight, in[0])
                     : ms_lookup_embedding(trace, weight, in[0]);
    }
    return trace->err;
}

bool ms_denselayers_has_bias(const ms_layer *linear)
{
    return linear->field[LINEAR_BIAS].b;
}

/* The layer whose product is made with this one's, or MS_NONE. */
static uint32_t joined_with(ms_trace *trace)
{
    const ms_kernel_hooks *hooks = trace->kernels.hooks;
    return hooks->joined_with ? hooks->joined_with(trace, trace->layer)
                              : MS_NONE;
}

ms_err ms_denselayers_linear(ms_trace *trace, const ms_layer *layer,
                             const uint32_t *in, uint32_t *out)
{
    const char *tied = layer->field[LINEAR_TIED].s;
    uint32_t weight, bias = MS_NONE, other = joined_with(trace);
    MS_TRY(ms_layers_need_float(trace, layer, in[0]));
    if (trace->joined_layer == trace->layer) {
        *out = trace->joined;
        trace->joined_layer = MS_NONE;
        return trace->err;
    }
    int64_t dims[2] = {layer->field[LINEAR_OUT].i,
                       ms_layers_last_dim(trace, in[0])};
    ms_split split = ms_shards_split(trace);
    if (split == MS_SPLIT_COLUMNS)
        dims[0] = ms_shards_part(trace, dims[0]);
    if (other != MS_NONE)
        dims[0] *= 2;
    ms_shards_make_parts(trace, split != MS_SPLIT_NOT);
    MS_TRY(weight_of(trace, layer, tied, dims, &weight));
    ms_shards_make_parts(trace, split == MS_SPLIT_COLUMNS);
    if (layer->field[LINEAR_BIAS].b)
        bias = ms_layers_vector(trace, "bias", dims[0]);
    ms_shards_make_parts(trace, false);
    trace->layer_weight[trace->layer] = weight;
    if (ms_headloss_is_head(trace))
        *out = ms_headloss_head(trace, in[0], weight);
    else
        *out = ms_splitproducts_linear(trace, layer, "weight", in[0], weight,
                                       bias, split);
    if (ms_shards_gathers(trace))
        *out = ms_trace_rebind(trace, *out,
                               ms_tensorops_columns(trace, *out, false));
    if (trace->kernels.casts_head &&
        trace->graph->layer_role[trace->layer] == MS_ROLE_HEAD)
        *out =
            ms_trace_rebind(trace, *out, ms_cast_to(trace, *out, MS_FLOAT32));
    if (other != MS_NONE && !trace->err) {
        ms_trace_ref(trace, *out);
        trace->joined_layer = other;
        trace->joined = *out;
    }
    return trace->err;
}
