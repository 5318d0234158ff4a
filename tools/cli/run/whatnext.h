/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_TOOLS_WHATNEXT_H
#define MS_TOOLS_WHATNEXT_H

/* The end of a summary: what would help, and what to type next.
 *
 *     ms_whatnext next;
 *     MS_TRY(ms_whatnext_advice(&summary, stays, &next, text, fault));
 *     ... the verdict ...
 *     MS_TRY(ms_whatnext_commands(&summary, &next, text, fault));
 */

#include "policies/common/policy.h"
#include "tools/advice/advice.h"
#include "tools/advice/hostadvice.h"
#include "tools/cli/commands.h"
#include "tools/cli/run/run.h"

/* What would help: on the device, or where that is large enough, on the node.
 */
typedef struct ms_whatnext {
    ms_advice device;
    ms_hostadvice node;
} ms_whatnext;

/* A line for each way, where the step does not fit, or (stays) where the
 * policies do not lower the peak. */
ms_err ms_whatnext_advice(const ms_summary *summary, bool stays,
                          ms_whatnext *next, ms_text *text, ms_fault *fault);
/* The lines "fits:", "next:" and "or:", as far as there are such commands. */
ms_err ms_whatnext_commands(const ms_summary *summary, const ms_whatnext *next,
                            ms_text *text, ms_fault *fault);

#endif
