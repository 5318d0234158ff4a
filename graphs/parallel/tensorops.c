/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "graphs/parallel/tensorops.h"
#include "graphs/ops/ops.h"
#include "graphs/parallel/meetops.h"
#include "graphs/parallel/memorybuffer.h"
#include "graphs/parallel/shards.h"
#include "graphs/parallel/userbuffers.h"
#include "graphs/trace/rowpieces.h"
#include "graphs/trace/trace.h"
#include "sim/graph.h"

#include <string.h>

/* ---- ops ----------------------------------------------------------------- */

static void end(ms_trace *trace, ms_collective collective)
{
    ms_meetops_end(trace, collective, MS_GROUP_TENSOR, &trace->shards->ranks);
}

/* A new tensor like x, whose sequence is as long as said. */
static uint32_t make(ms_trace *trace, const char *role, uint32_t x,
                     int64_t sequence)
{
    if (trace->err)
        return MS_NONE;
    ms_tensor like = *ms_trace_at(trace, x);
    like.size[1] = sequence;
    return ms_trace_make(trace, role, like.dtype, like.n_dims, like.size);
}

static int64_t length_of(ms_trace *trace, uint32_t x)
{
    return trace->err ? 0 : ms_trace_at(trace, x)->size[1];
}

/* A copy in the order of dimension 0, or back. */
static uint32_t copy(ms_trace *trace, uint32_t x)
{
    ms_trace_begin(trace, "aten::cat");
    ms_trace_read(trace, x);
    uint32_t y = trace->err ? MS_NONE : ms_trace_make_like(trace, "ordered", x);
    ms_trace_end(trace, 0, false);
    return y;
}

void ms_tensorops_sum(ms_trace *trace, uint32_t x)
{
    if (trace->err)
        return;
    ms_trace_begin(trace, "nccl::all_reduce");
    ms_trace_read(trace, x);
    end(trace, MS_ALL_REDUCE);
}

uint32_t ms_tensorops_whole_of(ms_trace *trace, uint32_t part)
{
    int64_t ranks = trace->shards->ranks.ranks;
    ms_trace_begin(trace, "nccl::all_gather");
    ms_trace_read(trace, part);
    uint32_t whole =
        make(trace, "gathered", part, ranks * length_of(trace, part));
    end(trace, MS_ALL_GATHER);
    if (trace->kernels.keeps_parts)
        return whole;
    return ms_trace_rebind(trace, whole, copy(trace, whole));
}

uint32_t ms_tensorops_whole_in_buffer(ms_trace *trace, uint32_t part)
{
    if (trace->err)
        return MS_NONE;
    ms_tensor like = *ms_trace_at(trace, part);
    like.size[1] *= trace->shards->ranks.ranks;
    uint32_t whole =
        ms_memorybuffer_take(trace, like.dtype, like.n_dims, like.size);
    if (trace->err)
        return MS_NONE;
    const ms_tensor *written = ms_trace_at(trace, whole);
    ms_trace_begin(trace, "nccl::all_gather");
    ms_trace_read_storage(trace, written->storage, 0);
    ms_trace_read(trace, part);
    if (!trace->err)
        trace->graph->op_write_bytes[trace->graph->n_ops - 1] =
            ms_trace_bytes(written);
    end(trace, MS_ALL_GATHER);
    return whole;
}

/* The same of what products read, so many columns in all: this rank's part is
 * put where the others fetch it, and they begin with it (symm_mem,
 * fused_all_gather_matmul). */
static uint32_t whole_beside(ms_trace *trace, uint32_t part, uint32_t columns)
{
    uint32_t ranks = trace->shards->ranks.ranks;
    ms_trace_begin(trace, "aten::copy_");
    ms_trace_read(trace, part);
    uint32_t sent =
        trace->err ? MS_NONE : ms_trace_make_like(trace, "sent", part);
    ms_trace_end(trace, 0, false);
    ms_userbuffers_share(trace, sent, 1);
    ms_trace_begin(trace, "symm_mem::all_gather");
    ms_trace_read(trace, sent);
    uint32_t whole =
        make(trace, "gathered", part, ranks * length_of(trace, part));
    end(trace, MS_ALL_GATHER);
    ms_trace_drop(trace, sent);
    ms_rowpieces_wait(trace, whole, part, columns, ranks);
    return whole;
}

