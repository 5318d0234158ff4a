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

#define MS_TEXTLINES_INDENT 10u       /* column of the words beside a label */
#define MS_TEXTLINES_GROUP_INDENT 13u /* the same inside a group */

/* Adds the label and the words, made safe for a terminal. */
void ms_textlines_put(const char *label, uint32_t indent, const ms_text *words,
                      ms_text *text);
/* Adds prose: its paragraphs are filled to the width of the line; lines that
 * begin with a blank, or that three blanks align, stay as they are. */
void ms_textlines_prose(const char *prose, ms_text *text);
/* The same of lines, of which the last is NULL. */
void ms_textlines_lines(const char *const *lines, ms_text *text);
/* A category's name as words: "optimizer state". */
void ms_textlines_category(uint8_t category, ms_text *text);
/* "aten.foo.default x 2: no rule, so ..."; nothing where every op has a rule.
 */
void ms_textlines_unknown(const ms_graph *graph, ms_text *text);

#endif
