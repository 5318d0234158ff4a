/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "graphs/layers/walk/layerroles.h"

#include "graphs/layers/layers.h"
#include "graphs/layertypes.h"
#include "graphs/trace/trace.h"
#include "sim/graph.h"
#include "sim/kinds.h"

#include <string.h>

bool ms_layerroles_is_loss(const ms_layer *layer)
{
    return layer->kind->role == MS_ROLE_LOSS || ms_reducelayers_is_loss(layer);
}

static ms_err take(ms_trace *trace)
{
    ms_graph *g = trace->graph;
    g->layer_type =
        ms_arena_take(trace->arena, g->n_layers, sizeof *g->layer_type);
    g->layer_role = ms_arena_take(trace->arena, g->n_layers, 1);
    if (g->layer_type == NULL || g->layer_role == NULL)
        return ms_fail_nomem(trace->fault);
    return MS_OK;
}

/* While readers are looked at, a head whose loss is over classes: activations
 * may lie between. */
#define HEAD_OF_CLASSES MS_N_ROLES

static bool is_type(const ms_layer *layer, const char *type)
{
    return strcmp(layer->kind->type, type) == 0;
}

/* The role of a linear layer that is input i of this reader; `role` is what the
 * readers of the reader make of it. */
static uint8_t by_reader(const ms_layer *reader, uint32_t i, uint8_t role)
{
    bool gate = role == MS_ROLE_GATE, head = role == HEAD_OF_CLASSES;
    bool out = role == MS_ROLE_PROJECTION_OUT;
    if (ms_layerroles_is_loss(reader))
        return is_type(reader, "cross_entropy") ? HEAD_OF_CLASSES
                                                : MS_ROLE_HEAD;
    if (is_type(reader, "cast"))
        return role;
    switch ((ms_layer_role)reader->kind->role) {
    case MS_ROLE_SUM:
        return MS_ROLE_PROJECTION_OUT;
    case MS_ROLE_DROPOUT:
        return role;
    case MS_ROLE_GATED:
        return i == 0 && reader->n_in == 2 ? MS_ROLE_GATE : MS_ROLE_OTHER;
    case MS_ROLE_ACTIVATION:
        return gate || head ? role : MS_ROLE_OTHER;
    case MS_ROLE_NORM:
        return out ? MS_ROLE_PROJECTION_OUT : MS_ROLE_OTHER;
    default:
        return MS_ROLE_OTHER;
    }
}

static uint8_t role_of(const ms_layer *layer, uint8_t by_readers)
{
    bool inside = layer->block != MS_NONE;
    uint8_t own = layer->kind->role;
    if (ms_layerroles_is_loss(layer))
        return MS_ROLE_LOSS;
    if (own != MS_ROLE_PROJECTION)
        return own;
    if (by_readers == MS_ROLE_HEAD || by_readers == HEAD_OF_CLASSES)
        return MS_ROLE_HEAD;
    if (inside && by_readers != MS_ROLE_OTHER)
        return by_readers;
    return inside ? MS_ROLE_PROJECTION_IN : MS_ROLE_PROJECTION;
}

ms_err ms_layerroles_fill(ms_trace *trace)
{
    const ms_model *model = trace->settings->model;
    ms_graph *g = trace->graph;
    MS_TRY(take(trace));
    /* In reverse order, so that a layer comes after all its readers: until then
     * layer_role holds what these make of it. */
    for (uint32_t i = model->n_layers; i-- > 0;) {
        uint32_t l = model->order[i];
        const ms_layer *layer = &model->layers[l];
        for (uint32_t k = 0; k < layer->n_in; k++) {
            uint32_t from = model->edges[layer->in_at + k];
            uint8_t role = by_reader(layer, k, g->layer_role[l]);
            if (from != MS_NONE && role != MS_ROLE_OTHER)
                g->layer_role[from] = role;
        }
        g->layer_role[l] = role_of(layer, g->layer_role[l]);
        g->layer_type[l] = layer->kind->type;
    }
    return MS_OK;
}

ms_err ms_layerroles_modules(ms_trace *trace)
{
    MS_TRY(take(trace));
    for (uint32_t l = 0; l < trace->graph->n_layers; l++)
        trace->graph->layer_type[l] = "module";
    return MS_OK;
}
