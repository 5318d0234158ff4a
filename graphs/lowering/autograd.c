/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The autograd engine (torch/csrc/autograd/engine.cpp) on shapes:
 * graphs/autograd.md 3 to 9.  Nodes run by falling sequence number, which is
 * the order of creation reversed; a parameter's gradient is accumulated at once
 * after the node that completes it. */
#include "graphs/formats/precisions.h"
#include "graphs/lowering/lower.h"
#include "graphs/ops/ops.h"
#include "graphs/optimizer/optimizer.h"
#include "graphs/trace/columns.h"
#include "graphs/trace/inner.h"
#include "graphs/trace/savedends.h"
#include "graphs/trace/savelist.h"
#include "graphs/trace/trace.h"
#include "sim/graph.h"

#include <assert.h>
#include <string.h>

/* ---- where gradients go -------------------------------------------------- */

/* The parameter that input i of the node is, or NULL. */
static ms_parameter *parameter_of(ms_trace *trace, const ms_node *node,
                                  uint32_t i)
{
    if (!node->needs[i])
        return NULL;
    uint32_t p = ms_trace_at(trace, node->input[i])->parameter;
    return p == MS_NONE ? NULL : &trace->parameters[p];
}

/* The buffer that gathers the gradients of input i, or NULL. */
static uint32_t *buffer_of(ms_trace *trace, const ms_node *node, uint32_t i)
{
    ms_parameter *parameter = parameter_of(trace, node, i);
    if (parameter)
        return &parameter->grad;
    if (!node->needs[i])
        return NULL;
    const ms_tensor *input = ms_trace_at(trace, node->input[i]);
    if (input->node == MS_NONE)
        return NULL;
    return &trace->nodes[input->node].grad[input->output];
}

/* ---- validate_outputs ---------------------------------------------------- */

static bool same_shape(const ms_tensor *a, const ms_tensor *b)
{
    return a->n_dims == b->n_dims &&
           memcmp(a->size, b->size, a->n_dims * sizeof *a->size) == 0;
}

/* A gradient that is wider than its input is summed to the input's shape. */
static uint32_t sum_to_input(ms_trace *trace, const ms_node *node, uint32_t i,
                             uint32_t grad)
{
    uint8_t was = trace->pass;
    if (parameter_of(trace, node, i))
        trace->pass = MS_GRAD_WEIGHT;
    ms_trace_begin(trace, "aten::sum");
    ms_trace_read(trace, grad);
    uint32_t sum = ms_trace_make_like(trace, "grad", node->input[i]);
    double elements = 0;
    if (!trace->err) {
        const ms_tensor *wide = ms_trace_at(trace, grad);
        elements = (double)ms_trace_elements(wide);
        ms_scratch_reduce(trace, grad,
                          ms_scratch_changed(wide, ms_trace_at(trace, sum)),
                          sizeof(float));
    }
    ms_trace_end(trace, elements, false);
    trace->pass = was;
    ms_trace_drop(trace, grad);
    return sum;
}

static void validate(ms_trace *trace, const ms_node *node, uint32_t *out)
{
    for (uint32_t i = 0; i < node->n_inputs && !trace->err; i++) {
        if (out[i] == MS_NONE)
            continue;
        const ms_tensor *grad = ms_trace_at(trace, out[i]);
        const ms_tensor *input = ms_trace_at(trace, node->input[i]);
        if (!same_shape(grad, input))
            out[i] = sum_to_input(trace, node, i, out[i]);
        if (!trace->err && ms_trace_at(trace, out[i])->dtype != input->dtype) {
            uint32_t cast = ms_cast_to(trace, out[i], input->dtype);
            ms_trace_drop(trace, out[i]);
            out[i] = cast;
        }
    }
}

/* ---- input buffers ------------------------------------------------------- */

/* Does a product that waits for its half of backward hold the storage?
 * (sail-sg/zero-bubble@39f2c186, weight_grad_store.py, keeps the gradient of a
 * linear layer's output.) */
static bool waits_for_weights(const ms_trace *trace, uint32_t storage)
{
    const ms_graph *g = trace->graph;
    uint32_t first = g->storage_maker[storage], end = trace->n_in;
    if (!trace->settings->shape->splits_backward || first == MS_NONE)
        return false;
    for (uint32_t op = g->n_ops; op-- > first; end = g->in_at[op])
        if (g->op_pass[op] == MS_GRAD_WEIGHT && g->op_flags[op] & MS_OP_MATRIX)
            for (uint32_t i = g->in_at[op]; i < end; i++)
                if (g->in[i] == storage)
                    return true;
    return false;
}

