/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The stages of a pipeline side by side, and what would even them out. */

#include "sim/program.h"
#include "sim/report.h"
#include "tools/advice/evenout.h"
#include "tools/cli/run/run.h"
#include "tools/job/result.h"
#include "tools/job/settings.h"
#include "tools/terminal/narrow.h"
#include "tools/terminal/quantity.h"
#include "tools/terminal/screen.h"

#include <stdio.h>
#include <string.h>

#define INDENT 10u
#define MOST_STAGES 3u /* of a rank, that are named */
/* Of many ranks the first and the last ones. */
#define MOST_ROWS 16u

enum { RANK, STAGE, LAYERS, PEAK, RESERVED, IN_FLIGHT, BUSY, IDLE, N_COLUMNS };
static const struct {
    const char *name;
    uint32_t columns;
} heads[N_COLUMNS] = {
    [RANK] = {"rank", 4},          [STAGE] = {"stage", 7},
    [LAYERS] = {"layers", 8},      [PEAK] = {"peak", 12},
    [RESERVED] = {"reserved", 12}, [IN_FLIGHT] = {"in flight", 10},
    [BUSY] = {"busy", 9},          [IDLE] = {"idle", 8},
};

/* The stages of a rank, or the layers of each: "1/5", "8+8"; of many "1 +7"; m:
 * and multi-token prediction. */
static ms_label list(const ms_result *result, uint16_t rank, bool layers)
{
    const ms_program *program = result->program;
    ms_label label = {""};
    uint32_t seen = 0, sum = 0;
    bool any = false;
    size_t length = 0;
    for (uint32_t k = 0; k < program->n_stages; k++) {
        if (program->stages[k].rank != rank)
            continue;
        const ms_stage *stage = &program->stages[k];
        uint32_t n = ms_evenout_layers(result->graph, stage);
        bool predicts = layers && ms_evenout_predicts(result->graph, stage);
        any |= predicts;
        sum += n;
        if (seen++ < MOST_STAGES && length < sizeof label.s)
            length += (size_t)snprintf(label.s + length,
                                       sizeof label.s - length, "%s%u%s",
                                       seen == 1 ? ""
                                       : layers  ? "+"
                                                 : "/",
                                       layers ? n : k, predicts ? "m" : "");
    }
    if (seen > MOST_STAGES && layers)
        snprintf(label.s, sizeof label.s, "%u%s", sum, any ? "m" : "");
    else if (seen > MOST_STAGES)
        snprintf(label.s, sizeof label.s, "%u +%u",
                 result->report->ranks[rank].stage, seen - 1);
    return label;
}

static ms_label count(uint32_t n)
{
    ms_label label;
    snprintf(label.s, sizeof label.s, "%u", n);
    return label;
}

/* Exact pools reserve what is allocated: the column is left out. */
static bool is_shown(const ms_report *report, int column)
{
    return column != RESERVED || report->pooled != NULL;
}

static void put_row(const ms_result *result, const ms_label *cells,
                    ms_text *text)
{
    for (int c = 0; c < N_COLUMNS; c++)
        if (is_shown(result->report, c))
            ms_screen_right(text, heads[c].columns, cells[c].s);
    ms_text_add(text, "\n");
}

static void put_heading(const ms_summary *summary, ms_text *text)
{
    ms_label cells[N_COLUMNS];
    for (int c = 0; c < N_COLUMNS; c++)
        snprintf(cells[c].s, sizeof cells[c].s, "%s", heads[c].name);
    ms_text_add(text, "%s%-*s", summary->style->faint, (int)INDENT, "stages:");
    put_row(summary->result, cells, text);
    ms_text_add(text, "%s", summary->style->plain);
}

/* A row that needs more than the device has is marked. */
static void put_rank(const ms_summary *summary, uint16_t r, ms_text *text)
{
    const ms_result *result = summary->result;
    const ms_rank_report *rank = &result->report->ranks[r];
    ms_idle_times idle = ms_times_idle(rank);
    uint64_t step_ns = rank->time.step_ns;
    bool over = ms_capacity_usable(result->report) > 0 &&
                rank->peak.reserved_bytes > ms_capacity_usable(result->report);
    ms_label cells[N_COLUMNS] = {
        [RANK] = count(rank->rank),
        [STAGE] = list(result, rank->rank, false),
        [LAYERS] = list(result, rank->rank, true),
        [PEAK] = ms_quantity_size(rank->peak.allocated_bytes),
        [RESERVED] = ms_quantity_size(rank->peak.reserved_bytes),
        [IN_FLIGHT] = count(rank->in_flight_micro_batches),
        [BUSY] = ms_quantity_time_as(idle.busy_ns, step_ns)};
    if (step_ns > 0)
        snprintf(cells[IDLE].s, sizeof cells[IDLE].s, "%.1f %%",
                 100.0 * (double)idle.idle_ns / (double)step_ns);
    ms_text_add(text, "%s%-*s", over ? summary->style->bad : "", (int)INDENT,
                over ? "  over:" : "");
    put_row(result, cells, text);
    ms_text_add(text, "%s", over ? summary->style->plain : "");
}

static void put_change(uint64_t before, uint64_t after, const char *less,
                       const char *more, ms_text *words)
{
    double percent = 100.0 * ((double)after - (double)before) / (double)before;
    if (percent < -0.05)
        ms_text_add(words, " (%.1f %% %s)", -percent, less);
    else if (percent > 0.05)
        ms_text_add(words, " (%.1f %% %s)", percent, more);
    else
        ms_text_add(words, " (as now)");
}

static void put_way(const ms_summary *summary, const ms_evenout *even,
                    uint32_t i, ms_text *text)
{
    const ms_evenout_way *way = &even->ways[i];
    ms_text words = {.arena = summary->arena};
    ms_text_add(&words, "%s: peak %s", way->words,
                ms_quantity_size(way->peak_bytes).s);
    put_change(even->peak_bytes, way->peak_bytes, "less", "more", &words);
    ms_text_add(&words, ", step %s", ms_quantity_time(way->step_ns).s);
    put_change(even->step_ns, way->step_ns, "shorter", "longer", &words);
    text->failed |= words.failed;
    if (words.failed)
        return;
    ms_screen_fill(text, INDENT, i == 0 ? "even:" : "or:", words.bytes);
    ms_text_add(text, "%*s", (int)INDENT, "");
    ms_settings_instead(summary->arguments, way->policy, text);
    ms_text_add(text, "\n");
}

ms_err ms_stagetable_put(const ms_summary *summary, ms_text *text,
                         ms_fault *fault)
{
    const ms_report *report = summary->result->report;
    uint16_t n = report->n_ranks, half = MOST_ROWS / 2;
    ms_evenout even;
    size_t from = text->length;
    put_heading(summary, text);
    for (uint16_t r = 0; r < n; r++) {
        if (n > MOST_ROWS && r == half) {
            ms_text_add(text, "%*s%u ranks more (--json has all)\n",
                        (int)INDENT, "", n - MOST_ROWS);
            r = (uint16_t)(n - half);
        }
        put_rank(summary, r, text);
    }
    ms_narrow_table(text, from);
    MS_TRY(ms_evenout_find(summary->job, summary->result, summary->arena, &even,
                           fault));
    for (uint32_t i = 0; i < even.n; i++)
        put_way(summary, &even, i, text);
    return MS_OK;
}
