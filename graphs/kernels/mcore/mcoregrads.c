/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Gradients in main_grad, and the products that add to it. */
#include "graphs/kernels/mcore/mcore.h"
#include "graphs/trace/trace.h"
#include "sim/graph.h"

/* A policy that shares gradients or weights has buffers of its own for them. */
bool ms_mcoregrads_hold(const ms_step_settings *settings)
{
    const ms_shape *shape = settings->shape;
    return settings->train && !shape->part_is_master &&
           !shape->flat_step.used && shape->shared <= MS_SHARED_OPTIMIZER &&
           shape->offload.gradients == MS_DEVICE_POOL;
}

bool ms_mcoregrads_are_fp32(const ms_step_settings *settings)
{
    return ms_mcoregrads_hold(settings) &&
           settings->training->precision == MS_BF16_MIXED;
}

bool ms_mcoregrads_are_cast(const ms_trace *trace)
{
    return ms_mcoregrads_hold(trace->settings) &&
           trace->grad_dtype == MS_FLOAT16;
}

void ms_mcoregrads_add(ms_trace *trace, uint32_t weight)
{
    if (trace->err || !ms_mcoregrads_hold(trace->settings) ||
        trace->settings->training->mcore_wgrad != MS_MCORE_WGRAD_FUSED)
        return;
    const ms_tensor *tensor = ms_trace_at(trace, weight);
    if (tensor->parameter == MS_NONE)
        return;
    ms_parameter *parameter = &trace->parameters[tensor->parameter];
    if (parameter->grad_storage == MS_NONE)
        return;
    uint64_t bytes = trace->graph->storage_bytes[parameter->grad_storage];
    ms_trace_read_storage(trace, parameter->grad_storage, bytes);
    uint64_t *written = &trace->graph->op_write_bytes[trace->graph->n_ops - 1];
    *written += bytes; /* and nothing to the tensor that stands for it */
    *written -= ms_trace_bytes(tensor);
    parameter->added = true;
}
