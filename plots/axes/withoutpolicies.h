/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_PLOTS_WITHOUTPOLICIES_H
#define MS_PLOTS_WITHOUTPOLICIES_H

/* What the step would take without the policies on what waits for backward: a
 * thin dashed line over the areas, which ends where that step ends, and a row
 * below the legend that names it.  Private to plots/.
 *
 *     ms_withoutpolicies_open(panel);
 *     ms_panel_open(panel);
 *     ...
 *     ms_withoutpolicies_legend(panel, y);
 *     ms_withoutpolicies_write(panel);
 *     ms_panel_open_plot(panel);
 *     ...
 *     ms_withoutpolicies_plot(panel);
 *     ms_panel_close_plot(panel);
 */

#include "plots/axes/panel.h"

/* The axis holds the line, unless that would squash the areas: then the line
 * runs along the upper border and the row tells how high it is.  Where the
 * record has no such step, the functions below do nothing. */
void ms_withoutpolicies_open(ms_panel *panel);
double ms_withoutpolicies_height(const ms_panel *panel); /* of the row */
void ms_withoutpolicies_legend(const ms_panel *panel, double y);
void ms_withoutpolicies_write(const ms_panel *panel); /* the data block */
void ms_withoutpolicies_plot(
    const ms_panel *panel); /* continues a plot command */

#endif
