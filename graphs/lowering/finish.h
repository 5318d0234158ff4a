/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_GRAPHS_FINISH_H
#define MS_GRAPHS_FINISH_H

/* Private to graphs/: from a finished trace to a graph. */

#include "graphs/trace/forward.h"
#include "sim/graph.h"

/* Numbers storages (numbering.h), closes the CSR columns, finds the op
 * ranges of the units, what each unit reads from earlier ones, and the sums
 * that the summary prints. */
ms_err ms_finish_graph(ms_trace *trace, const ms_forward *forward,
                       ms_graph *graph);

#endif
