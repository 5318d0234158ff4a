/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Times of matrix products and of attention on devices that were measured
 * (products.tsv, attentions.tsv; in fp8 and grouped, fp8products.tsv and
 * groupedproducts.tsv, and convolutions.tsv, by productbounds.tsv): the median
 * error, and that of 95 of 100. */
#include "graphs/machines/times/convolutiontime.h"
#include "tests/tests.h"
#include "tests/truth/kernelrows.h"

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

static const ms_device *device_of(const char *name)
{
    const ms_device *device = NULL;
    ms_fault fault = {0};
    ck_assert_int_eq(ms_device_find(name, &device, &fault), MS_OK);
    return device;
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
        ms_product_shape shape = {1, kernelrows_number(&table, row, "m"),
                                  kernelrows_number(&table, row, "n"),
                                  kernelrows_number(&table, row, "k")};
        if (strcmp(truth_cell(&table, row, "device"), devices[_i]) == 0)
            add(&all,
                ms_producttime_ns(device, shape, device->half_flops,
                                  kernelrows_moved(device, shape, 2),
                                  MS_UNIT_TENSOR) /
                    1e3,
                kernelrows_number(&table, row, "microseconds"));
    }
    snprintf(name, sizeof name, "%s, product, half", devices[_i]);
    within(&all, name, 8, 30);
    truth_end();
}
END_TEST

/* ---- fp8, experts, convolutions ------------------------------------------ */

static double fp8_us(const truth_table *table, uint32_t row)
{
    const ms_device *device = kernelrows_device(table, row);
    ms_product_shape shape = {1, kernelrows_number(table, row, "m"),
                              kernelrows_number(table, row, "n"),
                              kernelrows_number(table, row, "k")};
    return ms_producttime_ns(device, shape, device->fp8_flops,
                             kernelrows_moved(device, shape, 1), MS_UNIT_FP8) /
               1e3 +
           kernelrows_number(table, row, "beside");
}

static double grouped_us(const ms_device *device, ms_product_shape s,
                         bool turned)
{
    if (turned)
        s = (ms_product_shape){s.batch, s.n, s.m, s.k};
    double bytes = 2 * s.batch * (s.m * s.n + s.m * s.k + s.n * s.k);
    return ms_producttime_ns(device, s,
                             device->half_flops * device->product.grouped_share,
                             bytes, MS_UNIT_TENSOR) /
           1e3;
}

static double experts_us(const truth_table *table, uint32_t row)
{
    const ms_device *device = kernelrows_device(table, row);
    double experts = kernelrows_number(table, row, "experts");
    double rows = kernelrows_number(table, row, "rows");
    double hidden = kernelrows_number(table, row, "hidden");
    double inner = kernelrows_number(table, row, "inner");
    double ups = kernelrows_number(table, row, "ups");
    bool turned = truth_number(table, row, "turned") != 0;
    ms_product_shape up = {experts, rows, ups * inner, hidden};
    ms_product_shape down = {experts, rows, hidden, inner};
    return grouped_us(device, up, turned) + grouped_us(device, down, turned) +
           kernelrows_number(table, row, "beside");
}

static double convolution_us(const truth_table *table, uint32_t row)
{
    static const char *const passes[MS_N_CONVOLUTION_PASSES] = {
        "forward", "input", "weight"};
    const ms_device *device = kernelrows_device(table, row);
    uint32_t pass = 0;
    bool half = strcmp(truth_cell(table, row, "kind"), "half") == 0;
    while (strcmp(passes[pass], truth_cell(table, row, "pass")) != 0)
        ck_assert_uint_lt(++pass, MS_N_CONVOLUTION_PASSES);
    const ms_convolution convolution = {
        .product = {1, kernelrows_number(table, row, "m"),
                    kernelrows_number(table, row, "n"),
                    kernelrows_number(table, row, "k")},
        .pass = (ms_convolution_pass)pass,
        .taps = kernelrows_number(table, row, "taps"),
        .stride = kernelrows_number(table, row, "stride"),
        .side = kernelrows_number(table, row, "side"),
        .is_three = truth_number(table, row, "three") != 0};
    return ms_convolutiontime_ns(device, &convolution,
                                 half ? device->half_flops
                                      : device->fp32_flops * device->fp32_share,
                                 0, half ? MS_UNIT_TENSOR : MS_UNIT_PLAIN) /
           1e3;
}

static const struct {
    const char *rows;
    kernelrows of;
} tables[] = {
    {"fp8products.tsv", {"products", {"device"}, fp8_us}},
    {"groupedproducts.tsv", {"products", {"device"}, experts_us}},
    {"convolutions.tsv", {"products", {"device", "kind"}, convolution_us}},
};

START_TEST(kinds)
{
    truth_table bounds, rows;
    truth_begin();
    truth_read_here("productbounds.tsv", &bounds);
    for (uint32_t bound = 0; bound < bounds.n_rows; bound++) {
        char name[96];
        const char *kind = truth_cell(&bounds, bound, "kind");
        uint32_t at = strcmp(kind, "fp8") == 0       ? 0
                      : strcmp(kind, "grouped") == 0 ? 1
                                                     : 2;
        truth_read_here(tables[at].rows, &rows);
        snprintf(name, sizeof name, at == 2 ? "%s, convolution, %s" : "%s, %s",
                 truth_cell(&bounds, bound, "device"), kind);
        kernelrows_within(&tables[at].of, &rows, &bounds, bound, name);
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
    double flops, keys = kernelrows_number(table, row, "sequence");
    double head = kernelrows_number(table, row, "head");
    while (strcmp(names[code], truth_cell(table, row, "kernel")) != 0)
        ck_assert_uint_lt(++code, MS_N_ATTENTION_CODES);
    if (truth_number(table, row, "causal") != 0)
        keys /= 2;
    double tokens = 16384, channels = 2048; /* of FlashAttention's benchmark */
    flops = 4 * tokens * channels * keys;
    const ms_attention_shape shape = {kernelrows_number(table, row, "sequence"),
                                      keys, head, 0};
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
        const ms_device *device = kernelrows_device(&table, row);
        add(&all, kernelrows_number(&table, row, "tflops"),
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
