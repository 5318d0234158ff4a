/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "graphs/trace/columns.h"
#include "graphs/trace/trace.h"
#include "sim/graph.h"

#include <string.h>

static bool no_memory(ms_trace *trace)
{
    if (!trace->err)
        trace->err = ms_fail_nomem(trace->fault);
    return false;
}

void *ms_columns_take(ms_trace *trace, size_t n, size_t size)
{
    void *items = ms_arena_take_raw(trace->scratch, n, size);
    if (!items)
        no_memory(trace);
    return items;
}

bool ms_columns_enlarge(ms_trace *trace, ms_arena *arena, void *column,
                        uint32_t *capacity, uint32_t need, size_t size)
{
    void *items;
    memcpy(&items, column, sizeof items);
    items = ms_arena_grow(arena, items, capacity, need, size);
    if (!items)
        return no_memory(trace);
    memcpy(column, &items, sizeof items);
    return true;
}

typedef struct column {
    void *items;
    size_t size;
} column;

/* Grows columns that share one capacity. */
static bool grow_columns(ms_trace *trace, const column *columns, size_t n,
                         uint32_t *capacity, uint32_t need)
{
    uint32_t was = *capacity;
    for (size_t i = 0; i < n; i++) {
        *capacity = was;
        if (!ms_columns_grow(trace, trace->arena, columns[i].items, capacity,
                             need, columns[i].size))
            return false;
    }
    return true;
}

bool ms_columns_storages(ms_trace *trace, uint32_t need)
{
    ms_graph *g = trace->graph;
    uint32_t counts = trace->storages_capacity;
    if (need <= counts)
        return true;
    const column columns[] = {
        {&g->storage_bytes, sizeof *g->storage_bytes},
        {&g->storage_category, sizeof *g->storage_category},
        {&g->storage_at_start, sizeof *g->storage_at_start},
        {&g->storage_maker, sizeof *g->storage_maker},
        {&g->storage_local_end, sizeof *g->storage_local_end},
        {&g->storage_saved_end, sizeof *g->storage_saved_end},
        {&g->storage_grad, sizeof *g->storage_grad},
        {&g->storage_buffer, sizeof *g->storage_buffer},
        {&g->storage_layer, sizeof *g->storage_layer},
        {&g->storage_name, sizeof *g->storage_name},
    };
    return ms_columns_grow(trace, trace->scratch, &trace->counts, &counts, need,
                           sizeof *trace->counts) &&
           grow_columns(trace, columns, sizeof columns / sizeof *columns,
                        &trace->storages_capacity, need);
}

bool ms_columns_ops(ms_trace *trace, uint32_t need)
{
    ms_graph *g = trace->graph;
    uint32_t ends = trace->ops_capacity;
    if (need + 1 <= ends)
        return true;
    const column columns[] = {
        {&g->op_name, sizeof *g->op_name},
        {&g->op_kind, sizeof *g->op_kind},
        {&g->op_pass, sizeof *g->op_pass},
        {&g->op_flags, sizeof *g->op_flags},
        {&g->op_stream, sizeof *g->op_stream},
        {&g->op_meets, sizeof *g->op_meets},
        {&g->op_unit, sizeof *g->op_unit},
        {&g->op_layer, sizeof *g->op_layer},
        {&g->op_node, sizeof *g->op_node},
        {&g->op_flops, sizeof *g->op_flops},
        {&g->op_read_bytes, sizeof *g->op_read_bytes},
        {&g->op_write_bytes, sizeof *g->op_write_bytes},
        {&g->op_ns, sizeof *g->op_ns},
        {&g->in_at, sizeof *g->in_at},
        {&g->out_at, sizeof *g->out_at},
        {&g->drop_at, sizeof *g->drop_at},
    };
    /* One more than the ops: the closing offsets of the CSR columns. */
    return ms_columns_grow(trace, trace->scratch, &trace->ends, &ends, need + 1,
                           sizeof *trace->ends) &&
           grow_columns(trace, columns, sizeof columns / sizeof *columns,
                        &trace->ops_capacity, need + 1);
}
