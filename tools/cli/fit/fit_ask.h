/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_TOOLS_FIT_ASK_H
#define MS_TOOLS_FIT_ASK_H

/* What a command line asks a search for: its job, --goal and --vary.  Of
 * memsim fit, and of memsim report --goal. */

#include "tools/search/fit.h"

/* Reads the job into the arena of fit, and what is searched; the allocator
 * becomes the one that proves what is shown. */
ms_err ms_fit_ask_read(const ms_arguments *arguments, ms_job *job, ms_fit *fit,
                       ms_fault *fault);

#endif
