/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_PLOTS_RECOMPUTEAXIS_H
#define MS_PLOTS_RECOMPUTEAXIS_H

/* What the rank has run again so far, below its memory on the same time axis:
 * time and FLOPs, each to its own scale.  While replays run the figure is
 * shaded, darker where they are most of what the compute stream does.  Private
 * to plots/; the figure's second axis counts px of the figure, upwards.
 *
 *     ms_panel_open(panel);
 *     panel->bottom_y = panel->area.y1 + ms_recomputeaxis_height(panel);
 *     ...
 *     ms_panel_draw(panel);
 *     ms_recomputeaxis_draw(panel);
 *     ms_recomputeaxis_write(panel);
 *     ms_panel_open_plot(panel);
 *     ...
 *     ms_recomputeaxis_plot(panel);
 *     ms_panel_close_plot(panel);
 */

#include "plots/axes/panel.h"

/* Between memory and time axis; 0: nothing runs again, and the functions below
 * do nothing. */
double ms_recomputeaxis_height(const ms_panel *panel);
void ms_recomputeaxis_draw(ms_panel *panel);        /* its axes and words */
void ms_recomputeaxis_write(const ms_panel *panel); /* data blocks */
void ms_recomputeaxis_plot(
    const ms_panel *panel); /* continues a plot command */

#endif
