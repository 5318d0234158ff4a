/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The forward of a layer list, layer after layer. */
#include "graphs/layers/headloss.h"
#include "graphs/layers/layers.h"
#include "graphs/layers/walk/layerroles.h"
#include "graphs/layers/walk/layerrun.h"
#include "graphs/layers/walk/mlptiles.h"
#include "graphs/layertypes.h"
#include "graphs/ops/ops.h"
#include "graphs/parallel/contextops.h"
#include "graphs/parallel/expertops.h"
#include "graphs/parallel/shards.h"
#include "graphs/trace/forward.h"
#include "graphs/trace/trace.h"
#include "sim/graph.h"
#include "sim/kinds.h"

#include <assert.h>
#include <string.h>

/* ---- forward ------------------------------------------------------------- */

/* What the walk over the layers keeps. */
typedef struct walk {
    ms_trace *trace;
    ms_layerrun run;
    uint32_t *last_use; /* per layer: position of the last reader */
    uint32_t *ended;    /* per layer: the first held layer that ends with it */
    uint32_t *next;     /* per held layer: another that ends with it */
    uint32_t n_frozen;  /* the first layers that are frozen (frozen.blocks) */
    ms_forward *forward;
} walk;

/* A model that only lists parameters and states has no layer that reads the
 * input. */
static bool reads_input(const ms_model *model)
{
    for (uint32_t i = 0; i < model->n_edges; i++)
        if (model->edges[i] == MS_NONE)
            return true;
    return false;
}

static uint8_t input_dtype(const ms_trace *trace)
{
    const ms_model *model = trace->settings->model;
    if (model->measured)
        return MS_BYTE;
    return model->tokens ? MS_INT64 : trace->weight_dtype;
}

static ms_err model_input(ms_trace *trace)
{
    const ms_model *model = trace->settings->model;
    int64_t dims[MS_MAX_DIMS] = {(int64_t)trace->settings->batch};
    uint32_t n = 1;
    if (!reads_input(model))
        return MS_OK;
    if (model->tokens || model->sequence_input)
        dims[n++] = (int64_t)trace->settings->sequence;
    if (!model->tokens)
        for (uint32_t d = 0; d < model->n_dims && n < MS_MAX_DIMS; d++)
            dims[n++] = (int64_t)model->dims[d];
    if (model->measured) {
        dims[0] = (int64_t)model->dims[0];
        n = 1;
    }
    trace->layer = 0;
    trace->input = ms_trace_input(trace, "input", input_dtype(trace), n, dims);
    if (!trace->err)
        trace->graph->storage_layer[ms_trace_at(trace, trace->input)->storage] =
            MS_NONE;
    if (trace->kernels.hooks->inputs)
        trace->kernels.hooks->inputs(trace);
    return trace->err;
}

/* The loop "for block in blocks: x = block(x)" holds x until the block
 * returns: a block's input lives to the end of the block. */
static void find_last_uses(walk *w)
{
    const ms_model *model = w->trace->settings->model;
    uint32_t block_end = 0;
    for (uint32_t i = model->n_layers; i-- > 0;) {
        const ms_layer *layer = &model->layers[model->order[i]];
        bool last_of_block =
            i + 1 == model->n_layers ||
            model->layers[model->order[i + 1]].block != layer->block;
        if (last_of_block)
            block_end = i;
        for (uint32_t k = 0; k < layer->n_in; k++) {
            uint32_t from = model->edges[layer->in_at + k];
            if (from == MS_NONE)
                continue;
            bool from_outside = layer->block != MS_NONE &&
                                model->layers[from].block != layer->block;
            uint32_t end = from_outside ? block_end : i;
            if (w->last_use[from] == MS_NONE || w->last_use[from] < end)
                w->last_use[from] = end;
        }
    }
}

/* What a group of layers reads lives until the function of the group returns,
 * like the input of a block.  Layers that end with the same position are a
 * linked list, so that drop_dead finds them at once. */
static ms_err hold_inputs(walk *w)
{
    const ms_model *model = w->trace->settings->model;
    ms_arena *scratch = w->trace->scratch;
    uint32_t n = model->n_layers;
    uint32_t *place;
    if (!model->held)
        return MS_OK;
    place = ms_arena_take_raw(scratch, n, sizeof *place);
    w->ended = ms_arena_take_raw(scratch, n, sizeof *w->ended);
    w->next = ms_arena_take_raw(scratch, n, sizeof *w->next);
    if (!place || !w->ended || !w->next)
        return ms_fail_nomem(w->trace->fault);
    memset(w->ended, 0xff, n * sizeof *w->ended);
    for (uint32_t i = 0; i < n; i++)
        place[model->order[i]] = i;
    for (uint32_t l = 0; l < n; l++) {
        uint32_t last = model->held[l];
        if (last == MS_NONE || w->last_use[l] == MS_NONE ||
            w->last_use[l] >= place[last])
            continue;
        w->last_use[l] = place[last];
        w->next[l] = w->ended[place[last]];
        w->ended[place[last]] = l;
    }
    return MS_OK;
}

