/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "sim/graph.h"
#include "tests/laws/laws.h"

#include <check.h>

#define LISTED_PER_OP 8u

void *laws_take(ms_arena *arena, size_t n, size_t size)
{
    void *memory = ms_arena_take(arena, n, size);
    ck_assert_ptr_nonnull(memory);
    return memory;
}

static void take_storages(ms_graph *graph, ms_arena *arena, uint32_t n)
{
    graph->storage_bytes = laws_take(arena, n, sizeof(uint64_t));
    graph->storage_category = laws_take(arena, n, 1);
    graph->storage_at_start = laws_take(arena, n, 1);
    graph->storage_maker = laws_take(arena, n, sizeof(uint32_t));
    graph->storage_local_end = laws_take(arena, n, sizeof(uint32_t));
    graph->storage_saved_end = laws_take(arena, n, sizeof(uint32_t));
    graph->storage_grad = laws_take(arena, n, sizeof(uint32_t));
    graph->storage_buffer = laws_take(arena, n, 1);
    graph->storage_name = laws_take(arena, n, sizeof(char *));
    graph->kept = laws_take(arena, n, sizeof(uint32_t));
}

static void take_ops(ms_graph *graph, ms_arena *arena, uint32_t n)
{
    graph->op_name = laws_take(arena, n, sizeof(char *));
    graph->op_kind = laws_take(arena, n, 1);
    graph->op_pass = laws_take(arena, n, 1);
    graph->op_flags = laws_take(arena, n, 1);
    graph->op_stream = laws_take(arena, n, 1);
    graph->op_unit = laws_take(arena, n, sizeof(uint32_t));
    graph->op_layer = laws_take(arena, n, sizeof(uint32_t));
    graph->op_node = laws_take(arena, n, sizeof(uint32_t));
    graph->op_flops = laws_take(arena, n, sizeof(double));
    graph->op_read_bytes = laws_take(arena, n, sizeof(uint64_t));
    graph->op_write_bytes = laws_take(arena, n, sizeof(uint64_t));
    graph->op_ns = laws_take(arena, n, sizeof(uint64_t));
    graph->in_at = laws_take(arena, n + 1, sizeof(uint32_t));
    graph->out_at = laws_take(arena, n + 1, sizeof(uint32_t));
    graph->drop_at = laws_take(arena, n + 1, sizeof(uint32_t));
    graph->in = laws_take(arena, n * (size_t)LISTED_PER_OP, sizeof(uint32_t));
    graph->out = laws_take(arena, n * (size_t)LISTED_PER_OP, sizeof(uint32_t));
}

static void take_units(ms_graph *graph, ms_arena *arena, uint32_t n)
{
    static const char *const layers[] = {"layer"};
    graph->n_units = graph->n_blocks = n;
    graph->forward_at = laws_take(arena, n + 1, sizeof(uint32_t));
    graph->backward_at = laws_take(arena, n + 1, sizeof(uint32_t));
    graph->unit_block = laws_take(arena, n, sizeof(uint32_t));
    graph->unit_in_at = laws_take(arena, n + 1, sizeof(uint32_t));
    graph->unit_name = laws_take(arena, n, sizeof(char *));
    graph->block_name = laws_take(arena, n, sizeof(char *));
    for (uint32_t u = 0; u < n; u++) {
        graph->unit_block[u] = u;
        graph->unit_name[u] = graph->block_name[u] =
            ms_arena_format(arena, "block.%u", u);
    }
    graph->n_layers = 1;
    graph->layer_name = laws_take(arena, 1, sizeof(char *));
    graph->layer_name[0] = layers[0];
    graph->layer_role = laws_take(arena, 1, 1);
}

void laws_build_open(laws_builder *builder, ms_graph *graph, ms_arena *arena,
                     uint32_t storages, uint32_t ops, uint32_t units)
{
    *graph = (ms_graph){.name = "random"};
    *builder = (laws_builder){.graph = graph, .arena = arena};
    take_storages(graph, arena, storages);
    take_ops(graph, arena, ops);
    take_units(graph, arena, units);
}

