/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_SIM_PROGRAM_H
#define MS_SIM_PROGRAM_H

/* Private to program.c, check.c and dumpread.c. */

#include "sim/sim.h"

/* ms_check_program that also says which call is wrong (MS_NONE: none or the
 * program as a whole). */
ms_err ms_check_calls(const ms_graph *graph, const ms_program *program,
                      uint32_t *wrong, ms_fault *fault);

#endif
