/* SPDX-License-Identifier: GPL-3.0-or-later */
/* From a model to a graph: record the forward, run autograd and the optimizer
 * on the record, then put its columns in order. */
#include "graphs/lowering/lower.h"
#include "graphs/aten/atenkinds.h"
#include "graphs/formats/precisions.h"
#include "graphs/layers/layers.h"
#include "graphs/layers/lora.h"
#include "graphs/layers/walk/layerroles.h"
#include "graphs/lowering/emptystages.h"
#include "graphs/lowering/finish.h"
#include "graphs/lowering/nodegraph.h"
#include "graphs/lowering/numbering.h"
#include "graphs/lowering/stamps.h"
#include "graphs/modelgraph.h"
#include "graphs/ops/autocast.h"
#include "graphs/ops/ops.h"
#include "graphs/optimizer/optimizer.h"
#include "graphs/parallel/shards.h"
#include "graphs/quantized/fp8.h"
#include "graphs/quantized/packed.h"
#include "graphs/trace/forward.h"
#include "graphs/trace/savelist.h"
#include "graphs/trace/trace.h"
#include "sim/graph.h"

#include <assert.h>
#include <string.h>

/* ---- settings ------------------------------------------------------------ */

/* A first guess of what a layer takes, rarely exceeded by whole models. */
#define STORAGES_PER_LAYER 16u
#define OPS_PER_LAYER 6u

static ms_err name_layers(ms_trace *trace)
{
    const ms_model *model = trace->settings->model;
    ms_graph *g = trace->graph;
    g->layer_name =
        ms_arena_take(trace->arena, model->n_layers, sizeof *g->layer_name);
    if (!g->layer_name)
        return ms_fail_nomem(trace->fault);
    g->n_layers = model->n_layers;
    for (uint32_t i = 0; i < model->n_layers; i++)
        g->layer_name[i] = model->layers[i].name;
    g->n_blocks = model->n_blocks;
    g->block_name = model->block_names;
    g->name = model->name;
    return MS_OK;
}

static ms_err open_trace(ms_trace *trace)
{
    const ms_training *training = trace->settings->training;
    const ms_model *model = trace->settings->model;
    trace->kernels = ms_kernels_on(trace->settings);
    trace->weight_dtype = ms_precisions_of(training)->other.weight;
    trace->autocast = ms_precisions_of(training)->autocast;
    MS_TRY(ms_lora_open(trace));
    trace->grad_dtype = trace->trained_dtype;
    const ms_kernel_hooks *hooks = trace->kernels.hooks;
    bool by_code = trace->settings->shape->fp32_gradients ||
                   (hooks->has_fp32_gradients &&
                    hooks->has_fp32_gradients(trace->settings));
    if ((by_code && training->gradients != MS_GRADIENTS_WEIGHTS) ||
        (training->gradients == MS_GRADIENTS_FP32 &&
         !ms_precisions_has_sum(trace->settings)))
        trace->grad_dtype = MS_FLOAT32;
    trace->node_now = MS_NONE;
    trace->input = trace->positions = trace->free_tensor = MS_NONE;
    trace->layer_weight =
        ms_arena_take_raw(trace->scratch, model->n_layers, sizeof(uint32_t));
    if (!trace->layer_weight)
        return ms_fail_nomem(trace->fault);
    memset(trace->layer_weight, 0xff, model->n_layers * sizeof(uint32_t));
    MS_TRY(name_layers(trace));
    return ms_trace_reserve(trace, STORAGES_PER_LAYER * model->n_layers,
                            OPS_PER_LAYER * model->n_layers);
}

/* ---- loss and backward --------------------------------------------------- */

static ms_err keep(ms_trace *trace, uint32_t tensor, uint32_t *capacity)
{
    ms_graph *g = trace->graph;
    uint32_t s = ms_trace_at(trace, tensor)->storage;
    if (trace->counts[s].persistent)
        return MS_OK;
    uint32_t *kept = ms_arena_grow(trace->arena, g->kept, capacity,
                                   g->n_kept + 1, sizeof *kept);
    if (!kept)
        return ms_fail_nomem(trace->fault);
    g->kept = kept;
    kept[g->n_kept++] = s;
    return MS_OK;
}