uint32_t laws_build_storage(laws_builder *builder, uint64_t bytes,
                            uint8_t category, bool at_start)
{
    ms_graph *graph = builder->graph;
    uint32_t s = graph->n_storages++;
    graph->storage_bytes[s] = bytes;
    graph->storage_category[s] = category;
    graph->storage_at_start[s] = at_start;
    graph->storage_maker[s] = MS_NONE;
    graph->storage_local_end[s] = MS_NONE;
    graph->storage_saved_end[s] = MS_NONE;
    graph->storage_grad[s] = MS_NONE;
    graph->storage_name[s] = ms_arena_format(builder->arena, "s%u", s);
    return s;
}

uint32_t laws_build_op(laws_builder *builder, uint8_t pass, uint32_t unit,
                       uint64_t ns, const uint32_t *in, uint32_t n_in,
                       const uint32_t *out, uint32_t n_out)
{
    ms_graph *graph = builder->graph;
    uint32_t op = graph->n_ops++;
    ck_assert_uint_le(n_in, LISTED_PER_OP);
    ck_assert_uint_le(n_out, LISTED_PER_OP);
    graph->op_name[op] = ms_arena_format(builder->arena, "op%u", op);
    graph->op_pass[op] = pass;
    graph->op_unit[op] = unit;
    graph->op_layer[op] = unit == MS_NONE ? MS_NONE : 0;
    graph->op_node[op] = MS_NONE;
    graph->op_ns[op] = ns;
    graph->op_flops[op] = (double)ns;
    for (uint32_t i = 0; i < n_in; i++)
        graph->in[builder->n_in++] = in[i];
    for (uint32_t i = 0; i < n_out; i++) {
        graph->out[builder->n_out++] = out[i];
        graph->storage_maker[out[i]] = op;
    }
    graph->in_at[op + 1] = builder->n_in;
    graph->out_at[op + 1] = builder->n_out;
    return op;
}

/* ---- what follows from the ops ------------------------------------------- */

static bool is_forward(const ms_graph *graph, uint32_t op)
{
    return graph->op_pass[op] <= MS_LOSS;
}

static void find_local_ends(ms_graph *graph)
{
    for (uint32_t s = graph->n_persistent; s < graph->n_storages; s++) {
        uint32_t maker = graph->storage_maker[s];
        uint32_t end = graph->storage_local_end[s];
        if (end == MS_NONE)
            end = maker;
        for (uint32_t op = maker; op < graph->n_ops; op++)
            for (uint32_t i = graph->in_at[op]; i < graph->in_at[op + 1]; i++)
                if (graph->in[i] == s && op > end &&
                    is_forward(graph, op) == is_forward(graph, maker))
                    end = op;
        graph->storage_local_end[s] = end;
    }
}

static void list_drops(ms_graph *graph, ms_arena *arena)
{
    uint32_t n = 0;
    graph->drop =
        laws_take(arena, 2 * (size_t)graph->n_storages, sizeof(uint32_t));
    for (uint32_t op = 0; op < graph->n_ops; op++) {
        for (uint32_t s = 0; s < graph->n_storages; s++) {
            if (graph->storage_local_end[s] == op)
                graph->drop[n++] = MS_DROP(s, 0);
            if (graph->storage_saved_end[s] == op)
                graph->drop[n++] = MS_DROP(s, MS_DROP_SAVED);
        }
        graph->drop_at[op + 1] = n;
    }
}

static bool listed(const uint32_t *list, uint32_t from, uint32_t to,
                   uint32_t item)
{
    for (uint32_t i = from; i < to; i++)
        if (list[i] == item)
            return true;
    return false;
}

static void list_unit_inputs(ms_graph *graph, ms_arena *arena)
{
    uint32_t n = 0;
    graph->unit_in =
        laws_take(arena, graph->in_at[graph->n_ops] + 1, sizeof(uint32_t));
    for (uint32_t u = 0; u < graph->n_units; u++) {
        uint32_t first = graph->in_at[graph->forward_at[u]];
        uint32_t end = graph->in_at[graph->forward_at[u + 1]];
        for (uint32_t i = first; i < end; i++) {
            uint32_t s = graph->in[i];
            if (s >= graph->n_persistent &&
                graph->op_unit[graph->storage_maker[s]] < u &&
                !listed(graph->unit_in, graph->unit_in_at[u], n, s))
                graph->unit_in[n++] = s;
        }
        graph->unit_in_at[u + 1] = n;
    }
}

void laws_build_close(laws_builder *builder)
{
    find_local_ends(builder->graph);
    list_drops(builder->graph, builder->arena);
    list_unit_inputs(builder->graph, builder->arena);
}