/* The product that made x and was the last kernel, or MS_NONE. */
static uint32_t product_of(const ms_trace *trace, uint32_t x)
{
    const ms_graph *g = trace->graph;
    if (trace->err)
        return MS_NONE;
    uint32_t op = g->storage_maker[ms_trace_at(trace, x)->storage];
    if (op == MS_NONE || trace->ends[op].work != MS_WORK_PRODUCT)
        return MS_NONE;
    for (uint32_t later = op + 1; later < g->n_ops; later++)
        if (strcmp(g->op_name[later], "AccumulateGrad") != 0)
            return MS_NONE;
    return op;
}

/* That whose pieces go while the next ones are multiplied, or MS_NONE: a bias
 * is added by another kernel, which PyTorch's pattern does not know (torch/
 * _inductor/fx_passes/micro_pipeline_tp.py, _find_producer_matmul). */
static uint32_t product_in_pieces(const ms_trace *trace, uint32_t x)
{
    uint32_t op = MS_NONE;
    if (ms_userbuffers_async(trace))
        op = product_of(trace, x);
    if (op != MS_NONE && strcmp(trace->graph->op_name[op], "aten::mm") != 0)
        op = MS_NONE;
    return op;
}

/* The pieces of all ranks are put side by side and summed (symm_mem,
 * fused_matmul_reduce_scatter): the first is multiplied, then fetched beside
 * the others. */
static uint32_t part_beside(ms_trace *trace, uint32_t x, uint32_t op)
{
    uint32_t ranks = trace->shards->ranks.ranks;
    ms_trace_begin(trace, "symm_mem::reduce_scatter");
    ms_trace_read(trace, x);
    uint32_t part = make(trace, "scattered", x, length_of(trace, x) / ranks);
    end(trace, MS_REDUCE_SCATTER);
    ms_rowpieces_rest(trace, op, 1, ranks, ranks);
    ms_rowpieces_drop_later(trace, op);
    ms_trace_begin(trace, "aten::sum");
    if (!trace->err) {
        const ms_tensor *made = ms_trace_at(trace, part);
        ms_trace_read_storage(trace, made->storage, 0);
        trace->graph->op_write_bytes[trace->graph->n_ops - 1] =
            ms_trace_bytes(made);
    }
    ms_trace_read(trace, x);
    ms_trace_end(trace, ms_trace_count(trace, x), false);
    ms_userbuffers_share(trace, part, 2);
    return part;
}

uint32_t ms_tensorops_part_of_sum(ms_trace *trace, uint32_t x)
{
    int64_t ranks = trace->shards->ranks.ranks;
    bool apart = !trace->kernels.keeps_parts;
    uint32_t op = product_in_pieces(trace, x);
    if (op != MS_NONE)
        return part_beside(trace, x, op);
    uint32_t from = apart ? copy(trace, x) : x;
    ms_trace_begin(trace, "nccl::reduce_scatter");
    ms_trace_read(trace, from);
    uint32_t part = make(trace, "scattered", x, length_of(trace, x) / ranks);
    end(trace, MS_REDUCE_SCATTER);
    if (apart)
        ms_trace_drop(trace, from);
    return part;
}

uint32_t ms_tensorops_first_of_sum(ms_trace *trace, uint32_t x, uint32_t now,
                                   uint32_t all)
{
    int64_t ranks = trace->shards->ranks.ranks;
    ms_trace_begin(trace, "nccl::reduce_scatter");
    ms_trace_read(trace, x);
    uint32_t part = make(trace, "scattered", x, length_of(trace, x) / ranks);
    end(trace, MS_REDUCE_SCATTER);
    ms_meetops_narrow(trace, MS_REDUCE_SCATTER, &trace->shards->ranks, now,
                      all);
    return part;
}

void ms_tensorops_rest_of_sum(ms_trace *trace, uint32_t x, uint32_t part,
                              uint32_t now, uint32_t all)
{
    ms_trace_begin(trace, "nccl::reduce_scatter");
    ms_trace_read(trace, x);
    if (!trace->err)
        ms_trace_read_storage(trace, ms_trace_at(trace, part)->storage, 0);
    end(trace, MS_REDUCE_SCATTER);
    ms_meetops_narrow(trace, MS_REDUCE_SCATTER, &trace->shards->ranks, now,
                      all);
}

