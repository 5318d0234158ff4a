/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Gradients of parameters that each of the ranks that split layers has whole,
 * and that each makes of its part of the tokens (sp: norms, biases of products
 * by rows, routers, latent attention's down projections) or of its heads (norms
 * of queries and keys).
 *
 * Megatron: before the step they are copied into one tensor, which is summed
 * over these ranks, and back, one by one, here a block's in one op
 * (Megatron-LM@d98e8a64, core/distributed/finalize_model_grads.py,
 * _allreduce_layernorm_grads).  The two RMS norms of a layer of h = 4096 are 32
 * KiB with fp32 gradients.
 *
 * torch's DTensor: a norm's backward leaves them as partial sums (torch/
 * distributed/tensor/_ops/_math_ops.py, _common_norm_backward_strategy).  Each
 * is summed on its own, in a copy (_functional_collectives.py, all_reduce),
 * where something asks for it whole.  Where data ranks reduce gradients that is
 * in backward: FSDP2 as its hook behind a block takes them up (torch/
 * distributed/fsdp/_fully_shard/_fsdp_param.py, _get_grad_inner_tensor), DDP in
 * the node that made the DTensor of a local weight (torch/distributed/tensor/
 * _api.py, _FromTorchTensor); here at once behind the node that completes it.
 * Beside micro-batches that only the last of which reduces (sums_late), FSDP2
 * accumulates them partial, and its hook behind the last asks (unshardhooks.c).
 * Else .grad stays partial, and the step has the sums: once for the norms of
 * clipping (_math_ops.py, common_reduction_strategy, which takes a sum of
 * partial ones for no norm), and again for the update (_pointwise_ops.py,
 * list_pointwise_strategy, which follows the weight).  Products by rows get the
 * whole gradient of their output, so that their biases' are whole, too. */
#include "graphs/ops/ops.h"
#include "graphs/optimizer/optimizer.h"
#include "graphs/parallel/meetops.h"
#include "graphs/parallel/shards.h"
#include "graphs/parallel/tensorops.h"
#include "graphs/trace/trace.h"
#include "sim/graph.h"

#include <string.h>

/* Of queries and keys: each rank has other heads. */
static bool is_of_heads(const ms_trace *trace, const ms_parameter *p)
{
    const char *name = trace->graph->storage_name[p->storage];
    return trace->shards->split[p->layer] == MS_SPLIT_HEADS &&
           (strcmp(name, "q_norm.weight") == 0 ||
            strcmp(name, "k_norm.weight") == 0);
}

/* Of layers that work on a part of the sequence, whatever they have whole. */
static bool is_partial(const ms_trace *trace, const ms_parameter *p)
{
    uint32_t n = trace->settings->model->n_layers;
    if (p->layer >= n || p->ranks > 1 || p->group == MS_GROUP_EXPERT_DATA)
        return false;
    bool along = trace->kernels.keeps_parts ||
                 trace->shards->split[p->layer] == MS_SPLIT_NOT;
    return (along && trace->shards->by_sequence &&
            trace->shards->layout[p->layer] == MS_LAYOUT_SEQUENCE) ||
           is_of_heads(trace, p);
}

void ms_wholegrads_find(ms_trace *trace)
{
    if (trace->err || !trace->shards || trace->shards->whole_ends)
        return;
    for (uint32_t i = 0; i < trace->n_parameters; i++)
        trace->parameters[i].partial = is_partial(trace, &trace->parameters[i]);
}

static bool is_summed(const ms_trace *trace, const ms_parameter *p)
{
    const ms_graph *g = trace->graph;
    uint32_t grad = p->grad_storage;
    return p->partial && grad != MS_NONE &&
           (g->storage_at_start[grad] || g->storage_maker[grad] != MS_NONE);
}

/* Data ranks that divide gradients have summed them before. */
static uint64_t bytes_of(const ms_trace *trace, const ms_parameter *p)
{
    const ms_graph *g = trace->graph;
    bool divided = trace->settings->shape->shared >= MS_SHARED_GRADIENTS;
    uint64_t whole = g->storage_bytes[p->grad_storage];
    return divided && p->elements > 0 ? whole / p->elements * p->part : whole;
}

/* ---- Megatron ------------------------------------------------------------ */

static uint32_t flatten(ms_trace *trace)
{
    uint64_t bytes = 0;
    trace->layer = MS_NONE;
    ms_trace_begin(trace, "aten::cat");
    for (uint32_t i = 0; i < trace->n_parameters && !trace->err; i++) {
        const ms_parameter *p = &trace->parameters[i];
        if (!is_summed(trace, p))
            continue;
        ms_trace_read_storage(trace, p->grad_storage, bytes_of(trace, p));
        bytes += bytes_of(trace, p);
    }
    uint32_t flat = ms_trace_make_storage(trace, "coalesced", bytes);
    ms_trace_end(trace, 0, false);
    trace->layer = MS_NONE;
    ms_trace_begin(trace, "nccl::all_reduce");
    ms_trace_read_storage(trace, flat, bytes);
    ms_meetops_end(trace, MS_ALL_REDUCE, MS_GROUP_TENSOR,
                   &trace->shards->ranks);
    return flat;
}

