/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_SIM_RECOMPUTED_H
#define MS_SIM_RECOMPUTED_H

/* What a rank has run again so far, over the time of the step: the cost of
 * checkpoints as a curve that never falls.  Of an op under way the part that
 * has passed counts.  At the end of the step it is the report's recompute_ns
 * and, of one rank, its FLOPs.
 *
 *     ms_recomputed so_far = {.line = &line, .rank = 0};
 *     for (uint32_t e = 0; e < line.n_events; e++)
 *         ms_recomputed_until(&so_far, event->t_ns, &ns, &flops);
 */

#include "sim/base/base.h"
#include "sim/nouns.h"

typedef struct ms_recomputed {
    const ms_timeline *line;
    uint16_t rank;
    uint32_t op; /* the next one that may run again */
    uint64_t done_ns;
    double done_flops;
} ms_recomputed;

/* t_ns does not fall from call to call.  A micro-batch that stands for others
 * (sim/repeat/repeat.h) counts for all of them.  flops: at most INT64_MAX. */
void ms_recomputed_until(ms_recomputed *so_far, uint64_t t_ns, uint64_t *ns,
                         uint64_t *flops);

#endif