static ms_err open_walk(walk *w)
{
    ms_arena *arena = w->trace->arena, *scratch = w->trace->scratch;
    uint32_t n = w->trace->settings->model->n_layers;
    MS_TRY(ms_layerrun_open(&w->run, w->trace));
    w->last_use = ms_arena_take_raw(scratch, n, sizeof(uint32_t));
    w->forward->unit_block = ms_arena_take_raw(arena, n, sizeof(uint32_t));
    w->forward->unit_name =
        ms_arena_take_raw(arena, n, sizeof *w->forward->unit_name);
    if (!w->last_use || !w->forward->unit_block || !w->forward->unit_name)
        return ms_fail_nomem(w->trace->fault);
    w->trace->graph->layer_bytes =
        ms_arena_take(arena, n, sizeof *w->trace->graph->layer_bytes);
    if (!w->trace->graph->layer_bytes)
        return ms_fail_nomem(w->trace->fault);
    memset(w->last_use, 0xff, n * sizeof(uint32_t));
    find_last_uses(w);
    return hold_inputs(w);
}

/* A head is a layer whose output a loss reads, and a loss that includes the
 * head. */
static ms_err find_heads(ms_trace *trace)
{
    const ms_model *model = trace->settings->model;
    trace->is_head =
        ms_arena_take(trace->scratch, model->n_layers, sizeof *trace->is_head);
    if (!trace->is_head)
        return ms_fail_nomem(trace->fault);
    for (uint32_t l = 0; l < model->n_layers; l++) {
        const ms_layer *reader = &model->layers[l];
        if (reader->n_in == 0 || !ms_layerroles_is_loss(reader))
            continue;
        trace->is_head[l] = true;
        for (uint32_t i = 0; i < reader->n_in; i++)
            if (model->edges[reader->in_at + i] != MS_NONE)
                trace->is_head[model->edges[reader->in_at + i]] = true;
    }
    return MS_OK;
}

/* Drops the variables whose last reader is at position i, each once: last_use
 * becomes MS_NONE with the first drop. */
static void drop_dead(walk *w, uint32_t l, uint32_t i)
{
    const ms_model *model = w->trace->settings->model;
    const ms_layer *layer = &model->layers[l];
    bool block_ends = i + 1 == model->n_layers ||
                      model->layers[model->order[i + 1]].block != layer->block;
    for (uint32_t k = 0; k < layer->n_in; k++) {
        uint32_t from = model->edges[layer->in_at + k];
        if (from == MS_NONE || w->last_use[from] != i)
            continue;
        w->last_use[from] = MS_NONE;
        ms_trace_drop(w->trace, w->run.value[from]);
    }
    for (uint32_t from = w->ended ? w->ended[i] : MS_NONE; from != MS_NONE;
         from = w->next[from]) {
        if (w->last_use[from] != i)
            continue;
        w->last_use[from] = MS_NONE;
        ms_trace_drop(w->trace, w->run.value[from]);
    }
    if (!block_ends || layer->block == MS_NONE)
        return;
    /* The inputs of the block, which were held until its end. */
    for (uint32_t j = i + 1; j-- > 0;) {
        const ms_layer *inner = &model->layers[model->order[j]];
        if (inner->block != layer->block)
            break;
        for (uint32_t k = 0; k < inner->n_in; k++) {
            uint32_t from = model->edges[inner->in_at + k];
            if (from == MS_NONE || w->last_use[from] != i)
                continue;
            w->last_use[from] = MS_NONE;
            ms_trace_drop(w->trace, w->run.value[from]);
        }
    }
}

/* A unit ends at a cut point, after which only the output of this layer is
 * read. It also ends with a block, even where a skip connection passes over the
 * end. */
static void open_unit(walk *w, uint32_t l)
{
    const ms_model *model = w->trace->settings->model;
    uint32_t u = w->forward->n_units++;
    w->forward->unit_block[u] = model->layers[l].block;
    w->forward->unit_name[u] = model->layers[l].name;
    w->trace->unit = u;
}

/* All layers up to the last one of a frozen block are frozen. */
static void find_frozen(walk *w)
{
    const ms_model *model = w->trace->settings->model;
    int64_t blocks = w->trace->settings->training->frozen_blocks;
    for (uint32_t i = 0; i < model->n_layers; i++) {
        uint32_t block = model->layers[model->order[i]].block;
        if (block != MS_NONE && block < blocks)
            w->n_frozen = i + 1;
    }
}

