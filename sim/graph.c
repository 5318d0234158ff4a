/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Checks the invariants of graph.h.  A graph that breaks one comes from a bug
 * in lowering, so the messages are for its author: they give ids. */
#include "sim/graph.h"
#include "sim/kinds.h"

#include <stdio.h>

const char *ms_graph_storage_name(const ms_graph *graph, uint32_t storage,
                                  char buffer[MS_STORAGE_NAME])
{
    uint32_t layer =
        graph->storage_layer ? graph->storage_layer[storage] : MS_NONE;
    if (layer == MS_NONE)
        return graph->storage_name[storage];
    snprintf(buffer, MS_STORAGE_NAME, "%s:%s", graph->layer_name[layer],
             graph->storage_name[storage]);
    return buffer;
}

static ms_err fail_row(const ms_graph *graph, ms_fault *fault,
                       const char *table, uint32_t row, const char *what)
{
    char where[224];
    snprintf(where, sizeof where, "%.160s: %s %u", graph->name, table, row);
    return ms_fail(fault, MS_EINPUT, where, NULL, "%s", what);
}

/* Offsets that start at 0 and never fall, over values below limit. */
static ms_err check_csr(const ms_graph *graph, const char *table, uint32_t n,
                        const uint32_t *at, const uint32_t *values,
                        uint32_t limit, uint32_t shift, ms_fault *fault)
{
    if (at[0] != 0)
        return fail_row(graph, fault, table, 0, "offsets do not start at 0");
    for (uint32_t i = 0; i < n; i++) {
        if (at[i] > at[i + 1])
            return fail_row(graph, fault, table, i, "offsets fall");
        for (uint32_t k = at[i]; k < at[i + 1]; k++)
            if (values[k] >> shift >= limit)
                return fail_row(graph, fault, table, i,
                                "an entry is out of range");
    }
    return MS_OK;
}

static bool is_op(const ms_graph *graph, uint32_t op)
{
    return op == MS_NONE || op < graph->n_ops;
}

static ms_err check_storages(const ms_graph *graph, ms_fault *fault)
{
    if (graph->n_persistent > graph->n_storages)
        return fail_row(graph, fault, "storage", graph->n_persistent,
                        "more persistent storages than storages");
    for (uint32_t s = 0; s < graph->n_storages; s++) {
        uint32_t grad = graph->storage_grad[s];
        if (graph->storage_category[s] > MS_BECOMES_GRAD)
            return fail_row(graph, fault, "storage", s, "no such category");
        if (!is_op(graph, graph->storage_maker[s]) ||
            !is_op(graph, graph->storage_local_end[s]) ||
            !is_op(graph, graph->storage_saved_end[s]))
            return fail_row(graph, fault, "storage", s,
                            "maker or end is no op");
        if (grad != MS_NONE && grad >= graph->n_persistent)
            return fail_row(graph, fault, "storage", s,
                            "its .grad is no persistent storage");
        if (graph->storage_category[s] == MS_BECOMES_GRAD && grad == MS_NONE)
            return fail_row(graph, fault, "storage", s, "it becomes no .grad");
        if (s >= graph->n_persistent && graph->storage_maker[s] == MS_NONE)
            return fail_row(graph, fault, "storage", s, "nothing makes it");
        if (s >= graph->n_persistent && graph->storage_at_start[s])
            return fail_row(graph, fault, "storage", s,
                            "a frame's storage exists at the start");
    }
    return MS_OK;
}

static ms_err check_ops(const ms_graph *graph, ms_fault *fault)
{
    for (uint32_t op = 0; op < graph->n_ops; op++) {
        uint32_t unit = graph->op_unit[op], layer = graph->op_layer[op];
        if (graph->op_kind[op] >= MS_N_KINDS)
            return fail_row(graph, fault, "op", op, "no such kind");
        if (graph->op_pass[op] > MS_RECOMPUTE)
            return fail_row(graph, fault, "op", op, "no such pass");
        if (graph->op_stream[op] >= MS_N_STREAMS)
            return fail_row(graph, fault, "op", op, "no such stream");
        if (unit == MS_NONE ? op < graph->step_first : unit >= graph->n_units)
            return fail_row(graph, fault, "op", op, "no such unit");
        if (layer != MS_NONE && layer >= graph->n_layers)
            return fail_row(graph, fault, "op", op, "no such layer");
    }
    return MS_OK;
}

/* Each storage is in one out list at most, its maker's, and there once, but for
 * workspaces that last; seen tells which have been there. */
static ms_err check_makers(const ms_graph *graph, uint8_t *seen,
                           ms_fault *fault)
{
    for (uint32_t op = 0; op < graph->n_ops; op++)
        for (uint32_t i = graph->out_at[op]; i < graph->out_at[op + 1]; i++) {
            uint32_t s = graph->out[i];
            bool claimed = s < graph->n_persistent && seen[s] &&
                           graph->storage_category[s] == MS_WORKSPACE;
            if (!claimed && (graph->storage_maker[s] != op || seen[s]))
                return fail_row(graph, fault, "op", op,
                                "makes a storage that has another maker");
            seen[s] = 1;
        }
    for (uint32_t s = 0; s < graph->n_storages; s++)
        if (graph->storage_maker[s] != MS_NONE && !seen[s])
            return fail_row(graph, fault, "storage", s,
                            "its maker does not make it");
    return MS_OK;
}

