/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_TOOLS_UNTRAINED_H
#define MS_TOOLS_UNTRAINED_H

#include "tools/job/result.h"

/* Names the first weights that get no gradient and counts the others; adds
 * nothing where all of them get one. */
void ms_untrained_words(const ms_graph *graph, ms_text *words);
/* Adds a line "note: ..." where the sequence is longer than the positions that
 * the model was trained for, else nothing. */
void ms_untrained_positions(const ms_result *result, ms_text *text);

#endif
