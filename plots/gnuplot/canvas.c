/* SPDX-License-Identifier: GPL-3.0-or-later */

#include <assert.h>

#include "plots/gnuplot/canvas.h"
#include "plots/gnuplot/escape.h"
#include "plots/plots.h"

/* Neighbours in the stack differ in lightness, so that they stay apart in
 * grey and for colour-blind readers. */
const char *const ms_canvas_category_color[MS_N_CATEGORIES] = {
    [MS_PARAMETERS] = "#2F62A8",  [MS_OPTIMIZER_STATE] = "#7FA9DA",
    [MS_GRADIENTS] = "#2F9C8B",   [MS_INPUTS] = "#6E5A8C",
    [MS_ACTIVATIONS] = "#F9C768", [MS_TEMPORARIES] = "#A63D14",
    [MS_WORKSPACE] = "#4A4A4A",   [MS_COMMUNICATION] = "#B7A3D0",
};

/* One px is one SVG unit, two PNG pixels, 0.54 pt in PDF; the cairo terminals
 * draw text of size s at s * fontscale * 96 / 72 of their units. */
static const struct {
    const char *name;
    double px;        /* of its units of size */
    const char *unit; /* their name */
    const char *rest;
} terminals[] = {
    [MS_SVG] = {"svg", 1.0, "",
                "fontscale 1 linewidth 1 font "
                "'Liberation Sans,Helvetica,Arial,sans-serif,14'"},
    [MS_PNG] = {"pngcairo", 2.0, "",
                "fontscale 1.5 linewidth 2 font 'Liberation Sans,14'"},
    [MS_PDF] = {"pdfcairo", 0.0075, "in",
                "fontscale 0.405 linewidth 1.08 rounded font "
                "'Liberation Sans,14'"},
};

static const char *const aligns[] = {
    [MS_LEFT] = "left", [MS_CENTER] = "center", [MS_RIGHT] = "right"};

static void put_x(ms_text *script, double x)
{
    ms_text_double(script, x / MS_FIGURE_WIDTH);
}

static void put_y(ms_text *script, double y)
{
    ms_text_add(script, "1-");
    ms_text_double(script, y);
    ms_text_add(script, "/H");
}

static void put_point(ms_text *script, const char *word, double x, double y)
{
    ms_text_add(script, " %s screen ", word);
    put_x(script, x);
    ms_text_add(script, ",");
    put_y(script, y);
}

static void put_terminal(ms_text *script, ms_format format, double height_px)
{
    const char *unit = terminals[format].unit;
    ms_text_add(script, "H = ");
    ms_text_double(script, height_px);
    ms_text_add(script, ".0\nset terminal %s size ", terminals[format].name);
    ms_text_double(script, MS_FIGURE_WIDTH * terminals[format].px);
    ms_text_add(script, "%s,", unit);
    ms_text_double(script, height_px * terminals[format].px);
    ms_text_add(script, "%s %s background rgb 'white'\n", unit,
                terminals[format].rest);
}

void ms_canvas_begin(ms_text *script, ms_format format, const ms_box *area,
                     double height_px)
{
    static const char *const sides[] = {"lmargin", "rmargin", "tmargin",
                                        "bmargin"};
    const double at[] = {area->x0, area->x1, area->y0, area->y1};
    put_terminal(script, format, height_px);
    ms_text_add(script,
                "set encoding utf8\nunset key\nunset border\nunset tics\n"
                "set style fill solid 1 noborder\n");
    for (int i = 0; i < 4; i++) {
        ms_text_add(script, "set %s at screen ", sides[i]);
        (i < 2 ? put_x : put_y)(script, at[i]);
        ms_text_add(script, "\n");
    }
}

void ms_canvas_text(ms_text *script, const char *bytes, double x, double y,
                    const ms_type *type, double limit_px)
{
    ms_text_add(script, "set label ");
    ms_escape_literal(script, bytes, type->size_px, type->is_bold, limit_px);
    put_point(script, "at", x, y);
    ms_text_add(script, " %s%s front font ',", aligns[type->align],
                type->is_upright ? " rotate by 90" : "");
    ms_text_double(script, type->size_px);
    ms_text_add(script, "' textcolor rgb '%s' %s\n", type->color,
                type->is_bold ? "enhanced" : "noenhanced");
}

void ms_canvas_box(ms_text *script, const ms_box *box, const char *color,
                   bool in_front)
{
    assert(box->x0 <= box->x1 && box->y0 <= box->y1);
    ms_text_add(script, "set object rectangle");
    put_point(script, "from", box->x0, box->y1);
    put_point(script, "to", box->x1, box->y0);
    ms_text_add(script,
                " %s noclip fillcolor rgb '%s' "
                "fillstyle solid noborder\n",
                in_front ? "front" : "behind", color);
}

static void put_arrow(ms_text *script, const ms_box *ends)
{
    ms_text_add(script, "set arrow");
    put_point(script, "from", ends->x0, ends->y0);
    put_point(script, "to", ends->x1, ends->y1);
}

void ms_canvas_line(ms_text *script, const ms_box *ends, double width,
                    const char *color, bool in_front)
{
    put_arrow(script, ends);
    ms_text_add(script, " nohead %s linewidth ", in_front ? "front" : "back");
    ms_text_double(script, width);
    ms_text_add(script, " linecolor rgb '%s'\n", color);
}

void ms_canvas_arrow(ms_text *script, const ms_box *ends, const char *color)
{
    put_arrow(script, ends);
    ms_text_add(script,
                " head filled size screen 0.009,18 front linewidth 1 "
                "linecolor rgb '%s'\n",
                color);
}

void ms_canvas_point(ms_text *script, double x, double y)
{
    ms_text_double(script, x);
    ms_text_put(script, " ", 1);
    ms_text_double(script, -y);
    ms_text_put(script, "\n", 1);
}
