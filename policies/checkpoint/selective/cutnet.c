/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "policies/checkpoint/selective/cutnet.h"
#include "policies/solve/cut/knapsack.h"
#include "sim/graph.h"
#include "sim/kinds.h"

#include <math.h>
#include <string.h>

/* How much may not be made again. */
typedef enum strictness { ALL_RULES, NO_FUSION, DEAR_OPS } strictness;

/* ---- what ops are -------------------------------------------------------- */

static bool is_dear(uint8_t kind)
{
    return ms_kinds_is_product(kind) || ms_kinds_is_attention(kind) ||
           kind == MS_KIND_PRODUCT || kind == MS_KIND_CONVOLUTION ||
           kind == MS_KIND_RECURRENT || kind == MS_KIND_DROPOUT;
}

/* On torch's list of what may be made again, and can be fused. */
static bool is_listed(uint8_t kind)
{
    switch (kind) {
    case MS_KIND_VIEW:
    case MS_KIND_NORM:
    case MS_KIND_BATCH_NORM:
    case MS_KIND_SOFTMAX:
    case MS_KIND_POINTWISE:
    case MS_KIND_ADD:
    case MS_KIND_ROTARY:
    case MS_KIND_REDUCTION:
    case MS_KIND_COPY:
    case MS_KIND_CAT:
    case MS_KIND_CAST:
    case MS_KIND_FILL:
        return true;
    default:
        return false;
    }
}

static bool can_fuse(uint8_t kind)
{
    return is_listed(kind) || kind == MS_KIND_DROPOUT;
}

/* ---- the nodes ----------------------------------------------------------- */

static bool is_own_unit(const ms_cutnet *p, uint32_t unit)
{
    return unit >= p->part.first && unit <= p->part.last;
}

static uint32_t first_op(const ms_cutnet *p)
{
    return p->graph->forward_at[p->part.first];
}

static uint32_t end_op(const ms_cutnet *p)
{
    return p->graph->forward_at[p->part.last + 1];
}

static void add_node(ms_cutnet *p, uint32_t storage)
{
    if (storage < p->graph->n_persistent || p->node_of[storage] != MS_NONE)
        return;
    p->node_of[storage] = 0;
    p->n++;
}

/* In the order of the graph: what is made of others stands behind them. */
static ms_err find_nodes(ms_cutnet *p, ms_fault *fault)
{
    const ms_graph *graph = p->graph;
    size_t storages = graph->n_storages;
    p->node_of = ms_arena_take_raw(p->arena, storages, sizeof *p->node_of);
    p->n = 0;
    if (p->node_of == NULL)
        return ms_fail_nomem(fault);
    memset(p->node_of, 0xff, storages * sizeof *p->node_of);
    for (uint32_t i = graph->out_at[first_op(p)]; i < graph->out_at[end_op(p)];
         i++)
        add_node(p, graph->out[i]);
    for (uint32_t i = graph->unit_in_at[p->part.first];
         i < graph->unit_in_at[p->part.last + 1]; i++)
        add_node(p, graph->unit_in[i]);
    p->storage = ms_arena_take_raw(p->arena, p->n + 1u, sizeof *p->storage);
    if (p->storage == NULL)
        return ms_fail_nomem(fault);
    p->n = 0;
    for (uint32_t s = 0; s < storages; s++)
        if (p->node_of[s] != MS_NONE) {
            p->node_of[s] = p->n;
            p->storage[p->n++] = s;
        }
    return MS_OK;
}

static bool is_given(const ms_cutnet *p, uint32_t storage)
{
    uint32_t maker = p->graph->storage_maker[storage];
    return maker == MS_NONE || !is_own_unit(p, p->graph->op_unit[maker]);
}

static void save_until(ms_cutnet *p, uint32_t v, uint32_t unit)
{
    if (is_own_unit(p, unit) &&
        (p->saved_until[v] == MS_NONE || p->saved_until[v] > unit))
        p->saved_until[v] = unit;
}

/* What nodes of the part save; a graph without a table of saves says so by what
 * backward reads (sim/expand/views/stageview.c). */
