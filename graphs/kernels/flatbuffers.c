/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "graphs/kernels/flatbuffers.h"
#include "graphs/trace/trace.h"
#include "sim/graph.h"

typedef struct buffers {
    ms_trace *trace;
    uint64_t *asked;
    uint64_t left; /* elements left of the rank's stretch */
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

static bool has_gradient(const ms_parameter *parameter)
{
    return parameter->grad_storage != MS_NONE;
}

/* Joins storages to one request: the first of them asks for the bytes of all.
 */
static void join_requests(buffers *b, bool weights)
{
    const ms_graph *g = b->trace->graph;
    uint64_t *head = NULL;
    for (uint32_t p = 0; p < b->trace->n_parameters; p++) {
        const ms_parameter *it = &b->trace->parameters[p];
        if (!has_gradient(it))
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
        if (!has_gradient(it))
            continue;
        uint64_t taken = it->elements < b->left ? it->elements : b->left;
        b->left -= taken;
        cut_state(b, it->master, it->part, taken);
        for (uint32_t i = 0; i < MS_MOST_STATES; i++)
            cut_state(b, it->state[i], it->part, taken);
    }
}

static uint64_t stretch(const ms_trace *trace)
{
    uint64_t elements = 0;
    for (uint32_t p = 0; p < trace->n_parameters; p++)
        if (has_gradient(&trace->parameters[p]))
            elements += trace->parameters[p].part;
    return elements;
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
    join_requests(&b, false);
    if (distributed) {
        join_requests(&b, true);
        b.left = stretch(trace);
        cut_states(&b);
    }
    g->storage_asked_bytes = b.asked;
    return MS_OK;
}
