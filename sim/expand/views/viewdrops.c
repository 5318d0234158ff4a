/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "sim/expand/views/viewdrops.h"
#include "sim/graph.h"

/* Does the reference end where it did? */
static bool stays(const ms_graph *g, const ms_graph *view, uint32_t drop)
{
    uint32_t s = MS_DROP_STORAGE(drop);
    if (drop & MS_DROP_SAVED)
        return view->storage_saved_end[s] == g->storage_saved_end[s];
    return view->storage_local_end[s] == g->storage_local_end[s];
}

/* References whose end is another: of each storage its LOCAL and its SAVED
 * one. */
static uint32_t list_moved(const ms_graph *g, const ms_graph *view,
                           uint32_t *moved)
{
    uint32_t n = 0;
    for (uint32_t s = 0; s < g->n_storages; s++) {
        if (!stays(g, view, MS_DROP(s, 0)) &&
            view->storage_local_end[s] != MS_NONE)
            moved[n++] = MS_DROP(s, 0);
        if (!stays(g, view, MS_DROP(s, 1)) &&
            view->storage_saved_end[s] != MS_NONE)
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
static void place_drops(const ms_graph *g, const ms_graph *view,
                        const uint32_t *moved, uint32_t n_moved, uint32_t *at,
                        uint32_t *drop)
{
    for (uint32_t i = 0; i < n_moved; i++)
        at[end_of(view, moved[i]) + 2]++;
    for (uint32_t op = 0; op < g->n_ops; op++)
        for (uint32_t i = g->drop_at[op]; i < g->drop_at[op + 1]; i++)
            at[op + 2] += stays(g, view, g->drop[i]);
    for (uint32_t op = 0; op < g->n_ops; op++)
        at[op + 2] += at[op + 1];
    for (uint32_t op = 0; op < g->n_ops; op++)
        for (uint32_t i = g->drop_at[op]; i < g->drop_at[op + 1]; i++)
            if (stays(g, view, g->drop[i]))
                drop[at[op + 1]++] = g->drop[i];
    for (uint32_t i = 0; i < n_moved; i++)
        drop[at[end_of(view, moved[i]) + 1]++] = moved[i];
}

ms_err ms_viewdrops_list(const ms_graph *g, ms_graph *view, ms_arena *arena,
                         ms_fault *fault)
{
    size_t refs = 2 * (size_t)g->n_storages + 1;
    uint32_t *at = ms_arena_take(arena, (size_t)g->n_ops + 2, sizeof *at);
    uint32_t *moved = ms_arena_take_raw(arena, refs, sizeof *moved);
    uint32_t *drop =
        ms_arena_take_raw(arena, g->drop_at[g->n_ops] + refs, sizeof *drop);
    if (at == NULL || drop == NULL || moved == NULL)
        return ms_fail_nomem(fault);
    place_drops(g, view, moved, list_moved(g, view, moved), at, drop);
    view->drop_at = at;
    view->drop = drop;
    return MS_OK;
}
