/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "sim/measure/farlevels.h"

#include <string.h>

ms_err ms_farlevels_open(ms_farlevels *levels, ms_report *report,
                         ms_arena *arena, ms_fault *fault)
{
    *levels = (ms_farlevels){.report = report};
    levels->now_bytes = ms_arena_take(
        arena, (size_t)report->n_ranks * MS_N_POOLS, sizeof *levels->now_bytes);
    return levels->now_bytes == NULL ? ms_fail_nomem(fault) : MS_OK;
}

void ms_farlevels_add(ms_farlevels *levels, uint16_t rank, const ms_row *row,
                      uint64_t bytes)
{
    struct ms_farlevels_all *all = &levels->all[row->pool];
    struct ms_far_memory *most = &levels->report->far[row->pool];
    struct ms_rank_far *own = &levels->report->ranks[rank].far[row->pool];
    uint64_t now_bytes =
        levels->now_bytes[rank * (uint32_t)MS_N_POOLS + row->pool] += bytes;
    if (now_bytes > own->peak_bytes)
        own->peak_bytes = now_bytes;
    all->now_bytes += bytes;
    all->by_category[row->category] += bytes;
    if (all->now_bytes <= most->peak_bytes)
        return;
    most->peak_bytes = all->now_bytes;
    memcpy(most->by_category, all->by_category, sizeof most->by_category);
}
