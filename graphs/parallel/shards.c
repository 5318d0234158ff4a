/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "graphs/parallel/shards.h"
#include "graphs/layertypes.h"
#include "graphs/machines/communicators.h"
#include "graphs/parallel/tensorops.h"
#include "graphs/parallel/userbuffers.h"
#include "graphs/trace/trace.h"
#include "sim/graph.h"
#include "sim/kinds.h"

#include <stdio.h>
#include <string.h>

const char *const ms_shards_names[MS_N_SPLITS] = {
    [MS_SPLIT_NOT] = "whole",
    [MS_SPLIT_COLUMNS] = "columns",
    [MS_SPLIT_ROWS] = "rows",
    [MS_SPLIT_HEADS] = "heads",
    [MS_SPLIT_VOCABULARY] = "vocabulary",
    [MS_SPLIT_EXPERTS] = "experts",
};

/* What the search for it knows. */
typedef struct plan {
    ms_trace *trace;
    ms_shards *shards;
    bool *banned; /* per layer: it is not split by columns */
} plan;

static bool is_type(const ms_layer *layer, const char *type)
{
    return strcmp(layer->kind->type, type) == 0;
}

/* ---- which layers work on parts ------------------------------------------ */

/* Element by element, whatever part of the columns it has. */
static bool works_on_columns(const ms_layer *layer)
{
    switch ((ms_layer_role)layer->kind->role) {
    case MS_ROLE_ACTIVATION:
        return !is_type(layer, "softmax") && !is_type(layer, "rotary") &&
               !is_type(layer, "prelu");
    case MS_ROLE_GATED:
        return layer->n_in == 2;
    case MS_ROLE_DROPOUT:
        return is_type(layer, "dropout");
    default:
        return is_type(layer, "cast");
    }
}

/* Token by token, whatever part of the sequence it has. */
static bool works_on_sequence(const ms_layer *layer)
{
    switch ((ms_layer_role)layer->kind->role) {
    case MS_ROLE_NORM:
        return is_type(layer, "layer_norm") || is_type(layer, "rms_norm");
    case MS_ROLE_SUM:
        return is_type(layer, "add");
    case MS_ROLE_PROJECTION:
        return true;
    default:
        return works_on_columns(layer);
    }
}

static uint32_t source(const plan *p, const ms_layer *layer, uint32_t i)
{
    return p->trace->settings->model->edges[layer->in_at + i];
}

/* Are all inputs of the layer of that layout? */
static bool reads_all(const plan *p, const ms_layer *layer, ms_layout layout)
{
    for (uint32_t i = 0; i < layer->n_in; i++) {
        uint32_t from = source(p, layer, i);
        if (from == MS_NONE || p->shards->layout[from] != layout)
            return false;
    }
    return layer->n_in > 0;
}

/* ---- sizes that divide --------------------------------------------------- */

/* The degrees below and above that divide the size, and another one, too, if
 * there is (0: none). */
static ms_err refuse(ms_trace *trace, const ms_layer *layer, const char *what,
                     int64_t size, int64_t also, uint32_t ranks)
{
    char hint[128];
    int64_t low = ranks, high = ranks;
    while (size % low != 0 || also % low != 0)
        low--;
    while (high < size && (size % high != 0 || also % high != 0))
        high++;
    if (high > size || also % high != 0)
        high = low;
    if (low == high)
        snprintf(hint, sizeof hint, "tensor:%lld would", (long long)low);
    else
        snprintf(hint, sizeof hint, "tensor:%lld and tensor:%lld would",
                 (long long)low, (long long)high);
    return ms_trace_fail(trace, layer, hint,
                         "%lld %s of \"%s\" do not divide among %u ranks "
                         "(tensor)",
                         (long long)size, what, layer->name, ranks);
}

static const char *text_of(const ms_layer *layer, const char *name)
{
    const ms_value *value = ms_layertypes_field(layer, name);
    return value ? value->s : NULL;
}

