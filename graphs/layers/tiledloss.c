/* SPDX-License-Identifier: GPL-3.0-or-later */
/* DeepSpeed's TiledFusedLogitsLoss (deepspeed/runtime/sequence_parallel/
 * ulysses_sp.py), with the function that ArcticTraining gives it
 * (arctic_training/trainer/sft_trainer.py): head and loss of one piece of the
 * rows, and back through them at once, while forward runs. */
#include "graphs/layers/headloss.h"
#include "graphs/ops/ops.h"
#include "graphs/trace/columns.h"
#include "graphs/trace/inner.h"
#include "graphs/trace/savedends.h"
#include "graphs/trace/trace.h"
#include "sim/graph.h"

/* sft_trainer.py: a piece's logits take about so many bytes in fp32. */
#define PIECE_BYTES (1 << 30)

static int64_t rows_of_piece(int64_t rows, int64_t vocab)
{
    double bytes = (double)rows * (double)vocab * sizeof(float);
    int64_t n = (int64_t)(bytes / PIECE_BYTES);
    n += (double)n * PIECE_BYTES < bytes;
    return n > 0 ? (rows + n - 1) / n : rows;
}

/* loss_function(lm_head(x), labels) * how many labels count */
static uint32_t loss_of(ms_trace *trace, const ms_cross_entropy *how,
                        uint32_t x, uint32_t weight, uint32_t labels)
{
    uint32_t logits = ms_matmul_linear(trace, x, weight, MS_NONE);
    uint32_t wide = logits;
    if (how->upcasts)
        wide = ms_cast_to(trace, logits, MS_FLOAT32);
    else
        ms_trace_ref(trace, wide);
    uint32_t mean = how->smooths
                        ? ms_loss_smoothed_cross_entropy(trace, wide, labels)
                        : ms_loss_cross_entropy(trace, wide, labels);
    ms_trace_drop(trace, wide);
    uint32_t sum = ms_pointwise_mul_scalar(trace, mean);
    ms_trace_drop(trace, mean);
    ms_trace_drop(trace, logits);
    return sum;
}

/* torch.tensor(1.0): one for all pieces. */
static uint32_t one(ms_trace *trace, uint8_t dtype)
{
    ms_trace_begin(trace, "aten::ones");
    uint32_t y =
        ms_trace_make(trace, "incoming_grad", dtype, 0, (const int64_t[]){0});
    ms_trace_end(trace, 0, false);
    return y;
}

/* Ops of forward, whatever they do, of no node outside. */
static void claim(ms_trace *trace, uint32_t first)
{
    ms_graph *g = trace->graph;
    for (uint32_t op = first; op < g->n_ops; op++) {
        g->op_node[op] = MS_NONE;
        g->op_pass[op] = MS_LOSS;
    }
    trace->pass = MS_LOSS;
}

typedef struct tiled {
    const ms_cross_entropy *how;
    uint32_t weight, x_grad, incoming;
    ms_inner_graph inner;
} tiled;

/* One piece: its loss. */
static uint32_t run_piece(ms_trace *trace, tiled *it, uint32_t x,
                          uint32_t labels)
{
    uint32_t layer = trace->layer, first = trace->graph->n_ops;
    if (!trace->settings->train)
        return loss_of(trace, it->how, x, it->weight, labels);
    ms_inner_enter(trace, &it->inner);
    uint32_t leaf = ms_inner_leaf(trace, x, it->x_grad);
    uint32_t loss = loss_of(trace, it->how, leaf, it->weight, labels);
    ms_trace_ref(trace, it->incoming);
    ms_inner_backward(trace, loss, it->incoming);
    ms_trace_drop(trace, leaf);
    claim(trace, first);
    trace->layer = layer;
    return loss;
}

/* cat(losses).sum(); the losses are used up. */
static uint32_t sum_of(ms_trace *trace, const uint32_t *loss, uint32_t n)
{
    uint32_t all = ms_split_stack(trace, n, loss);
    ms_split_drop(trace, n, loss);
    ms_trace_begin(trace, "aten::sum");
    ms_trace_read(trace, all);
    uint32_t sum = trace->err ? MS_NONE
                              : ms_trace_make(trace, "loss",
                                              ms_trace_at(trace, all)->dtype, 0,
                                              (const int64_t[]){0});
    ms_trace_end(trace, n, false);
    ms_trace_drop(trace, all);
    return sum;
}

