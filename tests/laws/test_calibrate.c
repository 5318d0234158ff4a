/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What a device's own clock says of kernels, measured: a fit gives that device
 * back, whatever device it began with. */
#include "graphs/device.h"
#include "tests/tests.h"
#include "tools/calibrate/ratefit.h"

#include <math.h>

static ms_arena arena;
static ms_fault fault;

static void add(ms_measurements *all, const ms_device *clock, ms_measured row)
{
    row.ns = ms_measured_predict(clock, &row, all->in_step);
    ck_assert_int_eq(ms_measured_add(all, &row, &fault), MS_OK);
}

/* Products of 64 shapes, attention, each kind that moves bytes, copies. */
static ms_measurements measure(const ms_device *clock, bool in_step)
{
    ms_measurements all = {
        .source = "law", .arena = &arena, .in_step = in_step};
    for (uint32_t i = 0; i < 64; i++)
        add(&all, clock,
            ms_measured_product("gemm",
                                (ms_product_shape){1, 256 << i % 4,
                                                   768 << i / 4 % 4,
                                                   512 << i / 16},
                                2));
    for (uint32_t i = 0; i < 16; i++)
        add(&all, clock,
            ms_measured_attention("flash", MS_FLASH_2, i % 2 > 0, 32,
                                  512 << i / 4, 512 << i / 4, 64 << i / 2 % 2,
                                  true));
    for (uint32_t i = 0; i < 12 * MS_N_MEMORY_KINDS; i++)
        add(&all, clock,
            (ms_measured){.op = "op",
                          .kind = (uint8_t)(MS_RATE_POINTWISE + i / 12),
                          .bytes = 4096.0 * (double)(1 << i % 12 * 3 / 2)});
    for (uint32_t i = 0; i < 4; i++)
        add(&all, clock,
            (ms_measured){.op = "copy",
                          .kind = (uint8_t)(MS_RATE_TO_DEVICE + i % 2),
                          .to_host = i % 2 > 0,
                          .bytes = 1e6 * (1 + i)});
    ck_assert_int_eq(ms_measured_settle(&all, &fault), MS_OK);
    return all;
}

static double worst(const ms_measurements *all, const ms_device *device)
{
    double most = 0;
    for (uint32_t kind = 0; kind < MS_N_RATE_KINDS; kind++) {
        ms_measured_error error;
        ck_assert_int_eq(ms_measured_judge(all, device, (ms_rate_kind)kind,
                                           true, &error, &fault),
                         MS_OK);
        most = fmax(most, error.median);
    }
    return most;
}

START_TEST(own_clock_changes_nothing)
{
    for (uint32_t i = 0; i < ms_devices_n; i++)
        for (int in_step = 0; in_step < 2; in_step++) {
            const ms_device *device = ms_devicerows_at(i);
            ms_measurements all = measure(device, in_step > 0);
            ms_ratefit fit;
            ck_assert_int_eq(ms_ratefit_run(&all, device, &fit, &fault), MS_OK);
            ck_assert_msg(fit.n_changes == 0, "%s: %s changes", device->name,
                          fit.changes[0].key);
            for (uint32_t k = 0; k < MS_N_MEMORY_KINDS; k++)
                ck_assert(!fit.new_curves[k]);
            ms_arena_reset(&arena);
        }
}
END_TEST

/* From every device to an A100 whose clock goes otherwise. */
START_TEST(another_clock_is_found)
{
    ms_device clock = *ms_devicerows_at(0);
    const ms_device *a100;
    ck_assert_int_eq(ms_device_find("a100", &a100, &fault), MS_OK);
    clock = *a100;
    for (uint32_t i = 0; i < MS_N_TILES; i++)
        clock.product.tile_share[i] *= 0.75;
    clock.attention_share[MS_FLASH_2][0] = 0.5;
    clock.attention_share[MS_FLASH_2][1] = 0.4;
    clock.h2d_bytes_per_s = 20e9;
    for (uint32_t i = 0; i < ms_devices_n; i++) {
        const ms_device *like = ms_devicerows_at(i);
        ms_measurements all = measure(&clock, false);
        ms_ratefit fit;
        if (like->half_flops != a100->half_flops)
            continue;
        double before = worst(&all, like);
        ck_assert_int_eq(ms_ratefit_run(&all, like, &fit, &fault), MS_OK);
        ck_assert_double_lt(worst(&all, &fit.device), 0.06);
        ck_assert_double_lt(worst(&all, &fit.device), before);
        ck_assert_double_eq_tol(fit.device.h2d_bytes_per_s, 20e9, 1e7);
        ms_arena_reset(&arena);
    }
}
END_TEST

/* One kind alone was measured: the other numbers stay. */
START_TEST(what_was_not_measured_stays)
{
    const ms_device *like;
    ms_measurements all = {.source = "law", .arena = &arena};
    ms_ratefit fit;
    ck_assert_int_eq(ms_device_find("h100", &like, &fault), MS_OK);
    ms_device slower = *like;
    slower.attention_share[MS_FLASH_2][1] *= 0.5;
    for (uint32_t i = 0; i < 6; i++)
        add(&all, &slower,
            ms_measured_attention("flash", MS_FLASH_2, true, 16, 1024 << i,
                                  1024 << i, 128, false));
    ck_assert_int_eq(ms_measured_settle(&all, &fault), MS_OK);
    ck_assert_int_eq(ms_ratefit_run(&all, like, &fit, &fault), MS_OK);
    ck_assert_uint_eq(fit.n_changes, 1);
    ck_assert_str_eq(fit.changes[0].key, "flash2_backward");
    ck_assert_double_eq_tol(fit.changes[0].after,
                            slower.attention_share[MS_FLASH_2][1], 2e-3);
    ms_arena_reset(&arena);
}
END_TEST

static void end(void)
{
    ms_arena_free(&arena);
}

Suite *suite_calibrate(void)
{
    Suite *suite = suite_create("calibrate");
    TCase *tests = tcase_create("laws");
    tcase_add_checked_fixture(tests, NULL, end);
    tcase_add_test(tests, own_clock_changes_nothing);
    tcase_add_test(tests, another_clock_is_found);
    tcase_add_test(tests, what_was_not_measured_stays);
    suite_add_tcase(suite, tests);
    return suite;
}
