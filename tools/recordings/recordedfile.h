/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_RECORDEDFILE_H
#define MS_RECORDEDFILE_H

/* Files of recorded histories: pickles of torch.cuda.memory._dump_snapshot, and
 * JSON of the same (recordings.h). */

#include "sim/pools/history/alloctrace.h"

/* Does the file begin as one?  False for what cannot be read, and for standard
 * input, of which nothing is read. */
bool ms_recordedfile_is(const char *path);
/* MS_EINPUT where the file is none, is cut off or has no event. */
ms_err ms_recordedfile_read(const char *path, ms_arena *arena,
                            ms_recording *recording, ms_fault *fault);

#endif
