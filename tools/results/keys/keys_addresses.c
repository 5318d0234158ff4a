/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The keys of "addresses" in a timeline: where the blocks of a run's pool lie.
 */

#include "graphs/json/json.h"
#include "plots/record/record.h"
#include "sim/names.h"
#include "tools/results/keys/keys.h"

#define MUST MS_KEYS_MUST
#define SKIP MS_KEYS_SKIP
#define TILES(kind, member) MS_KEYS_AT(kind, ms_tiles, member)
/* A bound for reading: memsim never writes so many tiles. */
#define MOST_ROWS (2 * MS_TILES_MOST)

/* ---- tables of tiles ----------------------------------------------------- */

static void tile_columns(const void *of, const void *at, ms_key_columns *all)
{
    bool has_time = ((const ms_tiles *)of)->has_time;
    const ms_tiles_layer *layer = at;
    static ms_tile none; /* the columns of a layer without tiles point to it */
    ms_tile *tile = layer->n > 0 ? layer->tiles : &none;
    size_t each = sizeof *tile;
    *all = (ms_key_columns){
        .of = {{"at_bytes", &tile->at_bytes, each, false, false, true},
               {"bytes", &tile->bytes, each, false, false, true},
               {has_time ? "from_ns" : "from_event", &tile->from, each, false,
                false, true},
               {has_time ? "to_ns" : "to_event", &tile->to, each, false, false,
                true}},
        .n = 4,
        .n_rows = layer->n,
        .in_order = true,
        .most = MOST_ROWS};
}

static ms_err tile_room(const ms_values *values, uint32_t value, void *at)
{
    ms_tiles_layer *layer = at;
    return ms_keys_room_rows(values, value, UINT32_MAX, sizeof *layer->tiles,
                             &layer->n, &layer->tiles);
}

static const char *tile_wrong(void *of, void *at, uint32_t i)
{
    const ms_tiles *tiles = of;
    const ms_tile *tile = &((const ms_tiles_layer *)at)->tiles[i];
    return tile->bytes > 0 && tile->at_bytes <= tiles->height_bytes &&
                   tile->bytes <= tiles->height_bytes - tile->at_bytes &&
                   tile->from < tile->to && tile->to <= tiles->end
               ? NULL
               : "a rectangle that is empty, or outside of what was held in "
                 "the step";
}

#define TABLE(key, member)                                                     \
    .name = (key), .type = MS_KEY_TABLE, TILES(NOT, member),                   \
    .columns = tile_columns, .room = tile_room, .row_wrong = tile_wrong, MUST

/* ---- by what blocks are -------------------------------------------------- */

static const ms_key peak_rows[] = {
    MS_KEYS_COUNT("parameters", TILES(U64, kinds[MS_PARAMETERS].peak_bytes),
                  MUST),
    MS_KEYS_COUNT("optimizer_state",
                  TILES(U64, kinds[MS_OPTIMIZER_STATE].peak_bytes), MUST),
    MS_KEYS_COUNT("gradients", TILES(U64, kinds[MS_GRADIENTS].peak_bytes),
                  MUST),
    MS_KEYS_COUNT("inputs", TILES(U64, kinds[MS_INPUTS].peak_bytes), MUST),
    MS_KEYS_COUNT("activations", TILES(U64, kinds[MS_ACTIVATIONS].peak_bytes),
                  MUST),
    MS_KEYS_COUNT("temporaries", TILES(U64, kinds[MS_TEMPORARIES].peak_bytes),
                  MUST),
    MS_KEYS_COUNT("workspace", TILES(U64, kinds[MS_WORKSPACE].peak_bytes),
                  MUST),
    MS_KEYS_COUNT("communication",
                  TILES(U64, kinds[MS_COMMUNICATION].peak_bytes), MUST),
    MS_KEYS_COUNT("waiting", TILES(U64, kinds[MS_N_CATEGORIES].peak_bytes),
                  MUST)};
static const ms_keys peaks = MS_KEYS_OBJECT("address_kinds", peak_rows);

