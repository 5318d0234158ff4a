/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_SIM_PLANNED_H
#define MS_SIM_PLANNED_H

/* Private to pooled.c: a step through a static plan
 * (sim/pools/place/placement.h).
 *
 * Each row of the step on the device has one place in one buffer, decided ahead
 * of the step; its life is from the request to the free that the host sees, in
 * host issue order, and what the step finds or leaves behind lives from its
 * beginning or to its end.  Sizes are multiples of 512 bytes.  Reserved is the
 * height of the plan, from the first request on. */

#include "sim/base/base.h"
#include "sim/nouns.h"

/* Fills ranks (of line's plan), oom and lack of `out`, whose setup is set, and
 * the raises of line. */
ms_err ms_planned_run(const ms_machine *machine, ms_arena *arena,
                      ms_timeline *line, ms_pooled *out, ms_fault *fault);

#endif
