/* SPDX-License-Identifier: GPL-3.0-or-later */
/* From layers to a graph: trace the forward, run autograd and the optimizer
 * on the trace, then put its columns in order. */
#include "graphs/finish.h"
#include "graphs/ops/ops.h"

#include <assert.h>
#include <string.h>

/* ---- settings ------------------------------------------------------------ */

static uint8_t weight_dtype(int64_t precision)
{
    switch ((ms_precision)precision) {
    case MS_FP16_MIXED:
        return MS_FLOAT16;
    case MS_BF16_MIXED:
    case MS_BF16:
        return MS_BFLOAT16;
    case MS_FP32:
    case MS_TF32:
        break;
    }
    return MS_FLOAT32;
}

static ms_err open_trace(ms_trace *trace, uint32_t micro_batches)
{
    const ms_training *training = trace->training;
    const ms_model *model = trace->model;

    trace->cpu = training->device == 1;
    trace->torch_1 = training->framework == MS_TORCH_1_13;
    trace->train = training->mode == 0;
    trace->weight_dtype = weight_dtype(training->precision);
    trace->grad_dtype =
        training->gradients == 1 ? MS_FLOAT32 : trace->weight_dtype;
    trace->micro_batches = micro_batches;
    trace->batch = (uint64_t)training->batch / micro_batches;
    trace->sequence = (uint64_t)training->sequence;
    trace->node_now = MS_NONE;
    trace->input = MS_NONE;
    trace->layer_weight =
        ms_arena_take_raw(trace->arena, model->n_layers, sizeof(uint32_t));
    trace->graph.layer_name = ms_arena_take(trace->arena, model->n_layers,
                                            sizeof *trace->graph.layer_name);
    if (!trace->layer_weight || !trace->graph.layer_name)
        return ms_fail_nomem(trace->fault);
    memset(trace->layer_weight, 0xff, model->n_layers * sizeof(uint32_t));
    trace->graph.n_layers = model->n_layers;
    for (uint32_t i = 0; i < model->n_layers; i++)
        trace->graph.layer_name[i] = model->layers[i].name;
    trace->graph.n_blocks = model->n_blocks;
    trace->graph.block_name = model->block_names;
    trace->graph.name = model->name;
    return MS_OK;
}

/* ---- forward ------------------------------------------------------------- */

/* What the walk over the layers keeps. */
typedef struct walk {
    ms_trace *trace;
    uint32_t *value;    /* per layer: its output tensor */
    uint32_t *last_use; /* per layer: position of the last reader */
    uint32_t *position; /* per layer: place in the order */
    uint32_t n_units;
    uint32_t unit_capacity;
    uint32_t *unit_block;
    const char **unit_name;
    uint32_t loss_unit, input_last;
} walk;

/* A model of states alone reads nothing. */
static bool reads_input(const ms_model *model)
{
    for (uint32_t i = 0; i < model->n_edges; i++)
        if (model->edges[i] == MS_NONE)
            return true;
    return false;
}

static ms_err model_input(ms_trace *trace)
{
    const ms_model *model = trace->model;
    int64_t dims[MS_MAX_DIMS] = {(int64_t)trace->batch};
    uint32_t n = 1;

    if (!reads_input(model))
        return MS_OK;
    if (model->tokens || model->sequence_input)
        dims[n++] = (int64_t)trace->sequence;
    if (!model->tokens)
        for (uint32_t d = 0; d < model->n_dims && n < MS_MAX_DIMS; d++)
            dims[n++] = (int64_t)model->dims[d];
    trace->layer = 0;
    trace->input =
        ms_trace_input(trace, "input",
                       model->tokens ? MS_INT64 : trace->weight_dtype, n, dims);
    if (!trace->err)
        trace->graph.storage_name[ms_trace_at(trace, trace->input)->storage] =
            "input";
    return trace->err;
}

/* The loop "for block in blocks: x = block(x)" holds x until the block
 * returns: a block's input lives to the end of the block. */
