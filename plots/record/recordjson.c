/* SPDX-License-Identifier: GPL-3.0-or-later */

#include <string.h>

#include "plots/figure.h"
#include "plots/record/record.h"
#include "sim/measure/bylayer.h"

static void put(ms_text *text, const char *words)
{
    ms_text_put(text, words, strlen(words));
}

static void put_word(ms_text *text, const char *before, const char *word)
{
    put(text, before);
    ms_text_json(text, word != NULL ? word : "");
}

static void put_number(ms_text *text, const char *before, uint64_t value)
{
    put(text, before);
    ms_text_u64(text, value);
}

static void put_points(const ms_record_rank *rank, ms_text *text)
{
    bool shows[MS_N_CATEGORIES] = {false};
    for (uint32_t i = 0; i < rank->n_points; i++)
        for (int c = 0; c < MS_N_CATEGORIES; c++)
            shows[c] |= rank->points[i].bytes[c] > 0;
    put_word(text, "\"points\": {\"columns\": [",
             rank->has_time ? "t_ns" : "event");
    put_word(text, ", ", "reserved_bytes");
    if (rank->recompute_ns != NULL)
        put(text, ", \"recompute_ns\", \"recompute_flops\"");
    for (int c = 0; c < MS_N_CATEGORIES; c++)
        if (shows[c])
            put_word(text, ", ", ms_names_category[c]);
    put(text, "], \"rows\": [");
    for (uint32_t i = 0; i < rank->n_points; i++) {
        put_number(text, i > 0 ? ", [" : "[", rank->points[i].t_ns);
        put_number(text, ", ", rank->reserved_bytes[i]);
        if (rank->recompute_ns != NULL) {
            put_number(text, ", ", rank->recompute_ns[i]);
            put_number(text, ", ", rank->recompute_flops[i]);
        }
        for (int c = 0; c < MS_N_CATEGORIES; c++)
            if (shows[c])
                put_number(text, ", ", rank->points[i].bytes[c]);
        put(text, "]");
    }
    put(text, "]}");
}

static void put_bands(const ms_record_rank *rank, ms_text *text)
{
    put(text, ", \"phases\": [");
    for (uint32_t i = 0; i < rank->n_bands; i++) {
        const ms_band *band = &rank->bands[i];
        put_word(text, i > 0 ? ", {\"phase\": " : "{\"phase\": ",
                 ms_record_phases[band->phase]);
        put_number(text, ", \"from_ns\": ", band->from_ns);
        put_number(text, ", \"to_ns\": ", band->to_ns);
        put(text, "}");
    }
    put(text, "]");
}

static void put_slices(const ms_record_lane *lane, ms_text *text)
{
    put(text, "\"columns\": [\"from_ns\", \"to_ns\"");
    for (int work = 0; work < MS_N_WORKS; work++)
        if (lane->work_ns[work] > 0)
            put_word(text, ", ", ms_record_works[work]);
    put(text, "], \"rows\": [");
    for (uint32_t i = 0; i < lane->n; i++) {
        const ms_slice *slice = &lane->slices[i];
        put_number(text, i > 0 ? ", [" : "[", slice->from_ns);
        put_number(text, ", ", slice->to_ns);
        for (int work = 0; work < MS_N_WORKS; work++)
            if (lane->work_ns[work] > 0)
                put_number(text, ", ", slice->work_ns[work]);
        put(text, "]");
    }
    put(text, "]");
}

static void put_lane(const ms_record_lane *lane, ms_text *text)
{
    const char *comma = "";
    put_word(text, "{\"stream\": ", ms_names_stream[lane->stream]);
    put(text, ", \"work_ns\": {");
    for (int work = 0; work < MS_N_WORKS; work++) {
        if (lane->work_ns[work] == 0)
            continue;
        put_word(text, comma, ms_record_works[work]);
        put_number(text, ": ", lane->work_ns[work]);
        comma = ", ";
    }
    put(text, "}, \"slices\": {");
    put_slices(lane, text);
    put(text, "}}");
}

static void put_rank(const ms_record_rank *rank, uint8_t number, ms_text *text)
{
    put_number(text, "{\"rank\": ", number);
    put_number(text,
               rank->has_time ? ", \"end_ns\": "
                              : ", \"end_ns\": null, \"end_event\": ",
               rank->end_ns);
    put(text, rank->has_time ? ", \"end_event\": null, " : ", ");
    put_number(text, "\"recompute_ns\": ", rank->again_ns);
    put_number(text, ", \"recompute_flops\": ", rank->again_flops);
    put(text, ", ");
    put_points(rank, text);
    put_bands(rank, text);
    put(text, ", \"streams\": [");
    for (uint32_t i = 0; i < rank->n_lanes; i++) {
        put(text, i > 0 ? ", " : "");
        put_lane(&rank->lanes[i], text);
    }
    put(text, "], \"host_bytes\": ");
    for (uint32_t i = 0; i < rank->n_far; i++)
        put_number(text, i > 0 ? ", " : "[", rank->far[i]);
    put(text, rank->n_far > 0 ? "]}" : "null}");
}

static void put_layers(const ms_record *record, ms_text *text)
{
    put(text, ", \"layers\": {\"columns\": [\"name\", \"saved_bytes\", "
              "\"forward_ns\", \"recompute_ns\"], \"rows\": [");
    for (uint32_t i = 0; i < record->n_layers; i++) {
        const ms_layer_use *layer = &record->layers[i];
        put_word(text, i > 0 ? ", [" : "[", layer->name);
        put_number(text, ", ", layer->saved_bytes);
        put_number(text, ", ", layer->forward_ns);
        put_number(text, ", ", layer->recompute_ns);
        put(text, "]");
    }
    put(text, "]}");
}

void ms_recordjson_put(const ms_record *record, ms_text *text)
{
    put_word(text, "{\"title\": ", record->title);
    put_word(text, ", \"subtitle\": ", record->subtitle);
    put_number(text, ", \"data_ranks\": ", record->data_ranks);
    put(text, ", \"ranks\": [");
    for (uint32_t i = 0; i < record->report.n_ranks; i++) {
        put(text, i > 0 ? ", " : "");
        put_rank(&record->ranks[i], record->report.ranks[i].rank, text);
    }
    put(text, "]");
    put_layers(record, text);
    if (record->without != NULL)
        ms_recordwithout_json(record->without, text);
    if (record->addresses != NULL)
        ms_addresses_json(record->addresses, text);
    put(text, "}");
}
