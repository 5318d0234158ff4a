/* SPDX-License-Identifier: GPL-3.0-or-later */

#include <math.h>

#include "plots/axes/axes.h"
#include "plots/axes/frame.h"
#include "plots/axes/legend.h"
#include "plots/axes/panel.h"
#include "plots/axes/units.h"
#include "plots/gnuplot/canvas.h"
#include "plots/gnuplot/escape.h"

#define GAP_PX 32.0 /* between columns */
#define WIDTH_PX                                                               \
    ((MS_FRAME_RIGHT - MS_FRAME_LEFT - (MS_LEGEND_COLUMNS - 1) * GAP_PX) /     \
     MS_LEGEND_COLUMNS)
#define BOX_PX 17.0
#define INDENT_PX 25.0
#define RULE_PX 5.0 /* below the heading */

static uint32_t count_rows(uint32_t n)
{
    return (n + MS_LEGEND_COLUMNS - 1) / MS_LEGEND_COLUMNS;
}

double ms_legend_height(uint32_t n)
{
    return MS_LEGEND_ROW_PX * (1 + count_rows(n)) + RULE_PX;
}

/* Strokes as in the data, on a grey box that stands for any colour. */
static void put_hatched(ms_text *script, const char *color, double x, double y)
{
    const double ends[] = {BOX_PX * 0.4, BOX_PX, BOX_PX * 1.6};
    ms_canvas_box(script, &(ms_box){x, y, x + BOX_PX, y + BOX_PX}, "#E4E4E4",
                  false);
    for (int i = 0; i < 3; i++) {
        double in = fmin(ends[i], BOX_PX), out = ends[i] - in;
        ms_canvas_line(script, &(ms_box){x + out, y + in, x + in, y + out}, 0.9,
                       color, true);
    }
}

static void put_sign(const ms_panel *panel, const ms_legend_entry *entry,
                     double x, double y)
{
    double half = BOX_PX / 2;
    if (entry->color == NULL)
        return;
    if (entry->is_hatched)
        put_hatched(panel->script, entry->color, x, y - half);
    else if (entry->is_line)
        ms_canvas_line(panel->script, &(ms_box){x, y, x + BOX_PX, y}, 1.6,
                       entry->color, true);
    else
        ms_canvas_box(panel->script,
                      &(ms_box){x, y - half, x + BOX_PX, y + half},
                      entry->color, false);
}

static void put_entry(const ms_panel *panel, const ms_legend_entry *entry,
                      const ms_unit *unit, double x, double y)
{
    ms_text number = {.arena = panel->arena};
    ms_type type = {.size_px = MS_TEXT_PX,
                    .color = entry->value > 0 ? MS_INK : MS_GREY};
    ms_units_put_number(&number, entry->value, unit);
    const char *words = ms_axes_words(panel, &number);
    double width = ms_escape_width(words, type.size_px, false) * MS_FRAME_SLACK;
    if (entry->is_mark)
        words = "", width = 0.0, type.color = MS_INK;
    put_sign(panel, entry, x, y);
    ms_canvas_text(panel->script, entry->name, x + INDENT_PX, y, &type,
                   WIDTH_PX - INDENT_PX - width);
    type.align = MS_RIGHT;
    ms_canvas_text(panel->script, words, x + WIDTH_PX, y, &type, WIDTH_PX);
}

uint32_t ms_legend_over(const ms_panel *panel, ms_legend_entry *entry)
{
    if (!ms_panel_is_over(panel))
        return 0;
    *entry = (ms_legend_entry){.name = "hatched: over capacity",
                               .color = MS_FRAME_RED,
                               .is_hatched = true,
                               .is_mark = true};
    return 1;
}

static double column_x(uint32_t column)
{
    return MS_FRAME_LEFT + column * (WIDTH_PX + GAP_PX);
}

void ms_legend_put(const ms_panel *panel, double y, const char *heading,
                   const ms_unit *unit, const ms_legend_entry *sums,
                   uint32_t n_sums, const ms_legend_entry *entries, uint32_t n)
{
    static const ms_type grey = {.size_px = MS_TEXT_PX, .color = MS_GREY};
    ms_text text = {.arena = panel->arena};
    uint32_t rows = count_rows(n);
    double middle = y + MS_LEGEND_ROW_PX / 2;
    ms_text_add(&text, "%s (%s)", heading, unit->name);
    ms_canvas_text(panel->script, ms_axes_words(panel, &text), column_x(0),
                   middle, &grey, WIDTH_PX);
    for (uint32_t i = 0; i < n_sums; i++)
        put_entry(panel, &sums[i], unit, column_x(i + 1), middle);
    y += MS_LEGEND_ROW_PX + RULE_PX / 2;
    ms_canvas_line(panel->script,
                   &(ms_box){MS_FRAME_LEFT, y, MS_FRAME_RIGHT, y}, 1.0,
                   "#8A8A8A", true);
    for (uint32_t i = 0; i < n; i++)
        put_entry(panel, &entries[i], unit, column_x(i / rows),
                  y + RULE_PX / 2 + MS_LEGEND_ROW_PX * (i % rows + 0.5));
}
