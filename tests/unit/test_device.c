/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The table of devices, and devices that users write. */
#include "graphs/device.h"
#include "sim/replay/collective.h"
#include "tests/tests.h"
#include "tests/unit/folder.h"
#include "tools/cli/commands.h"

#include <stdio.h>
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
    ck_assert_uint_eq(h100->kernel_ns, 1300);
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
        const ms_device *d = ms_devicerows_at(i);
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

/* ---- files --------------------------------------------------------------- */

static ms_err read_device(const char *json, ms_arena *arena,
                          const ms_device **device, ms_fault *fault)
{
    char path[512];
    snprintf(path, sizeof path, "%s/mine.json", folder_open());
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    fputs(json, file);
    fclose(file);
    ms_err err = ms_device_read(path, arena, device, fault);
    folder_close();
    return err;
}

static void same_curves(const ms_device *a, const ms_device *b)
{
    ck_assert_uint_eq(a->n_curves, b->n_curves);
    for (uint32_t i = 0; i < a->n_curves; i++) {
        ck_assert_uint_eq(a->curves[i].ranks, b->curves[i].ranks);
        ck_assert_uint_eq(a->curves[i].kind, b->curves[i].kind);
        ck_assert_uint_eq(a->curves[i].n, b->curves[i].n);
        for (uint32_t j = 0; j < a->curves[i].n; j++) {
            const ms_curve_point *p = &a->curves[i].points[j];
            const ms_curve_point *q = &b->curves[i].points[j];
            ck_assert_uint_eq(p->bytes, q->bytes);
            ck_assert_double_eq(p->bytes_per_s, q->bytes_per_s);
        }
    }
}

/* The source tree's files, read as a user's, are the built-in rows. */
START_TEST(built_in_files_read_the_same)
{
    for (uint32_t i = 0; i < ms_devices_n; i++) {
        char relative[128], path[TESTS_PATH];
        ms_arena arena = {0};
        ms_fault fault = {0};
        const ms_device *built = ms_devicerows_at(i), *read = NULL;
        snprintf(relative, sizeof relative, "graphs/devices/%s.json",
                 built->name);
        tests_source(relative, path);
        ck_assert_msg(ms_device_read(path, &arena, &read, &fault) == MS_OK,
                      "%s: %s", path, fault.what);
        ms_device copy = *read;
        ck_assert_str_eq(copy.name, built->name);
        ck_assert_str_eq(copy.source, built->source);
        ck_assert_str_eq(copy.host_memory_source, built->host_memory_source);
        ck_assert_double_eq_tol(copy.matmul_share, built->matmul_share, 1e-12);
        ck_assert_double_eq_tol(copy.fp8_matmul_share, built->fp8_matmul_share,
                                1e-12);
        same_curves(&copy, built);
        copy.name = built->name;
        copy.alias = built->alias;
        copy.source = built->source;
        copy.host_memory_source = built->host_memory_source;
        copy.matmul_share = built->matmul_share;
        copy.fp8_matmul_share = built->fp8_matmul_share;
        copy.curves = built->curves;
        ck_assert_mem_eq(&copy, built, sizeof copy);
        ms_arena_free(&arena);
    }
}
END_TEST

START_TEST(keys_not_given_take_their_defaults)
{
    ms_arena arena = {0};
    ms_fault fault = {0};
    const ms_device *d = NULL;
    ck_assert_int_eq(read_device("{\"memory_gib\": 2, \"hbm_gbps\": 100, "
                                 "\"fp32_tflops\": 5, \"half_tflops\": 10}",
                                 &arena, &d, &fault),
                     MS_OK);
    ck_assert_str_eq(d->name, "mine");
    ck_assert_uint_eq(d->memory_bytes, UINT64_C(2) << 30);
    ck_assert_double_eq(d->tf32_flops, 5e12);
    ck_assert_double_eq(d->matmul_share, 0.65);
    ck_assert_double_eq(d->dram_bytes_per_s, 100e9);
    ck_assert_double_eq(d->nvme_read_bytes_per_s, 10e9);
    ck_assert_double_eq(d->nvme_write_bytes_per_s, 5e9);
    ck_assert_double_eq(d->pageable_share, 0.4);
    ck_assert_uint_eq(d->launch_ns, 5000);
    ck_assert_uint_eq(d->gpus_per_node, 8);
    ms_arena_free(&arena);
}
END_TEST

/* "like" gives the rest; its curves belong to its links. */
START_TEST(like_another)
{
    ms_arena arena = {0};
    ms_fault fault = {0};
    const ms_device *d = NULL, *h200 = find("h200");
    ck_assert_int_eq(read_device("{\"like\": \"h200\", \"dram_gbps\": 300}",
                                 &arena, &d, &fault),
                     MS_OK);
    ck_assert_double_eq(d->dram_bytes_per_s, 300e9);
    ck_assert_double_eq(d->hbm_bytes_per_s, h200->hbm_bytes_per_s);
    ck_assert_double_eq(d->matmul_share, h200->matmul_share);
    ck_assert_uint_eq(d->n_curves, h200->n_curves);
    ck_assert_int_eq(
        read_device("{\"like\": \"h200\", \"nvlink_gbps\": 300, "
                    "\"half_matmul_tflops\": 494.5, \"name\": \"half\"}",
                    &arena, &d, &fault),
        MS_OK);
    ck_assert_str_eq(d->name, "half");
    ck_assert_double_eq(d->matmul_share, 0.5);
    ck_assert_uint_eq(d->n_curves, 0);
    ms_arena_free(&arena);
}
END_TEST

