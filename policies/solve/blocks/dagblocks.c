/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "policies/solve/blocks/dagblocks.h"

typedef struct finder {
    const ms_nodedag *dag;
    ms_arena *arena;
    ms_fault *fault;
    uint32_t n;         /* blocks */
    uint32_t *block;    /* per node */
    uint8_t *is_output; /* per node: of its block, but the last */
    uint32_t *lowest;   /* per node: the first block that reads it */
} finder;

/* ---- cut points ---------------------------------------------------------- */

/* Blocks of forward.  False: some of forward reads a node of backward. */
static bool cut_forward(finder *f)
{
    const ms_nodedag *dag = f->dag;
    uint32_t *reach = f->lowest; /* per node: its last reader of forward */
    for (uint32_t v = 0; v < dag->n; v++) {
        reach[v] = v;
        for (uint32_t i = dag->dep_at[v]; i < dag->dep_at[v + 1]; i++) {
            if (!dag->is_backward[v] && dag->is_backward[dag->dep[i]])
                return false;
            if (!dag->is_backward[v])
                reach[dag->dep[i]] = v;
        }
    }
    f->n = 0;
    for (uint32_t v = 0, far = 0; v < dag->n; v++) {
        if (dag->is_backward[v])
            continue;
        f->block[v] = f->n;
        f->is_output[v] = far <= v && reach[v] > v;
        f->n += f->is_output[v];
        far = reach[v] > far ? reach[v] : far;
    }
    f->n++;
    return true;
}

/* ---- backward ------------------------------------------------------------ */

/* Of what a node of backward reads: its block is in [low, high]. */
static void find_range(const finder *f, uint32_t v, uint32_t *low,
                       uint32_t *high)
{
    *low = 0;
    *high = f->n - 1;
    for (uint32_t i = f->dag->dep_at[v]; i < f->dag->dep_at[v + 1]; i++) {
        uint32_t dep = f->dag->dep[i], most = f->block[dep];
        if (!f->dag->is_backward[dep] && f->block[dep] > *low)
            *low = f->block[dep];
        if (!f->dag->is_backward[dep] && f->is_output[dep])
            most++;
        *high = most < *high ? most : *high;
    }
}

/* Blocks first to last are one from now on. */
static void join(finder *f, uint32_t first, uint32_t last)
{
    for (uint32_t v = 0; v < f->dag->n; v++) {
        if (f->dag->is_backward[v])
            continue;
        if (f->block[v] > last)
            f->block[v] -= last - first;
        else if (f->block[v] >= first) {
            f->is_output[v] &= f->block[v] == last;
            f->block[v] = first;
        }
    }
    f->n -= last - first;
}

/* The blocks of nodes of backward; false: some were joined. */
static bool place_backward(finder *f)
{
    for (uint32_t v = 0; v < f->dag->n; v++) {
        uint32_t low, high;
        if (!f->dag->is_backward[v])
            continue;
        find_range(f, v, &low, &high);
        if (low > high) {
            join(f, high, low);
            return false;
        }
        f->block[v] = high;
    }
    return true;
}

/* ---- lists --------------------------------------------------------------- */

static ms_err list(const finder *f, bool backward, uint32_t **at,
                   uint32_t **nodes)
{
    const ms_nodedag *dag = f->dag;
    *at = ms_arena_take(f->arena, f->n + 2u, sizeof **at);
    *nodes = ms_arena_take(f->arena, dag->n + 1u, sizeof **nodes);
    if (*at == NULL || *nodes == NULL)
        return ms_fail_nomem(f->fault);
    for (uint32_t v = 0; v < dag->n; v++)
        if ((dag->is_backward[v] != 0) == backward)
            (*at)[f->block[v] + 2]++;
    for (uint32_t b = 0; b < f->n; b++)
        (*at)[b + 2] += (*at)[b + 1];
    for (uint32_t v = 0; v < dag->n; v++)
        if ((dag->is_backward[v] != 0) == backward)
            (*nodes)[(*at)[f->block[v] + 1]++] = v;
    return MS_OK;
}

static void find_lowest(const finder *f)
{
    const ms_nodedag *dag = f->dag;
    for (uint32_t v = 0; v < dag->n; v++) {
        f->lowest[v] = f->block[v];
        for (uint32_t i = dag->dep_at[v]; i < dag->dep_at[v + 1]; i++)
            if (f->block[v] < f->lowest[dag->dep[i]])
                f->lowest[dag->dep[i]] = f->block[v];
    }
}

static ms_err list_handed(const finder *f, ms_dagblocks *blocks)
{
    const ms_nodedag *dag = f->dag;
    uint64_t n = 0;
    uint32_t k = 0;
    for (uint32_t v = 0; v < dag->n; v++)
        n += dag->is_backward[v] ? f->block[v] - f->lowest[v] : 0;
    blocks->handed_at =
        ms_arena_take(f->arena, f->n + 1u, sizeof *blocks->handed_at);
    blocks->handed = ms_arena_take(f->arena, n + 1, sizeof *blocks->handed);
    if (blocks->handed_at == NULL || blocks->handed == NULL)
        return ms_fail_nomem(f->fault);
    for (uint32_t b = 0; b < f->n; b++) {
        for (uint32_t v = 0; v < dag->n; v++)
            if (dag->is_backward[v] && f->block[v] > b && f->lowest[v] <= b)
                blocks->handed[k++] = v;
        blocks->handed_at[b + 1] = k;
    }
    return MS_OK;
}

ms_err ms_dagblocks_find(const ms_nodedag *dag, ms_arena *arena,
                         ms_dagblocks *blocks, ms_fault *fault)
{
    finder f = {.dag = dag, .arena = arena, .fault = fault};
    f.block = ms_arena_take(arena, dag->n + 1u, sizeof *f.block);
    f.is_output = ms_arena_take(arena, dag->n + 1u, 1);
    f.lowest = ms_arena_take(arena, dag->n + 1u, sizeof *f.lowest);
    if (f.block == NULL || f.is_output == NULL || f.lowest == NULL)
        return ms_fail_nomem(fault);
    bool cuts = cut_forward(&f);
    if (!cuts)
        f.n = 1;
    for (uint32_t v = 0; v < dag->n && !cuts; v++)
        f.block[v] = f.is_output[v] = 0;
    while (cuts && !place_backward(&f)) {
    }
    find_lowest(&f);
    *blocks = (ms_dagblocks){.n = f.n};
    MS_TRY(list(&f, false, &blocks->forward_at, &blocks->forward));
    MS_TRY(list(&f, true, &blocks->backward_at, &blocks->backward));
    return list_handed(&f, blocks);
}
