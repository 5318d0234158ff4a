/* SPDX-License-Identifier: GPL-3.0-or-later */

#include "plots/record/record.h"
#include "sim/measure/bylayer.h"
#include "sim/timeline.h"
#include "tools/results/results.h"

#include <string.h>

/* More rows than memsim writes of anything in a timeline. */
#define MOST_ROWS (8 * MS_RECORD_COLUMNS)

#define EDITED "was the file edited?"

/* ---- tables of numbers --------------------------------------------------- */

/* A table whose columns are numbers; column j is known as to[j]. */
struct numbers {
    ms_value_table table;
    uint32_t to[MS_N_WORKS + 2];
};

/* The column at[0] must be one of the n names, as each of the others. */
static ms_err read_columns(const ms_values *values, uint32_t object,
                           const char *const *names, uint32_t n,
                           struct numbers *numbers)
{
    const ms_json *json = values->json;
    bool met[MS_N_WORKS + 2] = {false};
    MS_TRY(ms_values_table(values, object, &numbers->table));
    uint32_t row = ms_json_first(json, numbers->table.columns);
    for (uint32_t j = 0; row != MS_NONE; j++, row = json->nodes[row].next) {
        uint32_t which;
        MS_TRY(ms_values_word(values, row, names, n, &which));
        if (met[which])
            return ms_json_fail(json, row, values->fault, NULL,
                                "column \"%s\" stands twice", names[which]);
        met[which] = true;
        numbers->to[j] = which;
    }
    for (int i = 0; i < 2; i++)
        if (!met[i])
            return ms_json_fail(json, numbers->table.columns, values->fault,
                                NULL, "there is no column \"%s\"", names[i]);
    if (numbers->table.n_rows <= MOST_ROWS)
        return MS_OK;
    return ms_json_fail(json, object, values->fault, NULL,
                        "%u rows; there are at most %u", numbers->table.n_rows,
                        MOST_ROWS);
}

/* The cells of a row to where their columns say. */
static ms_err read_cells(const ms_values *values, const struct numbers *numbers,
                         uint32_t row, uint64_t *cells)
{
    MS_TRY(ms_values_row(values, &numbers->table, row));
    uint32_t cell = ms_json_first(values->json, row);
    for (uint32_t j = 0; cell != MS_NONE; j++) {
        MS_TRY(ms_values_u64(values, cell, &cells[numbers->to[j]]));
        cell = values->json->nodes[cell].next;
    }
    return MS_OK;
}

/* ---- points -------------------------------------------------------------- */

struct clerk {
    const ms_values *values;
    const ms_rank_report *report;
    ms_record_rank *of;
};

/* Of a curve that never falls, up to that of the step. */
static bool is_recompute_well(const ms_record_rank *of, uint32_t i)
{
    return of->recompute_ns[i] <= of->again_ns &&
           of->recompute_flops[i] <= of->again_flops &&
           (i == 0 || (of->recompute_ns[i] >= of->recompute_ns[i - 1] &&
                       of->recompute_flops[i] >= of->recompute_flops[i - 1]));
}

static ms_err check_point(const struct clerk *clerk, uint32_t row, uint32_t i)
{
    const ms_record_rank *of = clerk->of;
    const ms_point *point = &of->points[i];
    const char *wrong = NULL;
    if (i > 0 ? point->t_ns <= point[-1].t_ns : false)
        wrong = "the points do not ascend in time";
    else if (point->t_ns > of->end_ns)
        wrong = "a point after the end of the step";
    else if (of->reserved_bytes[i] < point->total_bytes)
        wrong = "\"reserved_bytes\" is less than the categories sum to";
    else if (of->recompute_ns != NULL && !is_recompute_well(of, i))
        wrong = "what is recomputed falls, or exceeds that of the step";
    if (wrong == NULL)
        return MS_OK;
    return ms_json_fail(clerk->values->json, row, clerk->values->fault, EDITED,
                        "%s", wrong);
}

