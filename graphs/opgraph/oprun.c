/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The forward of an exported op graph, op after op, as they ran. */
#include "graphs/aten/aten.h"
#include "graphs/aten/reductions.h"
#include "graphs/json/index.h"
#include "graphs/layers/walk/layerroles.h"
#include "graphs/opgraph/opblocks.h"
#include "graphs/opgraph/opcast.h"
#include "graphs/opgraph/opdropout.h"
#include "graphs/opgraph/oplives.h"
#include "graphs/opgraph/opunknown.h"
#include "graphs/ops/ops.h"
#include "graphs/trace/forward.h"
#include "graphs/trace/opend.h"
#include "graphs/trace/trace.h"
#include "sim/graph.h"

#include <string.h>

#define N_NAMED 64u /* kernels whose names were made last */

typedef struct run {
    ms_trace *trace;
    const ms_opgraph *ops;
    ms_forward *forward;
    ms_arena walk;    /* of the forward alone */
    uint32_t *tensor; /* per tensor of the file: ours, or MS_NONE */
    uint32_t *made;   /* per storage of the file: its leaf, or MS_NONE */
    ms_oplives lives;
    uint32_t *in, *out; /* the node under way */
    uint32_t *read;     /* in, or its casts */
    ms_aten_call call;
    uint32_t *listed;   /* room for the inputs of a node and one more */
    uint32_t *whole;    /* per storage that ops write in place: the tensor of
                           ours that is no view, or MS_NONE */
    uint8_t *written;   /* per storage: do ops write it in place? */
    uint8_t *held;      /* per tensor: is it the model's output? */
    uint32_t alive;     /* activations that later nodes read */
    uint32_t *block_of; /* per module: block, or MS_NONE */
    ms_index rows;      /* of the op tables */
    struct named {
        const char *op, *name;
    } named[N_NAMED];
} run;

/* ---- what exists before the step ----------------------------------------- */

static void set_layout(ms_trace *trace, uint32_t tensor,
                       const ms_optensor *like)
{
    if (trace->err)
        return;
    ms_tensor *t = ms_trace_at(trace, tensor);
    t->n_dims = like->n_dims;
    t->dtype = like->dtype;
    memcpy(t->size, like->size, sizeof t->size);
    memcpy(t->stride, like->stride, sizeof t->stride);
}

/* A leaf: a parameter, buffer or input, by the first tensor that shows it. */
static uint32_t make_leaf(run *r, const ms_optensor *shown)
{
    ms_trace *trace = r->trace;
    const ms_opstorage *storage = &r->ops->storages[shown->storage];
    uint32_t t = MS_NONE;
    switch ((ms_opstorage_kind)storage->kind) {
    case MS_OPSTORAGE_PARAM:
        t = ms_trace_parameter(trace, storage->name, shown->n_dims,
                               shown->size);
        break;
    case MS_OPSTORAGE_BUFFER:
        t = ms_trace_buffer(trace, storage->name, shown->dtype, shown->n_dims,
                            shown->size);
        break;
    case MS_OPSTORAGE_INPUT:
        t = ms_trace_input(trace, storage->name, shown->dtype, shown->n_dims,
                           shown->size);
        break;
    case MS_OPSTORAGE_ACT:
        return MS_NONE;
    }
    if (trace->err)
        return MS_NONE;
    uint32_t s = ms_trace_at(trace, t)->storage;
    uint64_t times = storage->kind == MS_OPSTORAGE_INPUT
                         ? trace->settings->micro_batches
                         : 1;
    trace->graph->storage_bytes[s] = storage->bytes * times;
    trace->graph->storage_name[s] = storage->name;
    set_layout(trace, t, shown);
    return t;
}

/* Storages that no op reads still exist: parameters without gradient. */
static void make_unread(run *r, uint32_t storage)
{
    const ms_opstorage *s = &r->ops->storages[storage];
    const ms_oplayout layout = {.size = {(int64_t)(s->bytes / 4)},
                                .stride = {1}};
    ms_optensor flat = {.size = layout.size,
                        .stride = layout.stride,
                        .storage = storage,
                        .dtype = MS_FLOAT32,
                        .n_dims = 1};
    r->made[storage] = make_leaf(r, &flat);
}

