/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The keys of a rank in "timeline": its level, its phases and streams. */

#include "graphs/json/json.h"
#include "plots/record/record.h"
#include "sim/names.h"
#include "sim/report.h"
#include "sim/timeline.h"
#include "tools/results/keys/keys.h"

#include <string.h>

#define MUST MS_KEYS_MUST
#define SKIP MS_KEYS_SKIP
#define EDITED "was the file edited?"
/* A bound for reading: no array of a timeline that memsim writes is so long. */
#define MOST_ROWS (8 * MS_RECORD_COLUMNS)

/* ---- points -------------------------------------------------------------- */

static bool shows(const ms_record_rank *rank, int category)
{
    for (uint32_t i = 0; i < rank->n_points; i++)
        if (rank->points[i].bytes[category] > 0)
            return true;
    return false;
}

static void point_columns(const void *of, const void *at, ms_key_columns *all)
{
    const ms_record_rank *rank = of;
    static ms_point none; /* the columns of a step without events point to it */
    ms_point *points = rank->n_points > 0 ? rank->points : &none;
    ms_key_column *column = all->of;
    size_t each = sizeof *rank->points, one = sizeof *rank->reserved_bytes;
    (void)at;
    *column++ = (ms_key_column){.name = rank->has_time ? "t_ns" : "event",
                                .first = &points->t_ns,
                                .stride = each,
                                .must = true};
    *column++ = (ms_key_column){.name = "reserved_bytes",
                                .first = rank->reserved_bytes,
                                .stride = one,
                                .must = true};
    if (rank->recompute_ns != NULL) {
        *column++ = (ms_key_column){
            "recompute_ns", rank->recompute_ns, one, false, false, false};
        *column++ = (ms_key_column){
            "recompute_flops", rank->recompute_flops, one, false, false, false};
    }
    for (int c = 0; c < MS_N_CATEGORIES; c++)
        *column++ = (ms_key_column){.name = ms_names_category[c],
                                    .first = &points->bytes[c],
                                    .stride = each,
                                    .is_hidden = !shows(rank, c)};
    all->n = (uint32_t)(column - all->of);
    all->n_rows = rank->n_points;
}

static ms_err point_room(const ms_values *values, uint32_t value, void *of)
{
    ms_record_rank *rank = of;
    uint32_t n;
    MS_TRY(ms_keys_room_rows(values, value, MOST_ROWS, sizeof *rank->points, &n,
                             &rank->points));
    rank->n_points = n;
    MS_TRY(ms_keys_room_take(values, value, n, MOST_ROWS, sizeof(uint64_t),
                             &rank->reserved_bytes));
    if (rank->again_ns == 0 && rank->again_flops == 0)
        return MS_OK;
    MS_TRY(ms_keys_room_take(values, value, n, MOST_ROWS, sizeof(uint64_t),
                             &rank->recompute_ns));
    return ms_keys_room_take(values, value, n, MOST_ROWS, sizeof(uint64_t),
                             &rank->recompute_flops);
}

/* Says whether the cumulative curves of recomputed work do not fall at point
 * i and stay within the step's totals. */
static bool is_recompute_well(const ms_record_rank *of, uint32_t i)
{
    return of->recompute_ns[i] <= of->again_ns &&
           of->recompute_flops[i] <= of->again_flops &&
           (i == 0 || (of->recompute_ns[i] >= of->recompute_ns[i - 1] &&
                       of->recompute_flops[i] >= of->recompute_flops[i - 1]));
}

static const char *point_wrong(void *of, void *at, uint32_t i)
{
    const ms_record_rank *rank = of;
    ms_point *point = &rank->points[i];
    (void)at;
    for (int c = 0; c < MS_N_CATEGORIES; c++)
        if (__builtin_add_overflow(point->total_bytes, point->bytes[c],
                                   &point->total_bytes))
            return "the categories sum to too much";
    if (i > 0 && point->t_ns <= point[-1].t_ns)
        return "the points do not ascend in time";
    if (point->t_ns > rank->end_ns)
        return "a point after the end of the step";
    if (rank->reserved_bytes[i] < point->total_bytes)
        return "\"reserved_bytes\" is less than the categories sum to";
    return rank->recompute_ns == NULL || is_recompute_well(rank, i)
               ? NULL
               : "what is recomputed falls, or exceeds that of the step";
}

static const char *points_wrong(const void *of, const void *value)
{
    const ms_record_rank *rank = of;
    uint64_t highest_bytes = 0;
    (void)value;
    for (uint32_t i = 0; i < rank->n_points; i++)
        if (rank->points[i].total_bytes > highest_bytes)
            highest_bytes = rank->points[i].total_bytes;
    return highest_bytes == rank->report->peak.allocated_bytes
               ? NULL
               : "the highest point is not the peak of the rank";
}

