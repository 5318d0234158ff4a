/* SPDX-License-Identifier: GPL-3.0-or-later */
/* DeepSpeed's optimizer step over flat tiles of this rank's part
 * (graphs/states.md 3; deepspeedai/DeepSpeed
 * deepspeed/runtime/zero/stage_1_and_2.py, stage3.py: step):
 *
 *     norm      each gradient as fp64, one after the other
 *     overflow  fp16: each as fp32
 *     per tile  flatten the 16-bit gradients, cast to fp32, let the 16-bit ones
 *               go (stages 1, 2), unscale, fused update, cast the master into
 *               the 16-bit weights, let the fp32 gradient go
 *
 * Weights of fp32 have a master copy, too: the partition is a clone of theirs.
 *
 * Stages 1 and 2 have one tile, the parameter group; stage 3 a tile per
 * sub_group_size elements of the part.  Without shared states each gradient is
 * cast and the casts are flattened (runtime/fp16/fused_optimizer.py).  Stage 1
 * with bf16 weights and fp32 gradients is another: see below.
 *
 * Muon's updates are found of whole gradients before they are flattened, in 16
 * bits as is its momentum, and held until then; its matrices are a parameter
 * group of their own (stage_1_and_2.py, get_flat_partition; zero/muon). */
#include "graphs/formats/precisions.h"
#include "graphs/optimizer/optimizer.h"
#include "graphs/trace/trace.h"
#include "sim/graph.h"

#include <string.h>

#define NORM_BYTES 8u /* fp64 */
#define FP32_BYTES 4u
#define UPDATE_FLOPS 11.0 /* per element, as optimstep.c's fused update */

typedef struct flat_step {
    ms_trace *trace;
    const ms_flat_step *how;
    uint32_t first, end; /* parameters of the tile under way */
    uint64_t elements;   /* of this rank's part of it */
    uint32_t tensors;
    uint32_t grad; /* what the update reads */
    enum { ALL, MATRICES, OTHERS } group;
    uint32_t *held; /* per parameter: an update found before, or MS_NONE */
} flat_step;

/* Does the device update parameter p? */
static bool is_updated(const flat_step *s, uint32_t p)
{
    const ms_parameter *it = &s->trace->parameters[p];
    const ms_graph *g = s->trace->graph;
    bool found_before = it->update == s->trace->optimizer->updates;
    if (s->group != ALL && found_before != (s->group == MATRICES))
        return false;
    return it->grad_storage != MS_NONE && !it->far &&
           ((g->storage_at_start[it->grad_storage] && it->sum == MS_NONE) ||
            g->storage_maker[it->grad_storage] != MS_NONE);
}

static uint64_t grad_bytes(const flat_step *s, uint64_t elements)
{
    return elements * ms_dtypes_bytes[s->trace->grad_dtype];
}

static void read_grads(flat_step *s, uint32_t first, uint32_t end)
{
    for (uint32_t p = first; p < end && !s->trace->err; p++)
        if (is_updated(s, p))
            ms_trace_read_storage(s->trace,
                                  s->trace->parameters[p].grad_storage,
                                  grad_bytes(s, s->trace->parameters[p].part));
}

static void begin(flat_step *s, const char *name)
{
    s->trace->layer = MS_NONE;
    ms_trace_begin(s->trace, name);
}

/* An op that looks at all gradients, each through a temporary of its own. */
static void look_at_all(flat_step *s, const char *name, uint64_t item_bytes)
{
    ms_trace *trace = s->trace;
    uint64_t largest = 0;
    for (uint32_t p = 0; p < trace->n_parameters; p++)
        if (is_updated(s, p) && trace->parameters[p].owned > largest)
            largest = trace->parameters[p].owned;
    if (largest == 0)
        return;
    begin(s, name);
    read_grads(s, 0, trace->n_parameters);
    uint32_t copy = ms_trace_make_storage(trace, "copy", largest * item_bytes);
    ms_trace_end(trace, 0, false);
    ms_trace_drop_storage(trace, copy);
}

/* ---- a tile -------------------------------------------------------------- */

/* `from` (or the gradients, for MS_NONE) as a new storage. */
static uint32_t make_copy(flat_step *s, const char *op, const char *role,
                          uint32_t from, uint64_t from_bytes, uint64_t bytes)
{
    begin(s, op);
    if (from == MS_NONE)
        read_grads(s, s->first, s->end);
    else
        ms_trace_read_storage(s->trace, from, from_bytes);
    uint32_t to = ms_trace_make_storage(s->trace, role, bytes);
    ms_trace_end(s->trace, 0, false);
    return to;
}

