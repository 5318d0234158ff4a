/* SPDX-License-Identifier: GPL-3.0-or-later */

#include <string.h>

#include "plots/record/distantlevels.h"
#include "plots/record/lanes.h"
#include "plots/record/phases.h"
#include "plots/record/record.h"
#include "plots/record/stack.h"
#include "sim/graph.h"
#include "sim/measure/bylayer.h"
#include "sim/measure/recomputed.h"
#include "sim/plan.h"
#include "sim/program.h"
#include "sim/report.h"
#include "sim/timeline.h"

#define MOST_POINTS (4 * MS_RECORD_COLUMNS) /* of the first thinning */

const char *const ms_record_works[MS_N_WORKS] = {
    [MS_WORK_FORWARD] = "forward",
    [MS_WORK_RECOMPUTE] = "recompute",
    [MS_WORK_BACKWARD] = "backward",
    [MS_WORK_OPTIMIZER] = "optimizer",
    [MS_WORK_COMM] = "comm",
    [MS_WORK_H2D] = "h2d",
    [MS_WORK_D2H] = "d2h",
    [MS_WORK_HOST] = "host",
    [MS_WORK_NVME] = "nvme",
    [MS_WORK_PACK] = "pack",
    [MS_WORK_WAIT_HOST] = "wait_host",
    [MS_WORK_WAIT_COMM] = "wait_comm",
    [MS_WORK_WAIT_COPY] = "wait_copy",
    [MS_WORK_WAIT_DISK] = "wait_disk",
    [MS_WORK_WAIT_CORES] = "wait_cores",
    [MS_WORK_WAIT_RANK] = "wait_rank",
    [MS_WORK_WAIT_PAGES] = "wait_pages",
    [MS_WORK_WAIT_MEMORY] = "wait_memory",
    [MS_WORK_IDLE] = "idle",
};

const char *const ms_record_phases[MS_N_PHASES + 1] = {
    [MS_PHASE_FORWARD] = "forward",
    [MS_PHASE_BACKWARD] = "backward",
    [MS_PHASE_OPTIMIZER] = "optimizer",
    [MS_PHASE_MIXED] = "mixed",
};

/* ---- of a run ------------------------------------------------------------ */

struct scribe {
    const ms_timeline *line;
    const ms_report *report;
    ms_arena *arena, *scratch; /* scratch goes when the record is there */
    uint16_t rank;
    ms_record_rank *of;
};

/* The raises of a rank's active bytes in the order of time. */
struct raises {
    const ms_timeline *line;
    uint16_t rank;
    uint32_t next;       /* behind the event of the last one */
    ms_eventwalk events; /* behind it, too */
};

static void skip_others(struct raises *raises)
{
    const ms_timeline *line = raises->line;
    while (raises->next < line->n_raises &&
           line->plan->op[line->raises[raises->next].op].rank != raises->rank)
        raises->next++;
}

/* The highest active bytes that an allocation before until_ns makes, but for
 * those that an earlier call has told of; 0: none. */
static uint64_t raise_until(struct raises *raises, uint64_t until_ns)
{
    const ms_timeline *line = raises->line;
    uint64_t highest_bytes = 0;
    skip_others(raises);
    for (; raises->next < line->n_raises; raises->events.at++) {
        const struct ms_raise *raise = &line->raises[raises->next];
        const ms_event *event = ms_timeline_peek(&raises->events);
        if (event == NULL || event->t_ns >= until_ns)
            break;
        if (event->op_act >> 1 != raise->op)
            continue;
        highest_bytes = raise->reserved_bytes;
        raises->next++;
        skip_others(raises);
    }
    return highest_bytes;
}

/* Reserved is the highest active so far: the highest total, or more where
 * frees wait for other streams. */
static ms_err load_reserved(const struct scribe *scribe, ms_fault *fault)
{
    ms_record_rank *of = scribe->of;
    struct raises raises = {.line = scribe->line, .rank = scribe->rank};
    uint64_t highest_bytes = 0;
    ms_timeline_walk(scribe->line, 0, &raises.events);
    of->reserved_bytes = ms_arena_take_raw(scribe->arena, of->n_points,
                                           sizeof *of->reserved_bytes);
    if (of->reserved_bytes == NULL)
        return ms_fail_nomem(fault);
    for (uint32_t i = 0; i < of->n_points; i++) {
        uint64_t until_ns =
            i + 1 < of->n_points ? of->points[i + 1].t_ns : UINT64_MAX;
        uint64_t active_bytes = raise_until(&raises, until_ns);
        if (active_bytes > highest_bytes)
            highest_bytes = active_bytes;
        if (of->points[i].total_bytes > highest_bytes)
            highest_bytes = of->points[i].total_bytes;
        of->reserved_bytes[i] = highest_bytes;
    }
    return MS_OK;
}