static ms_err make_leaves(run *r)
{
    const ms_opgraph *ops = r->ops;
    uint8_t *output = ms_arena_take(&r->walk, ops->n_tensors, 1);
    uint32_t *shown =
        ms_arena_take_raw(&r->walk, ops->n_storages, sizeof(uint32_t));
    if (!output || !shown)
        return ms_fail_nomem(r->trace->fault);
    memset(shown, 0xff, ops->n_storages * sizeof(uint32_t));
    for (uint32_t n = 0; n < ops->n_nodes; n++)
        for (uint32_t k = 0; k < ops->nodes[n].n_out; k++)
            output[ops->nodes[n].out[k]] = 1;
    for (uint32_t t = ops->n_tensors; t-- > 0;)
        if (!output[t])
            shown[ops->tensors[t].storage] = t;
    r->trace->layer = MS_NONE;
    for (uint32_t s = 0; s < ops->n_storages; s++) {
        if (ops->storages[s].kind == MS_OPSTORAGE_ACT)
            continue;
        if (shown[s] == MS_NONE) {
            make_unread(r, s);
            continue;
        }
        r->made[s] = make_leaf(r, &ops->tensors[shown[s]]);
        r->tensor[shown[s]] = r->made[s];
    }
    return r->trace->err;
}

/* ---- one node ------------------------------------------------------------ */

static ms_err wrong(run *r, const ms_opnode *node, const char *hint,
                    const char *what)
{
    ms_layer at = {.name = node->op, .spot = node->spot};
    return ms_trace_fail(r->trace, &at, hint, "node %u, op %s.%s: %s",
                         node->number, node->name, node->overload, what);
}

static ms_err find_inputs(run *r, const ms_opnode *node)
{
    for (uint32_t i = 0; i < node->n_in; i++) {
        uint32_t id = node->in[i], t = r->tensor[id];
        uint32_t base = r->made[r->ops->tensors[id].storage];
        if (t == MS_NONE && base != MS_NONE &&
            r->ops->storages[r->ops->tensors[id].storage].kind !=
                MS_OPSTORAGE_ACT) {
            /* Another view of a leaf, such as a tied weight. */
            bool same = memcmp(ms_trace_at(r->trace, base)->size,
                               r->ops->tensors[id].size,
                               sizeof(int64_t[MS_MAX_DIMS])) == 0;
            t = same ? base : ms_trace_alias(r->trace, base);
            if (!same)
                set_layout(r->trace, t, &r->ops->tensors[id]);
            r->tensor[id] = t;
        }
        if (t == MS_NONE)
            return wrong(r, node, "nodes must be in the order they ran",
                         "it reads a tensor that no earlier node made");
        r->in[i] = t;
    }
    return MS_OK;
}

/* Does the op write into an input's storage or look at it? */
static uint32_t shares_with(const run *r, const ms_opnode *node, uint32_t k)
{
    uint32_t storage = r->ops->tensors[node->out[k]].storage;
    for (uint32_t i = 0; i < node->n_in; i++)
        if (r->ops->tensors[node->in[i]].storage == storage)
            return r->in[i];
    return MS_NONE;
}

static bool in_place(const ms_opnode *node)
{
    size_t n = strlen(node->op);
    return n > 0 && node->op[n - 1] == '_';
}

/* Its outputs share storage, but autograd takes them for new tensors. */
static bool is_unsafe(const ms_opnode *node)
{
    return strstr(node->op, "unsafe") != NULL;
}

/* Keeps the row of a tensor that later views may be written through. */
static void note_whole(run *r, uint32_t storage, uint32_t t)
{
    if (r->trace->err || !r->written[storage] || ms_trace_at(r->trace, t)->view)
        return;
    ms_trace_at(r->trace, t)->pins++;
    r->whole[storage] = t;
}