static void end_grads(flat_step *s)
{
    for (uint32_t p = s->first; p < s->end && s->how->frees_gradients; p++)
        if (is_updated(s, p))
            ms_trace_end_storage(s->trace,
                                 s->trace->parameters[p].grad_storage);
}

/* Flatten, then cast: a lone tensor is flat, fp32 gradients need no cast. */
static void flatten_and_cast(flat_step *s)
{
    uint64_t bytes = grad_bytes(s, s->elements);
    uint64_t fp32_bytes = s->elements * FP32_BYTES;
    bool casts = s->trace->grad_dtype != MS_FLOAT32;
    s->grad = MS_NONE;
    if (s->tensors > 1 || !casts)
        s->grad =
            make_copy(s, "aten::cat", "flat_gradients", MS_NONE, 0, bytes);
    if (casts) {
        uint32_t flat = s->grad;
        s->grad = make_copy(s, "aten::_to_copy", "fp32_gradients", flat, bytes,
                            fp32_bytes);
        ms_trace_drop_storage(s->trace, flat);
    }
    end_grads(s);
}

static void cast_and_flatten(flat_step *s)
{
    uint64_t bytes = s->elements * FP32_BYTES;
    uint32_t casts = make_copy(s, "aten::_to_copy (all)", "fp32_gradients",
                               MS_NONE, 0, bytes);
    s->grad = make_copy(s, "aten::cat", "flat_gradients", casts, bytes, bytes);
    ms_trace_drop_storage(s->trace, casts);
    end_grads(s);
}

/* A state that the first step creates is made by the update. */
static void write_state(flat_step *s, uint32_t storage)
{
    ms_graph *g = s->trace->graph;
    if (s->trace->err || storage == MS_NONE)
        return;
    if (g->storage_at_start[storage] || g->storage_maker[storage] != MS_NONE)
        ms_trace_read_storage(s->trace, storage, g->storage_bytes[storage]);
    else
        ms_trace_out(s->trace, storage);
    if (!s->trace->err)
        g->op_write_bytes[g->n_ops - 1] += g->storage_bytes[storage];
}

static void write_states(flat_step *s, const ms_parameter *parameter)
{
    write_state(s, parameter->master);
    for (uint32_t i = 0; i < MS_MOST_STATES; i++)
        write_state(s, parameter->state[i]);
}

static void update(flat_step *s)
{
    ms_trace *trace = s->trace;
    uint64_t bytes = s->elements * FP32_BYTES;
    begin(s, "aten::mul_"); /* unscale, clip */
    ms_trace_read_storage(trace, s->grad, bytes);
    if (!trace->err)
        trace->graph->op_write_bytes[trace->graph->n_ops - 1] += bytes;
    ms_trace_end(trace, (double)s->elements, false);
    begin(s, "fused_optimizer_step");
    ms_trace_read_storage(trace, s->grad, bytes);
    for (uint32_t p = s->first; p < s->end; p++) {
        if (!is_updated(s, p))
            continue;
        if (s->group == MATRICES) /* it is found: only to be added */
            write_state(s, trace->parameters[p].master);
        else
            write_states(s, &trace->parameters[p]);
    }
    ms_trace_end(trace, UPDATE_FLOPS * (double)s->elements, false);
}

/* The master copies, cast into this rank's part of the weights. */
static void copy_masters(flat_step *s)
{
    ms_trace *trace = s->trace;
    uint64_t item_bytes = ms_dtypes_bytes[trace->weight_dtype];
    begin(s, "aten::copy_");
    for (uint32_t p = s->first; p < s->end && !trace->err; p++) {
        const ms_parameter *it = &trace->parameters[p];
        if (!is_updated(s, p))
            continue;
        ms_trace_read_storage(trace, it->master, it->part * FP32_BYTES);
        ms_trace_read_storage(trace, it->storage, 0);
        if (!trace->err)
            trace->graph->op_write_bytes[trace->graph->n_ops - 1] +=
                it->part * item_bytes;
    }
    ms_trace_end(trace, 0, false);
}

