/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_SIM_ONECLOCK_H
#define MS_SIM_ONECLOCK_H

/* Private to clock.c: the clock of one rank whose ops slow each other and do
 * not wait for memory.  It says what clock.c would, instant by instant the
 * same, with what it knows of a stream's head, and of the op that runs, side by
 * side.
 */

#include "sim/base/base.h"
#include "sim/nouns.h"

/* As ms_clock_run. */
ms_err ms_oneclock_run(const ms_plan *plan, const ms_machine *machine,
                       ms_arena *arena, ms_timeline *line, ms_fault *fault);

#endif
