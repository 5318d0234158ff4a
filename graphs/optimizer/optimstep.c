/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The ops of one optimizer step (graphs/states.md 3), as the table of
 * optimizers has them.  With 16-bit weights and a master copy, loop and foreach
 * first cast all gradients to fp32 (+4 bytes per parameter); fused reads them
 * as they are, but for main gradients: Megatron's fp16 optimizer casts them
 * for any update, to gradients of the master copies that end with zero_grad
 * (megatron/core/optimizer/optimizer.py, _copy_model_grads_to_main_grads). */
#include "graphs/formats/precisions.h"
#include "graphs/optimizer/optimizer.h"
#include "graphs/optimizer/optimtable.h"
#include "graphs/optimizer/stepkernels.h"
#include "graphs/quantized/quantize.h"
#include "graphs/trace/columns.h"
#include "graphs/trace/opend.h"
#include "graphs/trace/trace.h"
#include "sim/graph.h"

#include <assert.h>
#include <string.h>
typedef ms_step step;

/* ---- one op -------------------------------------------------------------- */

/* On the CPU an op with a Python number makes it a float64 tensor and casts
 * that (graphs/autograd.md 10): 8 bytes until the op ends, 4 inside it.
 * Needs an open op. */
static uint32_t open_scalar(step *s, const ms_step_op *op)
{
    if (!s->trace->settings->cpu || !op->scalar)
        return MS_NONE;
    uint32_t scalar = ms_stepkernels_temporary(s, "scalar", 8, 0);
    ms_trace_workspace(s->trace, 4);
    return scalar;
}

/* PyTorch has one kind of kernel for lists and for what is fused. */
static void end_op(step *s, const ms_step_op *op, double flops)
{
    ms_trace *trace = s->trace;
    bool lists = s->foreach || s->fused;
    if (op->inner != MS_INNER_NONE)
        ms_trace_end(trace, flops, true);
    else
        ms_opend_plain(trace, flops, lists ? MS_WORK_LISTS : MS_WORK_PLAIN);
    if (!trace->err && lists)
        trace->ends[trace->graph->n_ops - 1].m =
            ms_dtypes_bytes[s->mixed ? MS_FLOAT32 : trace->weight_dtype];
}

/* Over all parameters with this update (NULL: whatever theirs). */
static void over_all(step *s, const ms_step_op *op,
                     const ms_read_update *update, ms_step_kernel run)
{
    ms_trace *trace = s->trace;
    double flops = 0;
    trace->layer = MS_NONE;
    ms_trace_begin(trace, op->op);
    uint32_t scalar = open_scalar(s, op);
    for (uint32_t p = s->first; p < s->end && !trace->err; p++) {
        const ms_parameter *parameter = &trace->parameters[p];
        if (s->grads[p] == MS_NONE || (update && parameter->update != update))
            continue;
        run(s, op, p);
        flops += ms_stepkernels_flops(s, op, p);
    }
    trace->layer = MS_NONE;
    end_op(s, op, flops);
    ms_trace_drop_storage(trace, scalar);
}

static void over_one(step *s, const ms_step_op *op, uint32_t p,
                     ms_step_kernel run)
{
    ms_trace *trace = s->trace;
    trace->layer = trace->parameters[p].layer;
    ms_trace_begin(trace, op->op);
    uint32_t scalar = open_scalar(s, op);
    run(s, op, p);
    end_op(s, op, ms_stepkernels_flops(s, op, p));
    ms_trace_drop_storage(trace, scalar);
}

/* One call of `op` for a list, or one for each parameter. */
static void each(step *s, const ms_step_op *op, ms_step_kernel run)
{
    if (s->foreach) {
        over_all(s, op, NULL, run);
        return;
    }
    for (uint32_t p = s->first; p < s->end && !s->trace->err; p++)
        if (s->grads[p] != MS_NONE &&
            (run != ms_stepkernels_copy ||
             s->trace->parameters[p].master != MS_NONE))
            over_one(s, op, p, run);
}

static bool decays(const step *s)
{
    int64_t decay = s->trace->settings->training->weight_decay;
    return decay == MS_DECAY_AUTO ? s->row->decays : decay == MS_DECAY_YES;
}

