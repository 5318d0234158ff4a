/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Times of matrix products and of attention on devices that were measured
 * (products.tsv, attentions.tsv; in fp8 and grouped, fp8products.tsv and
 * groupedproducts.tsv, and convolutions.tsv, by productbounds.tsv): the median
 * error, and that of 95 of 100. */
#include "graphs/machines/times/convolutiontime.h"
#include "tests/tests.h"
#include "tests/truth/truth.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_ROWS 1024u

static const char *const devices[] = {"h100-80gb-sxm", "a100-80gb-sxm",
                                      "h200-141gb-sxm", "b200-180gb-sxm"};
#define N_DEVICES (sizeof devices / sizeof *devices)

typedef struct errors {
    double error[MOST_ROWS];
    uint32_t n;
} errors;

static void add(errors *all, double told, double measured)
{
    ck_assert_uint_lt(all->n, MOST_ROWS);
    all->error[all->n++] = fabs(told / measured - 1);
}

static void within(errors *all, const char *name, uint64_t median,
                   uint64_t most)
{
    truth_errors("products", name, all->error, all->n, median, most);
}

static void within_bound(errors *all, const char *name,
                         const truth_table *bounds, uint32_t bound)
{
    within(all, name, truth_number(bounds, bound, "median"),
           truth_number(bounds, bound, "most"));
}

static const ms_device *device_of(const char *name)
{
    const ms_device *device = NULL;
    ms_fault fault = {0};
    ck_assert_int_eq(ms_device_find(name, &device, &fault), MS_OK);
    return device;
}

static double number(const truth_table *table, uint32_t row, const char *column)
{
    return strtod(truth_cell(table, row, column), NULL);
}

static double bytes_of(ms_product_shape s)
{
    return 2 * (s.m * s.n + s.m * s.k + s.n * s.k);
}

START_TEST(products)
{
    char name[96];
    truth_table table;
    errors all = {.n = 0};
    truth_begin();
    truth_read_here("products.tsv", &table);
    const ms_device *device = device_of(devices[_i]);
    for (uint32_t row = 0; row < table.n_rows; row++) {
        ms_product_shape shape = {1, number(&table, row, "m"),
                                  number(&table, row, "n"),
                                  number(&table, row, "k")};
        if (strcmp(truth_cell(&table, row, "device"), devices[_i]) == 0)
            add(&all,
                ms_producttime_ns(device, shape, device->half_flops,
                                  bytes_of(shape), MS_UNIT_TENSOR) /
                    1e3,
                number(&table, row, "microseconds"));
    }
    snprintf(name, sizeof name, "%s, product, half", devices[_i]);
    within(&all, name, 8, 30);
    truth_end();
}
END_TEST

/* ---- fp8, experts, convolutions ------------------------------------------ */

static double product_us(const ms_device *device, ms_product_shape s,
                         ms_product_unit unit)
{
    bool fp8 = unit == MS_UNIT_FP8;
    double flops_per_s =
        fp8 ? device->fp8_flops
            : device->half_flops * device->product.grouped_share;
    double bytes =
        s.batch * (2 * s.m * s.n + (fp8 ? 1 : 2) * (s.m * s.k + s.n * s.k));
    return ms_producttime_ns(device, s, flops_per_s, bytes, unit) / 1e3;
}

static double fp8_us(const ms_device *device, const truth_table *table,
                     uint32_t row)
{
    ms_product_shape shape = {1, number(table, row, "m"),
                              number(table, row, "n"), number(table, row, "k")};
    return product_us(device, shape, MS_UNIT_FP8);
}

static double experts_us(const ms_device *device, const truth_table *table,
                         uint32_t row)
{
    double experts = number(table, row, "experts");
    double rows = number(table, row, "rows");
    double hidden = number(table, row, "hidden");
    double inner = number(table, row, "inner");
    ms_product_shape up = {experts, rows, 2 * inner, hidden};
    ms_product_shape down = {experts, rows, hidden, inner};
    return product_us(device, up, MS_UNIT_TENSOR) +
           product_us(device, down, MS_UNIT_TENSOR);
}

static double convolution_us(const ms_device *device, const truth_table *table,
                             uint32_t row)
{
    static const char *const passes[MS_N_CONVOLUTION_PASSES] = {
        "forward", "input", "weight"};
    uint32_t pass = 0;
    bool half = strcmp(truth_cell(table, row, "format"), "half") == 0;
    while (strcmp(passes[pass], truth_cell(table, row, "pass")) != 0)
        ck_assert_uint_lt(++pass, MS_N_CONVOLUTION_PASSES);
    const ms_convolution convolution = {
        .product = {1, number(table, row, "m"), number(table, row, "n"),
                    number(table, row, "k")},
        .pass = (ms_convolution_pass)pass,
        .taps = number(table, row, "taps"),
        .stride = number(table, row, "stride"),
        .side = number(table, row, "side"),
        .is_three = truth_number(table, row, "three") != 0};
    return ms_convolutiontime_ns(device, &convolution,
                                 half ? device->half_flops
                                      : device->fp32_flops * device->fp32_share,
                                 0, half ? MS_UNIT_TENSOR : MS_UNIT_PLAIN) /
           1e3;
}

