/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Times of kernels that the memory bounds, on devices that were measured
 * (memory.tsv): the median error, and that of 95 of 100, by kernel.
 * memorybounds.tsv has what must hold. */
#include "graphs/machines/times/memorytime.h"
#include "tests/tests.h"
#include "tests/truth/kernelrows.h"

#include <string.h>

static const char *const kernels[MS_N_MEMORY_KERNELS] = {
    [MS_STREAM] = "stream",
    [MS_COLD] = "cold",
    [MS_SINGLE] = "single",
    [MS_SCATTERED] = "scattered",
    [MS_RANDOM] = "random",
    [MS_COLUMN_SUMS] = "columns",
    [MS_LISTS] = "lists",
    [MS_ROWS_NORM] = "norm",
    [MS_ROWS_NORM_BACKWARD] = "norm_backward",
    [MS_ROWS_RMS] = "rms",
    [MS_ROWS_RMS_BACKWARD] = "rms_backward",
    [MS_ROWS_CENTRED] = "centred",
    [MS_ROWS_CENTRED_BACKWARD] = "centred_backward",
    [MS_ROWS_SOFTMAX] = "softmax",
    [MS_ROWS_REGISTERS] = "registers",
    [MS_ROWS_REGISTERS_BACKWARD] = "registers_backward",
    [MS_ROWS_LOG] = "log",
    [MS_LOOKUP] = "lookup"};

static ms_memory_kernel kernel_of(const char *name)
{
    uint32_t kernel = 0;
    while (kernels[kernel] == NULL || strcmp(kernels[kernel], name) != 0)
        ck_assert_uint_lt(++kernel, MS_N_MEMORY_KERNELS);
    return (ms_memory_kernel)kernel;
}

/* gpu-benches goes over the same buffers of doubles again and again. */
#define HOT_WIDTH 8

static double hot_ns(const ms_device *device, double bytes)
{
    double cached = ms_memorytime_cached_share(device, bytes);
    return (double)device->kernel_ns +
           ms_memorytime_cached_ns(device, bytes * cached) +
           bytes * (1 - cached) * 1e9 /
               (device->hbm_bytes_per_s * device->memory.stream_share);
}

static double told_us(const truth_table *table, uint32_t row)
{
    const ms_device *device = kernelrows_device(table, row);
    double bytes = kernelrows_number(table, row, "bytes");
    if (truth_number(table, row, "width") == HOT_WIDTH)
        return hot_ns(device, bytes) / 1e3;
    return ms_memorytime_ns(device, kernel_of(truth_cell(table, row, "kernel")),
                            bytes, kernelrows_number(table, row, "row"),
                            kernelrows_number(table, row, "width")) /
               1e3 +
           kernelrows_number(table, row, "beside");
}

START_TEST(kept_back)
{
    const kernelrows of = {"memory", {"device", "kernel"}, told_us};
    truth_begin();
    kernelrows_check(&of, "memory.tsv", "memorybounds.tsv");
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
        "memory", {"half", "device", "kernel", "op"}, queued_us};
    truth_begin();
    kernelrows_check(&of, "h100memory.tsv", "h100memorybounds.tsv");
    truth_end();
}
END_TEST

Suite *suite_memories(void)
{
    Suite *suite = suite_create("memories");
    TCase *tcase = tcase_create("memories");
    tcase_add_test(tcase, kept_back);
    tcase_add_test(tcase, h100);
    suite_add_tcase(suite, tcase);
    return suite;
}