/* Does this step find anew what others reuse? */
static bool refreshes(const step *s)
{
    const ms_training *training = s->trace->settings->training;
    return training->optimizer_refresh != 0 ||
           (training->step != 0 && s->row->starts_anew);
}

/* p: the parameter of a loop, else any of the list. */
static bool runs(const step *s, const ms_step_op *op, uint32_t p)
{
    if (op->refreshes && !refreshes(s))
        return false;
    if (op->when == MS_WHEN_DECAYS || op->when == MS_WHEN_UNDECAYED)
        return decays(s) == (op->when == MS_WHEN_DECAYS);
    if (op->when == MS_WHEN_CPU)
        return s->trace->settings->cpu;
    if (op->when == MS_WHEN_SHARED)
        return s->trace->parameters[p].part < s->trace->parameters[p].elements;
    return op->when == MS_WHEN_ALWAYS ||
           (!s->mixed && !ms_parts_are_masters(s->trace) &&
            ms_dtypes_bytes[s->trace->trained_dtype] < sizeof(float));
}

/* ---- loop and lists ------------------------------------------------------ */

/* The variable t of one parameter, or of the loop, names something else. */
static void rename_one(step *s, uint32_t t, uint32_t at, uint32_t now)
{
    ms_trace_drop_storage(s->trace, s->names[t][at]);
    s->names[t][at] = now;
}

/* The lists that it names, or in a loop the one tensor. */
static void rename_all(step *s, uint32_t t, const uint32_t *now)
{
    uint32_t end = s->foreach ? s->end : 1;
    for (uint32_t at = s->foreach ? s->first : 0; at < end; at++)
        rename_one(s, t, at, now ? now[at] : MS_NONE);
}

static void forget_made(step *s)
{
    uint32_t end = s->foreach ? s->end : 1;
    for (uint32_t at = s->foreach ? s->first : 0; at < end; at++)
        s->made[at] = MS_NONE;
}

/* Another variable names what one named. */
static void hand_over(step *s, const ms_step_op *op)
{
    uint32_t *from = s->names[ms_stepkernels_variable(op->was)];
    rename_all(s, ms_stepkernels_variable(op->becomes), from);
    for (uint32_t at = 0; at < (s->foreach ? s->end : 1); at++)
        from[at] = MS_NONE;
}

/* Names what the op made, after those end that it was the last to read. */
static void after_op(step *s, const ms_step_op *op)
{
    for (uint32_t which = MS_ON_GRAD; which < MS_N_OPERANDS; which++)
        if (op->drops >> which & 1)
            rename_all(s, ms_stepkernels_variable(which), NULL);
    if (op->makes != MS_ON_NOTHING)
        rename_all(s, ms_stepkernels_variable(op->makes), s->made);
    forget_made(s);
    if (op->becomes != MS_ON_NOTHING)
        hand_over(s, op);
}

static void drop_names(step *s)
{
    for (uint32_t t = 0; t < MS_STEP_N_VARIABLES; t++)
        rename_all(s, t, NULL);
}

static void foreach_update(step *s, const ms_read_update *update)
{
    for (uint32_t i = 0; i < update->n_ops && !s->trace->err; i++)
        if (runs(s, &update->ops[i], s->first)) {
            over_all(s, &update->ops[i], update, ms_stepkernels_run);
            after_op(s, &update->ops[i]);
        }
    drop_names(s);
}

static void loop_update(step *s, uint32_t p)
{
    const ms_read_update *update = s->trace->parameters[p].update;
    for (uint32_t i = 0; i < update->n_ops && !s->trace->err; i++)
        if (runs(s, &update->ops[i], p)) {
            over_one(s, &update->ops[i], p, ms_stepkernels_run);
            after_op(s, &update->ops[i]);
        }
    rename_all(s, MS_STEP_OF_GRAD, NULL);
    rename_all(s, MS_STEP_OF_WEIGHT, NULL);
}

