/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Optimizer state and the ops of one step (specs/autograd.md rule 15,
 * specs/autograd-cuda.md rule 17, specs/policies.md 7.2 and 7.3).
 *
 * loop      one parameter after the other; Adam's sqrt and quotient are
 *           temporaries, the quotient of the parameter before is still bound
 * foreach   lists over all parameters: up to 2.0 two of them, from 2.1 one
 * fused     no temporaries
 *
 * With 16-bit weights the state holds an fp32 master copy; loop and foreach
 * first cast all gradients to fp32 (+4 bytes per parameter), fused reads them
 * as they are. */
#include "graphs/ops/ops.h"

typedef struct step {
    ms_trace *trace;
    bool mixed, foreach, fused, adam, decay;
    bool by_scalar; /* the op now made has a Python number for operand */
    /* Storages per parameter: the gradient that the update reads (MS_NONE:
     * backward made none and the step passes it over, as torch does),
     * sqrt(exp_avg_sq), its quotient by the bias correction. */
    uint32_t *grads, *roots, *denoms;
} step;

/* ---- state --------------------------------------------------------------- */

static bool is_mixed(const ms_trace *trace)
{
    int64_t precision = trace->training->precision;

    return precision == MS_FP16_MIXED || precision == MS_BF16_MIXED;
}

static bool is_adam(const ms_trace *trace)
{
    int64_t optimizer = trace->training->optimizer;

    return optimizer == MS_ADAM || optimizer == MS_ADAMW;
}

/* A storage for so many elements that outlives the step. */
static uint32_t state(ms_trace *trace, const char *role, uint8_t dtype,
                      uint8_t category, uint64_t elements, bool at_start)
{
    uint64_t bytes = elements * ms_trace_dtype_bytes[dtype];
    uint32_t s = ms_trace_storage(trace, role, bytes, category, true);

    if (s != MS_NONE)
        trace->graph.storage_at_start[s] = at_start;
    return s;
}

/* A part that is its own master copy needs another where the host updates and
 * the parts are on the device. */
static bool needs_master(const ms_trace *trace, const ms_parameter *parameter)
{
    bool has_one = ms_parts_are_masters(trace);

    if (parameter->far)
        return !has_one || trace->shape->offload.parameters == MS_DEVICE_POOL;
    return is_mixed(trace) && !has_one;
}

static void parameter_states(ms_trace *trace, ms_parameter *parameter)
{
    bool steady = trace->training->step == 0;
    bool precise = is_mixed(trace) || parameter->far;
    uint8_t dtype = precise ? MS_FLOAT32 : trace->weight_dtype;
    uint8_t category = MS_OPTIMIZER_STATE;
    uint64_t part = parameter->part;

    if (needs_master(trace, parameter)) /* made at construction, not by the
                                           first step */
        parameter->master =
            state(trace, "master", MS_FLOAT32, category, part, true);
    if (trace->training->optimizer == MS_MOMENTUM)
        parameter->first =
            state(trace, "momentum_buffer", dtype, category, part, steady);
    if (!is_adam(trace))
        return;
    parameter->first = state(trace, "exp_avg", dtype, category, part, steady);
    parameter->second =
        state(trace, "exp_avg_sq", dtype, category, part, steady);
    if (trace->cpu) /* the step counter is an fp32 scalar in host memory */
        ms_trace_storage(trace, "step", 4, category, true);
}

/* ---- homes --------------------------------------------------------------- */

static void home_weight(ms_trace *trace, const ms_parameter *parameter)
{
    uint8_t pool = trace->shape->offload.parameters;

    if (pool != MS_DEVICE_POOL)
        ms_parts_home(trace, parameter->storage, pool,
                      ms_parts_are_masters(trace) ? 4 * parameter->part : 0);
}

static void home_gradient(ms_trace *trace, const ms_parameter *parameter)
{
    const ms_offload *offload = &trace->shape->offload;
    uint64_t bytes = offload->gradient_bytes;

    if (bytes == 0)
        bytes = ms_trace_dtype_bytes[ms_parts_are_masters(trace)
                                         ? MS_FLOAT32
                                         : trace->grad_dtype];
    if (parameter->far || offload->gradients != MS_DEVICE_POOL)
        ms_parts_home(trace, parameter->grad_storage, offload->gradients,
                      parameter->part * bytes);
}