static const ms_key block_rows[] = {
    {TABLE("parameters", kinds[MS_PARAMETERS].of)},
    {TABLE("optimizer_state", kinds[MS_OPTIMIZER_STATE].of)},
    {TABLE("gradients", kinds[MS_GRADIENTS].of)},
    {TABLE("inputs", kinds[MS_INPUTS].of)},
    {TABLE("activations", kinds[MS_ACTIVATIONS].of)},
    {TABLE("temporaries", kinds[MS_TEMPORARIES].of)},
    {TABLE("workspace", kinds[MS_WORKSPACE].of)},
    {TABLE("communication", kinds[MS_COMMUNICATION].of)},
    {TABLE("waiting", kinds[MS_N_CATEGORIES].of)}};
static const ms_keys blocks = MS_KEYS_OBJECT("address_blocks", block_rows);

/* ---- the whole ----------------------------------------------------------- */

static bool has_time(const void *of)
{
    return ((const ms_tiles *)of)->has_time;
}

static bool has_events(const void *of)
{
    return !has_time(of);
}

/* Reads the instant at which most was live: in ns where the tiles have
 * times, else as the number of an event. */
static ms_err addresses_open(const ms_values *values, uint32_t object, void *of)
{
    ms_tiles *tiles = of;
    uint32_t member;
    MS_TRY(ms_values_member(values, object,
                            tiles->has_time ? "live_ns" : "live_event",
                            MS_JSON_INT, &member));
    return ms_values_u64(values, member, &tiles->live_at);
}

/* The four numbers are compared once the last of them is read. */
static const char *levels_wrong(const void *of, const void *value)
{
    const ms_tiles *tiles = of;
    (void)value;
    return tiles->live_bytes <= tiles->reserved_bytes &&
                   tiles->reserved_bytes <= tiles->height_bytes
               ? NULL
               : "more is allocated than reserved, or more reserved than there "
                 "are "
                 "addresses";
}

static const ms_key address_rows[] = {
    MS_KEYS_TEXT("allocator", TILES(TEXT, allocator), MUST),
    {.name = "height_bytes",
     .type = MS_KEY_COUNT,
     TILES(U64, height_bytes),
     MUST,
     .help = "held at any time, laid end to end without the gaps between"},
    MS_KEYS_COUNT("reserved_bytes", TILES(U64, reserved_bytes), MUST),
    MS_KEYS_COUNT("live_bytes", TILES(U64, live_bytes), MUST),
    MS_KEYS_COUNT_OR_NULL("live_ns", TILES(U64, live_at), .there = has_time,
                          SKIP),
    {.name = "live_event",
     .type = MS_KEY_COUNT,
     .null = true,
     TILES(U64, live_at),
     .there = has_events,
     SKIP,
     .help = "most that was reserved; most that was allocated, and when"},
    {.name = "idle_bytes",
     .type = MS_KEY_COUNT,
     TILES(U64, idle_bytes),
     MUST,
     .wrong = levels_wrong,
     .help = "of the reserved idle then"},
    {TABLE("segments", segments), .help = ""},
    {TABLE("pages", pages),
     .help = "what is held: at_bytes (from the bottom of that height), bytes, "
             "from_ns, to_ns (or from_event, to_event)"},
    {.name = "at_peak",
     .type = MS_KEY_OBJECT,
     .of = &peaks,
     MUST,
     .help = "what live_bytes is made of; waiting: freed, and still used by "
             "another stream"},
    MS_KEYS_COUNT("n_blocks", TILES(U32, n_boxes), MUST),
    {.name = "n_merged",
     .type = MS_KEY_COUNT,
     TILES(U32, n_merged),
     MUST,
     .help = "blocks of the step; those too small to be shown singly"},
    {.name = "blocks",
     .type = MS_KEY_OBJECT,
     .of = &blocks,
     MUST,
     .help = "by what they are, in tables like those of segments; small ones "
             "share rows of the same area, bytes times time"}};
const ms_keys ms_keys_addresses = {.name = "addresses",
                                   .rows = address_rows,
                                   .n = MS_KEYS_N(address_rows),
                                   .open = addresses_open};