/* ---- phases -------------------------------------------------------------- */

static const ms_key band_rows[] = {
    {.name = "phase",
     .type = MS_KEY_WORD,
     .names = ms_record_phases,
     .n_names = MS_N_PHASES + 1,
     MS_KEYS_AT(U8, ms_band, phase),
     MUST},
    MS_KEYS_COUNT("from_ns", MS_KEYS_AT(U64, ms_band, from_ns), MUST),
    MS_KEYS_COUNT("to_ns", MS_KEYS_AT(U64, ms_band, to_ns), MUST)};
static const ms_keys band = MS_KEYS_STRUCT("phase", band_rows, ms_band);

static ms_key_list band_list(const void *of)
{
    const ms_record_rank *rank = of;
    return (ms_key_list){rank->bands, rank->n_bands, sizeof *rank->bands};
}

static ms_err band_room(const ms_values *values, uint32_t value, void *of)
{
    ms_record_rank *rank = of;
    rank->n_bands = values->json->nodes[value].value.n;
    return ms_keys_room_take(values, value, rank->n_bands, MOST_ROWS,
                             sizeof *rank->bands, &rank->bands);
}

static const char *band_wrong(const void *of, const void *value)
{
    const ms_record_rank *rank = of;
    const ms_band *at = value;
    return at->from_ns == (at > rank->bands ? at[-1].to_ns : 0) &&
                   at->to_ns >= at->from_ns && at->to_ns <= rank->end_ns
               ? NULL
               : "the phases do not follow one another";
}

/* ---- streams ------------------------------------------------------------- */

static void slice_columns(const void *of, const void *at, ms_key_columns *all)
{
    static ms_slice none; /* the columns of an idle stream point to it */
    const ms_record_lane *lane = of;
    ms_slice *slices = lane->n > 0 ? lane->slices : &none;
    (void)at;
    size_t each = sizeof *lane->slices;
    all->of[0] = (ms_key_column){.name = "from_ns",
                                 .first = &slices->from_ns,
                                 .stride = each,
                                 .must = true};
    all->of[1] = (ms_key_column){
        .name = "to_ns", .first = &slices->to_ns, .stride = each, .must = true};
    for (int work = 0; work < MS_N_WORKS; work++)
        all->of[2 + work] =
            (ms_key_column){.name = ms_record_works[work],
                            .first = &slices->work_ns[work],
                            .stride = each,
                            .is_hidden = lane->work_ns[work] == 0};
    all->n = 2 + MS_N_WORKS;
    all->n_rows = lane->n;
}

static ms_err slice_room(const ms_values *values, uint32_t value, void *of)
{
    ms_record_lane *lane = of;
    return ms_keys_room_rows(values, value, MOST_ROWS, sizeof *lane->slices,
                             &lane->n, &lane->slices);
}

/* Checks that the times of the slices add up to those of the stream. Only
 * idle time may be missing, since slices that are idle alone are not
 * written. */