static void home_states(ms_trace *trace, ms_parameter *parameter)
{
    const ms_offload *offload = &trace->shape->offload;
    const uint32_t states[] = {parameter->master, parameter->first,
                               parameter->second};

    if (!parameter->far)
        return;
    for (size_t i = 0; i < sizeof states / sizeof *states; i++)
        ms_parts_home(trace, states[i], offload->optimizer, 0);
    if (offload->step != MS_HOST_PARAMETERS)
        return;
    parameter->host_grad = state(trace, "host_grad", MS_FLOAT32,
                                 MS_OPTIMIZER_STATE, parameter->part, true);
    ms_parts_home(trace, parameter->host_grad, MS_HOST_POOL, 0);
}

/* What DistributedDataParallel reduces: flat copies of all gradients
 * (torch/csrc/distributed/c10d/reducer.cpp). */
static void buckets(ms_trace *trace, uint64_t bytes)
{
    uint32_t s = ms_trace_storage(trace, "gradient_buckets", bytes,
                                  MS_COMMUNICATION, true);

    if (s != MS_NONE)
        trace->graph.storage_layer[s] = MS_NONE;
}

void ms_optimizer_states(ms_trace *trace)
{
    uint64_t grad_bytes = 0;
    bool kept = (trace->training->zero_grad && trace->training->step == 0 &&
                 !trace->shape->flat_step.frees_gradients) ||
                trace->shape->holds_gradients ||
                trace->shape->offload.gradients != MS_DEVICE_POOL ||
                (ms_flatstep_has_sum(trace) && trace->training->step == 0);

    ms_parts_split(trace);
    ms_hoststep_choose(trace);
    for (uint32_t p = 0; p < trace->n_parameters && !trace->err; p++) {
        ms_parameter *parameter = &trace->parameters[p];
        home_weight(trace, parameter);
        if (parameter->uses == 0)
            continue;
        trace->layer = parameter->layer;
        parameter->grad_storage =
            state(trace, "grad", trace->grad_dtype, MS_GRADIENTS,
                  parameter->elements, kept);
        if (trace->err)
            return;
        trace->graph.storage_grad[parameter->storage] = parameter->grad_storage;
        home_gradient(trace, parameter);
        if (ms_flatstep_has_sum(trace)) /* made at construction */
            parameter->sum = state(trace, "fp32_grad", MS_FLOAT32, MS_GRADIENTS,
                                   parameter->elements, true);
        if (trace->training->optimizer != MS_NO_OPTIMIZER) {
            parameter_states(trace, parameter);
            home_states(trace, parameter);
        }
        grad_bytes += trace->graph.storage_bytes[parameter->grad_storage];
    }
    if (trace->shape->copies_gradients && !trace->err)
        buckets(trace, grad_bytes);
    ms_hoststep_buffers(trace);
}

/* ---- kernels ------------------------------------------------------------- */

/* What this rank touches of parameter p's states: its part of the weight and of
 * .grad; the others are that part. */
static uint64_t touched_bytes(const step *s, uint32_t p, uint32_t storage)
{
    const ms_parameter *parameter = &s->trace->parameters[p];
    uint64_t bytes = s->trace->graph.storage_bytes[storage];

    if (parameter->elements == 0 ||
        (storage != parameter->storage && storage != parameter->grad_storage))
        return bytes;
    if (ms_parts_are_masters(s->trace))
        return 4 * parameter->part;
    return bytes / parameter->elements * parameter->part;
}

static void read_state(step *s, uint32_t p, uint32_t storage)
{
    if (!s->trace->err && storage != MS_NONE)
        ms_trace_read_storage(s->trace, storage, touched_bytes(s, p, storage));
}

