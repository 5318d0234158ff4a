/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The graph under construction: storages, tensors, ops, nodes. */
#include "graphs/trace/trace.h"
#include "graphs/trace/columns.h"
#include "graphs/trace/lasting.h"
#include "graphs/trace/savelist.h"
#include "sim/graph.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* ---- failure ------------------------------------------------------------- */

ms_err ms_trace_fail(ms_trace *trace, const ms_layer *layer, const char *hint,
                     const char *format, ...)
{
    char what[480], where[256];
    const ms_model *model = trace->settings->model;
    va_list args;
    if (trace->err)
        return trace->err;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    if (layer && layer->spot.line)
        snprintf(where, sizeof where, "%s:%u:%u", model->path, layer->spot.line,
                 layer->spot.column);
    else
        snprintf(where, sizeof where, "%s", model->name);
    trace->err = ms_fail(trace->fault, MS_EINPUT, where, hint, "%s", what);
    return trace->err;
}

ms_err ms_trace_reserve(ms_trace *trace, uint32_t storages, uint32_t ops)
{
    ms_columns_storages(trace, storages);
    ms_columns_ops(trace, ops);
    return trace->err;
}

/* ---- storages ------------------------------------------------------------ */

/* Levels are sums of these: none may overflow. */
#define MOST_BYTES (UINT64_C(1) << 62)

uint32_t ms_trace_storage(ms_trace *trace, const char *role, uint64_t bytes,
                          uint8_t category, bool persistent)
{
    ms_graph *g = trace->graph;
    if (trace->err || !ms_columns_storages(trace, g->n_storages + 1))
        return MS_NONE;
    if (__builtin_add_overflow(trace->all_bytes, bytes, &trace->all_bytes) ||
        trace->all_bytes > MOST_BYTES) {
        ms_trace_fail(trace, NULL, "make the batch or the model smaller",
                      "the tensors of a step have more than 2^62 bytes");
        return MS_NONE;
    }
    uint32_t s = g->n_storages++;
    g->storage_bytes[s] = bytes;
    g->storage_category[s] = category;
    g->storage_at_start[s] = persistent;
    g->storage_maker[s] = MS_NONE;
    g->storage_local_end[s] = MS_NONE;
    g->storage_saved_end[s] = MS_NONE;
    g->storage_grad[s] = MS_NONE;
    g->storage_buffer[s] = 0;
    g->storage_layer[s] = trace->layer;
    g->storage_name[s] = role;
    trace->counts[s] = (ms_storage_count){.persistent = persistent};
    return s;
}

static bool new_chunk(ms_trace *trace)
{
    ms_chunk *chunk = ms_columns_take(trace, 1, sizeof *chunk);
    if (!chunk || !ms_columns_grow(trace, trace->scratch, &trace->chunks,
                                   &trace->chunks_capacity, trace->n_chunks + 1,
                                   sizeof(void *)))
        return false;
    trace->chunks[trace->n_chunks++] = chunk;
    return true;
}

static uint32_t new_tensor(ms_trace *trace)
{
    static const ms_tensor fresh = {
        .refs = 1, .node = MS_NONE, .parameter = MS_NONE};
    uint32_t t = trace->free_tensor;
    if (t == MS_NONE && trace->n_tensors == trace->n_chunks * MS_CHUNK &&
        !new_chunk(trace))
        return MS_NONE;
    if (t == MS_NONE)
        t = trace->n_tensors++;
    ms_tensor *tensor = &trace->chunks[t / MS_CHUNK]->row[t % MS_CHUNK];
    if (t == trace->free_tensor)
        trace->free_tensor = tensor->storage;
    *tensor = fresh;
    return t;
}

/* Neither references nor nodes name it: its row is free.  Free rows are
 * chained through storage. */
static void free_tensor(ms_trace *trace, uint32_t t, ms_tensor *tensor)
{
    if (tensor->refs + tensor->pins > 0)
        return;
    tensor->storage = trace->free_tensor;
    trace->free_tensor = t;
}

/* Sizes of a tensor and row-major strides; false on overflow. */
static bool set_dims(ms_tensor *tensor, uint32_t n_dims, const int64_t *dims)
{
    int64_t stride = 1;
    assert(n_dims <= MS_MAX_DIMS);
    tensor->n_dims = (uint8_t)n_dims;
    for (uint32_t d = n_dims; d-- > 0;) {
        tensor->size[d] = dims[d];
        tensor->stride[d] = stride;
        if (__builtin_mul_overflow(stride, dims[d], &stride))
            return false;
    }
    return stride <= INT64_MAX / 16; /* then its bytes fit, too */
}

