/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "graphs/layers/walk/mlptiles.h"
#include "graphs/formats/precisions.h"
#include "graphs/layertypes.h"
#include "graphs/ops/ops.h"
#include "graphs/trace/columns.h"
#include "graphs/trace/inner.h"
#include "graphs/trace/lasting.h"
#include "graphs/trace/trace.h"
#include "sim/graph.h"
#include "sim/kinds.h"

#include <string.h>

#define TOKENS 1u /* the dimension of [batch, sequence, width] */

typedef struct mlp {
    uint32_t n;      /* layers; 0: no MLP begins here */
    uint32_t source; /* the layer whose output it reads */
    bool frozen;     /* what it makes is */
    ms_lasting *lasting;
} mlp;

struct ms_mlptiles {
    mlp *at;           /* per place of the model's order */
    uint32_t *place;   /* per layer */
    uint32_t *readers; /* per layer: how many inputs it is */
    ms_layerrun run;   /* of the piece under way */
};

/* ---- which layers -------------------------------------------------------- */

static const ms_layer *layer_at(const ms_trace *trace, uint32_t place)
{
    const ms_model *model = trace->settings->model;
    return &model->layers[model->order[place]];
}

static uint8_t role_at(const ms_trace *trace, uint32_t place)
{
    return trace->graph->layer_role[trace->settings->model->order[place]];
}

static bool is_product(uint8_t role)
{
    return role == MS_ROLE_PROJECTION_IN || role == MS_ROLE_GATE ||
           role == MS_ROLE_PROJECTION_OUT;
}

static bool is_type(const ms_layer *layer, const char *type)
{
    return strcmp(layer->kind->type, type) == 0;
}

/* Does the layer give halves of the channels of [batch, sequence, channels]? */
static bool splits_channels(const ms_layer *layer)
{
    const ms_value *dim = ms_layertypes_field(layer, "dim");
    return is_type(layer, "split") && dim != NULL && dim->i == 1;
}

/* A product whose weight is its own, or what works token by token without one.
 */
static bool belongs(const ms_trace *trace, uint32_t place)
{
    const ms_layer *layer = layer_at(trace, place);
    uint8_t role = role_at(trace, place);
    const ms_value *tied = ms_layertypes_field(layer, "tied");
    if (is_product(role))
        return tied == NULL || tied->s == NULL || *tied->s == '\0';
    if (role == MS_ROLE_ACTIVATION)
        return !is_type(layer, "rotary") && !is_type(layer, "prelu");
    return role == MS_ROLE_GATED || role == MS_ROLE_DROPOUT ||
           is_type(layer, "cast") || splits_channels(layer);
}

/* How many inputs in [first, end) the layer is. */
static uint32_t n_readers(const ms_trace *trace, uint32_t l, uint32_t first,
                          uint32_t end)
{
    const ms_model *model = trace->settings->model;
    uint32_t n = 0;
    for (uint32_t i = first; i < end; i++) {
        const ms_layer *layer = layer_at(trace, i);
        for (uint32_t k = 0; k < layer->n_in; k++)
            n += model->edges[layer->in_at + k] == l;
    }
    return n;
}

/* Is the layer read by others than those in [first, end)? */
static bool is_read_outside(const ms_trace *trace, const ms_mlptiles *tiles,
                            uint32_t l, uint32_t first, uint32_t end)
{
    return n_readers(trace, l, first, end) < tiles->readers[l];
}

/* Do all inputs of the layer come from *source (which the first names) or from
 * places [first, place)?  *inside: one does from there. */
static bool reads_one(const ms_trace *trace, const uint32_t *of, uint32_t first,
                      uint32_t place, uint32_t *source, bool *inside)
{
    const ms_model *model = trace->settings->model;
    const ms_layer *layer = layer_at(trace, place);
    *inside = false;
    for (uint32_t k = 0; k < layer->n_in; k++) {
        uint32_t from = model->edges[layer->in_at + k];
        if (from == MS_NONE)
            return false;
        if (of[from] >= first && of[from] < place) {
            *inside = true;
            continue;
        }
        if (*source != MS_NONE && *source != from)
            return false;
        *source = from;
    }
    return layer->n_in > 0;
}

