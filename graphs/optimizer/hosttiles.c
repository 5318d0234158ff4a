/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Which parameters the host updates, how many at a time, and the pinned buffers
 * through which what lies on the disk passes. */
#include "graphs/optimizer/hostblocks.h"
#include "graphs/optimizer/optimizer.h"
#include "graphs/trace/trace.h"
#include "sim/graph.h"

#define STATE_BYTES 4u   /* fp32 */
#define BUFFER_STATES 4u /* master, two moments, gradient */
#define LEAST_ELEMENTS 4096u

/* Smaller tensors stay with an optimizer on the device (torchao
 * optim/cpu_offload.py, minimal_size). */
static bool is_small(const ms_offload *offload, const ms_parameter *parameter)
{
    return offload->engine == MS_ENGINE_TORCHAO &&
           parameter->elements < LEAST_ELEMENTS;
}

void ms_hosttiles_choose(ms_trace *trace)
{
    const ms_offload *offload = &trace->settings->shape->offload;
    uint64_t total = 0, before = 0;
    if (offload->optimizer == MS_DEVICE_POOL)
        return;
    for (uint32_t p = 0; p < trace->n_parameters; p++)
        if (!ms_parts_is_frozen(trace, &trace->parameters[p]))
            total += trace->parameters[p].elements;
    for (uint32_t p = 0; p < trace->n_parameters; p++) {
        if (ms_parts_is_frozen(trace, &trace->parameters[p]))
            continue;
        double most = offload->host_share * (double)total;
        trace->parameters[p].far =
            (double)before < most && !is_small(offload, &trace->parameters[p]);
        before += trace->parameters[p].elements;
    }
}

bool ms_hosttiles_is_full(const ms_offload *offload, uint64_t elements)
{
    switch (offload->step) {
    case MS_HOST_WHOLE:
    case MS_HOST_TURNS:
        return false;
    case MS_HOST_PARAMETERS:
    case MS_HOST_ARRIVALS:
        return elements > 0;
    default:
        return elements >= offload->tile_elements;
    }
}

/* The number of elements of the largest tile, which a pinned buffer must hold.
 */
static uint64_t largest_tile(const ms_trace *trace)
{
    const ms_offload *offload = &trace->settings->shape->offload;
    uint64_t most = 0, elements = 0;
    for (uint32_t p = 0; p < trace->n_parameters; p++) {
        if (!trace->parameters[p].far)
            continue;
        elements += trace->parameters[p].part;
        most = elements > most ? elements : most;
        if (ms_hosttiles_is_full(offload, elements))
            elements = 0;
    }
    return most;
}

/* Only what is on the disk passes through pinned buffers: one, or with reads
 * ahead and writes behind as many as can be under way at once. */
void ms_hosttiles_buffers(ms_trace *trace)
{
    const ms_offload *offload = &trace->settings->shape->offload;
    bool pipelined = offload->reads_ahead || offload->writes_behind;
    trace->optimizer->n_slots = 0;
    trace->optimizer->step_order = MS_NONE;
    if (offload->optimizer == MS_DEVICE_POOL)
        return;
    uint64_t bytes = largest_tile(trace) * STATE_BYTES * BUFFER_STATES;
    trace->layer = MS_NONE;
    if (offload->step == MS_HOST_GROUPS || offload->optimizer == MS_NVME_POOL)
        trace->optimizer->step_order =
            ms_trace_storage(trace, "step_order", 0, MS_OPTIMIZER_STATE, true);
    if (offload->optimizer == MS_NVME_POOL)
        trace->optimizer->n_slots = pipelined ? MS_MOST_SLOTS : 1u;
    for (uint32_t i = 0; i < trace->optimizer->n_slots; i++)
        trace->optimizer->slots[i] = ms_trace_storage(
            trace, "pinned_buffer", bytes, MS_OPTIMIZER_STATE, true);
    ms_hosttiles_home_buffers(trace);
}

void ms_hosttiles_home_buffers(ms_trace *trace)
{
    const ms_optimizer_state *optimizer = trace->optimizer;
    uint64_t bytes = largest_tile(trace) * STATE_BYTES * BUFFER_STATES;
    if (optimizer->step_order != MS_NONE)
        ms_parts_home(trace, optimizer->step_order, MS_HOST_POOL, 0);
    for (uint32_t i = 0; i < optimizer->n_slots && !trace->err; i++) {
        trace->graph->storage_bytes[optimizer->slots[i]] = bytes;
        ms_hostblocks_slot(trace, optimizer->slots[i], bytes, BUFFER_STATES);
    }
}