static void make_output(run *r, const ms_opnode *node, uint32_t k)
{
    ms_trace *trace = r->trace;
    const ms_optensor *shown = &r->ops->tensors[node->out[k]];
    uint32_t from = shares_with(r, node, k), t;
    uint8_t dtype = ms_opcast_output(trace, &r->call, k, from);
    if (from != MS_NONE) {
        t = ms_trace_alias(trace, from);
        if (!trace->err && in_place(node))
            ms_trace_at(trace, t)->view = ms_trace_at(trace, from)->view;
        else if (!trace->err && is_unsafe(node))
            ms_trace_at(trace, t)->view = false;
    } else {
        t = ms_trace_make(trace, k == 0 ? "out" : "out1", dtype, shown->n_dims,
                          shown->size);
        if (!trace->err)
            trace->graph->storage_bytes[ms_trace_at(trace, t)->storage] =
                r->ops->storages[shown->storage].bytes /
                ms_dtypes_bytes[shown->dtype] * ms_dtypes_bytes[dtype];
    }
    set_layout(trace, t, shown);
    if (!trace->err)
        ms_trace_at(trace, t)->dtype = dtype;
    note_whole(r, shown->storage, t);
    r->out[k] = r->tensor[node->out[k]] = t;
}

/* A node that only makes views launches nothing. */
static bool launches(const run *r, const ms_opnode *node)
{
    for (uint32_t k = 0; k < node->n_out; k++)
        if (shares_with(r, node, k) == MS_NONE)
            return true;
    return in_place(node);
}

/* What the tensor that the op writes in place is a view of, or MS_NONE.  A
 * detached view has no history to share. */
static uint32_t written_whole(const run *r, const ms_opnode *node)
{
    if (node->n_in == 0 || !in_place(node) ||
        !ms_trace_at(r->trace, r->in[0])->view)
        return MS_NONE;
    uint32_t whole = r->whole[r->ops->tensors[node->in[0]].storage];
    bool shared = whole != MS_NONE && ms_trace_needs(r->trace, whole) ==
                                          ms_trace_needs(r->trace, r->in[0]);
    return shared ? whole : MS_NONE;
}

/* A note of the exporter: another name of its input, or its cast. */
static ms_err run_note(run *r, const ms_opnode *node)
{
    const ms_opgraph *ops = r->ops;
    if (node->n_in != 1 || node->n_out != 1 ||
        ops->tensors[node->in[0]].storage != ops->tensors[node->out[0]].storage)
        return wrong(r, node, NULL, "it names one tensor once more");
    MS_TRY(find_inputs(r, node));
    r->out[0] = r->tensor[node->out[0]] = ms_opcast_note(
        r->trace, node->op, r->in[0], ops->tensors[node->out[0]].dtype);
    return r->trace->err;
}

/* "aten::addmm" for "addmm", made once for most of its nodes: equal names of
 * ops are one text.  NULL: no memory. */
static const char *name_kernel(run *r, const char *op)
{
    struct named *at = &r->named[((uintptr_t)op >> 4) % N_NAMED];
    if (at->op == op)
        return at->name;
    *at = (struct named){op, ms_arena_format(r->trace->arena, "aten::%s", op)};
    return at->name;
}

/* MS_WORK_NONE: it does not go by rows. */
static ms_op_work rows_of(const ms_aten_row *row)
{
    if (row && row->rule == &ms_norm_layer_norm_rule)
        return MS_WORK_ROWS_CENTRED;
    if (row && row->rule == &ms_loss_log_softmax_rule)
        return MS_WORK_ROWS_LOG;
    return row && row->rule == &ms_norm_softmax_rule ? MS_WORK_ROWS
                                                     : MS_WORK_NONE;
}

