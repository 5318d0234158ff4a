/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_PLOTS_WRAP_H
#define MS_PLOTS_WRAP_H

/* Text that is too wide for one line.  Private to plots/. */

#include "sim/base/base.h"

/* The length of the first line: up to a blank, or behind what joins the parts
 * of a policy (+ , / ;), and only where there is neither within a word.  Not 0
 * but of nothing. */
size_t ms_wrap_first(const char *words, double size_px, bool is_bold,
                     double limit_px);
/* The width that breaks no word. */
double ms_wrap_least(const char *words, double size_px, bool is_bold,
                     ms_arena *arena);
/* All lines, without the blanks between them; *n is 0 for an empty text.  Of
 * what is longer than any policy (a name may have a million characters) the
 * last line is too wide: what draws it cuts it.  NULL: no memory. */
#define MS_WRAP_MOST 12u
const char **ms_wrap_lines(const char *words, double size_px, bool is_bold,
                           double limit_px, ms_arena *arena, uint32_t *n);
/* The width of the widest of the lines, uncut. */
double ms_wrap_width(const char *const *lines, uint32_t n, double size_px,
                     bool is_bold);

#endif