static void find_last_uses(walk *w)
{
    const ms_model *model = w->trace->model;
    uint32_t block_end = 0;

    for (uint32_t i = 0; i < model->n_layers; i++)
        w->position[model->order[i]] = i;
    for (uint32_t i = model->n_layers; i-- > 0;) {
        const ms_layer *layer = &model->layers[model->order[i]];
        bool last_of_block =
            i + 1 == model->n_layers ||
            model->layers[model->order[i + 1]].block != layer->block;
        if (last_of_block)
            block_end = i;
        for (uint32_t k = 0; k < layer->n_in; k++) {
            uint32_t from = model->edges[layer->in_at + k];
            if (from == MS_NONE)
                continue;
            bool from_outside = layer->block != MS_NONE &&
                                model->layers[from].block != layer->block;
            uint32_t end = from_outside ? block_end : i;
            if (w->last_use[from] == MS_NONE || w->last_use[from] < end)
                w->last_use[from] = end;
        }
    }
}

static ms_err open_walk(walk *w)
{
    ms_arena *arena = w->trace->arena;
    uint32_t n = w->trace->model->n_layers;

    w->value = ms_arena_take_raw(arena, n, sizeof(uint32_t));
    w->last_use = ms_arena_take_raw(arena, n, sizeof(uint32_t));
    w->position = ms_arena_take_raw(arena, n, sizeof(uint32_t));
    w->unit_block = ms_arena_take_raw(arena, n, sizeof(uint32_t));
    w->unit_name = ms_arena_take_raw(arena, n, sizeof *w->unit_name);
    if (!w->value || !w->last_use || !w->position || !w->unit_block ||
        !w->unit_name)
        return ms_fail_nomem(w->trace->fault);
    memset(w->value, 0xff, n * sizeof(uint32_t));
    memset(w->last_use, 0xff, n * sizeof(uint32_t));
    find_last_uses(w);
    return MS_OK;
}

static bool is_loss(const ms_layer *layer)
{
    const char *type = ms_layer_kinds[layer->kind].type;

    return strcmp(type, "cross_entropy") == 0 ||
           strcmp(type, "mse_loss") == 0 || strcmp(type, "mean") == 0;
}

static ms_err run_layer(walk *w, uint32_t l)
{
    ms_trace *trace = w->trace;
    const ms_model *model = trace->model;
    const ms_layer *layer = &model->layers[l];
    uint32_t in[2] = {trace->input, trace->input};

    for (uint32_t k = 0; k < layer->n_in && k < 2; k++) {
        uint32_t from = model->edges[layer->in_at + k];
        in[k] = from == MS_NONE ? trace->input : w->value[from];
    }
    trace->layer = l;
    trace->pass = is_loss(layer) ? MS_LOSS : MS_FORWARD;
    return ms_layer_kinds[layer->kind].forward(trace, layer, in, &w->value[l]);
}

/* Variables whose last reader was position i. */
static void drop_dead(walk *w, uint32_t l, uint32_t i)
{
    const ms_model *model = w->trace->model;
    const ms_layer *layer = &model->layers[l];
    bool block_ends = i + 1 == model->n_layers ||
                      model->layers[model->order[i + 1]].block != layer->block;

    for (uint32_t k = 0; k < layer->n_in; k++) {
        uint32_t from = model->edges[layer->in_at + k];
        if (from == MS_NONE || w->last_use[from] != i)
            continue;
        w->last_use[from] = MS_NONE;
        ms_trace_drop(w->trace, w->value[from]);
    }
    if (!block_ends || layer->block == MS_NONE)
        return;
    /* The block's inputs, held until here. */
    for (uint32_t j = i + 1; j-- > 0;) {
        const ms_layer *inner = &model->layers[model->order[j]];
        if (inner->block != layer->block)
            break;
        for (uint32_t k = 0; k < inner->n_in; k++) {
            uint32_t from = model->edges[inner->in_at + k];
            if (from == MS_NONE || w->last_use[from] != i)
                continue;
            w->last_use[from] = MS_NONE;
            ms_trace_drop(w->trace, w->value[from]);
        }
    }
}

