/* SPDX-License-Identifier: GPL-3.0-or-later */
/* More bytes never take less time, on any device and by any kernel that the
 * memory bounds, nor do longer rows of them.  Rows of softmax that begin at a
 * multiple of 16 bytes are faster than shorter ones that do not (SoftMax.cu),
 * so that they grow by that much; those that a warp has are slower, for their
 * gradient, than those of a block. */
#include "graphs/machines/times/memorytime.h"
#include "tests/laws/laws.h"
#include "tests/tests.h"

#include <math.h>

#define N_SIZES 4000
#define WARP_ROW 2048

static double some(laws_random *random, uint32_t bits)
{
    uint32_t most = 1u << (1 + laws_below(random, bits));
    return 1 + laws_below(random, most);
}

/* Of a norm or softmax of fp32: what is read and written grows with rows. */
static double ns_of(const ms_device *device, ms_memory_kernel kernel,
                    double rows, double row)
{
    return ms_memorytime_ns(device, kernel, 8 * rows * row, row, 4);
}

START_TEST(more_takes_longer)
{
    laws_random random = {laws_seed = 99 + (uint64_t)_i};
    const ms_device *device = ms_devicerows_at((uint32_t)_i);
    ck_assert_ptr_nonnull(device);
    for (uint32_t i = 0; i < N_SIZES; i++) {
        uint32_t kernel = laws_below(&random, MS_N_MEMORY_KERNELS);
        double size[2] = {some(&random, 20), some(&random, 17)};
        double more[2] = {size[0], size[1]};
        uint32_t grows = laws_below(&random, 2);
        bool softmax =
            kernel == MS_ROWS_SOFTMAX || kernel == MS_ROWS_SOFTMAX_BACKWARD;
        more[grows] += (softmax && grows == 1 ? 4 : 1) * some(&random, 17);
        if (kernel == MS_ROWS_REGISTERS_BACKWARD && size[1] <= WARP_ROW)
            more[1] = fmin(more[1], WARP_ROW);
        double before =
            ns_of(device, (ms_memory_kernel)kernel, size[0], size[1]);
        double after =
            ns_of(device, (ms_memory_kernel)kernel, more[0], more[1]);
        ck_assert_double_gt(before, (double)device->kernel_ns);
        ck_assert_msg(after >= before * (1 - 1e-12),
                      "%s, kernel %u: %g x %g, %g x %g", device->name, kernel,
                      size[0], size[1], more[0], more[1]);
    }
}
END_TEST

/* The worked example of memorytime.h. */
START_TEST(by_hand)
{
    const ms_device *a100 = NULL;
    ms_fault fault = {0};
    ck_assert_int_eq(ms_device_find("a100-40gb-pcie", &a100, &fault), MS_OK);
    double bytes = 2.0 * 8192 * 8192 * 4;
    double cache = 40.0 * 1024 * 1024, in_cache = bytes / cache;
    double saved = 0.3 / (1 + in_cache * in_cache);
    double written = 0.15 / (1 + in_cache * in_cache);
    double ns = ms_memorytime_ns(a100, MS_ROWS_NORM, bytes, 8192, 4);
    double moved_ns = 1.5 * bytes / (1555e9 * 0.893) * 1e9;
    ck_assert_double_eq_tol(moved_ns, 579935, 1);
    ck_assert_double_eq_tol(ns, 1300 + moved_ns * (1 - saved), 1);
    ck_assert_double_eq_tol(ms_memorytime_ns(a100, MS_COLD, bytes, 8192, 4),
                            1300 + moved_ns / 1.5 * (1 - written), 1);
}
END_TEST

Suite *suite_memorytime(void)
{
    Suite *suite = suite_create("memorytime");
    TCase *tcase = tcase_create("memorytime");
    tcase_add_loop_test(tcase, more_takes_longer, 0, (int)ms_devices_n);
    tcase_add_test(tcase, by_hand);
    suite_add_tcase(suite, tcase);
    return suite;
}
