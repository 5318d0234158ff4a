/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_TOOLS_RECORDINGS_H
#define MS_TOOLS_RECORDINGS_H

/* Recorded histories of allocations. */

#include "sim/pools/history/alloctrace.h"

/* recording.c: a recorded history of allocations
 * (sim/pools/history/alloctrace.h), from JSON that must outlive it.  Faults:
 * MS_EINPUT with line and column. */
ms_err ms_recording_read(const char *name, const char *bytes, size_t length,
                         ms_arena *arena, ms_recording *recording,
                         ms_fault *fault);

/* snapshot.c: the same from a pickle of torch.cuda.memory._dump_snapshot: the
 * device with the longest trace.  Executes nothing; "name:byte N". */
ms_err ms_snapshot_read(const char *name, const char *bytes, size_t length,
                        ms_arena *arena, ms_recording *recording,
                        ms_fault *fault);

#endif