static uint32_t run_pieces(ms_trace *trace, tiled *it, uint32_t rows,
                           uint32_t labels)
{
    int64_t all = ms_trace_at(trace, rows)->size[0], n = 0;
    int64_t each = rows_of_piece(all, ms_trace_at(trace, it->weight)->size[0]);
    uint32_t *loss =
        ms_columns_take(trace, (size_t)((all + each - 1) / each), sizeof *loss);
    if (loss == NULL)
        return MS_NONE;
    for (int64_t at = 0; at < all && !trace->err; at += each) {
        int64_t size = all - at < each ? all - at : each;
        uint32_t x = ms_view_slice(trace, rows, 0, size);
        uint32_t y = ms_view_slice(trace, labels, 0, size);
        loss[n++] = run_piece(trace, it, x, y);
        ms_trace_drop(trace, x);
        ms_trace_drop(trace, y);
    }
    return sum_of(trace, loss, (uint32_t)n);
}

/* x_grad *= grads[0], which is not 1: what follows divides by the labels that
 * count.  The weight's has been in .grad since forward. */
static void scale_backward(ms_trace *trace, const ms_node *node,
                           const uint32_t *grads, uint32_t *out)
{
    ms_trace_begin(trace, node->rule->op);
    ms_trace_read(trace, grads[0]);
    ms_trace_read(trace, node->saved[0]);
    ms_trace_end(trace, ms_trace_count(trace, node->saved[0]), false);
    ms_savedends_give(trace, node, out);
}

static const ms_rule tiled_rule = {"TiledFusedLogitsLossBackward", "aten::mul_",
                                   scale_backward};

/* The gradients, which the node keeps for backward. */
static void keep_grads(ms_trace *trace, tiled *it, uint32_t x, uint32_t loss)
{
    uint32_t inputs[2], made[2], n = 0;
    uint32_t weight_grad = ms_inner_gradient(&it->inner, 0);
    if (it->x_grad != MS_NONE) {
        inputs[n] = x;
        made[n++] = ms_trace_rebind(trace, it->x_grad,
                                    ms_view_as(trace, it->x_grad, x));
    }
    if (weight_grad != MS_NONE) {
        inputs[n] = it->weight;
        made[n++] = weight_grad;
    }
    trace->keeps_no_graph = false;
    uint32_t node = ms_trace_node(trace, &tiled_rule, inputs, n, &loss, 1);
    for (uint32_t i = 0; i < n && !trace->err; i++)
        ms_trace_save(trace, node, made[i]);
    ms_savedends_hold(trace, node);
    for (uint32_t i = 0; i < n && !trace->err; i++)
        ms_trace_drop(trace, made[i]);
}

/* labels.reshape(-1) */
static uint32_t flat(ms_trace *trace, uint32_t labels)
{
    if (trace->err)
        return MS_NONE;
    int64_t n = (int64_t)ms_trace_elements(ms_trace_at(trace, labels));
    return ms_view_reshape(trace, labels, 1, &n);
}

static uint32_t tiled_loss(ms_trace *trace, const ms_cross_entropy *how,
                           uint32_t x)
{
    tiled it = {.how = how, .weight = trace->head.weight, .x_grad = MS_NONE};
    uint32_t target = ms_losskernels_targets(trace, x), loss = MS_NONE;
    if (trace->err)
        return MS_NONE;
    trace->keeps_no_graph = true;
    ms_inner_make(trace, &it.inner, ms_trace_at(trace, it.weight)->parameter,
                  1);
    uint32_t rows = ms_view_rows(trace, x), labels = flat(trace, target);
    if (trace->settings->train && !trace->err)
        it.incoming = one(trace, ms_trace_at(trace, x)->dtype);
    if (ms_trace_needs(trace, x) && !trace->err)
        it.x_grad = ms_inner_zeros(trace, rows);
    if (!trace->err)
        loss = run_pieces(trace, &it, rows, labels);
    ms_trace_drop(trace, labels);
    if (trace->settings->train)
        ms_trace_drop(trace, it.incoming);
    if (!trace->err)
        keep_grads(trace, &it, x, loss);
    trace->keeps_no_graph = false;
    ms_trace_drop(trace, rows);
    ms_trace_drop(trace, x);
    return ms_trace_rebind(trace, loss, ms_pointwise_div_scalar(trace, loss));
}

const ms_loss_kernel ms_tiledloss = {
    .name = "tiled",
    .loss = tiled_loss,
    .head = ms_losskernels_hand_on,
    .headless = &ms_losskernels_eager,
};
