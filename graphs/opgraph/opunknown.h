/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_GRAPHS_OPUNKNOWN_H
#define MS_GRAPHS_OPUNKNOWN_H

/* Private to graphs/: ops of an op graph that the table does not know, with
 * graph.unknown_op=conservative.  All inputs and outputs are saved; one kernel
 * of the backward makes a gradient of its own for each input that needs one. */

#include "graphs/aten/aten.h"

/* Records the op whose outputs exist. */
void ms_opunknown_record(ms_trace *trace, const ms_aten_call *call);
/* Lists the ops without a rule in the graph, by the index of ms_atentable_open:
 * what the summary says. */
ms_err ms_opunknown_list(ms_trace *trace, const ms_opgraph *ops,
                         const ms_index *rows);

#endif
