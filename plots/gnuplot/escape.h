/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_PLOTS_ESCAPE_H
#define MS_PLOTS_ESCAPE_H

/* Text of others in gnuplot's scripts.  Private to plots/. */

#include "sim/base/base.h"

/* Appends bytes as a gnuplot literal that is at most limit_px wide at
 * size_px, cut with an ellipsis.  Whatever bytes hold, the result is one
 * single-quoted string of drawable characters: control characters become
 * spaces, quotes that would end it the apostrophe U+2019 (gnuplot 5.4 does not
 * read a doubled quote at the start of a string), other code points without a
 * width and invalid UTF-8 become "?".  Bold text is markup of the enhanced
 * mode, with its signs escaped; other text is to be drawn noenhanced. */
void ms_escape_literal(ms_text *text, const char *bytes, double size_px,
                       bool is_bold, double limit_px);
/* The width of the text as it would be drawn, uncut. */
double ms_escape_width(const char *bytes, double size_px, bool is_bold);
/* How many bytes of the text are at most limit_px wide: whole characters. */
size_t ms_escape_fits(const char *bytes, double size_px, bool is_bold,
                      double limit_px);

#endif
