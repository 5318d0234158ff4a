/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What of the model's states a rank holds, and where. */
#include "graphs/trace.h"

uint32_t ms_parts_ranks(const ms_shape *shape)
{
    return shape->shard_ranks > 0 ? shape->shard_ranks : shape->data_ranks;
}

static uint64_t over(uint64_t n, uint64_t ranks)
{
    return n / ranks + (n % ranks != 0);
}

/* Rows of dimension 0, each rank the same number of them (torch's Shard(0)
 * pads the last ranks, _fsdp_param.py). */
static uint64_t part_of_rows(const ms_trace *trace,
                             const ms_parameter *parameter, uint32_t ranks)
{
    const ms_tensor *tensor = ms_trace_at(trace, parameter->tensor);
    uint64_t rows = tensor->n_dims > 0 ? (uint64_t)tensor->size[0] : 1;

    return rows > 0 ? over(rows, ranks) * (parameter->elements / rows) : 0;
}

/* In a flat buffer a rank's part is a stretch: the parts of the parameters are
 * what of that stretch is theirs on average, and sum to it; the padding is the
 * last parameter's. */
static void split_flat(ms_trace *trace, uint32_t ranks)
{
    uint64_t multiple =
        (uint64_t)ranks *
        (trace->shape->flat_multiple > 0 ? trace->shape->flat_multiple : 1);
    uint64_t before = 0, taken = 0;
    ms_parameter *last = NULL;

    for (uint32_t p = 0; p < trace->n_parameters; p++) {
        ms_parameter *it = &trace->parameters[p];
        before += it->elements;
        it->part = over(before, ranks) - taken;
        it->owned = it->elements;
        taken += it->part;
        last = it;
    }
    if (last == NULL)
        return;
    uint64_t stretch = over(before, multiple) * (multiple / ranks);
    last->part += stretch - taken;
    for (uint32_t p = 0; p < trace->n_parameters; p++)
        if (trace->parameters[p].owned > stretch)
            trace->parameters[p].owned = stretch;
}

void ms_parts_split(ms_trace *trace)
{
    const ms_shape *shape = trace->shape;
    uint32_t ranks = ms_parts_ranks(shape);

    if (shape->shared >= MS_SHARED_OPTIMIZER && shape->part == MS_PART_FLAT) {
        split_flat(trace, ranks);
        return;
    }
    for (uint32_t p = 0; p < trace->n_parameters; p++) {
        ms_parameter *it = &trace->parameters[p];
        it->part = it->owned = it->elements;
        if (shape->shared < MS_SHARED_OPTIMIZER)
            continue;
        it->part = shape->part == MS_PART_ROWS ? part_of_rows(trace, it, ranks)
                                               : over(it->elements, ranks);
        it->owned = it->part;
    }
}

/* ---- columns of the graph ------------------------------------------------ */

void ms_parts_home(ms_trace *trace, uint32_t storage, uint8_t pool,
                   uint64_t far_bytes)
{
    ms_home *homes =
        ms_arena_grow(trace->scratch, trace->homes, &trace->homes_capacity,
                      trace->n_homes + 1, sizeof *homes);

    if (!homes) {
        if (!trace->err)
            trace->err = ms_fail_nomem(trace->fault);
        return;
    }
    trace->homes = homes;
    if (storage != MS_NONE)
        homes[trace->n_homes++] = (ms_home){storage, pool, far_bytes};
}

static ms_err home_columns(ms_trace *trace, const uint32_t *new_id)
{
    ms_graph *g = &trace->graph;

    if (trace->n_homes == 0)
        return MS_OK;
    g->storage_pool = ms_arena_take(trace->arena, g->n_storages, 1);
    g->storage_far_bytes =
        ms_arena_take(trace->arena, g->n_persistent, sizeof(uint64_t));
    if (!g->storage_pool || !g->storage_far_bytes)
        return ms_fail_nomem(trace->fault);
    for (uint32_t i = 0; i < trace->n_homes; i++) {
        uint32_t s = new_id[trace->homes[i].storage];
        g->storage_pool[s] = trace->homes[i].pool;
        if (s < g->n_persistent)
            g->storage_far_bytes[s] = trace->homes[i].far_bytes;
    }
    return MS_OK;
}

/* The part of a weight on the device: its own master copy, or as the weight. */
static uint64_t weight_part_bytes(const ms_trace *trace,
                                  const ms_parameter *parameter)
{
    uint8_t dtype =
        trace->shape->part_is_master ? MS_FLOAT32 : trace->weight_dtype;

    return parameter->part * ms_trace_dtype_bytes[dtype];
}

static uint64_t grad_part_bytes(const ms_trace *trace,
                                const ms_parameter *parameter)
{
    uint8_t dtype =
        trace->shape->part_is_master ? MS_FLOAT32 : trace->grad_dtype;

    return parameter->part * ms_trace_dtype_bytes[dtype];
}

/* Small parameters stay whole, in their order as long as there is room
 * (DeepSpeed, parameter_offload.py, mark_persistent_parameters). */
static bool stays_whole(const ms_shape *shape, const ms_parameter *parameter,
                        uint64_t *whole)
{
    if (parameter->elements > shape->whole_elements ||
        (shape->whole_in_all > 0 &&
         *whole + parameter->elements > shape->whole_in_all))
        return false;
    *whole += parameter->elements;
    return true;
}

/* A flat step reads the part of the gradients whatever is shared, and if one
 * rank alone has all of it. */
static bool shares_gradients(const ms_shape *shape)
{
    if (shape->flat_step.used)
        return shape->shared >= MS_SHARED_OPTIMIZER;
    return shape->data_ranks > 1 && shape->shared >= MS_SHARED_GRADIENTS;
}

ms_err ms_parts_columns(ms_trace *trace, const uint32_t *new_id)
{
    const ms_shape *shape = trace->shape;
    ms_graph *g = &trace->graph;
    uint64_t whole = 0;
    bool parameters =
        shape->shared == MS_SHARED_PARAMETERS && shape->data_ranks > 1;

    MS_TRY(home_columns(trace, new_id));
    if (!shares_gradients(shape))
        return MS_OK;
    g->storage_shard_bytes =
        ms_arena_take_raw(trace->arena, g->n_persistent, sizeof(uint64_t));
    g->storage_whole = ms_arena_take(trace->arena, g->n_persistent, 1);
    if (!g->storage_shard_bytes || !g->storage_whole)
        return ms_fail_nomem(trace->fault);
    for (uint32_t s = 0; s < g->n_persistent; s++)
        g->storage_shard_bytes[s] = MS_UNSHARED;
    g->grads_whole = shape->shared < MS_SHARED_GRADIENTS;
    for (uint32_t p = 0; p < trace->n_parameters; p++) {
        const ms_parameter *it = &trace->parameters[p];
        uint32_t weight = new_id[it->storage];
        if (it->grad_storage != MS_NONE)
            g->storage_shard_bytes[new_id[it->grad_storage]] =
                grad_part_bytes(trace, it);
        if (!parameters)
            continue;
        g->storage_shard_bytes[weight] = weight_part_bytes(trace, it);
        g->storage_whole[weight] = stays_whole(shape, it, &whole);
    }
    return MS_OK;
}