/* The op, with inputs that are what it reads. */
static ms_err run_kernel(run *r, const ms_opnode *node, const ms_aten_row *row)
{
    ms_trace *trace = r->trace;
    bool kernel = launches(r, node);
    ms_op_work rows = rows_of(row);
    r->call.whole = written_whole(r, node);
    if (kernel) {
        const char *name = name_kernel(r, node->op);
        if (!name)
            return ms_fail_nomem(trace->fault);
        ms_trace_begin(trace, name);
        for (uint32_t i = 0; i < node->n_in; i++)
            ms_trace_read(trace, r->read[i]);
    }
    /* The CPU's batch norm has its statistics before its result. */
    uint32_t first =
        row && row->rule == &ms_norm_batch_norm_rule && trace->settings->cpu;
    for (uint32_t i = 0; i < node->n_out && !trace->err; i++)
        make_output(r, node, (i + first) % node->n_out);
    if (kernel && !trace->settings->cpu && !trace->err)
        ms_reductions_scratch(trace, &r->call);
    double flops = node->flops > 0 ? node->flops : 0;
    if (kernel && rows != MS_WORK_NONE)
        ms_opend_rows(trace, flops, r->read[0], rows);
    else if (kernel)
        ms_trace_end(trace, flops, row && row->matrix);
    if (row)
        ms_aten_record(trace, row, &r->call);
    else
        ms_opunknown_record(trace, &r->call);
    return trace->err;
}

/* Before an op writes over what its gradient needs, autograd clones that: a
 * clone that no node reads and what it clones is written next. */
static bool is_saved_clone(const run *r, uint32_t n)
{
    const ms_opnode *node = &r->ops->nodes[n];
    return n + 1 < r->ops->n_nodes && node->n_in == 1 && node->n_out == 1 &&
           strcmp(node->op, "clone") == 0 &&
           r->lives.last_use[*node->out] == MS_NONE && in_place(node + 1) &&
           node[1].n_in > 0 && *node[1].in == *node->in;
}

static uint32_t clone_before(const run *r, const ms_opnode *node)
{
    uint32_t n = (uint32_t)(node - r->ops->nodes);
    return n > 0 && is_saved_clone(r, n - 1) ? r->tensor[*node[-1].out]
                                             : MS_NONE;
}

static ms_err run_node(run *r, const ms_opnode *node)
{
    const ms_aten_row *row =
        ms_atentable_find(&r->rows, node->op, node->overload);
    r->call.clone = MS_NONE;
    if (ms_opcast_is_note(node->op))
        return run_note(r, node);
    if (!row && r->trace->settings->training->unknown_op == 0)
        return wrong(r, node,
                     "--set graph.unknown_op=conservative keeps its inputs and "
                     "outputs;\na row of the tables in graphs/aten describes "
                     "it (memsim help ops)",
                     "no rule for this op");
    MS_TRY(find_inputs(r, node));
    r->call = (ms_aten_call){.ops = r->ops,
                             .node = node,
                             .in = r->in,
                             .out = r->out,
                             .made = r->tensor,
                             .listed = r->listed,
                             .clone = clone_before(r, node)};
    const char *objection =
        row ? ms_atentable_objection(row, &r->call, r->trace->scratch) : NULL;
    if (objection)
        return wrong(r, node, NULL, objection);
    ms_opcast_inputs(r->trace, &r->call, r->read);
    r->call.in = r->read;
    MS_TRY(run_kernel(r, node, row));
    ms_opcast_drop(r->trace, &r->call);
    return r->trace->err;
}

/* ---- lifetimes and units ------------------------------------------------- */

static bool is_act(const run *r, uint32_t t)
{
    return r->ops->storages[r->ops->tensors[t].storage].kind ==
           MS_OPSTORAGE_ACT;
}

/* Is it a parameter, buffer or input, which no node of the graph ends?  A cast
 * of a parameter is made by a node, and is not. */
static bool is_leaf(const run *r, uint32_t t)
{
    const ms_trace *trace = r->trace;
    return trace->err ||
           trace->counts[ms_trace_at(trace, t)->storage].persistent;
}

/* The variables `out` and `loss` stay; a clone stays until the next node has
 * saved it. */
