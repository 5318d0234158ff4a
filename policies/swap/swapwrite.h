/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_POLICIES_SWAPWRITE_H
#define MS_POLICIES_SWAPWRITE_H

/* Private to swapplan.c and swapauto.c: a plan as a program. */

#include "policies/swap/swapplan.h"

/* The program that the plan was made for with the plan's moves and waits, and
 * without what is to be made again in the keep sets. */
ms_err ms_swapwrite_program(const ms_swapplan *plan, ms_program *program);
/* The same calls and sets in columns of their own. */
ms_err ms_swapwrite_copy(const ms_program *from, ms_arena *arena,
                         ms_program *program, ms_fault *fault);

#endif
