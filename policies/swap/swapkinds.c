/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "policies/swap/swaplanes.h"

#include <math.h>
#include <stdlib.h>

static const ms_swapkinds_node nothing = {.least_id = MS_NONE,
                                          .first_out = MS_NONE,
                                          .first_out_call = MS_NONE,
                                          .first_need_call = MS_NONE,
                                          .first_need_ns = UINT64_MAX,
                                          .most_behind_ns = INT64_MIN,
                                          .most_before_ns = INT64_MIN,
                                          .rate = -INFINITY};

/* ---- kinds --------------------------------------------------------------- */

typedef struct entry {
    uint64_t bytes, out_ns, in_ns;
    uint32_t tensor;
} entry;

static int compare(uint64_t a, uint64_t b)
{
    return (a > b) - (a < b);
}

static int by_kind(const void *a, const void *b)
{
    const entry *x = a, *y = b;
    int order = compare(x->bytes, y->bytes);
    order = order != 0 ? order : compare(x->out_ns, y->out_ns);
    order = order != 0 ? order : compare(x->in_ns, y->in_ns);
    return order != 0 ? order : compare(x->tensor, y->tensor);
}

static bool is_alike(const entry *a, const entry *b)
{
    return a->bytes == b->bytes && a->out_ns == b->out_ns &&
           a->in_ns == b->in_ns;
}

static ms_err take_columns(const ms_swapplan *p, ms_swapkinds *k)
{
    ms_arena *arena = p->swap->arena;
    size_t n = p->profile->n_tensors, size = sizeof(uint32_t);
    k->sample = ms_arena_take_raw(arena, n, size);
    k->leaf = ms_arena_take_raw(arena, n, size);
    k->kind_of = ms_arena_take_raw(arena, n, size);
    k->root = ms_arena_take_raw(arena, n, size);
    k->n_leaves = ms_arena_take_raw(arena, n, size);
    k->rate = ms_arena_take_raw(arena, n, sizeof *k->rate);
    /* A kind of m has fewer than 2 m leaves. */
    k->nodes = ms_arena_take_raw(arena, 4 * n, sizeof *k->nodes);
    return k->sample == NULL || k->leaf == NULL || k->kind_of == NULL ||
                   k->root == NULL || k->n_leaves == NULL || k->rate == NULL ||
                   k->nodes == NULL
               ? ms_fail_nomem(p->swap->fault)
               : MS_OK;
}

/* So many tensors of one kind; returns the nodes in use. */
static uint32_t add_kind(ms_swapkinds *k, const entry *list, uint32_t n,
                         uint32_t nodes)
{
    uint32_t leaves = 1;
    while (leaves < n)
        leaves *= 2;
    k->root[k->n] = nodes;
    k->sample[k->n] = list[0].tensor;
    k->n_leaves[k->n] = leaves;
    for (uint32_t i = 0; i < 2 * leaves; i++)
        k->nodes[nodes + i] = nothing;
    for (uint32_t i = 0; i < n; i++) {
        k->leaf[list[i].tensor] = leaves + i;
        k->kind_of[list[i].tensor] = k->n;
    }
    k->n++;
    return nodes + 2 * leaves;
}

ms_err ms_swapkinds_open(ms_swapplan *p)
{
    uint32_t n = p->profile->n_tensors, nodes = 0, first = 0;
    ms_swapkinds *k = ms_arena_take(p->swap->arena, 1, sizeof *k);
    entry *list = ms_arena_take_raw(p->swap->arena, n, sizeof *list);
    if (k == NULL || list == NULL)
        return ms_fail_nomem(p->swap->fault);
    p->kinds = k;
    MS_TRY(take_columns(p, k));
    for (uint32_t i = 0; i < n; i++)
        list[i] =
            (entry){p->profile->tensors[i].bytes, p->out_ns[i], p->in_ns[i], i};
    qsort(list, n, sizeof *list, by_kind);
    for (uint32_t i = 0; i < n; i++) {
        if (i + 1 < n && is_alike(&list[i], &list[i + 1]))
            continue;
        nodes = add_kind(k, list + first, i + 1 - first, nodes);
        first = i + 1;
    }
    return MS_OK;
}

/* ---- nodes --------------------------------------------------------------- */

