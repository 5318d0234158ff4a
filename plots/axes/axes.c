/* SPDX-License-Identifier: GPL-3.0-or-later */

#include <math.h>

#include "plots/axes/axes.h"
#include "plots/axes/panel.h"
#include "plots/axes/units.h"
#include "plots/gnuplot/canvas.h"

#define TICK_PX 44.0 /* about the least distance of ticks of the y axis */

void ms_axes_line(const ms_panel *panel, double x0, double y0, double x1,
                  double y1, const char *color, bool in_front)
{
    double width = in_front ? 1.0 : 0.7;
    ms_canvas_line(panel->script, &(ms_box){x0, y0, x1, y1}, width, color,
                   in_front);
}

const char *ms_axes_words(const ms_panel *panel, const ms_text *text)
{
    if (!text->failed)
        return text->bytes;
    panel->script->failed = true;
    return "";
}

double ms_axes_step(const ms_panel *panel, double span_bytes)
{
    const ms_unit *unit = panel->stack.bytes_unit;
    double height = panel->area.y1 - panel->area.y0;
    double step = ms_units_step(span_bytes / (double)unit->size,
                                (uint32_t)ceil(height / TICK_PX));
    return unit->size == 1 && step < 1.0 ? 1.0 : step;
}