/* What was found before is in the flat gradient by now. */
static void end_held(flat_step *s)
{
    for (uint32_t p = s->first; p < s->end && s->group == MATRICES; p++)
        ms_trace_drop_storage(s->trace, s->held[p]);
}

static void run_tile(flat_step *s)
{
    if (s->tensors == 0 || s->trace->err)
        return;
    if (s->how->whole)
        cast_and_flatten(s);
    else
        flatten_and_cast(s);
    end_held(s);
    update(s);
    ms_trace_drop_storage(s->trace, s->grad);
    copy_masters(s);
    s->elements = 0;
    s->tensors = 0;
}

/* ---- bf16 with a sum in fp32 --------------------------------------------- */

/* deepspeed/runtime/bf16_optimizer.py: .grad lives from one backward to the
 * beginning of the next (backward: clear_lp_grads), each backward ends with
 * adding all of them, cast one after the other, to the sum (update_hp_grads);
 * the step reads this rank's part of the sum as it is and sets all of it to
 * zero (step, update_lp_params, clear_hp_grads). */

void ms_flatstep_clear(ms_trace *trace)
{
    for (uint32_t p = 0; p < trace->n_parameters && !trace->err; p++)
        if (ms_precisions_has_sum(trace->settings) &&
            trace->parameters[p].grad_storage != MS_NONE)
            ms_trace_end_storage(trace, trace->parameters[p].grad_storage);
}

/* Each sum, whole: read, and written too. */
static void touch_sums(flat_step *s, bool reads, bool writes)
{
    ms_graph *g = s->trace->graph;
    for (uint32_t p = 0; p < s->trace->n_parameters && !s->trace->err; p++) {
        uint32_t sum = s->trace->parameters[p].sum;
        if (!is_updated(s, p))
            continue;
        ms_trace_read_storage(s->trace, sum, reads ? g->storage_bytes[sum] : 0);
        if (writes && !s->trace->err)
            g->op_write_bytes[g->n_ops - 1] += g->storage_bytes[sum];
    }
}

/* What no backward makes has no .grad. */
static void forget_unmade(ms_trace *trace)
{
    ms_graph *g = trace->graph;
    for (uint32_t p = 0; p < trace->n_parameters; p++) {
        uint32_t grad = trace->parameters[p].grad_storage;
        if (grad != MS_NONE && g->storage_maker[grad] == MS_NONE)
            g->storage_at_start[grad] = 0;
    }
}

void ms_flatstep_add(ms_trace *trace)
{
    flat_step s = {.trace = trace, .how = &trace->settings->shape->flat_step};
    uint64_t largest = 0, elements = 0;
    if (!ms_precisions_has_sum(trace->settings) || trace->err)
        return;
    forget_unmade(trace);
    for (uint32_t p = 0; p < trace->n_parameters; p++) {
        uint64_t n = is_updated(&s, p) ? trace->parameters[p].elements : 0;
        elements += n;
        largest = n > largest ? n : largest;
    }
    if (largest == 0)
        return;
    begin(&s, "aten::add_");
    for (uint32_t p = 0; p < trace->n_parameters && !trace->err; p++)
        if (is_updated(&s, p))
            ms_trace_read_storage(
                trace, trace->parameters[p].grad_storage,
                grad_bytes(&s, trace->parameters[p].elements));
    touch_sums(&s, true, true);
    uint32_t cast = ms_trace_make_storage(trace, "cast", largest * FP32_BYTES);
    if (!trace->err) /* the casts are written and read */
        trace->graph->op_write_bytes[trace->graph->n_ops - 1] +=
            2 * elements * FP32_BYTES;
    ms_trace_end(trace, (double)elements, false);
    ms_trace_drop_storage(trace, cast);
}

static void step_from_sum(ms_trace *trace)
{
    flat_step s = {.trace = trace,
                   .how = &trace->settings->shape->flat_step,
                   .end = trace->n_parameters};
    begin(&s, "aten::linalg_vector_norm");
    touch_sums(&s, true, false);
    ms_trace_end(trace, 0, false);
    begin(&s, "fused_optimizer_step");
    for (uint32_t p = 0; p < trace->n_parameters && !trace->err; p++) {
        const ms_parameter *it = &trace->parameters[p];
        if (!is_updated(&s, p))
            continue;
        s.elements += it->part;
        ms_trace_read_storage(trace, it->sum, it->part * FP32_BYTES);
        write_states(&s, it);
    }
    ms_trace_end(trace, UPDATE_FLOPS * (double)s.elements, false);
    copy_masters(&s);
    begin(&s, "aten::zero_");
    touch_sums(&s, false, true);
    ms_trace_end(trace, 0, false);
}

