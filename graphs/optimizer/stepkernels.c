/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "graphs/optimizer/stepkernels.h"
#include "graphs/formats/precisions.h"
#include "graphs/ops/ops.h"
#include "graphs/optimizer/optimizer.h"
#include "graphs/trace/trace.h"
#include "sim/graph.h"

/* ---- operands ------------------------------------------------------------ */

/* The bytes of a state of parameter p that this rank reads or writes: its part
 * of the weight and of .grad, which are whole, and all of the other states,
 * which are as large as the part. */
static uint64_t touched_bytes(const ms_step *s, uint32_t p, uint32_t storage)
{
    const ms_parameter *parameter = &s->trace->parameters[p];
    uint64_t bytes = s->trace->graph->storage_bytes[storage];
    if (parameter->elements == 0 ||
        (storage != parameter->storage && storage != parameter->grad_storage))
        return bytes;
    if (ms_parts_are_masters(s->trace))
        return 4 * parameter->part;
    return bytes / parameter->elements * parameter->part;
}

/* A state that the first step creates, as zeros or ones, is made by the op that
 * touches it first. */
static void read_state(ms_step *s, uint32_t p, uint32_t storage)
{
    const ms_graph *g = s->trace->graph;
    if (s->trace->err || storage == MS_NONE)
        return;
    if (g->storage_at_start[storage] || g->storage_maker[storage] != MS_NONE)
        ms_trace_read_storage(s->trace, storage, touched_bytes(s, p, storage));
    else
        ms_trace_out(s->trace, storage);
}

static void write_state(ms_step *s, uint32_t p, uint32_t storage)
{
    ms_graph *g = s->trace->graph;
    bool made_here = !s->trace->err && storage != MS_NONE &&
                     g->storage_maker[storage] == g->n_ops - 1;
    if (!made_here)
        read_state(s, p, storage);
    if (!s->trace->err && storage != MS_NONE)
        g->op_write_bytes[g->n_ops - 1] += touched_bytes(s, p, storage);
}

/* Lists (foreach) have the temporaries of all parameters at once, a loop has
 * those of one. */
static uint32_t slot(const ms_step *s, uint32_t p)
{
    return s->foreach ? p : 0;
}

/* The variable of an operand; .grad and the weight have one for the copy that
 * may replace them. */
uint32_t ms_stepkernels_variable(uint32_t which)
{
    return which == MS_ON_GRAD     ? (uint32_t)MS_STEP_OF_GRAD
           : which == MS_ON_WEIGHT ? (uint32_t)MS_STEP_OF_WEIGHT
                                   : which - (uint32_t)MS_ON_TEMPORARY;
}

static uint32_t operand(const ms_step *s, uint32_t p, uint32_t which)
{
    const ms_parameter *parameter = &s->trace->parameters[p];
    if (which >= MS_ON_STATE && which < MS_ON_TEMPORARY)
        return parameter->state[which - MS_ON_STATE];
    if (which == MS_ON_PARAMETER)
        return parameter->storage;
    uint32_t named = s->names[ms_stepkernels_variable(which)][slot(s, p)];
    if (named != MS_NONE || which >= MS_ON_TEMPORARY)
        return named;
    return which == MS_ON_GRAD ? s->grads[p] : s->weights[p];
}

uint32_t ms_stepkernels_temporary(ms_step *s, const char *role, uint64_t bytes,
                                  uint32_t p)
{
    s->trace->layer = s->trace->parameters[p].layer;
    return ms_trace_make_storage(s->trace, role, bytes);
}

/* ---- kernels ------------------------------------------------------------- */

static uint64_t made_bytes(const ms_step *s, const ms_step_op *op, uint32_t p)
{
    const ms_trace *trace = s->trace;
    const ms_parameter *parameter = &trace->parameters[p];
    uint8_t dtype = op->made.dtype;
    if (dtype == MS_AS_STATE)
        dtype = s->mixed || ms_parts_are_masters(trace) ? MS_FLOAT32
                                                        : trace->trained_dtype;
    return ms_dtypes_bytes[dtype] *
           ms_updates_extent(trace->settings->training, op->made.extent,
                             ms_trace_at(trace, parameter->tensor),
                             parameter->part);
}