/* What `out` and `loss` of the training loop name (training.hold_output). */
static ms_err keep_outputs(ms_trace *trace, const ms_forward *forward)
{
    uint32_t capacity = 0;
    bool holds = trace->settings->training->hold_output != MS_HOLD_NONE;
    trace->graph->keep_to_step =
        trace->settings->training->hold_output == MS_HOLD_STEP;
    if (trace->kernels.names_inputs && trace->settings->train)
        trace->graph->stage_inputs = trace->settings->training->step == 1
                                         ? MS_INPUTS_STAY_FIRST
                                         : MS_INPUTS_STAY;
    for (uint32_t i = 0; i < forward->n_outputs; i++) {
        if (holds)
            MS_TRY(keep(trace, forward->outputs[i], &capacity));
        else
            ms_trace_drop(trace, forward->outputs[i]);
    }
    return keep(trace, forward->loss, &capacity);
}

/* loss / micro_batches, as training loops that accumulate gradients write it.
 */
static uint32_t scaled_loss(ms_trace *trace, uint32_t loss)
{
    if (trace->settings->micro_batches == 1 || trace->err)
        return loss;
    uint32_t y = ms_pointwise_div_scalar(trace, loss);
    ms_trace_drop(trace, loss);
    return y;
}

static ms_err run_backward(ms_trace *trace, ms_forward *forward)
{
    if (forward->loss != MS_NONE) {
        forward->loss = scaled_loss(trace, forward->loss);
        MS_TRY(trace->err);
        MS_TRY(keep_outputs(trace, forward));
    }
    if (trace->settings->train)
        ms_autograd_forget(trace, forward->loss);
    ms_optimstates_make(trace);
    if (trace->settings->train && !trace->err)
        ms_autograd_run(trace, forward->loss);
    if (!trace->err)
        ms_savelist_close(trace);
    return trace->err;
}

/* ---- the whole ----------------------------------------------------------- */

/* What the passes over ops have seen. */
typedef struct passes {
    uint32_t n_ops;
    ms_libraryworkspaces workspaces;
} passes;

static ms_err forward_and_backward(ms_trace *trace, ms_forward *forward)
{
    MS_TRY(open_trace(trace));
    MS_TRY(ms_precisions_refuse(trace));
    MS_TRY(ms_fp8_check(trace));
    MS_TRY(ms_packed_refuse(trace));
    MS_TRY(ms_flatstep_check(trace));
    MS_TRY(ms_optimcheck_settings(trace));
    MS_TRY(ms_shards_check(trace));
    if (!trace->settings->model->ops)
        MS_TRY(ms_layerroles_fill(trace));
    if (trace->settings->model->ops)
        MS_TRY(ms_oprun_forward(trace, forward));
    else
        MS_TRY(ms_walk_layers(trace, forward));
    MS_TRY(ms_lora_close(trace));
    MS_TRY(ms_fp8_close(trace));
    ms_autocast_leave(trace);
    return run_backward(trace, forward);
}

/* Of the ops that no pass has seen yet. */
static ms_err run_passes(passes *done, ms_trace *trace)
{
    MS_TRY(ms_atenkinds_fill(trace, done->n_ops));
    ms_libraryworkspace_add(trace, done->n_ops, &done->workspaces);
    ms_cost_ops(trace, done->n_ops);
    done->n_ops = trace->graph->n_ops;
    return trace->err;
}

static ms_err step_and_finish(ms_trace *trace, passes *done,
                              const ms_forward *forward, ms_graph *graph)
{
    ms_arena_drop(trace->scratch, trace->nodes); /* they have run */
    trace->nodes = NULL;
    if (trace->settings->train)
        ms_optimstep_step(trace);
    MS_TRY(trace->err);
    MS_TRY(run_passes(done, trace));
    ms_arena_drop(trace->scratch, trace->ends); /* the passes are done */
    return ms_finish_graph(trace, forward, graph);
}

/* Records a model in which equal blocks are left out, with all that is done for
 * single ops and storages, and stamps these blocks.  False: it cannot be;
 * nothing of the trace is to be used. */
static bool lower_stamped(ms_trace *trace, passes *done, ms_forward *forward)
{
    const ms_step_settings *settings = trace->settings;
    ms_blockrun run = {0};
    ms_model model;
    if (ms_stamps_apply(settings))
        run = ms_blockrun_find(settings->model);
    if (run.left_out == 0 ||
        !ms_blockrun_cut(settings->model, &run, trace->scratch, &model))
        return false;
    ms_step_settings cut = *settings;
    ms_fault fault = {0};
    ms_fault *told = trace->fault;
    cut.model = &model;
    trace->settings = &cut;
    trace->nodes_stay = true;
    trace->fault = &fault;
    bool ok = forward_and_backward(trace, forward) == MS_OK &&
              run_passes(done, trace) == MS_OK &&
              ms_numbering_run(trace, forward->n_units) == MS_OK &&
              ms_stamps_unfold(trace, forward, &run, settings->model);
    done->n_ops = trace->graph->n_ops;
    trace->settings = settings;
    ok = ok && name_layers(trace) == MS_OK && ms_stamps_settle(trace);
    trace->fault = told;
    return ok;
}