/* A state that the first step creates is made by the op that writes it. */
static void write_state(step *s, uint32_t p, uint32_t storage)
{
    ms_trace *trace = s->trace;
    ms_graph *g = &trace->graph;

    if (trace->err || storage == MS_NONE)
        return;
    if (g->storage_at_start[storage] || g->storage_maker[storage] != MS_NONE)
        read_state(s, p, storage);
    else
        ms_trace_out(trace, storage);
    if (!trace->err)
        g->op_write_bytes[g->n_ops - 1] += touched_bytes(s, p, storage);
}

static uint32_t weight_of(const step *s, const ms_parameter *parameter)
{
    return s->mixed ? parameter->master : parameter->storage;
}

static uint32_t temporary(step *s, const char *role, uint64_t bytes, uint32_t p)
{
    s->trace->layer = s->trace->parameters[p].layer;
    return ms_trace_make_storage(s->trace, role, bytes);
}

typedef void (*update)(step *s, uint32_t p);

static void cast_grad(step *s, uint32_t p)
{
    const ms_parameter *parameter = &s->trace->parameters[p];

    read_state(s, p, parameter->grad_storage);
    s->grads[p] = temporary(s, "fp32_grad", 4 * parameter->part, p);
}

static void decay_weight(step *s, uint32_t p)
{
    write_state(s, p, weight_of(s, &s->trace->parameters[p]));
}

static void update_first(step *s, uint32_t p)
{
    read_state(s, p, s->grads[p]);
    write_state(s, p, s->trace->parameters[p].first);
}

static void update_second(step *s, uint32_t p)
{
    read_state(s, p, s->grads[p]);
    write_state(s, p, s->trace->parameters[p].second);
}

static void take_sqrt(step *s, uint32_t p)
{
    uint32_t second = s->trace->parameters[p].second;

    read_state(s, p, second);
    if (!s->trace->err)
        s->roots[p] =
            temporary(s, "sqrt", s->trace->graph.storage_bytes[second], p);
}

/* Quotient by the bias correction: a second list up to 2.0, then in place. */
static void divide_in_place(step *s, uint32_t p)
{
    ms_graph *g = &s->trace->graph;

    s->denoms[p] = s->roots[p];
    read_state(s, p, s->denoms[p]);
    if (!s->trace->err)
        g->op_write_bytes[g->n_ops - 1] += g->storage_bytes[s->denoms[p]];
}

static void divide(step *s, uint32_t p)
{
    read_state(s, p, s->roots[p]);
    if (!s->trace->err)
        s->denoms[p] = temporary(s, "denom",
                                 s->trace->graph.storage_bytes[s->roots[p]], p);
}

static void update_weight(step *s, uint32_t p)
{
    const ms_parameter *parameter = &s->trace->parameters[p];

    read_state(s, p, parameter->first);
    read_state(s, p, s->adam ? s->denoms[p] : MS_NONE);
    if (!s->adam && parameter->first == MS_NONE)
        read_state(s, p, s->grads[p]);
    write_state(s, p, weight_of(s, parameter));
}

static void fused_update(step *s, uint32_t p)
{
    const ms_parameter *parameter = &s->trace->parameters[p];

    read_state(s, p, parameter->grad_storage);
    write_state(s, p, parameter->first);
    write_state(s, p, parameter->second);
    write_state(s, p, parameter->master);
    if (s->trace->shape->offload.parameters == MS_DEVICE_POOL)
        write_state(s, p, parameter->storage);
}

static void copy_master(step *s, uint32_t p)
{
    read_state(s, p, s->trace->parameters[p].master);
    write_state(s, p, s->trace->parameters[p].storage);
}

/* ---- the step ------------------------------------------------------------ */

/* On the CPU an op with a Python number makes it a float64 tensor and casts
 * that (specs/autograd.md rule 11): 8 bytes until the op ends, 4 inside it.
 * Needs an open op. */
static uint32_t open_scalar(step *s)
{
    if (!s->trace->cpu || !s->by_scalar)
        return MS_NONE;
    uint32_t scalar = temporary(s, "scalar", 8, 0);
    ms_trace_workspace(s->trace, 4);
    return scalar;
}

