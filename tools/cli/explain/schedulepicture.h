/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_TOOLS_SCHEDULEPICTURE_H
#define MS_TOOLS_SCHEDULEPICTURE_H

/* Which block is saved, made again, and when, as signs: a line is a sweep, a
 * sign of it a block (or a unit in none), in the model's order.  GPT-2's
 * embeddings, blocks, norm, head and loss under checkpoint:every=4:
 *
 *     forward   SSSi>>>i>>>i>>>SSS
 *     backward  ...............bbb
 *               ...........RRRR...
 *               .......RRRR.......
 *               bbbRRRR...........
 *
 * Of a measured DAG, or the log of a run, a sign is a node in the order in
 * which they run, and a line goes on as long as they run in it:
 *
 *     order     >>>>>>b....
 *               ...r...bbbb
 *
 * S saves all, p a part, i nothing but its input, > nothing; r runs forward
 * again, R again and then back, b back.  Blocks that each are made again just
 * before their backward are one sweep.  It is read off the plan as it runs, so
 * that what bind makes again is in it, whoever let it go. */

#include "tools/job/result.h"

#define MS_SCHEDULEPICTURE_SIGNS 64u /* in a line */
#define MS_SCHEDULEPICTURE_LINES 24u

typedef struct ms_schedulepicture {
    uint32_t n_columns, each; /* a sign is of so many columns */
    const char **names;       /* of columns */
    const char **lines;       /* the first is forward; n_lines */
    uint32_t n_lines, n_left; /* lines that there was no room for */
    bool has_nodes;           /* they are of nodes that were measured */
} ms_schedulepicture;

/* Of the first micro-batch on the rank that the report tells; no lines where
 * nothing is made again. */
ms_err ms_schedulepicture_find(const ms_result *result, ms_arena *arena,
                               ms_schedulepicture *picture, ms_fault *fault);
void ms_schedulepicture_put(const ms_schedulepicture *picture, ms_text *text);

#endif
