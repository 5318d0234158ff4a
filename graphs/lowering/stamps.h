/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_GRAPHS_STAMPS_H
#define MS_GRAPHS_STAMPS_H

/* Private to graphs/lowering: a recorded forward and backward of a model in
 * which equal blocks are left out (blockrun.h) becomes that of the whole. */

#include "graphs/lowering/blockrun.h"
#include "graphs/trace/forward.h"
#include "graphs/trace/trace.h"

/* Do the settings make nothing that all blocks have in common but what the
 * optimizer's step makes?  That is recorded behind the stamp. */
bool ms_stamps_apply(const ms_step_settings *settings);
/* whole: the model of which the trace's is the short one.  The passes over ops
 * have been and storages are numbered: of the rows that there are neither ends
 * nor counts are known any more.  False: the blocks
 * are not equal in the end, the trace is not to be used any more. */
bool ms_stamps_unfold(ms_trace *trace, ms_forward *forward,
                      const ms_blockrun *run, const ms_model *whole);
/* Once the settings are those of the whole model: what parameters have of all
 * of them.  False: the step's tensors have too many bytes, or no memory. */
bool ms_stamps_settle(ms_trace *trace);

#endif