/* One behind the MLP's last product, or behind the dropout that follows it. */
static uint32_t end_of(const ms_trace *trace, const ms_mlptiles *tiles,
                       uint32_t place)
{
    const ms_model *model = trace->settings->model;
    uint32_t next = place + 1;
    if (next < model->n_layers && role_at(trace, next) == MS_ROLE_DROPOUT &&
        model->edges[layer_at(trace, next)->in_at] == model->order[place] &&
        !is_read_outside(trace, tiles, model->order[place], place, next + 1))
        next++;
    return next;
}

static mlp find_mlp(const ms_trace *trace, const ms_mlptiles *tiles,
                    uint32_t first)
{
    const ms_model *model = trace->settings->model;
    const mlp none = {.n = 0};
    mlp it = {.source = MS_NONE};
    uint8_t role = role_at(trace, first);
    uint32_t place = first;
    bool inside = false;
    if (role != MS_ROLE_PROJECTION_IN && role != MS_ROLE_GATE)
        return none;
    do {
        if (place == model->n_layers || !belongs(trace, place) ||
            layer_at(trace, place)->block != layer_at(trace, first)->block ||
            !reads_one(trace, tiles->place, first, place, &it.source,
                       &inside) ||
            (place > first && model->cut[model->order[place - 1]]))
            return none;
    } while (!is_product(role_at(trace, place++)) || !inside);
    it.n = end_of(trace, tiles, place - 1) - first;
    for (uint32_t i = first; i + 1 < first + it.n; i++)
        if (is_read_outside(trace, tiles, model->order[i], first, first + it.n))
            return none;
    return it;
}

/* ---- settings ------------------------------------------------------------ */

static ms_err refuse(const ms_trace *trace, const char *hint, const char *what)
{
    return ms_fail(trace->fault, MS_EUSAGE, "training.mlp_tiles", hint, "%s",
                   what);
}

static ms_err check(const ms_trace *trace)
{
    const ms_precision_row *precision =
        ms_precisions_of(trace->settings->training);
    if (trace->kernels.hooks->attention)
        return refuse(trace, "choose other kernels, or leave it out",
                      "the modules of these kernels have no MLP that runs in "
                      "pieces");
    if (trace->shards)
        return refuse(trace, "leave tensor or it out",
                      "ranks that split an MLP would meet for each piece of "
                      "it, which no code does");
    if (precision->fp8)
        return refuse(trace, "--precision bf16-mixed, or leave it out",
                      "products in fp8 scale what the whole MLP reads, not a "
                      "piece of it");
    if (trace->autocast != MS_FLOAT32)
        return refuse(
            trace, "--precision bf16-mixed or bf16",
            "the MLP is recomputed in backward, where autocast is off: "
            "PyTorch fails there with two dtypes");
    return MS_OK;
}

