/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What expand derives from a graph; it is derived once and used by all of its
 * programs. */
#include "sim/expand/books.h"
#include "sim/graph.h"

/* In locals, which a store of a byte cannot alias, so that several are found at
 * once. */
static void find_refs(const ms_graph *graph)
{
    const uint32_t *restrict local = graph->storage_local_end;
    const uint32_t *restrict saved = graph->storage_saved_end;
    uint8_t *restrict refs = graph->storage_refs;
    uint32_t n = graph->n_storages, n_persistent = graph->n_persistent;
    for (uint32_t s = 0; s < n; s++)
        refs[s] =
            (uint8_t)(MS_REF_MADE | (local[s] != MS_NONE ? MS_REF_LOCAL : 0u) |
                      (saved[s] != MS_NONE ? MS_REF_SAVED : 0u));
    for (uint32_t s = 0; s < n_persistent; s++)
        refs[s] |= MS_REF_HOLD;
    for (uint32_t i = 0; i < graph->n_kept; i++)
        refs[graph->kept[i]] += MS_REF_HOLD;
}

/* Backward visits units in descending order, so that the ops of unit u are
 * [backward_at[u + 1], backward_at[u]). seen holds u + 1, and so needs no
 * clearing between units. */
static ms_err find_back_inputs(ms_graph *graph, ms_arena *arena,
                               ms_arena *scratch, ms_fault *fault)
{
    uint32_t units = graph->n_units, capacity = 0, n = 0;
    uint32_t *seen = ms_arena_take(scratch, graph->n_storages, sizeof *seen);
    graph->back_in_at =
        ms_arena_take(arena, units + 1, sizeof *graph->back_in_at);
    if (seen == NULL || graph->back_in_at == NULL)
        return ms_fail_nomem(fault);
    for (uint32_t u = 0; u < units; u++) {
        uint32_t first = graph->backward_at[u + 1];
        uint32_t end = graph->in_at[graph->backward_at[u]];
        for (uint32_t i = graph->in_at[first]; i < end; i++) {
            uint32_t s = graph->in[i], maker = graph->storage_maker[s];
            if (s < graph->n_persistent || maker >= first || seen[s] == u + 1)
                continue;
            seen[s] = u + 1;
            if (n == capacity)
                graph->back_in = ms_arena_grow(arena, graph->back_in, &capacity,
                                               n + 1, sizeof *graph->back_in);
            if (graph->back_in == NULL)
                return ms_fail_nomem(fault);
            graph->back_in[n++] = s;
        }
        graph->back_in_at[u + 1] = n;
    }
    return MS_OK;
}

static ms_err find_step_inputs(ms_graph *graph, ms_arena *arena,
                               ms_arena *scratch, ms_fault *fault)
{
    uint32_t n_persistent = graph->n_persistent;
    uint8_t *seen = ms_arena_take(scratch, n_persistent, 1);
    graph->n_step_in = 0;
    graph->step_in =
        ms_arena_take_raw(arena, n_persistent, sizeof *graph->step_in);
    if (seen == NULL || graph->step_in == NULL)
        return ms_fail_nomem(fault);
    for (uint32_t i = graph->in_at[graph->step_first];
         i < graph->in_at[graph->n_ops]; i++) {
        uint32_t s = graph->in[i];
        if (s >= n_persistent || graph->storage_at_start[s] || seen[s])
            continue;
        uint32_t maker = graph->storage_maker[s];
        seen[s] = 1;
        if (maker == MS_NONE || maker < graph->step_first)
            graph->step_in[graph->n_step_in++] = s;
    }
    return MS_OK;
}

static ms_err prepare(ms_graph *graph, ms_arena *arena, ms_arena *scratch,
                      ms_fault *fault)
{
    graph->storage_refs = ms_arena_take_raw(arena, graph->n_storages, 1);
    if (graph->storage_refs == NULL)
        return ms_fail_nomem(fault);
    find_refs(graph);
    graph->n_start = graph->n_weights = 0;
    for (uint32_t s = 0; s < graph->n_persistent; s++) {
        graph->n_start += graph->storage_at_start[s];
        graph->n_weights += ms_graph_is_weight(graph, s);
    }
    graph->back_in = NULL;
    MS_TRY(find_back_inputs(graph, arena, scratch, fault));
    MS_TRY(find_step_inputs(graph, arena, scratch, fault));
    return ms_step_prepare(graph, arena, scratch, fault);
}

ms_err ms_prepare_graph(ms_graph *graph, ms_arena *arena, ms_fault *fault)
{
    ms_arena scratch = {.limit_bytes = arena->limit_bytes};
    ms_err err = prepare(graph, arena, &scratch, fault);
    ms_arena_free(&scratch);
    return err;
}
