/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_SIM_AHEADCLOCK_H
#define MS_SIM_AHEADCLOCK_H

/* Private to clock.c: the clocks of ranks whose ops slow each other and do not
 * wait for memory.  They say what clock.c would, with what is known of a
 * stream's head, and of the op that runs, side by side.
 *
 * Ranks meet only where an op waits for another rank's.  So each goes as far
 * ahead of the others as it can: until a head of its waits for an op of which
 * nobody knows yet when it ends.  From there on it goes no further than to
 * where that op, on a rank that is behind, could end at the earliest:
 *
 *     rank 0   runs 0F0 0F1 0F2 in one go, to 2.1 ms; 0B0 waits for rank 1
 *     rank 1   at 0 ms, its 1F0 waits for a message that ended at 0.8 ms:
 *              1F0 1B0 in one go from there, and rank 0 goes on */

#include "sim/base/base.h"
#include "sim/nouns.h"

/* As ms_clock_run. */
ms_err ms_aheadclock_run(const ms_plan *plan, const ms_machine *machine,
                         ms_arena *arena, ms_timeline *line, ms_fault *fault);

#endif
