/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Where the blocks of a run's pool lay, read back. */

#include "plots/record/record.h"
#include "plots/record/tiles.h"
#include "tools/results/results.h"

#include <string.h>

#define EDITED "was the file edited?"
/* More tiles than memsim writes of anything. */
#define MOST_ROWS (2 * MS_TILES_MOST)

struct reader {
    const ms_values *values;
    ms_tiles *tiles;
};

/* ---- tables -------------------------------------------------------------- */

static ms_err check_columns(const struct reader *r, const ms_value_table *table)
{
    static const char *const in_time[] = {"at_bytes", "bytes", "from_ns",
                                          "to_ns"};
    static const char *const in_events[] = {"at_bytes", "bytes", "from_event",
                                            "to_event"};
    const char *const *names = r->tiles->has_time ? in_time : in_events;
    const ms_json *json = r->values->json;
    uint32_t row = ms_json_first(json, table->columns), which, i = 0;
    for (; row != MS_NONE; i++, row = json->nodes[row].next) {
        MS_TRY(ms_values_word(r->values, row, names, 4, &which));
        if (which != i)
            break;
    }
    if (row == MS_NONE && i == 4 && table->n_rows <= MOST_ROWS)
        return MS_OK;
    return ms_json_fail(json, table->columns, r->values->fault, NULL,
                        "this should be a table of at most %u rows with the "
                        "columns %s, %s, %s and %s",
                        MOST_ROWS, names[0], names[1], names[2], names[3]);
}

static ms_err read_tile(const struct reader *r, uint32_t row, ms_tile *tile)
{
    const ms_json *json = r->values->json;
    const ms_tiles *tiles = r->tiles;
    uint64_t *const numbers[] = {&tile->at_bytes, &tile->bytes, &tile->from,
                                 &tile->to};
    uint32_t cell = ms_json_first(json, row);
    for (int i = 0; i < 4; i++, cell = json->nodes[cell].next)
        MS_TRY(ms_values_u64(r->values, cell, numbers[i]));
    if (tile->bytes > 0 && tile->at_bytes <= tiles->height_bytes &&
        tile->bytes <= tiles->height_bytes - tile->at_bytes &&
        tile->from < tile->to && tile->to <= tiles->end)
        return MS_OK;
    return ms_json_fail(json, row, r->values->fault, EDITED,
                        "a rectangle that is empty, or outside of what was "
                        "held in the step");
}

static ms_err read_layer(const struct reader *r, uint32_t object,
                         const char *key, ms_tiles_layer *layer)
{
    const ms_values *values = r->values;
    ms_value_table table;
    uint32_t member;
    MS_TRY(ms_values_member(values, object, key, MS_JSON_OBJECT, &member));
    MS_TRY(ms_values_table(values, member, &table));
    MS_TRY(check_columns(r, &table));
    layer->tiles =
        ms_arena_take(values->arena, table.n_rows, sizeof *layer->tiles);
    if (layer->tiles == NULL)
        return ms_fail_nomem(values->fault);
    for (uint32_t row = table.row; row != MS_NONE;
         row = values->json->nodes[row].next) {
        MS_TRY(ms_values_row(values, &table, row));
        MS_TRY(read_tile(r, row, &layer->tiles[layer->n++]));
    }
    return MS_OK;
}

/* ---- all of it ----------------------------------------------------------- */

static ms_err read_numbers(const struct reader *r, uint32_t object)
{
    static const ms_value_row rows[] = {
        {"allocator", MS_VALUE_NAME, offsetof(ms_tiles, allocator)},
        {"height_bytes", MS_VALUE_NUMBER, offsetof(ms_tiles, height_bytes)},
        {"reserved_bytes", MS_VALUE_NUMBER, offsetof(ms_tiles, reserved_bytes)},
        {"live_bytes", MS_VALUE_NUMBER, offsetof(ms_tiles, live_bytes)},
        {"idle_bytes", MS_VALUE_NUMBER, offsetof(ms_tiles, idle_bytes)},
        {"n_blocks", MS_VALUE_COUNT, offsetof(ms_tiles, n_boxes)},
        {"n_merged", MS_VALUE_COUNT, offsetof(ms_tiles, n_merged)},
    };
    ms_tiles *tiles = r->tiles;
    uint32_t member;
    MS_TRY(ms_values_read(r->values, object, rows, sizeof rows / sizeof rows[0],
                          tiles));
    MS_TRY(ms_values_member(r->values, object,
                            tiles->has_time ? "live_ns" : "live_event",
                            MS_JSON_INT, &member));
    MS_TRY(ms_values_u64(r->values, member, &tiles->live_at));
    if (tiles->live_bytes <= tiles->reserved_bytes &&
        tiles->reserved_bytes <= tiles->height_bytes)
        return MS_OK;
    return ms_json_fail(r->values->json, object, r->values->fault, EDITED,
                        "more is live than reserved, or more reserved than "
                        "there are addresses");
}

static ms_err read_kinds(const struct reader *r, uint32_t object)
{
    const ms_values *values = r->values;
    uint32_t blocks, peaks, member;
    MS_TRY(ms_values_member(values, object, "blocks", MS_JSON_OBJECT, &blocks));
    MS_TRY(ms_values_member(values, object, "at_peak", MS_JSON_OBJECT, &peaks));
    ms_addresses_kinds(r->tiles);
    for (uint32_t k = 0; k < r->tiles->n_kinds; k++) {
        ms_tiles_kind *kind = &r->tiles->kinds[k];
        MS_TRY(
            ms_values_member(values, peaks, kind->name, MS_JSON_INT, &member));
        MS_TRY(ms_values_u64(values, member, &kind->peak_bytes));
        MS_TRY(read_layer(r, blocks, kind->name, &kind->of));
    }
    return MS_OK;
}

ms_err ms_resultaddresses_read(const ms_values *values, uint32_t object,
                               ms_record *record)
{
    const ms_record_rank *rank = &record->ranks[record->report.worst];
    uint32_t addresses;
    MS_TRY(ms_values_optional(values, object, "addresses", MS_JSON_OBJECT,
                              &addresses));
    if (addresses == MS_NONE)
        return MS_OK;
    ms_tiles *tiles = ms_arena_take(values->arena, 1, sizeof *tiles);
    if (tiles == NULL)
        return ms_fail_nomem(values->fault);
    struct reader r = {values, tiles};
    tiles->has_time = rank->has_time;
    tiles->end = rank->end_ns;
    record->addresses = tiles;
    MS_TRY(read_numbers(&r, addresses));
    MS_TRY(read_layer(&r, addresses, "segments", &tiles->segments));
    MS_TRY(read_layer(&r, addresses, "pages", &tiles->pages));
    return read_kinds(&r, addresses);
}
