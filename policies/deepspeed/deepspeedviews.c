/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Stage 3 of a model that was not built under zero.Init.  A linear layer's node
 * saves a view of its weight, weight.t(): setting param.data to nothing does
 * not free what the view still names.  zero.Init replaces F.linear by a
 * function that saves the parameter itself (zero/linear.py); it does so where
 * its context is entered (patch_init_and_builtins), not where the engine
 * divides a whole model.  Without it what a forward gathered stays to the
 * backward, before which it is gathered again for nothing. */
#include "policies/deepspeed/deepspeed.h"
#include "policies/swap/swap.h"
#include "sim/graph.h"
#include "sim/program.h"

ms_err ms_deepspeedviews_open(ms_deepspeed_writer *w, ms_deepspeed_views *views)
{
    views->of = ms_arena_take_raw(w->arena, w->n_rows, sizeof *views->of);
    if (views->of == NULL)
        return ms_fail_nomem(w->fault);
    for (uint32_t r = 0; r < w->n_rows; r++)
        views->of[r] = MS_NONE;
    return MS_OK;
}

/* ---- saving -------------------------------------------------------------- */

static bool backward_reads(const ms_graph *graph, uint32_t unit,
                           uint32_t storage)
{
    uint32_t first = graph->in_at[graph->backward_at[unit + 1]];
    uint32_t end = graph->in_at[graph->backward_at[unit]];
    for (uint32_t i = first; i < end; i++)
        if (graph->in[i] == storage)
            return true;
    return false;
}

static void save_inputs(const ms_deepspeed_writer *w, ms_deepspeed_views *views,
                        uint32_t unit, uint32_t op)
{
    const ms_graph *graph = w->graph;
    for (uint32_t i = graph->in_at[op]; i < graph->in_at[op + 1]; i++) {
        uint32_t s = graph->in[i];
        uint32_t r = s < graph->n_persistent ? w->row_of[s] : MS_NONE;
        if (r != MS_NONE && w->rows[r].weight == s && views->of[r] == MS_NONE &&
            backward_reads(graph, unit, s))
            views->of[r] = unit;
    }
}

void ms_deepspeedviews_save(const ms_deepspeed_writer *w,
                            ms_deepspeed_views *views, uint32_t unit)
{
    uint32_t end = w->graph->forward_at[unit + 1];
    for (uint32_t op = w->graph->forward_at[unit]; op < end; op++)
        if (ms_saved_is_linear(w->graph, op))
            save_inputs(w, views, unit, op);
}

ms_err ms_deepspeedviews_drop(ms_deepspeed_writer *w, ms_deepspeed_views *views,
                              const ms_call *like)
{
    uint32_t n = 0;
    for (uint32_t r = 0; r < w->n_rows; r++)
        if (views->of[r] == like->unit)
            views->of[r] = MS_NONE;
    for (uint32_t i = 0; i < views->n_kept; i++) {
        const ms_deepspeed_kept *it = &views->kept[i];
        if (it->unit == like->unit && it->micro_batch == like->micro_batch)
            MS_TRY(ms_deepspeedcalls_give(w, like, it->buffer));
        else
            views->kept[n++] = *it;
    }
    views->n_kept = n;
    return MS_OK;
}

/* ---- keeping ------------------------------------------------------------- */

static ms_err keep(ms_deepspeed_writer *w, ms_deepspeed_views *views,
                   const ms_call *like, uint32_t row)
{
    uint32_t set, weight = w->rows[row].weight;
    ms_deepspeed_kept *kept =
        ms_arena_grow(w->arena, views->kept, &views->kept_capacity,
                      views->n_kept + 1, sizeof *kept);
    if (kept == NULL)
        return ms_fail_nomem(w->fault);
    views->kept = kept;
    ms_deepspeed_kept *it = &kept[views->n_kept++];
    *it = (ms_deepspeed_kept){.unit = views->of[row],
                              .micro_batch = like->micro_batch};
    views->of[row] = MS_NONE;
    MS_TRY(ms_deepspeedcalls_buffer_of(
        w,
        (ms_buffer){.name = "saved_view",
                    .bytes = w->graph->storage_bytes[weight],
                    .category = MS_COMMUNICATION},
        &it->buffer));
    MS_TRY(
        ms_program_add_set(w->program, &weight, 1, w->arena, &set, w->fault));
    return ms_deepspeedcalls_move(w, like, set, it->buffer,
                                  (ms_move_call){.to = MS_SHARD});
}

ms_err ms_deepspeedviews_keep(ms_deepspeed_writer *w, ms_deepspeed_views *views,
                              const ms_call *like, uint32_t *rows, uint32_t *n)
{
    uint32_t rest = 0;
    for (uint32_t i = 0; i < *n; i++) {
        if (views->of[rows[i]] != MS_NONE)
            MS_TRY(keep(w, views, like, rows[i]));
        else
            rows[rest++] = rows[i];
    }
    *n = rest;
    return MS_OK;
}