/* Keeps the first of equal neighbours. */
static void join_equal(ms_record_rank *of)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < of->n_points; i++) {
        const ms_point *point = &of->points[i];
        uint64_t reserved_bytes = of->reserved_bytes[i];
        if (kept > 0 && reserved_bytes == of->reserved_bytes[kept - 1] &&
            memcmp(point->bytes, of->points[kept - 1].bytes,
                   sizeof point->bytes) == 0)
            continue;
        of->reserved_bytes[kept] = reserved_bytes;
        of->points[kept++] = *point;
    }
    of->n_points = kept;
}

/* Reads what was recomputed at the times of the points, for one curve is drawn
 * below the other. */
static ms_err load_recomputed(const struct scribe *scribe, ms_fault *fault)
{
    ms_record_rank *of = scribe->of;
    ms_recomputed all = {.line = scribe->line, .rank = scribe->rank};
    ms_recomputed so_far = all;
    ms_recomputed_until(&all, UINT64_MAX, &of->again_ns, &of->again_flops);
    if (of->again_ns == 0 && of->again_flops == 0)
        return MS_OK;
    of->recompute_ns =
        ms_arena_take_raw(scribe->arena, of->n_points, sizeof(uint64_t));
    of->recompute_flops =
        ms_arena_take_raw(scribe->arena, of->n_points, sizeof(uint64_t));
    if (of->recompute_ns == NULL || of->recompute_flops == NULL)
        return ms_fail_nomem(fault);
    for (uint32_t i = 0; i < of->n_points; i++)
        ms_recomputed_until(&so_far, of->points[i].t_ns, &of->recompute_ns[i],
                            &of->recompute_flops[i]);
    return MS_OK;
}

ms_err ms_record_points(const ms_timeline *line, uint16_t rank, ms_arena *arena,
                        ms_record_rank *of, ms_fault *fault)
{
    MS_TRY(ms_timeline_points(line, rank, MOST_POINTS, arena, &of->points,
                              &of->n_points, fault));
    uint64_t last = of->n_points > 0 ? of->points[of->n_points - 1].t_ns : 0;
    of->end_ns = line->step_ns;
    of->has_time = of->end_ns > 0;
    if (!of->has_time)
        of->end_ns = last + 1;
    else if (of->end_ns < last)
        of->end_ns = last;
    of->n_points = ms_stack_thicken(of->points, of->n_points, of->end_ns,
                                    MS_RECORD_COLUMNS);
    return MS_OK;
}

static ms_err load_points(const struct scribe *scribe, ms_fault *fault)
{
    ms_record_rank *of = scribe->of;
    MS_TRY(
        ms_record_points(scribe->line, scribe->rank, scribe->arena, of, fault));
    MS_TRY(load_reserved(scribe, fault));
    join_equal(of);
    return of->has_time ? load_recomputed(scribe, fault) : MS_OK;
}

/* Idle slices are not kept. */
static uint32_t keep_busy(ms_slice *slices, uint32_t n)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < n; i++) {
        uint64_t busy_ns = 0;
        for (int work = 0; work < MS_WORK_IDLE; work++)
            busy_ns += slices[i].work_ns[work];
        if (busy_ns > 0)
            slices[kept++] = slices[i];
    }
    return kept;
}

static ms_err load_lane(const struct scribe *scribe, ms_lanes *lanes,
                        ms_stream_kind stream, ms_fault *fault)
{
    ms_record_lane *lane = &scribe->of->lanes[scribe->of->n_lanes++];
    ms_slicer slicer = {.arena = scribe->scratch,
                        .least_ns =
                            scribe->line->step_ns / MS_RECORD_COLUMNS + 1};
    MS_TRY(ms_lanes_slices(lanes, stream, &slicer, fault));
    *lane = (ms_record_lane){.stream = (uint8_t)stream,
                             .n = keep_busy(slicer.slices, slicer.n)};
    memcpy(lane->work_ns, slicer.work_ns, sizeof lane->work_ns);
    lane->slices =
        ms_arena_take_raw(scribe->arena, lane->n, sizeof *lane->slices);
    if (lane->slices == NULL)
        return ms_fail_nomem(fault);
    if (lane->n > 0)
        memcpy(lane->slices, slicer.slices, lane->n * sizeof *lane->slices);
    return MS_OK;
}

