/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/truth/kernelrows.h"
#include "graphs/machines/times/memorytime.h"
#include "tests/tests.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_ROWS 1024u
#define MOST_KEYS 4u
#define WEIGHTS 5.0 /* gemm_fit.py */

double kernelrows_number(const truth_table *table, uint32_t row,
                         const char *column)
{
    return strtod(truth_cell(table, row, column), NULL);
}

const ms_device *kernelrows_device(const truth_table *table, uint32_t row)
{
    const ms_device *device = NULL;
    ms_fault fault = {0};
    ck_assert_int_eq(
        ms_device_find(truth_cell(table, row, "device"), &device, &fault),
        MS_OK);
    return device;
}

double kernelrows_queue_us(const truth_table *table, uint32_t row)
{
    const ms_device *device = kernelrows_device(table, row);
    return ((double)device->queued_ns - (double)device->kernel_ns) / 1e3;
}

static uint32_t n_keys(const kernelrows *of)
{
    uint32_t n = 0;
    while (n < MOST_KEYS && of->keys[n] != NULL)
        n++;
    return n;
}

static bool is_of(const kernelrows *of, const truth_table *table, uint32_t row,
                  const truth_table *bounds, uint32_t bound)
{
    for (uint32_t i = 0; i < n_keys(of); i++)
        if (strcmp(truth_cell(table, row, of->keys[i]),
                   truth_cell(bounds, bound, of->keys[i])) != 0)
            return false;
    return true;
}

uint32_t kernelrows_within(const kernelrows *of, const truth_table *table,
                           const truth_table *bounds, uint32_t bound,
                           const char *name)
{
    double error[MOST_ROWS];
    uint32_t n = 0;
    for (uint32_t row = 0; row < table->n_rows; row++) {
        if (!is_of(of, table, row, bounds, bound))
            continue;
        ck_assert_uint_lt(n, MOST_ROWS);
        error[n++] = fabs(of->told_us(table, row) /
                              kernelrows_number(table, row, "microseconds") -
                          1);
    }
    truth_errors(of->group, name, error, n,
                 truth_number(bounds, bound, "median"),
                 truth_number(bounds, bound, "most"));
    return n;
}

void kernelrows_check(const kernelrows *of, const char *rows,
                      const char *bounds_name)
{
    truth_table table, bounds;
    uint32_t n = 0;
    truth_read_here(rows, &table);
    truth_read_here(bounds_name, &bounds);
    for (uint32_t bound = 0; bound < bounds.n_rows; bound++) {
        char name[96] = "";
        for (uint32_t i = 0; i < n_keys(of); i++) {
            size_t at = strlen(name);
            snprintf(name + at, sizeof name - at, "%s%s", i > 0 ? ", " : "",
                     truth_cell(&bounds, bound, of->keys[i]));
        }
        n += kernelrows_within(of, &table, &bounds, bound, name);
    }
    ck_assert_uint_eq(n, table.n_rows);
}

double kernelrows_hot(const ms_device *device, double bytes, double again)
{
    bool halves =
        device->compute_capability == 80 || device->compute_capability == 90;
    double cached =
        ms_memorytime_cached_share(device, halves ? 2 * again : again);
    return bytes * (1 - cached) +
           ms_memorytime_cached_ns(device, bytes * cached) /
               ms_producttime_moved_ns(device, 1);
}

double kernelrows_moved(const ms_device *device, ms_product_shape s,
                        double width)
{
    double bytes = 2 * s.m * s.n + width * (s.m * s.k + s.n * s.k);
    return kernelrows_hot(device, bytes,
                          bytes + width * (WEIGHTS - 1) * s.n * s.k);
}
