/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Times of kernels that nothing was fitted on (kernels.tsv; by
 * kernelbounds.tsv): the median error, and that of 95 of 100, by device, kind
 * and format. */
#include "graphs/machines/times/memorytime.h"
#include "graphs/machines/times/producttime.h"
#include "tests/tests.h"
#include "tests/truth/kernelrows.h"

#include <math.h>
#include <string.h>

#define HALF_BYTES 2.0
#define FP32_BYTES 4.0

/* vLLM has FlashAttention 3 split the keys where blocks leave this share of the
 * multiprocessors idle and there are as many steps; at most so many parts, and
 * ns of the kernel that sums them (attention_fit.py). */
#define FULL 0.8
#define LEAST_STEPS 4.0
#define MOST_PARTS 16.0
#define SUM_NS 5000.0
#define KEYS_OF_STEP 128.0 /* half as many of wide heads */

/* A row's numbers. */
typedef struct kernel {
    const ms_device *device;
    const char *format;
    double a, b, c, d;
    double group; /* heads that share a head of keys */
} kernel;

static kernel kernel_at(const truth_table *table, uint32_t row)
{
    return (kernel){.device = kernelrows_device(table, row),
                    .format = truth_cell(table, row, "format"),
                    .a = kernelrows_number(table, row, "a"),
                    .b = kernelrows_number(table, row, "b"),
                    .c = kernelrows_number(table, row, "c"),
                    .d = kernelrows_number(table, row, "d"),
                    .group = kernelrows_number(table, row, "group")};
}

static double product_ns(const kernel *k, const char *kind)
{
    const ms_device *device = k->device;
    bool half = strcmp(k->format, "half") == 0;
    bool tf32 = strcmp(k->format, "tf32") == 0;
    ms_product_shape shape = {k->a, k->b, k->c, k->d};
    double elements = k->a * (k->b * k->c + k->b * k->d + k->c * k->d);
    double bytes = (half ? HALF_BYTES : FP32_BYTES) * elements;
    if (tf32)
        return ms_producttime_ns(device, shape,
                                 device->tf32_flops *
                                     (strcmp(kind, "gemm_wgrad") == 0
                                          ? ms_producttime_turned(device)
                                          : 1),
                                 bytes, MS_UNIT_TENSOR);
    if (strcmp(kind, "product") == 0)
        bytes = kernelrows_moved(device, shape, HALF_BYTES);
    return ms_producttime_ns(device, shape,
                             half ? device->half_flops
                                  : device->fp32_flops * device->fp32_share,
                             bytes, half ? MS_UNIT_TENSOR : MS_UNIT_PLAIN);
}

static double of_parts_ns(const kernel *k, const char *kind, double parts)
{
    bool backward = strstr(k->format, "backward") != NULL;
    bool second = strncmp(k->format, "flash2", 6) == 0;
    bool packs = !second && strncmp(kind, "cudnn", 5) != 0;
    double flops = (backward ? 10 : 4) * k->a * k->b * k->c * k->d;
    double bytes = 4 * k->a * k->b * k->d * (1 + 1 / k->group);
    const ms_attention_shape shape = {packs ? k->b * k->group : k->b,
                                      k->c / parts, k->d,
                                      kernelrows_hot(k->device, bytes, bytes)};
    return ms_producttime_attention_ns(
        k->device, second ? MS_FLASH_2 : MS_FLASH_3, backward, shape, flops,
        k->device->half_flops);
}

static double attention_ns(const kernel *k, const char *kind)
{
    double block = k->d > 96 ? 128 : 192;
    double blocks = k->a / k->group * ceil(k->b * k->group / block);
    double most = fmax(k->c, fmin(k->b, 2 * k->c));
    double ns = of_parts_ns(k, kind, 1);
    if (strcmp(k->format, "flash3") != 0 || strncmp(kind, "cudnn", 5) == 0 ||
        blocks >= FULL * k->device->multiprocessors ||
        most <= LEAST_STEPS * (k->d > 128 ? KEYS_OF_STEP / 2 : KEYS_OF_STEP))
        return ns;
    for (double parts = 2; parts <= MOST_PARTS; parts *= 2)
        ns = fmin(ns, SUM_NS + of_parts_ns(k, kind, parts));
    return ns;
}

static double told_us(const truth_table *table, uint32_t row)
{
    const kernel k = kernel_at(table, row);
    const char *kind = truth_cell(table, row, "kind");
    double ns = 0;
    if (strcmp(kind, "cast") == 0)
        ns = ms_memorytime_ns(k.device, MS_CAST, k.a, k.b, 3);
    else if (strncmp(k.format, "flash", 5) == 0)
        ns = attention_ns(&k, kind);
    else
        ns = product_ns(&k, kind);
    return ns / 1e3 + kernelrows_number(table, row, "beside");
}

START_TEST(kept_back)
{
    const kernelrows of = {"kernels", {"device", "kind", "format"}, told_us};
    truth_begin();
    kernelrows_check(&of, "kernels.tsv", "kernelbounds.tsv");
    truth_end();
}
END_TEST

static double queued_us(const truth_table *table, uint32_t row)
{
    return told_us(table, row) + kernelrows_queue_us(table, row);
}

/* One H100 with PyTorch 2.11, kernel by kernel, as the host queued them. */
START_TEST(h100)
{
    const kernelrows of = {
        "kernels", {"half", "device", "kind", "format"}, queued_us};
    truth_begin();
    kernelrows_check(&of, "h100kernels.tsv", "h100kernelbounds.tsv");
    truth_end();
}
END_TEST

Suite *suite_rates(void)
{
    Suite *suite = suite_create("rates");
    TCase *tcase = tcase_create("rates");
    tcase_add_test(tcase, kept_back);
    tcase_add_test(tcase, h100);
    suite_add_tcase(suite, tcase);
    return suite;
}
