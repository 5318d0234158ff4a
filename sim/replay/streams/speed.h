/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_SIM_SPEED_H
#define MS_SIM_SPEED_H

/* Private to clock.c: how fast an op runs beside others. */

#include "sim/base/base.h"
#include "sim/nouns.h"

/* The speed of an op that nothing slows: work is counted in 1/MS_SPEED_WHOLE
 * ns, so that all arithmetic on it is exact. */
#define MS_SPEED_WHOLE 10000u

/* Does any stream ask for anything? */
bool ms_speed_varies(const ms_machine *machine);
/* Of an op of stream while ops of the streams in busy (a bit each) run, its
 * own among them; 1 to MS_SPEED_WHOLE. */
uint32_t ms_speed_of(const ms_machine *machine, uint32_t busy, uint32_t stream);

#endif
