/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A graph as the rank of a stage sees it: the same rows, but references that
 * would end behind an op of another rank end here.  What ops of other ranks
 * read later lasts until it is sent; anything else until the last op of the
 * rank's own that touches it.  What autograd's nodes of other ranks save is not
 * saved here. */
#include "sim/expand/books.h"
#include "sim/graph.h"
#include "sim/program.h"
#include "sim/stage.h"

#include <string.h>

typedef struct viewing {
    const ms_graph *graph;
    const ms_program *program;
    uint16_t rank;
    ms_graph *view;
    uint32_t *touched[2]; /* per storage: the rank's last op that touches it,
                             in forward and in backward; MS_NONE */
    uint32_t *read;       /* per storage: the last op of another rank that reads
                             it */
} viewing;

/* Ops of the step are every rank's. */
static bool is_own(const viewing *v, uint32_t op)
{
    uint32_t unit = v->graph->op_unit[op];
    return op >= v->graph->step_first ||
           ms_stage_has(v->program, v->rank, unit);
}

static bool is_forward(const ms_graph *graph, uint32_t op)
{
    return op != MS_NONE && graph->op_pass[op] <= MS_LOSS;
}

static void touch(viewing *v, uint32_t op, const uint32_t *list, uint32_t first,
                  uint32_t end)
{
    uint32_t *touched = v->touched[!is_forward(v->graph, op)];
    for (uint32_t i = first; i < end; i++)
        touched[list[i]] = op;
}

