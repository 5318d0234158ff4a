/* SPDX-License-Identifier: GPL-3.0-or-later */

#include <assert.h>
#include <string.h>

#include "plots/figure.h"
#include "plots/record/record.h"
#include "plots/record/tiles.h"
#include "sim/plan.h"
#include "sim/pools/steps/pooled.h"

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
    uint32_t worst = record->report.worst;
    assert(record->ranks != NULL && MS_ADDRESSES_KINDS <= MS_TILES_KINDS);
    record->addresses = NULL;
    if (line->pooled == NULL || line->pooled->maps == NULL)
        return MS_OK;
    ms_tiles *tiles = ms_arena_take(arena, 1, sizeof *tiles);
    if (tiles == NULL)
        return ms_fail_nomem(fault);
    tiles->allocator = allocator;
    tiles->has_time = record->ranks[worst].has_time;
    tiles->end = record->ranks[worst].end_ns;
    ms_addresses_kinds(tiles);
    record->addresses = tiles;
    return ms_tiles_make(&line->pooled->maps[record->report.ranks[worst].rank],
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

/* ---- as JSON ------------------------------------------------------------- */

static void put(ms_text *text, const char *words)
{
    ms_text_put(text, words, strlen(words));
}

static void put_number(ms_text *text, const char *before, uint64_t value)
{
    put(text, before);
    ms_text_u64(text, value);
}

static void put_table(const ms_tiles *tiles, const ms_tiles_layer *layer,
                      ms_text *text)
{
    put(text, tiles->has_time
                  ? "{\"columns\": [\"at_bytes\", \"bytes\", \"from_ns\", "
                    "\"to_ns\"], \"rows\": ["
                  : "{\"columns\": [\"at_bytes\", \"bytes\", \"from_event\", "
                    "\"to_event\"], \"rows\": [");
    for (uint32_t i = 0; i < layer->n; i++) {
        const ms_tile *tile = &layer->tiles[i];
        put_number(text, i > 0 ? ", [" : "[", tile->at_bytes);
        put_number(text, ", ", tile->bytes);
        put_number(text, ", ", tile->from);
        put_number(text, ", ", tile->to);
        put(text, "]");
    }
    put(text, "]}");
}

void ms_addresses_json(const ms_tiles *tiles, ms_text *text)
{
    put(text, ", \"addresses\": {\"allocator\": ");
    ms_text_json(text, tiles->allocator);
    put_number(text, ", \"height_bytes\": ", tiles->height_bytes);
    put_number(text, ", \"reserved_bytes\": ", tiles->reserved_bytes);
    put_number(text, ", \"live_bytes\": ", tiles->live_bytes);
    put_number(text,
               tiles->has_time ? ", \"live_ns\": "
                               : ", \"live_ns\": null, \"live_event\": ",
               tiles->live_at);
    put(text, tiles->has_time ? ", \"live_event\": null" : "");
    put_number(text, ", \"idle_bytes\": ", tiles->idle_bytes);
    put(text, ", \"segments\": ");
    put_table(tiles, &tiles->segments, text);
    put(text, ", \"pages\": ");
    put_table(tiles, &tiles->pages, text);
    put(text, ", \"at_peak\": {");
    for (uint32_t k = 0; k < tiles->n_kinds; k++) {
        put(text, k > 0 ? ", " : "");
        ms_text_json(text, tiles->kinds[k].name);
        put_number(text, ": ", tiles->kinds[k].peak_bytes);
    }
    put_number(text, "}, \"n_blocks\": ", tiles->n_boxes);
    put_number(text, ", \"n_merged\": ", tiles->n_merged);
    put(text, ", \"blocks\": {");
    for (uint32_t k = 0; k < tiles->n_kinds; k++) {
        put(text, k > 0 ? ", " : "");
        ms_text_json(text, tiles->kinds[k].name);
        put(text, ": ");
        put_table(tiles, &tiles->kinds[k].of, text);
    }
    put(text, "}}");
}