/* Runs the layer at this place of the order, or the layers from there on that
 * run in pieces. */
static ms_err run_place(walk *w, uint32_t i, uint32_t *ran)
{
    uint32_t n = ms_mlptiles_at(w->trace, i);
    *ran = i + (n > 0 ? n : 1);
    return n > 0 ? ms_mlptiles_run(&w->run, i)
                 : ms_layerrun_layer(&w->run,
                                     w->trace->settings->model->order[i]);
}

static ms_err run_layers(walk *w)
{
    const ms_model *model = w->trace->settings->model;
    bool open = false, all = w->trace->frozen;
    uint32_t ran = 0; /* places */
    find_frozen(w);
    for (uint32_t i = 0; i < model->n_layers; i++) {
        uint32_t l = model->order[i];
        w->trace->frozen = all || i < w->n_frozen;
        const ms_layer *layer = &model->layers[l];
        bool loss = ms_layerroles_is_loss(layer);
        if (!open || loss ||
            w->forward->unit_block[w->trace->unit] != layer->block)
            open_unit(w, l);
        open = true;
        if (loss && w->forward->loss_unit == MS_NONE)
            w->forward->loss_unit = w->trace->unit;
        if (i >= ran)
            MS_TRY(run_place(w, i, &ran));
        if (!loss) /* the training loop's variable keeps the output */
            drop_dead(w, l, i);
        if (model->cut[l])
            open = false;
    }
    w->trace->frozen = all;
    return MS_OK;
}

/* Where a layer adds several losses, the outputs of the model are what those
 * losses read. */
static ms_err find_outputs(walk *w, const ms_layer *layer)
{
    const ms_model *model = w->trace->settings->model;
    w->forward->outputs = ms_arena_take_raw(w->trace->scratch, layer->n_in,
                                            sizeof *w->forward->outputs);
    if (!w->forward->outputs)
        return ms_fail_nomem(w->trace->fault);
    for (uint32_t i = 0; i < layer->n_in; i++) {
        uint32_t loss = model->edges[layer->in_at + i];
        const ms_layer *from = &model->layers[loss];
        uint32_t read = from->n_in > 0 ? model->edges[from->in_at] : MS_NONE;
        if (read != MS_NONE)
            w->forward->outputs[w->forward->n_outputs++] = w->run.value[read];
        ms_trace_drop(w->trace, w->run.value[loss]);
    }
    return MS_OK;
}

/* The last value is the loss, and what it reads is the output of the model.  A
 * head that is part of the loss has no output. */
static ms_err find_loss(walk *w)
{
    const ms_model *model = w->trace->settings->model;
    uint32_t last = MS_NONE;
    for (uint32_t i = 0; i < model->n_layers; i++)
        if (w->run.value[model->order[i]] != MS_NONE)
            last = model->order[i];
    if (last == MS_NONE) /* states only */
        return MS_OK;
    const ms_layer *layer = &model->layers[last];
    if (!ms_layerroles_is_loss(layer))
        return ms_trace_fail(
            w->trace, layer,
            "end the list with a loss: cross_entropy, mse_loss, mean, ...",
            "the last layer \"%s\" is no loss", layer->name);
    w->forward->loss = w->run.value[last];
    if (layer->kind->forward == ms_losslayers_total)
        return find_outputs(w, layer);
    if (layer->n_in > 0 && model->edges[layer->in_at] != MS_NONE &&
        model->edges[layer->in_at] != w->trace->head.layer) {
        w->forward->n_outputs = 1;
        w->forward->outputs = &w->run.value[model->edges[layer->in_at]];
    }
    return MS_OK;
}

ms_err ms_walk_layers(ms_trace *trace, ms_forward *forward)
{
    walk w = {.trace = trace, .forward = forward};
    if (trace->settings->model->n_layers == 0)
        return ms_fail(trace->fault, MS_EINPUT, trace->settings->model->name,
                       "add a layer", "the model has no layers");
    trace->joined_layer = MS_NONE;
    MS_TRY(ms_headchoice_open(trace));
    MS_TRY(find_heads(trace));
    MS_TRY(ms_shards_open(trace));
    MS_TRY(ms_contextops_open(trace));
    MS_TRY(ms_expertops_open(trace));
    MS_TRY(ms_mlptiles_open(trace));
    MS_TRY(open_walk(&w));
    MS_TRY(model_input(trace));
    MS_TRY(run_layers(&w));
    return find_loss(&w);
}