static void run_updates(step *s)
{
    if (s->foreach) {
        foreach_update(s, &s->trace->optimizer->updates[0]);
        if (s->row->others)
            foreach_update(s, &s->trace->optimizer->updates[1]);
        return;
    }
    for (uint32_t p = s->first; p < s->end && !s->trace->err; p++)
        if (s->grads[p] != MS_NONE)
            loop_update(s, p);
    drop_names(s);
}

/* ---- the step ------------------------------------------------------------ */

/* What the update of each parameter reads and writes; false: nothing to update.
 */
static bool find_grads(step *s)
{
    const ms_graph *g = s->trace->graph;
    bool some = false;
    for (uint32_t p = s->first; p < s->end; p++) {
        const ms_parameter *parameter = &s->trace->parameters[p];
        uint32_t grad = parameter->grad_storage;
        bool made = grad != MS_NONE && (g->storage_at_start[grad] ||
                                        g->storage_maker[grad] != MS_NONE);
        made = made && !parameter->far &&
               (parameter->part > 0 || !ms_layerwise_is(s->trace->settings));
        s->grads[p] = made ? grad : MS_NONE;
        s->weights[p] = s->mixed && parameter->master != MS_NONE
                            ? parameter->master
                            : parameter->storage;
        some |= made;
    }
    return some;
}

/* A column of n names, all of nothing. */
static void take_column(step *s, uint32_t n, uint32_t **column)
{
    ms_trace *trace = s->trace;
    *column = ms_arena_take_raw(trace->scratch, n, sizeof **column);
    if (*column)
        memset(*column, 0xff, n * sizeof **column);
    else if (!trace->err)
        trace->err = ms_fail_nomem(trace->fault);
}

/* For n parameters.  Variables have a name for each in lists alone. */
static bool take_names(step *s, uint32_t n)
{
    uint32_t slots = s->foreach ? n : 1;
    take_column(s, n, &s->grads);
    take_column(s, n, &s->weights);
    take_column(s, slots, &s->made);
    for (uint32_t t = 0; t < MS_STEP_N_VARIABLES; t++)
        take_column(s, slots, &s->names[t]);
    return !s->trace->err;
}

static bool open_step(step *s)
{
    ms_trace *trace = s->trace;
    int64_t impl = ms_updates_impl(s->row, trace);
    s->foreach = impl == MS_IMPL_FOREACH;
    s->fused = impl == MS_IMPL_FUSED;
    s->mixed = ms_optimstates_is_mixed(trace) && !ms_parts_are_masters(trace);
    s->end = trace->n_parameters;
    return take_names(s, trace->n_parameters) && find_grads(s);
}

/* torch 1.13 names the step for its profiler, watched or not: the handle is a
 * tensor of 288 bytes and one of 4 (graphs/states.md 3). */
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

static void drop_casts(step *s)
{
    for (uint32_t p = s->first; p < s->end; p++)
        ms_trace_drop_storage(s->trace, s->grads[p]);
}

static bool all_is_managed(const ms_shape *shape)
{
    return shape->paging.page_bytes > 0 && shape->paging.managed == 0;
}

/* One fused step is many launches (ATen/native/cuda/MultiTensorApply.cuh: lists
 * in chunks of 65,536 elements, 320 a launch).  They follow each other without
 * gaps, so one op says it; where everything is in unified memory, a launch
 * needs the pages of its own tensors only: an op for each parameter. */
static void device_step(step *s)
{
    static const ms_step_op fused = {.op = "fused_optimizer_step", .flops = 11};
    static const ms_step_op cast = {.op = "aten::_to_copy"};
    static const ms_step_op cast_all = {.op = "aten::_to_copy (all)"};
    static const ms_step_op copy = {.op = "aten::copy_"};
    static const ms_step_op copy_all = {.op = "aten::_foreach_copy_"};
    ms_trace *trace = s->trace;
    bool at_home = trace->settings->shape->offload.parameters == MS_DEVICE_POOL;
    bool casts = s->mixed && trace->grad_dtype != MS_FLOAT32 &&
                 (!s->fused || ms_stepkernels_has_main_grads(trace));
    if (casts)
        each(s, s->foreach ? &cast_all : &cast, ms_stepkernels_cast);
    if (s->fused && all_is_managed(trace->settings->shape))
        each(s, &fused, ms_stepkernels_fuse);
    else if (s->fused)
        over_all(s, &fused, NULL, ms_stepkernels_fuse);
    else
        run_updates(s);
    if (!at_home)
        ms_hoststep_send(trace, s->grads);
    else if (s->mixed && !s->fused)
        each(s, s->foreach ? &copy_all : &copy, ms_stepkernels_copy);
    if (casts)
        drop_casts(s);
}

