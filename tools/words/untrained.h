/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_TOOLS_UNTRAINED_H
#define MS_TOOLS_UNTRAINED_H

#include "tools/job/result.h"

/* The weights to which no gradient comes, some by name; nothing where there
 * are none. */
void ms_untrained_words(const ms_graph *graph, ms_text *words);
/* A line "note: ..." where the sequence is longer than the positions that the
 * model was made for, else nothing. */
void ms_untrained_positions(const ms_result *result, ms_text *text);

#endif