static ms_err read_point(const struct clerk *clerk,
                         const struct numbers *numbers, uint32_t row,
                         uint32_t i)
{
    uint64_t cells[MS_N_WORKS + 2] = {0};
    ms_record_rank *of = clerk->of;
    ms_point *point = &of->points[i];
    MS_TRY(read_cells(clerk->values, numbers, row, cells));
    *point = (ms_point){.t_ns = cells[0]};
    of->reserved_bytes[i] = cells[1];
    if (of->recompute_ns != NULL) {
        of->recompute_ns[i] = cells[2 + MS_N_CATEGORIES];
        of->recompute_flops[i] = cells[3 + MS_N_CATEGORIES];
    }
    for (int c = 0; c < MS_N_CATEGORIES; c++) {
        point->bytes[c] = cells[2 + c];
        if (__builtin_add_overflow(point->total_bytes, cells[2 + c],
                                   &point->total_bytes))
            return ms_json_fail(clerk->values->json, row, clerk->values->fault,
                                NULL, "the categories sum to too much");
    }
    return check_point(clerk, row, i);
}

/* Room for as many points as there are rows. */
static ms_err open_points(const struct clerk *clerk,
                          const struct numbers *numbers)
{
    ms_record_rank *of = clerk->of;
    ms_arena *arena = clerk->values->arena;
    uint32_t n = of->n_points = numbers->table.n_rows;
    of->points = ms_arena_take_raw(arena, n, sizeof *of->points);
    of->reserved_bytes = ms_arena_take_raw(arena, n, sizeof(uint64_t));
    bool failed = of->points == NULL || of->reserved_bytes == NULL;
    if (of->again_ns > 0 || of->again_flops > 0) {
        of->recompute_ns = ms_arena_take(arena, n, sizeof(uint64_t));
        of->recompute_flops = ms_arena_take(arena, n, sizeof(uint64_t));
        failed |= of->recompute_ns == NULL || of->recompute_flops == NULL;
    }
    return failed ? ms_fail_nomem(clerk->values->fault) : MS_OK;
}

static ms_err read_points(const struct clerk *clerk, uint32_t object)
{
    const ms_values *values = clerk->values;
    ms_record_rank *of = clerk->of;
    struct numbers numbers;
    const char *names[4 + MS_N_CATEGORIES] = {
        of->has_time ? "t_ns" : "event", "reserved_bytes",
        [2 + MS_N_CATEGORIES] = "recompute_ns", "recompute_flops"};
    uint64_t highest_bytes = 0;
    uint32_t list;
    memcpy(&names[2], ms_names_category, sizeof ms_names_category);
    MS_TRY(ms_values_member(values, object, "points", MS_JSON_OBJECT, &list));
    MS_TRY(read_columns(values, list, names, 4 + MS_N_CATEGORIES, &numbers));
    MS_TRY(open_points(clerk, &numbers));
    uint32_t row = numbers.table.row;
    for (uint32_t i = 0; i < of->n_points; i++) {
        MS_TRY(read_point(clerk, &numbers, row, i));
        if (of->points[i].total_bytes > highest_bytes)
            highest_bytes = of->points[i].total_bytes;
        row = values->json->nodes[row].next;
    }
    if (highest_bytes == clerk->report->peak.allocated_bytes)
        return MS_OK;
    return ms_json_fail(values->json, list, values->fault, EDITED,
                        "the highest point is not the peak of the rank");
}

/* ---- phases -------------------------------------------------------------- */

static const ms_value_row band_rows[] = {
    {"from_ns", MS_VALUE_NUMBER, offsetof(ms_band, from_ns)},
    {"to_ns", MS_VALUE_NUMBER, offsetof(ms_band, to_ns)},
};

static ms_err read_band(const struct clerk *clerk, uint32_t object, uint32_t i)
{
    const ms_values *values = clerk->values;
    ms_band *band = &clerk->of->bands[i];
    uint32_t member, which;
    MS_TRY(ms_values_member(values, object, "phase", MS_JSON_STRING, &member));
    MS_TRY(ms_values_word(values, member, ms_record_phases, MS_N_PHASES + 1,
                          &which));
    MS_TRY(ms_values_read(values, object, band_rows, 2, band));
    band->phase = (uint8_t)which;
    if (band->from_ns == (i > 0 ? band[-1].to_ns : 0) &&
        band->to_ns >= band->from_ns && band->to_ns <= clerk->of->end_ns)
        return MS_OK;
    return ms_json_fail(values->json, object, values->fault, EDITED,
                        "the phases do not follow one another");
}

