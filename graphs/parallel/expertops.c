/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "graphs/parallel/expertops.h"
#include "graphs/layertypes.h"
#include "graphs/machines/communicators.h"
#include "graphs/parallel/meetops.h"
#include "graphs/parallel/shards.h"
#include "graphs/trace/trace.h"
#include "sim/graph.h"
#include "sim/kinds.h"

#include <stdio.h>
#include <string.h>

/* ---- who divides them ---------------------------------------------------- */

static ms_err refuse(const ms_trace *trace, const char *hint, const char *what)
{
    return ms_fail(trace->fault, MS_EUSAGE, "expert", hint, "%s", what);
}

/* The ranks below and above so many that divide the experts. */
static ms_err refuse_number(ms_trace *trace, const ms_layer *layer,
                            int64_t experts, int64_t ranks)
{
    char hint[128];
    int64_t low = ranks < experts ? ranks : experts, high = ranks;
    while (experts % low != 0)
        low--;
    while (high < experts && experts % high != 0)
        high++;
    snprintf(hint, sizeof hint, "expert:%lld would", (long long)low);
    if (high <= experts && high != low)
        snprintf(hint, sizeof hint, "expert:%lld and expert:%lld would",
                 (long long)low, (long long)high);
    return ms_trace_fail(trace, layer, hint,
                         "%lld experts of \"%s\" do not divide among %lld "
                         "ranks (expert)",
                         (long long)experts, layer->name, (long long)ranks);
}

static ms_err check_layer(ms_trace *trace, const ms_layer *layer)
{
    const ms_shape *shape = trace->settings->shape;
    int64_t experts = ms_layertypes_field(layer, "experts")->i;
    int64_t hidden = ms_layertypes_field(layer, "hidden")->i;
    int64_t ranks = ms_shape_experts(shape), loads = shape->expert_loads;
    int64_t within = ms_shape_expert_tensor(shape);
    if (experts % ranks != 0)
        return refuse_number(trace, layer, experts, ranks);
    if (loads > 0 && loads != experts)
        return ms_trace_fail(trace, layer, "give one for each",
                             "\"%s\" has %lld experts, not the %lld of whose "
                             "loads imbalance= tells",
                             layer->name, (long long)experts, (long long)loads);
    if (shape->expert_imbalance > 0 &&
        ms_layertypes_field(layer, "capacity")->f > 0)
        return ms_trace_fail(trace, layer, "leave imbalance= out",
                             "\"%s\" has a capacity: all experts have as many "
                             "rows, padded",
                             layer->name);
    if (hidden % within != 0)
        return ms_trace_fail(trace, layer, "type etp=1, for example",
                             "%lld hidden features of the experts of \"%s\" do "
                             "not divide among %lld ranks (etp)",
                             (long long)hidden, layer->name, (long long)within);
    return MS_OK;
}

static ms_err check_layers(ms_trace *trace, bool *some)
{
    const ms_model *model = trace->settings->model;
    for (uint32_t l = 0; l < model->n_layers; l++) {
        if (model->layers[l].kind->role != MS_ROLE_EXPERTS)
            continue;
        *some = true;
        MS_TRY(check_layer(trace, &model->layers[l]));
    }
    return MS_OK;
}

/* Ranks that split layers but not the sequence have the same tokens each, which
 * would go to the experts once from each of them. */
static ms_err check_tensor(const ms_trace *trace)
{
    const ms_shape *shape = trace->settings->shape;
    char hint[64];
    if (shape->tensor_ranks < 2 || shape->by_sequence)
        return MS_OK;
    snprintf(hint, sizeof hint, "type tensor:%u,sp", shape->tensor_ranks);
    return ms_fail(trace->fault, MS_EUSAGE, "tensor", hint,
                   "ranks that split layers need parts of the sequence where "
                   "the model has experts, as Megatron asks of them");
}

/* Of a model that no ranks split otherwise. */
static ms_err name_splits(ms_trace *trace)
{
    const ms_model *model = trace->settings->model;
    ms_graph *g = trace->graph;
    if (trace->shards || !ms_expertops_divides(trace))
        return MS_OK;
    g->layer_split =
        ms_arena_take(trace->arena, g->n_layers, sizeof *g->layer_split);
    if (!g->layer_split)
        return ms_fail_nomem(trace->fault);
    for (uint32_t l = 0; l < g->n_layers; l++) {
        bool experts = model->layers[l].kind->role == MS_ROLE_EXPERTS;
        g->layer_split[l] =
            ms_shards_names[experts ? MS_SPLIT_EXPERTS : MS_SPLIT_NOT];
    }
    return MS_OK;
}

