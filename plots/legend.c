/* SPDX-License-Identifier: GPL-3.0-or-later */

#include "plots/figure.h"

static const ms_type plain = {.size_px = 15.5, .color = MS_GREY};

void ms_legend_heading(ms_legend *legend, const char *words,
                       const ms_unit *unit)
{
    ms_panel *panel = legend->panel;
    ms_text text = {.arena = panel->arena};
    legend->unit = unit;
    ms_text_add(&text, "%s (%s)", words, unit->name);
    ms_canvas_text(panel->script, ms_panel_bytes_of(panel, &text), MS_LEGEND_X0,
                   legend->y, &plain, MS_LEGEND_X1 - MS_LEGEND_X0);
    legend->y += legend->pitch;
}

void ms_legend_row(ms_legend *legend, const char *name, uint64_t value,
                   const char *color)
{
    ms_panel *panel = legend->panel;
    double y = legend->y;
    ms_text number = {.arena = panel->arena};
    ms_type left = plain, right = plain;
    left.color = right.color = value > 0 || color == NULL ? MS_INK : MS_GREY;
    right.align = MS_RIGHT;
    if (color != NULL)
        ms_canvas_box(
            panel->script,
            &(ms_box){MS_LEGEND_X0, y - 7.5, MS_LEGEND_X0 + 15.0, y + 7.5},
            color, false);
    ms_units_put_number(&number, value, legend->unit);
    ms_canvas_text(panel->script, name, MS_LEGEND_X0 + 23.0, y, &left, 124.0);
    ms_canvas_text(panel->script, ms_panel_bytes_of(panel, &number),
                   MS_LEGEND_X1, y, &right, 90.0);
    legend->y += legend->pitch;
}

void ms_legend_rule(ms_legend *legend)
{
    double y = legend->y - legend->pitch / 2;
    ms_panel_line(legend->panel, MS_LEGEND_X0, y, MS_LEGEND_X1, y, "#8A8A8A",
                  true);
}
