/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A graph as the rank of a stage sees it: the same rows, but references that
 * would end behind an op of another rank end here.  What ops of other ranks
 * read later lasts until it is sent; anything else until the last op of the
 * rank's own that touches it.  What autograd's nodes of other ranks save is not
 * saved here. */
#include "sim/expand/books.h"
#include "sim/expand/views/viewdrops.h"
#include "sim/graph.h"
#include "sim/program.h"

#include <string.h>

typedef struct viewing {
    const ms_graph *graph;
    uint32_t *own; /* per unit: is it the rank's? */
    ms_graph *view;
    uint32_t *touched[2]; /* per storage: the rank's last op that touches it,
                             in forward and in backward; MS_NONE */
    uint32_t *read;       /* per storage: the last op of another rank that reads
                             it */
} viewing;

/* Ops of the step are every rank's. */
static bool is_own(const viewing *v, uint32_t op)
{
    return op >= v->graph->step_first || v->own[v->graph->op_unit[op]] > 0;
}

static bool is_forward(const ms_graph *graph, uint32_t op)
{
    return op != MS_NONE && graph->op_pass[op] <= MS_LOSS;
}

/* What backward reads of forward is there when the unit's forward has run. */
static uint32_t due(const viewing *v, uint32_t op, uint32_t s)
{
    const ms_graph *g = v->graph;
    if (is_forward(g, op) || !is_forward(g, g->storage_maker[s]))
        return op;
    return g->forward_at[g->op_unit[op] + 1] - 1;
}

static void raise_to(uint32_t *last, uint32_t op)
{
    if (*last == MS_NONE || *last < op)
        *last = op;
}

static void touch(viewing *v, uint32_t op, const uint32_t *list, uint32_t first,
                  uint32_t end)
{
    bool back = !is_forward(v->graph, op);
    for (uint32_t i = first; i < end; i++) {
        v->touched[back][list[i]] = op;
        if (back && due(v, op, list[i]) != op)
            raise_to(&v->touched[0][list[i]], due(v, op, list[i]));
    }
}

static void find_touched(viewing *v)
{
    const ms_graph *g = v->graph;
    for (uint32_t op = 0; op < g->step_first; op++) {
        if (!is_own(v, op)) {
            for (uint32_t i = g->in_at[op]; i < g->in_at[op + 1]; i++)
                raise_to(&v->read[g->in[i]], due(v, op, g->in[i]));
            continue;
        }
        touch(v, op, g->in, g->in_at[op], g->in_at[op + 1]);
        touch(v, op, g->out, g->out_at[op], g->out_at[op + 1]);
    }
}

static uint32_t last_touched(const viewing *v, uint32_t s)
{
    return v->touched[!is_forward(v->graph, v->graph->storage_maker[s])][s];
}

/* Does what ends on another rank last until it is sent?  A rank that hands on
 * what it has received holds it. */
static bool is_sent(const viewing *v, uint32_t s)
{
    uint32_t maker = v->graph->storage_maker[s];
    return maker != MS_NONE && is_own(v, maker) && v->read[s] != MS_NONE &&
           v->read[s] > last_touched(v, s);
}

/* Where the variable ends, if there is one. */
static void end_local(const viewing *v, uint32_t s)
{
    uint32_t *end = &v->view->storage_local_end[s];
    bool elsewhere = *end != MS_NONE && !is_own(v, *end);
    bool sent = elsewhere && is_sent(v, s);
    if (elsewhere)
        *end = sent ? MS_NONE : last_touched(v, s);
    if (*end == MS_NONE && !sent && s >= v->graph->n_persistent)
        v->view->storage_refs[s] &= (uint8_t)~MS_REF_LOCAL;
}

/* What nodes save is in the table of saves; a graph without one says so by what
 * backward reads. */
static void find_ends(viewing *v)
{
    const ms_graph *g = v->graph;
    for (uint32_t s = 0; s < g->n_storages; s++) {
        uint32_t end = g->storage_saved_end[s];
        end_local(v, s);
        if (end != MS_NONE && !is_own(v, end))
            v->view->storage_saved_end[s] =
                g->n_saves > 0 ? MS_NONE : v->touched[1][s];
    }
    for (uint32_t i = 0; i < g->n_saves; i++) {
        const ms_save *save = &g->saves[i];
        uint32_t *end = &v->view->storage_saved_end[save->storage];
        uint32_t whole = g->storage_saved_end[save->storage];
        if (whole == MS_NONE || is_own(v, whole) || !is_own(v, save->last))
            continue;
        if (*end == MS_NONE || save->last > *end)
            *end = save->last;
    }
}

static void *copy_of(ms_arena *arena, const void *items, size_t n, size_t size)
{
    void *copy = ms_arena_take_raw(arena, n, size);
    if (copy != NULL && n > 0)
        memcpy(copy, items, n * size);
    return copy;
}

static void end_saved(ms_graph *view)
{
    for (uint32_t s = view->n_persistent; s < view->n_storages; s++)
        if (view->storage_saved_end[s] == MS_NONE)
            view->storage_refs[s] &= (uint8_t)~MS_REF_SAVED;
}

ms_err ms_stageview_make(const ms_graph *graph, const ms_roles *roles,
                         uint32_t role, ms_arena *arena, ms_graph *view,
                         ms_fault *fault)
{
    uint32_t n = graph->n_storages;
    viewing v = {.graph = graph, .view = view};
    *view = *graph;
    view->storage_local_end =
        copy_of(arena, graph->storage_local_end, n, sizeof(uint32_t));
    view->storage_saved_end =
        copy_of(arena, graph->storage_saved_end, n, sizeof(uint32_t));
    view->storage_refs = copy_of(arena, graph->storage_refs, n, 1);
    v.own = ms_arena_take_raw(arena, graph->n_units, sizeof *v.own);
    v.touched[0] = ms_arena_take_raw(arena, 3 * (size_t)n, sizeof(uint32_t));
    if (!view->storage_local_end || !view->storage_saved_end ||
        !view->storage_refs || !v.own || !v.touched[0])
        return ms_fail_nomem(fault);
    ms_roles_units(roles, role, graph->n_units, v.own);
    v.touched[1] = v.touched[0] + n;
    v.read = v.touched[1] + n;
    memset(v.touched[0], 0xff, 3 * (size_t)n * sizeof(uint32_t));
    find_touched(&v);
    find_ends(&v);
    end_saved(view);
    return ms_viewdrops_list(graph, view, arena, fault);
}
