/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_PLOTS_CANVAS_H
#define MS_PLOTS_CANVAS_H

/* The house style, in px, private to plots/.  A figure is 900 units ("px")
 * wide and as high as it needs, x to the right and y down, whatever the format:
 * SVG draws 1, PNG 2 pixels per px, PDF 0.54 pt.  Everything but the data is
 * placed in px, so that the three look the same and every text is known to fit.
 * At half the width of a page (3.375 in) one px is 0.27 pt: no text is smaller
 * than MS_TEXT_PX, 5.4 pt there. */

#include "plots/plots.h"

#define MS_FIGURE_WIDTH 900.0
#define MS_TEXT_PX 20.0 /* labels, numbers, legends */
#define MS_TITLE_PX 25.0

#define MS_INK "#1A1A1A"
#define MS_GREY "#5A5A5A"

typedef struct ms_box {
    double x0, y0, x1, y1; /* x0 <= x1, y0 <= y1 */
} ms_box;

typedef enum ms_align { MS_LEFT, MS_CENTER, MS_RIGHT } ms_align;

typedef struct ms_type {
    double size_px;
    const char *color;
    ms_align align;
    bool is_bold, is_upright; /* upright: read from below */
} ms_type;

/* Terminal, encoding and plot area of a figure that is height_px (a whole
 * number) high, which the script calls H; no title, key, border or tics. */
void ms_canvas_begin(ms_text *script, ms_format format, const ms_box *area,
                     double height_px);
/* y: the middle of the line. */
void ms_canvas_text(ms_text *script, const char *bytes, double x, double y,
                    const ms_type *type, double limit_px);
/* Behind the data, or in front of it; lines that are not in front lie behind
 * the data too, but before the boxes. */
void ms_canvas_box(ms_text *script, const ms_box *box, const char *color,
                   bool in_front);
void ms_canvas_line(ms_text *script, const ms_box *ends, double width,
                    const char *color, bool in_front);
/* From (x0, y0) to its head in (x1, y1), whatever their order. */
void ms_canvas_arrow(ms_text *script, const ms_box *ends, const char *color);
/* A point of a data block, y counted downwards. */
void ms_canvas_point(ms_text *script, double x, double y);
extern const char *const ms_canvas_category_color[MS_N_CATEGORIES];

#endif
