/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_TOOLS_UNTRAINED_H
#define MS_TOOLS_UNTRAINED_H

#include "sim/sim.h"

/* The weights to which no gradient comes, some by name; nothing where there
 * are none. */
void ms_untrained_words(const ms_graph *graph, ms_text *words);

#endif