/* The value of a number of the layer, 0 where it has none of that name. */
static int64_t number(const ms_layer *layer, const char *name)
{
    const ms_value *value = ms_layertypes_field(layer, name);
    return value ? value->i : 0;
}

static ms_err check_heads(const plan *p, const ms_layer *layer)
{
    uint32_t ranks = p->shards->ranks.ranks;
    int64_t heads = number(layer, "heads"), few = number(layer, "kv_heads");
    if (heads % ranks != 0)
        return refuse(p->trace, layer, "heads", heads, few, ranks);
    /* Megatron-Core from 0.16 gathers their product's result. */
    if (p->trace->kernels.hooks->attention && few > 0 && few < ranks &&
        ranks % few == 0 && layer->n_in == 1)
        return MS_OK;
    if (few > 0 && few % ranks != 0)
        return refuse(p->trace, layer, "heads of keys and values", few, heads,
                      ranks);
    return MS_OK;
}

/* Gate and up in one product (Phi-3): each rank has a part of either, so that
 * pieces of the columns that are as large as each other are as before. */
static bool splits_columns(const plan *p, const ms_layer *layer)
{
    if (!is_type(layer, "split") || number(layer, "dim") != 1)
        return false;
    for (uint32_t i = 0; i < layer->n_ints; i++)
        if (layer->ints[i] != layer->ints[0] ||
            (int64_t)layer->ints[i] % p->shards->ranks.ranks != 0)
            return false;
    return true;
}

/* ---- how each layer is split --------------------------------------------- */

static ms_split split_of(const plan *p, uint32_t l);

static bool is_tied(const ms_layer *layer)
{
    const char *name = text_of(layer, "tied");
    return name && *name;
}

/* All that share a table are split alike: where a product that is not split
 * reads it, none of them is. */
static bool ties_are_split(const plan *p, const ms_layer *embedding)
{
    const ms_model *model = p->trace->settings->model;
    const char *table =
        is_tied(embedding) ? text_of(embedding, "tied") : embedding->name;
    for (uint32_t l = 0; l < model->n_layers; l++) {
        const char *name = text_of(&model->layers[l], "tied");
        if (name && strcmp(name, table) == 0 &&
            is_type(&model->layers[l], "linear") &&
            split_of(p, l) != MS_SPLIT_COLUMNS)
            return false;
    }
    return true;
}

static ms_split split_of(const plan *p, uint32_t l)
{
    const ms_trace *trace = p->trace;
    const ms_layer *layer = &trace->settings->model->layers[l];
    uint8_t role = trace->graph->layer_role[l];
    uint32_t ranks = p->shards->ranks.ranks;
    switch ((ms_layer_role)role) {
    case MS_ROLE_EMBEDDING:
        if (is_type(layer, "relative_bias"))
            return MS_SPLIT_HEADS;
        return is_type(layer, "embedding") && number(layer, "ids") == 0 &&
                       !p->shards->whole_ends && ties_are_split(p, layer)
                   ? MS_SPLIT_VOCABULARY
                   : MS_SPLIT_NOT;
    case MS_ROLE_ATTENTION:
        return is_type(layer, "attention") ||
                       is_type(layer, "latent_attention") ||
                       is_type(layer, "relative_attention")
                   ? MS_SPLIT_HEADS
                   : MS_SPLIT_NOT;
    case MS_ROLE_PROJECTION_IN:
    case MS_ROLE_GATE:
        return p->banned[l] || number(layer, "out") % ranks != 0
                   ? MS_SPLIT_NOT
                   : MS_SPLIT_COLUMNS;
    case MS_ROLE_PROJECTION_OUT:
        return reads_all(p, layer, MS_LAYOUT_COLUMNS) ? MS_SPLIT_ROWS
                                                      : MS_SPLIT_NOT;
    case MS_ROLE_HEAD:
        return p->banned[l] || !is_type(layer, "linear") ||
                       trace->head.layer == l ||
                       (p->shards->whole_ends && is_tied(layer))
                   ? MS_SPLIT_NOT
                   : MS_SPLIT_COLUMNS;
    case MS_ROLE_EXPERTS:
        return MS_SPLIT_EXPERTS;
    case MS_ROLE_LOSS:
        return is_type(layer, "cross_entropy") &&
                       reads_all(p, layer, MS_LAYOUT_COLUMNS)
                   ? MS_SPLIT_VOCABULARY
                   : MS_SPLIT_NOT;
    default:
        return MS_SPLIT_NOT;
    }
}