/* The open op gathers the parts of all ranks, on the stream of collectives;
 * expand computes its time. */
static void gather(ms_step *s, uint32_t p)
{
    ms_graph *g = s->trace->graph;
    if (s->trace->err)
        return;
    g->op_stream[g->n_ops - 1] = MS_STREAM_COMM;
    g->op_flags[g->n_ops - 1] |= MS_OP_GATHERS;
    g->storage_category[s->made[slot(s, p)]] = MS_COMMUNICATION;
}

void ms_stepkernels_run(ms_step *s, const ms_step_op *op, uint32_t p)
{
    for (uint32_t i = MS_ON_GRAD; i < MS_N_OPERANDS; i++)
        if (op->reads >> i & 1)
            read_state(s, p, operand(s, p, i));
    if (op->makes != MS_ON_NOTHING && !s->trace->err)
        s->made[slot(s, p)] =
            ms_stepkernels_temporary(s, op->made.role, made_bytes(s, op, p), p);
    if (op->gathers)
        gather(s, p);
    if (op->writes != MS_ON_NOTHING)
        write_state(s, p, operand(s, p, op->writes));
}

bool ms_stepkernels_has_main_grads(const ms_trace *trace)
{
    const ms_kernel_hooks *hooks = trace->kernels.hooks;
    const ms_training *training = trace->settings->training;
    return training->gradients == MS_GRADIENTS_MAIN ||
           (training->gradients == MS_GRADIENTS_WEIGHTS &&
            trace->settings->shape->fp32_gradients &&
            ms_precisions_is_mixed(training)) ||
           (hooks->casts_gradients && hooks->casts_gradients(trace));
}

void ms_stepkernels_cast(ms_step *s, const ms_step_op *op, uint32_t p)
{
    const ms_parameter *parameter = &s->trace->parameters[p];
    (void)op;
    read_state(s, p, s->grads[p]);
    s->grads[p] =
        ms_stepkernels_temporary(s, "fp32_grad", 4 * parameter->part, p);
    if (ms_stepkernels_has_main_grads(s->trace) && !s->trace->err)
        s->trace->graph->storage_category[s->grads[p]] = MS_GRADIENTS;
}

void ms_stepkernels_fuse(ms_step *s, const ms_step_op *op, uint32_t p)
{
    const ms_parameter *parameter = &s->trace->parameters[p];
    (void)op;
    read_state(s, p, s->grads[p]);
    for (uint32_t i = 0; i < MS_MOST_STATES; i++)
        write_state(s, p, parameter->state[i]);
    write_state(s, p, parameter->master);
    if (s->trace->settings->shape->offload.parameters == MS_DEVICE_POOL)
        write_state(s, p, parameter->storage);
}

void ms_stepkernels_copy(ms_step *s, const ms_step_op *op, uint32_t p)
{
    (void)op;
    if (s->trace->parameters[p].master == MS_NONE)
        return;
    read_state(s, p, s->trace->parameters[p].master);
    write_state(s, p, s->trace->parameters[p].storage);
}

/* FLOPs of an op on one parameter: per element, or 2 for each element and inner
 * size of a product. */
double ms_stepkernels_flops(const ms_step *s, const ms_step_op *op, uint32_t p)
{
    const ms_parameter *parameter = &s->trace->parameters[p];
    if (op->inner == MS_INNER_NONE || s->trace->err)
        return op->flops * (double)parameter->elements;
    const ms_training *training = s->trace->settings->training;
    const ms_tensor *tensor = ms_trace_at(s->trace, parameter->tensor);
    uint64_t made = ms_updates_extent(training, op->made.extent, tensor,
                                      parameter->elements);
    return 2 * (double)made *
           (double)ms_updates_inner(training, op->inner, tensor);
}
