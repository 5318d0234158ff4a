/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "graphs/machines/cudnn.h"
#include "graphs/trace/columns.h"
#include "graphs/trace/trace.h"
#include "sim/graph.h"
#include "sim/kinds.h"

#include <string.h>

/* The first step is the one that creates the optimizer's state. */
#define FIRST_STEP 1

static bool chooses(const ms_training *training)
{
    return training->cudnn == MS_CUDNN_BENCHMARK ||
           (training->cudnn == MS_CUDNN_AUTO && training->torch_pool);
}

/* Does the convolution run in cuDNN?  Depthwise ones in fp32 do not. */
static bool runs_here(const ms_trace *trace, uint32_t x, uint32_t weight)
{
    return !trace->err && !trace->settings->cpu &&
           chooses(trace->settings->training) &&
           (ms_trace_at(trace, weight)->size[1] > 1 ||
            ms_trace_at(trace, x)->size[1] == 1);
}

/* A multiplicative hash.  Two convolutions with one key would count as one
 * search; with 64 bits and a few hundred of them that does not happen. */
static uint64_t mixed(uint64_t key, uint64_t with)
{
    key = (key ^ with) * UINT64_C(0x9e3779b97f4a7c15);
    return key ^ key >> 29;
}

/* What BenchmarkCache looks a convolution up by, as far as it differs here:
 * direction, sizes; the weight's with its input's say the groups. */
static uint64_t key_of(const ms_trace *trace, uint32_t x, uint32_t weight,
                       const int64_t *y_sizes)
{
    const ms_tensor *in = ms_trace_at(trace, x);
    const ms_tensor *w = ms_trace_at(trace, weight);
    uint64_t key = mixed(trace->pass, in->n_dims);
    for (uint32_t d = 0; d < in->n_dims; d++) {
        key = mixed(key, (uint64_t)in->size[d]);
        key = mixed(key, (uint64_t)w->size[d]);
        key = mixed(key, (uint64_t)y_sizes[d]);
    }
    return key;
}

void ms_cudnn_search(ms_trace *trace, uint32_t x, uint32_t weight,
                     const int64_t *y_sizes)
{
    if (trace->settings->training->step != FIRST_STEP ||
        !runs_here(trace, x, weight))
        return;
    uint64_t key = key_of(trace, x, weight, y_sizes);
    for (uint32_t i = 0; i < trace->n_searched; i++)
        if (trace->searched[i] == key)
            return;
    if (!ms_columns_grow(trace, trace->arena, &trace->searched,
                         &trace->searched_capacity, trace->n_searched + 1,
                         sizeof *trace->searched))
        return;
    trace->searched[trace->n_searched++] = key;
    trace->graph->op_flags[trace->graph->n_ops - 1] |= MS_OP_EMPTIES;
}

/* Wider than one element in some dimension. */
static bool is_wide(const ms_tensor *weight)
{
    for (uint32_t d = 2; d < weight->n_dims; d++)
        if (weight->size[d] > 1)
            return true;
    return false;
}

void ms_cudnn_workspace(ms_trace *trace, uint32_t x, uint32_t weight,
                        uint32_t y)
{
    const ms_device *device = trace->settings->device;
    if (!runs_here(trace, x, weight) || device->cudnn_share <= 0 ||
        ms_trace_at(trace, x)->dtype != MS_FLOAT32 ||
        !is_wide(ms_trace_at(trace, weight)))
        return;
    uint64_t bytes = ms_trace_bytes(ms_trace_at(trace, x)) +
                     ms_trace_bytes(ms_trace_at(trace, y));
    if (bytes >= device->cudnn_from_bytes)
        ms_trace_workspace(trace,
                           (uint64_t)((double)bytes * device->cudnn_share));
}

bool ms_cudnn_convolves(const ms_graph *graph)
{
    for (uint32_t op = 0; op < graph->n_ops; op++)
        if (graph->op_kind[op] == MS_KIND_CONVOLUTION)
            return true;
    return false;
}
