/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "sim/expand/views/halves.h"
#include "sim/expand/views/viewdrops.h"
#include "sim/graph.h"
#include "sim/program.h"
#include "sim/stage.h"

#include <string.h>

/* Per storage, of the last of the rank's stages whose backward touches it, the
 * last op of each half that does; MS_NONE.  (Where an earlier one's second half
 * comes later still, the program holds what that reads.) */
typedef struct touched {
    uint32_t *by[2], *stage;
} touched;

static void touch(const touched *last, uint32_t s, uint32_t stage, bool second,
                  uint32_t op)
{
    if (last->stage[s] != stage)
        last->by[0][s] = last->by[1][s] = MS_NONE;
    last->stage[s] = stage;
    last->by[second][s] = op;
}

/* own: per unit the rank's stage + 1, or 0. */
static void touch_all(const ms_graph *graph, const uint8_t *second,
                      const uint32_t *own, const touched *last)
{
    for (uint32_t op = graph->forward_at[graph->n_units];
         op < graph->step_first; op++) {
        uint32_t stage = own[graph->op_unit[op]];
        if (stage == 0)
            continue;
        for (uint32_t i = graph->in_at[op]; i < graph->in_at[op + 1]; i++)
            touch(last, graph->in[i], stage, second[op], op);
        for (uint32_t i = graph->out_at[op]; i < graph->out_at[op + 1]; i++)
            touch(last, graph->out[i], stage, second[op], op);
    }
}

/* Where a reference ends that ends at `end` in whole backwards. */
static uint32_t moved_end(const ms_graph *graph, const uint8_t *second,
                          const touched *last, uint32_t s, uint32_t end)
{
    if (end == MS_NONE || end < graph->forward_at[graph->n_units] ||
        end >= graph->step_first)
        return end;
    if (last->by[1][s] != MS_NONE)
        return last->by[1][s];
    if (second[end] && last->by[0][s] != MS_NONE)
        return last->by[0][s];
    return end;
}

static ms_err make_view(const ms_graph *from, const uint8_t *second,
                        const uint32_t *own, ms_arena *arena, ms_graph *view,
                        ms_fault *fault)
{
    size_t n = from->n_storages;
    touched last;
    *view = *from;
    view->storage_local_end = ms_arena_take_raw(arena, n, sizeof(uint32_t));
    view->storage_saved_end = ms_arena_take_raw(arena, n, sizeof(uint32_t));
    last.by[0] = ms_arena_take_raw(arena, 3 * n, sizeof(uint32_t));
    if (!view->storage_local_end || !view->storage_saved_end || !last.by[0])
        return ms_fail_nomem(fault);
    last.by[1] = last.by[0] + n;
    last.stage = last.by[1] + n;
    memset(last.by[0], 0xff, 3 * n * sizeof(uint32_t));
    touch_all(from, second, own, &last);
    for (uint32_t s = 0; s < n; s++) {
        view->storage_local_end[s] =
            moved_end(from, second, &last, s, from->storage_local_end[s]);
        view->storage_saved_end[s] =
            moved_end(from, second, &last, s, from->storage_saved_end[s]);
    }
    return ms_viewdrops_list(from, view, arena, fault);
}

static ms_err find_ranks(const ms_program *program, ms_arena *arena,
                         uint8_t **splits, bool *any, ms_fault *fault)
{
    *any = false;
    *splits = ms_arena_take(arena, program->n_ranks, 1);
    if (*splits == NULL)
        return ms_fail_nomem(fault);
    for (uint32_t i = 0; i < program->n_calls; i++) {
        const ms_call *call = &program->calls[i];
        if (call->verb != MS_RUN || !call->run.half)
            continue;
        (*splits)[call->rank] = 1;
        *any = true;
    }
    return MS_OK;
}

static ms_err make_views(const ms_graph *graph, const ms_graph *views,
                         const ms_roles *roles, const uint8_t *splits,
                         ms_arena *arena, ms_halves *halves, ms_fault *fault)
{
    uint32_t *own = ms_arena_take_raw(arena, graph->n_units, sizeof *own);
    halves->views = ms_arena_take(arena, roles->n, sizeof *halves->views);
    halves->second = ms_arena_take_raw(arena, graph->n_ops, 1);
    if (!own || !halves->views || !halves->second)
        return ms_fail_nomem(fault);
    ms_stage_halves(graph, halves->second);
    for (uint32_t r = 0; r < roles->n; r++) {
        if (!splits[ms_roles_rank(roles, r)])
            continue;
        ms_roles_units(roles, r, graph->n_units, own);
        MS_TRY(make_view(views ? &views[r] : graph, halves->second, own, arena,
                         &halves->views[r], fault));
    }
    return MS_OK;
}

ms_err ms_halves_open(const ms_graph *graph, const ms_graph *views,
                      const ms_roles *roles, const ms_program *program,
                      ms_arena *arena, ms_halves **halves, ms_fault *fault)
{
    uint8_t *splits;
    bool any;
    *halves = NULL;
    MS_TRY(find_ranks(program, arena, &splits, &any, fault));
    if (!any)
        return MS_OK;
    *halves = ms_arena_take(arena, 1, sizeof **halves);
    if (*halves == NULL)
        return ms_fail_nomem(fault);
    return make_views(graph, views, roles, splits, arena, *halves, fault);
}
