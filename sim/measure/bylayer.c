/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "sim/measure/bylayer.h"
#include "sim/graph.h"
#include "sim/plan.h"
#include "sim/timeline.h"

/* Layers get a row of the list when their first op runs.  What an op counts
 * for has a number: a block's, else n_blocks + its layer's, else that +
 * n_layers + its unit's. */
typedef struct by_layer {
    const ms_timeline *line;
    const ms_graph *graph;
    uint16_t rank;
    uint32_t *row; /* of the list, by number; MS_NONE: not met */
    ms_layer_use *list;
    uint32_t n;
} by_layer;

static uint32_t count_numbers(const ms_graph *graph)
{
    return graph->n_blocks + graph->n_layers + graph->n_units + 1;
}

/* The outermost module of an op graph has no name. */
static bool has_name(const ms_graph *graph, uint32_t layer)
{
    return layer != MS_NONE && graph->layer_name[layer][0] != '\0';
}

static uint32_t number_of(const ms_graph *graph, uint32_t op)
{
    uint32_t unit = graph->op_unit[op], layer = graph->op_layer[op];
    if (unit != MS_NONE && graph->unit_block[unit] != MS_NONE)
        return graph->unit_block[unit];
    if (has_name(graph, layer))
        return graph->n_blocks + layer;
    return graph->n_blocks + graph->n_layers +
           (unit != MS_NONE ? unit : graph->n_units);
}

static const char *name_of(const ms_graph *graph, uint32_t number)
{
    if (number < graph->n_blocks)
        return graph->block_name[number];
    number -= graph->n_blocks;
    if (number < graph->n_layers)
        return graph->layer_name[number];
    number -= graph->n_layers;
    return number < graph->n_units ? graph->unit_name[number] : "";
}

static ms_layer_use *use_of(by_layer *by, uint32_t op)
{
    uint32_t number = number_of(by->graph, op);
    if (by->row[number] == MS_NONE) {
        by->row[number] = by->n;
        by->list[by->n++] = (ms_layer_use){.name = name_of(by->graph, number)};
    }
    return &by->list[by->row[number]];
}

static void add_time(by_layer *by, uint32_t op)
{
    const ms_plan_op *row = &by->line->plan->op[op];
    uint64_t t_ns = by->line->end_ns[op] - by->line->start_ns[op];
    if (row->micro_batch == by->line->plan->repeated)
        t_ns += by->line->plan->repeats * t_ns;
    if (row->rank != by->rank || row->of == MS_NONE ||
        row->stream != MS_STREAM_COMPUTE)
        return;
    if (row->pass == MS_FORWARD || row->pass == MS_LOSS)
        use_of(by, row->of)->forward_ns += t_ns;
    else if (row->pass == MS_RECOMPUTE)
        use_of(by, row->of)->recompute_ns += t_ns;
}

/* A row counts where it is allocated, and no longer where it is freed. */
static void add_event(by_layer *by, const ms_event *event)
{
    const ms_plan *plan = by->line->plan;
    const ms_row *row = &plan->row[event->row];
    if (row->pool != MS_DEVICE_POOL || row->category != MS_ACTIVATIONS ||
        row->storage == MS_NONE || plan->op[row->op].rank != by->rank)
        return;
    uint32_t maker = by->graph->storage_maker[row->storage];
    if (maker == MS_NONE) /* a random state that was set aside */
        return;
    use_of(by, maker)->saved_bytes +=
        event->op_act & 1u ? row->bytes : 0 - row->bytes;
}

ms_err ms_bylayer_measure(const ms_timeline *line, uint16_t rank,
                          ms_arena *arena, ms_layer_use **layers, uint32_t *n,
                          ms_fault *fault)
{
    const ms_graph *graph = line->plan->graph;
    uint32_t n_numbers = count_numbers(graph);
    by_layer by = {.line = line, .graph = graph, .rank = rank};
    ms_eventwalk walk;
    by.row = ms_arena_take_raw(arena, n_numbers, sizeof *by.row);
    by.list = ms_arena_take_raw(arena, n_numbers, sizeof *by.list);
    if (!by.row || !by.list)
        return ms_fail_nomem(fault);
    for (uint32_t i = 0; i < n_numbers; i++)
        by.row[i] = MS_NONE;
    for (uint32_t op = 0; op < line->plan->n_ops; op++)
        add_time(&by, op);
    uint32_t until = ms_timeline_until(line, rank, MS_MARK_AFTER_FORWARD);
    ms_timeline_walk(line, 0, &walk);
    for (uint32_t e = 0; until != MS_NONE && e < until; e++)
        add_event(&by, ms_timeline_next(&walk));
    *layers = by.list;
    *n = by.n;
    return MS_OK;
}
