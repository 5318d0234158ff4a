/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The keys of "timeline" in memsim run --json: what figures are drawn from. */

#include "graphs/json/json.h"
#include "plots/record/record.h"
#include "sim/measure/bylayer.h"
#include "tools/results/keys/keys.h"

#define MUST MS_KEYS_MUST
#define EDITED "was the file edited?"
/* A bound for reading: no array of a timeline that memsim writes is so long. */
#define MOST_ROWS (8 * MS_RECORD_COLUMNS)

/* ---- ranks --------------------------------------------------------------- */

static ms_key_list drawn_list(const void *of)
{
    const ms_record *record = of;
    return (ms_key_list){record->ranks, record->report.n_ranks,
                         sizeof *record->ranks};
}

static ms_err drawn_room(const ms_values *values, uint32_t value, void *of)
{
    ms_record *record = of;
    uint32_t n = values->json->nodes[value].value.n,
             n_ranks = record->report.n_ranks;
    if (n != n_ranks)
        return ms_json_fail(values->json, value, values->fault, EDITED,
                            "%u ranks, where the report has %u", n, n_ranks);
    record->ranks =
        ms_arena_take(values->arena, n_ranks, sizeof *record->ranks);
    if (record->ranks == NULL)
        return ms_fail_nomem(values->fault);
    for (uint32_t i = 0; i < n_ranks; i++)
        record->ranks[i].report = &record->report.ranks[i];
    return MS_OK;
}

/* ---- layers -------------------------------------------------------------- */

static void layer_columns(const void *of, const void *at, ms_key_columns *all)
{
    const ms_record *record = of;
    /* the columns of a model without layers point to it */
    static ms_layer_use none;
    ms_layer_use *layer = record->n_layers > 0 ? record->layers : &none;
    size_t each = sizeof *layer;
    (void)at;
    *all = (ms_key_columns){
        .of = {{"name", &layer->name, each, true, false, true},
               {"saved_bytes", &layer->saved_bytes, each, false, false, true},
               {"forward_ns", &layer->forward_ns, each, false, false, true},
               {"recompute_ns", &layer->recompute_ns, each, false, false,
                true}},
        .n = 4,
        .n_rows = record->n_layers,
        .in_order = true};
}

static ms_err layer_room(const ms_values *values, uint32_t value, void *of)
{
    ms_record *record = of;
    return ms_keys_room_rows(values, value, UINT32_MAX, sizeof *record->layers,
                             &record->n_layers, &record->layers);
}

/* ---- the step without some policies -------------------------------------- */

static void level_columns(const void *of, const void *at, ms_key_columns *all)
{
    const ms_record_without *without = of;
    static ms_record_level none;
    ms_record_level *level = without->n > 0 ? without->levels : &none;
    (void)at;
    *all = (ms_key_columns){
        .of = {{"t_ns", &level->t_ns, sizeof *level, false, false, true},
               {"allocated_bytes", &level->bytes, sizeof *level, false, false,
                true}},
        .n = 2,
        .n_rows = without->n};
}

static ms_err level_room(const ms_values *values, uint32_t value, void *of)
{
    ms_record_without *without = of;
    return ms_keys_room_rows(values, value, MOST_ROWS, sizeof *without->levels,
                             &without->n, &without->levels);
}

static const char *levels_wrong(const void *of, const void *value)
{
    const ms_record_without *without = of;
    uint64_t highest_bytes = 0;
    (void)value;
    for (uint32_t i = 0; i < without->n; i++) {
        const ms_record_level *level = &without->levels[i];
        if (level->t_ns > without->end_ns ||
            (i > 0 && level->t_ns <= level[-1].t_ns))
            return "the points do not ascend in time, or one lies after the "
                   "end";
        if (level->bytes > highest_bytes)
            highest_bytes = level->bytes;
    }
    return without->n > 0 && highest_bytes == without->peak_bytes
               ? NULL
               : "the highest point is not \"peak_bytes\"";
}

#define WITHOUT(kind, member) MS_KEYS_AT(kind, ms_record_without, member)
static const ms_key without_rows[] = {
    MS_KEYS_TEXT("policy", WITHOUT(TEXT, policy), MUST),
    MS_KEYS_COUNT("end_ns", WITHOUT(U64, end_ns), MUST),
    MS_KEYS_COUNT("peak_bytes", WITHOUT(U64, peak_bytes), MUST),
    {.name = "points",
     .type = MS_KEY_TABLE,
     .columns = level_columns,
     .room = level_room,
     .wrong = levels_wrong,
     MUST},
};
static const ms_keys without = MS_KEYS_OBJECT("step_without", without_rows);

static bool without_there(const void *of)
{
    return ((const ms_record *)of)->without != NULL;
}

static ms_err without_room(const ms_values *values, uint32_t value, void *of)
{
    ms_record *record = of;
    return ms_keys_room_take(values, value, 1, MOST_ROWS,
                             sizeof *record->without, &record->without);
}

static const char *without_wrong(const void *of, const void *value)
{
    (void)of;
    return ((const ms_record_without *)value)->end_ns > 0
               ? NULL
               : "a step that takes no time";
}

/* ---- the whole ----------------------------------------------------------- */

static bool addresses_there(const void *of)
{
    return ((const ms_record *)of)->addresses != NULL;
}

/* The times of addresses are those of the rank with the highest peak. */
static ms_err addresses_room(const ms_values *values, uint32_t value, void *of)
{
    ms_record *record = of;
    const ms_record_rank *rank = &record->ranks[record->report.told];
    MS_TRY(ms_keys_room_take(values, value, 1, MOST_ROWS,
                             sizeof *record->addresses, &record->addresses));
    record->addresses->has_time = rank->has_time;
    record->addresses->end = rank->end_ns;
    ms_addresses_kinds(record->addresses);
    return MS_OK;
}

#define RECORD(kind, member) MS_KEYS_AT(kind, ms_record, member)
static const ms_key timeline_rows[] = {
    MS_KEYS_TEXT("title", RECORD(TEXT, title), MUST),
    MS_KEYS_TEXT("subtitle", RECORD(TEXT, subtitle), MUST),
    MS_KEYS_COUNT("data_ranks", RECORD(U32, data_ranks), MUST),
    {.name = "ranks",
     .type = MS_KEY_OBJECTS,
     .of = &ms_keys_drawn,
     .list = drawn_list,
     .room = drawn_room,
     MUST,
     .help = "per rank: end_ns (the step's), or end_event of a step that takes "
             "no time"},
    {.name = "layers",
     .type = MS_KEY_TABLE,
     .columns = layer_columns,
     .room = layer_room,
     MUST,
     .help = "of the rank with the highest peak, in order: name (of a block or "
             "a layer in none), saved_bytes, forward_ns, recompute_ns"},
    {.name = "without",
     .type = MS_KEY_OBJECT,
     .optional = true,
     .of = &without,
     MS_KEYS_VIA(ms_record, without),
     .there = without_there,
     .room = without_room,
     .wrong = without_wrong,
     .help =
         "where policies on what waits for backward (checkpoint, swap) "
         "change the step: that rank in the step without them: policy, what "
         "is left out, end_ns, peak_bytes, and points, from t_ns on "
         "allocated_bytes, thinned as above"},
    {.name = "addresses",
     .type = MS_KEY_OBJECT,
     .optional = true,
     .of = &ms_keys_addresses,
     MS_KEYS_VIA(ms_record, addresses),
     .there = addresses_there,
     .room = addresses_room,
     .help = "with --allocator: where the pool's blocks lie on that rank"},
};
const ms_keys ms_keys_timeline = MS_KEYS_OBJECT("timeline", timeline_rows);
