/* SPDX-License-Identifier: GPL-3.0-or-later */

#include <string.h>

#include "plots/plots.h"
#include "plots/record/phases.h"
#include "plots/record/record.h"
#include "sim/plan.h"
#include "sim/timeline.h"

static const char *const blocks[] = {" ", "▁", "▂", "▃", "▄",
                                     "▅", "▆", "▇", "█"};

/* The column of event i, at t_ns: by its time, or by its number in a step that
 * takes no time. */
static uint32_t column_of(const ms_timeline *line, uint32_t i, uint64_t t_ns,
                          uint32_t width)
{
    double part = line->step_ns > 0 ? (double)t_ns / (double)line->step_ns
                                    : (double)i / (double)line->n_events;
    double column = part * width;
    return column < width ? (uint32_t)column : width - 1;
}

/* highest[c] is the highest level in column c.  A level lasts until the next
 * event, so that a column without events has the level before it. */
static void fold(const ms_timeline *line, uint16_t rank, uint32_t width,
                 uint64_t *highest)
{
    const ms_plan *plan = line->plan;
    uint64_t level = 0;
    uint32_t column = 0;
    ms_eventwalk walk;
    ms_timeline_walk(line, 0, &walk);
    for (uint32_t i = 0; i < line->n_events; i++) {
        const ms_event *event = ms_timeline_next(&walk);
        uint32_t row = event->row;
        if (plan->row[row].pool != MS_DEVICE_POOL ||
            plan->op[plan->row[row].op].rank != rank)
            continue;
        for (uint32_t to = column_of(line, i, event->t_ns, width); column < to;)
            highest[++column] = level;
        level += (event->op_act & 1u) != 0 ? plan->row[row].bytes
                                           : 0 - plan->row[row].bytes;
        if (level > highest[column])
            highest[column] = level;
    }
    while (++column < width)
        highest[column] = level;
}

/* In eighths of the peak; a level above zero is at least one eighth, so that
 * only zero looks empty. */
static uint32_t eighths(uint64_t level, uint64_t peak)
{
    if (level == 0)
        return 0;
    uint32_t nearest = (uint32_t)((double)level / (double)peak * 8.0 + 0.5);
    return nearest > 0 ? nearest : 1;
}

ms_err ms_chart_line(const ms_timeline *line, uint16_t rank, uint32_t width,
                     ms_arena *arena, ms_text *text, ms_fault *fault)
{
    uint64_t peak = 0;
    uint64_t *highest =
        ms_arena_take(arena, (size_t)width + 1, sizeof *highest);
    if (highest == NULL)
        return ms_fail_nomem(fault);
    if (width > 0)
        fold(line, rank, width, highest);
    for (uint32_t c = 0; c < width; c++)
        peak = highest[c] > peak ? highest[c] : peak;
    for (uint32_t c = 0; c < width; c++)
        ms_text_add(text, "%s", blocks[eighths(highest[c], peak)]);
    return text->failed ? ms_fail_nomem(fault) : MS_OK;
}

/* ---- phases -------------------------------------------------------------- */

/* The band that fills most of column c: the one at its middle. */
static const ms_band *band_at(const ms_band *bands, uint32_t n, uint64_t end_ns,
                              uint32_t width, uint32_t c)
{
    double t_ns = (c + 0.5) / width * (double)end_ns;
    uint32_t i = 0;
    while (i + 1 < n && (double)bands[i].to_ns <= t_ns)
        i++;
    return &bands[i];
}

/* A bar where the phase begins, then the longest of its names that fits.  A
 * phase of one column has only its initial. */
static void put_run(uint8_t phase, uint32_t columns, ms_text *text)
{
    const char *const *words = ms_phases_words[phase], *word = "";
    for (int i = MS_PHASE_WORDS; i-- > 0;)
        if (strlen(words[i]) < columns)
            word = words[i];
    if (columns == 1)
        ms_text_put(text, words[MS_PHASE_WORDS - 1], 1);
    else
        ms_text_add(text, "|%-*s", (int)columns - 1, word);
}

ms_err ms_chart_phases(const ms_timeline *line, uint16_t rank, uint32_t width,
                       ms_arena *arena, ms_text *text, ms_fault *fault)
{
    ms_band *bands;
    uint32_t n;
    uint64_t end_ns = line->step_ns;
    MS_TRY(ms_phases_bands(line, rank, end_ns, arena, &bands, &n, fault));
    for (uint32_t c = 0, first = 0; c < width && n > 0; c++) {
        const ms_band *band = band_at(bands, n, end_ns, width, c);
        if (c + 1 < width && band_at(bands, n, end_ns, width, c + 1) == band)
            continue;
        put_run(band->phase, c + 1 - first, text);
        first = c + 1;
    }
    return text->failed ? ms_fail_nomem(fault) : MS_OK;
}
