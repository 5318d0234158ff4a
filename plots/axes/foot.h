/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_PLOTS_FOOT_H
#define MS_PLOTS_FOOT_H

/* Where what never changes over the step is most of the peak, the axis of the
 * levels begins below it instead of at zero.  That it does is told by a torn
 * edge along its foot and by words below it: where it begins, what lies below,
 * and the capacity, if it is there.  Private to plots/.
 *
 *     panel->may_cut = true;
 *     ms_panel_open(panel);
 *     panel->bottom_y = panel->area.y1 + ms_foot_height(panel, order, n);
 *     ...
 *     ms_panel_draw(panel);
 *     ms_foot_draw(panel, order, n);
 *     ms_foot_write(panel);
 *     ms_panel_open_plot(panel);
 *     ... areas from y1=base ...
 *     ms_foot_plot(panel);
 */

#include "plots/axes/frame.h"

/* Finds base and step of an axis that ends above highest (bytes); false: it
 * begins at zero.  Called by ms_panel_open. */
bool ms_foot_find(ms_panel *panel, double highest);
/* The upper border that leaves the head room above highest. */
double ms_foot_top(const ms_panel *panel, double base, double highest);
/* Between the areas and what lies below them; 0: the axis begins at zero, and
 * but for the script's `base` the rest does nothing.  order: of the stack, from
 * the bottom. */
double ms_foot_height(const ms_panel *panel, const ms_category *order,
                      uint32_t n);
void ms_foot_draw(ms_panel *panel, const ms_category *order, uint32_t n);
void ms_foot_write(const ms_panel *panel); /* data block; base */
void ms_foot_plot(const ms_panel *panel);  /* continues a plot command */

#endif
