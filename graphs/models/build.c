/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "graphs/models/build.h"
#include "graphs/layertypes.h"

#include <assert.h>
#include <string.h>

ms_err ms_build_reserve(ms_build *build, uint32_t layers, uint32_t edges,
                        ms_fault *fault)
{
    ms_model *model = build->model;
    model->layers =
        ms_arena_take_raw(build->arena, layers, sizeof *model->layers);
    model->edges = ms_arena_take_raw(build->arena, edges, sizeof *model->edges);
    if (model->layers == NULL || model->edges == NULL)
        return ms_fail_nomem(fault);
    build->layers_capacity = layers;
    build->edges_capacity = edges;
    return MS_OK;
}

ms_layer *ms_build_layer(ms_build *build, const char *name, uint32_t kind)
{
    ms_model *model = build->model;
    const ms_layer_kind *row = &ms_layer_kinds[kind];
    if (build->open == NULL)
        build->open =
            ms_arena_take(build->arena, MS_LAYER_FIELDS, sizeof *build->open);
    if (build->open == NULL)
        return NULL;
    if (model->n_layers == build->layers_capacity) {
        model->layers =
            ms_arena_grow(build->arena, model->layers, &build->layers_capacity,
                          model->n_layers + 1, sizeof *model->layers);
        if (model->layers == NULL)
            return NULL;
    }
    ms_layer *layer = &model->layers[model->n_layers++];
    *layer = (ms_layer){.name = name,
                        .kind = row,
                        .in_at = model->n_edges,
                        .block = MS_NONE,
                        .field = build->open};
    build->open = NULL;
    assert(row->n_fields <= MS_LAYER_FIELDS);
    for (uint32_t i = 0; i < row->n_fields; i++) {
        layer->field[i] = row->fields[i].fallback;
        if (row->fields[i].type == MS_NAME && layer->field[i].s == NULL)
            layer->field[i].s = "";
    }
    return layer;
}

ms_err ms_build_close(ms_build *build, ms_fault *fault)
{
    ms_model *model = build->model;
    ms_layer *layer = &model->layers[model->n_layers - 1];
    size_t bytes = layer->kind->n_fields * sizeof *layer->field;
    if (build->last == NULL)
        build->last =
            ms_arena_take(build->arena, ms_layer_n_kinds, sizeof *build->last);
    if (build->last == NULL)
        return ms_fail_nomem(fault);
    uint32_t *last = &build->last[layer->kind - ms_layer_kinds];
    ms_value *fields = *last == 0 ? NULL : model->layers[*last - 1].field;
    if (fields == NULL || memcmp(fields, layer->field, bytes) != 0) {
        fields = ms_arena_take_raw(build->arena, bytes, 1);
        if (fields == NULL)
            return ms_fail_nomem(fault);
        memcpy(fields, layer->field, bytes);
    }
    build->open = layer->field;
    layer->field = fields;
    *last = model->n_layers;
    return MS_OK;
}

bool ms_build_edge(ms_build *build, uint32_t from)
{
    ms_model *model = build->model;
    if (model->n_edges == build->edges_capacity) {
        model->edges =
            ms_arena_grow(build->arena, model->edges, &build->edges_capacity,
                          model->n_edges + 1, sizeof *model->edges);
        if (model->edges == NULL)
            return false;
    }
    model->edges[model->n_edges++] = from;
    model->layers[model->n_layers - 1].n_in++;
    return true;
}

uint32_t ms_build_block(ms_build *build, const char *name)
{
    ms_model *model = build->model;
    if (model->n_blocks == build->blocks_capacity) {
        model->block_names = ms_arena_grow(
            build->arena, model->block_names, &build->blocks_capacity,
            model->n_blocks + 1, sizeof *model->block_names);
        if (model->block_names == NULL)
            return MS_NONE;
    }
    model->block_names[model->n_blocks] = name;
    return model->n_blocks++;
}

ms_value *ms_build_field(ms_layer *layer, const char *name)
{
    const ms_value *field = ms_layertypes_field(layer, name);
    assert(field != NULL);
    return &layer->field[field - layer->field];
}