static ms_err lower(ms_trace *trace, ms_graph *graph)
{
    static const ms_forward fresh = {.loss_unit = MS_NONE, .loss = MS_NONE};
    const ms_trace whole = *trace;
    const ms_optimizer_state optimizer = *trace->optimizer;
    const ms_graph empty = *trace->graph;
    ms_forward forward = fresh;
    passes done = {0};
    if (!lower_stamped(trace, &done, &forward)) {
        *trace = whole;
        *trace->optimizer = optimizer;
        *trace->graph = empty;
        forward = fresh;
        done = (passes){0};
        MS_TRY(forward_and_backward(trace, &forward));
    }
    return step_and_finish(trace, &done, &forward, graph);
}

static ms_err lower_whole(const ms_model *model, const ms_training *training,
                          const ms_device *device, const ms_shape *shape,
                          ms_arena *arena, ms_graph *graph, ms_fault *fault)
{
    assert(shape->micro_batches > 0 && shape->data_ranks > 0);
    ms_arena scratch = {.limit_bytes = arena->limit_bytes};
    ms_optimizer_state optimizer = {.step_order = MS_NONE, .buckets = MS_NONE};
    const ms_step_settings settings = {
        .model = model,
        .training = training,
        .device = device,
        .shape = shape,
        .cpu = training->device == 1,
        .train = training->mode == 0,
        .framework = (uint8_t)training->framework,
        .batch = (uint64_t)training->batch / shape->micro_batches,
        .sequence = (uint64_t)training->sequence / ms_shape_context(shape),
        .micro_batches = shape->micro_batches};
    ms_graph growing = {0};
    ms_trace trace = {.settings = &settings,
                      .graph = &growing,
                      .arena = arena,
                      .scratch = &scratch,
                      .optimizer = &optimizer,
                      .run_inside = ms_autograd_inside,
                      .fault = fault};
    ms_err err = model->nodes != NULL
                     ? ms_nodegraph_lower(model, arena, graph, fault)
                     : lower(&trace, graph);
    ms_arena_free(&scratch);
#ifndef NDEBUG
    if (err == MS_OK) {
        err = ms_graph_check(graph, fault);
        assert(err == MS_OK || err == MS_ENOMEM);
    }
#endif
    return err == MS_OK ? ms_prepare_graph(graph, arena, fault) : err;
}

ms_err ms_lower(const ms_model *model, const ms_training *training,
                const ms_device *device, const ms_shape *shape, ms_arena *arena,
                ms_graph *graph, ms_fault *fault)
{
    ms_model with;
    if (shape->empty_stages.n == 0)
        return lower_whole(model, training, device, shape, arena, graph, fault);
    MS_TRY(
        ms_emptystages_add(model, &shape->empty_stages, arena, &with, fault));
    return lower_whole(&with, training, device, shape, arena, graph, fault);
}

/* ---- facts by layer ------------------------------------------------------ */

static void count_ops(const ms_graph *graph, ms_layer_facts *by_layer)
{
    for (uint32_t op = 0; op < graph->step_first; op++) {
        if (graph->op_layer[op] == MS_NONE)
            continue;
        ms_layer_facts *facts = &by_layer[graph->op_layer[op]];
        if (graph->op_pass[op] == MS_STEP || /* in backward */
            graph->op_pass[op] == MS_RECOMPUTE)
            continue;
        bool matrix = (graph->op_flags[op] & MS_OP_MATRIX) != 0;
        double macs = matrix ? graph->op_flops[op] / 2 : 0;
        if (graph->op_pass[op] > MS_LOSS) {
            facts->backward_flops += graph->op_flops[op];
            facts->backward_macs += macs;
            continue;
        }
        facts->forward_flops += graph->op_flops[op];
        facts->forward_macs += macs;
        for (uint32_t i = graph->out_at[op]; i < graph->out_at[op + 1]; i++) {
            uint32_t s = graph->out[i];
            if (graph->storage_saved_end[s] != MS_NONE)
                facts->saved_bytes += graph->storage_bytes[s];
            if (graph->storage_category[s] != MS_WORKSPACE &&
                i == graph->out_at[op])
                facts->output_bytes = graph->storage_bytes[s];
        }
    }
}