ms_err ms_mlptiles_open(ms_trace *trace)
{
    const ms_model *model = trace->settings->model;
    uint32_t n = model->n_layers, found = 0;
    if (trace->settings->training->mlp_tiles == 0)
        return MS_OK;
    MS_TRY(check(trace));
    ms_mlptiles *tiles = ms_arena_take(trace->scratch, 1, sizeof *tiles);
    if (tiles == NULL)
        return ms_fail_nomem(trace->fault);
    tiles->at = ms_arena_take(trace->scratch, n, sizeof *tiles->at);
    tiles->place = ms_arena_take(trace->scratch, n, sizeof *tiles->place);
    tiles->readers = ms_arena_take(trace->scratch, n, sizeof *tiles->readers);
    if (!tiles->at || !tiles->place || !tiles->readers)
        return ms_fail_nomem(trace->fault);
    MS_TRY(ms_layerrun_open(&tiles->run, trace));
    for (uint32_t i = 0; i < n; i++)
        tiles->place[model->order[i]] = i;
    for (uint32_t i = 0; i < model->n_edges; i++)
        if (model->edges[i] != MS_NONE)
            tiles->readers[model->edges[i]]++;
    for (uint32_t i = 0; i < n; i++) {
        tiles->at[i] = find_mlp(trace, tiles, i);
        found += tiles->at[i].n > 0;
        if (tiles->at[i].n > 0)
            i += tiles->at[i].n - 1;
    }
    trace->tiles = tiles;
    if (found > 0)
        return MS_OK;
    return ms_fail(trace->fault, MS_EUSAGE, "training.mlp_tiles",
                   "leave it out: memsim inspect MODEL lists its layers",
                   "training.mlp_tiles changes nothing: %s has no MLP (two "
                   "products in a block, and no others between)",
                   model->name);
}

uint32_t ms_mlptiles_at(const ms_trace *trace, uint32_t place)
{
    return trace->tiles ? trace->tiles->at[place].n : 0;
}

/* ---- pieces -------------------------------------------------------------- */

/* How many the user wants of so many tokens: ArcticTraining takes as many as
 * they are more than the model is wide (arctic_training/model/
 * tiled_compute.py). */
static int64_t wanted(const ms_trace *trace, int64_t tokens, int64_t width)
{
    int64_t n = trace->settings->training->mlp_tiles;
    return n > 0 ? n : (tokens + width - 1) / width;
}

/* torch.chunk(x, n, dim): all but the last are equal.  Views of x; NULL: out of
 * memory. */
static uint32_t *chunk(ms_trace *trace, uint32_t x, uint32_t dim, int64_t n,
                       uint32_t *n_pieces)
{
    if (trace->err)
        return NULL;
    int64_t all = ms_trace_at(trace, x)->size[dim], each = (all + n - 1) / n;
    uint32_t count = (uint32_t)((all + each - 1) / each);
    int64_t *size = ms_columns_take(trace, count, sizeof *size);
    uint32_t *piece = ms_columns_take(trace, count, sizeof *piece);
    if (!size || !piece)
        return NULL;
    for (uint32_t i = 0; i < count; i++)
        size[i] = i + 1 < count ? each : all - i * each;
    ms_split_sizes(trace, x, dim, count, size, piece);
    *n_pieces = count;
    return trace->err ? NULL : piece;
}

/* A variable of the function ends with its last reader. */
static void drop_read(ms_trace *trace, const mlp *it, uint32_t place,
                      uint32_t end)
{
    const ms_model *model = trace->settings->model;
    const ms_layer *layer = layer_at(trace, place);
    uint32_t *value = trace->tiles->run.value;
    for (uint32_t k = 0; k < layer->n_in; k++) {
        uint32_t from = model->edges[layer->in_at + k];
        if (from == it->source || value[from] == MS_NONE ||
            n_readers(trace, from, place + 1, end) > 0)
            continue;
        ms_trace_drop(trace, value[from]);
        value[from] = MS_NONE;
    }
}

/* The layers on one piece of the input: what the last one makes. */
static uint32_t run_piece(ms_trace *trace, uint32_t first, uint32_t x)
{
    const ms_model *model = trace->settings->model;
    const mlp *it = &trace->tiles->at[first];
    uint32_t end = first + it->n, last = model->order[end - 1];
    bool frozen = trace->frozen;
    ms_layerrun *run = &trace->tiles->run;
    trace->frozen = it->frozen;
    run->value[it->source] = x;
    for (uint32_t i = first; i < end && !trace->err; i++) {
        ms_err err = ms_layerrun_layer(run, model->order[i]);
        trace->err = trace->err ? trace->err : err;
        drop_read(trace, it, i, end);
    }
    trace->frozen = frozen;
    return trace->err ? MS_NONE : run->value[last];
}

