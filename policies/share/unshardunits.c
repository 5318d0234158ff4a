/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "policies/share/unshardunits.h"
#include "sim/graph.h"
#include "sim/program.h"

static uint32_t first_in_block(const ms_graph *graph)
{
    uint32_t u = 0;
    while (u < graph->n_units && graph->unit_block[u] == MS_NONE)
        u++;
    return u;
}

uint32_t ms_unshardunits_of(const ms_unshardunits *w, uint32_t u)
{
    uint32_t block = w->graph->unit_block[u];
    if (w->options->units == MS_UNSHARD_WHOLE)
        return w->root;
    if (block != MS_NONE)
        return block;
    if (w->options->units == MS_UNSHARD_BLOCKS)
        return w->root;
    return u < first_in_block(w->graph) ? w->root + 1 : w->root + 2;
}

/* The owner of a weight is the unit that reads it, or the root where several
 * units do. */
static void find_owners(const ms_unshardunits *w, uint32_t *owner)
{
    const ms_graph *graph = w->graph;
    for (uint32_t s = 0; s < graph->n_persistent; s++)
        owner[s] = MS_NONE;
    for (uint32_t u = 0; u < graph->n_units; u++) {
        uint32_t f = ms_unshardunits_of(w, u);
        uint32_t end = graph->in_at[graph->forward_at[u + 1]];
        for (uint32_t i = graph->in_at[graph->forward_at[u]]; i < end; i++) {
            uint32_t s = graph->in[i];
            if (!ms_graph_is_weight(graph, s))
                continue;
            bool other = owner[s] != MS_NONE && owner[s] != f;
            owner[s] = other ? w->root : f;
        }
    }
    for (uint32_t s = 0; w->n_plain < w->n_units && s < graph->n_persistent;
         s++)
        if (owner[s] != MS_NONE &&
            ms_graph_group(graph, s) == MS_GROUP_EXPERT_DATA)
            owner[s] += w->n_plain;
}

static void measure_unit(const ms_unshardunits *w, ms_unshard_unit *it,
                         uint32_t weight)
{
    const ms_graph *graph = w->graph;
    const ms_share *share = &graph->share[it->group];
    uint32_t grad = graph->storage_grad[weight];
    uint64_t whole = graph->storage_bytes[weight];
    uint64_t elements = graph->weight_elements != NULL
                            ? graph->weight_elements[weight]
                            : whole / share->whole_bytes;
    uint64_t shard = graph->storage_shard_bytes[weight];
    bool casts = whole == elements * share->whole_bytes;
    it->n_weight++;
    it->part_bytes +=
        casts ? shard / share->part_bytes * share->whole_bytes : shard;
    if (grad == MS_NONE || whole == 0)
        return;
    it->grad_bytes = graph->storage_bytes[grad] / elements;
    uint64_t width = casts ? share->part_bytes : whole / elements;
    it->part_width = (uint8_t)width;
    it->part_elements += shard / it->part_width;
    it->kept = graph->storage_at_start[grad];
}

/* The sets of each unit: storages in order of their units. */
static ms_err make_sets(ms_unshardunits *w, const uint32_t *owner)
{
    const ms_graph *graph = w->graph;
    uint32_t n = graph->n_persistent;
    uint32_t *list =
        ms_arena_take_raw(w->arena, 2 * (size_t)n + 1, sizeof *list);
    uint32_t *at = ms_arena_take(w->arena, w->n_units + 1, sizeof *at);
    if (list == NULL || at == NULL)
        return ms_fail_nomem(w->fault);
    for (uint32_t f = 0; f < w->n_units; f++)
        at[f + 1] = at[f] + w->unit[f].n_weight;
    for (uint32_t s = 0; s < n; s++)
        if (owner[s] != MS_NONE)
            list[at[owner[s]]++] = s;
    /* Filling has moved each offset to its end, where the next unit begins. */
    for (uint32_t f = 0, first = 0; f < w->n_units; f++) {
        ms_unshard_unit *it = &w->unit[f];
        uint32_t *grads = list + n, n_grad = 0;
        for (uint32_t i = first; i < at[f]; i++)
            if (graph->storage_grad[list[i]] != MS_NONE)
                grads[n_grad++] = graph->storage_grad[list[i]];
        MS_TRY(ms_program_add_set(w->program, list + first, at[f] - first,
                                  w->arena, &it->weights, w->fault));
        MS_TRY(ms_program_add_set(w->program, grads, n_grad, w->arena,
                                  &it->grads, w->fault));
        first = at[f];
    }
    return MS_OK;
}

