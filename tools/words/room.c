/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The verdict in words: what headroom is left, or which memory is too small. */

#include "sim/graph.h"
#include "sim/names.h"
#include "sim/plan.h"
#include "sim/report.h"
#include "sim/timeline.h"
#include "tools/job/result.h"
#include "tools/terminal/quantity.h"
#include "tools/terminal/screen.h"
#include "tools/words/words.h"

const char *const ms_room_names[MS_N_POOLS] = {
    [MS_DEVICE_POOL] = "device memory",
    [MS_HOST_POOL] = "host memory",
    [MS_NVME_POOL] = "disk",
};

/* "40.38 GiB (51.0 %)". */
static void put_headroom(const ms_report *report, ms_text *text)
{
    uint64_t bytes = (uint64_t)report->headroom_bytes;
    ms_text_add(text, "%s (%.1f %%)", ms_quantity_size(bytes).s,
                100.0 * (double)bytes / (double)report->capacity_bytes);
}

/* "the host memory of a node lacks 553.81 GiB: its ranks need 2601.81 GiB, it
 * has 2048.00 GiB". */
static void put_shortage(const ms_report *report, ms_pool_kind pool,
                         ms_text *text)
{
    const struct ms_far_memory *far = &report->far[pool];
    ms_text_add(text, "the %s of a node lacks %s: its ranks need %s, it has %s",
                ms_room_names[pool],
                ms_quantity_size(ms_capacity_short(report, pool)).s,
                ms_quantity_size(far->node_reserved_bytes).s,
                ms_quantity_size(far->capacity_bytes).s);
}

void ms_room_subtitle(const ms_report *report, ms_text *text)
{
    const char *between = "";
    if (report->headroom_bytes >= 0 && report->fits) {
        ms_text_add(text, "headroom ");
        put_headroom(report, text);
        return;
    }
    for (int pool = 0; pool < MS_N_POOLS; pool++) {
        uint64_t bytes = ms_capacity_short(report, (ms_pool_kind)pool);
        if (bytes == 0)
            continue;
        ms_text_add(text, "%s%s%s by %s", between,
                    pool == MS_DEVICE_POOL ? "over capacity"
                                           : ms_room_names[pool],
                    pool == MS_DEVICE_POOL ? "" : " too small",
                    ms_quantity_size(bytes).s);
        between = ", ";
    }
}

void ms_room_verdict(const ms_report *report, ms_text *text)
{
    uint64_t over_bytes = ms_capacity_short(report, MS_DEVICE_POOL);
    const char *between = "";
    ms_text_add(text, report->fits ? "fits, " : "does not fit: ");
    if (report->fits) {
        put_headroom(report, text);
        ms_text_add(text, " to spare");
    }
    for (int pool = MS_HOST_POOL; pool < MS_N_POOLS; pool++) {
        if (ms_capacity_short(report, (ms_pool_kind)pool) == 0)
            continue;
        ms_text_add(text, "%s", between);
        put_shortage(report, (ms_pool_kind)pool, text);
        between = "; ";
    }
    if (over_bytes > 0)
        ms_text_add(text, "%s%s more than the %s there are", between,
                    ms_quantity_size(over_bytes).s,
                    ms_quantity_size(report->capacity_bytes).s);
}

/* ---- where it ends ------------------------------------------------------- */

/* The op whose allocation first goes beyond the capacity, or MS_NONE. */
static uint32_t first_over(const ms_result *result)
{
    if (result->report->lack.missing_bytes > 0)
        return result->report->lack.op;
    const ms_plan *plan = result->plan;
    const ms_report *report = result->report;
    const ms_timeline *line = result->line;
    uint64_t level = report->context_bytes;
    ms_eventwalk walk;
    ms_timeline_walk(line, 0, &walk);
    for (uint32_t i = 0; i < line->n_events; i++) {
        const ms_event *event = ms_timeline_next(&walk);
        const ms_row *row = &plan->row[event->row];
        bool allocates = (event->op_act & 1u) != 0;
        if (row->pool != MS_DEVICE_POOL ||
            plan->op[row->op].rank != report->worst)
            continue;
        level += allocates ? row->bytes : 0 - row->bytes;
        if (level > report->capacity_bytes)
            return event->op_act >> 1;
    }
    return MS_NONE;
}

/* When capacity is a wall, an op waits for memory: it fails not when it starts
 * but when no op that runs can free anything any more. */
static uint64_t over_ns(const ms_result *result, uint32_t op)
{
    const ms_lack *lack = &result->report->lack;
    return lack->missing_bytes > 0 ? lack->t_ns : result->line->start_ns[op];
}

void ms_room_first_over(const ms_result *result, ms_text *words)
{
    const ms_lack *lack = &result->report->lack;
    const ms_graph *graph = result->graph;
    uint32_t op = first_over(result);
    char name[64];
    if (op == MS_NONE)
        return;
    uint32_t of = result->plan->op[op].of;
    ms_pass pass = (ms_pass)result->plan->op[op].pass;
    if (pass == MS_START) {
        ms_text_add(words, "; already too much before the step begins");
        return;
    }
    ms_text_add(words, "; out of memory at %s in ",
                ms_quantity_time(over_ns(result, op)).s);
    if (pass == MS_COPY)
        ms_text_add(words, "a copy");
    else
        ms_text_add(words, "the %s pass",
                    ms_names_phase[ms_names_phase_of(pass)]);
    if (of != MS_NONE && graph->op_layer[of] != MS_NONE)
        ms_text_add(words, ", %s",
                    ms_screen_safe(graph->layer_name[graph->op_layer[of]], name,
                                   sizeof name));
    if (lack->missing_bytes > 0 && result->report->wall)
        ms_text_add(words, ", where nothing frees the %s that %s lacks",
                    ms_quantity_size(lack->missing_bytes).s,
                    ms_screen_safe(result->report->lack_op, name, sizeof name));
}
