/* SPDX-License-Identifier: GPL-3.0-or-later */
/* PyTorch's pinned host memory: blocks of powers of two, kept for their power,
 * taken again once the streams have passed. */
#include "sim/pools/hostpool.h"
#include "tests/tests.h"

#define MIB (UINT64_C(1) << 20)

static ms_arena arena;
static ms_fault fault;

static void setup(void)
{
    arena = (ms_arena){0};
    fault = (ms_fault){.caret = -1};
}

static void teardown(void)
{
    ms_arena_free(&arena);
}

static void take(ms_hostpool *pool, uint64_t bytes, uint64_t now_ns)
{
    ck_assert_int_eq(ms_hostpool_take(pool, bytes, now_ns, &fault), MS_OK);
}

static void give(ms_hostpool *pool, uint64_t bytes, uint64_t ready_ns)
{
    ck_assert_int_eq(ms_hostpool_give(pool, bytes, ready_ns, &fault), MS_OK);
}

START_TEST(rounds_up)
{
    static const uint64_t sizes[][2] = {
        {1, 1}, {2, 2}, {3, 4}, {4097, 8192}, {8192, 8192}, {8193, 16384}};
    const ms_hostpool_options none = {0}, some = {.max_round_bytes = 4096};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        ck_assert_uint_eq(ms_hostpool_round(&none, sizes[i][0]), sizes[i][1]);
    ck_assert_uint_eq(ms_hostpool_round(&none, (UINT64_C(1) << 63) + 1),
                      (UINT64_C(1) << 63) + 1);
    ck_assert_uint_eq(ms_hostpool_round(&some, 4096), 4096);
    ck_assert_uint_eq(ms_hostpool_round(&some, 3000), 4096);
    ck_assert_uint_eq(ms_hostpool_round(&some, 4097), 4097);
}
END_TEST

/* The header's example, with another size of the same power at the end. */
START_TEST(waits_for_streams)
{
    ms_hostpool pool = {.arena = &arena};
    take(&pool, 9 * MIB, 0);
    give(&pool, 9 * MIB, 500);
    take(&pool, 9 * MIB, 400);
    ck_assert_uint_eq(pool.allocated_bytes, 32 * MIB);
    ck_assert_uint_eq(pool.active_bytes, 32 * MIB);
    take(&pool, 16 * MIB, 500);
    ck_assert_uint_eq(pool.allocated_bytes, 32 * MIB);
    take(&pool, 8 * MIB, 500);
    ck_assert_uint_eq(pool.allocated_bytes, 40 * MIB);
    give(&pool, 16 * MIB, 0);
    ck_assert_uint_eq(pool.active_bytes, 24 * MIB);
    ck_assert_uint_eq(pool.allocated_peak_bytes, 40 * MIB);
}
END_TEST

/* What was freed later is not looked at before what was freed first. */
START_TEST(in_the_order_of_frees)
{
    ms_hostpool pool = {.arena = &arena};
    take(&pool, 4 * MIB, 0);
    take(&pool, 8 * MIB, 0);
    give(&pool, 4 * MIB, 900);
    give(&pool, 8 * MIB, 100);
    take(&pool, 8 * MIB, 200);
    ck_assert_uint_eq(pool.allocated_bytes, 20 * MIB);
    take(&pool, 8 * MIB, 900);
    ck_assert_uint_eq(pool.allocated_bytes, 20 * MIB);
}
END_TEST

START_TEST(keyed_by_bytes)
{
    ms_hostpool pool = {.arena = &arena, .keyed = true};
    take(&pool, 5 * MIB, 0);
    give(&pool, 5 * MIB, 0);
    take(&pool, 6 * MIB, 0); /* of the same power, of another shape */
    ck_assert_uint_eq(pool.allocated_bytes, 16 * MIB);
    take(&pool, 5 * MIB, 0);
    ck_assert_uint_eq(pool.allocated_bytes, 16 * MIB);
}
END_TEST

START_TEST(options_of_large_blocks)
{
    ms_hostpool pool = {
        .arena = &arena,
        .options = {.max_round_bytes = 16 * MIB, .max_cached_bytes = 8 * MIB}};
    take(&pool, 9 * MIB, 0); /* rounded, not kept */
    ck_assert_uint_eq(pool.allocated_bytes, 16 * MIB);
    give(&pool, 9 * MIB, 0);
    ck_assert_uint_eq(pool.allocated_bytes, 0);
    take(&pool, 17 * MIB, 0); /* as it is */
    ck_assert_uint_eq(pool.allocated_bytes, 17 * MIB);
    take(&pool, 0, 0); /* nothing */
    ck_assert_uint_eq(pool.allocated_peak_bytes, 17 * MIB);
}
END_TEST

Suite *suite_hostpool(void)
{
    Suite *suite = suite_create("hostpool");
    TCase *tcase = tcase_create("hostpool");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, rounds_up);
    tcase_add_test(tcase, waits_for_streams);
    tcase_add_test(tcase, in_the_order_of_frees);
    tcase_add_test(tcase, keyed_by_bytes);
    tcase_add_test(tcase, options_of_large_blocks);
    suite_add_tcase(suite, tcase);
    return suite;
}
