/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_POLICIES_NODECALLS_H
#define MS_POLICIES_NODECALLS_H

/* A plan of nodes (nodedag.h) as calls of a program of a graph of nodes:
 *
 *     MAKE op          RUN forward, with a reference on what it makes; once
 *                      more: HOLD what of it is gone, again, or RERUN it where
 *                      nothing is (its views are made anew)
 *     DROP storage     DROP the reference */

#include "policies/solve/nodedag.h"

/* Each micro-batch of the given default program runs as the plan says. */
ms_err ms_nodecalls_write(const ms_graph *graph, const ms_nodeplan *plan,
                          ms_arena *arena, ms_program *program,
                          ms_fault *fault);

#endif
