/* SPDX-License-Identifier: GPL-3.0-or-later */

#include "plots/axes/withoutpolicies.h"
#include "plots/axes/axes.h"
#include "plots/axes/frame.h"
#include "plots/axes/legend.h"
#include "plots/axes/panel.h"
#include "plots/axes/units.h"
#include "plots/gnuplot/canvas.h"
#include "plots/gnuplot/wrap.h"
#include "plots/record/record.h"
#include "plots/record/stack.h"

#define FAR 4u /* times the peak: beyond it the areas would be squashed */
#define COLOR "#6A1B7A"
#define WIDTH 1.5
#define DASH_PX 6.0 /* of the sign in the legend */
#define PAUSE_PX 3.5
#define DASHES 3
#define WORDS_PX (MS_FRAME_LEFT + DASHES * (DASH_PX + PAUSE_PX) + 6.0)

/* ---- in a figure --------------------------------------------------------- */

static bool is_far(const ms_panel *panel)
{
    return panel->without->peak_bytes / FAR > panel->rank->peak.allocated_bytes;
}

void ms_withoutpolicies_open(ms_panel *panel)
{
    panel->without = panel->saw->has_time ? panel->record->without : NULL;
    if (panel->without != NULL && !is_far(panel))
        panel->least_bytes = panel->without->peak_bytes;
}

/* "without checkpoint:sqrt: peak 152.10 GiB, step 2.31 s" */
static const char **name_lines(const ms_panel *panel, uint32_t *n)
{
    const ms_record_without *without = panel->without;
    const ms_unit *unit = ms_units_bytes(without->peak_bytes);
    ms_text words = {.arena = panel->arena};
    ms_text_add(&words, "without %s: peak ", without->policy);
    ms_units_put_number(&words, without->peak_bytes, unit);
    ms_text_add(&words, " %s%s, step ", unit->name,
                is_far(panel) ? " (above the axis)" : "");
    ms_units_put_time(&words, without->end_ns);
    const char **lines = ms_wrap_lines(
        ms_axes_words(panel, &words), MS_TEXT_PX, false,
        (MS_FRAME_RIGHT - WORDS_PX) / MS_FRAME_SLACK, panel->arena, n);
    if (lines == NULL)
        panel->script->failed = true;
    return lines;
}

double ms_withoutpolicies_height(const ms_panel *panel)
{
    uint32_t n = 0;
    if (panel->without != NULL)
        name_lines(panel, &n);
    return n * MS_LEGEND_ROW_PX;
}

void ms_withoutpolicies_legend(const ms_panel *panel, double y)
{
    static const ms_type type = {.size_px = MS_TEXT_PX, .color = MS_INK};
    uint32_t n = 0;
    double middle = y + MS_LEGEND_ROW_PX / 2;
    if (panel->without == NULL)
        return;
    const char **lines = name_lines(panel, &n);
    for (int i = 0; i < DASHES; i++) {
        double x = MS_FRAME_LEFT + i * (DASH_PX + PAUSE_PX);
        ms_canvas_line(panel->script, &(ms_box){x, middle, x + DASH_PX, middle},
                       WIDTH, COLOR, true);
    }
    for (uint32_t i = 0; lines != NULL && i < n; i++)
        ms_canvas_text(panel->script, lines[i], WORDS_PX,
                       middle + i * MS_LEGEND_ROW_PX, &type,
                       MS_FRAME_RIGHT - WORDS_PX);
}

void ms_withoutpolicies_write(const ms_panel *panel)
{
    if (panel->without != NULL)
        ms_stack_write_level(&panel->stack, "without", panel->without,
                             panel->script);
}

void ms_withoutpolicies_plot(const ms_panel *panel)
{
    if (panel->without != NULL)
        ms_text_add(panel->script,
                    ", \\\n  $without using 1:2 with lines linewidth %.1f "
                    "dashtype (12,7) linecolor rgb '%s' notitle",
                    WIDTH, COLOR);
}