static uint32_t end_of(const ms_graph *graph, uint32_t drop)
{
    uint32_t s = MS_DROP_STORAGE(drop);
    return drop & MS_DROP_SAVED ? graph->storage_saved_end[s]
                                : graph->storage_local_end[s];
}

/* Each reference that ends is once in its op's drop list; seen tells which have
 * been there. */
static ms_err check_drops(const ms_graph *graph, uint8_t *seen, ms_fault *fault)
{
    for (uint32_t op = 0; op < graph->n_ops; op++)
        for (uint32_t i = graph->drop_at[op]; i < graph->drop_at[op + 1]; i++) {
            uint32_t drop = graph->drop[i];
            if (end_of(graph, drop) != op || seen[drop])
                return fail_row(graph, fault, "op", op,
                                "drops a reference that ends elsewhere");
            seen[drop] = 1;
        }
    for (uint32_t s = 0; s < graph->n_storages; s++)
        for (uint32_t saved = 0; saved < 2; saved++)
            if (end_of(graph, MS_DROP(s, saved)) != MS_NONE &&
                !seen[MS_DROP(s, saved)])
                return fail_row(graph, fault, "storage", s,
                                "its end is not once in that op's drop list");
    return MS_OK;
}

/* A mark per storage, and one per reference: a pass over the lists each,
 * however long an op's are. */
static ms_err check_lists(const ms_graph *graph, ms_fault *fault)
{
    ms_arena scratch = {0};
    uint8_t *made = ms_arena_take(&scratch, graph->n_storages, 1);
    uint8_t *dropped = ms_arena_take(&scratch, graph->n_storages, 2);
    ms_err err = made == NULL || dropped == NULL
                     ? ms_fail_nomem(fault)
                     : check_makers(graph, made, fault);
    if (err == MS_OK)
        err = check_drops(graph, dropped, fault);
    ms_arena_free(&scratch);
    return err;
}

/* A forward op reads only what was made before it. */
static ms_err check_reads(const ms_graph *graph, ms_fault *fault)
{
    for (uint32_t op = 0; op < graph->n_ops; op++)
        for (uint32_t i = graph->in_at[op]; i < graph->in_at[op + 1]; i++) {
            uint32_t s = graph->in[i], maker = graph->storage_maker[s];
            if (s >= graph->n_persistent && maker >= op)
                return fail_row(graph, fault, "op", op,
                                "reads a storage that is made later");
        }
    return MS_OK;
}

static ms_err check_range(const ms_graph *graph, uint32_t unit, uint32_t first,
                          uint32_t end, bool forward, ms_fault *fault)
{
    if (first > end || end > graph->n_ops)
        return fail_row(graph, fault, "unit", unit, "its ops are no range");
    for (uint32_t op = first; op < end; op++) {
        if (graph->op_unit[op] != unit)
            return fail_row(graph, fault, "op", op,
                            "lies among another unit's ops");
        if (forward != (graph->op_pass[op] <= MS_LOSS) &&
            !(graph->nodes && graph->op_pass[op] == MS_GRAD_INPUT))
            return fail_row(graph, fault, "op", op,
                            "has a pass of the other direction");
    }
    return MS_OK;
}

static ms_err check_units(const ms_graph *graph, ms_fault *fault)
{
    uint32_t n = graph->n_units;
    for (uint32_t u = 0; u < n; u++) {
        MS_TRY(check_range(graph, u, graph->forward_at[u],
                           graph->forward_at[u + 1], true, fault));
        MS_TRY(check_range(graph, u, graph->backward_at[u + 1],
                           graph->backward_at[u], false, fault));
        if (graph->unit_block[u] != MS_NONE &&
            graph->unit_block[u] >= graph->n_blocks)
            return fail_row(graph, fault, "unit", u, "no such block");
        for (uint32_t i = graph->unit_in_at[u]; i < graph->unit_in_at[u + 1];
             i++) {
            uint32_t s = graph->unit_in[i];
            if (s < graph->n_persistent ||
                graph->storage_maker[s] >= graph->forward_at[u])
                return fail_row(graph, fault, "unit", u,
                                "reads what no earlier unit makes");
        }
    }
    if (graph->forward_at[n] > graph->backward_at[n] ||
        graph->backward_at[0] > graph->step_first ||
        graph->step_first > graph->n_ops || graph->loss_unit > n)
        return fail_row(graph, fault, "unit", n,
                        "forward, backward and step overlap");
    return MS_OK;
}

ms_err ms_graph_check(const ms_graph *graph, ms_fault *fault)
{
    uint32_t storages = graph->n_storages, ops = graph->n_ops;
    MS_TRY(check_csr(graph, "in of op", ops, graph->in_at, graph->in, storages,
                     0, fault));
    MS_TRY(check_csr(graph, "out of op", ops, graph->out_at, graph->out,
                     storages, 0, fault));
    MS_TRY(check_csr(graph, "drop of op", ops, graph->drop_at, graph->drop,
                     storages, 1, fault));
    MS_TRY(check_csr(graph, "in of unit", graph->n_units, graph->unit_in_at,
                     graph->unit_in, storages, 0, fault));
    for (uint32_t i = 0; i < graph->n_kept; i++)
        if (graph->kept[i] < graph->n_persistent || graph->kept[i] >= storages)
            return fail_row(graph, fault, "kept", i,
                            "is no storage of a frame");
    MS_TRY(check_storages(graph, fault));
    MS_TRY(check_ops(graph, fault));
    MS_TRY(check_lists(graph, fault));
    MS_TRY(check_reads(graph, fault));
    return check_units(graph, fault);
}