/* Each of the two keys takes the place of its own kinds. */
START_TEST(curves_of_collectives)
{
    ms_arena arena = {0};
    ms_fault fault = {0};
    const ms_device *d = NULL, *h200 = find("h200");
    uint32_t reduces = 0;
    for (uint32_t i = 0; i < h200->n_curves; i++)
        reduces += h200->curves[i].kind == MS_ALL_REDUCE;
    ck_assert_int_eq(
        read_device("{\"like\": \"h200\", \"collective_curves\": "
                    "[{\"collective\": \"send\", \"ranks\": 2, \"kib\": [1], "
                    "\"gbps\": [2]}]}",
                    &arena, &d, &fault),
        MS_OK);
    ck_assert_uint_eq(d->n_curves, reduces + 1);
    ck_assert_uint_eq(d->curves[reduces].kind, MS_SEND);
    ck_assert_int_eq(
        read_device("{\"like\": \"h200\", \"allreduce_curves\": []}", &arena,
                    &d, &fault),
        MS_OK);
    ck_assert_uint_eq(d->n_curves, h200->n_curves - reduces);
    ms_arena_free(&arena);
}
END_TEST

START_TEST(bad_files_say_where)
{
    static const char *const bad[][2] = {
        {"[]", "must be an object"},
        {"{\"memsim_device\": 2}", "must be 1"},
        {"{\"like\": 3}", "must be a string"},
        {"{\"like\": \"h100\", \"name\": \"a\\nb\"}", "printable"},
        {"{\"like\": \"h100\", \"gpus_per_node\": 0}", "from 1 to"},
        {"{\"like\": \"h100\", \"half_matmul_tflops\": 9999}", "is above"},
        {"{\"like\": \"h100\", \"allreduce_curves\": {}}", "an array"},
        {"{\"like\": \"h100\", \"allreduce_curves\": [{\"ranks\": 8}]}",
         "lacks the key \"kib\""},
        {"{\"like\": \"h100\", \"allreduce_curves\": [{\"ranks\": 8, "
         "\"kib\": [1], \"gbps\": [0]}]}",
         "from 0.001"},
        {"{\"like\": \"h100\", \"allreduce_curves\": [{\"ranks\": 8, "
         "\"kib\": [1e300], \"gbps\": [1]}]}",
         "to 1e10"},
        {"{\"like\": \"h100\", \"collective_curves\": [{\"ranks\": 8, "
         "\"kib\": [1], \"gbps\": [1]}]}",
         "lacks the key \"collective\""},
        {"{\"like\": \"h100\", \"collective_curves\": [{\"ranks\": 8, "
         "\"collective\": \"all-reduce\", \"kib\": [1], \"gbps\": [1]}]}",
         "must be all-gather"},
        {"{\"like\": \"h100\", \"allreduce_curves\": [{\"ranks\": 8, "
         "\"collective\": \"send\", \"kib\": [1], \"gbps\": [1]}]}",
         "unknown key \"collective\""},
        {"{\"like\": \"h100\", \"network_gbps\": 0}", "at least 0.001"},
        {"{\"like\": \"h100\", \"nvlink_gbps\": 1e-300}", "at least"},
        {"{\"like\": \"h100\", \"pageable_share\": 0}", "at least"},
        {"{\"like\": \"h100\", \"allreduce_curves\": [{\"ranks\": 8, "
         "\"kib\": [1, 2], \"gbps\": [1]}]}",
         "2 sizes and 1 rates"},
        {"{\"like\": \"h100\", \"allreduce_curves\": [{\"rank\": 8}]}",
         "unknown key \"rank\""},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        ms_arena arena = {0};
        ms_fault fault = {0};
        const ms_device *device = NULL;
        ck_assert_int_eq(read_device(bad[i][0], &arena, &device, &fault),
                         MS_EINPUT);
        ck_assert_msg(strstr(fault.what, bad[i][1]) != NULL, "%s: %s",
                      bad[i][0], fault.what);
        ck_assert_ptr_nonnull(strstr(fault.where, "mine.json:1:"));
        ms_arena_free(&arena);
    }
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
    tcase_add_test(tcase, built_in_files_read_the_same);
    tcase_add_test(tcase, keys_not_given_take_their_defaults);
    tcase_add_test(tcase, like_another);
    tcase_add_test(tcase, curves_of_collectives);
    tcase_add_test(tcase, bad_files_say_where);
    suite_add_tcase(suite, tcase);
    return suite;
}
