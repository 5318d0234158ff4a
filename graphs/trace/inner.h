/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_GRAPHS_INNER_H
#define MS_GRAPHS_INNER_H

/* Private to graphs/: a graph of autograd inside of a node
 * (torch.autograd.Function), as functions have that run layers piece by piece
 * and go back through each piece at once (deepspeed/runtime/
 * sequence_parallel/ulysses_sp.py: TiledMLP, TiledFusedLogitsLoss).
 *
 *     ms_inner_graph inner;
 *     ms_inner_make(trace, &inner, first, n);           of these parameters
 *     for each piece of x:
 *         ms_inner_enter(trace, &inner);                torch.enable_grad()
 *         leaf = ms_inner_leaf(trace, piece, x_grad);   piece.grad = narrow
 *         y = ... the layers again (lasting.h) ...
 *         ms_inner_backward(trace, y, grad);            autograd.backward
 *     out[i] = ms_inner_gradient(&inner, i);
 *
 * Invariants.  Graphs inside are not nested, and their nodes end with
 * ms_inner_backward: afterwards the trace has those of the graph outside, and
 * their ops are of the node under way.  What nodes inside save are references
 * like those of variables: it is made and ends within one call of the node.
 *
 * Gradients of parameters.  In a graph inside, AccumulateGrad adds to .grad
 * piece by piece; hooks that wait for it are held back until the last piece
 * (ds_grad_is_ready).  Here the pieces are summed in the first one's tensor,
 * which becomes the gradient of the node's input: where .grad does not exist
 * yet, or ends with each micro-batch (ZeRO 2 and 3), the bytes are the same;
 * else that sum is one tensor more while the node runs. */

#include "graphs/trace/tensors.h"

typedef struct ms_inner_weight {
    uint32_t sum;        /* of its gradients so far, or MS_NONE */
    uint32_t uses, grad; /* in the graph outside, meanwhile */
} ms_inner_weight;

typedef struct ms_inner_graph {
    uint32_t first_parameter, n; /* those whose gradients it sums */
    ms_inner_weight *weight;
    uint32_t first_node, node_outside; /* of the piece under way */
} ms_inner_graph;

/* Of so many parameters from row first on. */
void ms_inner_make(ms_trace *trace, ms_inner_graph *inner, uint32_t first,
                   uint32_t n);
void ms_inner_enter(ms_trace *trace, ms_inner_graph *inner);
/* torch.zeros_like(x): the gradient of x, to which its pieces add theirs. */
uint32_t ms_inner_zeros(ms_trace *trace, uint32_t x);
/* A tensor over what x has, without a history, whose gradient is added to sum.
 * sum MS_NONE: it needs none. */
uint32_t ms_inner_leaf(ms_trace *trace, uint32_t x, uint32_t sum);
/* Goes back from y, whose gradient is grad (used up), to leaves and parameters
 * and leaves the graph. */
void ms_inner_backward(ms_trace *trace, uint32_t y, uint32_t grad);
/* The sum of its parameter i's gradients, used up; MS_NONE: none came. */
uint32_t ms_inner_gradient(ms_inner_graph *inner, uint32_t i);

/* The engine's: a parameter has its gradient of the piece under way; what a
 * node inside has saved is released. */
void ms_inner_accumulate(ms_trace *trace, ms_parameter *parameter);
void ms_inner_release(ms_trace *trace, const ms_node *node);

#endif
