/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "policies/solve/evictstate.h"

static uint32_t root_of(ms_evictclasses *c, uint32_t node)
{
    while (c->parent[node] != node) {
        c->parent[node] = c->parent[c->parent[node]];
        node = c->parent[node];
    }
    return node;
}

static uint32_t meet(ms_evictstate *state, uint32_t s, uint32_t n)
{
    ms_evictclasses *c = &state->classes;
    if (c->seen[s] == c->tick || !ms_evictstate_gone(state, s))
        return n;
    c->seen[s] = c->tick;
    c->near[n] = s;
    return n + 1;
}

/* What is gone among those that it is made from or that are made from it. */
static uint32_t find_near(ms_evictstate *state, uint32_t storage)
{
    const ms_graph *graph = state->graph;
    ms_evictclasses *c = &state->classes;
    uint32_t n = 0;
    c->seen[storage] = ++c->tick;
    for (uint32_t i = state->maker_at[storage];
         i < state->maker_at[storage + 1] && state->maker[i] < state->n_ops;
         i++) {
        uint32_t op = state->maker[i];
        for (uint32_t k = graph->in_at[op]; k < graph->in_at[op + 1]; k++)
            n = meet(state, graph->in[k], n);
    }
    for (uint32_t i = state->reader_at[storage];
         i < state->reader_at[storage + 1] && state->reader[i] < state->n_ops;
         i++) {
        uint32_t op = state->reader[i];
        for (uint32_t k = graph->out_at[op]; k < graph->out_at[op + 1]; k++)
            n = meet(state, graph->out[k], n);
        for (uint32_t k = graph->view_at ? graph->view_at[op] : 0;
             graph->view_at && k < graph->view_at[op + 1]; k++)
            n = meet(state, graph->view[k], n);
    }
    return n;
}

static ms_err add_node(ms_evictstate *state, uint64_t ns, uint32_t *node)
{
    ms_evictclasses *c = &state->classes;
    uint32_t capacity = c->capacity;
    c->parent = ms_arena_grow(state->arena, c->parent, &c->capacity, c->n + 1,
                              sizeof *c->parent);
    c->sum_ns = ms_arena_grow(state->arena, c->sum_ns, &capacity, c->n + 1,
                              sizeof *c->sum_ns);
    if (c->parent == NULL || c->sum_ns == NULL)
        return ms_fail_nomem(state->fault);
    *node = c->n++;
    c->parent[*node] = *node;
    c->sum_ns[*node] = (int64_t)ns;
    return MS_OK;
}

/* What is made for the first time is a class of no time until it is there. */
static ms_err node_of(ms_evictstate *state, uint32_t storage, uint32_t *node)
{
    ms_evictclasses *c = &state->classes;
    if (c->node[storage] == MS_NONE)
        MS_TRY(add_node(state, 0, &c->node[storage]));
    *node = c->node[storage];
    return MS_OK;
}

ms_err ms_evictclasses_went(ms_evictstate *state, uint32_t storage)
{
    ms_evictclasses *c = &state->classes;
    uint32_t node, n = find_near(state, storage);
    MS_TRY(add_node(state, state->own_ns[storage], &c->node[storage]));
    for (uint32_t i = 0; i < n; i++) {
        MS_TRY(node_of(state, c->near[i], &node));
        uint32_t other = root_of(c, node);
        uint32_t own = root_of(c, c->node[storage]);
        if (other == own)
            continue;
        c->parent[other] = own;
        c->sum_ns[own] += c->sum_ns[other];
    }
    return MS_OK;
}

void ms_evictclasses_came(ms_evictstate *state, uint32_t storage)
{
    ms_evictclasses *c = &state->classes;
    if (c->node[storage] != MS_NONE)
        c->sum_ns[root_of(c, c->node[storage])] -=
            (int64_t)state->own_ns[storage];
    c->node[storage] = MS_NONE;
}

int64_t ms_evictclasses_around(ms_evictstate *state, uint32_t storage)
{
    ms_evictclasses *c = &state->classes;
    uint32_t n = find_near(state, storage), n_roots = 0;
    int64_t ns = 0;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t node = c->node[c->near[i]], k = 0;
        if (node == MS_NONE) /* it is on its way for the first time */
            continue;
        uint32_t root = root_of(c, node);
        while (k < n_roots && c->near[k] != root)
            k++;
        if (k < n_roots)
            continue;
        c->near[n_roots++] = root;
        ns += c->sum_ns[root];
    }
    return ns;
}

ms_err ms_evictclasses_open(ms_evictstate *state)
{
    ms_evictclasses *c = &state->classes;
    size_t n = state->graph->n_storages + 1u;
    c->node = ms_arena_take_raw(state->arena, n, sizeof *c->node);
    c->seen = ms_arena_take(state->arena, n, sizeof *c->seen);
    c->near = ms_arena_take_raw(state->arena, n, sizeof *c->near);
    if (c->node == NULL || c->seen == NULL || c->near == NULL)
        return ms_fail_nomem(state->fault);
    for (uint32_t s = 0; s < n; s++)
        c->node[s] = MS_NONE;
    return MS_OK;
}