/* Is it before all blocks, where tokens and positions are added?  What stands
 * there is whole until a norm, a dropout or a block reads it. */
static bool adds_embeddings(const plan *p, const ms_layer *layer)
{
    return is_type(layer, "add") && layer->block == MS_NONE &&
           reads_all(p, layer, MS_LAYOUT_WHOLE);
}

static bool is_added(const plan *p, uint32_t embedding)
{
    const ms_model *model = p->trace->settings->model;
    for (uint32_t l = 0; l < model->n_layers; l++)
        for (uint32_t i = 0; i < model->layers[l].n_in; i++)
            if (source(p, &model->layers[l], i) == embedding)
                return is_type(&model->layers[l], "add");
    return false;
}

/* A head of which all ranks have what it makes. */
static bool is_gathered(const plan *p, uint32_t l)
{
    return p->shards->whole_ends &&
           p->trace->graph->layer_role[l] == MS_ROLE_HEAD;
}

static void lay_out(const plan *p, uint32_t l)
{
    ms_shards *s = p->shards;
    const ms_layer *layer = &p->trace->settings->model->layers[l];
    uint8_t along = s->by_sequence ? MS_LAYOUT_SEQUENCE : MS_LAYOUT_WHOLE;
    s->split[l] = (uint8_t)split_of(p, l);
    s->needs[l] = s->layout[l] = MS_LAYOUT_WHOLE;
    switch ((ms_split)s->split[l]) {
    case MS_SPLIT_COLUMNS:
        s->needs[l] = along;
        s->layout[l] = is_gathered(p, l) ? MS_LAYOUT_WHOLE : MS_LAYOUT_COLUMNS;
        return;
    case MS_SPLIT_ROWS:
        s->needs[l] = MS_LAYOUT_COLUMNS;
        s->layout[l] = along;
        return;
    case MS_SPLIT_HEADS:
        if (is_type(layer, "relative_bias"))
            return; /* of pairs of all positions */
        s->needs[l] = s->layout[l] = along;
        return;
    case MS_SPLIT_EXPERTS:
        s->needs[l] = s->layout[l] = along;
        return;
    case MS_SPLIT_VOCABULARY:
        if (layer->kind->role == MS_ROLE_LOSS)
            s->needs[l] = MS_LAYOUT_COLUMNS;
        else if (!is_added(p, l))
            s->layout[l] = along;
        return;
    default:
        break;
    }
    if ((works_on_columns(layer) || splits_columns(p, layer)) &&
        reads_all(p, layer, MS_LAYOUT_COLUMNS))
        s->needs[l] = s->layout[l] = MS_LAYOUT_COLUMNS;
    else if (works_on_sequence(layer) && !adds_embeddings(p, layer) &&
             l != p->trace->head.layer) /* its loss needs all of it */
        s->needs[l] = s->layout[l] = along;
}

/* What is split by columns and read by a layer that needs more is not.  Returns
 * whether there was any. */
static bool ban(const plan *p)
{
    const ms_model *model = p->trace->settings->model;
    bool any = false;
    for (uint32_t l = 0; l < model->n_layers; l++)
        for (uint32_t i = 0; i < model->layers[l].n_in; i++) {
            uint32_t from = source(p, &model->layers[l], i);
            if (from == MS_NONE ||
                p->shards->layout[from] != MS_LAYOUT_COLUMNS ||
                p->shards->needs[l] == MS_LAYOUT_COLUMNS || p->banned[from])
                continue;
            p->banned[from] = any = true;
        }
    return any;
}

