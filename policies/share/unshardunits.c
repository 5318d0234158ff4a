/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "policies/share/unshardunits.h"
#include "sim/graph.h"
#include "sim/program.h"

#include <stdlib.h>

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
        return block - w->block;
    if (w->options->units == MS_UNSHARD_BLOCKS)
        return w->root;
    return u < first_in_block(w->graph) ? w->root + 1 : w->root + 2;
}

/* A weight that ops of the module read. */
typedef struct reading {
    uint32_t storage, unit; /* that reads it; once listed: that owns it */
} reading;

static int by_storage(const void *a, const void *b)
{
    const reading *x = a, *y = b;
    return (x->storage > y->storage) - (x->storage < y->storage);
}

/* The inputs of the units' forward. */
static void find_inputs(const ms_unshardunits *w, uint32_t u, uint32_t *first,
                        uint32_t *end)
{
    const ms_graph *graph = w->graph;
    *first = graph->in_at[graph->forward_at[u]];
    *end = graph->in_at[graph->forward_at[u + 1]];
}

/* The module's weights in order, each once.  A weight's owner is the unit that
 * reads it, or the root where several units do. */
static ms_err list_weights(const ms_unshardunits *w, reading **list,
                           uint32_t *n)
{
    const ms_graph *graph = w->graph;
    uint32_t first, end, low, n_read = 0;
    find_inputs(w, w->first, &low, &end);
    find_inputs(w, w->last, &first, &end);
    reading *read = ms_arena_take_raw(w->arena, end - low + 1, sizeof *read);
    if (read == NULL)
        return ms_fail_nomem(w->fault);
    for (uint32_t u = w->first; u <= w->last; u++) {
        uint32_t f = ms_unshardunits_of(w, u);
        find_inputs(w, u, &first, &end);
        for (uint32_t i = first; i < end; i++)
            if (ms_graph_is_weight(graph, graph->in[i]))
                read[n_read++] = (reading){graph->in[i], f};
    }
    qsort(read, n_read, sizeof *read, by_storage);
    *n = 0;
    for (uint32_t i = 0; i < n_read; i++) {
        reading *before = *n > 0 ? &read[*n - 1] : NULL;
        if (before == NULL || before->storage != read[i].storage)
            read[(*n)++] = read[i];
        else if (before->unit != read[i].unit)
            before->unit = w->root;
    }
    for (uint32_t i = 0; w->n_plain < w->n_units && i < *n; i++)
        if (ms_graph_group(graph, read[i].storage) == MS_GROUP_EXPERT_DATA)
            read[i].unit += w->n_plain;
    *list = read;
    return MS_OK;
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
static ms_err make_sets(ms_unshardunits *w, const reading *weights, uint32_t n)
{
    const ms_graph *graph = w->graph;
    uint32_t *list =
        ms_arena_take_raw(w->arena, 2 * (size_t)n + 1, sizeof *list);
    uint32_t *at = ms_arena_take(w->arena, w->n_units + 1, sizeof *at);
    if (list == NULL || at == NULL)
        return ms_fail_nomem(w->fault);
    for (uint32_t f = 0; f < w->n_units; f++)
        at[f + 1] = at[f] + w->unit[f].n_weight;
    for (uint32_t i = 0; i < n; i++)
        list[at[weights[i].unit]++] = weights[i].storage;
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

/* Those gradients of it that are partial when they come to be reduced. */
static ms_err make_sums(ms_unshardunits *w, ms_unshard_unit *it)
{
    const ms_graph *graph = w->graph;
    const ms_program *p = w->program;
    uint32_t at = p->set_at[it->weights], end = p->set_at[it->weights + 1];
    if (graph->storage_partial == NULL || it->grads == MS_NOTHING)
        return MS_OK;
    it->sums = ms_arena_take(w->arena, end - at, sizeof *it->sums);
    if (it->sums == NULL)
        return ms_fail_nomem(w->fault);
    for (uint32_t i = at; i < end; i++) {
        uint32_t weight = p->set_item[i], grad = graph->storage_grad[weight];
        if (!graph->storage_partial[weight] || grad == MS_NONE)
            continue;
        ms_unshard_sum *sum = &it->sums[it->n_sums++];
        MS_TRY(ms_program_add_set(w->program, &grad, 1, w->arena, &sum->set,
                                  w->fault));
        MS_TRY(add_buffer(w, "summed_grad", graph->storage_bytes[grad],
                          MS_HOME_COMPUTE, &sum->buffer));
    }
    return MS_OK;
}

/* Room for the units of the module's blocks and the three around them; the
 * experts', where other ranks divide them, come behind. */
static ms_err open_units(ms_unshardunits *w)
{
    const ms_graph *graph = w->graph;
    w->block = MS_NONE;
    w->root = 0;
    for (uint32_t u = w->first; u <= w->last; u++) {
        uint32_t block = graph->unit_block[u];
        if (block == MS_NONE)
            continue;
        if (w->block == MS_NONE)
            w->block = block;
        w->root = block - w->block + 1;
    }
    w->n_plain = w->n_units = w->root + 3;
    if (graph->share[MS_GROUP_EXPERT_DATA].parts > 0)
        w->n_units += w->n_plain;
    w->unit = ms_arena_take(w->arena, w->n_units, sizeof *w->unit);
    w->order = ms_arena_take_raw(w->arena, w->n_units, sizeof *w->order);
    if (w->unit == NULL || w->order == NULL)
        return ms_fail_nomem(w->fault);
    for (uint32_t f = 0; f < w->n_units; f++) {
        ms_unshard_unit *it = &w->unit[f];
        if (f >= w->n_plain)
            it->group = MS_GROUP_EXPERT_DATA;
        it->small = it->cast = it->gathered = it->flat = it->in = it->out =
            MS_NONE;
        it->place = MS_NONE;
    }
    return MS_OK;
}

/* The order is that of the first use in forward; the root has no place in it.
 */
ms_err ms_unshardunits_open(ms_unshardunits *w)
{
    reading *weights = NULL;
    uint32_t n = 0;
    MS_TRY(open_units(w));
    MS_TRY(list_weights(w, &weights, &n));
    for (uint32_t i = 0; i < n; i++)
        measure_unit(w, &w->unit[weights[i].unit], weights[i].storage);
    MS_TRY(make_sets(w, weights, n));
    for (uint32_t f = 0; f < w->n_units; f++)
        if (w->unit[f].weights != MS_NOTHING) {
            MS_TRY(make_buffers(w, &w->unit[f]));
            MS_TRY(make_sums(w, &w->unit[f]));
        }
    for (uint32_t u = w->first; u <= w->last; u++) {
        uint32_t f = ms_unshardunits_of(w, u);
        ms_unshard_unit *it = &w->unit[f];
        if (f == w->root || it->place != MS_NONE || it->weights == MS_NOTHING)
            continue;
        it->place = w->n_order;
        w->order[w->n_order++] = f;
    }
    return MS_OK;
}
