/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_TOOLS_FITSTAGES_H
#define MS_TOOLS_FITSTAGES_H

/* Lower bounds of a pipeline's peak and time, without a program.  They are
 * sound because
 *
 *   memory: when a rank begins a backward it has the states of its layers and,
 *           of every micro-batch in flight on it, what its forward keeps; from
 *           the second backward of each of its stages on also the gradients;
 *   time:   a rank begins when the stages before its first one have run
 *           forward once; then it runs every turn of its own, and the gradient
 *           of the last one goes back through these stages.  A turn takes no
 *           less than its compute ops one after the other, with what these wait
 *           for in the turn itself (collectives of tensor parallelism).  A
 *           segment's ops that its backward needs run again.  Accumulations
 *           and messages count nothing.
 *
 * A worked example: 4 ranks of equal stages, F and B of a micro-batch, m of
 * them.  The last rank waits 3F, works m(F + B), and 3B follow: the step of
 * 1F1B exactly.  With 2 chunks a rank, F and B are halves: 1.5F + m(F + B) +
 * 1.5B.
 *
 *     ms_fitstages of = {0};                         (one per thread)
 *     MS_TRY(ms_fitstages_bound(&of, fit, &point, &job, &trial, &result,
 *                               fault));
 *     ms_fitstages_close(&of); */

#include "tools/search/fit.h"

#define MS_FITSTAGES_COSTS 4u
#define MS_FITSTAGES_FLIGHTS 16u

/* Of one thread: what points share that differ in schedule and checkpoints
 * alone, or in the rest alone. */
typedef struct ms_fitstages {
    struct ms_fitstages_costs *costs[MS_FITSTAGES_COSTS];
    struct ms_fitstages_flight *flights[MS_FITSTAGES_FLIGHTS];
    ms_arena costs_arena[MS_FITSTAGES_COSTS];
    ms_arena flights_arena[MS_FITSTAGES_FLIGHTS];
    uint32_t next_costs, next_flight;
    ms_arena lists; /* of the points' numbers of checkpoints */
} ms_fitstages;

/* Sets the bound of a point whose job has a pipeline and is lowered; where the
 * set-up has as many checkpoints on each stage as these need, also these
 * numbers (point->first, until it is closed).  Such a point that comes out as
 * another one, with none or all of them, is beaten by that. */
ms_err ms_fitstages_bound(ms_fitstages *of, const ms_fit *fit,
                          ms_fit_point *point, const ms_job *job,
                          ms_arena *trial, ms_result *result, ms_fault *fault);
void ms_fitstages_close(ms_fitstages *of);

#endif
