/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "graphs/parallel/userbuffers.h"
#include "graphs/formats/precisions.h"
#include "graphs/parallel/shards.h"
#include "graphs/quantized/quantize.h"
#include "graphs/trace/opend.h"
#include "graphs/trace/rowpieces.h"
#include "graphs/trace/trace.h"
#include "sim/graph.h"

static ms_err refuse(const ms_trace *trace, const char *hint, const char *what)
{
    return ms_fail(trace->fault, MS_EUSAGE, "tensor:overlap", hint, "%s", what);
}

/* Transformer Engine's. */
static ms_err check_buffers(const ms_trace *trace)
{
    const ms_training *training = trace->settings->training;
    if (trace->kernels.gathers_in_buffer)
        return refuse(trace, "leave megatron.spec or overlap out",
                      "it is Transformer Engine's layers that exchange in "
                      "userbuffers");
    if (training->precision == MS_FP8 || training->lora_rank > 0)
        return refuse(trace, "leave overlap out",
                      "memsim does not know userbuffers of fp8 or adapters");
    if (trace->settings->shape->regather == MS_REGATHER_NOT)
        return refuse(trace, "leave one of the two out",
                      "what lies in userbuffers is not saved (regather=0)");
    return MS_OK;
}

/* PyTorch's: what is exchanged is what is multiplied. */
static ms_err check_pieces(const ms_trace *trace)
{
    const ms_training *training = trace->settings->training;
    const ms_precision_row *precision = ms_precisions_of(training);
    if (trace->settings->cpu)
        return refuse(trace, "leave overlap out",
                      "symmetric memory is of GPUs that reach each other's");
    if (precision->autocast != MS_FLOAT32)
        return refuse(trace, "--precision bf16-mixed, or leave overlap out",
                      "under autocast casts stand between what is exchanged "
                      "and what is multiplied");
    if (training->lora_rank > 0 || training->lora_base > 0 ||
        training->frozen_base > 0)
        return refuse(trace, "leave overlap out",
                      "memsim does not know exchanges in pieces of packed "
                      "weights or adapters");
    return MS_OK;
}

ms_err ms_userbuffers_check(const ms_trace *trace)
{
    const ms_step_settings *settings = trace->settings;
    uint32_t ranks = settings->shape->tensor_ranks;
    if (!settings->shape->overlaps || ranks < 2)
        return MS_OK;
    if (ranks > settings->device->gpus_per_node)
        return refuse(trace, "leave overlap out, or take fewer ranks",
                      "userbuffers are of ranks on one node");
    return trace->kernels.keeps_parts ? check_buffers(trace)
                                      : check_pieces(trace);
}

bool ms_userbuffers_used(const ms_trace *trace, bool in_buffer)
{
    return !trace->err && trace->settings->shape->overlaps &&
           trace->kernels.keeps_parts && trace->shards->by_sequence &&
           !in_buffer;
}

bool ms_userbuffers_async(const ms_trace *trace)
{
    return !trace->err && trace->settings->shape->overlaps &&
           !trace->kernels.keeps_parts && trace->shards->by_sequence;
}

void ms_userbuffers_hold(ms_trace *trace, uint32_t tensor)
{
    if (trace->err)
        return;
    const ms_tensor *held = ms_trace_at(trace, tensor);
    uint64_t bytes = MS_USERBUFFERS * ms_trace_bytes(held);
    ms_graph *g = trace->graph;
    g->exchanged_through = "userbuffers";
    g->storage_bytes[held->storage] = 0;
    if (bytes > g->userbuffer_bytes)
        g->userbuffer_bytes = bytes;
}

/* CUDASymmetricMemory.cu: behind the tensor its signals; pages of 2 MiB. */
#define SIGNALS UINT64_C(2048)
#define PAGE (UINT64_C(2) << 20)

void ms_userbuffers_share(ms_trace *trace, uint32_t part, uint32_t n)
{
    ms_graph *g = trace->graph;
    if (trace->err)
        return;
    const ms_tensor *held = ms_trace_at(trace, part);
    uint64_t bytes = n * ms_trace_bytes(held) + SIGNALS;
    bytes = (bytes + PAGE - 1) / PAGE * PAGE;
    g->exchanged_through = "symmetric memory";
    if (n == 1)
        g->storage_bytes[held->storage] = 0;
    if (bytes > g->userbuffer_bytes)
        g->userbuffer_bytes = bytes;
}

void ms_userbuffers_first(ms_trace *trace, uint32_t from, uint32_t now,
                          uint32_t all)
{
    ms_graph *g = trace->graph;
    if (trace->err)
        return;
    uint32_t op = g->n_ops - 1;
    ms_rowpieces_narrow(trace, op, g->op_flops[op], now, all, all);
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
    ms_trace_read(trace, y); /* first: it is written (sim/expand/bind.c) */
    ms_trace_read(trace, x);
    ms_trace_read(trace, weight);
    if (y == MS_NONE)
        made = ms_trace_make_like(trace, "pieces", like);
    ms_opend_product(trace, flops, made);
    ms_rowpieces_narrow(trace, trace->graph->n_ops - 1, flops, now, all, all);
    if (y == MS_NONE)
        ms_userbuffers_hold(trace, made);
    return made;
}