/* The layer of each persistent storage: its own, else its first reader's (the
 * parameters of op graphs), else the first. */
static ms_err find_layers(const ms_graph *graph, ms_arena *arena,
                          uint32_t **layers, ms_fault *fault)
{
    uint32_t *layer =
        ms_arena_take_raw(arena, graph->n_persistent, sizeof *layer);
    if (!layer)
        return ms_fail_nomem(fault);
    for (uint32_t s = 0; s < graph->n_persistent; s++)
        layer[s] = graph->storage_layer[s];
    for (uint32_t op = 0; op < graph->step_first; op++)
        for (uint32_t i = graph->in_at[op]; i < graph->in_at[op + 1]; i++)
            if (graph->in[i] < graph->n_persistent &&
                layer[graph->in[i]] == MS_NONE)
                layer[graph->in[i]] = graph->op_layer[op];
    for (uint32_t s = 0; s < graph->n_persistent; s++)
        if (layer[s] == MS_NONE)
            layer[s] = 0;
    *layers = layer;
    return MS_OK;
}

/* How many ranks have as large a part of it. */
static uint64_t ranks_of(const ms_graph *graph, uint32_t weight)
{
    return graph->storage_ranks ? graph->storage_ranks[weight] : 1;
}

/* A graph without a count per weight has one dtype for all of them: the size of
 * an element is then all bytes over all elements. */
static uint64_t bytes_per_element(const ms_graph *graph)
{
    uint64_t bytes = 0;
    for (uint32_t s = 0; s < graph->n_persistent; s++)
        if (ms_graph_is_weight(graph, s))
            bytes += graph->storage_bytes[s] * ranks_of(graph, s);
    return graph->parameters > 0 ? bytes / graph->parameters : 0;
}

static void count_parameters(const ms_graph *graph, const uint32_t *layer,
                             ms_layer_facts *by_layer)
{
    uint64_t width = bytes_per_element(graph);
    for (uint32_t s = 0; s < graph->n_persistent; s++) {
        ms_layer_facts *facts = &by_layer[layer[s]];
        uint64_t elements = 0;
        bool weight = ms_graph_is_weight(graph, s);
        if (graph->weight_elements)
            elements = graph->weight_elements[s];
        else if (weight && width > 0)
            elements = graph->storage_bytes[s] / width;
        facts->parameters += elements * ranks_of(graph, s);
        facts->held_bytes += weight ? graph->storage_bytes[s] : 0;
    }
}

/* The modules of an op graph stand in the order in which they ran. */
static void name_rows(const ms_model *model, const ms_graph *graph,
                      const ms_layer_facts *by_layer, ms_layer_facts *rows)
{
    for (uint32_t i = 0; i < graph->n_layers; i++) {
        bool apart = model->ops || model->nodes || /* they have no layers */
                     i >= model->n_layers;         /* an empty stage */
        uint32_t l = apart ? i : model->order[i];
        const char *name = graph->layer_name[l];
        rows[i] = by_layer[l];
        rows[i].name = *name ? name : graph->name;
        rows[i].type = graph->layer_type[l];
        rows[i].block = MS_NONE;
        rows[i].split = graph->layer_split ? graph->layer_split[l] : NULL;
        rows[i].active = rows[i].parameters;
        if (apart)
            continue;
        rows[i].active =
            ms_expertlayers_active(&model->layers[l], rows[i].parameters);
        rows[i].block = model->layers[l].block;
    }
}

ms_err ms_lower_facts(const ms_model *model, const ms_graph *graph,
                      ms_arena *arena, ms_layer_facts **facts, ms_fault *fault)
{
    ms_layer_facts *by_layer =
        ms_arena_take(arena, graph->n_layers, sizeof *by_layer);
    ms_layer_facts *rows = ms_arena_take(arena, graph->n_layers, sizeof *rows);
    uint32_t *layer = NULL;
    if (!by_layer || !rows)
        return ms_fail_nomem(fault);
    MS_TRY(find_layers(graph, arena, &layer, fault));
    count_ops(graph, by_layer);
    for (uint32_t l = 0; l < graph->n_layers && graph->layer_bytes; l++)
        by_layer[l].output_bytes = graph->layer_bytes[l];
    count_parameters(graph, layer, by_layer);
    name_rows(model, graph, by_layer, rows);
    *facts = rows;
    return MS_OK;
}
