/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_TOOLS_FITPOINT_H
#define MS_TOOLS_FITPOINT_H

/* One set-up of a search: its bounds, and its replay.
 *
 *     ms_fitpoint_seat at = {0};                     (one per thread)
 *     MS_TRY(ms_fitpoint_bound(fit, &point, &at, fault));
 *     MS_TRY(ms_fitpoint_replay(fit, &point, &at, false, fault));
 *     ... point.bound, point.step_ns ...
 *     ms_fitpoint_leave(fit, &at); */

#include "tools/search/fit.h"
#include "tools/search/fitstages.h"

typedef struct ms_fitpoint_seat {
    ms_points_seat seat;
    ms_arena words; /* memory of the policies' text */
    ms_fitstages stages;
} ms_fitpoint_seat;

/* Its text lies in the seat. */
ms_err ms_fitpoint_bound(const ms_fit *fit, ms_fit_point *point,
                         ms_fitpoint_seat *at, ms_fault *fault);
/* With the exact pool or, if `proof`, through the allocator.  Without a proof
 * pipelines are told from few micro-batches where these repeat, which is the
 * same (sim/repeat/rounds.h). */
ms_err ms_fitpoint_replay(const ms_fit *fit, ms_fit_point *point,
                          ms_fitpoint_seat *at, bool proof, ms_fault *fault);
void ms_fitpoint_leave(const ms_fit *fit, ms_fitpoint_seat *at);

#endif