/* ---- backward ------------------------------------------------------------ */

/* The ops from `first` on are of the node, which has no halves. */
static void claim(ms_trace *trace, uint32_t first, uint32_t node, uint8_t from,
                  uint8_t pass)
{
    ms_graph *g = trace->graph;
    for (uint32_t op = first; op < g->n_ops; op++) {
        g->op_node[op] = node;
        if (g->op_pass[op] == from)
            g->op_pass[op] = pass;
    }
}

/* A piece of the input and of the output's gradient; x_grad MS_NONE: the input
 * needs none.  *y, what the piece before has made, lives until it is bound
 * anew. */
static void run_again(ms_trace *trace, uint32_t place, ms_inner_graph *inner,
                      uint32_t x, uint32_t grad, uint32_t x_grad, uint32_t *y)
{
    uint32_t node = trace->node_now, first = trace->graph->n_ops;
    ms_lasting *lasting = trace->tiles->at[place].lasting;
    ms_inner_enter(trace, inner);
    uint32_t leaf = ms_inner_leaf(trace, x, x_grad);
    ms_lasting_repeat(trace, lasting);
    uint32_t made = run_piece(trace, place, leaf);
    ms_lasting_forget(trace);
    claim(trace, first, node, MS_FORWARD, MS_RECOMPUTE);
    *y = ms_trace_rebind(trace, *y, made);
    first = trace->graph->n_ops;
    ms_inner_backward(trace, made, grad);
    ms_trace_drop(trace, leaf);
    claim(trace, first, node, MS_GRAD_WEIGHT, MS_GRAD_INPUT);
}

/* x.reshape(-1, width), as one sample. */
static uint32_t rows_of(ms_trace *trace, uint32_t x)
{
    int64_t dims[3] = {1};
    if (trace->err)
        return MS_NONE;
    const ms_tensor *whole = ms_trace_at(trace, x);
    dims[1] = whole->size[0] * whole->size[1];
    dims[2] = whole->size[2];
    return ms_view_reshape(trace, x, 3, dims);
}

static void run_pieces_again(ms_trace *trace, const ms_node *node,
                             ms_inner_graph *inner, uint32_t x, uint32_t grad,
                             uint32_t x_grad)
{
    uint32_t n = 0, y = MS_NONE;
    uint32_t *piece = chunk(trace, x, TOKENS, node->i[1], &n);
    uint32_t *down = chunk(trace, grad, TOKENS, node->i[1], &n);
    for (uint32_t i = 0; i < n && !trace->err; i++) {
        run_again(trace, (uint32_t)node->i[0], inner, piece[i], down[i],
                  node->needs[0] ? x_grad : MS_NONE, &y);
        trace->pass = MS_GRAD_INPUT;
    }
    ms_trace_drop(trace, y);
    for (uint32_t i = 0; i < n && !trace->err; i++)
        ms_trace_drop(trace, piece[i]);
}

static void tiled_backward(ms_trace *trace, const ms_node *node,
                           const uint32_t *grads, uint32_t *out)
{
    const ms_lasting *lasting = trace->tiles->at[node->i[0]].lasting;
    ms_inner_graph inner;
    ms_inner_make(trace, &inner, lasting->first_parameter,
                  lasting->n_parameters);
    trace->keeps_no_graph = true;
    uint32_t x = rows_of(trace, node->saved[0]);
    uint32_t grad = rows_of(trace, grads[0]);
    uint32_t x_grad = ms_inner_zeros(trace, x);
    run_pieces_again(trace, node, &inner, x, grad, x_grad);
    trace->layer = node->layer;
    ms_trace_drop(trace, x);
    ms_trace_drop(trace, grad);
    if (node->needs[0])
        out[0] = ms_trace_rebind(trace, x_grad,
                                 ms_view_as(trace, x_grad, node->saved[0]));
    else
        ms_trace_drop(trace, x_grad);
    for (uint32_t i = 0; i < inner.n && !trace->err; i++)
        out[i + 1] = ms_inner_gradient(&inner, i);
    trace->keeps_no_graph = false;
}