/* A layer that only hands parts of columns on is banned through its inputs. */
static void ban_inputs(const plan *p)
{
    const ms_model *model = p->trace->settings->model;
    for (uint32_t i = model->n_layers; i-- > 0;) {
        uint32_t l = model->order[i];
        const ms_layer *layer = &model->layers[l];
        for (uint32_t k = 0; k < layer->n_in && p->banned[l]; k++)
            if (source(p, layer, k) != MS_NONE &&
                p->shards->layout[l] == MS_LAYOUT_COLUMNS &&
                p->shards->split[l] == MS_SPLIT_NOT)
                p->banned[source(p, layer, k)] = true;
    }
}

/* The lengths below and above that ranks which split layers, and those of a
 * context two pieces each, can divide. */
static ms_err refuse_sequence(const plan *p, int64_t part)
{
    uint32_t context = ms_shape_context(p->trace->settings->shape);
    uint32_t ranks = p->shards->ranks.ranks;
    long long unit = (long long)ranks * (context > 1 ? 2 * context : 1);
    long long low = part * context / unit * unit;
    char hint[96];
    snprintf(hint, sizeof hint, "type --sequence %lld", low + unit);
    if (low > 0)
        snprintf(hint, sizeof hint, "type --sequence %lld or %lld", low,
                 low + unit);
    if (context > 1)
        return ms_fail(p->trace->fault, MS_EUSAGE, "tensor", hint,
                       "a sequence of %lld does not divide among %u x %u ranks "
                       "(context x sp)",
                       (long long)part * context, context, ranks);
    return ms_fail(p->trace->fault, MS_EUSAGE, "tensor", hint,
                   "a sequence of %lld does not divide among %u ranks (sp)",
                   (long long)part, ranks);
}

static ms_err check(const plan *p)
{
    const ms_trace *trace = p->trace;
    const ms_model *model = trace->settings->model;
    int64_t sequence = (int64_t)trace->settings->sequence;
    uint32_t n_split = 0;
    for (uint32_t l = 0; l < model->n_layers; l++) {
        const ms_layer *layer = &model->layers[l];
        n_split += p->shards->split[l] != MS_SPLIT_NOT;
        if (p->shards->split[l] == MS_SPLIT_HEADS)
            MS_TRY(check_heads(p, layer));
    }
    if (p->shards->by_sequence && sequence % p->shards->ranks.ranks != 0)
        return refuse_sequence(p, sequence);
    return n_split > 0 ? MS_OK
                       : ms_fail(trace->fault, MS_EINPUT, model->name,
                                 "take zero or fsdp for this model",
                                 "no layer of %s is one that ranks can split "
                                 "(tensor)",
                                 model->name);
}

/* Of what a product by columns reads. */
static void count_columns(const plan *p, const ms_layer *layer, uint8_t split)
{
    const ms_value *bias = ms_layertypes_field(layer, "bias");
    int64_t out = number(layer, "out") / p->shards->ranks.ranks;
    for (uint32_t i = 0; i < layer->n_in; i++) {
        uint32_t from = source(p, layer, i);
        if (from == MS_NONE || split != MS_SPLIT_COLUMNS)
            continue;
        p->shards->n_columns[from]++;
        p->shards->columns[from] += bias && bias->b ? 0 : out;
    }
}

static ms_err decide(plan *p)
{
    const ms_model *model = p->trace->settings->model;
    uint32_t n = model->n_layers;
    p->shards->split = ms_arena_take(p->trace->scratch, n, 1);
    p->shards->needs = ms_arena_take(p->trace->scratch, n, 1);
    p->shards->layout = ms_arena_take(p->trace->scratch, n, 1);
    p->shards->n_columns = ms_arena_take(p->trace->scratch, n, sizeof n);
    p->shards->columns =
        ms_arena_take(p->trace->scratch, n, sizeof *p->shards->columns);
    p->banned = ms_arena_take(p->trace->scratch, n, sizeof *p->banned);
    if (!p->shards->split || !p->shards->needs || !p->shards->layout ||
        !p->shards->n_columns || !p->shards->columns || !p->banned)
        return ms_fail_nomem(p->trace->fault);
    do {
        for (uint32_t i = 0; i < n; i++)
            lay_out(p, model->order[i]);
        if (!ban(p))
            break;
        ban_inputs(p);
    } while (true);
    for (uint32_t l = 0; l < n; l++)
        count_columns(p, &model->layers[l], p->shards->split[l]);
    return check(p);
}

