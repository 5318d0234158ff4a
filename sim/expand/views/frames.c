/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "sim/expand/views/frames.h"
#include "sim/graph.h"
#include "sim/program.h"
#include "sim/stage.h"

#include <string.h>

/* From where the frames so far end, or begin again, so many places are tried.
 */
#define TRIES 64u

/* What lies in a cell.  A rank may have a storage, or only name it: a call may
 * drop what others have.  Those that name it need not lie apart. */
enum { HAD = 1, NAMED = 2 };

typedef struct layer {
    const ms_graph *graph;
    const ms_program *program;
    ms_arena *arena;
    uint8_t *cell;  /* of the frame, n_cells: what lies there */
    uint32_t *list; /* what the rank at work touches: n_had that it may have,
                       n in all; and */
    uint32_t *seen; /* per storage: the last rank that did + 1 */
    uint32_t n_cells, cells_capacity, n_had, n, rank;
    uint32_t *next, *first; /* per call the next of its rank; per rank */
    uint32_t *step;         /* ops of the step that touch what is in frames */
    uint32_t n_step;
} layer;

static void touch(layer *it, uint32_t s)
{
    if (s < it->graph->n_persistent || it->seen[s] == it->rank + 1)
        return;
    it->seen[s] = it->rank + 1;
    it->list[it->n++] = s;
}

static void touch_ops(layer *it, uint32_t first, uint32_t end)
{
    const ms_graph *g = it->graph;
    for (uint32_t i = g->in_at[first]; i < g->in_at[end]; i++)
        touch(it, g->in[i]);
    for (uint32_t i = g->out_at[first]; i < g->out_at[end]; i++)
        touch(it, g->out[i]);
    for (uint32_t i = g->drop_at[first]; i < g->drop_at[end]; i++)
        touch(it, MS_DROP_STORAGE(g->drop[i]));
}

static void touch_units(layer *it, uint32_t first, uint32_t last)
{
    const ms_graph *g = it->graph;
    touch_ops(it, g->forward_at[first], g->forward_at[last + 1]);
    touch_ops(it, g->backward_at[last + 1], g->backward_at[first]);
    for (uint32_t u = first; u <= last && g->unit_state != NULL; u++)
        if (g->unit_state[u] != MS_NONE)
            touch(it, g->unit_state[u]);
}

static void touch_set(layer *it, uint32_t set)
{
    const ms_program *program = it->program;
    if (set >= program->n_sets)
        return;
    for (uint32_t i = program->set_at[set]; i < program->set_at[set + 1]; i++)
        touch(it, program->set_item[i]);
}

static void touch_calls(layer *it, bool receives)
{
    for (uint32_t i = it->first[it->rank]; i != MS_NONE; i = it->next[i]) {
        const ms_call *call = &it->program->calls[i];
        if ((call->verb == MS_RECV_SET) != receives)
            continue;
        if (call->verb == MS_DROP_SET && call->unit != MS_NONE)
            touch_units(it, call->unit, call->last);
        touch_set(it, call->set);
    }
}

static void touch_came(layer *it, const uint8_t *held, uint32_t s)
{
    if (ms_stage_comes(it->graph, held, s))
        touch(it, s);
}

/* Of an op of which it runs a part it leaves out what it does not hold. */
static void touch_step(layer *it)
{
    const ms_graph *g = it->graph;
    const uint8_t *held = it->program->holds + it->rank * (size_t)g->n_storages;
    for (uint32_t i = 0; i < it->n_step; i++) {
        uint32_t op = it->step[i];
        ms_stage_share share = ms_stage_share_of(g, held, op);
        if (share.part == share.whole)
            touch_ops(it, op, op + 1);
        if (share.part == 0 || share.part == share.whole)
            continue;
        for (uint32_t k = g->in_at[op]; k < g->in_at[op + 1]; k++)
            touch_came(it, held, g->in[k]);
        for (uint32_t k = g->out_at[op]; k < g->out_at[op + 1]; k++)
            touch_came(it, held, g->out[k]);
        for (uint32_t k = g->drop_at[op]; k < g->drop_at[op + 1]; k++)
            touch_came(it, held, MS_DROP_STORAGE(g->drop[k]));
    }
}

static void touch_rank(layer *it, uint32_t rank)
{
    const ms_program *program = it->program;
    it->rank = rank;
    it->n = 0;
    for (uint32_t i = 0; i < program->n_stages; i++)
        if (program->stages[i].rank == rank)
            touch_units(it, program->stages[i].first, program->stages[i].last);
    touch_step(it);
    touch_calls(it, true);
    it->n_had = it->n;
    touch_calls(it, false);
}