static void drop_dead(run *r, uint32_t n)
{
    const ms_opnode *node = &r->ops->nodes[n];
    const ms_oplives *lives = &r->lives;
    ms_trace_drop(r->trace, r->call.clone);
    if (is_saved_clone(r, n))
        r->held[*node->out] = 1;
    for (uint32_t i = lives->at[n]; i < lives->at[n + 1]; i++) {
        uint32_t id = lives->list[i], t = r->tensor[id];
        if (t != MS_NONE && !r->held[id] && !is_leaf(r, t))
            ms_trace_drop(r->trace, t);
    }
    for (uint32_t k = 0; k < node->n_out; k++) {
        uint32_t id = node->out[k];
        bool loss = n + 1 == r->ops->n_nodes && k == 0;
        if (lives->until[id] == MS_NONE && !loss && !r->held[id])
            ms_trace_drop(r->trace, r->tensor[id]);
    }
}

/* How many activations with a gradient later nodes still read. */
static void count_alive(run *r, uint32_t n)
{
    const ms_opnode *node = &r->ops->nodes[n];
    for (uint32_t k = 0; k < node->n_out; k++) {
        uint32_t s = r->ops->tensors[node->out[k]].storage;
        bool fresh = shares_with(r, node, k) == MS_NONE;
        if (fresh && ms_trace_needs(r->trace, r->out[k]) &&
            r->lives.last_read[s] != MS_NONE && r->lives.last_read[s] > n)
            r->alive++;
    }
    for (uint32_t i = 0; i < node->n_in; i++) {
        uint32_t s = r->ops->tensors[node->in[i]].storage;
        if (r->lives.last_read[s] != n || !is_act(r, node->in[i]) ||
            !ms_trace_needs(r->trace, r->in[i]))
            continue;
        r->lives.last_read[s] = MS_NONE;
        r->alive--;
    }
}

static void open_unit(run *r, uint32_t n)
{
    ms_forward *forward = r->forward;
    const ms_opnode *node = &r->ops->nodes[n];
    uint32_t u = forward->n_units++;
    forward->unit_block[u] = r->block_of[node->module];
    forward->unit_name[u] = r->ops->modules[node->module];
    r->trace->unit = u;
}

/* The tensors that the model hands to the loss. */
static ms_err find_outputs(run *r)
{
    const ms_opgraph *ops = r->ops;
    ms_forward *forward = r->forward;
    uint32_t n_in = 0;
    for (uint32_t n = ops->loss_start; n < ops->n_nodes; n++)
        n_in += ops->nodes[n].n_in;
    forward->outputs =
        ms_arena_take_raw(r->trace->scratch, n_in, sizeof(uint32_t));
    if (!forward->outputs)
        return ms_fail_nomem(r->trace->fault);
    for (uint32_t n = ops->loss_start; n < ops->n_nodes; n++)
        for (uint32_t i = 0; i < ops->nodes[n].n_in; i++) {
            uint32_t t = ops->nodes[n].in[i];
            if (!is_act(r, t) || r->tensor[t] == MS_NONE || r->held[t])
                continue;
            r->held[t] = 1;
            forward->outputs[forward->n_outputs++] = r->tensor[t];
        }
    return MS_OK;
}

static ms_err run_nodes(run *r)
{
    ms_trace *trace = r->trace;
    const ms_opgraph *ops = r->ops;
    bool open = false;
    for (uint32_t n = 0; n < ops->n_nodes; n++) {
        const ms_opnode *node = &ops->nodes[n];
        bool loss = n == ops->loss_start;
        if (loss)
            MS_TRY(find_outputs(r));
        if (!open || loss)
            open_unit(r, n);
        open = true;
        if (loss)
            r->forward->loss_unit = trace->unit;
        uint32_t *block = &r->forward->unit_block[trace->unit];
        if (*block != r->block_of[node->module])
            *block = MS_NONE;
        trace->layer = node->module;
        trace->pass = n >= ops->loss_start ? MS_LOSS : MS_FORWARD;
        MS_TRY(run_node(r, node));
        count_alive(r, n);
        drop_dead(r, n);
        /* Where later nodes read one activation alone, the DAG is cut: the unit
         * ends. */
        if (r->alive == 1 && n < ops->loss_start &&
            !ms_opcast_is_note(node->op))
            open = false;
    }
    return trace->err;
}

