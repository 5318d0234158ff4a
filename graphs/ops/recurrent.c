/* SPDX-License-Identifier: GPL-3.0-or-later */
/* LSTM and GRU.  The CPU runs one step at a time, as ATen/native/RNN.cpp
 * composes it: the products with the input are made for all steps at once, and
 * the gates are overwritten in place.  CUDA runs one op of cuDNN, which keeps a
 * reserve. Its size is not published; here it is what backward needs: the
 * gates, the state and its activation of every step. */
#include "graphs/ops/ops.h"
#include "graphs/trace/trace.h"

#define LSTM_GATES 4u
#define GRU_GATES 3u
#define LSTM_RESERVE 6 /* four gates, c, tanh(c) */
#define GRU_RESERVE 5  /* three gates, the hidden part of one, h */

/* Splits the tensor of a step into its gates. */
static void chunk(ms_trace *trace, uint32_t gates, uint32_t n, uint32_t *pieces)
{
    int64_t sizes[LSTM_GATES];
    if (trace->err)
        return;
    for (uint32_t i = 0; i < n; i++)
        sizes[i] = ms_trace_at(trace, gates)->size[1] / n;
    ms_split_sizes(trace, gates, 1, n, sizes, pieces);
}

/* An op in place, such as x.sigmoid_(), with x rebound to the result. */
static void overwrite(ms_trace *trace, const ms_unary *unary, uint32_t *x)
{
    *x = ms_trace_rebind(trace, *x,
                         ms_pointwise_unary_in_place(trace, unary, *x));
}

/* a.mul_(b), which saves a clone of what it overwrites where b's gradient
 * needs it. */
static uint32_t multiply_in_place(ms_trace *trace, uint32_t a, uint32_t b)
{
    uint32_t inputs[2] = {a, b}, before;
    ms_trace_begin(trace, "aten::clone");
    ms_trace_read(trace, a);
    before = trace->err ? MS_NONE : ms_view_make(trace, "clone", a, a);
    ms_trace_end(trace, 0, false);
    ms_trace_begin(trace, "aten::mul_");
    ms_trace_read(trace, a);
    ms_trace_read(trace, b);
    uint32_t y = ms_trace_alias(trace, a);
    ms_trace_end(trace, 0, false);
    if (trace->err)
        return MS_NONE;
    ms_trace_at(trace, y)->view = ms_trace_at(trace, a)->view;
    uint32_t n = ms_trace_node(trace, &ms_pointwise_mul_rule, inputs, 2, &y, 1);
    if (ms_trace_needs(trace, b))
        ms_trace_save(trace, n, before);
    if (ms_trace_needs(trace, a))
        ms_trace_save(trace, n, b);
    ms_trace_drop(trace, before);
    return y;
}

/* ---- one step ------------------------------------------------------------ */

/* h and c are rebound to the new state. */
static void lstm_step(ms_trace *trace, uint32_t inputs,
                      const ms_recurrent_cell *cell, uint32_t *h, uint32_t *c)
{
    uint32_t gate[LSTM_GATES];
    uint32_t product =
        ms_matmul_linear(trace, *h, cell->weight_hh, cell->bias_hh);
    uint32_t gates = ms_pointwise_add_in_place(trace, product, inputs);
    ms_trace_drop(trace, product);
    chunk(trace, gates, LSTM_GATES, gate);
    if (trace->err)
        return;
    for (uint32_t i = 0; i < LSTM_GATES; i++)
        overwrite(trace, i == 2 ? &ms_pointwise_tanh : &ms_pointwise_sigmoid,
                  &gate[i]);
    uint32_t kept = ms_pointwise_mul(trace, gate[1], *c);
    uint32_t fresh = ms_pointwise_mul(trace, gate[0], gate[2]);
    uint32_t state = ms_pointwise_add_in_place(trace, kept, fresh);
    ms_trace_drop(trace, kept);
    ms_trace_drop(trace, fresh);
    uint32_t shown = ms_pointwise_unary(trace, &ms_pointwise_tanh, state);
    uint32_t out = ms_pointwise_mul(trace, gate[3], shown);
    ms_trace_drop(trace, shown);
    ms_trace_drop(trace, gates);
    ms_split_drop(trace, LSTM_GATES, gate);
    *h = ms_trace_rebind(trace, *h, out);
    *c = ms_trace_rebind(trace, *c, state);
}

/* hidden.add_(input).sigmoid_() */
static uint32_t gru_gate(ms_trace *trace, uint32_t hidden, uint32_t input)
{
    uint32_t sum = ms_pointwise_add_in_place(trace, hidden, input);
    overwrite(trace, &ms_pointwise_sigmoid, &sum);
    return sum;
}

static void gru_step(ms_trace *trace, uint32_t inputs,
                     const ms_recurrent_cell *cell, uint32_t *h)
{
    uint32_t in[GRU_GATES], hidden[GRU_GATES];
    chunk(trace, inputs, GRU_GATES, in);
    uint32_t product =
        ms_matmul_linear(trace, *h, cell->weight_hh, cell->bias_hh);
    chunk(trace, product, GRU_GATES, hidden);
    ms_trace_drop(trace, product);
    if (trace->err)
        return;
    uint32_t reset = gru_gate(trace, hidden[0], in[0]);
    uint32_t update = gru_gate(trace, hidden[1], in[1]);
    uint32_t part = multiply_in_place(trace, hidden[2], reset);
    uint32_t fresh = ms_pointwise_add(trace, in[2], part);
    ms_trace_drop(trace, part);
    ms_trace_drop(trace, reset);
    overwrite(trace, &ms_pointwise_tanh, &fresh);
    uint32_t change = ms_pointwise_sub(trace, *h, fresh);
    uint32_t scaled = multiply_in_place(trace, change, update);
    uint32_t out = ms_pointwise_add_in_place(trace, scaled, fresh);
    ms_trace_drop(trace, change);
    ms_trace_drop(trace, scaled);
    ms_trace_drop(trace, update);
    ms_trace_drop(trace, fresh);
    ms_split_drop(trace, GRU_GATES, in);
    ms_split_drop(trace, GRU_GATES, hidden);
    *h = ms_trace_rebind(trace, *h, out);
}

