/* SPDX-License-Identifier: GPL-3.0-or-later */

#include "plots/page/htmlpage.h"
#include "sim/report.h"
#include "sim/timeline.h"

static void put_pair(uint64_t a, uint64_t b, ms_text *text)
{
    ms_text_add(text, "[");
    ms_text_u64(text, a);
    ms_text_add(text, ",");
    ms_text_u64(text, b);
}

static void put_phases(const ms_record_rank *rank, ms_text *text)
{
    for (uint32_t i = 0; i < rank->n_bands; i++) {
        const ms_band *band = &rank->bands[i];
        ms_text_add(text, "%s", i > 0 ? "," : "");
        put_pair(band->from_ns, band->to_ns, text);
        ms_text_add(text, ",\"%s\"]", ms_record_phases[band->phase]);
    }
}

/* Of a step function only where it changes: [t, value], ... */
static void put_steps(const ms_record_rank *rank, const uint64_t *values,
                      ms_text *text)
{
    for (uint32_t i = 0; values != NULL && i < rank->n_points; i++) {
        if (i > 0 && values[i] == values[i - 1])
            continue;
        ms_text_add(text, "%s", i > 0 ? "," : "");
        put_pair(rank->points[i].t_ns, values[i], text);
        ms_text_add(text, "]");
    }
}

static void put_slice(const ms_slice *slice, ms_text *text)
{
    put_pair(slice->from_ns, slice->to_ns, text);
    for (uint32_t work = 0; work < MS_WORK_IDLE; work++) {
        if (slice->work_ns[work] == 0)
            continue;
        ms_text_add(text, ",%u,", work);
        ms_text_u64(text, slice->work_ns[work]);
    }
    ms_text_add(text, "]");
}

/* At most so many: neighbours are joined. */
static void put_slices(const ms_record_lane *lane, uint32_t most, ms_text *text)
{
    uint32_t each = lane->n / (most + 1) + 1;
    for (uint32_t i = 0; i < lane->n; i += each) {
        ms_slice joined = lane->slices[i];
        for (uint32_t k = i + 1; k < lane->n && k < i + each; k++) {
            joined.to_ns = lane->slices[k].to_ns;
            for (uint32_t work = 0; work < MS_WORK_IDLE; work++)
                joined.work_ns[work] += lane->slices[k].work_ns[work];
        }
        ms_text_add(text, "%s", i > 0 ? "," : "");
        put_slice(&joined, text);
    }
}

static void put_lanes(const ms_record_rank *rank, uint32_t most, ms_text *text)
{
    for (uint32_t l = 0; l < rank->n_lanes; l++) {
        const ms_record_lane *lane = &rank->lanes[l];
        ms_text_add(text, "%s{\"name\":\"%s\",\"slices\":[", l > 0 ? "," : "",
                    ms_names_stream[lane->stream]);
        put_slices(lane, most, text);
        ms_text_add(text, "]}");
    }
}

static void put_turn(const ms_turn_time *turn, ms_text *text)
{
    put_pair(turn->from_ns, turn->to_ns, text);
    ms_text_add(text, ",\"%s\",", ms_turntimes_names[turn->kind]);
    ms_text_u64(text, turn->micro_batch);
    ms_text_add(text, ",");
    ms_text_u64(text, turn->stage);
    ms_text_add(text, ",");
    ms_text_u64(text, turn->again_ns);
    ms_text_add(text, "]");
}

static void put_turns(const ms_record_rank *rank, ms_text *text)
{
    for (uint32_t i = 0; i < rank->n_turns; i++) {
        ms_text_add(text, "%s", i > 0 ? "," : "");
        put_turn(&rank->turns[i], text);
    }
}

static void put_stages(const ms_record *record, const ms_pageshare *most,
                       ms_text *text)
{
    uint64_t n = 0;
    for (uint32_t r = 0; r < record->report.n_ranks; r++)
        n += record->ranks[r].n_turns;
    for (uint32_t r = 0; r < record->report.n_ranks; r++) {
        const ms_record_rank *rank = &record->ranks[r];
        bool hides = n > most->turns && rank->n_lanes > 0;
        if (rank->n_turns == 0)
            return;
        ms_text_add(text, "%s{\"rank\":%u,\"hidden\":%u,\"slices\":[",
                    r > 0 ? "," : "", rank->report->rank,
                    hides ? rank->n_turns : 0);
        if (hides)
            put_slices(&rank->lanes[0], most->slices, text);
        ms_text_add(text, "],\"turns\":[");
        if (!hides)
            put_turns(rank, text);
        ms_text_add(text, "]}");
    }
}

ms_err ms_pagestep_put(const ms_pagestep *step, ms_text *text, ms_fault *fault)
{
    MS_TRY(ms_record_check(step->record, fault));
    const ms_record_rank *rank = &step->record->ranks[step->rank];
    uint16_t number = rank->report->rank;
    ms_text_add(text, "{\"rank\":%u,\"end\":", number);
    ms_text_u64(text, rank->end_ns);
    ms_text_add(text, ",\"timed\":%s,\"phases\":[",
                rank->has_time ? "true" : "false");
    put_phases(rank, text);
    ms_text_add(text, "],\"reserved\":[");
    put_steps(rank, rank->reserved_bytes, text);
    ms_text_add(text, "],\"again\":[");
    put_steps(rank, rank->recompute_ns, text);
    ms_text_add(text, "],\"again_ns\":");
    ms_text_u64(text, rank->again_ns);
    ms_text_add(text, ",\"lanes\":[");
    put_lanes(rank, step->most.slices, text);
    ms_text_add(text, "],\"stages\":[");
    put_stages(step->record, &step->most, text);
    ms_text_add(text, "],");
    if (step->line == NULL)
        ms_pagelevels_record(rank, text);
    else
        MS_TRY(ms_pagelevels_put(step->line, number, &step->most, text, fault));
    ms_text_add(text, ",\"tensors\":");
    if (step->line == NULL)
        ms_text_add(text, "null");
    else
        MS_TRY(ms_pagetensors_put(step, number, text, fault));
    ms_text_add(text, "}");
    return text->failed ? ms_fail_nomem(fault) : MS_OK;
}