static void find_saved(ms_cutnet *p)
{
    const ms_graph *graph = p->graph;
    uint32_t first = graph->backward_at[p->part.last + 1];
    uint32_t end = graph->backward_at[p->part.first];
    for (uint32_t v = 0; v < p->n; v++) {
        uint32_t saved_end = graph->storage_saved_end[p->storage[v]];
        if (saved_end != MS_NONE)
            save_until(p, v, graph->op_unit[saved_end]);
    }
    for (uint32_t i = 0; i < graph->n_saves; i++) {
        uint32_t s = graph->saves[i].storage;
        if (p->node_of[s] != MS_NONE && graph->storage_saved_end[s] != MS_NONE)
            save_until(p, p->node_of[s], graph->op_unit[graph->saves[i].last]);
    }
    for (uint32_t op = first; op < end && graph->n_saves == 0; op++)
        for (uint32_t i = graph->in_at[op]; i < graph->in_at[op + 1]; i++) {
            uint32_t s = graph->in[i];
            if (p->node_of[s] != MS_NONE &&
                graph->storage_saved_end[s] != MS_NONE && is_given(p, s))
                save_until(p, p->node_of[s], graph->op_unit[op]);
        }
    for (uint32_t v = 0; v < p->n; v++)
        p->needed[v] = p->saved_until[v] != MS_NONE;
}

/* ---- the network --------------------------------------------------------- */

static uint64_t read_bytes(const ms_graph *graph, uint32_t op)
{
    uint64_t bytes = 0;
    for (uint32_t i = graph->in_at[op]; i < graph->in_at[op + 1]; i++)
        bytes += graph->storage_bytes[graph->in[i]];
    return bytes;
}

/* A fused loss makes gradients in forward, which backward hands on: they are
 * not made again, nor what comes with them. */
static bool makes_gradients(const ms_graph *graph, uint32_t op)
{
    bool some = false;
    for (uint32_t i = graph->out_at[op]; i < graph->out_at[op + 1]; i++)
        some |= graph->storage_category[graph->out[i]] == MS_BECOMES_GRAD;
    return some;
}

static void describe_output(ms_cutnet *p, uint32_t op, uint32_t storage)
{
    const ms_graph *graph = p->graph;
    uint8_t kind = graph->op_kind[op];
    uint32_t v = p->node_of[storage];
    p->is_fixed[v] |= makes_gradients(graph, op);
    p->is_dear[v] |= is_dear(kind);
    p->is_listed[v] &= is_listed(kind);
    p->time_ns[v] += graph->op_ns[op];
    p->is_small[v] = kind == MS_KIND_REDUCTION &&
                     4 * graph->storage_bytes[storage] < read_bytes(graph, op);
}

/* One reading of what op makes, and of what: counted at v + 2, or put at
 * v + 1. */
static void add_deps(const ms_cutnet *p, uint32_t op, uint32_t *at,
                     uint32_t *dep)
{
    const ms_graph *graph = p->graph;
    for (uint32_t o = graph->out_at[op]; o < graph->out_at[op + 1]; o++)
        for (uint32_t i = graph->in_at[op]; i < graph->in_at[op + 1]; i++) {
            uint32_t to = p->node_of[graph->out[o]];
            uint32_t from = p->node_of[graph->in[i]];
            if (to == MS_NONE || from == MS_NONE || from >= to)
                continue;
            if (dep == NULL)
                at[to + 2]++;
            else
                dep[at[to + 1]++] = from;
        }
}

/* What ops of forward make, and of what; ops that write in place add theirs. */
static ms_err list_deps(ms_cutnet *p, ms_fault *fault)
{
    uint32_t *at = ms_arena_take(p->arena, p->n + 2u, sizeof *at);
    if (at == NULL)
        return ms_fail_nomem(fault);
    for (uint32_t op = first_op(p); op < end_op(p); op++)
        add_deps(p, op, at, NULL);
    for (uint32_t v = 0; v < p->n; v++)
        at[v + 2] += at[v + 1];
    uint32_t *dep = ms_arena_take(p->arena, at[p->n + 1] + 1u, sizeof *dep);
    if (dep == NULL)
        return ms_fail_nomem(fault);
    for (uint32_t op = first_op(p); op < end_op(p); op++)
        add_deps(p, op, at, dep);
    p->net.dep_at = at;
    p->net.dep = dep;
    return MS_OK;
}

