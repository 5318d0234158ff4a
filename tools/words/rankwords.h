/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_TOOLS_RANKWORDS_H
#define MS_TOOLS_RANKWORDS_H

#include "tools/job/result.h"

/* Adds a line that says which rank the numbers are of, where the ranks that
 * meet in an op of the model differ: "experts: ..." beside the rank that has
 * most rows for its experts, "ring: ..." where a causal sequence is dealt
 * plain.  Else nothing. */
void ms_rankwords_put(const ms_result *result, ms_text *text);

#endif