static uint32_t tensor_of(ms_trace *trace, uint8_t dtype, uint32_t n_dims,
                          const int64_t *dims)
{
    if (trace->err)
        return MS_NONE;
    uint32_t t = new_tensor(trace);
    if (t == MS_NONE)
        return t;
    ms_tensor *tensor = ms_trace_at(trace, t);
    tensor->dtype = dtype;
    if (!set_dims(tensor, n_dims, dims)) {
        ms_trace_fail(trace, NULL, "make the batch or the model smaller",
                      "a tensor of %s has more than 2^59 elements",
                      trace->graph->layer_name[trace->layer]);
        return MS_NONE;
    }
    return t;
}

static uint32_t persistent(ms_trace *trace, const char *role, uint8_t dtype,
                           uint32_t n_dims, const int64_t *dims)
{
    uint32_t t = tensor_of(trace, dtype, n_dims, dims);
    if (t == MS_NONE)
        return t;
    uint64_t bytes = ms_trace_bytes(ms_trace_at(trace, t));
    uint32_t s = ms_trace_storage(trace, role, bytes, MS_PARAMETERS, true);
    ms_trace_at(trace, t)->storage = s;
    ms_lasting_note(trace, t);
    return trace->err ? MS_NONE : t;
}

uint32_t ms_trace_parameter(ms_trace *trace, const char *role, uint32_t n_dims,
                            const int64_t *dims)
{
    uint32_t there = ms_lasting_next(trace);
    if (there != MS_NONE)
        return there;
    uint32_t t = persistent(trace, role, trace->weight_dtype, n_dims, dims);
    if (t == MS_NONE ||
        !ms_columns_grow(trace, trace->scratch, &trace->parameters,
                         &trace->parameters_capacity, trace->n_parameters + 1,
                         sizeof *trace->parameters))
        return MS_NONE;
    uint32_t p = trace->n_parameters++;
    ms_tensor *tensor = ms_trace_at(trace, t);
    tensor->requires_grad = trace->settings->train && !trace->frozen;
    tensor->parameter = p;
    trace->parameters[p] =
        (ms_parameter){.tensor = t,
                       .storage = tensor->storage,
                       .grad_storage = MS_NONE,
                       .sum = MS_NONE,
                       .master = MS_NONE,
                       .host_grad = MS_NONE,
                       .next = MS_NONE,
                       .kept = {MS_NONE, MS_NONE, MS_NONE},
                       .original = MS_NONE,
                       .layer = trace->layer,
                       .cast = MS_NONE,
                       .copy = {MS_NONE, MS_NONE},
                       .grad = MS_NONE,
                       .ranks = trace->parts > 1 ? trace->parts : 1,
                       .elements = ms_trace_elements(tensor)};
    for (uint32_t i = 0; i < MS_MOST_STATES; i++)
        trace->parameters[p].state[i] = MS_NONE;
    return t;
}

uint32_t ms_trace_buffer(ms_trace *trace, const char *role, uint8_t dtype,
                         uint32_t n_dims, const int64_t *dims)
{
    uint32_t there = ms_lasting_next(trace);
    if (there != MS_NONE)
        return there;
    uint32_t t = persistent(trace, role, dtype, n_dims, dims);
    if (t != MS_NONE)
        trace->graph->storage_buffer[ms_trace_at(trace, t)->storage] =
            MS_MODEL_BUFFER;
    return t;
}

uint32_t ms_trace_input(ms_trace *trace, const char *role, uint8_t dtype,
                        uint32_t n_dims, const int64_t *dims)
{
    uint32_t there = ms_lasting_next(trace);
    if (there != MS_NONE)
        return there;
    uint32_t t = persistent(trace, role, dtype, n_dims, dims);
    if (t != MS_NONE) {
        uint32_t s = ms_trace_at(trace, t)->storage;
        trace->graph->storage_category[s] = MS_INPUTS;
        if (!trace->kernels.hooks->one_batch_at_a_time)
            trace->graph->storage_bytes[s] *= trace->settings->micro_batches;
    }
    return t;
}

/* ---- ops ----------------------------------------------------------------- */