/* can_accumulate_inplace (torch 2, input_buffer.cpp): nothing else holds the
 * old gradient, it is no view, and it is dense. */
static bool in_place(const ms_trace *trace, const ms_tensor *old)
{
    return !waits_for_weights(trace, old->storage) &&
           trace->settings->framework > MS_TORCH_1_13 && old->refs == 1 &&
           !old->view && trace->counts[old->storage].tensors == 1 &&
           ms_view_is_dense(old);
}

/* old + grad; both are consumed. */
static uint32_t add_grads(ms_trace *trace, uint32_t old, uint32_t grad)
{
    if (trace->err)
        return MS_NONE;
    bool inside = in_place(trace, ms_trace_at(trace, old));
    double n = (double)ms_trace_elements(ms_trace_at(trace, old));
    ms_trace_begin(trace, inside ? "aten::add_" : "aten::add");
    ms_trace_read(trace, old);
    ms_trace_read(trace, grad);
    uint32_t sum = old;
    if (inside)
        trace->graph->op_write_bytes[trace->graph->n_ops - 1] +=
            ms_trace_bytes(ms_trace_at(trace, old));
    else
        sum = ms_view_make(trace, "grad", old, old);
    ms_trace_end(trace, n, false);
    if (!inside)
        ms_trace_drop(trace, old);
    ms_trace_drop(trace, grad);
    return sum;
}

static void deliver(ms_trace *trace, uint32_t *buffer, uint32_t grad)
{
    *buffer = *buffer == MS_NONE ? grad : add_grads(trace, *buffer, grad);
}

/* ---- AccumulateGrad ------------------------------------------------------ */

/* Stolen when nothing else holds the tensor and it is laid out like the
 * parameter; otherwise cloned (graphs/autograd.md 6).  A view that is stolen
 * keeps its whole storage, which other views may still read; but one storage
 * becomes one .grad.
 */
static bool stolen(const ms_trace *trace, const ms_parameter *parameter)
{
    const ms_tensor *grad = ms_trace_at(trace, parameter->grad);
    const ms_tensor *like = ms_trace_at(trace, parameter->tensor);
    if (grad->refs > 1 ||
        ms_precisions_gradient(trace, parameter) != grad->dtype ||
        trace->graph->storage_grad[grad->storage] != MS_NONE)
        return false;
    for (uint32_t d = 0; d < like->n_dims; d++)
        if (like->size[d] != 1 && like->stride[d] != grad->stride[d])
            return false;
    return true;
}

static void accumulate(ms_trace *trace, ms_parameter *parameter)
{
    ms_graph *g = trace->graph;
    ms_wholegrads_in_backward(trace, parameter);
    if (trace->err)
        return;
    bool steals = stolen(trace, parameter);
    uint32_t grad = parameter->grad;
    uint32_t s = ms_trace_at(trace, grad)->storage;
    uint8_t pass = trace->pass, flags = trace->op_flags;
    trace->pass = MS_ACCUMULATE;
    bool shared = !trace->err && trace->counts[s].tensors > 1;
    trace->op_flags = !steals ? MS_OP_CLONES : shared ? MS_OP_SHARES : 0;
    if (parameter->added) /* the hook finds nothing to add */
        trace->op_flags |= MS_OP_HOST;
    ms_trace_begin(trace, "AccumulateGrad");
    if (!parameter->added)
        ms_trace_read(trace, grad);
    if (!trace->err && !parameter->added) {
        uint32_t op = g->n_ops - 1;
        uint64_t bytes = g->storage_bytes[parameter->grad_storage];
        g->op_read_bytes[op] += bytes;
        g->op_write_bytes[op] += bytes;
        if (steals) {
            g->storage_category[s] = MS_BECOMES_GRAD;
            g->storage_grad[s] = parameter->grad_storage;
        }
    }
    ms_trace_out(trace, parameter->grad_storage);
    ms_trace_end(trace, (double)parameter->elements, false);
    trace->pass = pass;
    trace->op_flags = flags;
    ms_trace_drop(trace, grad);
    parameter->grad = MS_NONE;
    ms_optimstep_in_backward(trace, (uint32_t)(parameter - trace->parameters));
}

/* ---- one node ------------------------------------------------------------ */