static void check_convolutions(const truth_table *bounds, uint32_t bound)
{
    truth_table table;
    errors all = {.n = 0};
    char name[96];
    const char *device = truth_cell(bounds, bound, "device");
    const char *format = truth_cell(bounds, bound, "kind");
    truth_read_here("convolutions.tsv", &table);
    for (uint32_t row = 0; row < table.n_rows; row++)
        if (strcmp(truth_cell(&table, row, "device"), device) == 0 &&
            strcmp(truth_cell(&table, row, "format"), format) == 0)
            add(&all, convolution_us(device_of(device), &table, row),
                number(&table, row, "microseconds"));
    snprintf(name, sizeof name, "%s, convolution, %s", device, format);
    within_bound(&all, name, bounds, bound);
}

/* The rows of one device and kind. */
static void check_kind(const truth_table *bounds, uint32_t bound)
{
    truth_table table;
    errors all = {.n = 0};
    char name[96];
    const char *device = truth_cell(bounds, bound, "device");
    const char *kind = truth_cell(bounds, bound, "kind");
    bool fp8 = strcmp(kind, "fp8") == 0;
    truth_read_here(fp8 ? "fp8products.tsv" : "groupedproducts.tsv", &table);
    for (uint32_t row = 0; row < table.n_rows; row++) {
        if (strcmp(truth_cell(&table, row, "device"), device) != 0)
            continue;
        double us = fp8 ? fp8_us(device_of(device), &table, row)
                        : experts_us(device_of(device), &table, row);
        add(&all, us + number(&table, row, "beside"),
            number(&table, row, "microseconds"));
    }
    snprintf(name, sizeof name, "%s, %s", device, kind);
    within_bound(&all, name, bounds, bound);
}

START_TEST(kinds)
{
    truth_table bounds;
    truth_begin();
    truth_read_here("productbounds.tsv", &bounds);
    for (uint32_t bound = 0; bound < bounds.n_rows; bound++) {
        const char *kind = truth_cell(&bounds, bound, "kind");
        bool product = strcmp(kind, "fp8") == 0 || strcmp(kind, "grouped") == 0;
        (product ? check_kind : check_convolutions)(&bounds, bound);
    }
    truth_end();
}
END_TEST

/* ---- attention ----------------------------------------------------------- */

static double tflops_of(const ms_device *device, const truth_table *table,
                        uint32_t row)
{
    static const char *const names[MS_N_ATTENTION_CODES] = {
        "flash1", "flash2", "flash3", "efficient"};
    uint32_t code = 0;
    double flops, keys = number(table, row, "sequence");
    double head = number(table, row, "head");
    while (strcmp(names[code], truth_cell(table, row, "kernel")) != 0)
        ck_assert_uint_lt(++code, MS_N_ATTENTION_CODES);
    if (truth_number(table, row, "causal") != 0)
        keys /= 2;
    double tokens = 16384, channels = 2048; /* of FlashAttention's benchmark */
    flops = 4 * tokens * channels * keys;
    const ms_attention_shape shape = {number(table, row, "sequence"), keys,
                                      head};
    double ns =
        ms_producttime_attention_ns(device, (ms_attention_code)code, false,
                                    shape, flops, device->half_flops);
    if (strcmp(truth_cell(table, row, "pass"), "both") == 0) {
        ns +=
            ms_producttime_attention_ns(device, (ms_attention_code)code, true,
                                        shape, 2.5 * flops, device->half_flops);
        flops *= 3.5;
    }
    return flops / ns / 1e3;
}

START_TEST(attentions)
{
    truth_table table;
    errors all = {.n = 0};
    truth_begin();
    truth_read_here("attentions.tsv", &table);
    for (uint32_t row = 0; row < table.n_rows; row++) {
        const ms_device *device = device_of(truth_cell(&table, row, "device"));
        add(&all, number(&table, row, "tflops"),
            tflops_of(device, &table, row));
    }
    within(&all, "a100 and h100, attention, figures", 8, 30);
    truth_end();
}
END_TEST

Suite *suite_products(void)
{
    Suite *suite = suite_create("products");
    TCase *tcase = tcase_create("products");
    tcase_add_loop_test(tcase, products, 0, (int)N_DEVICES);
    tcase_add_test(tcase, kinds);
    tcase_add_test(tcase, attentions);
    suite_add_tcase(suite, tcase);
    return suite;
}
