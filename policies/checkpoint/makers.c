/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "policies/checkpoint/makers.h"
#include "sim/graph.h"

typedef struct walk {
    uint32_t n_storages;
    ms_makers_edges *parents, *children;
} walk;

/* The storage that op makes or finishes, if forward does. */
typedef struct maker {
    const uint32_t *made;
    uint32_t n;
} maker;

static maker made_by(const ms_graph *graph, uint32_t op)
{
    uint32_t first = graph->out_at[op];
    maker outs = {graph->out + first, graph->out_at[op + 1] - first};
    if (outs.n == 0 && graph->in_at[op] < graph->in_at[op + 1])
        outs = (maker){graph->in + graph->in_at[op], 1};
    return outs;
}

uint32_t ms_makers_end(const ms_graph *graph)
{
    return graph->backward_at[graph->n_units];
}

typedef void (*on_edge)(walk *w, uint32_t parent, uint32_t child);

static void walk_edges(walk *w, const ms_graph *graph, on_edge on)
{
    for (uint32_t op = 0; op < ms_makers_end(graph); op++) {
        maker outs = made_by(graph, op);
        for (uint32_t i = graph->in_at[op]; i < graph->in_at[op + 1]; i++)
            for (uint32_t k = 0; k < outs.n; k++)
                if (graph->in[i] >= graph->n_persistent &&
                    graph->in[i] != outs.made[k])
                    on(w, graph->in[i], outs.made[k]);
    }
}

static void count_edge(walk *w, uint32_t parent, uint32_t child)
{
    w->children->at[parent + 1]++;
    w->parents->at[child + 1]++;
}

static void fill_edge(walk *w, uint32_t parent, uint32_t child)
{
    w->children->to[w->children->at[parent]++] = child;
    w->parents->to[w->parents->at[child]++] = parent;
}

static ms_err take_edges(const walk *w, ms_makers_edges *e, ms_arena *arena,
                         ms_fault *fault)
{
    for (uint32_t i = 0; i < w->n_storages; i++)
        e->at[i + 1] += e->at[i];
    e->to = ms_arena_take_raw(arena, e->at[w->n_storages] + 1u, sizeof *e->to);
    return e->to != NULL ? MS_OK : ms_fail_nomem(fault);
}

/* Filling has moved each offset to its end, the offset of the next one. */
static void move_back(const walk *w, ms_makers_edges *e)
{
    for (uint32_t i = w->n_storages; i > 0; i--)
        e->at[i] = e->at[i - 1];
    e->at[0] = 0;
}

ms_err ms_makers_find(const ms_graph *graph, ms_arena *arena,
                      ms_makers_edges *parents, ms_makers_edges *children,
                      ms_fault *fault)
{
    walk w = {graph->n_storages, parents, children};
    size_t n = (size_t)w.n_storages + 1;
    parents->at = ms_arena_take(arena, n, sizeof *parents->at);
    children->at = ms_arena_take(arena, n, sizeof *children->at);
    if (parents->at == NULL || children->at == NULL)
        return ms_fail_nomem(fault);
    walk_edges(&w, graph, count_edge);
    MS_TRY(take_edges(&w, parents, arena, fault));
    MS_TRY(take_edges(&w, children, arena, fault));
    walk_edges(&w, graph, fill_edge);
    move_back(&w, parents);
    move_back(&w, children);
    return MS_OK;
}

ms_err ms_makers_costs(const ms_graph *graph, ms_arena *arena,
                       uint64_t **cost_ns, ms_fault *fault)
{
    *cost_ns = ms_arena_take(arena, graph->n_storages, sizeof **cost_ns);
    if (*cost_ns == NULL)
        return ms_fail_nomem(fault);
    for (uint32_t op = 0; op < ms_makers_end(graph); op++) {
        maker outs = made_by(graph, op);
        for (uint32_t k = 0; k < outs.n; k++)
            (*cost_ns)[outs.made[k]] += graph->op_ns[op];
    }
    return MS_OK;
}