static void hand_on(ms_trace *trace, const ms_node *node, const uint32_t *out)
{
    for (uint32_t i = 0; i < node->n_inputs && !trace->err; i++) {
        ms_parameter *parameter = parameter_of(trace, node, i);
        uint32_t *buffer = buffer_of(trace, node, i);
        if (parameter) {
            parameter->uses--;
            if (parameter->grad != MS_NONE) /* others are summed to it */
                parameter->added = false;
        }
        if (out[i] != MS_NONE && buffer)
            deliver(trace, buffer, out[i]);
        else
            ms_trace_drop(trace, out[i]);
    }
    for (uint32_t i = 0; i < node->n_inputs && !trace->err; i++) {
        ms_parameter *parameter = parameter_of(trace, node, i);
        if (!parameter || parameter->uses > 0 || parameter->grad == MS_NONE)
            continue;
        if (trace->inner != NULL)
            ms_inner_accumulate(trace, parameter);
        else
            accumulate(trace, parameter);
    }
}

/* Gradients of outputs that no op used are zeros (split, for one); unbind
 * stacks one zero instead, of no size to speak of. */
static void fill_undefined(ms_trace *trace, const ms_node *node,
                           uint32_t *grads)
{
    for (uint32_t i = 0; i < node->n_outputs; i++) {
        if (grads[i] != MS_NONE)
            continue;
        ms_trace_begin(trace, "aten::zeros");
        grads[i] = ms_trace_make_like(trace, "grad", node->output[i]);
        ms_trace_end(trace, 0, false);
    }
}

static bool has_gradient(const ms_node *node)
{
    for (uint32_t i = 0; i < node->n_outputs; i++)
        if (node->grad[i] != MS_NONE)
            return true;
    return node->n_outputs == 0;
}

/* Do nodes keep what they saved until the loss goes? */
static bool retains(const ms_trace *trace)
{
    return trace->settings->training->retain_graph == 1 && trace->inner == NULL;
}

static void release(ms_trace *trace, const ms_node *node)
{
    if (trace->inner != NULL)
        ms_inner_release(trace, node);
    else if (!retains(trace))
        ms_savedends_release(trace, node);
}

/* out has room for the gradients of all inputs. */
static void run_node(ms_trace *trace, uint32_t n, uint32_t *out)
{
    ms_node node = trace->nodes[n];
    if (!has_gradient(&node))
        return;
    trace->unit = node.unit;
    trace->layer = node.layer;
    trace->node_now = n;
    trace->pass = MS_GRAD_INPUT;
    for (uint32_t i = 0; i < node.n_inputs; i++)
        out[i] = MS_NONE;
    if (node.n_outputs > 1 && node.rule != &ms_view_unbind_rule)
        fill_undefined(trace, &node, node.grad);
    uint32_t first = trace->graph->n_ops;
    node.rule->backward(trace, &node, node.grad, out);
    ms_savelist_ran(trace, n,
                    first); /* what they saved dies with the formula */
    validate(trace, &node, out);
    for (uint32_t i = 0; i < node.n_outputs; i++)
        ms_trace_drop(trace, node.grad[i]);
    release(trace, &node);
    hand_on(trace, &node, out);
    if (!retains(trace))
        ms_trace_unpin(trace, &node);
}

/* backward(retain_graph=True): the forward's n nodes live until the loss
 * goes. */
static void release_all(ms_trace *trace, const bool *reached, uint32_t n)
{
    while (n-- > 0 && !trace->err)
        if (reached[n]) {
            ms_savedends_release(trace, &trace->nodes[n]);
            ms_trace_unpin(trace, &trace->nodes[n]);
        }
}

/* ---- nodes that no gradient reaches -------------------------------------- */

/* Per node: does the loss depend on it?  A node without outputs always runs.
 * NULL: out of memory. */
static bool *find_reached(ms_trace *trace, uint32_t loss)
{
    bool *reached = ms_columns_take(trace, trace->n_nodes, sizeof *reached);
    if (!reached)
        return NULL;
    for (uint32_t n = 0; n < trace->n_nodes; n++)
        reached[n] = trace->nodes[n].n_outputs == 0;
    if (ms_trace_needs(trace, loss))
        reached[ms_trace_at(trace, loss)->node] = true;
    for (uint32_t n = trace->n_nodes; n-- > 0;) {
        const ms_node *node = &trace->nodes[n];
        uint32_t n_inputs = node->n_inputs;
        if (node->inner) /* CopySlices: the part lends its shape only */
            n_inputs--;
        for (uint32_t i = 0; reached[n] && i < n_inputs; i++) {
            uint32_t from = node->needs[i]
                                ? ms_trace_at(trace, node->input[i])->node
                                : MS_NONE;
            if (from != MS_NONE)
                reached[from] = true;
        }
    }
    return reached;
}

