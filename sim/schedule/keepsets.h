/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_SIM_KEEPSETS_H
#define MS_SIM_KEEPSETS_H

/* Private to sim/schedule: what the runs of units hold and let go, from a keep:
 * found once, used by every micro-batch.
 *
 *     MS_TRY(ms_keepsets_find(graph, keep, schedule, stage_of, arena, program,
 *                             &sets, fault));
 *     call.run.keep = sets.kept[unit];
 *     call.set = sets.held[unit]; */

#include "sim/nouns.h"
#include "sim/schedule/schedule.h"

/* A segment: units [first, last] of one stage that are replayed together.
 * drop: the set of what it alone still holds; grads: the incoming gradients
 * that a nested (reentrant) backward holds as arguments. */
typedef struct ms_keepspan {
    uint32_t first, last, drop, grads;
} ms_keepspan;

typedef struct ms_keepsets {
    uint32_t *kept,
        *held;            /* per unit, of its forward (ms_run_call.keep, set) */
    uint32_t *segment_of; /* per unit: row of segments, or MS_NONE */
    ms_keepspan *segments;
    uint32_t n_segments;
    /* Per unit: what it makes in a segment and units in none saved, too; what
     * such a unit's backward is the last to read. */
    uint32_t *outside, *outside_drop;
    uint32_t *remade;   /* per unit, where backward has halves: what its second
                           half reads, and forward has dropped outside of
                           segments: made again before the first half, as long
                           as what it is made from is there */
    uint32_t *release;  /* per unit: what its backward, whole or the second
                           half, is the last to need of these and of entry */
    uint32_t *entry;    /* per stage: what its replays read from others */
    uint32_t *between;  /* per stage, where backward has halves: what its second
                           half reads and another stage of the rank, whose
                           backward comes later, too: held from the end of the
                           first half to the end of the second */
    uint32_t *retained; /* per stage, where the half of the inputs lets nothing
                           go before its end: what it saves in no segment */
    uint32_t *outputs;  /* per stage: what the training loop holds of it */
    /* Per storage: the first unit in no segment, of its maker's rank, whose
     * backward reads it, or MS_NONE.  NULL: there are no segments. */
    uint32_t *open_reader;
} ms_keepsets;

ms_err ms_keepsets_find(const ms_graph *graph, const ms_keep *keep,
                        const ms_schedule *schedule, const uint32_t *stage_of,
                        ms_arena *arena, ms_program *program, ms_keepsets *sets,
                        ms_fault *fault);
/* The program is written. */
void ms_keepsets_drop(ms_keepsets *sets, ms_arena *arena);

#endif
