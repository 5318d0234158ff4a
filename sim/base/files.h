/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_FILES_H
#define MS_FILES_H

/* Files as they lie on the disk.
 *
 *     char *bytes;
 *     size_t length;
 *     MS_TRY(ms_files_read(path, 1 << 20, arena, &bytes, &length, fault)); */

#include "sim/base/base.h"

/* Reads a whole file ("-": standard input), at most max_bytes;
 * NUL-terminated. */
ms_err ms_files_read(const char *path, uint64_t max_bytes, ms_arena *arena,
                     char **bytes, size_t *length, ms_fault *fault);

#endif
