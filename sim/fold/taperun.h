/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_SIM_TAPERUN_H
#define MS_SIM_TAPERUN_H

/* Private to sim/fold: a tape through the clock of sim/replay, and what other
 * memories than the device's hold meanwhile. */

#include "sim/fold/fold.h"
#include "sim/fold/tape.h"

/* Closes the tape; fills active_bytes, step_ns, recompute_ns, time and far,
 * once peak_bytes is known.  Faults: MS_ENOMEM; MS_EINPUT where streams and
 * host wait for each other. */
ms_err ms_taperun(ms_tape *tape, const ms_machine *machine,
                  uint64_t start_bytes, ms_folded *folded, ms_fault *fault);

#endif
