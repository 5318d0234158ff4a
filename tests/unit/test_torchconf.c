/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Options of the torch pool, and the rules that differ between versions of
 * PyTorch. */
#include "sim/pools/torch/torch.h"
#include "tests/tests.h"

#include <string.h>

#define MIB (UINT64_C(1) << 20)

static ms_arena arena;

static ms_torch *pool_of(ms_torch_version version, const char *conf)
{
    ms_torch_setup setup;
    ms_torch *pool;
    ms_fault fault = {0};
    ms_torch_setup_init(&setup, UINT64_C(80) << 30);
    setup.version = version;
    ck_assert_msg(ms_torchconf_parse(conf, "conf", MS_EUSAGE, version,
                                     &setup.options, &fault) == MS_OK,
                  "%s", fault.what);
    ck_assert_int_eq(ms_torch_new(&setup, &arena, &pool, &fault), MS_OK);
    return pool;
}

/* What a request of the first bytes takes. */
static uint64_t taken(ms_torch_version version, const char *conf,
                      uint64_t bytes)
{
    uint32_t row;
    ms_fault fault = {0};
    ms_torch *pool = pool_of(version, conf);
    ck_assert_int_eq(ms_torch_malloc(pool, bytes, 0, &row, &fault), MS_OK);
    ck_assert_uint_ne(row, MS_NONE);
    return ms_torchview_block(pool, row).bytes;
}

static void finish(void)
{
    ms_arena_free(&arena);
}

START_TEST(list_of_divisions)
{
    static const uint32_t expected[16] = {1, 1, 1, 1, 1, 1, 1, 1,
                                          1, 2, 8, 8, 8, 8, 8, 8};
    ms_torch_options options;
    ms_fault fault = {0};
    ms_torchconf_init(&options);
    ck_assert_int_eq(
        ms_torchconf_parse("roundup_power2_divisions:[256:1,512:2,1024:4,>:8]",
                           "conf", MS_EUSAGE, MS_TORCH_V2_4, &options, &fault),
        MS_OK);
    for (uint32_t i = 0; i < 16; i++)
        ck_assert_uint_eq(options.divisions[i], expected[i]);
}
END_TEST

/* sim/pools/README.md 3: 1 and 2.1 leave n as it is, later it is a multiple of
 * 512. */
START_TEST(division_of_one)
{
    const char *conf = "roundup_power2_divisions:1";
    ck_assert_uint_eq(taken(MS_TORCH_V2_1, conf, 1000), 1000);
    ck_assert_uint_eq(taken(MS_TORCH_V1_13, conf, 1000), 1000);
    ck_assert_uint_eq(taken(MS_TORCH_V2_4, conf, 1000), 1024);
    finish();
}
END_TEST

START_TEST(rounding_by_parts_of_powers)
{
    const char *conf = "roundup_power2_divisions:4";
    const char *bypass =
        "roundup_power2_divisions:4,roundup_bypass_threshold_mb:1";
    ck_assert_uint_eq(taken(MS_TORCH_V2_4, conf, 1200), 1536);
    ck_assert_uint_eq(taken(MS_TORCH_V2_4, conf, 5 * MIB / 4 + 1), 3 * MIB / 2);
    ck_assert_uint_eq(taken(MS_TORCH_V2_4, conf, 2 * MIB), 2 * MIB);
    ck_assert_uint_eq(taken(MS_TORCH_V1_13, conf, 5 * MIB / 4 + 1),
                      3 * MIB / 2);
    ck_assert_uint_eq(taken(MS_TORCH_V1_13, bypass, 5 * MIB / 4 + 1),
                      5 * MIB / 4 + 512);
    finish();
}
END_TEST

START_TEST(segments_of_another_size)
{
    uint32_t row;
    ms_fault fault = {0};
    ms_torch *pool = pool_of(MS_TORCH_V2_11, "large_segment_size_mb:40");
    ck_assert_int_eq(ms_torch_malloc(pool, 2 * MIB, 0, &row, &fault), MS_OK);
    ck_assert_uint_eq(ms_torchview_current(pool, MS_TORCH_RESERVED_BYTES),
                      40 * MIB);
    finish();
}
END_TEST

/* sim/pools/README.md 7: 1.0 is a limit up to 2.6. */
START_TEST(fraction_of_one)
{
    for (ms_torch_version v = MS_TORCH_V1_13; v < MS_TORCH_N_VERSIONS; v++) {
        ms_torch *pool = pool_of(v, "");
        ms_torch_set_fraction(pool, 1);
        ck_assert_uint_eq(ms_torchview_limit(pool),
                          v < MS_TORCH_V2_11 ? UINT64_C(80) << 30 : UINT64_MAX);
    }
    finish();
}
END_TEST

START_TEST(limit_is_of_reserved_bytes)
{
    uint32_t row;
    ms_fault fault = {0};
    ms_torch *pool = pool_of(MS_TORCH_V2_11, "per_process_memory_fraction:0.5");
    ck_assert_int_eq(ms_torch_malloc(pool, UINT64_C(41) << 30, 0, &row, &fault),
                     MS_OK);
    ck_assert_uint_eq(row, MS_NONE);
    ck_assert_uint_eq(ms_torchview_ooms(pool), 1);
    ck_assert_int_eq(ms_torch_malloc(pool, UINT64_C(40) << 30, 0, &row, &fault),
                     MS_OK);
    ck_assert_uint_ne(row, MS_NONE);
    finish();
}
END_TEST