/* The list at a key, and room for it. */
static ms_err open_list(const struct clerk *clerk, uint32_t object,
                        const char *key, size_t size, uint32_t *first,
                        uint32_t *n, void **room)
{
    const ms_values *values = clerk->values;
    uint32_t list;
    MS_TRY(ms_values_member(values, object, key, MS_JSON_ARRAY, &list));
    *first = ms_json_first(values->json, list);
    *n = values->json->nodes[list].value.n;
    if (*n > MOST_ROWS)
        return ms_json_fail(values->json, list, values->fault, NULL,
                            "%u of them; there are at most %u", *n, MOST_ROWS);
    *room = ms_arena_take(values->arena, *n, size);
    return *room != NULL ? MS_OK : ms_fail_nomem(values->fault);
}

static ms_err read_bands(const struct clerk *clerk, uint32_t object)
{
    ms_record_rank *of = clerk->of;
    uint32_t row;
    void *room;
    MS_TRY(open_list(clerk, object, "phases", sizeof *of->bands, &row,
                     &of->n_bands, &room));
    of->bands = room;
    for (uint32_t i = 0; i < of->n_bands; i++) {
        MS_TRY(read_band(clerk, row, i));
        row = clerk->values->json->nodes[row].next;
    }
    return MS_OK;
}

/* ---- streams ------------------------------------------------------------- */

static ms_err read_slice(const struct clerk *clerk,
                         const struct numbers *numbers, uint32_t row,
                         const ms_slice *before, ms_slice *slice)
{
    const ms_values *values = clerk->values;
    uint64_t cells[MS_N_WORKS + 2] = {0}, all_ns = 0;
    const char *wrong = NULL;
    MS_TRY(read_cells(values, numbers, row, cells));
    *slice = (ms_slice){.from_ns = cells[0], .to_ns = cells[1]};
    memcpy(slice->work_ns, &cells[2], sizeof slice->work_ns);
    for (int work = 0; work < MS_N_WORKS && all_ns <= clerk->of->end_ns; work++)
        all_ns += slice->work_ns[work]; /* both below 2^63 */
    if (slice->from_ns < (before != NULL ? before->to_ns : 0))
        wrong = "the slices do not ascend in time";
    else if (slice->to_ns <= slice->from_ns || slice->to_ns > clerk->of->end_ns)
        wrong = "a slice that ends before it begins, or after the step";
    else if (all_ns == 0 || all_ns > clerk->of->end_ns)
        wrong = "a slice without any work, or with more than the step has";
    if (wrong == NULL)
        return MS_OK;
    return ms_json_fail(values->json, row, values->fault, EDITED, "%s", wrong);
}

/* The slices have the same times, less what is only idle. */
static ms_err check_works(const struct clerk *clerk, uint32_t object,
                          const ms_record_lane *lane)
{
    const ms_values *values = clerk->values;
    uint64_t sum_ns[MS_N_WORKS] = {0};
    for (uint32_t i = 0; i < lane->n; i++)
        for (int work = 0; work < MS_N_WORKS; work++)
            sum_ns[work] += lane->slices[i].work_ns[work];
    for (int work = 0; work < MS_N_WORKS; work++)
        if (work == MS_WORK_IDLE ? sum_ns[work] > lane->work_ns[work]
                                 : sum_ns[work] != lane->work_ns[work])
            return ms_json_fail(values->json, object, values->fault, EDITED,
                                "\"slices\" does not sum to \"work_ns\"");
    return MS_OK;
}

static ms_err read_works(const ms_values *values, uint32_t object,
                         uint64_t *work_ns)
{
    uint32_t member, which;
    MS_TRY(
        ms_values_member(values, object, "work_ns", MS_JSON_OBJECT, &member));
    const ms_json *json = values->json;
    for (uint32_t row = ms_json_first(json, member); row != MS_NONE;
         row = json->nodes[row].next) {
        for (which = 0; which < MS_N_WORKS; which++)
            if (strcmp(ms_record_works[which], json->nodes[row].key) == 0)
                break;
        if (which == MS_N_WORKS)
            return ms_json_fail_key(
                json, row, values->fault, "was it written by a newer memsim?",
                "unknown word \"%s\"", json->nodes[row].key);
        MS_TRY(ms_values_u64(values, row, &work_ns[which]));
    }
    return MS_OK;
}

