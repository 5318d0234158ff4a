/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_GRAPHS_SAVELIST_H
#define MS_GRAPHS_SAVELIST_H

/* Private to graphs/: the saves of a graph (sim/saves.h), in the order in which
 * a trace makes them. */

#include "graphs/trace/tensors.h"

/* The node saves the tensor behind the op that ran last.  MS_NONE: nothing to
 * do.  By itself for parameters that a formula is given and does not read. */
void ms_savelist_add(ms_trace *trace, uint32_t node, uint32_t tensor);
/* What was saved last is a view, though its row is a parameter's: linear saves
 * weight.t(). */
void ms_savelist_turned(ms_trace *trace);
/* Node n has run: its backward ops, from first to the op that ran last, are
 * those of its saves. */
void ms_savelist_ran(ms_trace *trace, uint32_t n, uint32_t first);
/* Once backward has run: saves of nodes that no gradient reaches go with
 * them. */
void ms_savelist_close(ms_trace *trace);

#endif
