/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Makes the gradients and the optimizer state, each in its memory
 * (graphs/states.md 2).  With 16-bit weights the state holds an fp32 master
 * copy. */
#include "graphs/formats/precisions.h"
#include "graphs/optimizer/hostblocks.h"
#include "graphs/optimizer/optimizer.h"
#include "graphs/optimizer/optimtable.h"
#include "graphs/trace/columns.h"
#include "graphs/trace/trace.h"
#include "sim/graph.h"

#include <assert.h>

bool ms_optimstates_is_mixed(const ms_trace *trace)
{
    const ms_precision_row *row = ms_precisions_of(trace->settings->training);
    bool some =
        row->other.master != MS_NO_DTYPE || row->linear.master != MS_NO_DTYPE;
    return some && trace->trained_dtype == trace->weight_dtype;
}

/* A storage for so many elements that outlives the step. */
static uint32_t state(ms_trace *trace, const char *role, uint8_t dtype,
                      uint8_t category, uint64_t elements, bool at_start)
{
    uint64_t bytes = elements * ms_dtypes_bytes[dtype];
    uint32_t s = ms_trace_storage(trace, role, bytes, category, true);
    if (s != MS_NONE)
        trace->graph->storage_at_start[s] = at_start;
    return s;
}

/* A part that is its own master copy needs a second one where the host updates
 * while the part stays on the device. */
static bool needs_master(const ms_trace *trace, const ms_parameter *parameter)
{
    bool has_one = ms_parts_are_masters(trace);
    if (parameter->far)
        return !has_one ||
               trace->settings->shape->offload.parameters == MS_DEVICE_POOL;
    return ms_precisions_master(trace, parameter) != MS_NO_DTYPE && !has_one;
}

/* torchao's optimizer on the host is one of parameters as they are. */
static uint8_t far_dtype(const ms_trace *trace)
{
    const ms_offload *offload = &trace->settings->shape->offload;
    bool mixed = ms_optimstates_is_mixed(trace);
    return offload->engine == MS_ENGINE_TORCHAO && !mixed ? trace->trained_dtype
                                                          : MS_FLOAT32;
}

static uint8_t master_dtype(const ms_trace *trace,
                            const ms_parameter *parameter)
{
    return parameter->far ? far_dtype(trace)
                          : ms_precisions_master(trace, parameter);
}

/* The master copy is made at construction, not by the first step. */
static void make_master(ms_trace *trace, ms_parameter *parameter)
{
    uint8_t dtype = master_dtype(trace, parameter);
    if (!needs_master(trace, parameter))
        return;
    parameter->master = state(trace, dtype == MS_INT16 ? "remainder" : "master",
                              dtype, MS_OPTIMIZER_STATE, parameter->part, true);
}

static uint8_t state_dtype(const ms_trace *trace, const ms_parameter *parameter,
                           const ms_state *kept)
{
    bool precise = ms_optimstates_is_mixed(trace);
    if (kept->dtype != MS_AS_STATE)
        return kept->dtype;
    if (ms_updates_is_flat(trace->settings) &&
        parameter->update == trace->optimizer->updates)
        return trace->grad_dtype;
    if (parameter->far)
        return far_dtype(trace);
    return precise ? (uint8_t)MS_FLOAT32 : trace->trained_dtype;
}

static uint64_t state_elements(const ms_trace *trace,
                               const ms_parameter *parameter,
                               const ms_state *kept)
{
    return ms_updates_extent(trace->settings->training, kept->extent,
                             ms_trace_at(trace, parameter->tensor),
                             parameter->part);
}

/* Whether torch's fused kernel counts the steps of each parameter on the
 * device (torch/optim/adam.py, _init_group; recorded on an H100).  Megatron's
 * and DeepSpeed's optimizers count once, in Python. */
static bool counts_on_device(const ms_trace *trace, const ms_optimizer_row *row,
                             const ms_parameter *parameter)
{
    return row->counts && !trace->settings->cpu && !parameter->far &&
           !trace->kernels.fuses_updates &&
           trace->settings->shape->engine != MS_ENGINE_DEEPSPEED &&
           !ms_updates_is_flat(trace->settings) &&
           ms_updates_impl(row, trace) == MS_IMPL_FUSED;
}

