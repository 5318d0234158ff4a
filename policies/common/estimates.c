/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "policies/common/estimates.h"

#include <math.h>
#include <stdlib.h>

/* More than any time. */
#define NEVER (INT64_MAX / 4)

#define NO_SPAN                                                                \
    {                                                                          \
        MS_NONE, 0, MS_NONE, 0                                                 \
    }
#define NO_TERM(ns)                                                            \
    {                                                                          \
        .least_ns = (ns), .span = { NO_SPAN, NO_SPAN, NO_SPAN }                \
    }

static const ms_estimates_node nothing = {
    .id = MS_NONE,
    .first_call = MS_NONE,
    .rate = -INFINITY,
    .term = {NO_TERM(NEVER), NO_TERM(NEVER), NO_TERM(NEVER)},
    .late_ns = NEVER,
    .end_ns = NEVER};

/* ---- kinds --------------------------------------------------------------- */

typedef struct entry {
    uint64_t bytes;
    uint32_t tensor;
} entry;

static int by_kind(const void *a, const void *b)
{
    const entry *x = a, *y = b;
    if (x->bytes != y->bytes)
        return x->bytes < y->bytes ? -1 : 1;
    return (x->tensor > y->tensor) - (x->tensor < y->tensor);
}

/* So many tensors of one kind. */
static void add_kind(ms_estimates *e, const entry *list, uint32_t n)
{
    uint32_t root =
        e->n > 0 ? e->root[e->n - 1] + 2 * e->n_leaves[e->n - 1] : 0;
    e->root[e->n] = root;
    e->n_leaves[e->n] = n;
    e->sample[e->n] = list[0].tensor;
    for (uint32_t i = 0; i < n; i++) {
        e->leaf[list[i].tensor] = n + i;
        e->kind_of[list[i].tensor] = e->n;
    }
    for (uint32_t i = 0; i < 2 * n; i++)
        e->nodes[root + i] = nothing;
    e->n++;
}