/* Along a dimension, not the first, from so many parts of it to so many. */
static uint32_t along(ms_trace *trace, uint32_t x, uint32_t dim, int64_t from,
                      int64_t to)
{
    bool widens = to > from;
    uint32_t sent = widens ? x : copy(trace, x);
    ms_trace_begin(trace, widens ? "nccl::all_gather" : "nccl::reduce_scatter");
    ms_trace_read(trace, sent);
    if (trace->err)
        return MS_NONE;
    ms_tensor like = *ms_trace_at(trace, x);
    like.size[dim] = like.size[dim] / from * to;
    uint32_t y = ms_trace_make(trace, widens ? "gathered" : "scattered",
                               like.dtype, like.n_dims, like.size);
    end(trace, widens ? MS_ALL_GATHER : MS_REDUCE_SCATTER);
    if (widens)
        return ms_trace_rebind(trace, y, copy(trace, y));
    ms_trace_drop(trace, sent);
    return y;
}

static uint32_t along_columns(ms_trace *trace, uint32_t x, int64_t from,
                              int64_t to)
{
    return trace->err
               ? MS_NONE
               : along(trace, x, ms_trace_at(trace, x)->n_dims - 1u, from, to);
}

/* ---- nodes --------------------------------------------------------------- */

/* What the node of a scatter remembers: a product made its input, so that the
 * next node multiplies what backward gathers. */
enum { OF_PRODUCT };
#define HEADS 1u /* the dimension of [1, heads, queries, keys] */

static void pass_on(ms_trace *trace, const uint32_t *grads, uint32_t *out)
{
    ms_trace_ref(trace, grads[0]);
    out[0] = grads[0];
}

static void enter_backward(ms_trace *trace, const ms_node *node,
                           const uint32_t *grads, uint32_t *out)
{
    (void)node;
    ms_tensorops_sum(trace, grads[0]);
    pass_on(trace, grads, out);
}

static void reduce_backward(ms_trace *trace, const ms_node *node,
                            const uint32_t *grads, uint32_t *out)
{
    (void)node;
    pass_on(trace, grads, out);
}

static void gather_backward(ms_trace *trace, const ms_node *node,
                            const uint32_t *grads, uint32_t *out)
{
    (void)node;
    out[0] = ms_tensorops_part_of_sum(trace, grads[0]);
}

static void gather_equal_backward(ms_trace *trace, const ms_node *node,
                                  const uint32_t *grads, uint32_t *out)
{
    int64_t ranks = trace->shards->ranks.ranks;
    (void)node;
    uint32_t view =
        ms_view_slice(trace, grads[0], 1, length_of(trace, grads[0]) / ranks);
    out[0] = ms_view_contiguous(trace, view);
    ms_trace_drop(trace, view);
}

static void scatter_backward(ms_trace *trace, const ms_node *node,
                             const uint32_t *grads, uint32_t *out)
{
    out[0] = node->i[OF_PRODUCT] ? whole_beside(trace, grads[0], 0)
                                 : ms_tensorops_whole_of(trace, grads[0]);
}

static void columns_backward(ms_trace *trace, const ms_node *node,
                             const uint32_t *grads, uint32_t *out)
{
    (void)node;
    out[0] = along_columns(trace, grads[0], trace->shards->ranks.ranks, 1);
}

static void columns_equal_backward(ms_trace *trace, const ms_node *node,
                                   const uint32_t *grads, uint32_t *out)
{
    int64_t ranks = trace->shards->ranks.ranks;
    (void)node;
    if (trace->err)
        return;
    ms_tensor whole = *ms_trace_at(trace, grads[0]);
    uint32_t last = whole.n_dims - 1u;
    uint32_t view =
        ms_view_slice(trace, grads[0], last, whole.size[last] / ranks);
    out[0] = ms_view_contiguous(trace, view);
    ms_trace_drop(trace, view);
}

static void heads_backward(ms_trace *trace, const ms_node *node,
                           const uint32_t *grads, uint32_t *out)
{
    (void)node;
    out[0] = along(trace, grads[0], HEADS, 1, trace->shards->ranks.ranks);
}

/* names: of Megatron's autograd functions. */
static const ms_rule enter_rule = {"CopyToModelParallelRegion", NULL,
                                   enter_backward};
static const ms_rule reduce_rule = {"ReduceFromModelParallelRegion", NULL,
                                    reduce_backward};
static const ms_rule gather_rule = {"GatherFromSequenceParallelRegion", NULL,
                                    gather_backward};
static const ms_rule gather_equal_rule = {"GatherFromSequenceParallelRegion",
                                          NULL, gather_equal_backward};
