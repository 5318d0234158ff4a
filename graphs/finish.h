/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_GRAPHS_FINISH_H
#define MS_GRAPHS_FINISH_H

/* Private to graphs/: from a finished trace to a graph. */

#include "graphs/trace.h"

typedef struct ms_finish {
    ms_trace *trace;
    uint32_t n_units, loss_unit;
    uint32_t *unit_block;
    const char **unit_name;
} ms_finish;

/* Numbers persistent storages first, closes the CSR columns, finds the op
 * ranges of the units, what each unit reads from earlier ones, and the sums
 * that the summary prints. */
ms_err ms_finish_graph(const ms_finish *finish, ms_graph *graph);

#endif