/* ---- the whole ----------------------------------------------------------- */

static ms_err open_run(run *r)
{
    ms_arena *arena = r->trace->arena, *walk = &r->walk;
    const ms_opgraph *ops = r->ops;
    size_t word = sizeof(uint32_t);
    uint32_t most = 1;
    for (uint32_t n = 0; n < ops->n_nodes; n++) {
        most = ops->nodes[n].n_in > most ? ops->nodes[n].n_in : most;
        most = ops->nodes[n].n_out > most ? ops->nodes[n].n_out : most;
    }
    r->tensor = ms_arena_take_raw(walk, ops->n_tensors, word);
    r->made = ms_arena_take_raw(walk, ops->n_storages, word);
    r->in = ms_arena_take(walk, most, word);
    r->read = ms_arena_take(walk, most, word);
    r->out = ms_arena_take(walk, most, word);
    r->listed = ms_arena_take(walk, most + 1, word);
    r->whole = ms_arena_take_raw(walk, ops->n_storages, word);
    r->written = ms_arena_take(walk, ops->n_storages, 1);
    r->held = ms_arena_take(walk, ops->n_tensors, 1);
    r->block_of = ms_arena_take_raw(walk, ops->n_modules, word);
    r->forward->unit_block = ms_arena_take_raw(arena, ops->n_nodes, word);
    r->forward->unit_name =
        ms_arena_take_raw(arena, ops->n_nodes, sizeof(char *));
    if (!r->tensor || !r->made || !r->in || !r->read || !r->out || !r->listed ||
        !r->whole || !r->written || !r->held || !r->block_of ||
        !r->forward->unit_block || !r->forward->unit_name)
        return ms_fail_nomem(r->trace->fault);
    memset(r->tensor, 0xff, ops->n_tensors * word);
    memset(r->made, 0xff, ops->n_storages * word);
    memset(r->whole, 0xff, ops->n_storages * word);
    for (uint32_t n = 0; n < ops->n_nodes; n++)
        if (in_place(&ops->nodes[n]) && ops->nodes[n].n_in > 0)
            r->written[ops->tensors[ops->nodes[n].in[0]].storage] = 1;
    r->trace->graph->n_layers = ops->n_modules;
    r->trace->graph->layer_name = ops->modules;
    MS_TRY(ms_layerroles_modules(r->trace));
    return ms_opblocks_find(r->trace, ops, r->block_of);
}

/* Where no unit lies within one block, the names say nothing about where the
 * DAG can be cut: each unit is then a block. */
static void forget_blocks(run *r)
{
    for (uint32_t u = 0; u < r->forward->n_units; u++)
        if (r->forward->unit_block[u] != MS_NONE)
            return;
    r->trace->graph->n_blocks = 0;
}

static ms_err run_forward(run *r)
{
    ms_trace *trace = r->trace;
    MS_TRY(ms_atentable_open(&r->rows, &r->walk, trace->fault));
    MS_TRY(open_run(r));
    if (trace->settings->training->unknown_op != 0)
        MS_TRY(ms_opunknown_list(trace, r->ops, &r->rows));
    MS_TRY(ms_oplives_find(r->ops, &r->walk, &r->lives, trace->fault));
    MS_TRY(make_leaves(r));
    MS_TRY(run_nodes(r));
    forget_blocks(r);
    const ms_opnode *last = &r->ops->nodes[r->ops->n_nodes - 1];
    if (last->n_out > 0)
        r->forward->loss = r->tensor[last->out[0]];
    return MS_OK;
}

ms_err ms_oprun_forward(ms_trace *trace, ms_forward *forward)
{
    run r = {.trace = trace,
             .ops = trace->settings->model->ops,
             .forward = forward,
             .walk = {.limit_bytes = trace->scratch->limit_bytes}};
    if (!trace->settings->cpu)
        MS_TRY(ms_opdropout_fuse(trace->settings->model->ops, trace->scratch,
                                 &r.ops, trace->fault));
    ms_err err = run_forward(&r);
    ms_arena_free(&r.walk);
    return err;
}