/* Who reads it: does some op of backward that cannot be fused; must it be
 * written out? */
static void find_readers(ms_cutnet *p, uint8_t *is_written)
{
    const ms_graph *graph = p->graph;
    for (uint32_t op = 0; op < graph->step_first; op++)
        for (uint32_t i = graph->in_at[op]; i < graph->in_at[op + 1]; i++) {
            uint32_t v = p->node_of[graph->in[i]];
            if (v == MS_NONE || !is_own_unit(p, graph->op_unit[op]) ||
                can_fuse(graph->op_kind[op]))
                continue;
            is_written[v] = 1;
            p->is_read[v] |= op >= end_op(p);
        }
}

/* Bytes, by how far backward is and whether they are written out. */
static ms_err weigh(ms_cutnet *p, const uint8_t *is_written, ms_fault *fault)
{
    const ms_graph *graph = p->graph;
    uint32_t *far = ms_arena_take(p->arena, p->n + 1u, sizeof *far);
    if (far == NULL)
        return ms_fail_nomem(fault);
    for (uint32_t v = 0; v < p->n; v++)
        far[v] = p->needed[v] ? 1 : MS_NONE / 2;
    for (uint32_t v = p->n; v-- > 0;)
        for (uint32_t i = p->net.dep_at[v]; i < p->net.dep_at[v + 1]; i++)
            if (far[v] + 1 < far[p->net.dep[i]])
                far[p->net.dep[i]] = far[v] + 1;
    for (uint32_t v = 0; v < p->n; v++) {
        double bytes = (double)graph->storage_bytes[p->storage[v]];
        bytes *= pow(1.1, far[v] < 100 ? far[v] : 100);
        bool written = is_written[v] || !p->is_listed[v];
        p->weight[v] = (uint64_t)llround(written ? bytes : 2 * bytes);
    }
    return MS_OK;
}

static ms_err take_columns(ms_cutnet *p, ms_fault *fault)
{
    uint8_t **flags[] = {
        &p->is_dear, &p->is_listed, &p->is_read,  &p->is_small, &p->needed,
        &p->banned,  &p->is_saved,  &p->is_given, &p->is_fixed, &p->makes};
    size_t n = p->n + 1u;
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) {
        *flags[i] = ms_arena_take(p->arena, n, 1);
        if (*flags[i] == NULL)
            return ms_fail_nomem(fault);
    }
    p->weight = ms_arena_take(p->arena, n, sizeof *p->weight);
    p->time_ns = ms_arena_take(p->arena, n, sizeof *p->time_ns);
    p->until = ms_arena_take(p->arena, n, sizeof *p->until);
    p->saved_until = ms_arena_take_raw(p->arena, n, sizeof *p->saved_until);
    if (p->weight == NULL || p->time_ns == NULL || p->until == NULL ||
        p->saved_until == NULL)
        return ms_fail_nomem(fault);
    memset(p->saved_until, 0xff, n * sizeof *p->saved_until);
    for (uint32_t v = 0; v < p->n; v++) {
        p->is_given[v] = is_given(p, p->storage[v]);
        p->is_listed[v] = !p->is_given[v];
    }
    return MS_OK;
}

ms_err ms_cutnet_open(ms_cutnet *p, ms_fault *fault)
{
    const ms_graph *graph = p->graph;
    MS_TRY(find_nodes(p, fault));
    MS_TRY(take_columns(p, fault));
    uint8_t *is_written = ms_arena_take(p->arena, p->n + 1u, 1);
    if (is_written == NULL)
        return ms_fail_nomem(fault);
    for (uint32_t op = first_op(p); op < end_op(p); op++)
        for (uint32_t i = graph->out_at[op]; i < graph->out_at[op + 1]; i++)
            if (p->node_of[graph->out[i]] != MS_NONE)
                describe_output(p, op, graph->out[i]);
    find_saved(p);
    MS_TRY(list_deps(p, fault));
    find_readers(p, is_written);
    p->net.n = p->n;
    p->net.weight = p->weight;
    p->net.banned = p->banned;
    p->net.needed = p->needed;
    return weigh(p, is_written, fault);
}

