/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_NODEGRAPH_H
#define MS_NODEGRAPH_H

/* Nodes that were measured as a graph: each is an op in a unit of its own, all
 * of them forwards of their units, gradients too (ms_graph.nodes), so that each
 * can run again.  What a node makes is SAVED until its end. */

#include "graphs/model.h"
#include "sim/nouns.h"

ms_err ms_nodegraph_lower(const ms_model *model, ms_arena *arena,
                          ms_graph *graph, ms_fault *fault);

#endif