/* The states that the update keeps, and a counter of steps on the CPU or
 * beside a fused kernel.  Those of the host's update are there before the first
 * step, as DeepSpeed makes them (stage_1_and_2.py,
 * initialize_optimizer_states).
 */
static void parameter_states(ms_trace *trace, ms_parameter *parameter)
{
    const ms_optimizer_row *row = ms_updates_of(trace->settings->training);
    bool kept_before = trace->settings->training->step == 0 || parameter->far;
    parameter->update =
        &trace->optimizer
             ->updates[!ms_updates_is_chosen(trace, row, parameter)];
    if (ms_layerwise_is(trace->settings) && parameter->part == 0)
        return; /* it belongs to another rank */
    make_master(trace, parameter);
    for (uint32_t i = 0; i < parameter->update->n_states; i++) {
        const ms_state *kept = &parameter->update->states[i];
        parameter->state[i] =
            state(trace, kept->role, state_dtype(trace, parameter, kept),
                  MS_OPTIMIZER_STATE, state_elements(trace, parameter, kept),
                  kept_before || kept->at_construction);
    }
    if (trace->settings->cpu && row->counts)
        ms_trace_storage(trace, "step", 4, MS_OPTIMIZER_STATE, true);
    if (counts_on_device(trace, row, parameter))
        state(trace, "step", MS_FLOAT32, MS_OPTIMIZER_STATE, 1, kept_before);
}

/* ---- what DeepSpeed has besides ------------------------------------------ */

/* Does the host hold sums of micro-batches beside the fp32 gradients?
 * (stage_1_and_2.py, accumulated_grads_in_cpu) */
static bool has_sums(const ms_shape *shape)
{
    return shape->offload.step == MS_HOST_WHOLE && shape->micro_batches > 1 &&
           shape->shared != MS_SHARED_OPTIMIZER;
}

static bool has_kept(const ms_shape *shape, ms_kept kind)
{
    switch (kind) {
    case MS_KEPT_TWICE:
        return ms_offload_is_apart(&shape->offload);
    case MS_KEPT_COLUMNS:
        return shape->offload.selected > 0;
    default:
        return has_sums(shape);
    }
}

static uint8_t kept_dtype(const ms_trace *trace, const ms_parameter *parameter,
                          ms_kept kind)
{
    if (kind == MS_KEPT_TWICE)
        return MS_FLOAT32;
    return kind == MS_KEPT_SUM ? ms_precisions_gradient(trace, parameter)
                               : trace->trained_dtype;
}

/* The process has two of each moment, one for every other update, and a copy of
 * the weights (ops/adam/zenflow_cpu_adam.py, _parallel_step); each rank has the
 * moments of all columns (zenflow_torch_adam.py). */
static uint64_t kept_elements(const ms_trace *trace,
                              const ms_parameter *parameter, ms_kept kind)
{
    double selected = trace->settings->shape->offload.selected;
    uint64_t moments = parameter->update->n_states;
    if (kind == MS_KEPT_SUM)
        return parameter->part;
    return kind == MS_KEPT_TWICE
               ? (1 + moments) * parameter->part
               : moments * (uint64_t)(selected * (double)parameter->elements);
}

static void home_kept(ms_trace *trace, const ms_parameter *parameter,
                      ms_kept kind)
{
    uint64_t bytes = kept_elements(trace, parameter, kind) *
                     ms_dtypes_bytes[kept_dtype(trace, parameter, kind)];
    const ms_home home = {parameter->kept[kind], MS_HOST_POOL, 0, 0};
    if (kind != MS_KEPT_COLUMNS && home.storage != MS_NONE)
        ms_hostblocks_home(
            trace, kind == MS_KEPT_SUM ? MS_HOST_GRADIENT_COPY : MS_HOST_MOMENT,
            &home, parameter->part, bytes);
}

static void make_kept(ms_trace *trace, ms_parameter *parameter)
{
    static const char *const roles[MS_N_KEPT] = {
        "kept_twice", "selected_moments", "accumulated_grad"};
    if (trace->settings->shape->offload.engine != MS_ENGINE_DEEPSPEED)
        return;
    for (uint32_t i = 0; i < MS_N_KEPT; i++) {
        if (!has_kept(trace->settings->shape, (ms_kept)i))
            continue;
        parameter->kept[i] =
            state(trace, roles[i], kept_dtype(trace, parameter, (ms_kept)i),
                  i == MS_KEPT_SUM ? MS_GRADIENTS : MS_OPTIMIZER_STATE,
                  kept_elements(trace, parameter, (ms_kept)i), true);
        home_kept(trace, parameter, (ms_kept)i);
    }
}