/* In PyTorch the node has died with its outputs, in forward: what it saved is
 * as if not saved, and no parameter waits for a gradient from it. */
static void forget(ms_trace *trace, const ms_node *node)
{
    ms_savedends_forget(trace, node);
    for (uint32_t i = 0; i < node->n_inputs; i++) {
        ms_parameter *parameter = parameter_of(trace, node, i);
        if (parameter)
            parameter->uses--;
    }
    ms_trace_unpin(trace, node);
}

void ms_autograd_forget(ms_trace *trace, uint32_t loss)
{
    if (trace->err)
        return;
    trace->reached = find_reached(trace, loss);
    for (uint32_t n = trace->n_nodes; trace->reached && n-- > 0;)
        if (!trace->reached[n])
            forget(trace, &trace->nodes[n]);
}

/* ---- graphs inside of nodes ---------------------------------------------- */

/* No gradient has come to it. */
static void abandon(ms_trace *trace, const ms_node *node)
{
    ms_inner_release(trace, node);
    for (uint32_t i = 0; i < node->n_inputs && !trace->err; i++) {
        ms_parameter *parameter = parameter_of(trace, node, i);
        if (parameter && --parameter->uses == 0 && parameter->grad != MS_NONE)
            ms_inner_accumulate(trace, parameter);
    }
    if (!trace->err)
        ms_trace_unpin(trace, node);
}

void ms_autograd_inside(ms_trace *trace, uint32_t first)
{
    uint32_t *out = ms_columns_take(trace, trace->most_inputs, sizeof *out);
    for (uint32_t n = trace->n_nodes; out && n-- > first && !trace->err;) {
        ms_node node = trace->nodes[n];
        if (has_gradient(&node))
            run_node(trace, n, out);
        else
            abandon(trace, &node);
    }
}

/* ---- the backward pass --------------------------------------------------- */

static bool is_measured(const ms_trace *trace)
{
    return trace->settings->model->measured;
}

/* loss.backward() holds a ones_like(loss) for the whole call
 * (graphs/autograd.md 9); of a measured chain nobody has timed it, and it goes
 * with the backward of the last stage. */
static uint32_t root_gradient(ms_trace *trace, uint32_t loss)
{
    trace->pass = MS_GRAD_INPUT;
    trace->node_now = ms_trace_at(trace, loss)->node;
    trace->unit = trace->nodes[trace->node_now].unit;
    ms_trace_begin(trace, "aten::ones_like");
    uint32_t root = ms_trace_make_like(trace, "root_gradient", loss);
    ms_trace_end(trace, 0, false);
    if (is_measured(trace) && !trace->err) {
        uint32_t op = trace->graph->n_ops - 1;
        trace->ends[op].work = MS_WORK_NONE;
        trace->graph->op_ns[op] = 0;
    }
    return root;
}

/* Of many nodes those that have run go in steps of so many. */
#define GO_AT_ONCE 32768u

/* Nodes [0, n) have yet to run; later ones are asked for no more. */
static void let_go(ms_trace *trace, uint32_t n)
{
    if (n % GO_AT_ONCE == 0 && !trace->nodes_stay)
        ms_arena_shrink(trace->scratch, trace->nodes, &trace->nodes_capacity, n,
                        sizeof *trace->nodes);
}

void ms_autograd_run(ms_trace *trace, uint32_t loss)
{
    uint32_t root = MS_NONE, *out;
    if (trace->err)
        return;
    out = ms_columns_take(trace, trace->most_inputs, sizeof *out);
    if (!out)
        return;
    uint32_t n_nodes = trace->n_nodes; /* backward may add some */
    if (ms_trace_needs(trace, loss)) {
        root = root_gradient(trace, loss);
        ms_flatstep_clear(trace);
        if (trace->err)
            return;
        const ms_tensor *from = ms_trace_at(trace, loss);
        trace->nodes[from->node].grad[from->output] = root;
        if (!is_measured(trace))
            ms_trace_ref(trace, root);
    }
    for (uint32_t n = n_nodes; n-- > 0 && !trace->err;) {
        run_node(trace, n, out);
        if (!retains(trace))
            let_go(trace, n);
    }
    if (retains(trace) && !trace->err)
        release_all(trace, trace->reached, n_nodes);
    if (!is_measured(trace))
        ms_trace_drop(trace, root);
    ms_flatstep_add(trace);
}
