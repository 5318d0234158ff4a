/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_SIM_HALVES_H
#define MS_SIM_HALVES_H

/* Private to sim/expand: backward in two halves (ms_stage_halves says which op
 * is of which).
 *
 * What the second half reads lives until it has run: of a storage that both
 * halves touch the references end behind the last op of the second, of any
 * other behind the last op of the first. */

#include "sim/base/base.h"
#include "sim/expand/views/roles.h"
#include "sim/nouns.h"

typedef struct ms_halves {
    uint8_t *second; /* per op: 1, it is of the second half */
    ms_graph *views; /* per role: the graph as its halves see it */
} ms_halves;

/* Of the ranks that the program has in halves; *halves is NULL where there are
 * none.  views: the graphs as the roles see them, or NULL: all see graph. */
ms_err ms_halves_open(const ms_graph *graph, const ms_graph *views,
                      const ms_roles *roles, const ms_program *program,
                      ms_arena *arena, ms_halves **halves, ms_fault *fault);

#endif