/* Gradients are clipped where they lie; DeepSpeed's steps clip by themselves.
 */
static void clip(ms_trace *trace)
{
    const ms_shape *shape = trace->settings->shape;
    if (shape->offload.gradients != MS_DEVICE_POOL) {
        ms_hoststep_clip(trace);
        return;
    }
    ms_wholegrads_sum(trace);
    if (!shape->flat_step.used)
        ms_clip_run(trace);
}

/* Casts stand in the place of gradients that are sums, and end with it. */
static void update(step *s)
{
    uint32_t n = s->trace->n_parameters;
    uint32_t *sums = ms_arena_take_raw(s->trace->scratch, n, sizeof *sums);
    if (!sums) {
        s->trace->err = ms_fail_nomem(s->trace->fault);
        return;
    }
    ms_wholegrads_take(s->trace, s->grads);
    memcpy(sums, s->grads, n * sizeof *sums);
    device_step(s);
    ms_wholegrads_drop(s->trace, sums);
}

/* Weights that lie in another memory are cast from master copies on the device:
 * without these the device cannot update them. */
static bool check_weights(const step *s)
{
    ms_trace *trace = s->trace;
    if (s->mixed ||
        trace->settings->shape->offload.parameters == MS_DEVICE_POOL)
        return true;
    trace->err = ms_fail(trace->fault, MS_EUSAGE, "training.precision",
                         "type offload:optimizer beside it, or --precision "
                         "bf16-mixed",
                         "the device cannot update weights in host memory "
                         "without a master copy");
    return false;
}

/* Opens the one step of which all updates in backward are parts. */
static step *open_stepper(ms_trace *trace)
{
    step *s = ms_arena_take(trace->scratch, 1, sizeof *s);
    if (!s) {
        trace->err = ms_fail_nomem(trace->fault);
        return NULL;
    }
    *s =
        (step){.trace = trace, .row = ms_updates_of(trace->settings->training)};
    open_step(s);
    return trace->err ? NULL : s;
}

void ms_optimstep_in_backward(ms_trace *trace, uint32_t parameter)
{
    uint8_t pass = trace->pass, flags = trace->op_flags;
    uint32_t layer = trace->layer;
    if (trace->err || trace->settings->training->optimizer_in_backward == 0 ||
        ms_parts_are_reduced(trace->settings->shape))
        return;
    if (!trace->optimizer->stepper)
        trace->optimizer->stepper = open_stepper(trace);
    step *s = trace->optimizer->stepper;
    if (!s)
        return;
    trace->pass = MS_STEP;
    trace->op_flags = 0;
    s->first = parameter;
    s->end = parameter + 1;
    if (find_grads(s)) {
        device_step(s);
        ms_trace_end_storage(trace, trace->parameters[parameter].grad_storage);
    }
    trace->pass = pass;
    trace->op_flags = flags;
    trace->layer = layer;
}

/* Ranks that sum a gradient update its parameter when that is there, on the
 * queue of the reduction: FSDP2 calls the hooks of the sharded parameter on its
 * stream (torch/distributed/fsdp/_fully_shard/_fsdp_collectives.py,
 * foreach_reduce), DDP's hook of a bucket has a stream of its own
 * (torch/distributed/algorithms/ddp_comm_hooks/optimizer_overlap_hooks.py).
 * There .grad ends, but where it is a part of its bucket. */
