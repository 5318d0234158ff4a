/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_TOOLS_TEXTLINES_H
#define MS_TOOLS_TEXTLINES_H

/* Lines of the text that commands print: a label, and words beside it in a
 * filled paragraph.
 *
 *     alive:    651.20 GiB of optimizer state, 325.60 GiB of
 *               parameters
 */

#include "sim/base/base.h"
#include "sim/nouns.h"

#define MS_TEXTLINES_INDENT 10u       /* of the words after a label */
#define MS_TEXTLINES_GROUP_INDENT 13u /* of what is told of a group */

/* A label and words, made safe to show. */
void ms_textlines_put(const char *label, uint32_t indent, const ms_text *words,
                      ms_text *text);
/* "optimizer state". */
void ms_textlines_category(uint8_t category, ms_text *text);
/* "aten.foo.default x 2: no rule, so ..."; nothing where all are known. */
void ms_textlines_unknown(const ms_graph *graph, ms_text *text);

#endif
