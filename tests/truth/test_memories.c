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

static double told_us(const truth_table *table, uint32_t row)
{
    return ms_memorytime_ns(kernelrows_device(table, row),
                            kernel_of(truth_cell(table, row, "kernel")),
                            kernelrows_number(table, row, "bytes"),
                            kernelrows_number(table, row, "row"),
                            kernelrows_number(table, row, "width")) /
           1e3;
}

START_TEST(kept_back)
{
    const kernelrows of = {"memory", {"device", "kernel"}, told_us};
    truth_begin();
    kernelrows_check(&of, "memory.tsv", "memorybounds.tsv");
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