static void fit(ms_trace *trace, uint32_t storage, uint8_t dtype,
                uint64_t elements)
{
    if (storage != MS_NONE)
        trace->graph->storage_bytes[storage] =
            elements * ms_dtypes_bytes[dtype];
}

void ms_optimstates_fit(ms_trace *trace)
{
    uint64_t *bytes = trace->graph->storage_bytes, grad_bytes = 0;
    for (uint32_t p = 0; p < trace->n_parameters; p++) {
        const ms_parameter *it = &trace->parameters[p];
        if (it->grad_storage != MS_NONE)
            grad_bytes += bytes[it->grad_storage];
        fit(trace, it->master, master_dtype(trace, it), it->part);
        fit(trace, it->host_grad, far_dtype(trace), it->part);
        for (uint32_t i = 0; i < MS_N_KEPT; i++)
            if (it->kept[i] != MS_NONE)
                fit(trace, it->kept[i], kept_dtype(trace, it, (ms_kept)i),
                    kept_elements(trace, it, (ms_kept)i));
        for (uint32_t i = 0; it->update && i < it->update->n_states; i++) {
            const ms_state *kept = &it->update->states[i];
            fit(trace, it->state[i], state_dtype(trace, it, kept),
                state_elements(trace, it, kept));
        }
    }
    if (trace->optimizer->buckets != MS_NONE)
        bytes[trace->optimizer->buckets] = grad_bytes;
}

/* Both updates of the optimizer, for as long as the graph lives. */
static void read_updates(ms_trace *trace)
{
    const ms_optimizer_row *row = ms_updates_of(trace->settings->training);
    ms_read_update *updates = ms_arena_take(trace->arena, 2, sizeof *updates);
    trace->optimizer->updates = updates;
    for (uint32_t i = 0; updates && row && i < 2; i++) {
        const ms_update *update = i == 0 ? row->update : row->others;
        if (update == NULL)
            continue;
        bool sound = ms_updates_read(update, ms_updates_impl(row, trace),
                                     trace->settings->framework, trace->arena,
                                     &updates[i]);
        assert(sound || !updates[i].ops);
        if (!sound)
            updates = NULL;
    }
    if (!updates && !trace->err)
        trace->err = ms_fail_nomem(trace->fault);
}

/* ---- homes --------------------------------------------------------------- */

static void home_weight(ms_trace *trace, const ms_parameter *parameter)
{
    uint8_t pool = trace->settings->shape->offload.parameters;
    const ms_home home = {parameter->storage, pool,
                          ms_parts_master_bytes(trace, parameter), 0};
    uint64_t whole = trace->graph->storage_bytes[parameter->storage];
    double share = (double)parameter->part / (double)parameter->elements;
    if (pool != MS_DEVICE_POOL)
        ms_hostblocks_home(trace, MS_HOST_WEIGHT, &home, parameter->part,
                           home.far_bytes > 0
                               ? home.far_bytes
                               : (uint64_t)(share * (double)whole));
}

/* The dtype of the gradient of a part. */
static uint8_t gradient_dtype(const ms_trace *trace,
                              const ms_parameter *parameter)
{
    return ms_parts_are_masters(trace)
               ? MS_FLOAT32
               : ms_precisions_gradient(trace, parameter);
}

static void home_gradient(ms_trace *trace, const ms_parameter *parameter)
{
    const ms_offload *offload = &trace->settings->shape->offload;
    uint64_t bytes = offload->gradient_bytes;
    /* Stage 3 of DeepSpeed also keeps a copy in fp32. */
    uint64_t own = ms_dtypes_bytes[gradient_dtype(trace, parameter)];
    if (bytes == 0)
        bytes = own;
    else if (bytes > sizeof(float))
        bytes = sizeof(float) + own;
    const ms_home home = {parameter->grad_storage, offload->gradients,
                          parameter->part * bytes, 0};
    if (parameter->far || offload->gradients != MS_DEVICE_POOL)
        ms_hostblocks_home(trace, MS_HOST_GRADIENT, &home, parameter->part,
                           home.far_bytes);
}

