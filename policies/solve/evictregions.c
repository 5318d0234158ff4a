/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "policies/solve/evictstate.h"
#include "sim/base/size.h"

#include <string.h>

static uint64_t *row_of(const ms_evictregions *r, uint64_t *table, uint32_t s)
{
    return table + (size_t)s * r->n_words;
}

static bool has(const uint64_t *row, uint32_t s)
{
    return row[s / 64] >> s % 64 & 1;
}

static void put(uint64_t *row, uint32_t s)
{
    row[s / 64] |= UINT64_C(1) << s % 64;
}

static void clear(ms_evictregions *r, int way, uint32_t s)
{
    memset(row_of(r, r->inside[way], s), 0, r->n_words * sizeof(uint64_t));
    memset(row_of(r, r->edge[way], s), 0, r->n_words * sizeof(uint64_t));
    r->sum_ns[way][s] = 0;
}

/* ---- anew ---------------------------------------------------------------- */

typedef struct search {
    ms_evictstate *state;
    int way;
    uint32_t base, n;
    uint64_t *inside, *edge, ns;
} search;

/* What is pinned takes no part: nobody asks for its region. */
static void meet(search *f, uint32_t s)
{
    const ms_evictstate *state = f->state;
    if (state->here[s]) {
        if (s != f->base && !state->pinned[s])
            put(f->edge, s);
        return;
    }
    if (has(f->inside, s))
        return;
    put(f->inside, s);
    f->ns += state->own_ns[s];
    f->state->regions.stack[f->n++] = s;
}

static void meet_outs(search *f, uint32_t op)
{
    const ms_graph *graph = f->state->graph;
    for (uint32_t i = graph->out_at[op]; i < graph->out_at[op + 1]; i++)
        meet(f, graph->out[i]);
    for (uint32_t i = graph->view_at ? graph->view_at[op] : 0;
         graph->view_at && i < graph->view_at[op + 1]; i++)
        meet(f, graph->view[i]);
}

static void meet_ins(search *f, uint32_t op)
{
    const ms_graph *graph = f->state->graph;
    for (uint32_t i = graph->in_at[op]; i < graph->in_at[op + 1]; i++)
        meet(f, graph->in[i]);
}

static void rebuild(ms_evictstate *state, int way, uint32_t base)
{
    ms_evictregions *r = &state->regions;
    clear(r, way, base);
    search f = {.state = state,
                .way = way,
                .base = base,
                .n = 1,
                .inside = row_of(r, r->inside[way], base),
                .edge = row_of(r, r->edge[way], base)};
    r->stack[0] = base;
    while (f.n > 0) {
        uint32_t s = r->stack[--f.n];
        bool down = way == MS_EVICT_DOWN;
        const uint32_t *at = down ? state->reader_at : state->maker_at;
        const uint32_t *ops = down ? state->reader : state->maker;
        for (uint32_t i = at[s]; i < at[s + 1] && ops[i] < state->n_ops; i++) {
            if (down)
                meet_outs(&f, ops[i]);
            else
                meet_ins(&f, ops[i]);
        }
    }
    r->sum_ns[way][base] = f.ns;
}

/* ---- one more that is gone ----------------------------------------------- */

/* The storage went, and lies at the edge of base's region: what is behind it is
 * inside from now on. */
static void absorb(ms_evictstate *state, int way, uint32_t base, uint32_t gone)
{
    ms_evictregions *r = &state->regions;
    uint64_t *inside = row_of(r, r->inside[way], base);
    uint64_t *edge = row_of(r, r->edge[way], base), ns = 0;
    const uint64_t *more = row_of(r, r->inside[way], gone);
    const uint64_t *more_edge = row_of(r, r->edge[way], gone);
    for (uint32_t w = 0; w < r->n_words; w++) {
        uint64_t fresh = more[w] & ~inside[w];
        inside[w] |= fresh;
        edge[w] |= more_edge[w];
        for (; fresh != 0; fresh &= fresh - 1)
            ns += state->own_ns[64 * w + (uint32_t)__builtin_ctzll(fresh)];
    }
    edge[gone / 64] &= ~(UINT64_C(1) << gone % 64);
    edge[base / 64] &= ~(UINT64_C(1) << base % 64);
    if (!has(inside, gone))
        ns += state->own_ns[gone];
    put(inside, gone);
    r->sum_ns[way][base] += ns;
}

void ms_evictregions_went(ms_evictstate *state, uint32_t storage)
{
    ms_evictregions *r = &state->regions;
    for (int way = 0; way < MS_EVICT_WAYS; way++) {
        const uint64_t *edge = row_of(r, r->edge[1 - way], storage);
        for (uint32_t w = 0; w < r->n_words; w++)
            for (uint64_t bits = edge[w]; bits != 0; bits &= bits - 1)
                absorb(state, way, 64 * w + (uint32_t)__builtin_ctzll(bits),
                       storage);
    }
    clear(r, MS_EVICT_DOWN, storage);
    clear(r, MS_EVICT_UP, storage);
}

void ms_evictregions_came(ms_evictstate *state, const uint32_t *storages,
                          uint32_t n)
{
    ms_evictregions *r = &state->regions;
    for (int way = 0; way < MS_EVICT_WAYS; way++)
        memset(r->touched[way], 0, r->n_words * sizeof(uint64_t));
    for (uint32_t i = 0; i < n; i++)
        for (int way = 0; way < MS_EVICT_WAYS; way++) {
            rebuild(state, way, storages[i]);
            const uint64_t *edge = row_of(r, r->edge[way], storages[i]);
            for (uint32_t w = 0; w < r->n_words; w++)
                r->touched[1 - way][w] |= edge[w];
        }
    for (int way = 0; way < MS_EVICT_WAYS; way++)
        for (uint32_t w = 0; w < r->n_words; w++)
            for (uint64_t bits = r->touched[way][w]; bits != 0;
                 bits &= bits - 1)
                rebuild(state, way, 64 * w + (uint32_t)__builtin_ctzll(bits));
}

ms_err ms_evictregions_open(ms_evictstate *state)
{
    ms_evictregions *r = &state->regions;
    size_t n = state->graph->n_storages;
    r->n_words = (uint32_t)(n / 64 + 1);
    if (2 * MS_EVICT_WAYS * n * r->n_words * sizeof(uint64_t) >
        MS_EVICTOR_TABLE)
        return ms_fail(
            state->fault, MS_EUSAGE, "dtr", "write h=eq",
            "h=dtr, h=msps and h=esize look at each pair of tensors: "
            "the log has too many");
    for (int way = 0; way < MS_EVICT_WAYS; way++) {
        r->inside[way] =
            ms_arena_take(state->arena, n * r->n_words + 1, sizeof(uint64_t));
        r->edge[way] =
            ms_arena_take(state->arena, n * r->n_words + 1, sizeof(uint64_t));
        r->sum_ns[way] = ms_arena_take(state->arena, n + 1, sizeof(uint64_t));
        r->touched[way] =
            ms_arena_take(state->arena, r->n_words, sizeof(uint64_t));
        if (r->inside[way] == NULL || r->edge[way] == NULL ||
            r->sum_ns[way] == NULL || r->touched[way] == NULL)
            return ms_fail_nomem(state->fault);
    }
    r->stack = ms_arena_take_raw(state->arena, n + 1, sizeof *r->stack);
    return r->stack == NULL ? ms_fail_nomem(state->fault) : MS_OK;
}