static uint32_t lesser(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

static uint32_t greater(uint32_t a, uint32_t b)
{
    return a > b ? a : b;
}

static uint64_t sooner(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static uint64_t later(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static int64_t longer(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static ms_swapkinds_node join(const ms_swapkinds_node *a,
                              const ms_swapkinds_node *b)
{
    return (ms_swapkinds_node){
        .least_id = lesser(a->least_id, b->least_id),
        .first_out = lesser(a->first_out, b->first_out),
        .last_out = greater(a->last_out, b->last_out),
        .first_out_call = lesser(a->first_out_call, b->first_out_call),
        .last_out_call = greater(a->last_out_call, b->last_out_call),
        .first_need_call = lesser(a->first_need_call, b->first_need_call),
        .last_need_call = greater(a->last_need_call, b->last_need_call),
        .first_need_ns = sooner(a->first_need_ns, b->first_need_ns),
        .last_need_ns = later(a->last_need_ns, b->last_need_ns),
        .most_behind_ns = longer(a->most_behind_ns, b->most_behind_ns),
        .most_before_ns = longer(a->most_before_ns, b->most_before_ns),
        .rate = a->rate > b->rate ? a->rate : b->rate};
}

ms_swapkinds_node ms_swapkinds_leaf(const ms_swapplan *p, uint32_t tensor)
{
    const ms_profile_tensor *t = &p->profile->tensors[tensor];
    const uint64_t *start_ns = p->profile->start_ns;
    uint32_t out = p->at_out[tensor], need = p->need_call[tensor];
    uint64_t need_ns = p->need_ns[tensor];
    return (ms_swapkinds_node){tensor,
                               out,
                               out,
                               t->out_call,
                               t->out_call,
                               need,
                               need,
                               need_ns,
                               need_ns,
                               (int64_t)(start_ns[t->out_call + 1] - t->out_ns),
                               (int64_t)(need_ns - start_ns[need]),
                               p->kinds->rate[tensor]};
}

static void set_leaf(ms_swapplan *p, uint32_t tensor)
{
    const ms_swapkinds *k = p->kinds;
    k->nodes[k->root[k->kind_of[tensor]] + k->leaf[tensor]] =
        p->choice[tensor].place == MS_HERE ? ms_swapkinds_leaf(p, tensor)
                                           : nothing;
}

static void pull(ms_swapkinds_node *nodes, uint32_t at)
{
    nodes[at] = join(&nodes[2 * at], &nodes[2 * at + 1]);
}

void ms_swapkinds_update(ms_swapplan *p, uint32_t tensor)
{
    const ms_swapkinds *k = p->kinds;
    ms_swapkinds_node *nodes = k->nodes + k->root[k->kind_of[tensor]];
    set_leaf(p, tensor);
    for (uint32_t at = k->leaf[tensor] / 2; at > 0; at /= 2)
        pull(nodes, at);
}

void ms_swapkinds_update_all(ms_swapplan *p)
{
    const ms_swapkinds *k = p->kinds;
    for (uint32_t i = 0; i < p->profile->n_tensors; i++) {
        k->rate[i] = -INFINITY;
        set_leaf(p, i);
    }
    for (uint32_t kind = 0; kind < k->n; kind++)
        for (uint32_t at = k->n_leaves[kind]; at-- > 1;)
            pull(k->nodes + k->root[kind], at);
}

void ms_swapkinds_rate(ms_swapplan *p, uint32_t tensor, double rate)
{
    p->kinds->rate[tensor] = rate;
    ms_swapkinds_update(p, tensor);
}

/* ---- the best ------------------------------------------------------------ */

typedef struct search {
    ms_swapplan *plan;
    uint32_t call, leaves;
    uint32_t tensor; /* one of the kind */
    const ms_swapkinds_node *nodes;
    ms_swapkinds_score score;
    ms_swapkinds_best best;
} search;

static double score_of(const search *s, uint32_t at)
{
    const ms_swapkinds_node *node = &s->nodes[at];
    if (node->first_out_call >= s->call || node->last_need_call <= s->call)
        return -INFINITY;
    return s->score(s->plan, node, s->tensor, s->call, s->best.score);
}

static bool is_better(const search *s, uint32_t at, double score)
{
    return score > s->best.score ||
           (score >= s->best.score && isfinite(score) &&
            s->nodes[at].least_id < s->best.tensor);
}

static void look(search *s, uint32_t at, double score)
{
    if (!is_better(s, at, score))
        return;
    if (at >= s->leaves) {
        s->best = (ms_swapkinds_best){s->nodes[at].least_id, score};
        return;
    }
    double left = score_of(s, 2 * at), right = score_of(s, 2 * at + 1);
    if (left >= right)
        look(s, 2 * at, left);
    look(s, 2 * at + 1, right);
    if (left < right)
        look(s, 2 * at, left);
}

ms_swapkinds_best ms_swapkinds_find(ms_swapplan *p, uint32_t call,
                                    ms_swapkinds_score score, double least)
{
    const ms_swapkinds *k = p->kinds;
    search s = {
        .plan = p, .call = call, .score = score, .best = {MS_NONE, least}};
    for (uint32_t kind = 0; kind < k->n; kind++) {
        s.nodes = k->nodes + k->root[kind];
        s.leaves = k->n_leaves[kind];
        s.tensor = k->sample[kind];
        look(&s, 1, score_of(&s, 1));
    }
    return s.best;
}
