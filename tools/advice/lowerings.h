/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_TOOLS_LOWERINGS_H
#define MS_TOOLS_LOWERINGS_H

/* The last graphs of a search that tries one job after the other.  Most of what
 * it changes (policies that checkpoint, swap, offload) leaves the graph as it
 * is, and lowering takes longer than the replay.
 *
 *     ms_lowerings kept = {0};
 *     MS_TRY(ms_lowerings_graph(&kept, &job, &tried, fault));
 *     use(tried.graph);          it lies in kept, until others take its place
 *     ms_lowerings_free(&kept);
 *
 * Of one model: the jobs may differ in everything else. */

#include "graphs/training.h"
#include "sim/shape.h"
#include "tools/job/job.h"
#include "tools/job/result.h"

#define MS_LOWERINGS_MOST 8u

typedef struct ms_lowering {
    ms_arena arena;               /* of the graph */
    const struct ms_graph *graph; /* NULL: the place is free */
    const ms_device *device;
    ms_training training;
    ms_shape shape;
    uint64_t used; /* the higher, the later */
} ms_lowering;

typedef struct ms_lowerings {
    ms_lowering of[MS_LOWERINGS_MOST];
    uint64_t uses;
} ms_lowerings;

/* Would the model be lowered to the same graph?  Settings are compared as
 * bytes, as points.c does: where they only seem to differ, it is lowered once
 * more. */
bool ms_lowerings_are_same(const ms_training *training, const ms_shape *shape,
                           const ms_result *tried);
/* Sets tried->graph to that of its training and shape (ms_jobway_shape has made
 * it); what was used longest ago goes. */
ms_err ms_lowerings_graph(ms_lowerings *kept, const ms_job *job,
                          ms_result *tried, ms_fault *fault);
void ms_lowerings_free(ms_lowerings *kept);

#endif