static void step_as_reduced(step *s)
{
    ms_trace *trace = s->trace;
    if (!open_step(s))
        return;
    for (uint32_t p = trace->n_parameters; p-- > 0 && !trace->err;) {
        ms_parameter *it = &trace->parameters[p];
        s->first = p;
        s->end = p + 1;
        if (s->grads[p] == MS_NONE)
            continue;
        it->due_first = trace->graph->n_ops;
        device_step(s);
        if (!ms_parts_hold_gradients(trace->settings))
            ms_trace_end_storage(trace, it->grad_storage);
        it->due_end = trace->graph->n_ops;
        for (uint32_t op = it->due_first; op < it->due_end; op++)
            trace->graph->op_stream[op] = MS_STREAM_COMM;
    }
}

/* ---- before DeepSpeed's flat step ---------------------------------------- */

/* The update but for adding it to the weight. */
static uint32_t find_update(step *s, uint32_t p)
{
    const ms_read_update *update = s->trace->parameters[p].update;
    const uint32_t weight = 1u << MS_ON_WEIGHT;
    uint32_t last = MS_NONE, found;
    for (uint32_t i = 0; i < update->n_ops && !s->trace->err; i++) {
        const ms_step_op *op = &update->ops[i];
        if (op->when == MS_WHEN_SHARED || op->writes == MS_ON_WEIGHT ||
            op->reads & weight)
            continue;
        over_one(s, op, p, ms_stepkernels_run);
        after_op(s, op);
        if (op->becomes != MS_ON_NOTHING)
            last = ms_stepkernels_variable(op->becomes);
    }
    rename_all(s, MS_STEP_OF_GRAD, NULL);
    if (last == MS_NONE)
        return MS_NONE;
    found = s->names[last][0];
    s->names[last][0] = MS_NONE;
    return found;
}

/* Finds them, of the matrices that are this rank's: as many as its part of all,
 * the first ones.  held: per parameter its update, or MS_NONE. */
static void find_updates(ms_trace *trace, uint32_t *held)
{
    step s = {.trace = trace, .row = ms_updates_of(trace->settings->training)};
    uint64_t mine = 0, found = 0;
    memset(held, 0xff, trace->n_parameters * sizeof *held);
    if (!open_step(&s))
        return;
    for (uint32_t p = 0; p < s.end; p++)
        if (s.grads[p] != MS_NONE &&
            trace->parameters[p].update == trace->optimizer->updates)
            mine += trace->parameters[p].part;
    for (uint32_t p = 0; p < s.end && found < mine && !trace->err; p++) {
        if (s.grads[p] == MS_NONE ||
            trace->parameters[p].update != trace->optimizer->updates)
            continue;
        found += trace->parameters[p].elements;
        held[p] = find_update(&s, p);
    }
    drop_names(&s);
}

/* BF16_Optimizer's step reads its sum and finds nothing before. */
static void flat_step(ms_trace *trace)
{
    uint32_t *held = NULL;
    if (ms_updates_is_flat(trace->settings) &&
        !ms_precisions_has_sum(trace->settings)) {
        held = ms_columns_take(trace, trace->n_parameters, sizeof *held);
        if (!held)
            return;
        find_updates(trace, held);
    }
    if (!trace->err)
        ms_flatstep_run(trace, held);
}

/* ---- all of it ----------------------------------------------------------- */

void ms_optimstep_step(ms_trace *trace)
{
    step s = {.trace = trace, .row = ms_updates_of(trace->settings->training)};
    if (trace->err || s.row == NULL || trace->n_parameters == 0)
        return;
    trace->pass = MS_STEP;
    trace->unit = trace->node_now = trace->layer = MS_NONE;
    trace->op_flags = 0;
    if (trace->settings->training->optimizer_in_backward == 1) {
        if (ms_parts_are_reduced(trace->settings->shape))
            step_as_reduced(&s);
        ms_quantize_refresh(trace);
        return;
    }
    ms_hoststep_norms(trace);
    bool some = open_step(&s) && check_weights(&s);
    if (some && trace->settings->cpu &&
        trace->settings->framework == MS_TORCH_1_13)
        announce(trace);
    clip(trace);
    if (some && trace->settings->shape->flat_step.used)
        flat_step(trace);
    else if (some)
        update(&s);
    ms_hoststep_run(trace);
    trace->layer = MS_NONE;
    ms_quantize_refresh(trace);
}
