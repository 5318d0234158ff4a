/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_GRAPHS_SAVEDENDS_H
#define MS_GRAPHS_SAVEDENDS_H

/* Private to graphs/: how what autograd nodes have saved (ms_trace_save) ends.
 *
 * Most nodes only read what they saved, and let go of it when they have run.
 * Some, Liger's, write gradients over it and hand it on:
 *
 *     uint32_t n = ms_trace_node(trace, rule, inputs, 2, &y, 1);
 *     ms_trace_save(trace, n, gate);                   in forward
 *     ms_trace_save(trace, n, up);
 *     ms_savedends_hold(trace, n);
 *     ...
 *     ms_savedends_give(trace, node, out);                 in the rule's
 * backward
 *
 * The SAVED references of such tensors end with these gradients, not with the
 * node.  LOCAL ones end where forward's variables do: what a checkpoint leaves
 * out is gone by then, saved or not. */

#include "graphs/trace/tensors.h"

/* The node (MS_NONE: none) will give away what it has saved. */
void ms_savedends_hold(ms_trace *trace, uint32_t node);
/* It does, as the gradients of its inputs, in the order saved. */
void ms_savedends_give(ms_trace *trace, const ms_node *node, uint32_t *out);
/* The node has run: what it saved is released, in the order saved. */
void ms_savedends_release(ms_trace *trace, const ms_node *node);
/* It will not run: what it saved is as if not saved. */
void ms_savedends_forget(ms_trace *trace, const ms_node *node);

#endif
