/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_TOOLS_NARROW_H
#define MS_TOOLS_NARROW_H

/* Text for people on a terminal that is narrower than its lines. A pipe or a
 * file gets lines as they are: what reads them counts columns itself.
 *
 * A table is cut into panels, one below the other, each with the first column:
 *
 *     layer        parameters    fwd FLOP     saved
 *     embeddings   38,597,376           0   0 bytes
 *
 *     layer        parameters
 *     embeddings   38,597,376
 *
 *     layer          fwd FLOP     saved
 *     embeddings            0   0 bytes
 */

#include "sim/base/base.h"

/* Cuts the table that begins at byte `from` of the text and ends with it, where
 * it is wider than standard output. Its columns are parted by two blanks, or by
 * one behind words, that all its rows have; lines without two blanks are
 * headings. */
void ms_narrow_table(ms_text *text, size_t from);
/* Breaks what else is wider than the terminal, at blanks: a line goes on below
 * where its words begin. A command to copy is not broken. */
void ms_narrow_lines(ms_text *text);

#endif
