/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_SIM_CLOCK_H
#define MS_SIM_CLOCK_H

/* Private to replay.c: when each op of a plan starts and ends. */

#include "sim/replay/wall.h"

/* Fills start_ns, end_ns, gap_cause and step_ns of the timeline.  wall: NULL,
 * or what ops ask for memory.  Faults:
 * MS_EINPUT where streams and host wait for each other for ever. */
ms_err ms_clock_run(const ms_plan *plan, const ms_machine *machine,
                    ms_wall *wall, ms_arena *arena, ms_timeline *line,
                    ms_fault *fault);

#endif
