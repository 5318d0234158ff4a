/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The parameters as the flat group of stage_1_and_2.py lists them. */
#include "policies/deepspeed/deepspeed.h"
#include "sim/graph.h"
#include "sim/program.h"

/* All weights have one format here, so that the size of an element is all bytes
 * over all elements, those of ranks with other parts, too. */
static uint64_t weight_item_bytes(const ms_graph *graph)
{
    uint64_t bytes = 0;
    for (uint32_t s = 0; s < graph->n_persistent; s++)
        if (ms_graph_is_weight(graph, s))
            bytes += graph->storage_bytes[s] *
                     (graph->storage_ranks ? graph->storage_ranks[s] : 1);
    return graph->parameters > 0 ? bytes / graph->parameters : 1;
}

static void list_rows(ms_deepspeed_writer *w)
{
    const ms_graph *graph = w->graph;
    uint64_t item_bytes = weight_item_bytes(graph);
    for (uint32_t s = 0; s < graph->n_persistent; s++) {
        w->row_of[s] = MS_NONE;
        if (!ms_graph_is_weight(graph, s))
            continue;
        uint32_t grad = graph->storage_grad[s];
        uint64_t elements = graph->storage_bytes[s] / item_bytes;
        w->row_of[s] = w->n_rows;
        w->rows[w->n_rows++] = (ms_deepspeed_row){
            .weight = s, .grad = grad, .set = MS_NOTHING, .elements = elements};
        if (grad != MS_NONE && elements > 0)
            w->item_bytes = graph->storage_bytes[grad] / elements;
    }
    for (uint32_t r = 0; r < w->n_rows; r++)
        if (w->rows[r].grad != MS_NONE)
            w->row_of[w->rows[r].grad] = r;
}

/* Where each lies in the flat group: in their order or, round robin, every
 * ranks-th first (stage_1_and_2.py, _round_robin_reorder). */
static void lay_out(ms_deepspeed_writer *w)
{
    uint32_t step = w->how->round_robin ? w->ranks : 1;
    uint64_t at = 0, multiple = 2 * (uint64_t)w->ranks;
    for (uint32_t first = 0; first < step; first++)
        for (uint32_t r = first; r < w->n_rows; r += step) {
            w->rows[r].at = at;
            at += w->rows[r].elements;
        }
    /* The group is filled up to a multiple of 2 * ranks elements
     * (nccl_start_alignment_factor); each rank has as long a stretch of it. */
    w->stretch = (at + multiple - 1) / multiple * 2;
}

static void list_grads(ms_deepspeed_writer *w)
{
    const ms_graph *graph = w->graph;
    uint32_t n = 0;
    for (uint32_t u = 0; u < graph->n_units; u++) {
        w->grad_at[u] = n;
        for (uint32_t op = graph->backward_at[u + 1];
             op < graph->backward_at[u]; op++) {
            if (graph->op_pass[op] != MS_ACCUMULATE)
                continue;
            uint32_t row = w->row_of[graph->out[graph->out_at[op]]];
            if (row == MS_NONE || w->rows[row].made)
                continue;
            w->rows[row].made = true;
            w->grad_of[n++] = row;
        }
    }
    w->grad_at[graph->n_units] = n;
}

ms_err ms_deepspeedrows_open(ms_deepspeed_writer *w)
{
    uint32_t n = w->graph->n_persistent, g = 0, p = 0;
    w->rows = ms_arena_take(w->arena, n, sizeof *w->rows);
    w->row_of = ms_arena_take_raw(w->arena, n, sizeof(uint32_t));
    w->grad_at =
        ms_arena_take(w->arena, w->graph->n_units + 1, sizeof(uint32_t));
    w->grad_of = ms_arena_take(w->arena, n, sizeof(uint32_t));
    w->list = ms_arena_take_raw(w->arena, n, sizeof(uint32_t));
    w->in = ms_arena_take_raw(w->arena, n, sizeof(uint32_t));
    if (!w->rows || !w->row_of || !w->grad_at || !w->grad_of || !w->list ||
        !w->in)
        return ms_fail_nomem(w->fault);
    list_rows(w);
    lay_out(w);
    list_grads(w);
    for (uint32_t r = 0; r < w->n_rows; r++)
        if (w->rows[r].made)
            w->list[g++] = w->rows[r].grad;
    MS_TRY(ms_deepspeedcalls_add_set(w, g, &w->all_grads));
    for (uint32_t r = 0; r < w->n_rows; r++)
        w->list[p++] = w->rows[r].weight;
    return ms_deepspeedcalls_add_set(w, p, &w->all_weights);
}
