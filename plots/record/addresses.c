/* SPDX-License-Identifier: GPL-3.0-or-later */

#include <assert.h>
#include <string.h>

#include "plots/gnuplot/canvas.h"
#include "plots/record/record.h"
#include "plots/record/tiles.h"
#include "sim/plan.h"
#include "sim/pools/steps/pooled.h"
#include "sim/timeline.h"

/* The kind of a box that is freed while another stream still uses it. */
#define WAITING MS_N_CATEGORIES

static uint32_t kind_of(const void *of, const ms_address_box *box)
{
    const ms_plan *plan = of;
    return box->waits ? WAITING : plan->row[box->of].category;
}

void ms_addresses_categories(ms_tiles *tiles)
{
    for (uint32_t c = 0; c < MS_N_CATEGORIES; c++)
        tiles->kinds[c] = (ms_tiles_kind){.name = ms_names_category[c],
                                          .color = ms_canvas_category_color[c]};
}

void ms_addresses_kinds(ms_tiles *tiles)
{
    ms_addresses_categories(tiles);
    tiles->kinds[WAITING] =
        (ms_tiles_kind){.name = "waiting", .color = MS_TILES_WAITING_COLOR};
    tiles->n_kinds = MS_ADDRESSES_KINDS;
}

ms_err ms_addresses_of(const ms_timeline *line, const char *allocator,
                       ms_arena *arena, ms_record *record, ms_fault *fault)
{
    uint32_t told = record->report.told;
    assert(record->ranks != NULL && MS_ADDRESSES_KINDS <= MS_TILES_KINDS);
    record->addresses = NULL;
    if (line->pooled == NULL || line->pooled->maps == NULL)
        return MS_OK;
    ms_tiles *tiles = ms_arena_take(arena, 1, sizeof *tiles);
    if (tiles == NULL)
        return ms_fail_nomem(fault);
    tiles->allocator = allocator;
    tiles->has_time = record->ranks[told].has_time;
    tiles->end = record->ranks[told].end_ns;
    ms_addresses_kinds(tiles);
    record->addresses = tiles;
    return ms_tiles_make(&line->pooled->maps[record->report.ranks[told].rank],
                         kind_of, line->plan, arena, tiles, fault);
}

ms_err ms_addresses_check(const ms_record *record, ms_fault *fault)
{
    MS_TRY(ms_record_check(record, fault));
    if (record->addresses != NULL)
        return MS_OK;
    return ms_fail(fault, MS_EINPUT, NULL,
                   "make it with a pool: memsim run MODEL --allocator torch "
                   "--json >FILE",
                   "the result of %s has no \"addresses\" to draw",
                   record->model);
}
