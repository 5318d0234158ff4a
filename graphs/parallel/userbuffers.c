/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "graphs/parallel/userbuffers.h"
#include "graphs/parallel/shards.h"
#include "graphs/quantized/quantize.h"
#include "graphs/trace/opend.h"
#include "graphs/trace/trace.h"
#include "sim/graph.h"

static ms_err refuse(const ms_trace *trace, const char *hint, const char *what)
{
    return ms_fail(trace->fault, MS_EUSAGE, "tensor:overlap", hint, "%s", what);
}

ms_err ms_userbuffers_check(const ms_trace *trace)
{
    const ms_step_settings *settings = trace->settings;
    const ms_training *training = settings->training;
    uint32_t ranks = settings->shape->tensor_ranks;
    if (!settings->shape->overlaps || ranks < 2)
        return MS_OK;
    if (!trace->kernels.keeps_parts || trace->kernels.gathers_in_buffer)
        return refuse(trace, "--kernels megatron, or leave overlap out",
                      "it is Transformer Engine's layers that exchange in "
                      "userbuffers");
    if (training->precision == MS_FP8 || training->lora_rank > 0)
        return refuse(trace, "leave overlap out",
                      "memsim does not know userbuffers of fp8 or adapters");
    if (ranks > settings->device->gpus_per_node)
        return refuse(trace, "leave overlap out, or take fewer ranks",
                      "userbuffers are of ranks on one node");
    return MS_OK;
}

bool ms_userbuffers_used(const ms_trace *trace, bool in_buffer)
{
    return !trace->err && trace->settings->shape->overlaps &&
           trace->shards->by_sequence && !in_buffer;
}

void ms_userbuffers_hold(ms_trace *trace, uint32_t tensor)
{
    if (trace->err)
        return;
    const ms_tensor *held = ms_trace_at(trace, tensor);
    uint64_t bytes = MS_USERBUFFERS * ms_trace_bytes(held);
    ms_graph *g = trace->graph;
    g->storage_bytes[held->storage] = 0;
    if (bytes > g->userbuffer_bytes)
        g->userbuffer_bytes = bytes;
}

/* The op that ends is so many of the products of a piece of its rows. */
static void narrow(ms_trace *trace, double flops, uint32_t now, uint32_t all)
{
    if (trace->err)
        return;
    uint32_t op = trace->graph->n_ops - 1;
    ms_op_end *end = &trace->ends[op];
    trace->graph->op_flops[op] = flops * now / all;
    end->m = (end->m + all - 1) / all;
}

void ms_userbuffers_first(ms_trace *trace, uint32_t from, uint32_t now,
                          uint32_t all)
{
    ms_graph *g = trace->graph;
    if (trace->err)
        return;
    uint32_t op = g->n_ops - 1;
    narrow(trace, g->op_flops[op], now, all);
    if (from != MS_NONE)
        g->in[g->in_at[op]] = ms_trace_at(trace, from)->storage;
}

uint32_t ms_userbuffers_rest(ms_trace *trace, uint32_t x, uint32_t weight,
                             uint32_t y, uint32_t like, uint32_t now,
                             uint32_t all, double flops)
{
    uint32_t made = y;
    if (trace->err)
        return MS_NONE;
    ms_trace_begin(trace, "aten::mm");
    ms_trace_read(trace, x);
    ms_trace_read(trace, weight);
    if (y != MS_NONE)
        ms_trace_read(trace, y);
    else
        made = ms_trace_make_like(trace, "pieces", like);
    ms_opend_product(trace, flops, made);
    narrow(trace, flops, now, all);
    if (y == MS_NONE)
        ms_userbuffers_hold(trace, made);
    return made;
}
