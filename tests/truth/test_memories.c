/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Times of kernels that the memory bounds, on devices that were measured
 * (memory.tsv): the median error, and that of 95 of 100, by kernel.
 * memorybounds.tsv has what must hold. */
#include "graphs/machines/times/memorytime.h"
#include "tests/tests.h"
#include "tests/truth/truth.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_ROWS 64u

static const char *const kernels[MS_N_MEMORY_KERNELS] = {
    [MS_STREAM] = "stream",
    [MS_ROWS_NORM] = "norm",
    [MS_ROWS_NORM_BACKWARD] = "norm_backward",
    [MS_ROWS_SOFTMAX] = "softmax",
    [MS_LOOKUP] = "lookup"};

static ms_memory_kernel kernel_of(const char *name)
{
    uint32_t kernel = 0;
    while (kernels[kernel] == NULL || strcmp(kernels[kernel], name) != 0)
        ck_assert_uint_lt(++kernel, MS_N_MEMORY_KERNELS);
    return (ms_memory_kernel)kernel;
}

static double number(const truth_table *table, uint32_t row, const char *column)
{
    return strtod(truth_cell(table, row, column), NULL);
}

static double told_us(const truth_table *table, uint32_t row)
{
    const ms_device *device = NULL;
    ms_fault fault = {0};
    ck_assert_int_eq(
        ms_device_find(truth_cell(table, row, "device"), &device, &fault),
        MS_OK);
    return ms_memorytime_ns(device, kernel_of(truth_cell(table, row, "kernel")),
                            number(table, row, "bytes"),
                            number(table, row, "row"),
                            number(table, row, "width")) /
           1e3;
}

static bool same(const truth_table *a, uint32_t i, const truth_table *b,
                 uint32_t k, const char *column)
{
    return strcmp(truth_cell(a, i, column), truth_cell(b, k, column)) == 0;
}

static uint32_t check(const truth_table *table, const truth_table *bounds,
                      uint32_t bound)
{
    double error[MOST_ROWS];
    uint32_t n = 0;
    char name[96];
    for (uint32_t row = 0; row < table->n_rows; row++) {
        if (!same(table, row, bounds, bound, "device") ||
            !same(table, row, bounds, bound, "kernel"))
            continue;
        ck_assert_uint_lt(n, MOST_ROWS);
        error[n++] =
            fabs(told_us(table, row) / number(table, row, "microseconds") - 1);
    }
    snprintf(name, sizeof name, "%s, %s", truth_cell(bounds, bound, "device"),
             truth_cell(bounds, bound, "kernel"));
    truth_errors("memory", name, error, n,
                 truth_number(bounds, bound, "median"),
                 truth_number(bounds, bound, "most"));
    return n;
}

START_TEST(kept_back)
{
    truth_table table, bounds;
    uint32_t n = 0;
    truth_begin();
    truth_read_here("memory.tsv", &table);
    truth_read_here("memorybounds.tsv", &bounds);
    for (uint32_t bound = 0; bound < bounds.n_rows; bound++)
        n += check(&table, &bounds, bound);
    ck_assert_uint_eq(n, table.n_rows);
    truth_end();
}
END_TEST

Suite *suite_memories(void)
{
    Suite *suite = suite_create("memories");
    TCase *tcase = tcase_create("memories");
    tcase_add_test(tcase, kept_back);
    suite_add_tcase(suite, tcase);
    return suite;
}