/* ---- the step ------------------------------------------------------------ */

/* As what the user typed it. */
static const char *asked_for(const ms_trace *trace)
{
    bool is_named = trace->settings->shape->flat_step.is_named;
    return is_named ? "deepspeed" : "impl=deepspeed";
}

static ms_err refuse(ms_trace *trace, const char *hint, const char *what)
{
    return ms_fail(trace->fault, MS_EUSAGE, asked_for(trace), hint, "%s", what);
}

ms_err ms_flatstep_check(ms_trace *trace)
{
    const ms_training *training = trace->settings->training;
    const ms_flat_step *how = &trace->settings->shape->flat_step;
    bool fp16 = training->precision == MS_FP16_MIXED;
    const ms_offload *offload = &trace->settings->shape->offload;
    bool sums = ms_precisions_has_sum(trace->settings);
    if (!how->used)
        return MS_OK;
    bool fp32 = ms_precisions_is_flat_fp32(trace->settings);
    if (!fp32 && !ms_precisions_is_mixed(training))
        return refuse(trace, "type --precision bf16-mixed, fp16-mixed or fp32",
                      "DeepSpeed's optimizers keep an fp32 master copy of "
                      "16-bit weights");
    if (how->whole && fp32)
        return refuse(trace, "type ddp, or zero:1",
                      "stage 0 in fp32 is the optimizer as it is, behind an "
                      "all-reduce");
    if (how->whole && !fp16)
        return refuse(trace, "type --precision fp16-mixed, or zero:1",
                      "stage 0 is the fused fp16 optimizer; for bf16 DeepSpeed "
                      "takes another (BF16_Optimizer)");
    if (sums && how->bucket_key != NULL)
        return ms_fail(trace->fault, MS_EUSAGE, asked_for(trace),
                       "leave it out, or training.gradients=fp32",
                       "%s changes nothing: for bf16 weights and fp32 "
                       "gradients stage 1 is BF16_Optimizer, without a bucket",
                       how->bucket_key);
    if (sums && (offload->optimizer != MS_DEVICE_POOL ||
                 offload->gradients != MS_DEVICE_POOL))
        return refuse(trace, "leave training.gradients out",
                      "BF16_Optimizer, which stage 1 takes for bf16 weights "
                      "and fp32 gradients, offloads nothing");
    if (training->optimizer_impl != MS_IMPL_AUTO &&
        training->optimizer_impl != MS_IMPL_FUSED)
        return refuse(trace, "leave training.optimizer_impl out",
                      "DeepSpeed's update of a flat tile is one fused kernel");
    return MS_OK;
}

/* Is the tile full after the parameter just taken in? */
static bool is_full(const flat_step *s)
{
    return s->how->tile_elements > 0 && s->elements >= s->how->tile_elements;
}

static void run_group(flat_step *s)
{
    ms_trace *trace = s->trace;
    s->first = 0;
    for (uint32_t p = 0; p < trace->n_parameters && !trace->err; p++) {
        s->end = p + 1;
        if (!is_updated(s, p))
            continue;
        s->elements += trace->parameters[p].part;
        s->tensors++;
        if (!is_full(s))
            continue;
        run_tile(s);
        s->first = p + 1;
    }
    run_tile(s);
}

/* Muon's matrices are a parameter group of their own. */
static void run_groups(flat_step *s)
{
    s->group = MATRICES;
    run_group(s);
    s->group = OTHERS;
    run_group(s);
}

void ms_flatstep_run(ms_trace *trace, uint32_t *held)
{
    flat_step s = {.trace = trace,
                   .how = &trace->settings->shape->flat_step,
                   .held = held};
    if (ms_precisions_has_sum(trace->settings)) {
        step_from_sum(trace);
        return;
    }
    if (trace->settings->training->precision == MS_FP16_MIXED)
        look_at_all(&s, "has_overflow", FP32_BYTES);
    look_at_all(&s, "aten::linalg_vector_norm", NORM_BYTES);
    if (held != NULL)
        run_groups(&s);
    else
        run_group(&s);
}