ms_err ms_estimates_open(ms_estimates *e, const uint64_t *bytes, uint32_t n,
                         ms_arena *arena, ms_fault *fault)
{
    uint32_t **const columns[] = {&e->leaf, &e->kind_of, &e->root, &e->n_leaves,
                                  &e->sample};
    entry *list = ms_arena_take_raw(arena, n, sizeof *list);
    e->n = 0;
    e->nodes = ms_arena_take_raw(arena, 2 * (size_t)n, sizeof *e->nodes);
    if (list == NULL || e->nodes == NULL)
        return ms_fail_nomem(fault);
    for (size_t i = 0; i < sizeof columns / sizeof *columns; i++)
        if ((*columns[i] = ms_arena_take_raw(arena, n, sizeof(uint32_t))) ==
            NULL)
            return ms_fail_nomem(fault);
    for (uint32_t i = 0; i < n; i++)
        list[i] = (entry){bytes[i], i};
    qsort(list, n, sizeof *list, by_kind);
    for (uint32_t i = 0, first = 0; i < n; i++)
        if (i + 1 == n || list[i].bytes != list[i + 1].bytes) {
            add_kind(e, list + first, i + 1 - first);
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

static int64_t shorter(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t longer(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static void join_term(const ms_estimates_term *a, const ms_estimates_term *b,
                      ms_estimates_term *both)
{
    both->least_ns = shorter(a->least_ns, b->least_ns);
    both->more_ns = 0;
    for (uint32_t axis = 0; axis < MS_ESTIMATES_AXES; axis++) {
        const ms_estimates_span *x = &a->span[axis], *y = &b->span[axis];
        both->span[axis] =
            (ms_estimates_span){lesser(x->least_first, y->least_first),
                                greater(x->most_first, y->most_first),
                                lesser(x->least_last, y->least_last),
                                greater(x->most_last, y->most_last)};
    }
}

static void pull(ms_estimates_node *nodes, uint32_t at)
{
    const ms_estimates_node *a = &nodes[2 * at], *b = a + 1;
    ms_estimates_node *both = &nodes[at];
    both->id = lesser(a->id, b->id);
    both->first_call = lesser(a->first_call, b->first_call);
    both->last_call = greater(a->last_call, b->last_call);
    both->rate = a->rate > b->rate ? a->rate : b->rate;
    both->late_ns = shorter(a->late_ns, b->late_ns);
    both->end_ns = shorter(a->end_ns, b->end_ns);
    for (uint32_t term = 0; term < MS_ESTIMATES_TERMS; term++)
        join_term(&a->term[term], &b->term[term], &both->term[term]);
}

/* To all below the node.  What was in time may still be. */
static void add(ms_estimates_node *node, uint32_t term, int64_t ns)
{
    ms_estimates_term *t = node->term;
    int64_t before_ns = longer(t[term].least_ns, 0);
    t[term].least_ns += ns;
    t[term].more_ns += ns;
    if (term == MS_ESTIMATES_AWAY)
        return;
    int64_t late_ns = longer(t[MS_ESTIMATES_OUT].least_ns, 0) +
                      longer(t[MS_ESTIMATES_IN].least_ns, 0);
    if (ns > 0)
        ns = longer(t[term].least_ns, 0) - before_ns;
    node->late_ns = longer(node->late_ns + ns, late_ns);
}

/* An end of spans that is the same in all of a node is so in its halves. */
static void settle_calls(const ms_estimates_term *term, ms_estimates_term *half)
{
    const ms_estimates_span *from = &term->span[MS_ESTIMATES_CALL];
    ms_estimates_span *to = &half->span[MS_ESTIMATES_CALL];
    if (to->least_first > to->most_first)
        return;
    if (from->least_first == from->most_first)
        to->least_first = to->most_first = from->least_first;
    if (from->least_last == from->most_last)
        to->least_last = to->most_last = from->least_last;
}

/* What was to be added to both halves of a node is. */
static void settle(ms_estimates_node *nodes, uint32_t at)
{
    ms_estimates_node *node = &nodes[at], *half = &nodes[2 * at];
    for (uint32_t term = 0; term < MS_ESTIMATES_TERMS; term++) {
        int64_t ns = node->term[term].more_ns;
        node->term[term].more_ns = 0;
        for (uint32_t i = 0; i < 2; i++) {
            settle_calls(&node->term[term], &half[i].term[term]);
            if (ns != 0)
                add(&half[i], term, ns);
        }
    }
}

static ms_estimates_node *nodes_of(const ms_estimates *e, uint32_t tensor)
{
    return e->nodes + e->root[e->kind_of[tensor]];
}

void ms_estimates_set(ms_estimates *e, uint32_t tensor, uint32_t first_call,
                      uint32_t last_call)
{
    ms_estimates_node *nodes = nodes_of(e, tensor);
    uint32_t at = e->leaf[tensor], bits = 0;
    double rate = nodes[at].rate;
    while (at >> (bits + 1) > 0)
        bits++;
    for (; bits > 0; bits--)
        settle(nodes, at >> bits);
    nodes[at] = nothing;
    if (last_call > 0)
        nodes[at] = (ms_estimates_node){
            .id = tensor,
            .first_call = first_call,
            .last_call = last_call,
            .rate = rate,
            .term = {NO_TERM(-NEVER), NO_TERM(-NEVER), NO_TERM(-NEVER)},
            .end_ns = NEVER};
    while ((at /= 2) > 0)
        pull(nodes, at);
}

void ms_estimates_rate(ms_estimates *e, uint32_t tensor, double rate)
{
    ms_estimates_node *nodes = nodes_of(e, tensor);
    uint32_t at = e->leaf[tensor];
    nodes[at].rate = rate;
    while ((at /= 2) > 0) {
        double a = nodes[2 * at].rate, b = nodes[2 * at + 1].rate;
        nodes[at].rate = a > b ? a : b;
    }
}

ms_estimates_term ms_estimates_known(int64_t least_ns)
{
    return (ms_estimates_term)NO_TERM(least_ns);
}

ms_estimates_span ms_estimates_between(uint32_t first, uint32_t last)
{
    return (ms_estimates_span){first, first, last, last};
}

/* ---- changes ------------------------------------------------------------- */

typedef struct change {
    ms_estimates_node *nodes;
    uint32_t term, axis, where, other;
    int64_t ns;
} change;

static void add_below(const change *c, uint32_t at)
{
    ms_estimates_node *node = &c->nodes[at];
    const ms_estimates_span *span = &node->term[c->term].span[c->axis];
    if (c->where <= span->least_first || c->where >= span->most_last)
        return;
    if (c->where > span->most_first && c->where < span->least_last) {
        add(node, c->term, c->ns);
        return;
    }
    settle(c->nodes, at);
    add_below(c, 2 * at);
    add_below(c, 2 * at + 1);
    pull(c->nodes, at);
}

void ms_estimates_add(ms_estimates *e, uint32_t axis, uint32_t where,
                      int64_t ns)
{
    change c = {.axis = axis, .where = where, .ns = ns};
    for (uint32_t kind = 0; kind < e->n; kind++)
        for (c.term = 0; c.term < MS_ESTIMATES_TERMS; c.term++) {
            c.nodes = e->nodes + e->root[kind];
            add_below(&c, 1);
        }
}

static void move_below(const change *c, uint32_t at)
{
    ms_estimates_node *node = &c->nodes[at];
    ms_estimates_span *span = &node->term[c->term].span[MS_ESTIMATES_CALL];
    bool first = c->term == MS_ESTIMATES_IN;
    uint32_t *least = first ? &span->least_first : &span->least_last;
    uint32_t *most = first ? &span->most_first : &span->most_last;
    if (c->where < *least || c->where > *most)
        return;
    if (*least == *most) {
        *least = *most = c->other;
        add(node, c->term, c->ns);
        return;
    }
    settle(c->nodes, at);
    move_below(c, 2 * at);
    move_below(c, 2 * at + 1);
    pull(c->nodes, at);
}

void ms_estimates_move(ms_estimates *e, uint32_t term, uint32_t call,
                       uint32_t other, int64_t ns)
{
    change c = {.term = term, .where = call, .other = other, .ns = ns};
    for (uint32_t kind = 0; kind < e->n; kind++) {
        c.nodes = e->nodes + e->root[kind];
        move_below(&c, 1);
    }
}

/* ---- the best ------------------------------------------------------------ */

typedef struct search {
    const ms_estimates_way *way;
    uint32_t call, n_leaves, like;
    ms_estimates_node *nodes;
    ms_estimates_best best;
} search;

static double most_of(const search *s, uint32_t at)
{
    const ms_estimates_node *node = &s->nodes[at];
    if (node->first_call >= s->call || node->last_call <= s->call)
        return -INFINITY;
    return s->way->most(s->way->of, node, s->like);
}

static bool is_better(const search *s, uint32_t at, double score)
{
    return score > s->best.score ||
           (score >= s->best.score && isfinite(score) &&
            s->nodes[at].id < s->best.tensor);
}

static bool look(search *s, uint32_t at, double score);

/* Both halves, the better one first. */
static bool look_below(search *s, uint32_t at)
{
    settle(s->nodes, at);
    double left = most_of(s, 2 * at), right = most_of(s, 2 * at + 1);
    bool first =
        left < right ? look(s, 2 * at + 1, right) : look(s, 2 * at, left);
    bool second =
        left < right ? look(s, 2 * at, left) : look(s, 2 * at + 1, right);
    if (first || second)
        pull(s->nodes, at);
    return first || second;
}

/* Is more known of a tensor below? */
static bool look(search *s, uint32_t at, double score)
{
    bool tries = s->way->exact != NULL;
    if (!is_better(s, at, score))
        return false;
    if (at < s->n_leaves)
        return look_below(s, at);
    if (tries)
        score = s->way->exact(s->way->of, &s->nodes[at]);
    if (is_better(s, at, score))
        s->best = (ms_estimates_best){s->nodes[at].id, score};
    return tries;
}

ms_estimates_best ms_estimates_find(ms_estimates *e, uint32_t call,
                                    const ms_estimates_way *way, double least)
{
    search s = {.way = way, .call = call, .best = {MS_NONE, least}};
    for (uint32_t kind = 0; kind < e->n; kind++) {
        s.nodes = e->nodes + e->root[kind];
        s.n_leaves = e->n_leaves[kind];
        s.like = e->sample[kind];
        look(&s, 1, most_of(&s, 1));
    }
    return s.best;
}