/* A unit ends at a cut point: all that follows sees what came before only
 * through this layer's output. */
static void open_unit(walk *w, uint32_t l)
{
    const ms_model *model = w->trace->model;
    uint32_t u = w->n_units++;

    w->unit_block[u] = model->layers[l].block;
    w->unit_name[u] = model->layers[l].name;
    w->trace->unit = u;
}

static ms_err run_layers(walk *w)
{
    const ms_model *model = w->trace->model;
    bool open = false;

    for (uint32_t i = 0; i < model->n_layers; i++) {
        uint32_t l = model->order[i];
        const ms_layer *layer = &model->layers[l];
        bool loss = is_loss(layer);
        if (!open || loss)
            open_unit(w, l);
        open = true;
        if (loss && w->loss_unit == MS_NONE)
            w->loss_unit = w->trace->unit;
        if (w->unit_block[w->trace->unit] != layer->block)
            w->unit_block[w->trace->unit] = MS_NONE;
        MS_TRY(run_layer(w, l));
        if (!loss) /* the training loop's variable keeps the output */
            drop_dead(w, l, i);
        if (model->cut[l])
            open = false;
    }
    return MS_OK;
}

/* ---- loss and backward --------------------------------------------------- */

static ms_err keep(ms_trace *trace, uint32_t tensor, uint32_t *capacity)
{
    ms_graph *g = &trace->graph;
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
static ms_err keep_outputs(walk *w, uint32_t loss_layer, uint32_t loss)
{
    ms_trace *trace = w->trace;
    const ms_model *model = trace->model;
    const ms_layer *layer = &model->layers[loss_layer];
    uint32_t capacity = 0;

    trace->graph.keep_to_step = trace->training->hold_output == MS_HOLD_STEP;
    if (layer->n_in > 0 && model->edges[layer->in_at] != MS_NONE) {
        uint32_t out = w->value[model->edges[layer->in_at]];
        if (trace->training->hold_output == MS_HOLD_NONE)
            ms_trace_drop(trace, out);
        else
            MS_TRY(keep(trace, out, &capacity));
    }
    return keep(trace, loss, &capacity);
}

/* loss / micro_batches, as code that accumulates gradients has it. */
static uint32_t scaled_loss(ms_trace *trace, uint32_t loss)
{
    if (trace->micro_batches == 1 || trace->err)
        return loss;
    uint32_t y = ms_pointwise_div_scalar(trace, loss);
    ms_trace_drop(trace, loss);
    return y;
}

static ms_err run_backward(walk *w)
{
    ms_trace *trace = w->trace;
    const ms_model *model = trace->model;
    uint32_t last = model->order[model->n_layers - 1];
    uint32_t loss = w->value[last];

    for (uint32_t i = model->n_layers; i-- > 0 && loss == MS_NONE;)
        loss = w->value[last = model->order[i]];
    if (loss != MS_NONE && is_loss(&model->layers[last])) {
        loss = scaled_loss(trace, loss);
        MS_TRY(trace->err);
        MS_TRY(keep_outputs(w, last, loss));
    } else if (loss != MS_NONE) {
        return ms_trace_fail(
            trace, &model->layers[last],
            "end the list with cross_entropy, mse_loss or mean",
            "the last layer \"%s\" is no loss", model->layers[last].name);
    }
    ms_optimizer_states(trace);
    if (trace->train && !trace->err)
        ms_autograd_run(trace, loss);
    return trace->err;
}

/* ---- the library's workspace --------------------------------------------- */

/* cuBLAS keeps one workspace per thread that multiplies matrices: one of the
 * forward thread, one of autograd's (specs/autograd-cuda.md rule 10). */
static void cublas_workspaces(ms_trace *trace)
{
    const char *const names[2] = {"forward:cublas_workspace",
                                  "backward:cublas_workspace"};
    bool multiplies = false;
    ms_graph *g = &trace->graph;

    for (uint32_t op = 0; op < g->n_ops; op++)
        multiplies |= strcmp(g->op_name[op], "aten::mm") == 0 ||
                      strcmp(g->op_name[op], "aten::addmm") == 0 ||
                      strcmp(g->op_name[op], "aten::bmm") == 0;
    if (trace->cpu || !multiplies)
        return;
    for (uint32_t i = 0; i < (trace->train ? 2u : 1u); i++) {
        uint32_t s = ms_trace_storage(trace, names[i],
                                      trace->device->cublas_workspace_bytes,
                                      MS_WORKSPACE, true);
        if (s != MS_NONE)
            g->storage_layer[s] = MS_NONE;
    }
}

/* ---- the whole ----------------------------------------------------------- */

ms_err ms_lower(const ms_model *model, const ms_training *training,
                const ms_device *device, uint32_t micro_batches,
                ms_arena *arena, ms_graph *graph, ms_fault *fault)
{
    ms_trace trace = {.model = model,
                      .training = training,
                      .device = device,
                      .arena = arena,
                      .fault = fault};
    walk w = {.trace = &trace, .loss_unit = MS_NONE};

    if (model->n_layers == 0)
        return ms_fail(fault, MS_EINPUT, model->name, "add a layer",
                       "the model has no layers");
    assert(micro_batches > 0);
    MS_TRY(open_trace(&trace, micro_batches));
    MS_TRY(open_walk(&w));
    MS_TRY(model_input(&trace));
    MS_TRY(run_layers(&w));
    MS_TRY(run_backward(&w));
    if (trace.train)
        ms_optimizer_step(&trace);
    cublas_workspaces(&trace);
    MS_TRY(trace.err);
    ms_finish finish = {.trace = &trace,
                        .n_units = w.n_units,
                        .loss_unit =
                            w.loss_unit == MS_NONE ? w.n_units : w.loss_unit,
                        .unit_block = w.unit_block,
                        .unit_name = w.unit_name};
    MS_TRY(ms_finish_graph(&finish, graph));
    assert(ms_graph_check(graph, fault) == MS_OK);
    return MS_OK;
}

/* ---- facts by layer ------------------------------------------------------ */

static void count_ops(const ms_graph *graph, ms_layer_facts *by_layer)
{
    for (uint32_t op = 0; op < graph->step_first; op++) {
        if (graph->op_layer[op] == MS_NONE)
            continue;
        ms_layer_facts *facts = &by_layer[graph->op_layer[op]];
        if (graph->op_pass[op] > MS_LOSS) {
            facts->backward_flops += graph->op_flops[op];
            continue;
        }
        facts->forward_flops += graph->op_flops[op];
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

/* All weights have one dtype: its size is bytes over elements. */
static void count_parameters(const ms_graph *graph, ms_layer_facts *by_layer)
{
    uint64_t bytes = 0;

    for (int sum = 1; sum >= 0; sum--)
        for (uint32_t s = 0; s < graph->n_persistent; s++) {
            if (graph->storage_category[s] != MS_PARAMETERS ||
                graph->storage_buffer[s])
                continue;
            if (sum)
                bytes += graph->storage_bytes[s];
            else
                by_layer[graph->storage_layer[s]].parameters +=
                    graph->storage_bytes[s] / (bytes / graph->parameters);
        }
}

ms_err ms_lower_facts(const ms_model *model, const ms_graph *graph,
                      ms_arena *arena, ms_layer_facts **facts, ms_fault *fault)
{
    ms_layer_facts *by_layer =
        ms_arena_take(arena, model->n_layers, sizeof *by_layer);
    ms_layer_facts *ordered =
        ms_arena_take(arena, model->n_layers, sizeof *ordered);

    if (!by_layer || !ordered)
        return ms_fail_nomem(fault);
    count_ops(graph, by_layer);
    if (graph->parameters > 0)
        count_parameters(graph, by_layer);
    for (uint32_t i = 0; i < model->n_layers; i++) {
        const ms_layer *layer = &model->layers[model->order[i]];
        ordered[i] = by_layer[model->order[i]];
        ordered[i].name = layer->name;
        ordered[i].type = ms_layer_kinds[layer->kind].type;
    }
    *facts = ordered;
    return MS_OK;
}