void ms_trace_begin(ms_trace *trace, const char *name)
{
    ms_graph *g = trace->graph;
    if (trace->err || !ms_columns_ops(trace, g->n_ops + 1))
        return;
    uint32_t op = g->n_ops++;
    g->op_name[op] = name;
    g->op_pass[op] = trace->pass;
    g->op_flags[op] = trace->op_flags;
    g->op_stream[op] = MS_STREAM_COMPUTE;
    g->op_meets[op] = 0;
    g->op_unit[op] = trace->unit;
    g->op_layer[op] = trace->layer;
    g->op_node[op] = trace->node_now;
    g->op_flops[op] = 0;
    g->op_read_bytes[op] = g->op_write_bytes[op] = g->op_ns[op] = 0;
    trace->ends[op] = (ms_op_end){.work = MS_WORK_NONE};
    g->in_at[op] = trace->n_in;
    g->out_at[op] = trace->n_out;
    g->drop_at[op] = trace->n_drop;
}

void ms_trace_read_storage(ms_trace *trace, uint32_t storage, uint64_t bytes)
{
    ms_graph *g = trace->graph;
    if (trace->err ||
        !ms_columns_grow(trace, trace->arena, &g->in, &trace->in_capacity,
                         trace->n_in + 1, sizeof *g->in))
        return;
    g->in[trace->n_in++] = storage;
    g->op_read_bytes[g->n_ops - 1] += bytes;
}

void ms_trace_read(ms_trace *trace, uint32_t tensor)
{
    if (trace->err || tensor == MS_NONE)
        return;
    const ms_tensor *read = ms_trace_at(trace, tensor);
    ms_trace_read_storage(trace, read->storage, ms_trace_bytes(read));
}

void ms_trace_begin_backward(ms_trace *trace, const ms_node *node,
                             uint32_t grad)
{
    ms_trace_begin(trace, node->rule->op);
    ms_trace_read(trace, grad);
    for (uint32_t i = 0; i < node->n_saved; i++)
        ms_trace_read(trace, node->saved[i]);
}

void ms_trace_out(ms_trace *trace, uint32_t storage)
{
    ms_graph *g = trace->graph;
    if (trace->err ||
        !ms_columns_grow(trace, trace->arena, &g->out, &trace->out_capacity,
                         trace->n_out + 1, sizeof *g->out))
        return;
    g->out[trace->n_out++] = storage;
    g->storage_maker[storage] = g->n_ops - 1;
}

uint32_t ms_trace_make_storage(ms_trace *trace, const char *role,
                               uint64_t bytes)
{
    uint32_t s = ms_trace_storage(trace, role, bytes, MS_TEMPORARIES, false);
    if (s == MS_NONE)
        return s;
    trace->counts[s].tensors = 1;
    trace->graph->op_write_bytes[trace->graph->n_ops - 1] += bytes;
    ms_trace_out(trace, s);
    return s;
}

uint32_t ms_trace_make(ms_trace *trace, const char *role, uint8_t dtype,
                       uint32_t n_dims, const int64_t *dims)
{
    uint32_t t = tensor_of(trace, dtype, n_dims, dims);
    if (t == MS_NONE)
        return t;
    ms_tensor *tensor = ms_trace_at(trace, t);
    uint32_t width = ms_dtypes_bytes[dtype], op = trace->graph->n_ops - 1;
    tensor->storage =
        ms_trace_make_storage(trace, role, ms_trace_bytes(tensor));
    if (width > trace->ends[op].m)
        trace->ends[op].m = width;
    trace->ends[op].n++;
    return trace->err ? MS_NONE : t;
}

uint32_t ms_trace_make_like(ms_trace *trace, const char *role, uint32_t tensor)
{
    if (trace->err)
        return MS_NONE;
    const ms_tensor *like = ms_trace_at(trace, tensor);
    return ms_trace_make(trace, role, like->dtype, like->n_dims, like->size);
}

void ms_trace_workspace(ms_trace *trace, uint64_t bytes)
{
    uint32_t s =
        ms_trace_storage(trace, "workspace", bytes, MS_WORKSPACE, false);
    if (s != MS_NONE)
        ms_trace_out(trace, s);
}

void ms_trace_end(ms_trace *trace, double flops, bool matrix)
{
    ms_graph *g = trace->graph;
    if (trace->err)
        return;
    uint32_t op = g->n_ops - 1;
    g->op_flops[op] = flops;
    g->op_flags[op] |= matrix ? MS_OP_MATRIX : 0;
    trace->ends[op] =
        (ms_op_end){.storages = g->n_storages,
                    .m = trace->ends[op].m,
                    .n = trace->ends[op].n,
                    .work = matrix ? MS_WORK_MATRIX : MS_WORK_PLAIN};
}

