/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_SIM_SIZE_H
#define MS_SIM_SIZE_H

/* Sizes as people write them, in options and in policies.
 *
 *     uint64_t bytes;
 *     MS_TRY(ms_size_bytes("79.5GiB", "--memory", &bytes, fault)); */

#include "sim/base/base.h"

/* Reads "80GiB", "1.5TiB", "80GB" or plain bytes.  "80G" is a fault that
 * suggests both.  At most six digits after the point, none for plain bytes;
 * the value is exact (rounded down to a byte). */
ms_err ms_size_bytes(const char *text, const char *where, uint64_t *bytes,
                     ms_fault *fault);

/* A decimal number as it was written: whole + fraction / scale; end: what
 * comes behind it. */
typedef struct ms_decimal {
    uint64_t whole, fraction, scale;
    const char *end;
} ms_decimal;
/* False: text does not begin with a number of at most six decimals. */
bool ms_size_decimal(const char *text, ms_decimal *number);
/* In whole bytes, or nanoseconds, of which a unit has scale, rounded down;
 * false: 2^64 or more. */
bool ms_size_whole(const ms_decimal *number, uint64_t scale, uint64_t *value);

/* "1,234,567" */
#define MS_SIZE_COUNT 28u
void ms_size_count(uint64_t n, char text[MS_SIZE_COUNT]);
/* In the largest binary unit that has a whole number of them, as
 * ms_size_bytes reads it: "40GiB", "1000". */
void ms_size_exact(uint64_t bytes, char text[MS_SIZE_COUNT]);

#endif