static ms_err read_lane(const struct clerk *clerk, uint32_t object,
                        ms_record_lane *lane)
{
    const ms_values *values = clerk->values;
    const char *names[2 + MS_N_WORKS] = {"from_ns", "to_ns"};
    struct numbers numbers;
    uint32_t member, which;
    MS_TRY(ms_values_member(values, object, "stream", MS_JSON_STRING, &member));
    MS_TRY(
        ms_values_word(values, member, ms_names_stream, MS_N_STREAMS, &which));
    lane->stream = (uint8_t)which;
    MS_TRY(read_works(values, object, lane->work_ns));
    memcpy(&names[2], ms_record_works, sizeof ms_record_works);
    MS_TRY(ms_values_member(values, object, "slices", MS_JSON_OBJECT, &member));
    MS_TRY(read_columns(values, member, names, 2 + MS_N_WORKS, &numbers));
    lane->n = numbers.table.n_rows;
    lane->slices =
        ms_arena_take_raw(values->arena, lane->n, sizeof *lane->slices);
    if (lane->slices == NULL)
        return ms_fail_nomem(values->fault);
    uint32_t row = numbers.table.row;
    for (uint32_t i = 0; i < lane->n; i++) {
        MS_TRY(read_slice(clerk, &numbers, row,
                          i > 0 ? &lane->slices[i - 1] : NULL,
                          &lane->slices[i]));
        row = values->json->nodes[row].next;
    }
    return check_works(clerk, object, lane);
}

/* In the order of the streams, each once. */
static ms_err read_lanes(const struct clerk *clerk, uint32_t object)
{
    ms_record_rank *of = clerk->of;
    const ms_json *json = clerk->values->json;
    uint32_t row;
    void *room;
    MS_TRY(open_list(clerk, object, "streams", sizeof *of->lanes, &row,
                     &of->n_lanes, &room));
    of->lanes = room;
    for (uint32_t i = 0; i < of->n_lanes; i++) {
        ms_record_lane *lane = &of->lanes[i];
        MS_TRY(read_lane(clerk, row, lane));
        if (i > 0 ? lane->stream <= lane[-1].stream
                  : lane->stream != MS_STREAM_COMPUTE)
            return ms_json_fail(json, row, clerk->values->fault, EDITED,
                                "the streams do not begin with compute, or "
                                "are not in order");
        row = json->nodes[row].next;
    }
    return MS_OK;
}

static ms_err read_far(const struct clerk *clerk, uint32_t object)
{
    const ms_values *values = clerk->values;
    ms_record_rank *of = clerk->of;
    uint32_t list, row;
    void *room;
    MS_TRY(
        ms_values_optional(values, object, "host_bytes", MS_JSON_ARRAY, &list));
    if (list == MS_NONE)
        return MS_OK;
    MS_TRY(open_list(clerk, object, "host_bytes", sizeof *of->far, &row,
                     &of->n_far, &room));
    of->far = room;
    for (uint32_t i = 0; i < of->n_far; i++) {
        MS_TRY(ms_values_u64(values, row, &of->far[i]));
        row = values->json->nodes[row].next;
    }
    return MS_OK;
}

/* ---- ranks --------------------------------------------------------------- */

static ms_err read_end(const struct clerk *clerk, uint32_t object)
{
    const ms_values *values = clerk->values;
    ms_record_rank *of = clerk->of;
    uint32_t member;
    MS_TRY(ms_values_optional(values, object, "end_ns", MS_JSON_INT, &member));
    of->has_time = member != MS_NONE;
    if (!of->has_time)
        MS_TRY(ms_values_member(values, object, "end_event", MS_JSON_INT,
                                &member));
    MS_TRY(ms_values_u64(values, member, &of->end_ns));
    if (of->end_ns > 0 &&
        (!of->has_time || of->end_ns >= clerk->report->time.step_ns))
        return MS_OK;
    return ms_json_fail(values->json, member, values->fault, EDITED,
                        "the end is before that of the step");
}

