/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef KERNELROWS_H
#define KERNELROWS_H

/* Measured kernels in a table (kernels.tsv, memory.tsv, ...): the median error
 * of the times that memsim tells, and that of 95 of 100 rows, held by a table
 * of bounds, one of whose rows says of which device and kind:
 *
 *     static double told_us(const truth_table *table, uint32_t row);
 *     const kernelrows of = {"memory", {"device", "kernel"}, told_us};
 *     kernelrows_check(&of, "memory.tsv", "memorybounds.tsv");
 */

#include "graphs/machines/times/producttime.h"
#include "tests/truth/truth.h"

typedef struct kernelrows {
    const char *group;   /* of truth_compare */
    const char *keys[4]; /* columns in which a row is equal to its bound */
    double (*told_us)(const truth_table *table, uint32_t row);
} kernelrows;

/* Every row has one bound, and every bound rows. */
void kernelrows_check(const kernelrows *of, const char *rows,
                      const char *bounds);
/* The rows of one bound, under a name; returns how many. */
uint32_t kernelrows_within(const kernelrows *of, const truth_table *table,
                           const truth_table *bounds, uint32_t bound,
                           const char *name);

double kernelrows_number(const truth_table *table, uint32_t row,
                         const char *column);
/* That of the column "device". */
const ms_device *kernelrows_device(const truth_table *table, uint32_t row);
/* us: what a kernel that the host queued takes beside one of a graph. */
double kernelrows_queue_us(const truth_table *table, uint32_t row);
/* Of a kernel that is timed again and again, what it moves: bytes that the
 * cache holds from one time to the next, where all that is used again fits,
 * count as many as memory moves meanwhile.  A100's and H100's cache is two
 * halves, and what all multiprocessors read is in both. */
double kernelrows_hot(const ms_device *device, double bytes, double again);
/* The same of a product of 16 bits or, width 1, of fp8 that goes through
 * several weights in turn (gemm_fit.py). */
double kernelrows_moved(const ms_device *device, ms_product_shape shape,
                        double width);

#endif