/* One op over all parameters. */
static void over_all(step *s, const char *name, update kernel, double flops)
{
    ms_trace *trace = s->trace;
    double n = 0;

    trace->layer = MS_NONE;
    ms_trace_begin(trace, name);
    uint32_t scalar = open_scalar(s);
    for (uint32_t p = 0; p < trace->n_parameters && !trace->err; p++) {
        if (s->grads[p] == MS_NONE)
            continue;
        kernel(s, p);
        n += (double)trace->parameters[p].elements;
    }
    trace->layer = MS_NONE;
    ms_trace_end(trace, flops * n, false);
    ms_trace_drop_storage(trace, scalar);
}

static void one(step *s, const char *name, update kernel, uint32_t p,
                double flops)
{
    ms_trace *trace = s->trace;

    trace->layer = trace->parameters[p].layer;
    ms_trace_begin(trace, name);
    uint32_t scalar = open_scalar(s);
    kernel(s, p);
    ms_trace_end(trace, flops * (double)trace->parameters[p].elements, false);
    ms_trace_drop_storage(trace, scalar);
}

static void drop_list(step *s, uint32_t *list)
{
    for (uint32_t p = 0; p < s->trace->n_parameters; p++)
        ms_trace_drop_storage(s->trace, list[p]);
}

static void foreach_adam(step *s)
{
    ms_trace *trace = s->trace;

    if (s->decay)
        over_all(s, "aten::_foreach_mul_", decay_weight, 1);
    over_all(s, "aten::_foreach_lerp_", update_first, 3);
    over_all(s, "aten::_foreach_addcmul_", update_second, 3);
    over_all(s, "aten::_foreach_sqrt", take_sqrt, 1);
    s->by_scalar = true;
    if (trace->framework < MS_TORCH_2) {
        over_all(s, "aten::_foreach_div", divide, 1);
        drop_list(s, s->roots);
    } else {
        over_all(s, "aten::_foreach_div_", divide_in_place, 1);
    }
    s->by_scalar = false;
    over_all(s, "aten::_foreach_addcdiv_", update_weight, 3);
    drop_list(s, s->denoms);
}

static void loop_adam(step *s)
{
    ms_trace *trace = s->trace;
    uint32_t denom = MS_NONE; /* the variable, bound anew each time */

    for (uint32_t p = 0; p < trace->n_parameters && !trace->err; p++) {
        if (s->grads[p] == MS_NONE)
            continue;
        if (s->decay)
            one(s, "aten::mul_", decay_weight, p, 1);
        one(s, "aten::lerp_", update_first, p, 3);
        one(s, "aten::addcmul_", update_second, p, 3);
        one(s, "aten::sqrt", take_sqrt, p, 1);
        s->by_scalar = true;
        one(s, "aten::div", divide, p, 1);
        s->by_scalar = false;
        ms_trace_drop_storage(trace, s->roots[p]);
        ms_trace_drop_storage(trace, denom);
        denom = s->denoms[p];
        one(s, "aten::addcdiv_", update_weight, p, 3);
    }
    ms_trace_drop_storage(trace, denom);
}

static void each(step *s, const char *name, const char *foreach_name,
                 update kernel, double flops)
{
    if (s->foreach) {
        over_all(s, foreach_name, kernel, flops);
        return;
    }
    for (uint32_t p = 0; p < s->trace->n_parameters && !s->trace->err; p++)
        if (s->grads[p] != MS_NONE)
            one(s, name, kernel, p, flops);
}

static void plain_sgd(step *s)
{
    if (s->trace->training->optimizer == MS_MOMENTUM)
        each(s, "aten::add_", "aten::_foreach_add_", update_first, 2);
    each(s, "aten::add_", "aten::_foreach_add_", update_weight, 2);
}

/* What the update of each parameter reads; false: nothing to update. */
static bool find_grads(step *s)
{
    const ms_graph *g = &s->trace->graph;
    bool some = false;

    for (uint32_t p = 0; p < s->trace->n_parameters; p++) {
        uint32_t grad = s->trace->parameters[p].grad_storage;
        bool made = grad != MS_NONE && (g->storage_at_start[grad] ||
                                        g->storage_maker[grad] != MS_NONE);
        made = made && !s->trace->parameters[p].far;
        s->grads[p] = made ? grad : MS_NONE;
        s->roots[p] = s->denoms[p] = MS_NONE;
        some |= made;
    }
    return some;
}

