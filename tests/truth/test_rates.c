/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Times of kernels that nothing was fitted on (kernels.tsv; by
 * kernelbounds.tsv): the median error, and that of 95 of 100, by device, kind
 * and format. */
#include "graphs/machines/times/memorytime.h"
#include "graphs/machines/times/producttime.h"
#include "tests/tests.h"
#include "tests/truth/truth.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_ROWS 64u
#define HALF_BYTES 2.0
#define FP32_BYTES 4.0

/* A row's four numbers. */
typedef struct kernel {
    const ms_device *device;
    const char *format;
    double a, b, c, d;
} kernel;

static double number(const truth_table *table, uint32_t row, const char *column)
{
    return strtod(truth_cell(table, row, column), NULL);
}

static kernel kernel_at(const truth_table *table, uint32_t row)
{
    ms_fault fault = {0};
    kernel k = {.format = truth_cell(table, row, "format"),
                .a = number(table, row, "a"),
                .b = number(table, row, "b"),
                .c = number(table, row, "c"),
                .d = number(table, row, "d")};
    ck_assert_int_eq(
        ms_device_find(truth_cell(table, row, "device"), &k.device, &fault),
        MS_OK);
    return k;
}

static double product_ns(const kernel *k)
{
    const ms_device *device = k->device;
    bool half = strcmp(k->format, "half") == 0;
    ms_product_shape shape = {k->a, k->b, k->c, k->d};
    double elements = k->a * (k->b * k->c + k->b * k->d + k->c * k->d);
    return ms_producttime_ns(device, shape,
                             half ? device->half_flops
                                  : device->fp32_flops * device->fp32_share,
                             (half ? HALF_BYTES : FP32_BYTES) * elements,
                             half ? MS_UNIT_TENSOR : MS_UNIT_PLAIN);
}

static double attention_ns(const kernel *k)
{
    bool backward = strstr(k->format, "backward") != NULL;
    bool second = strncmp(k->format, "flash2", 6) == 0;
    double flops = (backward ? 10 : 4) * k->a * k->b * k->c * k->d;
    return ms_producttime_attention_ns(
        k->device, second ? MS_FLASH_2 : MS_FLASH_3, backward,
        (ms_attention_shape){k->b, k->c, k->d}, flops, k->device->half_flops);
}

static double told_us(const truth_table *table, uint32_t row)
{
    const kernel k = kernel_at(table, row);
    const char *kind = truth_cell(table, row, "kind");
    double ns = 0;
    if (strcmp(kind, "cast") == 0)
        ns = ms_memorytime_ns(k.device, MS_STREAM, k.a, 0, 0);
    else if (strncmp(k.format, "flash", 5) == 0)
        ns = attention_ns(&k);
    else
        ns = product_ns(&k);
    return ns / 1e3;
}

static bool is_of(const truth_table *table, uint32_t row,
                  const truth_table *bounds, uint32_t bound)
{
    static const char *const keys[] = {"device", "kind", "format"};
    for (uint32_t i = 0; i < 3; i++)
        if (strcmp(truth_cell(table, row, keys[i]),
                   truth_cell(bounds, bound, keys[i])) != 0)
            return false;
    return true;
}

static uint32_t check(const truth_table *table, const truth_table *bounds,
                      uint32_t bound)
{
    double error[MOST_ROWS];
    uint32_t n = 0;
    char name[96];
    for (uint32_t row = 0; row < table->n_rows; row++) {
        if (!is_of(table, row, bounds, bound))
            continue;
        ck_assert_uint_lt(n, MOST_ROWS);
        error[n++] =
            fabs(told_us(table, row) / number(table, row, "microseconds") - 1);
    }
    snprintf(
        name, sizeof name, "%s, %s, %s", truth_cell(bounds, bound, "device"),
        truth_cell(bounds, bound, "kind"), truth_cell(bounds, bound, "format"));
    truth_errors("kernels", name, error, n,
                 truth_number(bounds, bound, "median"),
                 truth_number(bounds, bound, "most"));
    return n;
}

START_TEST(kept_back)
{
    truth_table table, bounds;
    uint32_t n = 0;
    truth_begin();
    truth_read_here("kernels.tsv", &table);
    truth_read_here("kernelbounds.tsv", &bounds);
    for (uint32_t bound = 0; bound < bounds.n_rows; bound++)
        n += check(&table, &bounds, bound);
    ck_assert_uint_eq(n, table.n_rows);
    truth_end();
}
END_TEST

Suite *suite_rates(void)
{
    Suite *suite = suite_create("rates");
    TCase *tcase = tcase_create("rates");
    tcase_add_test(tcase, kept_back);
    suite_add_tcase(suite, tcase);
    return suite;
}
