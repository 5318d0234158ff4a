/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_SIM_CHECK_H
#define MS_SIM_CHECK_H

/* Private to sim/: the check of a program, for its reader, too. */

#include "sim/base/base.h"
#include "sim/nouns.h"

/* ms_check_program that also says which call is wrong (MS_NONE: none or the
 * program as a whole). */
ms_err ms_check_calls(const ms_graph *graph, const ms_program *program,
                      uint32_t *wrong, ms_fault *fault);

#endif