uint32_t ms_trace_alias(ms_trace *trace, uint32_t tensor)
{
    if (trace->err)
        return MS_NONE;
    uint32_t t = new_tensor(trace);
    if (t == MS_NONE)
        return t;
    ms_tensor *alias = ms_trace_at(trace, t);
    *alias = *ms_trace_at(trace, tensor);
    alias->refs = 1;
    alias->pins = 0;
    alias->view = true;
    alias->node = MS_NONE;
    alias->parameter = MS_NONE;
    alias->requires_grad = false;
    trace->counts[alias->storage].tensors++;
    return t;
}

/* ---- references ---------------------------------------------------------- */

static void add_drop(ms_trace *trace, uint32_t storage, uint32_t saved)
{
    ms_graph *g = trace->graph;
    if (!ms_columns_grow(trace, trace->arena, &g->drop, &trace->drop_capacity,
                         trace->n_drop + 1, sizeof *g->drop))
        return;
    uint32_t *end =
        saved ? &g->storage_saved_end[storage] : &g->storage_local_end[storage];
    *end = g->n_ops - 1;
    g->drop[trace->n_drop++] = MS_DROP(storage, saved);
}

void ms_trace_ref(ms_trace *trace, uint32_t tensor)
{
    if (!trace->err)
        ms_trace_at(trace, tensor)->refs++;
}

void ms_trace_drop(ms_trace *trace, uint32_t tensor)
{
    if (trace->err || tensor == MS_NONE)
        return;
    ms_tensor *dying = ms_trace_at(trace, tensor);
    uint32_t s = dying->storage;
    assert(dying->refs > 0);
    if (--dying->refs > 0)
        return;
    free_tensor(trace, tensor, dying);
    ms_trace_drop_storage(trace, s);
}

uint32_t ms_trace_rebind(ms_trace *trace, uint32_t old, uint32_t by)
{
    ms_trace_drop(trace, old);
    return by;
}

void ms_trace_end_saves(ms_trace *trace, uint32_t storage, uint32_t n)
{
    ms_storage_count *count = &trace->counts[storage];
    if (trace->err || count->persistent || n == 0)
        return;
    count->saves -= n;
    if (count->saves == 0)
        add_drop(trace, storage, MS_DROP_SAVED);
}

ms_given *ms_trace_given(const ms_trace *trace, uint32_t storage)
{
    ms_given *it = trace->given, *end = it + trace->n_given;
    while (it < end && it->storage != storage)
        it++;
    return it < end ? it : NULL;
}

/* What is given away ends with the last of the tensors made for it. */
static void end_given(ms_trace *trace, uint32_t storage, uint32_t tensors)
{
    ms_given *it = ms_trace_given(trace, storage);
    if (it == NULL || tensors > it->others)
        return;
    uint32_t saves = it->saves;
    *it = trace->given[--trace->n_given];
    ms_trace_end_saves(trace, storage, saves);
}

void ms_trace_drop_storage(ms_trace *trace, uint32_t storage)
{
    if (trace->err || storage == MS_NONE)
        return;
    ms_storage_count *count = &trace->counts[storage];
    if (count->persistent)
        return;
    /* The variables of forward may have ended long ago. */
    if (--count->tensors == 0 &&
        trace->graph->storage_local_end[storage] == MS_NONE)
        add_drop(trace, storage, 0);
    if (trace->n_given > 0)
        end_given(trace, storage, count->tensors);
}

void ms_trace_end_storage(ms_trace *trace, uint32_t storage)
{
    if (!trace->err)
        add_drop(trace, storage, 0);
}

/* ---- autograd nodes ------------------------------------------------------ */

bool ms_trace_needs(const ms_trace *trace, uint32_t tensor)
{
    return tensor != MS_NONE && ms_trace_at(trace, tensor)->requires_grad;
}

static void add_edge(ms_trace *trace, ms_node *node, uint32_t i, uint32_t input)
{
    node->input[i] = input;
    node->needs[i] = ms_trace_needs(trace, input);
    if (input == MS_NONE)
        return;
    ms_tensor *tensor = ms_trace_at(trace, input);
    tensor->pins++;
    if (node->needs[i] && tensor->parameter != MS_NONE)
        trace->parameters[tensor->parameter].uses++;
}

/* Most nodes save at most so many tensors. */
#define FIRST_SAVES 3u

