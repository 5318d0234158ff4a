/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_PLOTS_WIDTHS_H
#define MS_PLOTS_WIDTHS_H

/* How wide a character is in the font of the figures.  Private to plots/. */

#include "sim/base/base.h"

/* Advance width of a code point in 1/1000 em; 0: not to be drawn (cairo draws
 * what no font has as a box hundreds of px high). */
uint32_t ms_widths_of(uint32_t code, bool is_bold);

#endif