static void list_step(layer *it)
{
    const ms_graph *g = it->graph;
    for (uint32_t op = g->step_first; op < g->n_ops; op++) {
        bool in_frame = false;
        for (uint32_t i = g->in_at[op]; i < g->in_at[op + 1]; i++)
            in_frame |= g->in[i] >= g->n_persistent;
        for (uint32_t i = g->out_at[op]; i < g->out_at[op + 1]; i++)
            in_frame |= g->out[i] >= g->n_persistent;
        for (uint32_t i = g->drop_at[op]; i < g->drop_at[op + 1]; i++)
            in_frame |= MS_DROP_STORAGE(g->drop[i]) >= g->n_persistent;
        if (in_frame)
            it->step[it->n_step++] = op;
    }
}

static void link_calls(layer *it)
{
    const ms_program *program = it->program;
    memset(it->first, 0xff, program->n_ranks * sizeof *it->first);
    for (uint32_t i = program->n_calls; i-- > 0;) {
        uint32_t *first = &it->first[program->calls[i].rank];
        it->next[i] = *first;
        *first = i;
    }
}

/* ---- places ---------------------------------------------------------------
 */

static bool fits(const layer *it, uint64_t offset)
{
    for (uint32_t i = 0; i < it->n_had; i++)
        if (it->cell[it->list[i] + offset] != 0)
            return false;
    for (uint32_t i = it->n_had; i < it->n; i++)
        if (it->cell[it->list[i] + offset] & HAD)
            return false;
    return true;
}

/* Cells as far as a rank at the offset may look. */
static ms_err widen(layer *it, uint64_t offset, ms_fault *fault)
{
    uint64_t end = offset + it->graph->n_storages;
    if (end >= MS_NONE)
        return ms_fail_nomem(fault);
    if (end <= it->n_cells)
        return MS_OK;
    uint8_t *cell = ms_arena_grow(it->arena, it->cell, &it->cells_capacity,
                                  (uint32_t)end, 1);
    if (cell == NULL)
        return ms_fail_nomem(fault);
    memset(cell + it->n_cells, 0, (uint32_t)end - it->n_cells);
    it->cell = cell;
    it->n_cells = (uint32_t)end;
    return MS_OK;
}

/* The first place that is free for all of what the rank touches: behind the
 * frames so far there is one. */
static ms_err place(layer *it, uint64_t *offset, ms_fault *fault)
{
    uint64_t in_frame = it->graph->n_storages - it->graph->n_persistent;
    for (uint64_t from = 0;; from += in_frame) {
        MS_TRY(widen(it, from + TRIES, fault));
        for (*offset = from; *offset < from + TRIES; ++*offset)
            if (fits(it, *offset))
                return MS_OK;
    }
}

static ms_err place_all(layer *it, uint64_t *offset, uint64_t *width,
                        ms_fault *fault)
{
    uint64_t in_frame = it->graph->n_storages - it->graph->n_persistent;
    link_calls(it);
    list_step(it);
    for (uint32_t r = 0; r < it->program->n_ranks; r++) {
        touch_rank(it, r);
        MS_TRY(place(it, &offset[r], fault));
        for (uint32_t i = 0; i < it->n; i++)
            it->cell[it->list[i] + offset[r]] |= i < it->n_had ? HAD : NAMED;
        if (offset[r] + in_frame > *width)
            *width = offset[r] + in_frame;
    }
    return MS_OK;
}

static ms_err lay_in(const ms_graph *graph, const ms_program *program,
                     ms_arena *scratch, uint64_t *offset, uint64_t *width,
                     ms_fault *fault)
{
    uint32_t n = graph->n_storages;
    layer it = {.graph = graph, .program = program, .arena = scratch};
    it.seen = ms_arena_take(scratch, n, sizeof *it.seen);
    it.list = ms_arena_take_raw(scratch, n, sizeof *it.list);
    it.next = ms_arena_take_raw(scratch, program->n_calls, sizeof *it.next);
    it.first = ms_arena_take_raw(scratch, program->n_ranks, sizeof *it.first);
    it.step = ms_arena_take_raw(scratch, graph->n_ops - graph->step_first,
                                sizeof *it.step);
    if (!it.seen || !it.list || !it.next || !it.first || !it.step)
        return ms_fail_nomem(fault);
    return place_all(&it, offset, width, fault);
}

ms_err ms_frames_lay(const ms_graph *graph, const ms_program *program,
                     ms_arena *arena, ms_frames *frames, ms_fault *fault)
{
    uint64_t in_frame = graph->n_storages - graph->n_persistent;
    uint64_t *offset = ms_arena_take(arena, program->n_ranks, sizeof *offset);
    if (offset == NULL)
        return ms_fail_nomem(fault);
    *frames = (ms_frames){.offset = offset};
    /* Hooks and passes online look through whole frames. */
    if (program->n_stages > 0 && !program->hooks.used && !program->online) {
        ms_arena scratch = {0};
        ms_err err =
            lay_in(graph, program, &scratch, offset, &frames->width, fault);
        ms_arena_free(&scratch);
        return err;
    }
    for (uint32_t r = 0; r < program->n_ranks; r++)
        offset[r] = r * in_frame;
    frames->width = program->n_ranks * in_frame;
    return MS_OK;
}