ms_err ms_expertops_open(ms_trace *trace)
{
    const ms_step_settings *settings = trace->settings;
    const ms_shape *shape = settings->shape;
    ms_group rows[MS_N_GROUP_ROLES];
    bool some = false;
    if (settings->model->ops && shape->expert_policy)
        return refuse(trace, "export the graph of one rank instead",
                      "ranks cannot divide the experts of an exported graph");
    if (settings->model->ops)
        return MS_OK;
    MS_TRY(check_layers(trace, &some));
    if (!some && shape->expert_policy)
        return refuse(trace, "leave it out for this model",
                      "the model has no experts that ranks could divide");
    if (!some)
        return MS_OK;
    MS_TRY(check_tensor(trace));
    if (ms_shape_experts(shape) == 1 && ms_shape_expert_tensor(shape) == 1 &&
        shape->expert_capacity == 0 && shape->expert_imbalance == 0)
        return MS_OK;
    trace->experts = ms_arena_take(trace->scratch, 1, sizeof *trace->experts);
    if (!trace->experts)
        return ms_fail_nomem(trace->fault);
    ms_communicators_make(settings->device, shape, rows);
    ms_group_role within =
        shape->expert_split > 0 ? MS_GROUP_EXPERT_TENSOR : MS_GROUP_TENSOR;
    *trace->experts = (ms_expert_ranks){.across = rows[MS_GROUP_EXPERT],
                                        .within = rows[within],
                                        .within_role = (uint8_t)within,
                                        .deep = shape->expert_deep,
                                        .capacity = shape->expert_capacity,
                                        .imbalance = shape->expert_imbalance};
    return name_splits(trace);
}

bool ms_expertops_divides(const ms_trace *trace)
{
    const ms_expert_ranks *it = trace->experts;
    return it && (it->across.ranks > 1 || it->within.ranks > 1);
}

void ms_expertops_make_parts(ms_trace *trace, bool parts)
{
    const ms_expert_ranks *it = trace->experts;
    trace->parts = parts && it ? it->across.ranks * it->within.ranks : 0;
}

/* ---- ops ----------------------------------------------------------------- */

/* A collective that makes of x a tensor of so many rows. */
static uint32_t meet(ms_trace *trace, const char *op, ms_collective collective,
                     uint32_t x, int64_t rows)
{
    bool across = collective == MS_ALL_TO_ALL;
    ms_expert_ranks *ranks = trace->experts;
    if (trace->err)
        return MS_NONE;
    ms_tensor like = *ms_trace_at(trace, x);
    like.size[0] = rows;
    ms_trace_begin(trace, op);
    ms_trace_read(trace, x);
    uint32_t y =
        ms_trace_make(trace, "received", like.dtype, like.n_dims, like.size);
    ms_meetops_end(trace, collective,
                   across ? MS_GROUP_EXPERT : (ms_group_role)ranks->within_role,
                   across ? &ranks->across : &ranks->within);
    return y;
}

static uint32_t exchange(ms_trace *trace, uint32_t x, int64_t rows)
{
    return meet(trace, "nccl::all_to_all", MS_ALL_TO_ALL, x, rows);
}

static int64_t rows_of(ms_trace *trace, uint32_t x)
{
    return trace->err ? 0 : ms_trace_at(trace, x)->size[0];
}

static uint32_t gather(ms_trace *trace, uint32_t x)
{
    return meet(trace, "nccl::all_gather", MS_ALL_GATHER, x,
                rows_of(trace, x) * trace->experts->within.ranks);
}

static uint32_t scatter(ms_trace *trace, uint32_t x)
{
    return meet(trace, "nccl::reduce_scatter", MS_REDUCE_SCATTER, x,
                rows_of(trace, x) / trace->experts->within.ranks);
}

/* ---- nodes --------------------------------------------------------------- */

/* i[0]: the rows that forward sent. */
static void exchange_backward(ms_trace *trace, const ms_node *node,
                              const uint32_t *grads, uint32_t *out)
{
    out[0] = exchange(trace, grads[0], node->i[0]);
}

static void gather_backward(ms_trace *trace, const ms_node *node,
                            const uint32_t *grads, uint32_t *out)
{
    (void)node;
    out[0] = scatter(trace, grads[0]);
}

static void scatter_backward(ms_trace *trace, const ms_node *node,
                             const uint32_t *grads, uint32_t *out)
{
    (void)node;
    out[0] = gather(trace, grads[0]);
}

static const ms_rule exchange_rule = {"AllToAllBackward", NULL,
                                      exchange_backward};
static const ms_rule gather_rule = {"GatherFromSequenceParallelRegion", NULL,
                                    gather_backward};
static const ms_rule scatter_rule = {"ReduceScatterToSequenceParallelRegion",
                                     NULL, scatter_backward};

static uint32_t itself(ms_trace *trace, uint32_t x)
{
    ms_trace_ref(trace, x);
    return x;
}

uint32_t ms_expertops_exchange(ms_trace *trace, uint32_t x, int64_t received)
{
    if (trace->err)
        return MS_NONE;
    if (trace->experts->across.ranks < 2)
        return itself(trace, x);
    int64_t sent = rows_of(trace, x);
    uint32_t y = exchange(trace, x, received);
    uint32_t n = ms_trace_node(trace, &exchange_rule, &x, 1, &y, 1);
    if (n != MS_NONE)
        trace->nodes[n].i[0] = sent;
    return y;
}

uint32_t ms_expertops_gather(ms_trace *trace, uint32_t x)
{
    if (trace->err)
        return MS_NONE;
    if (trace->experts->within.ranks < 2)
        return itself(trace, x);
    uint32_t y = gather(trace, x);
    ms_trace_node(trace, &gather_rule, &x, 1, &y, 1);
    return y;
}

uint32_t ms_expertops_scatter(ms_trace *trace, uint32_t y)
{
    if (trace->err)
        return MS_NONE;
    if (trace->experts->within.ranks < 2)
        return itself(trace, y);
    uint32_t part = scatter(trace, y);
    ms_trace_node(trace, &scatter_rule, &y, 1, &part, 1);
    return part;
}
