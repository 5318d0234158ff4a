/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_TOOLS_NUMBERFILE_H
#define MS_TOOLS_NUMBERFILE_H

/* Lists of numbers that lie in a file, for parameters of policies that take
 * A/B/C:
 *
 *     $ cat loads.txt
 *     # rows of each expert, as a router's log has them
 *     512 96 1024, 33
 *     -p expert:2,imbalance=@loads.txt
 *     -p expert:2,imbalance=512/96/1024/33      the same
 *
 * Numbers are apart by blanks, lines, commas or slashes; what follows # on a
 * line is none.  A result tells the numbers, not the file. */

#include "policies/common/policy.h"

/* Policies or parameters with the numbers of each file that is named, by a path
 * without comma and plus; text itself where none is.  MS_ESYSTEM: it cannot be
 * read; MS_EINPUT: it has no numbers, or something else. */
ms_err ms_numberfile_expand(const char *text, ms_arena *arena,
                            const char **expanded, ms_fault *fault);
/* ms_spec_parse of that. */
ms_err ms_numberfile_parse(const char *text, ms_arena *arena, ms_spec *spec,
                           ms_fault *fault);

#endif
