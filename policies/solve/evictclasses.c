/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "policies/solve/evictstate.h"

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

/* What is made for the first time is a class of no time until it is there. */
void ms_evictclasses_went(ms_evictstate *state, uint32_t storage)
{
    ms_evictclasses *c = &state->classes;
    uint32_t n = find_near(state, storage);
    ms_goneclasses_join(&c->all, storage, state->own_ns[storage]);
    for (uint32_t i = 0; i < n; i++) {
        if (!ms_goneclasses_has(&c->all, c->near[i]))
            ms_goneclasses_join(&c->all, c->near[i], 0);
        ms_goneclasses_merge(&c->all, storage, c->near[i]);
    }
}

void ms_evictclasses_came(ms_evictstate *state, uint32_t storage)
{
    ms_evictclasses *c = &state->classes;
    if (ms_goneclasses_has(&c->all, storage))
        ms_goneclasses_leave(&c->all, storage, state->own_ns[storage]);
}

int64_t ms_evictclasses_around(ms_evictstate *state, uint32_t storage)
{
    ms_evictclasses *c = &state->classes;
    uint32_t n = find_near(state, storage), n_met = 0;
    int64_t ns = 0;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t class = c->all.class_of[c->near[i] + 1], k = 0;
        if (class == 0) /* it is on its way for the first time */
            continue;
        while (k < n_met && c->near[k] != class)
            k++;
        if (k < n_met)
            continue;
        c->near[n_met++] = class;
        ns += c->all.sum_ns[class];
    }
    return ns;
}

ms_err ms_evictclasses_open(ms_evictstate *state)
{
    ms_evictclasses *c = &state->classes;
    size_t n = state->graph->n_storages + 1u;
    uint32_t items = state->graph->n_storages;
    void *memory = ms_arena_take(state->arena, ms_goneclasses_size(items), 1);
    c->seen = ms_arena_take(state->arena, n, sizeof *c->seen);
    c->near = ms_arena_take_raw(state->arena, n, sizeof *c->near);
    if (memory == NULL || c->seen == NULL || c->near == NULL)
        return ms_fail_nomem(state->fault);
    ms_goneclasses_open(&c->all, memory, items);
    return MS_OK;
}