/* One of the states that the host updates, all of them in one format. */
static void home_state(ms_trace *trace, const ms_parameter *parameter,
                       uint32_t storage, uint8_t pool, ms_host_role role)
{
    const ms_home home = {storage, pool, 0, 0};
    ms_hostblocks_home(trace, role, &home, parameter->part,
                       ms_dtypes_bytes[far_dtype(trace)] * parameter->part);
}

static uint8_t stale_dtype(const ms_trace *trace, const ms_parameter *parameter)
{
    bool apart = ms_offload_is_apart(&trace->settings->shape->offload);
    return apart ? MS_FLOAT32 : gradient_dtype(trace, parameter);
}

/* A delayed update reads the gradients of the step before, while new ones
 * arrive, and writes weights that nobody reads before the step ends. */
static void delay_update(ms_trace *trace, ms_parameter *parameter)
{
    const ms_offload *offload = &trace->settings->shape->offload;
    uint8_t home = offload->parameters;
    uint8_t dtype =
        ms_parts_are_masters(trace) ? MS_FLOAT32 : trace->trained_dtype;
    parameter->host_grad =
        state(trace, "stale_grad", stale_dtype(trace, parameter), MS_GRADIENTS,
              parameter->part, true);
    ms_parts_home(trace, parameter->host_grad, MS_HOST_POOL, 0);
    if (home == MS_DEVICE_POOL)
        return;
    parameter->next = state(trace, "next_weight", dtype, MS_PARAMETERS,
                            parameter->part, true);
    if (parameter->next != MS_NONE)
        trace->graph->storage_buffer[parameter->next] = MS_COPY_OF_WEIGHTS;
    ms_parts_home(trace, parameter->next, home, 0);
}

static void home_states(ms_trace *trace, ms_parameter *parameter)
{
    const ms_offload *offload = &trace->settings->shape->offload;
    if (!parameter->far)
        return;
    home_state(trace, parameter, parameter->master, offload->optimizer,
               MS_HOST_MASTER);
    for (uint32_t i = 0; i < MS_MOST_STATES; i++)
        home_state(trace, parameter, parameter->state[i], offload->optimizer,
                   MS_HOST_MOMENT);
    if (offload->delayed)
        delay_update(trace, parameter);
    if (!ms_offload_fetches(offload))
        return;
    if (parameter->host_grad == MS_NONE)
        parameter->host_grad = state(trace, "host_grad", far_dtype(trace),
                                     MS_OPTIMIZER_STATE, parameter->part, true);
    home_state(trace, parameter, parameter->host_grad, MS_HOST_POOL,
               MS_HOST_GRADIENT_COPY);
}

/* What is updated on the host depends on how many elements come before. */
static bool choose_again(ms_trace *trace)
{
    bool *far = ms_arena_take_raw(trace->scratch, trace->n_parameters + 1u,
                                  sizeof *far);
    if (!far)
        return false;
    for (uint32_t p = 0; p < trace->n_parameters; p++)
        far[p] = trace->parameters[p].far;
    ms_hosttiles_choose(trace);
    for (uint32_t p = 0; p < trace->n_parameters; p++)
        if (far[p] != trace->parameters[p].far)
            return false;
    return true;
}

bool ms_optimstates_home(ms_trace *trace)
{
    ms_optimizer_state *optimizer = trace->optimizer;
    if (optimizer->n_homes == 0)
        return true;
    optimizer->n_homes = 0;
    optimizer->swap_elements = 0;
    trace->graph->hosted.n_blocks = 0;
    if (!choose_again(trace))
        return false;
    for (uint32_t p = 0; p < trace->n_parameters && !trace->err; p++) {
        ms_parameter *parameter = &trace->parameters[p];
        home_weight(trace, parameter);
        if (parameter->grad_storage == MS_NONE)
            continue;
        home_gradient(trace, parameter);
        if (trace->settings->training->optimizer == MS_NO_OPTIMIZER)
            continue;
        home_states(trace, parameter);
        for (uint32_t i = 0; i < MS_N_KEPT; i++)
            home_kept(trace, parameter, (ms_kept)i);
    }
    ms_hosttiles_home_buffers(trace);
    ms_hostblocks_close(trace);
    return !trace->err;
}

