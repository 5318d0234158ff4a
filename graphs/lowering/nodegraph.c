/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "graphs/lowering/nodegraph.h"
#include "graphs/nodelist.h"
#include "sim/graph.h"

#include <string.h>

/* Takes a column; its memory is zero. */
#define TAKE(column, n)                                                        \
    do {                                                                       \
        (column) = ms_arena_take(arena, (n), sizeof *(column));                \
        if ((column) == NULL)                                                  \
            return ms_fail_nomem(fault);                                       \
    } while (0)

static ms_err take_storages(ms_graph *g, size_t n, ms_arena *arena,
                            ms_fault *fault)
{
    TAKE(g->storage_category, n);
    TAKE(g->storage_at_start, n);
    TAKE(g->storage_local_end, n);
    TAKE(g->storage_grad, n);
    TAKE(g->storage_maker, n);
    TAKE(g->storage_buffer, n);
    TAKE(g->storage_layer, n);
    TAKE(g->storage_name, n);
    memset(g->storage_local_end, 0xff, n * sizeof *g->storage_local_end);
    memset(g->storage_grad, 0xff, n * sizeof *g->storage_grad);
    return MS_OK;
}

static ms_err take_ops(ms_graph *g, size_t n, ms_arena *arena, ms_fault *fault)
{
    TAKE(g->op_name, n);
    TAKE(g->op_kind, n);
    TAKE(g->op_pass, n);
    TAKE(g->op_flags, n);
    TAKE(g->op_stream, n);
    TAKE(g->op_unit, n);
    TAKE(g->op_layer, n);
    TAKE(g->op_node, n);
    TAKE(g->op_flops, n);
    TAKE(g->op_read_bytes, n);
    TAKE(g->op_write_bytes, n);
    TAKE(g->layer_type, n);
    TAKE(g->layer_role, n);
    TAKE(g->unit_block, n);
    TAKE(g->forward_at, n + 1);
    TAKE(g->backward_at, n + 1);
    TAKE(g->drop_at, n + 1);
    memset(g->unit_block, 0xff, n * sizeof *g->unit_block);
    memset(g->op_node, 0xff, n * sizeof *g->op_node);
    return MS_OK;
}

static uint8_t category_of(uint8_t kind)
{
    switch (kind) {
    case MS_NODE_CONSTANT:
        return MS_INPUTS;
    case MS_NODE_BACKWARD:
        return MS_TEMPORARIES;
    default:
        return MS_ACTIVATIONS;
    }
}

static void fill_storages(ms_graph *g, const ms_nodelist *list)
{
    for (uint32_t v = 0; v < list->n; v++)
        for (uint32_t s = list->out_at[v]; s < list->out_at[v + 1]; s++) {
            g->out[s] = s;
            g->storage_maker[s] = v;
            g->storage_layer[s] = v;
            g->storage_category[s] = category_of(list->kind[v]);
            g->storage_name[s] = "out";
        }
}

static uint64_t bytes_of(const ms_nodelist *list, uint32_t first, uint32_t end,
                         const uint32_t *of)
{
    uint64_t bytes = 0;
    for (uint32_t i = first; i < end; i++)
        bytes += list->bytes[of != NULL ? of[i] : i];
    return bytes;
}

static void fill_ops(ms_graph *g, const ms_nodelist *list)
{
    for (uint32_t v = 0; v < list->n; v++) {
        bool works = list->kind[v] <= MS_NODE_BACKWARD;
        g->op_name[v] = list->names[v];
        g->op_pass[v] =
            list->kind[v] == MS_NODE_BACKWARD ? MS_GRAD_INPUT : MS_FORWARD;
        g->op_flags[v] = works ? 0 : MS_OP_HOST;
        g->op_unit[v] = g->op_layer[v] = v;
        g->op_read_bytes[v] =
            bytes_of(list, list->in_at[v], list->in_at[v + 1], list->in);
        g->op_write_bytes[v] =
            bytes_of(list, list->out_at[v], list->out_at[v + 1], NULL);
        g->layer_type[v] = "node";
        g->forward_at[v + 1] = v + 1;
    }
    for (uint32_t u = 0; u <= list->n; u++)
        g->backward_at[u] = list->n;
    g->loss_unit = 0;
    while (g->loss_unit < list->n &&
           list->kind[g->loss_unit] != MS_NODE_BACKWARD)
        g->loss_unit++;
}

/* References end behind nodes, those of earlier storages first. */
static ms_err fill_drops(ms_graph *g, const ms_nodelist *list, ms_arena *arena,
                         ms_fault *fault)
{
    uint32_t *next;
    TAKE(g->drop, list->n_storages + 1u);
    TAKE(next, list->n + 1u);
    for (uint32_t s = 0; s < list->n_storages; s++)
        g->drop_at[list->ends[s] + 1]++;
    for (uint32_t v = 0; v < list->n; v++)
        g->drop_at[v + 1] += g->drop_at[v];
    memcpy(next, g->drop_at, list->n * sizeof *next);
    for (uint32_t s = 0; s < list->n_storages; s++)
        g->drop[next[list->ends[s]]++] = MS_DROP(s, MS_DROP_SAVED);
    return MS_OK;
}

/* What is read, each once. */
static ms_err fill_unit_inputs(ms_graph *g, const ms_nodelist *list,
                               ms_arena *arena, ms_fault *fault)
{
    uint32_t *seen, n = 0;
    TAKE(seen, list->n_storages + 1u);
    TAKE(g->unit_in_at, list->n + 1u);
    TAKE(g->unit_in, list->in_at[list->n] + 1u);
    for (uint32_t v = 0; v < list->n; v++) {
        for (uint32_t i = list->in_at[v]; i < list->in_at[v + 1]; i++) {
            uint32_t s = list->in[i];
            if (seen[s] != v + 1)
                g->unit_in[n++] = s;
            seen[s] = v + 1;
        }
        g->unit_in_at[v + 1] = n;
    }
    return MS_OK;
}

ms_err ms_nodegraph_lower(const ms_model *model, ms_arena *arena,
                          ms_graph *graph, ms_fault *fault)
{
    const ms_nodelist *list = model->nodes;
    *graph = (ms_graph){.name = model->name,
                        .nodes = true,
                        .n_storages = list->n_storages,
                        .n_ops = list->n,
                        .n_units = list->n,
                        .n_layers = list->n,
                        .step_first = list->n,
                        .step_all = list->n,
                        .storage_bytes = list->bytes,
                        .storage_saved_end = list->ends,
                        .op_ns = list->cost_ns,
                        .in_at = list->in_at,
                        .in = list->in,
                        .in_via = list->via,
                        .view_at = list->view_at,
                        .view = list->view,
                        .out_at = list->out_at,
                        .unit_name = list->names,
                        .layer_name = list->names};
    TAKE(graph->out, list->n_storages + 1u);
    MS_TRY(take_storages(graph, list->n_storages + 1u, arena, fault));
    MS_TRY(take_ops(graph, list->n + 1u, arena, fault));
    fill_storages(graph, list);
    fill_ops(graph, list);
    MS_TRY(fill_drops(graph, list, arena, fault));
    MS_TRY(fill_unit_inputs(graph, list, arena, fault));
    return MS_OK;
}
