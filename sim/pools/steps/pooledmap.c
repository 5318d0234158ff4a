/* SPDX-License-Identifier: GPL-3.0-or-later */

#include "sim/pools/steps/pooledmap.h"
#include "sim/plan.h"
#include "sim/timeline.h"

void ms_pooledmap_listen(ms_pooledmap *map, uint32_t rank,
                         ms_torch_setup *setup)
{
    setup->log = map->maps ? ms_addressmap_log : NULL;
    setup->log_of = map->maps ? &map->maps[rank] : NULL;
}

ms_err ms_pooledmap_start(ms_pooledmap *map, uint32_t rank,
                          const ms_torch *pool, ms_arena *scratch,
                          ms_arena *arena, ms_fault *fault)
{
    ms_torch_snapshot shot;
    if (!map->maps)
        return MS_OK;
    MS_TRY(ms_torchview_snapshot(pool, scratch, &shot, fault));
    return ms_addressmap_start(&map->maps[rank], &shot, arena, fault);
}

void ms_pooledmap_time(ms_pooledmap *map, const ms_timeline *line, uint32_t op,
                       bool starts)
{
    uint32_t rank = line->plan->op[op].rank;
    if (!map->maps || !map->takes_time || !map->is_last)
        return;
    uint64_t t_ns = ms_timeline_booked(
        line, op, starts ? line->start_ns[op] : line->end_ns[op]);
    if (t_ns > map->maps[rank].now)
        map->maps[rank].now = t_ns;
}

/* Where the step takes no time, allocations and frees are counted instead of
 * it. */
void ms_pooledmap_take(ms_pooledmap *map, uint32_t rank, const ms_torch *pool,
                       uint32_t block, uint32_t row)
{
    if (!map->maps || !map->is_last || block == MS_NONE)
        return;
    ms_torch_block_view at = ms_torchview_block(pool, block);
    ms_addressmap_take(&map->maps[rank], at.address, at.bytes, row);
    map->maps[rank].now += !map->takes_time;
}

void ms_pooledmap_free(ms_pooledmap *map, uint32_t rank)
{
    if (map->maps && map->is_last)
        map->maps[rank].now += !map->takes_time;
}

ms_err ms_pooledmap_end(ms_pooledmap *map, ms_fault *fault)
{
    for (uint32_t rank = 0; map->maps && rank < map->n; rank++)
        MS_TRY(ms_addressmap_close(&map->maps[rank], fault));
    return MS_OK;
}