static const ms_value_row again_rows[] = {
    {"recompute_ns", MS_VALUE_NUMBER, offsetof(ms_record_rank, again_ns)},
    {"recompute_flops", MS_VALUE_NUMBER, offsetof(ms_record_rank, again_flops)},
};

static ms_err read_rank(const struct clerk *clerk, uint32_t object)
{
    const ms_values *values = clerk->values;
    uint32_t member;
    MS_TRY(ms_values_member(values, object, "rank", MS_JSON_INT, &member));
    if (values->json->nodes[member].value.i != clerk->report->rank)
        return ms_json_fail(values->json, member, values->fault, EDITED,
                            "this should be rank %u, as in the report",
                            (unsigned)clerk->report->rank);
    MS_TRY(read_end(clerk, object));
    MS_TRY(ms_values_read(values, object, again_rows, 2, clerk->of));
    if (clerk->of->again_ns != clerk->report->time.recompute_ns)
        return ms_json_fail(values->json, object, values->fault, EDITED,
                            "\"recompute_ns\" is not that of the report");
    MS_TRY(read_points(clerk, object));
    MS_TRY(read_bands(clerk, object));
    MS_TRY(read_lanes(clerk, object));
    return read_far(clerk, object);
}

static ms_err read_ranks(const ms_values *values, uint32_t object,
                         ms_record *record)
{
    const ms_json *json = values->json;
    uint32_t list, n_ranks = record->report.n_ranks;
    MS_TRY(ms_values_member(values, object, "ranks", MS_JSON_ARRAY, &list));
    if (json->nodes[list].value.n != n_ranks)
        return ms_json_fail(json, list, values->fault, EDITED,
                            "%u ranks, where the report has %u",
                            json->nodes[list].value.n, n_ranks);
    record->ranks =
        ms_arena_take(values->arena, n_ranks, sizeof *record->ranks);
    if (record->ranks == NULL)
        return ms_fail_nomem(values->fault);
    uint32_t row = ms_json_first(json, list);
    for (uint32_t i = 0; i < n_ranks; i++, row = json->nodes[row].next) {
        struct clerk clerk = {values, &record->report.ranks[i],
                              &record->ranks[i]};
        MS_TRY(read_rank(&clerk, row));
    }
    return MS_OK;
}

/* ---- layers -------------------------------------------------------------- */

/* name, then the rest in the order of the struct. */
static ms_err read_layer(const ms_values *values, uint32_t row,
                         ms_layer_use *layer)
{
    const ms_json_node *nodes = values->json->nodes;
    uint32_t cell = ms_json_first(values->json, row);
    uint64_t *const numbers[] = {&layer->saved_bytes, &layer->forward_ns,
                                 &layer->recompute_ns};
    MS_TRY(ms_values_name(values, cell, &layer->name));
    for (int i = 0; i < 3; i++) {
        cell = nodes[cell].next;
        MS_TRY(ms_values_u64(values, cell, numbers[i]));
    }
    return MS_OK;
}

static ms_err check_layer_columns(const ms_values *values,
                                  const ms_value_table *table)
{
    static const char *const names[] = {"name", "saved_bytes", "forward_ns",
                                        "recompute_ns"};
    const ms_json *json = values->json;
    uint32_t row = ms_json_first(json, table->columns), which, i = 0;
    for (; row != MS_NONE; i++, row = json->nodes[row].next) {
        MS_TRY(ms_values_word(values, row, names, 4, &which));
        if (which != i)
            break;
    }
    if (row == MS_NONE && i == 4)
        return MS_OK;
    return ms_json_fail(json, table->columns, values->fault, NULL,
                        "the columns should be name, saved_bytes, forward_ns "
                        "and recompute_ns");
}