/* ---- cuts ---------------------------------------------------------------- */

static bool is_banned(const ms_cutnet *p, strictness rules, uint32_t v)
{
    if (p->is_dear[v] || p->is_given[v] || p->is_fixed[v])
        return true;
    if (rules == DEAR_OPS)
        return false;
    return !p->is_listed[v] || p->is_small[v] ||
           (rules == ALL_RULES && p->is_read[v]);
}

static ms_err cut(ms_cutnet *p, ms_fault *fault)
{
    uint64_t weight;
    ms_arena scratch = {.limit_bytes = p->arena->limit_bytes};
    ms_err err = ms_mincut_find(&p->net, &scratch, p->is_saved, &weight, fault);
    ms_arena_free(&scratch);
    return err;
}

static ms_err cut_by(ms_cutnet *p, strictness rules, uint64_t *bytes,
                     ms_fault *fault)
{
    for (uint32_t v = 0; v < p->n; v++)
        p->banned[v] = is_banned(p, rules, v);
    MS_TRY(cut(p, fault));
    *bytes = 0;
    for (uint32_t v = 0; v < p->n; v++)
        if (p->is_saved[v])
            *bytes += p->graph->storage_bytes[p->storage[v]];
    return MS_OK;
}

/* Of the dear ones that backward needs, by themselves or through others, the
 * best choice in so many bytes stays banned. */
static ms_err cut_best(ms_cutnet *p, uint64_t room, ms_fault *fault)
{
    uint64_t *weight = ms_arena_take(p->arena, p->n + 1u, sizeof *weight);
    uint64_t *value = ms_arena_take(p->arena, p->n + 1u, sizeof *value);
    uint32_t *of = ms_arena_take(p->arena, p->n + 1u, sizeof *of), n = 0;
    uint8_t *kept = ms_arena_take(p->arena, p->n + 1u, 1);
    if (weight == NULL || value == NULL || of == NULL || kept == NULL)
        return ms_fail_nomem(fault);
    for (uint32_t v = 0; v < p->n; v++) {
        if (!p->is_dear[v] || !p->is_saved[v] || p->is_fixed[v])
            continue;
        weight[n] = p->graph->storage_bytes[p->storage[v]];
        value[n] = p->time_ns[v] > 0 ? p->time_ns[v] : 1;
        of[n++] = v;
    }
    const ms_knapsack sack = {n, weight, value, room};
    MS_TRY(ms_knapsack_best(&sack, p->arena, kept, fault));
    for (uint32_t i = 0; i < n; i++)
        p->banned[of[i]] = kept[i];
    return cut(p, fault);
}

static ms_err choose(ms_cutnet *p, uint64_t percent, ms_fault *fault)
{
    uint64_t bytes, room;
    MS_TRY(cut_by(p, ALL_RULES, &p->all_bytes, fault));
    room = p->all_bytes / 100 * percent + p->all_bytes % 100 * percent / 100;
    if (percent == 100)
        return MS_OK;
    MS_TRY(cut_by(p, NO_FUSION, &bytes, fault));
    if (bytes < room)
        return MS_OK;
    MS_TRY(cut_by(p, DEAR_OPS, &bytes, fault));
    return bytes < room ? MS_OK : cut_best(p, room, fault);
}

/* Until which unit's backward what is saved is needed: by nodes that save it,
 * or to make again what others need. */
static void find_ends(ms_cutnet *p)
{
    for (uint32_t v = 0; v < p->n; v++) {
        p->until[v] = p->saved_until[v];
        p->makes[v] = 0;
    }
    for (uint32_t v = p->n; v-- > 0;)
        for (uint32_t i = p->net.dep_at[v];
             i < p->net.dep_at[v + 1] && !p->is_saved[v]; i++) {
            uint32_t from = p->net.dep[i];
            p->makes[from] |= p->until[v] != MS_NONE;
            if (p->until[v] < p->until[from])
                p->until[from] = p->until[v];
        }
}

ms_err ms_cutnet_choose(ms_cutnet *p, uint64_t percent, ms_fault *fault)
{
    MS_TRY(choose(p, percent, fault));
    find_ends(p);
    return MS_OK;
}
