/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_TOOLS_EVENOUT_H
#define MS_TOOLS_EVENOUT_H

/* What would even out the stages of a pipeline, each tried by replay: layers
 * move from the fullest stage to the emptiest, or from the busiest to the
 * idlest, for as long as that pays, and the fullest stages recompute.
 *
 *     ms_evenout even;
 *     MS_TRY(ms_evenout_find(&job, &result, &arena, &even, fault));
 *     use(even.ways[0].policy);    "microbatch:16+pipeline:4,layers=7/8/8/9"
 */

#include "sim/report.h"
#include "sim/stage.h"
#include "tools/job/job.h"
#include "tools/job/result.h"

typedef struct ms_evenout_way {
    const char *policy; /* in place of those given */
    const char *words;  /* "a layer from stage 0 to stage 3" */
    uint64_t peak_bytes, step_ns;
} ms_evenout_way;

#define MS_EVENOUT_MOST 3u

typedef struct ms_evenout {
    uint64_t peak_bytes, step_ns; /* as it is, told as those of the ways are */
    uint32_t n;
    ms_evenout_way ways[MS_EVENOUT_MOST];
} ms_evenout;

/* n is 0 for a step without stages, one that is not of policies alone, and
 * where nothing that was tried helps by a part in 200. */
ms_err ms_evenout_find(const ms_job *job, const ms_result *result,
                       ms_arena *arena, ms_evenout *even, ms_fault *fault);

/* The layers that a stage has: blocks, or units where the model has none; those
 * of multi-token prediction apart, does it have any? */
uint32_t ms_evenout_layers(const ms_graph *graph, const ms_stage *stage);
bool ms_evenout_predicts(const ms_graph *graph, const ms_stage *stage);

#endif