/* A node with its lists, not filled: in one piece, the flags last. */
static ms_node *open_node(ms_trace *trace, uint32_t n_inputs,
                          uint32_t n_outputs)
{
    size_t words = (size_t)n_inputs + 2 * (size_t)n_outputs + FIRST_SAVES;
    if (trace->err ||
        !ms_columns_grow(trace, trace->scratch, &trace->nodes,
                         &trace->nodes_capacity, trace->n_nodes + 1,
                         sizeof *trace->nodes))
        return NULL;
    uint32_t *list = ms_columns_take(
        trace, 1, words * sizeof *list + n_inputs * sizeof(bool));
    if (!list)
        return NULL;
    ms_node *node = &trace->nodes[trace->n_nodes++];
    *node = (ms_node){.n_inputs = n_inputs,
                      .n_outputs = n_outputs,
                      .input = list,
                      .grad = list + n_inputs,
                      .output = list + n_inputs + n_outputs,
                      .saved = list + n_inputs + 2 * (size_t)n_outputs,
                      .saved_capacity = FIRST_SAVES,
                      .first_save = trace->graph->n_saves,
                      .needs = (bool *)(list + words)};
    if (trace->most_inputs < n_inputs)
        trace->most_inputs = n_inputs;
    return node;
}

uint32_t ms_trace_node_always(ms_trace *trace, const ms_rule *rule,
                              const uint32_t *inputs, uint32_t n_inputs,
                              const uint32_t *outputs, uint32_t n_outputs)
{
    ms_node *node = open_node(trace, n_inputs, n_outputs);
    if (!node)
        return MS_NONE;
    uint32_t n = trace->n_nodes - 1;
    node->rule = rule;
    node->layer = trace->layer;
    node->unit = trace->unit;
    for (uint32_t i = 0; i < n_inputs; i++)
        add_edge(trace, node, i, inputs[i]);
    for (uint32_t i = 0; i < n_outputs; i++) {
        ms_tensor *out = ms_trace_at(trace, outputs[i]);
        node->grad[i] = MS_NONE;
        /* A node with one output runs only with its gradient; one with several
         * may lack some, and makes zeros of the shapes of those outputs. */
        node->output[i] = n_outputs > 1 ? outputs[i] : MS_NONE;
        out->pins += n_outputs > 1;
        out->requires_grad = true;
        out->node = n;
        out->output = i;
    }
    return n;
}

uint32_t ms_trace_node(ms_trace *trace, const ms_rule *rule,
                       const uint32_t *inputs, uint32_t n_inputs,
                       const uint32_t *outputs, uint32_t n_outputs)
{
    bool needed = false;
    if (trace->err || trace->keeps_no_graph)
        return MS_NONE;
    for (uint32_t i = 0; i < n_inputs; i++)
        needed |= ms_trace_needs(trace, inputs[i]);
    if (!needed)
        return MS_NONE;
    return ms_trace_node_always(trace, rule, inputs, n_inputs, outputs,
                                n_outputs);
}

void ms_trace_save(ms_trace *trace, uint32_t node, uint32_t tensor)
{
    if (trace->err || node == MS_NONE)
        return;
    ms_node *saver = &trace->nodes[node];
    ms_tensor *saved = ms_trace_at(trace, tensor);
    uint32_t s = saved->storage;
    if (!ms_columns_grow(trace, trace->scratch, &saver->saved,
                         &saver->saved_capacity, saver->n_saved + 1,
                         sizeof *saver->saved))
        return;
    saved->pins++;
    saver->saved[saver->n_saved++] = tensor;
    if (trace->inner != NULL) { /* see inner.h */
        if (saved->refs++ == 0)
            trace->counts[s].tensors++;
        return;
    }
    ms_savelist_add(trace, node, tensor);
    if (trace->counts[s].persistent)
        return;
    trace->counts[s].saves++;
    trace->graph->storage_category[s] = MS_ACTIVATIONS;
}

static void unpin(ms_trace *trace, uint32_t tensor)
{
    if (tensor == MS_NONE)
        return;
    ms_tensor *pinned = ms_trace_at(trace, tensor);
    pinned->pins--;
    free_tensor(trace, tensor, pinned);
}

void ms_trace_unpin(ms_trace *trace, const ms_node *node)
{
    for (uint32_t i = 0; i < node->n_inputs; i++)
        unpin(trace, node->input[i]);
    for (uint32_t i = 0; i < node->n_outputs; i++)
        unpin(trace, node->output[i]);
    for (uint32_t i = 0; i < node->n_saved; i++)
        unpin(trace, node->saved[i]);
}
