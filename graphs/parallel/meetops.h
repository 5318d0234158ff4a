/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_GRAPHS_MEETOPS_H
#define MS_GRAPHS_MEETOPS_H

/* Private to graphs/: how an op ends that is a collective of the graph's own
 * (ms_graph.op_meets), instead of ms_trace_end. */

#include "sim/group.h"
#include "sim/replay/collective.h"

typedef struct ms_trace ms_trace; /* trace.h */

/* It goes over the larger of what it reads and writes, on the ranks' queue. */
void ms_meetops_end(ms_trace *trace, ms_collective collective,
                    ms_group_role role, const ms_group *ranks);
/* Of the op that has just ended so only `now` of `all` equal pieces go. */
void ms_meetops_narrow(ms_trace *trace, ms_collective collective,
                       const ms_group *ranks, uint32_t now, uint32_t all);
/* An op that has just ended as attention (opend.h) is not this rank's: it waits
 * for as long as that takes the others, but for the collective before it, in
 * the queue of both, and computes and moves nothing. */
void ms_meetops_wait(ms_trace *trace, ms_group_role role,
                     const ms_group *ranks);

#endif