static ms_err add_buffer(ms_unshardunits *w, const char *name, uint64_t bytes,
                         ms_block_home home, uint32_t *buffer)
{
    uint8_t stream =
        home == MS_HOME_COMPUTE ? MS_STREAM_COMPUTE : MS_STREAM_COMM;
    ms_buffer value = {.name = name,
                       .bytes = bytes,
                       .category = MS_COMMUNICATION,
                       .pool = MS_DEVICE_POOL,
                       .stream = stream,
                       .home = (uint8_t)home,
                       .waited = !w->options->flat};
    return ms_program_add_buffer(w->program, value, w->arena, buffer, w->fault);
}

/* Of FSDP2 one rank alone needs none: its part is copied as it is. */
static ms_err make_buffers(ms_unshardunits *w, ms_unshard_unit *it)
{
    const ms_share *share = &w->graph->share[it->group];
    bool flat = w->options->flat, alone = share->parts == 1;
    uint64_t gathered = it->part_bytes * share->parts;
    uint64_t part = it->part_elements, all = part * share->parts;
    uint64_t bytes = w->options->reduced_bytes;
    bool apart = flat || w->options->copies_apart;
    bool again = w->program->n_micro_batches > 1 && !w->options->last_only;
    if (bytes == 0)
        bytes = it->part_width;
    if (!alone && share->part_bytes != share->whole_bytes)
        MS_TRY(add_buffer(w, "all_gather_input", it->part_bytes,
                          flat ? MS_HOME_CAST : MS_HOME_STREAM, &it->cast));
    if (!alone && !flat)
        MS_TRY(add_buffer(w, "all_gather_output", gathered, MS_HOME_STREAM,
                          &it->gathered));
    if (!alone && w->options->reshard_ranks > 0)
        MS_TRY(add_buffer(w, "post_forward_shard",
                          gathered / w->options->reshard_ranks, MS_HOME_COMPUTE,
                          &it->small));
    if (it->grads == MS_NOTHING)
        return MS_OK;
    if (flat)
        MS_TRY(add_buffer(w, "flat_grad", all * it->grad_bytes, MS_HOME_COMPUTE,
                          &it->flat));
    if (flat ? bytes != it->grad_bytes : !alone)
        MS_TRY(add_buffer(w, "reduce_scatter_input", all * bytes,
                          apart ? MS_HOME_REDUCE : MS_HOME_COMPUTE, &it->in));
    if (bytes != it->part_width || it->kept || again)
        MS_TRY(add_buffer(w, "reduce_scatter_output", part * bytes,
                          MS_HOME_REDUCE, &it->out));
    return MS_OK;
}

/* The order is that of the first use in forward; the root has no place in it.
 */
ms_err ms_unshardunits_open(ms_unshardunits *w)
{
    const ms_graph *graph = w->graph;
    uint32_t *owner =
        ms_arena_take_raw(w->arena, graph->n_persistent, sizeof *owner);
    w->root = graph->n_blocks;
    w->n_plain = w->n_units = w->root + 3;
    if (graph->share[MS_GROUP_EXPERT_DATA].parts > 0)
        w->n_units += w->n_plain;
    w->unit = ms_arena_take(w->arena, w->n_units, sizeof *w->unit);
    w->order = ms_arena_take_raw(w->arena, w->n_units, sizeof *w->order);
    if (owner == NULL || w->unit == NULL || w->order == NULL)
        return ms_fail_nomem(w->fault);
    find_owners(w, owner);
    for (uint32_t f = w->n_plain; f < w->n_units; f++)
        w->unit[f].group = MS_GROUP_EXPERT_DATA;
    for (uint32_t s = 0; s < graph->n_persistent; s++)
        if (owner[s] != MS_NONE)
            measure_unit(w, &w->unit[owner[s]], s);
    MS_TRY(make_sets(w, owner));
    for (uint32_t f = 0; f < w->n_units; f++) {
        ms_unshard_unit *it = &w->unit[f];
        it->small = it->cast = it->gathered = it->flat = it->in = it->out =
            MS_NONE;
        it->place = MS_NONE;
        if (it->weights != MS_NOTHING)
            MS_TRY(make_buffers(w, it));
    }
    for (uint32_t u = 0; u < graph->n_units; u++) {
        ms_unshard_unit *it = &w->unit[ms_unshardunits_of(w, u)];
        if (it == &w->unit[w->root] || it->place != MS_NONE ||
            it->weights == MS_NOTHING)
            continue;
        it->place = w->n_order;
        w->order[w->n_order++] = ms_unshardunits_of(w, u);
    }
    return MS_OK;
}