static uint32_t block_of(const ms_trace *trace, const ms_parameter *p)
{
    return trace->settings->model->layers[p->layer].block;
}

/* The copies of a block are one op, from the first parameter on; the number of
 * the one behind. */
static uint32_t copy_back(ms_trace *trace, uint32_t first, uint32_t flat)
{
    const ms_parameter *p = &trace->parameters[first];
    uint32_t block = block_of(trace, p), i = first;
    uint64_t bytes = 0;
    trace->layer = p->layer;
    ms_trace_begin(trace, "aten::copy_");
    for (; i < trace->n_parameters && !trace->err; i++) {
        p = &trace->parameters[i];
        if (!is_summed(trace, p))
            continue;
        if (block_of(trace, p) != block)
            break;
        ms_trace_read_storage(trace, p->grad_storage, 0);
        bytes += bytes_of(trace, p);
    }
    ms_trace_read_storage(trace, flat, bytes);
    if (!trace->err)
        trace->graph->op_write_bytes[trace->graph->n_ops - 1] += bytes;
    ms_trace_end(trace, 0, false);
    return i;
}

void ms_wholegrads_sum(ms_trace *trace)
{
    uint32_t n = 0;
    if (!trace->kernels.keeps_parts)
        return;
    for (uint32_t i = 0; i < trace->n_parameters; i++)
        n += is_summed(trace, &trace->parameters[i]);
    if (n == 0 || trace->err)
        return;
    uint32_t flat = flatten(trace);
    uint32_t i = 0;
    while (i < trace->n_parameters && !trace->err)
        i = is_summed(trace, &trace->parameters[i]) ? copy_back(trace, i, flat)
                                                    : i + 1;
    ms_trace_drop_storage(trace, flat);
}

/* ---- torch --------------------------------------------------------------- */

/* Does something in backward ask for them whole? */
static bool sums_in_backward(const ms_trace *trace)
{
    const ms_step_settings *settings = trace->settings;
    if (settings->shape->sums_late)
        return false;
    return settings->shape->is_shared ||
           settings->shape->offload.gradients != MS_DEVICE_POOL ||
           settings->training->optimizer_in_backward == 1;
}

void ms_wholegrads_in_backward(ms_trace *trace, ms_parameter *p)
{
    if (trace->err || !p->partial || trace->kernels.keeps_parts ||
        !sums_in_backward(trace))
        return;
    ms_trace_begin(trace, "aten::clone");
    ms_trace_read(trace, p->grad);
    uint32_t sum =
        trace->err ? MS_NONE : ms_trace_make_like(trace, "summed", p->grad);
    ms_trace_end(trace, 0, false);
    ms_trace_drop(trace, p->grad);
    p->grad = sum;
    ms_tensorops_sum(trace, sum);
}

/* The sum of p's gradient, in a copy. */
static uint32_t sum_of(ms_trace *trace, const ms_parameter *p)
{
    uint64_t bytes = trace->graph->storage_bytes[p->grad_storage];
    trace->layer = p->layer;
    ms_trace_begin(trace, "aten::clone");
    ms_trace_read_storage(trace, p->grad_storage, bytes);
    uint32_t sum = ms_trace_make_storage(trace, "summed", bytes);
    ms_trace_end(trace, 0, false);
    ms_trace_begin(trace, "nccl::all_reduce");
    ms_trace_read_storage(trace, sum, bytes);
    ms_meetops_end(trace, MS_ALL_REDUCE, MS_GROUP_TENSOR,
                   &trace->shards->ranks);
    return sum;
}

void ms_wholegrads_take(ms_trace *trace, uint32_t *grads)
{
    if (trace->kernels.keeps_parts || !trace->shards ||
        trace->settings->shape->sums_late || sums_in_backward(trace))
        return;
    for (uint32_t i = 0; i < trace->n_parameters && !trace->err; i++)
        if (grads[i] != MS_NONE && is_summed(trace, &trace->parameters[i]))
            grads[i] = sum_of(trace, &trace->parameters[i]);
}

void ms_wholegrads_drop(ms_trace *trace, const uint32_t *grads)
{
    for (uint32_t i = 0; i < trace->n_parameters && !trace->err; i++)
        if (grads[i] != MS_NONE &&
            grads[i] != trace->parameters[i].grad_storage)
            ms_trace_drop_storage(trace, grads[i]);
}
