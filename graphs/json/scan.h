/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_SCAN_H
#define MS_SCAN_H

/* The strict scan of JSON before cJSON sees it.  It refuses what cJSON lets
 * pass (leading zeros, "1.", raw control characters, invalid UTF-8, a byte
 * order mark, lone surrogates, \u0000, text after the value, nesting over
 * MS_SCAN_DEPTH, integers beyond 64 bits) and notes where each value stands,
 * in document order: the order of a pre-order walk of the tree. */

#include "sim/base/base.h"

#define MS_SCAN_DEPTH 64u

typedef struct ms_scan_value {
    uint32_t at;           /* offset of the value's first byte */
    uint32_t key_at;       /* of its key's opening quote; MS_NONE: no key */
    uint32_t line, column; /* of the value, from 1; column in characters */
} ms_scan_value;

/* values and n are those found; MS_EINPUT with line:column otherwise.  The
 * offset of source is not used. */
ms_err ms_scan_values(const ms_quote *source, ms_arena *arena,
                      ms_scan_value **values, uint32_t *n, ms_fault *fault);
/* The same for one of several values, one after the other: that at the
 * offset, in the given line.  Both are moved behind it and the blanks there. */
ms_err ms_scan_next(ms_quote *source, uint32_t *line, ms_arena *arena,
                    ms_scan_value **values, uint32_t *n, ms_fault *fault);

#endif
