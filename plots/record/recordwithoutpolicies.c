/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The level of the step without a policy, for a record. */

#include "plots/record/record.h"
#include "sim/timeline.h"

/* Of equal neighbours the first. */
static void load_levels(const ms_record_rank *from, ms_record_without *to)
{
    for (uint32_t i = 0; i < from->n_points; i++) {
        uint64_t bytes = from->points[i].total_bytes;
        if (to->n > 0 && to->levels[to->n - 1].bytes == bytes)
            continue;
        to->levels[to->n++] =
            (ms_record_level){.t_ns = from->points[i].t_ns, .bytes = bytes};
        if (bytes > to->peak_bytes)
            to->peak_bytes = bytes;
    }
}

ms_err ms_recordwithoutpolicies_of(const ms_timeline *line, uint16_t rank,
                                   ms_arena *arena, ms_record_without **without,
                                   ms_fault *fault)
{
    ms_record_rank of = {0};
    MS_TRY(ms_record_points(line, rank, arena, &of, fault));
    *without = ms_arena_take(arena, 1, sizeof **without);
    if (*without == NULL)
        return ms_fail_nomem(fault);
    (*without)->end_ns = of.end_ns;
    (*without)->levels =
        ms_arena_take_raw(arena, of.n_points, sizeof(ms_record_level));
    if ((*without)->levels == NULL)
        return ms_fail_nomem(fault);
    load_levels(&of, *without);
    return MS_OK;
}
