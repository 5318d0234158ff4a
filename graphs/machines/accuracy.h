/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_GRAPHS_ACCURACY_H
#define MS_GRAPHS_ACCURACY_H

/* How far the clock was from measured steps, by kind of run: what stands beside
 * every time that is told.  The rows are of tests/truth/times.tsv, of the half
 * that no rate was fitted on; tests/truth/test_accuracy.c makes them anew, so
 * that they say what is.
 *
 * A kind is a device, a kernel set and a range of tokens in a sequence (a model
 * of images has none: 0).  Where fewer than MS_ACCURACY_LEAST runs are of a
 * kind, those of the device and the kernel set with tokens in any number do;
 * where these are too few as well, nothing does.
 *
 *     const ms_accuracy *of = ms_accuracy_find("a100-80gb-sxm", MS_FLASH,
 * 8192); of->runs 6, of->median_percent 4.2, of->most_percent 6.6 */

#include <stdbool.h>
#include <stdint.h>

#define MS_ACCURACY_LEAST 5u
#define MS_ACCURACY_ANY UINT64_MAX

typedef struct ms_accuracy {
    const char *device;
    int64_t kernels; /* ms_kernels */
    /* The most tokens of a sequence of the range: one of ms_accuracy_ranges, 0,
     * or MS_ACCURACY_ANY for rows of all lengths. */
    uint64_t tokens;
    uint32_t runs;
    double median_percent, most_percent; /* most: of 95 of 100 of the runs */
} ms_accuracy;

/* The ends of the ranges, ascending; longer sequences are of the last. */
#define MS_ACCURACY_RANGES 4u
extern const uint64_t ms_accuracy_ranges[MS_ACCURACY_RANGES];
/* The end of the range that a sequence is in. */
uint64_t ms_accuracy_range(uint64_t tokens);

#define MS_ACCURACY_ROWS 12u
extern const ms_accuracy ms_accuracy_rows[MS_ACCURACY_ROWS];
/* NULL: no such run was held against a measured one. */
const ms_accuracy *ms_accuracy_find(const char *device, int64_t kernels,
                                    uint64_t tokens);

#endif
