/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "graphs/lowering/numbering.h"

#include "graphs/optimizer/optimizer.h"
#include "graphs/trace/trace.h"
#include "sim/graph.h"

#include <string.h>

/* ---- the order ----------------------------------------------------------- */

/* Of storages that have been numbered before nothing is counted any more. */
static bool is_persistent(const ms_trace *trace, uint32_t s)
{
    return s < trace->n_numbered ? s < trace->graph->n_persistent
                                 : trace->counts[s].persistent;
}

static uint32_t count_persistent(const ms_trace *trace)
{
    uint32_t n = trace->n_numbered > 0 ? trace->graph->n_persistent : 0;
    for (uint32_t s = trace->n_numbered; s < trace->graph->n_storages; s++)
        n += trace->counts[s].persistent;
    return n;
}

/* Both kinds in the order in which they were made.  What a pass has added
 * (ms_added) comes where its op would have made it, so that a pass changes no
 * order.  next: the next number of a temporary, of a persistent one. */
static void number_all(const ms_trace *trace, uint32_t next[2], uint32_t *map)
{
    const ms_added *it = trace->added, *end = it;
    uint32_t first = MS_NONE;
    if (trace->n_added > 0) { /* else there is no list to point behind */
        end += trace->n_added;
        first = it->storage;
    }
    for (uint32_t s = 0; s < trace->graph->n_storages; s++) {
        for (; it < end && it->after <= s; it++)
            map[it->storage] = next[is_persistent(trace, it->storage)]++;
        if (s == first)
            s += trace->n_added;
        if (s < trace->graph->n_storages)
            map[s] = next[is_persistent(trace, s)]++;
    }
}

/* ---- columns of storages ------------------------------------------------- */

/* Puts the items of a column in their new places; room: for all of them. */
static inline void place(const ms_trace *trace, void *column, size_t size,
                         const uint32_t *new_id, void *room)
{
    const char *from = column;
    char *to = room;
    uint32_t n = trace->graph->n_storages;
    for (uint32_t s = 0; s < n; s++, from += size)
        memcpy(to + new_id[s] * size, from, size);
    memcpy(column, room, n * size);
}

static void place_all(ms_trace *trace, const uint32_t *new_id, void *room)
{
    ms_graph *g = trace->graph;
    place(trace, g->storage_bytes, sizeof(uint64_t), new_id, room);
    place(trace, g->storage_category, 1, new_id, room);
    place(trace, g->storage_at_start, 1, new_id, room);
    place(trace, g->storage_buffer, 1, new_id, room);
    place(trace, g->storage_maker, sizeof(uint32_t), new_id, room);
    place(trace, g->storage_local_end, sizeof(uint32_t), new_id, room);
    place(trace, g->storage_saved_end, sizeof(uint32_t), new_id, room);
    place(trace, g->storage_grad, sizeof(uint32_t), new_id, room);
    place(trace, g->storage_layer, sizeof(uint32_t), new_id, room);
    place(trace, g->storage_name, sizeof(char *), new_id, room);
}

/* ---- names of storages --------------------------------------------------- */

static void rename_id(uint32_t *id, const uint32_t *new_id)
{
    if (*id != MS_NONE)
        *id = new_id[*id];
}

static void rename_ids(uint32_t *ids, uint32_t n, const uint32_t *new_id)
{
    for (uint32_t i = 0; i < n; i++)
        rename_id(&ids[i], new_id);
}

static void rename_graph(ms_trace *trace, uint32_t n_units,
                         const uint32_t *new_id)
{
    ms_graph *g = trace->graph;
    rename_ids(g->storage_grad, g->n_storages, new_id);
    rename_ids(g->in, trace->n_in, new_id);
    rename_ids(g->out, trace->n_out, new_id);
    rename_ids(g->kept, g->n_kept, new_id);
    rename_ids(g->untrained, g->n_untrained, new_id);
    if (g->unit_state)
        rename_ids(g->unit_state, n_units, new_id);
    for (uint32_t i = 0; i < trace->n_drop; i++)
        g->drop[i] = MS_DROP(new_id[MS_DROP_STORAGE(g->drop[i])],
                             g->drop[i] & MS_DROP_SAVED);
    for (uint32_t i = 0; i < g->n_saves; i++)
        rename_id(&g->saves[i].storage, new_id);
}

static void rename_parameters(ms_trace *trace, const uint32_t *new_id)
{
    ms_optimizer_state *optimizer = trace->optimizer;
    for (uint32_t p = 0; p < trace->n_parameters; p++) {
        ms_parameter *it = &trace->parameters[p];
        rename_id(&it->storage, new_id);
        rename_id(&it->grad_storage, new_id);
        rename_id(&it->master, new_id);
        rename_id(&it->host_grad, new_id);
        rename_id(&it->next, new_id);
        rename_ids(it->kept, MS_N_KEPT, new_id);
        rename_id(&it->sum, new_id);
        rename_ids(it->state, MS_MOST_STATES, new_id);
        rename_ids(it->copy, 2, new_id);
        rename_id(&it->original, new_id);
    }
    for (uint32_t i = 0; i < optimizer->n_homes; i++)
        rename_id(&optimizer->homes[i].storage, new_id);
    rename_ids(optimizer->slots, optimizer->n_slots, new_id);
    rename_ids(optimizer->maps, optimizer->n_maps, new_id);
    rename_id(&optimizer->step_order, new_id);
    rename_id(&optimizer->buckets, new_id);
}

/* ---- the whole ----------------------------------------------------------- */

static ms_err renumber(ms_trace *trace, uint32_t n_units, uint32_t n_persistent)
{
    uint32_t n = trace->graph->n_storages, next[2] = {n_persistent, 0};
    uint32_t *map = ms_arena_take_raw(trace->scratch, n, sizeof *map);
    void *room = ms_arena_take_raw(trace->scratch, n, sizeof(uint64_t));
    if (!map || !room)
        return ms_fail_nomem(trace->fault);
    number_all(trace, next, map);
    place_all(trace, map, room);
    rename_graph(trace, n_units, map);
    rename_parameters(trace, map);
    return MS_OK;
}

ms_err ms_numbering_run(ms_trace *trace, uint32_t n_units)
{
    ms_graph *g = trace->graph;
    uint32_t n = count_persistent(trace);
    if (trace->n_numbered == 0 || n > g->n_persistent || trace->n_added > 0)
        MS_TRY(renumber(trace, n_units, n));
    g->n_persistent = n;
    trace->n_numbered = g->n_storages;
    trace->n_added = 0;
    return MS_OK;
}