static const ms_rule tiled_rule = {"TiledMLPBackward", NULL, tiled_backward};

/* ---- forward ------------------------------------------------------------- */

static void save_input(ms_trace *trace, const mlp *it, uint32_t place,
                       uint32_t x, uint32_t y, int64_t n)
{
    uint32_t n_inputs = it->lasting->n_parameters + 1;
    uint32_t *inputs = ms_columns_take(trace, n_inputs, sizeof *inputs);
    if (inputs == NULL)
        return;
    inputs[0] = x;
    for (uint32_t i = 1; i < n_inputs; i++)
        inputs[i] =
            trace->parameters[it->lasting->first_parameter + i - 1].tensor;
    uint32_t node = ms_trace_node(trace, &tiled_rule, inputs, n_inputs, &y, 1);
    if (node != MS_NONE) {
        trace->nodes[node].i[0] = place;
        trace->nodes[node].i[1] = n;
    }
    ms_trace_save(trace, node, x);
}

/* What a layer makes in all pieces together. */
static void sum_bytes(ms_trace *trace, const mlp *it, uint32_t place,
                      uint64_t *bytes)
{
    const ms_model *model = trace->settings->model;
    for (uint32_t i = 0; i < it->n; i++) {
        uint64_t *whole = &trace->graph->layer_bytes[model->order[place + i]];
        *whole = bytes[i] += *whole;
    }
}

static uint32_t run_pieces(ms_trace *trace, uint32_t place,
                           const uint32_t *piece, uint32_t n)
{
    mlp *it = &trace->tiles->at[place];
    uint64_t *bytes = ms_columns_take(trace, it->n, sizeof *bytes);
    uint32_t *made = ms_columns_take(trace, n, sizeof *made);
    it->lasting = ms_lasting_remember(trace);
    if (!bytes || !made || !it->lasting)
        return MS_NONE;
    memset(bytes, 0, it->n * sizeof *bytes);
    for (uint32_t i = 0; i < n && !trace->err; i++) {
        if (i > 0)
            ms_lasting_repeat(trace, it->lasting);
        made[i] = run_piece(trace, place, piece[i]);
        ms_lasting_forget(trace);
        sum_bytes(trace, it, place, bytes);
    }
    uint32_t y = ms_view_cat(trace, made, n, TOKENS);
    for (uint32_t i = 0; i < n && !trace->err; i++)
        ms_trace_drop(trace, made[i]);
    return y;
}

ms_err ms_mlptiles_run(ms_layerrun *run, uint32_t place)
{
    ms_trace *trace = run->trace;
    const ms_model *model = trace->settings->model;
    mlp *it = &trace->tiles->at[place];
    uint32_t x = run->value[it->source], n = 0, y = MS_NONE;
    const ms_tensor *whole = ms_trace_at(trace, x);
    if (whole->n_dims != 3)
        return ms_trace_fail(trace, layer_at(trace, place),
                             "leave training.mlp_tiles out",
                             "\"%s\" reads no sequence that could be cut",
                             layer_at(trace, place)->name);
    int64_t want = wanted(trace, whole->size[1], whole->size[2]);
    it->frozen = trace->frozen;
    trace->keeps_no_graph = true;
    uint32_t *piece = chunk(trace, x, TOKENS, want, &n);
    if (piece)
        y = run_pieces(trace, place, piece, n);
    for (uint32_t i = 0; i < n && !trace->err; i++)
        ms_trace_drop(trace, piece[i]);
    trace->keeps_no_graph = false;
    if (!trace->err)
        save_input(trace, it, place, x, y, want);
    run->value[model->order[place + it->n - 1]] = y;
    return trace->err;
}