/* Settings at run time begin anew, but for expandable_segments. */
START_TEST(change)
{
    ms_torch_options options;
    ms_fault fault = {0};
    ms_torchconf_init(&options);
    ck_assert_int_eq(ms_torchconf_parse("expandable_segments:True,"
                                        "garbage_collection_threshold:0.5",
                                        "conf", MS_EUSAGE, MS_TORCH_V2_11,
                                        &options, &fault),
                     MS_OK);
    ck_assert_int_eq(ms_torchconf_change("max_split_size_mb:64", "conf",
                                         MS_TORCH_V2_11, &options, &fault),
                     MS_OK);
    ck_assert(options.expandable);
    ck_assert_double_eq(options.gc_threshold, 0);
    ck_assert_uint_eq(options.max_split_bytes, 64 * MIB);
}
END_TEST

/* Every option of the table is known to the versions that it names alone. */
START_TEST(versions_of_options)
{
    for (uint32_t i = 0; i < ms_torchconf_n_rows; i++)
        for (ms_torch_version v = MS_TORCH_V1_13; v < MS_TORCH_N_VERSIONS;
             v++) {
            const ms_torchconf_row *row = &ms_torchconf_rows[i];
            bool truth = strcmp(row->values, "True|False") == 0;
            bool real = strcmp(row->values, "F") == 0;
            bool known = v >= row->since && v <= row->until;
            ms_torch_options options;
            ms_fault fault = {0};
            ms_text conf = {.arena = &arena};
            ms_torchconf_init(&options);
            ms_text_add(&conf, "%s:%s", row->name,
                        truth                                ? "False"
                        : real                               ? "0.5"
                        : strcmp(row->values, "native") == 0 ? "native"
                                                             : "64");
            ck_assert_int_eq(ms_torchconf_parse(conf.bytes, "conf", MS_EUSAGE,
                                                v, &options, &fault),
                             known ? MS_OK : MS_EUSAGE);
        }
    finish();
}
END_TEST

static void take_and_give(ms_torch *pool, uint64_t bytes)
{
    uint32_t row;
    ms_fault fault = {0};
    ck_assert_int_eq(ms_torch_malloc(pool, bytes, 0, &row, &fault), MS_OK);
    ck_assert_uint_ne(row, MS_NONE);
    ms_torch_free(pool, row);
}

/* sim/pools/README.md 9, by hand: of 100, 110 and 120 MiB, idle since searches
 * 2, 2 and 3, the first two are not younger than the mean at search 4. */
START_TEST(collects_what_is_old)
{
    ms_torch *pool = pool_of(MS_TORCH_V2_4, "garbage_collection_threshold:0.5");
    uint32_t a, b;
    ms_fault fault = {0};
    ms_torch_set_fraction(pool, 0.5 / 80);
    ck_assert_uint_eq(ms_torchview_limit(pool), 512 * MIB);
    ck_assert_int_eq(ms_torch_malloc(pool, 100 * MIB, 0, &a, &fault), MS_OK);
    ck_assert_int_eq(ms_torch_malloc(pool, 110 * MIB, 0, &b, &fault), MS_OK);
    ms_torch_free(pool, a);
    ms_torch_free(pool, b);
    take_and_give(pool, 120 * MIB);
    take_and_give(pool, 130 * MIB);
    ck_assert_uint_eq(ms_torchview_current(pool, MS_TORCH_RESERVED_BYTES),
                      250 * MIB);
    finish();
}
END_TEST

/* The mean of one block is its own age. */
START_TEST(collects_the_only_one)
{
    ms_torch *pool = pool_of(MS_TORCH_V2_4, "garbage_collection_threshold:0.5");
    ms_torch_set_fraction(pool, 0.5 / 80);
    take_and_give(pool, 300 * MIB);
    take_and_give(pool, 310 * MIB);
    ck_assert_uint_eq(ms_torchview_current(pool, MS_TORCH_RESERVED_BYTES),
                      310 * MIB);
    ck_assert_uint_eq(ms_torchview_retries(pool), 0);
    finish();
}
END_TEST

/* A free that is told apart from its completion. */
START_TEST(free_in_two_steps)
{
    uint32_t a, b, c;
    ms_fault fault = {0};
    ms_torch *pool = pool_of(MS_TORCH_V2_11, "");
    ck_assert_int_eq(ms_torch_malloc(pool, 4096, 0, &a, &fault), MS_OK);
    ms_torch_free_later(pool, a);
    ck_assert_int_eq(ms_torchview_block(pool, a).state,
                     MS_TORCH_ACTIVE_PENDING);
    uint64_t address = ms_torchview_block(pool, a).address;
    ck_assert_int_eq(ms_torch_malloc(pool, 4096, 0, &b, &fault), MS_OK);
    ck_assert_uint_ne(ms_torchview_block(pool, b).address, address);
    ms_torch_free_now(pool, a);
    ck_assert_int_eq(ms_torch_malloc(pool, 4096, 0, &c, &fault), MS_OK);
    ck_assert_uint_eq(ms_torchview_block(pool, c).address, address);
    ck_assert_ptr_null(ms_torchview_check(pool));
    finish();
}
END_TEST

Suite *suite_torchconf(void)
{
    Suite *suite = suite_create("torchconf");
    TCase *tcase = tcase_create("torchconf");
    tcase_add_test(tcase, list_of_divisions);
    tcase_add_test(tcase, division_of_one);
    tcase_add_test(tcase, rounding_by_parts_of_powers);
    tcase_add_test(tcase, segments_of_another_size);
    tcase_add_test(tcase, fraction_of_one);
    tcase_add_test(tcase, limit_is_of_reserved_bytes);
    tcase_add_test(tcase, change);
    tcase_add_test(tcase, versions_of_options);
    tcase_add_test(tcase, collects_what_is_old);
    tcase_add_test(tcase, collects_the_only_one);
    tcase_add_test(tcase, free_in_two_steps);
    suite_add_tcase(suite, tcase);
    return suite;
}
