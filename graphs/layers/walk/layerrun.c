/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "graphs/layers/walk/layerrun.h"
#include "graphs/layers/walk/layerroles.h"
#include "graphs/layertypes.h"
#include "graphs/parallel/shards.h"
#include "graphs/trace/trace.h"
#include "sim/graph.h"

#include <string.h>

ms_err ms_layerrun_open(ms_layerrun *run, ms_trace *trace)
{
    const ms_model *model = trace->settings->model;
    uint32_t most = 1;
    for (uint32_t l = 0; l < model->n_layers; l++)
        if (model->layers[l].n_in > most)
            most = model->layers[l].n_in;
    run->trace = trace;
    run->in = ms_arena_take_raw(trace->scratch, most, sizeof *run->in);
    run->value =
        ms_arena_take_raw(trace->scratch, model->n_layers, sizeof *run->value);
    if (!run->in || !run->value)
        return ms_fail_nomem(trace->fault);
    memset(run->value, 0xff, model->n_layers * sizeof *run->value);
    return MS_OK;
}

/* The inputs, as ranks that split the layer have them: references. */
static void take_parts(ms_layerrun *run, const ms_layer *layer)
{
    const ms_model *model = run->trace->settings->model;
    for (uint32_t k = 0; k < layer->n_in; k++)
        run->in[k] = ms_shards_take(run->trace, model->edges[layer->in_at + k],
                                    run->in[k]);
}

ms_err ms_layerrun_layer(ms_layerrun *run, uint32_t l)
{
    ms_trace *trace = run->trace;
    const ms_model *model = trace->settings->model;
    const ms_layer *layer = &model->layers[l];
    for (uint32_t k = 0; k < layer->n_in; k++) {
        uint32_t from = model->edges[layer->in_at + k];
        run->in[k] = from == MS_NONE ? trace->input : run->value[from];
    }
    trace->layer = l;
    trace->pass = ms_layerroles_is_loss(layer) ? MS_LOSS : MS_FORWARD;
    if (trace->shards)
        take_parts(run, layer);
    MS_TRY(trace->err);
    MS_TRY(layer->kind->forward(trace, layer, run->in, &run->value[l]));
    for (uint32_t k = 0; trace->shards && k < layer->n_in; k++)
        ms_trace_drop(trace, run->in[k]);
    if (run->value[l] != MS_NONE)
        trace->graph->layer_bytes[l] =
            ms_trace_bytes(ms_trace_at(trace, run->value[l]));
    return MS_OK;
}
