/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_TOOLS_FITCOSTS_H
#define MS_TOOLS_FITCOSTS_H

/* What the units of a graph take at least, for the bounds of pipelines
 * (fitstages.h): bytes of states, bytes that a micro-batch keeps with and
 * without checkpoints, ns of ops that run again, ns of a stage's turns.
 *
 *     ms_fitcosts costs = {0};
 *     MS_TRY(ms_fitcosts_make(&job, &trial, &opts, &result, &arena, &costs,
 *                             fault));
 *     kept = costs.kept[MS_FITCOSTS_FULL][last + 1] -
 *            costs.kept[MS_FITCOSTS_FULL][first];       of units first to last
 *     MS_TRY(ms_fitcosts_time(&costs, graph, &layout, &arena, &trial, &turns,
 *                             fault));
 *     turns[3].forward_ns                                        of stage 3 */

#include "tools/search/fit.h"

/* The ways to checkpoint of which it is known, for any stage, what each unit
 * keeps: none, selective, full. */
enum {
    MS_FITCOSTS_NONE,
    MS_FITCOSTS_SELECTIVE,
    MS_FITCOSTS_FULL,
    MS_FITCOSTS_WAYS
};
#define MS_FITCOSTS_LAYOUTS 4u

/* Stages: units [first, last] of each. */
typedef struct ms_fitcosts_layout {
    uint32_t n;
    const uint32_t *first, *last;
    bool pairs;  /* turns run side by side: what they wait for is hidden */
    bool splits; /* backward is in halves */
} ms_fitcosts_layout;

typedef struct ms_fitcosts_turns {
    uint64_t forward_ns, input_ns, weight_ns, whole_ns;
} ms_fitcosts_turns;

/* By unit, n_units + 1: sums of the units before it. */
typedef struct ms_fitcosts {
    uint32_t n_units;
    uint64_t *state, *grads; /* at the step's start; .grad that come later */
    uint64_t *kept[MS_FITCOSTS_WAYS], *again[MS_FITCOSTS_WAYS];
    const uint8_t *second; /* by op: of the gradients of weights */
    struct ms_fitcosts_timed {
        uint32_t n;
        bool pairs;
        ms_fitcosts_turns *times; /* n */
    } layouts[MS_FITCOSTS_LAYOUTS];
    uint32_t next_layout;
} ms_fitcosts;

/* Of the result's graph; opts: as ms_jobprogram_begin has them. */
ms_err ms_fitcosts_make(const ms_job *job, ms_arena *trial,
                        const ms_expand_opts *opts, const ms_result *result,
                        ms_arena *arena, ms_fitcosts *costs, ms_fault *fault);
/* *times: by stage; of layouts with as many stages they are the same. */
ms_err ms_fitcosts_time(ms_fitcosts *costs, const ms_graph *graph,
                        const ms_fitcosts_layout *layout, ms_arena *arena,
                        ms_arena *trial, ms_fitcosts_turns **times,
                        ms_fault *fault);

#endif