static bool open_step(step *s)
{
    ms_trace *trace = s->trace;
    const ms_training *training = trace->training;
    int64_t impl = training->optimizer_impl;
    uint32_t n = trace->n_parameters;

    if (impl == MS_IMPL_AUTO)
        impl = trace->cpu || trace->framework == MS_TORCH_1_13
                   ? MS_IMPL_LOOP
                   : MS_IMPL_FOREACH;
    s->foreach = impl == MS_IMPL_FOREACH;
    s->fused = impl == MS_IMPL_FUSED;
    s->mixed = is_mixed(trace) && !ms_parts_are_masters(trace);
    s->adam = is_adam(trace);
    s->decay = training->optimizer == MS_ADAMW;
    s->grads = ms_arena_take_raw(trace->scratch, n, sizeof(uint32_t));
    s->roots = ms_arena_take_raw(trace->scratch, n, sizeof(uint32_t));
    s->denoms = ms_arena_take_raw(trace->scratch, n, sizeof(uint32_t));
    if (!s->grads || !s->roots || !s->denoms) {
        trace->err = ms_fail_nomem(trace->fault);
        return false;
    }
    return find_grads(s);
}

/* torch 1.13 names the step for its profiler, watched or not: the handle is a
 * tensor of 288 bytes and one of 4 (specs/autograd.md rule 15). */
static void announce(ms_trace *trace)
{
    ms_trace_begin(trace, "profiler::_record_function_enter");
    trace->layer = MS_NONE;
    uint32_t handle = ms_trace_make_storage(trace, "record", 288);
    uint32_t name = ms_trace_make_storage(trace, "record_name", 4);
    ms_trace_end(trace, 0, false);
    ms_trace_drop_storage(trace, name);
    ms_trace_drop_storage(trace, handle);
}

static void device_step(step *s)
{
    ms_trace *trace = s->trace;

    if (trace->shape->flat_step.used) {
        ms_flatstep_run(trace);
        return;
    }
    if (s->fused) {
        over_all(s, "fused_optimizer_step", fused_update, 11);
        if (trace->shape->offload.parameters != MS_DEVICE_POOL)
            ms_hoststep_send(trace, s->grads);
        return;
    }
    bool casts = s->mixed && trace->grad_dtype != MS_FLOAT32;
    if (casts)
        each(s, "aten::_to_copy", "aten::_to_copy (all)", cast_grad, 0);
    if (!s->adam)
        plain_sgd(s);
    else if (s->foreach)
        foreach_adam(s);
    else
        loop_adam(s);
    if (trace->shape->offload.parameters != MS_DEVICE_POOL)
        ms_hoststep_send(trace, s->grads);
    else if (s->mixed)
        each(s, "aten::copy_", "aten::_foreach_copy_", copy_master, 0);
    if (casts)
        drop_list(s, s->grads);
}

/* Weights that lie elsewhere are made of master copies. */
static bool check_weights(const step *s)
{
    ms_trace *trace = s->trace;

    if (s->mixed || trace->shape->offload.parameters == MS_DEVICE_POOL)
        return true;
    trace->err = ms_fail(trace->fault, MS_EUSAGE, "training.precision",
                         "type offload:optimizer beside it, or --precision "
                         "bf16-mixed",
                         "the device cannot update weights in host memory "
                         "without a master copy");
    return false;
}

void ms_optimizer_step(ms_trace *trace)
{
    step s = {.trace = trace};

    if (trace->err || trace->training->optimizer == MS_NO_OPTIMIZER ||
        trace->n_parameters == 0)
        return;
    trace->pass = MS_STEP;
    trace->unit = trace->node_now = MS_NONE;
    trace->op_flags = 0;
    if (open_step(&s) && check_weights(&s)) {
        if (trace->cpu && trace->framework == MS_TORCH_1_13)
            announce(trace);
        device_step(&s);
    }
    ms_hoststep_run(trace);
}