/* ---- all steps of a direction -------------------------------------------- */

uint32_t ms_recurrent_steps(ms_trace *trace, uint32_t x,
                            const ms_recurrent_cell *cell, bool backwards,
                            uint32_t *h, uint32_t *c)
{
    uint32_t inputs =
        ms_matmul_linear(trace, x, cell->weight_ih, cell->bias_ih);
    if (trace->err)
        return MS_NONE;
    uint32_t n = (uint32_t)ms_trace_at(trace, inputs)->size[0];
    uint32_t *step = ms_arena_take_raw(trace->scratch, n, sizeof *step);
    uint32_t *out = ms_arena_take_raw(trace->scratch, n, sizeof *out);
    if (!step || !out) {
        trace->err = ms_fail_nomem(trace->fault);
        return MS_NONE;
    }
    ms_split_unbind(trace, inputs, step);
    for (uint32_t i = 0; i < n && !trace->err; i++) {
        uint32_t t = backwards ? n - 1 - i : i;
        if (c)
            lstm_step(trace, step[t], cell, h, c);
        else
            gru_step(trace, step[t], cell, h);
        out[t] = *h;
        ms_trace_ref(trace, *h);
    }
    uint32_t y = ms_split_stack(trace, n, out);
    ms_split_drop(trace, n, out);
    ms_split_drop(trace, n, step);
    ms_trace_drop(trace, inputs);
    return y;
}

/* ---- cuDNN --------------------------------------------------------------- */

/* cuDNN needs contiguous tensors: a copy of x that lives while the op runs. */
static void lay_flat(ms_trace *trace, uint32_t x)
{
    if (!trace->err && !ms_view_is_contiguous(ms_trace_at(trace, x)))
        ms_trace_drop(trace, ms_trace_make_like(trace, "contiguous", x));
}

/* Inputs: x, then the weights.  The gradients are made in the same order; none
 * is made of the initial states. */
static void cudnn_backward(ms_trace *trace, const ms_node *node,
                           const uint32_t *grads, uint32_t *out)
{
    uint8_t was = trace->pass;
    ms_trace_begin_backward(trace, node, grads[0]);
    lay_flat(trace, node->input[0]);
    lay_flat(trace, grads[0]);
    if (node->needs[0])
        out[0] = ms_trace_make_like(trace, "grad", node->input[0]);
    ms_trace_end(trace, node->flops, true);
    trace->pass = MS_GRAD_WEIGHT;
    ms_trace_begin_backward(trace, node, grads[0]);
    lay_flat(trace, node->input[0]);
    for (uint32_t i = 1; i < node->n_inputs; i++)
        if (node->needs[i])
            out[i] = ms_trace_make_like(trace, "grad", node->input[i]);
    ms_trace_end(trace, node->flops, true);
    trace->pass = was;
}

static const ms_rule cudnn_rule = {"CudnnRnnBackward0",
                                   "aten::_cudnn_rnn_backward", cudnn_backward};

/* 2 FLOPs for each weight and row of every step. */
static double weight_flops(ms_trace *trace, const uint32_t *weights, uint32_t n,
                           int64_t rows)
{
    double elements = 0;
    for (uint32_t i = 0; i < n; i++)
        elements += (double)ms_trace_elements(ms_trace_at(trace, weights[i]));
    return 2 * (double)rows * elements;
}

uint32_t ms_recurrent_cudnn(ms_trace *trace, const uint32_t *inputs,
                            uint32_t n_inputs, int64_t width, int64_t states,
                            bool lstm)
{
    if (trace->err)
        return MS_NONE;
    ms_tensor x = *ms_trace_at(trace, inputs[0]);
    int64_t dims[3] = {x.size[0], x.size[1], width};
    int64_t layers = states / width;
    int64_t last[3] = {layers, x.size[1], width};
    int64_t kept =
        x.size[0] * x.size[1] * states * (lstm ? LSTM_RESERVE : GRU_RESERVE);
    double flops =
        weight_flops(trace, inputs + 1, n_inputs - 1, x.size[0] * x.size[1]);
    ms_trace_begin(trace, "aten::_cudnn_rnn");
    for (uint32_t i = 0; i < n_inputs; i++)
        ms_trace_read(trace, inputs[i]);
    lay_flat(trace, inputs[0]);
    uint32_t y = ms_trace_make(trace, "out", x.dtype, 3, dims);
    uint32_t h = ms_trace_make(trace, "h", x.dtype, 3, last);
    uint32_t reserve = ms_trace_make(trace, "reserve", x.dtype, 1, &kept);
    ms_trace_end(trace, flops, true);
    uint32_t n = ms_trace_node(trace, &cudnn_rule, inputs, n_inputs, &y, 1);
    if (n != MS_NONE)
        trace->nodes[n].flops = flops;
    for (uint32_t i = 0; i < n_inputs; i++)
        ms_trace_save(trace, n, inputs[i]);
    ms_trace_save(trace, n, y);
    ms_trace_save(trace, n, reserve);
    ms_trace_drop(trace, reserve);
    ms_trace_drop(trace, h);
    return y;
}
