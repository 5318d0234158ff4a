/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "graphs/kernels/flatbuffers.h"
#include "graphs/trace/trace.h"
#include "sim/graph.h"

typedef struct buffers {
    ms_trace *trace;
    uint64_t *asked;
    uint64_t left; /* elements left of the rank's stretch */
    uint8_t group; /* of those at work: ms_parameter.group */
} buffers;

/* Is it the distributed optimizer of policies/share/zero.c, with all of it on
 * the device? */
static bool is_distributed(const ms_step_settings *settings)
{
    const ms_shape *shape = settings->shape;
    return shape->engine == MS_ENGINE_MEGATRON && shape->fp32_gradients &&
           shape->offload.optimizer == MS_DEVICE_POOL &&
           shape->offload.parameters == MS_DEVICE_POOL;
}

/* Does it lie in the buffers at work?  Experts that ranks divide have buffers
 * of their own (Megatron-LM, core/distributed/distributed_data_parallel.py,
 * expert_parallel_params). */
static bool lies_in(const buffers *b, const ms_parameter *parameter)
{
    return parameter->grad_storage != MS_NONE && parameter->group == b->group;
}

/* Joins storages to one request: the first of them asks for the bytes of all.
 */
static void join_requests(buffers *b, bool weights)
{
    const ms_graph *g = b->trace->graph;
    uint64_t *head = NULL;
    for (uint32_t p = 0; p < b->trace->n_parameters; p++) {
        const ms_parameter *it = &b->trace->parameters[p];
        if (!lies_in(b, it))
            continue;
        uint32_t s = weights ? it->storage : it->grad_storage;
        b->asked[s] = 0;
        if (!head)
            head = &b->asked[s];
        *head += g->storage_bytes[s];
    }
}

/* Of a parameter's part elements the stretch has taken so many; its states
 * become as large. */
static void cut_state(buffers *b, uint32_t storage, uint64_t part,
                      uint64_t taken)
{
    if (storage == MS_NONE)
        return;
    uint64_t bytes = b->trace->graph->storage_bytes[storage];
    if (part > 0 && bytes % part == 0)
        b->asked[storage] = bytes / part * taken;
}

static void cut_states(buffers *b)
{
    for (uint32_t p = 0; p < b->trace->n_parameters; p++) {
        const ms_parameter *it = &b->trace->parameters[p];
        if (!lies_in(b, it))
            continue;
        uint64_t taken = it->elements < b->left ? it->elements : b->left;
        b->left -= taken;
        cut_state(b, it->master, it->part, taken);
        for (uint32_t i = 0; i < MS_MOST_STATES; i++)
            cut_state(b, it->state[i], it->part, taken);
    }
}

static uint64_t stretch(const buffers *b)
{
    uint64_t elements = 0;
    for (uint32_t p = 0; p < b->trace->n_parameters; p++)
        if (lies_in(b, &b->trace->parameters[p]))
            elements += b->trace->parameters[p].part;
    return elements;
}

static void join(buffers *b, uint8_t group, bool distributed)
{
    b->group = group;
    join_requests(b, false);
    if (!distributed)
        return;
    join_requests(b, true);
    b->left = stretch(b);
    cut_states(b);
}

/* A storage that lies in no buffer keeps MS_UNSHARED: it is a request of its
 * own. */
ms_err ms_flatbuffers_column(ms_trace *trace)
{
    ms_graph *g = trace->graph;
    bool distributed = is_distributed(trace->settings);
    buffers b = {.trace = trace};
    const ms_kernel_hooks *hooks = trace->kernels.hooks;
    bool holds =
        hooks->holds_gradients && hooks->holds_gradients(trace->settings);
    if (!distributed && !holds)
        return MS_OK;
    b.asked = ms_arena_take_raw(trace->arena, g->n_persistent, sizeof *b.asked);
    if (!b.asked)
        return ms_fail_nomem(trace->fault);
    for (uint32_t s = 0; s < g->n_persistent; s++)
        b.asked[s] = MS_UNSHARED;
    join(&b, MS_GROUP_DATA, distributed);
    join(&b, MS_GROUP_EXPERT_DATA, distributed);
    g->storage_asked_bytes = b.asked;
    return MS_OK;
}