/* torch's DTensor gathers apart from the product, which saves what it reads. */
static ms_err check_regather(const ms_trace *trace)
{
    const ms_step_settings *settings = trace->settings;
    uint8_t regather = settings->shape->regather;
    if (regather == MS_REGATHER_AGAIN && !trace->kernels.keeps_parts)
        return ms_fail(trace->fault, MS_EUSAGE, "tensor:regather",
                       "--kernels megatron or nanotron, or leave regather out",
                       "torch's products save what was gathered for them");
    if (regather == MS_REGATHER_NOT && trace->kernels.keeps_parts &&
        settings->training->precision == MS_FP8)
        return ms_fail(trace->fault, MS_EUSAGE, "tensor:regather",
                       "leave regather out",
                       "products in fp8 gather again what they have read");
    return MS_OK;
}

ms_err ms_shards_check(const ms_trace *trace)
{
    const ms_step_settings *settings = trace->settings;
    if (settings->shape->tensor_ranks < 2)
        return MS_OK;
    MS_TRY(ms_userbuffers_check(trace));
    MS_TRY(check_regather(trace));
    if (settings->shape->by_sequence && !settings->model->tokens &&
        !settings->model->sequence_input)
        return ms_fail(trace->fault, MS_EUSAGE, "tensor", "leave sp out",
                       "%s has no sequence that ranks could divide",
                       settings->model->name);
    if (settings->model->ops)
        return ms_fail(trace->fault, MS_EUSAGE, "tensor",
                       "export the graph of one rank instead",
                       "ranks cannot split the ops of an exported graph");
    if (trace->kernels.keeps_parts && settings->shape->whole_ends)
        return ms_fail(trace->fault, MS_EUSAGE, "tensor:plan=hf",
                       "--kernels flash, or leave plan out",
                       "Hugging Face's plans are of torch's products, not of "
                       "these kernels'");
    if (trace->kernels.keeps_parts && (settings->training->lora_base > 0 ||
                                       settings->training->frozen_base > 0))
        return ms_fail(trace->fault, MS_EUSAGE, "tensor",
                       "--kernels flash, or leave lora.base and frozen.base "
                       "out",
                       "these kernels know no packed weights (lora.base, "
                       "frozen.base) that ranks split");
    return MS_OK;
}

/* What is not split works on what it is handed. */
static ms_err name_splits(ms_trace *trace)
{
    static const char *const layouts[] = {[MS_LAYOUT_WHOLE] = "whole",
                                          [MS_LAYOUT_SEQUENCE] = "sequence",
                                          [MS_LAYOUT_COLUMNS] = "columns"};
    ms_graph *g = trace->graph;
    g->layer_split =
        ms_arena_take(trace->arena, g->n_layers, sizeof *g->layer_split);
    if (!g->layer_split)
        return ms_fail_nomem(trace->fault);
    for (uint32_t l = 0; l < g->n_layers; l++) {
        ms_split split = (ms_split)trace->shards->split[l];
        g->layer_split[l] = split == MS_SPLIT_NOT
                                ? layouts[trace->shards->layout[l]]
                                : ms_shards_names[split];
    }
    return MS_OK;
}

