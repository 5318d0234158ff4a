/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Gradients in main_grad, and the products that add to it. */
#include "graphs/formats/precisions.h"
#include "graphs/kernels/mcore/mcore.h"
#include "graphs/layers/attention/sharedtables.h"
#include "graphs/trace/trace.h"
#include "sim/graph.h"

#include <string.h>

/* A policy that shares gradients or weights has buffers of its own for them. */
bool ms_mcoregrads_hold(const ms_step_settings *settings)
{
    const ms_shape *shape = settings->shape;
    return settings->train && !shape->part_is_master &&
           !shape->flat_step.used && shape->shared <= MS_SHARED_OPTIMIZER &&
           shape->offload.gradients == MS_DEVICE_POOL;
}

/* bf16, with which arguments.py sets accumulate_allreduce_grads_in_fp32,
 * products in fp8 or not. */
bool ms_mcoregrads_are_fp32(const ms_step_settings *settings)
{
    const ms_precision_row *row = ms_precisions_of(settings->training);
    return ms_mcoregrads_hold(settings) && row->other.weight == MS_BFLOAT16 &&
           row->other.master != MS_NO_DTYPE;
}

/* To gradients of fp32 master copies; the optimizer that completes weights
 * reads 16 bits (distrib_optimizer.py, _copy_model_grads_to_main_grads). */
bool ms_mcoregrads_are_cast(const ms_trace *trace)
{
    return ms_mcoregrads_hold(trace->settings) &&
           trace->grad_dtype != MS_FLOAT32 &&
           ms_precisions_is_mixed(trace->settings->training);
}

/* The parameter of a weight whose gradient products add to main_grad, or NULL.
 */
static ms_parameter *fused(ms_trace *trace, uint32_t weight)
{
    if (trace->err || !ms_mcoregrads_hold(trace->settings) ||
        trace->settings->training->mcore_wgrad == MS_MCORE_WGRAD_APART)
        return NULL;
    const ms_tensor *tensor = ms_trace_at(trace, weight);
    if (tensor->parameter == MS_NONE)
        return NULL;
    ms_parameter *parameter = &trace->parameters[tensor->parameter];
    return parameter->grad_storage == MS_NONE ? NULL : parameter;
}

static bool is_cached(const ms_trace *trace)
{
    return trace->settings->training->mcore_wgrad == MS_MCORE_WGRAD_CACHED;
}

/* The tensor that all weights of this shape share. */
static uint32_t dummy(ms_trace *trace, uint32_t weight)
{
    const ms_tensor *tensor = ms_trace_at(trace, weight);
    uint32_t rows =
        tensor->n_dims - 2u; /* behind the experts, if it has some */
    int64_t dims[2] = {tensor->size[rows], tensor->size[rows + 1]};
    uint32_t shared =
        ms_sharedtables_buffer(trace, "dummy_wgrad", tensor->dtype, dims);
    if (shared == MS_NONE)
        return MS_NONE;
    uint32_t s = ms_trace_at(trace, shared)->storage;
    trace->graph->storage_category[s] = MS_WORKSPACE;
    trace->graph->storage_layer[s] = MS_NONE;
    return shared;
}

uint32_t ms_mcoregrads_stand_in(ms_trace *trace, uint32_t weight)
{
    if (!fused(trace, weight) || !is_cached(trace))
        return MS_NONE;
    const ms_tensor like = *ms_trace_at(trace, weight);
    uint32_t shared = dummy(trace, weight);
    uint32_t y = shared == MS_NONE ? MS_NONE : ms_trace_alias(trace, shared);
    if (y == MS_NONE)
        return MS_NONE;
    ms_tensor *seen = ms_trace_at(trace, y);
    seen->n_dims = like.n_dims;
    memcpy(seen->size, like.size, sizeof seen->size);
    memcpy(seen->stride, like.stride, sizeof seen->stride);
    return y;
}

void ms_mcoregrads_add(ms_trace *trace, uint32_t weight)
{
    ms_parameter *parameter = fused(trace, weight);
    if (!parameter)
        return;
    uint64_t bytes = trace->graph->storage_bytes[parameter->grad_storage];
    ms_trace_read_storage(trace, parameter->grad_storage, bytes);
    uint64_t *written = &trace->graph->op_write_bytes[trace->graph->n_ops - 1];
    *written += bytes; /* and nothing to the tensor that stands for it */
    parameter->added = true;
    if (!is_cached(trace)) {
        *written -= ms_trace_bytes(ms_trace_at(trace, weight));
        return;
    }
    uint32_t shared = dummy(trace, weight);
    if (shared != MS_NONE) /* so that ranks without such a weight lack it */
        ms_trace_read_storage(trace, ms_trace_at(trace, shared)->storage, 0);
}
