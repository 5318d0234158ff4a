/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_PLOTS_CUTAXIS_H
#define MS_PLOTS_CUTAXIS_H

/* Where the lowest level of the step is most of the highest, the axis is cut:
 * it begins shortly below the lowest level instead of at zero.  A torn edge
 * along its foot shows that, and words below tell where the axis begins, what
 * lies below it, and the capacity if it is below.  Private to plots/.
 *
 *     panel->may_cut = true;
 *     ms_panel_open(panel);
 *     panel->bottom_y = panel->area.y1 + ms_cutaxis_height(panel, order, n);
 *     ...
 *     ms_panel_draw(panel);
 *     ms_cutaxis_draw(panel, order, n);
 *     ms_cutaxis_write(panel);
 *     ms_panel_open_plot(panel);
 *     ... areas from y1=base ...
 *     ms_cutaxis_plot(panel);
 */

#include "plots/axes/panel.h"
#include "sim/names.h"

/* Finds base and step of an axis that ends above highest (bytes); false: it
 * begins at zero.  Called by ms_panel_open. */
bool ms_cutaxis_find(ms_panel *panel, double highest);
/* The upper border that leaves the head room above highest. */
double ms_cutaxis_top(const ms_panel *panel, double base, double highest);
/* Between the areas and what lies below them; 0: the axis begins at zero, and
 * but for the script's `base` the rest does nothing.  order: of the stack, from
 * the bottom. */
double ms_cutaxis_height(const ms_panel *panel, const ms_category *order,
                         uint32_t n);
void ms_cutaxis_draw(ms_panel *panel, const ms_category *order, uint32_t n);
void ms_cutaxis_write(const ms_panel *panel); /* data block; base */
void ms_cutaxis_plot(const ms_panel *panel);  /* continues a plot command */

#endif
