/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_INFLATE_H
#define MS_INFLATE_H

/* Files as a stream of bytes, gzip undone (by zlib, which this file alone
 * knows).
 *
 *     ms_inflate *in;
 *     MS_TRY(ms_inflate_open(path, arena, &in, fault));
 *     do
 *         MS_TRY(ms_inflate_read(in, bytes, room, &n, fault));
 *     while (n > 0);
 *     ms_inflate_close(in);
 *
 * Memory: 200 KiB, whatever the file's size. */

#include "sim/base/base.h"

typedef struct ms_inflate ms_inflate;

/* "-" is standard input. */
ms_err ms_inflate_open(const char *path, ms_arena *arena, ms_inflate **in,
                       ms_fault *fault);
/* At most room bytes; *n is 0 at the end of the file alone. */
ms_err ms_inflate_read(ms_inflate *in, char *bytes, size_t room, size_t *n,
                       ms_fault *fault);
void ms_inflate_close(ms_inflate *in);
/* A file that lies in memory: does it begin as gzip does?  *bytes become what
 * it holds, at most `most` of them (less than 2^31) and NUL. */
bool ms_inflate_is_packed(const char *bytes, size_t length);
ms_err ms_inflate_bytes(const char *path, uint64_t most, ms_arena *arena,
                        char **bytes, size_t *length, ms_fault *fault);

#endif
