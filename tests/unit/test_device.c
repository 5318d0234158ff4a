/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "graphs/graphs.h"
#include "tests/tests.h"

#include <string.h>

static const ms_device *find(const char *name)
{
    const ms_device *device = NULL;
    ms_fault fault = {0};
    ck_assert_int_eq(ms_device_find(name, &device, &fault), MS_OK);
    ck_assert_ptr_nonnull(device);
    return device;
}

START_TEST(finds_by_name_and_alias)
{
    static const char *const aliases[][2] = {
        {"h100", "h100-80gb-sxm"},  {"a100", "a100-80gb-sxm"},
        {"4090", "rtx4090-24gb"},   {"3090", "rtx3090-24gb"},
        {"v100", "v100-32gb-sxm2"}, {"h200", "h200-141gb-sxm"},
        {"b200", "b200-180gb-sxm"}, {"l40s", "l40s-48gb"},
        {"t4", "t4-16gb"},          {"a6000", "rtxa6000-48gb"},
        {"mi300x", "mi300x-192gb"}};
    for (size_t i = 0; i < sizeof aliases / sizeof *aliases; i++) {
        ck_assert_str_eq(find(aliases[i][0])->name, aliases[i][1]);
        ck_assert_ptr_eq(find(aliases[i][0]), find(aliases[i][1]));
    }
}
END_TEST

START_TEST(h100_is_as_its_file_says)
{
    const ms_device *h100 = find("h100");
    /* 79.18 GiB, 500 MiB, 32 MiB; 3350 GB/s; 989 TFLOP/s; 55 GB/s */
    ck_assert_uint_eq(h100->memory_bytes, UINT64_C(85018877624));
    ck_assert_uint_eq(h100->context_bytes, UINT64_C(500) << 20);
    ck_assert_uint_eq(h100->cublas_workspace_bytes, UINT64_C(32) << 20);
    ck_assert_uint_eq(h100->launch_ns, 5000);
    ck_assert_uint_eq(h100->kernel_ns, 1500);
    ck_assert_double_eq(h100->hbm_bytes_per_s, 3350e9);
    ck_assert_double_eq(h100->fp32_flops, 67e12);
    ck_assert_double_eq(h100->tf32_flops, 494.5e12);
    ck_assert_double_eq(h100->half_flops, 989e12);
    ck_assert_double_eq(h100->h2d_bytes_per_s, 55e9);
    ck_assert_ptr_nonnull(strstr(h100->source, "datasheet"));
}
END_TEST

START_TEST(all_rows_are_plausible)
{
    ck_assert_uint_ge(ms_devices_n, 17);
    for (uint32_t i = 0; i < ms_devices_n; i++) {
        const ms_device *d = &ms_devices[i];
        ck_assert_str_ne(d->name, "");
        ck_assert_str_ne(d->source, "");
        ck_assert_uint_gt(d->memory_bytes, UINT64_C(10) << 30);
        ck_assert_uint_lt(d->context_bytes, UINT64_C(2) << 30);
        ck_assert_double_ge(d->half_flops, d->fp32_flops);
        ck_assert_double_ge(d->tf32_flops, d->fp32_flops);
        ck_assert_double_gt(d->hbm_bytes_per_s, d->h2d_bytes_per_s);
        ck_assert_double_gt(d->d2h_bytes_per_s, 0);
        for (uint32_t j = 0; j < i; j++)
            ck_assert_str_lt(ms_devices[j].name, d->name);
    }
}
END_TEST

START_TEST(unknown_names_get_a_hint)
{
    const ms_device *device = NULL;
    ms_fault fault = {0};
    ck_assert_int_eq(ms_device_find("h10", &device, &fault), MS_EUSAGE);
    ck_assert_ptr_nonnull(strstr(fault.hint, "\"h100\""));
    fault = (ms_fault){0};
    ck_assert_int_eq(ms_device_find("", &device, &fault), MS_EUSAGE);
    ck_assert_ptr_nonnull(strstr(fault.hint, "help devices"));
}
END_TEST

Suite *suite_device(void)
{
    Suite *suite = suite_create("device");
    TCase *tcase = tcase_create("device");
    tcase_add_test(tcase, finds_by_name_and_alias);
    tcase_add_test(tcase, h100_is_as_its_file_says);
    tcase_add_test(tcase, all_rows_are_plausible);
    tcase_add_test(tcase, unknown_names_get_a_hint);
    suite_add_tcase(suite, tcase);
    return suite;
}
