/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_PLOTS_AXES_H
#define MS_PLOTS_AXES_H

/* Lines, words and ticks within a panel.  Private to plots/. */

#include "plots/axes/panel.h"

void ms_axes_line(const ms_panel *panel, double x0, double y0, double x1,
                  double y1, const char *color, bool in_front);
/* The bytes of a text; running out of memory for it fails the script. */
const char *ms_axes_words(const ms_panel *panel, const ms_text *text);
/* The distance of ticks on an axis of so many bytes, in the unit. */
double ms_axes_step(const ms_panel *panel, double span_bytes);

#endif
