/* SPDX-License-Identifier: GPL-3.0-or-later */

#include "plots/record/distantlevels.h"
#include "sim/plan.h"
#include "sim/timeline.h"

/* A level lasts until the next event: a column that sees none has the level
 * that the one before it ended with. */
ms_err ms_distantlevels_levels(const ms_timeline *line, uint16_t rank,
                               ms_pool_kind pool, uint32_t n, ms_arena *arena,
                               uint64_t **levels, ms_fault *fault)
{
    const ms_plan *plan = line->plan;
    uint64_t now_bytes = 0, width_ns = line->step_ns / n + 1;
    uint32_t column = 0;
    ms_eventwalk walk;
    ms_timeline_walk(line, 0, &walk);
    *levels = ms_arena_take(arena, n, sizeof **levels);
    if (*levels == NULL)
        return ms_fail_nomem(fault);
    for (uint32_t e = 0; e < line->n_events; e++) {
        const ms_event *event = ms_timeline_next(&walk);
        const ms_row *row = &plan->row[event->row];
        if (row->pool != pool || plan->op[row->op].rank != rank)
            continue;
        uint64_t at = event->t_ns / width_ns;
        while (column < at && column + 1 < n)
            (*levels)[++column] = now_bytes;
        now_bytes += event->op_act & 1u ? row->bytes : 0 - row->bytes;
        if (now_bytes > (*levels)[column])
            (*levels)[column] = now_bytes;
    }
    while (column + 1 < n)
        (*levels)[++column] = now_bytes;
    return MS_OK;
}