static ms_err load_lanes(const struct scribe *scribe, ms_fault *fault)
{
    ms_record_rank *of = scribe->of;
    ms_lanes lanes;
    if (scribe->line->step_ns == 0)
        return MS_OK;
    of->lanes =
        ms_arena_take_raw(scribe->arena, MS_N_STREAMS, sizeof *of->lanes);
    if (of->lanes == NULL)
        return ms_fail_nomem(fault);
    MS_TRY(ms_lanes_open(&lanes, scribe->line, scribe->rank, scribe->scratch,
                         fault));
    for (int stream = 0; stream < MS_N_STREAMS; stream++)
        if (stream == MS_STREAM_COMPUTE || lanes.busy_ns[stream] > 0)
            MS_TRY(load_lane(scribe, &lanes, (ms_stream_kind)stream, fault));
    return MS_OK;
}

static ms_err load_far(const struct scribe *scribe, ms_fault *fault)
{
    ms_record_rank *of = scribe->of;
    uint64_t any = 0;
    if (scribe->line->step_ns == 0 || scribe->report->host_peak_bytes == 0)
        return MS_OK;
    MS_TRY(ms_distantlevels_levels(scribe->line, scribe->rank, MS_HOST_POOL,
                                   MS_RECORD_COLUMNS, scribe->arena, &of->far,
                                   fault));
    for (uint32_t i = 0; i < MS_RECORD_COLUMNS; i++)
        any |= of->far[i];
    of->n_far = any > 0 ? MS_RECORD_COLUMNS : 0;
    return MS_OK;
}

static ms_err load_rank(const struct scribe *scribe, ms_fault *fault)
{
    ms_record_rank *of = scribe->of;
    MS_TRY(load_points(scribe, fault));
    MS_TRY(ms_phases_bands(scribe->line, scribe->rank, of->end_ns,
                           scribe->arena, &of->bands, &of->n_bands, fault));
    MS_TRY(load_lanes(scribe, fault));
    return load_far(scribe, fault);
}

static ms_err load_ranks(const ms_timeline *line, ms_arena *arena,
                         ms_arena *scratch, ms_record *record, ms_fault *fault)
{
    const ms_report *report = &record->report;
    record->ranks =
        ms_arena_take(arena, report->n_ranks, sizeof *record->ranks);
    if (record->ranks == NULL)
        return ms_fail_nomem(fault);
    for (uint32_t i = 0; i < report->n_ranks; i++) {
        record->ranks[i].report = &report->ranks[i];
        struct scribe scribe = {line,
                                report,
                                arena,
                                scratch,
                                report->ranks[i].rank,
                                &record->ranks[i]};
        ms_arena_reset(scratch);
        MS_TRY(load_rank(&scribe, fault));
    }
    return MS_OK;
}

/* The measure has room for every layer, though blocks hold most of them. */
static ms_err load_layers(const ms_timeline *line, ms_arena *arena,
                          ms_arena *scratch, ms_record *record, ms_fault *fault)
{
    const ms_report *report = &record->report;
    ms_layer_use *layers;
    ms_arena_reset(scratch);
    MS_TRY(ms_bylayer_measure(line, report->ranks[report->told].rank, scratch,
                              &layers, &record->n_layers, fault));
    record->layers =
        ms_arena_take_raw(arena, record->n_layers, sizeof *record->layers);
    if (record->layers == NULL)
        return ms_fail_nomem(fault);
    if (record->n_layers > 0)
        memcpy(record->layers, layers, record->n_layers * sizeof *layers);
    return MS_OK;
}

ms_err ms_record_of(const ms_timeline *line, const ms_report *report,
                    const ms_report_names *names, ms_arena *arena,
                    ms_record *record, ms_fault *fault)
{
    ms_arena scratch = {.limit_bytes = arena->limit_bytes};
    *record = (ms_record){.model = names->model,
                          .device = names->device,
                          .policy = names->policy,
                          .parameters = line->plan->graph->parameters,
                          .report = *report};
    ms_err err = load_ranks(line, arena, &scratch, record, fault);
    if (err == MS_OK)
        err = load_layers(line, arena, &scratch, record, fault);
    ms_arena_free(&scratch);
    return err;
}

ms_err ms_record_add_turns(const ms_timeline *line, const ms_program *program,
                           ms_arena *arena, ms_record *record, ms_fault *fault)
{
    if (program->n_stages == 0)
        return MS_OK;
    for (uint32_t i = 0; i < record->report.n_ranks; i++) {
        ms_record_rank *of = &record->ranks[i];
        MS_TRY(ms_turntimes_measure(line, program, of->report->rank, arena,
                                    &of->turns, &of->n_turns, fault));
    }
    return MS_OK;
}

ms_err ms_record_check(const ms_record *record, ms_fault *fault)
{
    if (record->ranks != NULL)
        return MS_OK;
    return ms_fail(
        fault, MS_EINPUT, NULL, "make it again: memsim run MODEL --json >FILE",
        "the result of %s has no \"timeline\" to draw", record->model);
}
