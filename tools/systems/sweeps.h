/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_TOOLS_SWEEPS_H
#define MS_TOOLS_SWEEPS_H

/* How the blocks of a model are run: a sweep forward, then one after the other
 * what is made again and goes back.  A sweep has a sign per column, a block or
 * a unit in none, in the model's order:
 *
 *     forward   S saves all, p a part, i nothing but its input, > nothing
 *     others    r runs forward again, R again and then back, b back, . nothing
 *
 * It is read off the plan as it runs, so that what bind makes again is in it,
 * whoever let it go. */

#include "tools/job/result.h"

typedef struct ms_sweeps {
    uint32_t n_columns;
    const char **names;
    uint8_t *is_block; /* can the column be checkpointed? */
    char **signs;      /* per sweep, n_columns and a 0; the first is forward */
    uint32_t n;
} ms_sweeps;

/* Of the first micro-batch on the rank that the report tells. */
ms_err ms_sweeps_find(const ms_result *result, ms_arena *arena,
                      ms_sweeps *sweeps, ms_fault *fault);
/* Does it run forward again in the sweep? */
bool ms_sweeps_again(const ms_sweeps *sweeps, uint32_t sweep, uint32_t column);

#endif