/* What DistributedDataParallel reduces: flat copies of all gradients
 * (torch/csrc/distributed/c10d/reducer.cpp).  Stages of a pipeline have each
 * parameter's own instead, as theirs are not all. */
static void buckets(ms_trace *trace, uint64_t bytes)
{
    uint32_t s = ms_trace_storage(trace, "gradient_buckets", bytes,
                                  MS_COMMUNICATION, true);
    trace->optimizer->buckets = s;
    if (s != MS_NONE)
        trace->graph->storage_layer[s] = MS_NONE;
}

/* bitsandbytes shares one code map of each kind among all parameters. */
static void code_maps(ms_trace *trace)
{
    const ms_optimizer_row *row = ms_updates_of(trace->settings->training);
    ms_optimizer_state *optimizer = trace->optimizer;
    uint32_t was = trace->layer;
    trace->layer = MS_NONE;
    assert(row == NULL || row->maps <= MS_MOST_MAPS);
    optimizer->n_maps = row == NULL ? 0 : row->maps;
    for (uint32_t i = 0; i < optimizer->n_maps; i++)
        optimizer->maps[i] =
            ms_trace_storage(trace, "code_map", MS_OPTIMIZERS_MAP_BYTES,
                             MS_OPTIMIZER_STATE, true);
    trace->layer = was;
}

/* Lists a parameter that needs a gradient but gets none, for the report. */
static void note_untrained(ms_trace *trace, const ms_parameter *parameter)
{
    ms_graph *g = trace->graph;
    if (!trace->settings->train || ms_parts_is_frozen(trace, parameter) ||
        !ms_columns_grow(trace, trace->arena, &g->untrained,
                         &trace->untrained_capacity, g->n_untrained + 1,
                         sizeof *g->untrained))
        return;
    g->untrained[g->n_untrained++] = parameter->storage;
}

void ms_optimstates_make(ms_trace *trace)
{
    const ms_kernel_hooks *hooks = trace->kernels.hooks;
    const ms_shape *shape = trace->settings->shape;
    bool staged = shape->pipeline_ranks > 1;
    uint64_t grad_bytes = 0;
    bool kept =
        (trace->settings->training->zero_grad &&
         trace->settings->training->step == 0 &&
         !trace->settings->shape->flat_step.frees_gradients) ||
        ms_parts_hold_gradients(trace->settings) ||
        (hooks->holds_gradients && hooks->holds_gradients(trace->settings)) ||
        trace->settings->shape->offload.gradients != MS_DEVICE_POOL ||
        (ms_precisions_has_sum(trace->settings) &&
         trace->settings->training->step == 0);
    ms_parts_split(trace);
    ms_wholegrads_find(trace);
    ms_hosttiles_choose(trace);
    read_updates(trace);
    for (uint32_t p = 0; p < trace->n_parameters && !trace->err; p++) {
        ms_parameter *parameter = &trace->parameters[p];
        home_weight(trace, parameter);
        if (parameter->uses == 0) {
            note_untrained(trace, parameter);
            continue;
        }
        trace->layer = parameter->layer;
        parameter->grad_storage =
            state(trace, "grad", ms_precisions_gradient(trace, parameter),
                  MS_GRADIENTS, parameter->elements, kept);
        if (trace->err)
            return;
        trace->graph->storage_grad[parameter->storage] =
            parameter->grad_storage;
        home_gradient(trace, parameter);
        if (shape->copies_gradients && staged)
            state(trace, "gradient_bucket",
                  ms_precisions_gradient(trace, parameter), MS_COMMUNICATION,
                  parameter->elements, true);
        if (ms_precisions_has_sum(trace->settings)) /* made at construction */
            parameter->sum = state(trace, "fp32_grad", MS_FLOAT32, MS_GRADIENTS,
                                   parameter->elements, true);
        if (trace->settings->training->optimizer != MS_NO_OPTIMIZER) {
            parameter_states(trace, parameter);
            home_states(trace, parameter);
            make_kept(trace, parameter);
        }
        grad_bytes += trace->graph->storage_bytes[parameter->grad_storage];
    }
    if (shape->copies_gradients && !staged && !trace->err)
        buckets(trace, grad_bytes);
    code_maps(trace);
    ms_hosttiles_buffers(trace);
    ms_hostblocks_close(trace);
}