static ms_err lane_close(const ms_values *values, uint32_t object, void *of)
{
    const ms_record_lane *lane = of;
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

static const ms_key stream_rows[] = {{.name = "stream",
                                      .type = MS_KEY_WORD,
                                      .names = ms_names_stream,
                                      .n_names = MS_N_STREAMS,
                                      MS_KEYS_AT(U8, ms_record_lane, stream),
                                      MUST},
                                     {.name = "work_ns",
                                      .type = MS_KEY_SOME,
                                      .names = ms_record_works,
                                      .n_names = MS_N_WORKS,
                                      MS_KEYS_AT(NOT, ms_record_lane, work_ns),
                                      MUST},
                                     {.name = "slices",
                                      .type = MS_KEY_TABLE,
                                      .columns = slice_columns,
                                      .room = slice_room,
                                      MUST}};
static const ms_keys stream = {.name = "stream",
                               .rows = stream_rows,
                               .n = MS_KEYS_N(stream_rows),
                               .size = sizeof(ms_record_lane),
                               .close = lane_close};

static ms_key_list lane_list(const void *of)
{
    const ms_record_rank *rank = of;
    return (ms_key_list){rank->lanes, rank->n_lanes, sizeof *rank->lanes};
}

static ms_err lane_room(const ms_values *values, uint32_t value, void *of)
{
    ms_record_rank *rank = of;
    rank->n_lanes = values->json->nodes[value].value.n;
    return ms_keys_room_take(values, value, rank->n_lanes, MOST_ROWS,
                             sizeof *rank->lanes, &rank->lanes);
}

static const char *slice_wrong(const ms_record_lane *lane, uint32_t i,
                               uint64_t end_ns)
{
    const ms_slice *slice = &lane->slices[i];
    uint64_t all_ns = 0;
    for (int work = 0; work < MS_N_WORKS && all_ns <= end_ns; work++)
        /* both are below 2^63, so that the sum cannot wrap */
        all_ns += slice->work_ns[work];
    if (slice->from_ns < (i > 0 ? slice[-1].to_ns : 0))
        return "the slices do not ascend in time";
    if (slice->to_ns <= slice->from_ns || slice->to_ns > end_ns)
        return "a slice that ends before it begins, or after the step";
    return all_ns > 0 && all_ns <= end_ns
               ? NULL
               : "a slice without any work, or with more than the step has";
}

/* Slices follow each other in the order of the streams, each stream comes
 * once, and all of them lie within the step. */
static const char *lane_wrong(const void *of, const void *value)
{
    const ms_record_rank *rank = of;
    const ms_record_lane *lane = value;
    const char *wrong = NULL;
    for (uint32_t i = 0; i < lane->n && wrong == NULL; i++)
        wrong = slice_wrong(lane, i, rank->end_ns);
    if (wrong != NULL)
        return wrong;
    return (lane > rank->lanes ? lane->stream > lane[-1].stream
                               : lane->stream == MS_STREAM_COMPUTE)
               ? NULL
               : "the streams do not begin with compute, or are not in order";
}

/* ---- turns --------------------------------------------------------------- */

static void turn_columns(const void *of, const void *at, ms_key_columns *all)
{
    static ms_turn_time none; /* the columns of no turns point to it */
    const ms_record_rank *rank = of;
    ms_turn_time *turns = rank->n_turns > 0 ? rank->turns : &none;
    size_t each = sizeof *turns;
    (void)at;
    *all = (ms_key_columns){
        .of = {{"from_ns", &turns->from_ns, each, false, false, true},
               {"to_ns", &turns->to_ns, each, false, false, true},
               {"turn", &turns->name, each, true, false, true},
               {"stage", &turns->stage, each, false, false, true},
               {"micro_batch", &turns->micro_batch, each, false, false, true},
               {"recompute_ns", &turns->again_ns, each, false, false, true},
               {"weight_ns", &turns->weight_ns, each, false, false, true}},
        .n = 7,
        .n_rows = rank->n_turns};
}

static ms_err turn_room(const ms_values *values, uint32_t value, void *of)
{
    ms_record_rank *rank = of;
    return ms_keys_room_rows(values, value, UINT32_MAX, sizeof *rank->turns,
                             &rank->n_turns, &rank->turns);
}

static const char *turn_wrong(void *of, void *at, uint32_t i)
{
    const ms_record_rank *rank = of;
    ms_turn_time *turn = &rank->turns[i];
    (void)at;
    turn->kind = 0;
    while (turn->kind < MS_TURNTIMES_KINDS &&
           strcmp(turn->name, ms_turntimes_names[turn->kind]) != 0)
        turn->kind++;
    if (turn->kind == MS_TURNTIMES_KINDS)
        return "there is no such turn";
    if (turn->from_ns < (i > 0 ? turn[-1].to_ns : 0))
        return "the turns do not ascend in time";
    if (turn->to_ns <= turn->from_ns || turn->to_ns > rank->end_ns)
        return "a turn that ends before it begins, or after the step";
    return turn->again_ns <= turn->to_ns - turn->from_ns &&
                   turn->weight_ns <=
                       turn->to_ns - turn->from_ns - turn->again_ns
               ? NULL
               : "a turn with more work than time";
}

static bool turns_there(const void *of)
{
    return ((const ms_record_rank *)of)->n_turns > 0;
}

/* ---- ranks --------------------------------------------------------------- */

#define DRAWN(kind, member) MS_KEYS_AT(kind, ms_record_rank, member)

static bool has_time(const void *of)
{
    return ((const ms_record_rank *)of)->has_time;
}

static bool has_events(const void *of)
{
    return !has_time(of);
}

static ms_key_list far_list(const void *of)
{
    const ms_record_rank *rank = of;
    return (ms_key_list){rank->far, rank->n_far, sizeof *rank->far};
}

static bool far_there(const void *of)
{
    return ((const ms_record_rank *)of)->n_far > 0;
}

static ms_err far_room(const ms_values *values, uint32_t value, void *of)
{
    ms_record_rank *rank = of;
    rank->n_far = values->json->nodes[value].value.n;
    return ms_keys_room_take(values, value, rank->n_far, MOST_ROWS,
                             sizeof *rank->far, &rank->far);
}

/* Checks that the curves are those of this rank of the report, and reads
 * where they end, which must not be before the end of the step. */
static ms_err drawn_open(const ms_values *values, uint32_t object, void *of)
{
    ms_record_rank *rank = of;
    unsigned number = rank->report->rank;
    uint32_t member;
    MS_TRY(ms_values_member(values, object, "rank", MS_JSON_INT, &member));
    if (values->json->nodes[member].value.i != number)
        return ms_json_fail(values->json, member, values->fault, EDITED,
                            "this should be rank %u, as in the report", number);
    MS_TRY(ms_values_optional(values, object, "end_ns", MS_JSON_INT, &member));
    rank->has_time = member != MS_NONE;
    if (!rank->has_time)
        MS_TRY(ms_values_member(values, object, "end_event", MS_JSON_INT,
                                &member));
    MS_TRY(ms_values_u64(values, member, &rank->end_ns));
    if (rank->end_ns > 0 &&
        (!rank->has_time || rank->end_ns >= rank->report->time.step_ns))
        return MS_OK;
    return ms_json_fail(values->json, member, values->fault, EDITED,
                        "the end is before that of the step");
}

static const char *again_wrong(const void *of, const void *value)
{
    const ms_record_rank *rank = of;
    (void)value;
    return rank->again_ns == rank->report->time.recompute_ns
               ? NULL
               : "\"recompute_ns\" is not that of the report";
}

static const ms_key drawn_rows[] = {
    MS_KEYS_COUNT("rank", MS_KEYS_VIA(ms_record_rank, report),
                  MS_KEYS_AT(U8, ms_rank_report, rank), SKIP),
    MS_KEYS_COUNT_OR_NULL("end_ns", DRAWN(U64, end_ns), .there = has_time,
                          SKIP),
    MS_KEYS_COUNT_OR_NULL("end_event", DRAWN(U64, end_ns), .there = has_events,
                          SKIP),
    MS_KEYS_COUNT("recompute_ns", DRAWN(U64, again_ns), MUST,
                  .wrong = again_wrong),
    {.name = "recompute_flops",
     .type = MS_KEY_COUNT,
     DRAWN(U64, again_flops),
     MUST,
     .help = "what the rank recomputes in the step"},
    {.name = "points",
     .type = MS_KEY_TABLE,
     .columns = point_columns,
     .room = point_room,
     .row_wrong = point_wrong,
     .wrong = points_wrong,
     MUST,
     .help = "the device's level, in at most 600 rows: from t_ns (or event) "
             "on, each category that occurs, reserved_bytes, the highest "
             "until the next row, and, where anything is recomputed, "
             "recompute_ns and recompute_flops, what was so far; the highest "
             "level of each part of the step stays"},
    {.name = "phases",
     .type = MS_KEY_OBJECTS,
     .of = &band,
     .list = band_list,
     .room = band_room,
     .wrong = band_wrong,
     MUST,
     .help = "phase (forward, backward, optimizer, or mixed where they "
             "alternate), from_ns, to_ns"},
    {.name = "streams",
     .type = MS_KEY_OBJECTS,
     .of = &stream,
     .list = lane_list,
     .room = lane_room,
     .wrong = lane_wrong,
     MUST,
     .help = "compute, then each that works: work_ns, what it does or waits "
             "for and how long; slices, the same for parts of at least 1/600 "
             "of the step"},
    {.name = "turns",
     .type = MS_KEY_TABLE,
     .columns = turn_columns,
     .room = turn_room,
     .row_wrong = turn_wrong,
     .there = turns_there,
     .optional = true,
     .help = "of a pipeline's rank: turn (forward, backward, grad_input, "
             "grad_weight, optimizer) of a stage on a micro-batch, from_ns, "
             "to_ns, and of that recompute_ns and weight_ns, gradients of "
             "weights; in pieces where it waits for 1/1000 of the step"},
    {.name = "host_bytes",
     .type = MS_KEY_LEVELS,
     .null = true,
     .list = far_list,
     .there = far_there,
     .room = far_room,
     .help = "highest level of host memory in each of 600 parts of the step"},
};
const ms_keys ms_keys_drawn = {.name = "drawn_rank",
                               .rows = drawn_rows,
                               .n = MS_KEYS_N(drawn_rows),
                               .size = sizeof(ms_record_rank),
                               .open = drawn_open};