static void find_touched(viewing *v)
{
    const ms_graph *g = v->graph;
    for (uint32_t op = 0; op < g->step_first; op++) {
        if (!is_own(v, op)) {
            for (uint32_t i = g->in_at[op]; i < g->in_at[op + 1]; i++)
                v->read[g->in[i]] = op;
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

/* Does it last until it is sent?  A rank that hands on what it has received
 * holds it. */
static bool is_sent(const viewing *v, uint32_t s)
{
    uint32_t end = v->graph->storage_local_end[s], last = last_touched(v, s);
    uint32_t maker = v->graph->storage_maker[s];
    return end != MS_NONE && !is_own(v, end) && maker != MS_NONE &&
           is_own(v, maker) && v->read[s] != MS_NONE && v->read[s] > last;
}

static uint32_t local_end(const viewing *v, uint32_t s)
{
    uint32_t end = v->graph->storage_local_end[s];
    if (end == MS_NONE || is_own(v, end))
        return end;
    return is_sent(v, s) ? MS_NONE : last_touched(v, s);
}

/* What nodes save is in the table of saves; a graph without one says so by what
 * backward reads. */
static void find_ends(viewing *v)
{
    const ms_graph *g = v->graph;
    for (uint32_t s = 0; s < g->n_storages; s++) {
        uint32_t end = g->storage_saved_end[s];
        v->view->storage_local_end[s] = local_end(v, s);
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

/* Does the reference end where it does in the whole graph? */
static bool stays(const viewing *v, uint32_t drop)
{
    const ms_graph *g = v->graph, *view = v->view;
    uint32_t s = MS_DROP_STORAGE(drop);
    if (drop & MS_DROP_SAVED)
        return view->storage_saved_end[s] == g->storage_saved_end[s];
    return view->storage_local_end[s] == g->storage_local_end[s];
}

/* References whose end is another: of each storage its LOCAL and its SAVED
 * one. */
static uint32_t list_moved(const viewing *v, uint32_t *moved)
{
    const ms_graph *g = v->graph, *view = v->view;
    uint32_t n = 0;
    for (uint32_t s = 0; s < g->n_storages; s++) {
        if (!stays(v, MS_DROP(s, 0)) && view->storage_local_end[s] != MS_NONE)
            moved[n++] = MS_DROP(s, 0);
        if (!stays(v, MS_DROP(s, 1)) && view->storage_saved_end[s] != MS_NONE)
            moved[n++] = MS_DROP(s, 1);
    }
    return n;
}

static uint32_t end_of(const ms_graph *view, uint32_t drop)
{
    uint32_t s = MS_DROP_STORAGE(drop);
    return drop & MS_DROP_SAVED ? view->storage_saved_end[s]
                                : view->storage_local_end[s];
}

/* Those that end where they did stay in their order, the others follow: counted
 * first (at[op + 2]), then placed. */
static void place_drops(const viewing *v, const uint32_t *moved,
                        uint32_t n_moved, uint32_t *at, uint32_t *drop)
{
    const ms_graph *g = v->graph;
    for (uint32_t i = 0; i < n_moved; i++)
        at[end_of(v->view, moved[i]) + 2]++;
    for (uint32_t op = 0; op < g->n_ops; op++)
        for (uint32_t i = g->drop_at[op]; i < g->drop_at[op + 1]; i++)
            at[op + 2] += stays(v, g->drop[i]);
    for (uint32_t op = 0; op < g->n_ops; op++)
        at[op + 2] += at[op + 1];
    for (uint32_t op = 0; op < g->n_ops; op++)
        for (uint32_t i = g->drop_at[op]; i < g->drop_at[op + 1]; i++)
            if (stays(v, g->drop[i]))
                drop[at[op + 1]++] = g->drop[i];
    for (uint32_t i = 0; i < n_moved; i++)
        drop[at[end_of(v->view, moved[i]) + 1]++] = moved[i];
}

static ms_err list_drops(viewing *v, ms_arena *arena, ms_fault *fault)
{
    const ms_graph *g = v->graph;
    size_t refs = 2 * (size_t)g->n_storages + 1;
    uint32_t *at = ms_arena_take(arena, (size_t)g->n_ops + 2, sizeof *at);
    uint32_t *moved = ms_arena_take_raw(arena, refs, sizeof *moved);
    uint32_t *drop =
        ms_arena_take_raw(arena, g->drop_at[g->n_ops] + refs, sizeof *drop);
    if (at == NULL || drop == NULL || moved == NULL)
        return ms_fail_nomem(fault);
    place_drops(v, moved, list_moved(v, moved), at, drop);
    v->view->drop_at = at;
    v->view->drop = drop;
    return MS_OK;
}

static void *copy_of(ms_arena *arena, const void *items, size_t n, size_t size)
{
    void *copy = ms_arena_take_raw(arena, n, size);
    if (copy != NULL && n > 0)
        memcpy(copy, items, n * size);
    return copy;
}

static void find_refs(const viewing *v)
{
    ms_graph *view = v->view;
    for (uint32_t s = view->n_persistent; s < view->n_storages; s++) {
        uint8_t *refs = &view->storage_refs[s];
        if (view->storage_local_end[s] == MS_NONE && !is_sent(v, s))
            *refs &= (uint8_t)~MS_REF_LOCAL;
        if (view->storage_saved_end[s] == MS_NONE)
            *refs &= (uint8_t)~MS_REF_SAVED;
    }
}

ms_err ms_stageview_make(const ms_graph *graph, const ms_program *program,
                         uint16_t rank, ms_arena *arena, ms_graph *view,
                         ms_fault *fault)
{
    uint32_t n = graph->n_storages;
    viewing v = {
        .graph = graph, .program = program, .rank = rank, .view = view};
    *view = *graph;
    view->storage_local_end =
        copy_of(arena, graph->storage_local_end, n, sizeof(uint32_t));
    view->storage_saved_end =
        copy_of(arena, graph->storage_saved_end, n, sizeof(uint32_t));
    view->storage_refs = copy_of(arena, graph->storage_refs, n, 1);
    v.touched[0] = ms_arena_take_raw(arena, 3 * (size_t)n, sizeof(uint32_t));
    if (!view->storage_local_end || !view->storage_saved_end ||
        !view->storage_refs || !v.touched[0])
        return ms_fail_nomem(fault);
    v.touched[1] = v.touched[0] + n;
    v.read = v.touched[1] + n;
    memset(v.touched[0], 0xff, 3 * (size_t)n * sizeof(uint32_t));
    find_touched(&v);
    find_ends(&v);
    find_refs(&v);
    return list_drops(&v, arena, fault);
}