ms_err ms_shards_open(ms_trace *trace)
{
    const ms_step_settings *settings = trace->settings;
    ms_group rows[MS_N_GROUP_ROLES];
    if (settings->shape->tensor_ranks < 2)
        return MS_OK;
    plan p = {.trace = trace,
              .shards = ms_arena_take(trace->scratch, 1, sizeof *p.shards)};
    if (!p.shards)
        return ms_fail_nomem(trace->fault);
    ms_communicators_make(settings->device, settings->shape, rows);
    p.shards->ranks = rows[MS_GROUP_TENSOR];
    p.shards->by_sequence = settings->shape->by_sequence;
    p.shards->whole_ends = settings->shape->whole_ends;
    p.shards->keeps_whole = settings->shape->regather == MS_REGATHER_NOT;
    MS_TRY(decide(&p));
    trace->shards = p.shards;
    return name_splits(trace);
}

/* ---- of the layer that runs now ------------------------------------------ */

ms_split ms_shards_split(const ms_trace *trace)
{
    return trace->shards ? (ms_split)trace->shards->split[trace->layer]
                         : MS_SPLIT_NOT;
}

int64_t ms_shards_part(const ms_trace *trace, int64_t whole)
{
    int64_t ranks = trace->shards ? trace->shards->ranks.ranks : 1;
    return (whole + ranks - 1) / ranks;
}

int64_t ms_shards_columns(const ms_trace *trace, int64_t whole)
{
    bool divided = trace->shards &&
                   trace->shards->layout[trace->layer] == MS_LAYOUT_COLUMNS;
    return divided ? ms_shards_part(trace, whole) : whole;
}

int64_t ms_shards_sequence(const ms_trace *trace, int64_t length)
{
    bool divided = trace->shards &&
                   trace->shards->needs[trace->layer] == MS_LAYOUT_SEQUENCE;
    return divided ? length * (int64_t)trace->shards->ranks.ranks : length;
}

bool ms_shards_gathers(const ms_trace *trace)
{
    return ms_shards_split(trace) == MS_SPLIT_COLUMNS &&
           trace->shards->layout[trace->layer] == MS_LAYOUT_WHOLE;
}

void ms_shards_make_parts(ms_trace *trace, bool parts)
{
    trace->parts = parts ? trace->shards->ranks.ranks : 0;
}

uint32_t ms_shards_enter(ms_trace *trace, uint32_t x, int64_t columns)
{
    return trace->shards->by_sequence
               ? ms_tensorops_gather_for(trace, x, (uint32_t)columns)
               : ms_tensorops_enter(trace, x);
}

uint32_t ms_shards_leave(ms_trace *trace, uint32_t y)
{
    return trace->shards->by_sequence ? ms_tensorops_scatter(trace, y)
                                      : ms_tensorops_reduce(trace, y);
}

/* Once for all products that read it (torch's PrepareModuleInput). */
static uint32_t enter_once(ms_trace *trace, uint32_t from, uint32_t x)
{
    ms_shards *s = trace->shards;
    if (s->entered_from != from || s->n_waiting == 0) {
        s->entered_from = from;
        s->entered = ms_shards_enter(trace, x, s->columns[from]);
        s->n_waiting = s->n_columns[from];
    }
    if (--s->n_waiting > 0 && !trace->err)
        ms_trace_ref(trace, s->entered);
    return s->entered;
}

uint32_t ms_shards_take(ms_trace *trace, uint32_t from, uint32_t tensor)
{
    const ms_shards *s = trace->shards;
    if (trace->err)
        return MS_NONE;
    if (from != MS_NONE && s->split[trace->layer] == MS_SPLIT_COLUMNS &&
        !trace->kernels.keeps_parts)
        return enter_once(trace, from, tensor);
    ms_layout is = from == MS_NONE ? MS_LAYOUT_WHOLE : s->layout[from];
    ms_layout needs = s->needs[trace->layer];
    bool of_heads = from != MS_NONE && s->split[from] == MS_SPLIT_HEADS;
    if (from != MS_NONE && is == MS_LAYOUT_WHOLE && !of_heads &&
        needs == MS_LAYOUT_SEQUENCE)
        return ms_tensorops_part(trace, tensor);
    if (is == MS_LAYOUT_SEQUENCE && needs == MS_LAYOUT_WHOLE)
        return ms_tensorops_gather(trace, tensor);
    ms_trace_ref(trace, tensor);
    return tensor;
}
