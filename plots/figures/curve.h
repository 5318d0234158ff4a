/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_PLOTS_CURVE_H
#define MS_PLOTS_CURVE_H

/* The parts of figure_curve.c, private to plots/:
 *
 *     figure_curve.c  scales, panels, axes, lines, capacities
 *     curvenames.c    the names where lines end
 */

#include "plots/axes/frame.h"
#include "plots/axes/units.h"
#include "plots/plots.h"

#define MS_CURVE_RADIUS_PX 7.0
#define MS_CURVENAMES_X_PX 34.0 /* from the area to a name */

typedef struct ms_lineup {
    const ms_curves *curves;
    ms_frame frame;
    double *xs; /* all that occur, ascending */
    uint32_t n_xs;
    uint64_t highest;
    bool has_hollow, has_gaps, shows_limits, has_side;
    bool limits_above; /* their names have no room beside their lines */
    uint64_t lowest_limit, highest_limit; /* 0: there is none */
    ms_scale x, y;                        /* y: of the panel that is drawn */
    ms_sign marks[MS_CURVES_MOST];
    uint32_t first, end; /* series of the panel that is drawn, */
    uint32_t n_panels, per_panel;
    double panel_px;
    const ms_unit *unit; /* of y */
    double words_px;     /* that upright words of the x axis take; 0: none */
    const char **lines[MS_CURVES_MOST]; /* of the names */
    uint32_t n_lines[MS_CURVES_MOST];
    uint32_t order[MS_CURVES_MOST]; /* of a panel's names, downwards */
    double name_y[MS_CURVES_MOST];  /* the middle of each */
} ms_lineup;

/* ---- curvenames.c -------------------------------------------------------- */

/* Breaks the names into lines; how wide they are; 0: one line needs none. */
double ms_curvenames_width(ms_lineup *c);
double ms_curvenames_height(const ms_lineup *c, uint32_t s);
/* Of the panel's lines, each with its sign; leaders to those that had to give
 * way. */
void ms_curvenames_put(ms_lineup *c);

#endif