static const ms_rule scatter_rule = {"ReduceScatterToSequenceParallelRegion",
                                     NULL, scatter_backward};
static const ms_rule columns_rule = {"AllGatherFromTensorParallelRegion", NULL,
                                     columns_backward};
static const ms_rule columns_equal_rule = {"AllGatherFromTensorParallelRegion",
                                           NULL, columns_equal_backward};
static const ms_rule heads_rule = {"ScatterToModelParallelRegion", NULL,
                                   heads_backward};
static const ms_rule part_rule = {"ScatterToSequenceParallelRegion", NULL,
                                  scatter_backward};

static uint32_t with_node(ms_trace *trace, const ms_rule *rule, uint32_t x,
                          uint32_t y)
{
    ms_trace_node(trace, rule, &x, 1, &y, 1);
    return y;
}

uint32_t ms_tensorops_enter(ms_trace *trace, uint32_t x)
{
    if (trace->err)
        return MS_NONE;
    return with_node(trace, &enter_rule, x, ms_trace_alias(trace, x));
}

uint32_t ms_tensorops_reduce(ms_trace *trace, uint32_t x)
{
    if (trace->err)
        return MS_NONE;
    ms_tensorops_sum(trace, x);
    return with_node(trace, &reduce_rule, x, ms_trace_alias(trace, x));
}

uint32_t ms_tensorops_gather(ms_trace *trace, uint32_t x)
{
    if (trace->err)
        return MS_NONE;
    return with_node(trace, &gather_equal_rule, x,
                     ms_tensorops_whole_of(trace, x));
}

uint32_t ms_tensorops_gather_for(ms_trace *trace, uint32_t x, uint32_t columns)
{
    if (trace->err)
        return MS_NONE;
    bool beside = columns > 0 && ms_userbuffers_async(trace);
    return with_node(trace, &gather_rule, x,
                     beside ? whole_beside(trace, x, columns)
                            : ms_tensorops_whole_of(trace, x));
}

uint32_t ms_tensorops_columns(ms_trace *trace, uint32_t x, bool partial)
{
    if (trace->err)
        return MS_NONE;
    return with_node(trace, partial ? &columns_rule : &columns_equal_rule, x,
                     along_columns(trace, x, 1, trace->shards->ranks.ranks));
}

/* This rank's, copied: what the node is of. */
static uint32_t own_heads(ms_trace *trace, uint32_t x)
{
    ms_trace_begin(trace, "aten::clone");
    ms_trace_read(trace, x);
    if (trace->err)
        return MS_NONE;
    ms_tensor like = *ms_trace_at(trace, x);
    like.size[HEADS] /= trace->shards->ranks.ranks;
    uint32_t y =
        ms_trace_make(trace, "part", like.dtype, like.n_dims, like.size);
    ms_trace_end(trace, 0, false);
    if (!trace->err)
        trace->graph->op_read_bytes[trace->graph->n_ops - 1] =
            ms_trace_bytes(ms_trace_at(trace, y));
    return y;
}

uint32_t ms_tensorops_heads(ms_trace *trace, uint32_t x)
{
    if (trace->err)
        return MS_NONE;
    return with_node(trace, &heads_rule, x, own_heads(trace, x));
}

uint32_t ms_tensorops_scatter(ms_trace *trace, uint32_t x)
{
    if (trace->err)
        return MS_NONE;
    bool of_product =
        ms_userbuffers_async(trace) && product_of(trace, x) != MS_NONE;
    uint32_t y = ms_tensorops_part_of_sum(trace, x);
    uint32_t n = ms_trace_node(trace, &scatter_rule, &x, 1, &y, 1);
    if (n != MS_NONE)
        trace->nodes[n].i[OF_PRODUCT] = of_product;
    return y;
}

/* Cloned, so that the whole can end (Megatron's
 * clone_scatter_output_in_embedding). */
uint32_t ms_tensorops_part(ms_trace *trace, uint32_t x)
{
    if (trace->err)
        return MS_NONE;
    int64_t ranks = trace->shards->ranks.ranks;
    ms_trace_begin(trace, "aten::clone");
    ms_trace_read(trace, x);
    uint32_t part = make(trace, "part", x, length_of(trace, x) / ranks);
    ms_trace_end(trace, 0, false);
    if (!trace->err) {
        ms_graph *g = trace->graph;
        g->op_read_bytes[g->n_ops - 1] = g->op_write_bytes[g->n_ops - 1];
    }
    return with_node(trace, &part_rule, x, part);
}