static ms_err read_layers(const ms_values *values, uint32_t object,
                          ms_record *record)
{
    ms_value_table table;
    uint32_t member;
    MS_TRY(ms_values_member(values, object, "layers", MS_JSON_OBJECT, &member));
    MS_TRY(ms_values_table(values, member, &table));
    MS_TRY(check_layer_columns(values, &table));
    record->n_layers = table.n_rows;
    record->layers =
        ms_arena_take(values->arena, table.n_rows, sizeof *record->layers);
    if (record->layers == NULL)
        return ms_fail_nomem(values->fault);
    uint32_t row = table.row;
    for (uint32_t i = 0; i < table.n_rows; i++) {
        MS_TRY(ms_values_row(values, &table, row));
        MS_TRY(read_layer(values, row, &record->layers[i]));
        row = values->json->nodes[row].next;
    }
    return MS_OK;
}

/* ---- the step without some policies -------------------------------------- */

static const ms_value_row without_rows[] = {
    {"policy", MS_VALUE_NAME, offsetof(ms_record_without, policy)},
    {"end_ns", MS_VALUE_NUMBER, offsetof(ms_record_without, end_ns)},
    {"peak_bytes", MS_VALUE_NUMBER, offsetof(ms_record_without, peak_bytes)},
};

static ms_err read_levels(const ms_values *values, uint32_t object,
                          ms_record_without *of)
{
    static const char *const names[] = {"t_ns", "allocated_bytes"};
    struct numbers numbers;
    uint64_t highest_bytes = 0;
    bool ascend = true;
    MS_TRY(read_columns(values, object, names, 2, &numbers));
    uint32_t row = numbers.table.row;
    of->n = numbers.table.n_rows;
    of->levels = ms_arena_take_raw(values->arena, of->n, sizeof *of->levels);
    if (of->levels == NULL)
        return ms_fail_nomem(values->fault);
    for (uint32_t i = 0; i < of->n; i++) {
        uint64_t cells[MS_N_WORKS + 2] = {0};
        MS_TRY(read_cells(values, &numbers, row, cells));
        of->levels[i] = (ms_record_level){cells[0], cells[1]};
        ascend &= cells[0] <= of->end_ns &&
                  (i == 0 || cells[0] > of->levels[i - 1].t_ns);
        if (cells[1] > highest_bytes)
            highest_bytes = cells[1];
        row = values->json->nodes[row].next;
    }
    if (ascend && of->n > 0 && highest_bytes == of->peak_bytes)
        return MS_OK;
    return ms_json_fail(values->json, object, values->fault, EDITED,
                        ascend ? "the highest point is not \"peak_bytes\""
                               : "the points do not ascend in time, or one "
                                 "lies after the end");
}

static ms_err read_without(const ms_values *values, uint32_t object,
                           ms_record *record)
{
    uint32_t member, points;
    MS_TRY(
        ms_values_optional(values, object, "without", MS_JSON_OBJECT, &member));
    if (member == MS_NONE)
        return MS_OK;
    ms_record_without *of = ms_arena_take(values->arena, 1, sizeof *of);
    if (of == NULL)
        return ms_fail_nomem(values->fault);
    MS_TRY(ms_values_read(values, member, without_rows, 3, of));
    MS_TRY(ms_values_member(values, member, "points", MS_JSON_OBJECT, &points));
    MS_TRY(read_levels(values, points, of));
    record->without = of;
    if (of->end_ns > 0)
        return MS_OK;
    return ms_json_fail(values->json, member, values->fault, EDITED,
                        "a step that takes no time");
}

static const ms_value_row heading_rows[] = {
    {"title", MS_VALUE_NAME, offsetof(ms_record, title)},
    {"subtitle", MS_VALUE_NAME, offsetof(ms_record, subtitle)},
    {"data_ranks", MS_VALUE_COUNT, offsetof(ms_record, data_ranks)},
};

ms_err ms_resultline_read(const ms_values *values, uint32_t object,
                          ms_record *record)
{
    uint32_t line;
    MS_TRY(
        ms_values_optional(values, object, "timeline", MS_JSON_OBJECT, &line));
    if (line == MS_NONE) {
        record->title = record->model;
        record->subtitle = record->policy;
        return MS_OK;
    }
    MS_TRY(ms_values_read(values, line, heading_rows, 3, record));
    MS_TRY(read_ranks(values, line, record));
    MS_TRY(read_without(values, line, record));
    MS_TRY(ms_resultaddresses_read(values, line, record));
    return read_layers(values, line, record);
}
