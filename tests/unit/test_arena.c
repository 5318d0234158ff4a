/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Arenas, and the fault record that they fill. */
#include "sim/base/base.h"
#include "tests/tests.h"

#include <string.h>

START_TEST(take_is_zeroed_and_aligned)
{
    ms_arena arena = {0};
    for (size_t n = 0; n < 200; n++) {
        unsigned char *memory = ms_arena_take(&arena, n, 3);
        ck_assert_ptr_nonnull(memory);
        ck_assert_uint_eq((uintptr_t)memory % 16, 0);
        for (size_t i = 0; i < 3 * n; i++)
            ck_assert_uint_eq(memory[i], 0);
        memset(memory, 0xa5, 3 * n);
    }
    ms_arena_reset(&arena);
    unsigned char *again = ms_arena_take(&arena, 1000, 1);
    for (size_t i = 0; i < 1000; i++)
        ck_assert_uint_eq(again[i], 0);
    ms_arena_free(&arena);
}
END_TEST

START_TEST(take_beyond_a_block)
{
    ms_arena arena = {0};
    char *small = ms_arena_take(&arena, 10, 1);
    char *large = ms_arena_take(&arena, 1 << 20, 1);
    memset(large, 1, 1 << 20);
    ck_assert_int_eq(small[9], 0);
    ms_arena_free(&arena);
    ck_assert_ptr_null(arena.first);
}
END_TEST

START_TEST(take_refuses_overflow)
{
    ms_arena arena = {0};
    ck_assert_ptr_null(ms_arena_take(&arena, SIZE_MAX / 2, 3));
    ck_assert_ptr_null(ms_arena_take_raw(&arena, SIZE_MAX, 1));
    ck_assert_ptr_null(ms_arena_take_raw(&arena, SIZE_MAX - 15, 1));
    ck_assert_ptr_null(ms_arena_text(&arena, "", SIZE_MAX));
    ck_assert_uint_eq(arena.used_bytes, 0);
    ms_arena_free(&arena);
}
END_TEST

START_TEST(limit_holds_until_reset)
{
    ms_arena arena = {.limit_bytes = 100};
    ck_assert_ptr_nonnull(ms_arena_take(&arena, 64, 1));
    ck_assert_ptr_null(ms_arena_take(&arena, 64, 1));
    ck_assert_ptr_nonnull(ms_arena_take(&arena, 32, 1));
    ck_assert_uint_eq(arena.used_bytes, 96);
    ms_arena_reset(&arena);
    ck_assert_ptr_nonnull(ms_arena_take(&arena, 64, 1));
    ms_arena_free(&arena);
}
END_TEST

static void some_run(ms_arena *arena)
{
    for (size_t i = 1; i < 100; i++)
        ck_assert_ptr_nonnull(ms_arena_take_raw(arena, i * 37 % 1000, 8));
}

START_TEST(reset_keeps_the_blocks)
{
    ms_arena arena = {0};
    some_run(&arena);
    for (int run = 0; run < 1000; run++) {
        ms_arena_reset(&arena);
        ms_arena_fail_after(1); /* any further malloc would fail */
        some_run(&arena);
    }
    ms_arena_fail_after(0);
    ms_arena_free(&arena);
}
END_TEST

START_TEST(the_nth_malloc_fails)
{
    ms_arena arena = {0};
    ms_arena_fail_after(2);
    ck_assert_ptr_nonnull(ms_arena_take(&arena, 60000, 1));
    ck_assert_ptr_null(ms_arena_take(&arena, 60000, 1));
    ck_assert_ptr_nonnull(ms_arena_take(&arena, 60000, 1));
    ms_arena_free(&arena);
}
END_TEST

START_TEST(grow_keeps_the_items)
{
    ms_arena arena = {0};
    uint32_t capacity = 0, *items = NULL, mallocs = 0;
    for (uint32_t i = 0; i < 10000; i++) {
        uint32_t before = capacity;
        items = ms_arena_grow(&arena, items, &capacity, i + 1, sizeof *items);
        ck_assert_ptr_nonnull(items);
        ck_assert_uint_gt(capacity, i);
        mallocs += capacity != before;
        items[i] = i;
    }
    for (uint32_t i = 0; i < 10000; i++)
        ck_assert_uint_eq(items[i], i);
    ck_assert_uint_lt(mallocs, 12);
    uint32_t none = 0;
    ck_assert_ptr_nonnull(ms_arena_grow(&arena, NULL, &none, 0, 4));
    ms_arena_free(&arena);
}
END_TEST

/* Two arrays of some MiB that grow in turns. */
static void two_columns(ms_arena *arena)
{
    uint32_t *a = NULL, *b = NULL, capacity[2] = {0};
    for (uint32_t i = 0; i < 1 << 20; i++) {
        a = ms_arena_grow(arena, a, &capacity[0], i + 1, sizeof *a);
        b = ms_arena_grow(arena, b, &capacity[1], i + 1, sizeof *b);
        ck_assert(a != NULL && b != NULL);
        a[i] = i;
        b[i] = ~i;
    }
    for (uint32_t i = 0; i < 1 << 20; i++)
        ck_assert(a[i] == i && b[i] == ~i);
}

START_TEST(large_arrays_leave_no_copies)
{
    ms_arena arena = {0};
    two_columns(&arena);
    ck_assert_uint_lt(arena.used_bytes, UINT64_C(11) << 20);
    ms_arena_reset(&arena);
    ms_arena_fail_after(1); /* the blocks are used again as they are */
    two_columns(&arena);
    ms_arena_fail_after(0);
    ms_arena_free(&arena);
}
END_TEST

START_TEST(large_arrays_heed_the_limit)
{
    ms_arena arena = {.limit_bytes = 6 << 20};
    uint32_t capacity = 0;
    char *items = ms_arena_grow(&arena, NULL, &capacity, 2 << 20, 1);
    ck_assert_ptr_nonnull(items);
    items = ms_arena_grow(&arena, items, &capacity, 4 << 20, 1);
    ck_assert_ptr_nonnull(items);
    ck_assert_uint_eq(capacity, 4 << 20);
    ck_assert_ptr_null(
        ms_arena_grow(&arena, items, &capacity, (4 << 20) + 1, 1));
    ck_assert_uint_eq(capacity, 4 << 20);
    ms_arena_free(&arena);
}
END_TEST

static bool is_zero(const unsigned char *memory, size_t n)
{
    size_t i = 0;
    while (i < n && memory[i] == 0)
        i++;
    return i == n;
}

START_TEST(what_is_large_can_be_dropped)
{
    enum { LARGE = 5 << 20 };
    ms_arena arena = {0};
    unsigned char *small = ms_arena_take(&arena, 10, 1);
    unsigned char *large = ms_arena_take(&arena, LARGE, 1);
    ck_assert(small != NULL && large != NULL);
    memset(small, 1, 10);
    memset(large, 1, LARGE);
    ms_arena_drop(&arena, NULL);
    ms_arena_drop(&arena, small);
    ck_assert_uint_eq(arena.used_bytes, LARGE + 16);
    ms_arena_drop(&arena, large);
    ck_assert_uint_eq(arena.used_bytes, 16);
    ck_assert_uint_eq(small[9], 1);
    large = ms_arena_take(&arena, LARGE, 1);
    ck_assert(is_zero(large, LARGE));
    memset(large, 1, LARGE);
    ms_arena_reset(&arena);
    ms_arena_fail_after(1); /* the block is used again, but not as it was */
    ck_assert(is_zero(ms_arena_take(&arena, LARGE - 1, 1), LARGE - 1));
    ms_arena_fail_after(0);
    ms_arena_free(&arena);
}
END_TEST

/* A small piece does not take the room of a large one. */
START_TEST(reset_keeps_large_blocks_whole)
{
    ms_arena arena = {0};
    ck_assert_ptr_nonnull(ms_arena_take(&arena, 2 << 20, 1));
    ck_assert_ptr_nonnull(ms_arena_take(&arena, 100, 1));
    ms_arena_reset(&arena);
    ms_arena_fail_after(1);
    ck_assert_ptr_nonnull(ms_arena_take(&arena, 100, 1));
    ck_assert_ptr_nonnull(ms_arena_take(&arena, 2 << 20, 1));
    ms_arena_fail_after(0);
    ms_arena_free(&arena);
}
END_TEST

START_TEST(arrays_shrink_where_they_are)
{
    enum { MANY = 8 << 20, FEW = 2 << 20 };
    ms_arena arena = {0};
    uint32_t capacity = 0, same = 0, *items = NULL;
    items = ms_arena_grow(&arena, items, &capacity, MANY, sizeof *items);
    ck_assert_ptr_nonnull(items);
    for (uint32_t i = 0; i < MANY; i++)
        items[i] = i;
    ms_arena_shrink(&arena, items, &capacity, FEW, sizeof *items);
    ck_assert(capacity >= FEW && capacity <= MANY);
    bool is_mapped = capacity < MANY; /* malloc's blocks stay as they are */
    ck_assert_uint_ge(arena.used_bytes, capacity * sizeof *items);
    ms_arena_shrink(&arena, items, &capacity, 1 << 20, sizeof *items);
    ck_assert(capacity >= 1 << 20 && (!is_mapped || capacity < FEW));
    items = ms_arena_grow(&arena, items, &capacity, MANY, sizeof *items);
    ck_assert_ptr_nonnull(items);
    while (same < 1 << 20 && items[same] == same)
        same++;
    ck_assert_uint_eq(same, 1 << 20);
    items[MANY - 1] = 1;
    ms_arena_free(&arena);
}
END_TEST

START_TEST(large_blocks_are_handed_over)
{
    enum { LARGE = 48 << 20 };
    ms_arena from = {0}, to = {0};
    char *old = ms_arena_take_raw(&from, LARGE, 1);
    char *small = ms_arena_take(&from, 100, 1), *own = ms_arena_take(&to, 9, 1);
    ck_assert(old && small && own);
    memset(old, 7, LARGE);
    memset(own, 5, 9);
    ms_arena_hand_over(&from, &to);
    ms_arena_free(&from);
    ck_assert_ptr_null(from.first);
    char *again = ms_arena_take(&to, LARGE, 1);
    ck_assert_ptr_eq(again, old);
    ck_assert(again[0] == 0 && again[LARGE - 1] == 0);
    ms_arena_drop(&to, again);
    ms_arena_free(&to);
}
END_TEST

/* Of what was handed over and not taken. */
START_TEST(what_is_left_over_is_trimmed)
{
    enum { LARGE = 48 << 20 };
    ms_arena from = {0}, to = {0};
    char *own = ms_arena_take(&to, 2 << 20, 1);
    ck_assert(ms_arena_take(&from, LARGE, 1) && own);
    ms_arena_hand_over(&from, &to);
    ms_arena_free(&from);
    uint64_t used = to.used_bytes;
    ms_arena_trim(&to);
    ck_assert_uint_eq(to.used_bytes, used);
    memset(own, 1, 2 << 20); /* it is still there */
    ms_arena_free(&to);
    ck_assert_ptr_null(to.first);
}
END_TEST

START_TEST(texts)
{
    ms_arena arena = {0};
    ck_assert_str_eq(ms_arena_text(&arena, "abcdef", 3), "abc");
    ck_assert_str_eq(ms_arena_text(&arena, NULL, 0), "");
    ck_assert_str_eq(ms_arena_format(&arena, "%s.%d", "layers", 12),
                     "layers.12");
    ms_arena_free(&arena);
}
END_TEST

START_TEST(first_failure_wins)
{
    ms_fault fault = {0};
    ck_assert_int_eq(
        ms_fail(&fault, MS_EUSAGE, "--batch", "use 1", "%d bad", 0), MS_EUSAGE);
    ck_assert_int_eq(ms_fail_nomem(&fault), MS_ENOMEM);
    ck_assert_int_eq(fault.err, MS_EUSAGE);
    ck_assert_str_eq(fault.where, "--batch");
    ck_assert_str_eq(fault.what, "0 bad");
    ck_assert_str_eq(fault.hint, "use 1");
    ck_assert_int_eq(fault.caret, -1);
    ck_assert_int_eq(ms_fail(NULL, MS_EINPUT, NULL, NULL, "x"), MS_EINPUT);
}
END_TEST

START_TEST(fault_points_into_the_text)
{
    const char *text = "first\n\"n\xc3\xa4me\": \x1b[31m nonsense\nlast";
    ms_quote at = {"a.json", text, strlen(text),
                   (size_t)(strstr(text, "nonsense") - text)};
    ms_fault fault = {0};
    ms_fail_at(&fault, MS_EINPUT, &at, NULL, "bad \x1b word");
    ck_assert_str_eq(fault.where, "a.json:2:15");
    ck_assert_str_eq(fault.source, "\"n\xc3\xa4me\":  [31m nonsense");
    ck_assert_int_eq(fault.caret, 14);
    ck_assert_str_eq(fault.what, "bad ? word");
}
END_TEST

START_TEST(fault_cuts_long_texts)
{
    static char text[100000];
    for (size_t i = 0; i + 2 < sizeof text; i += 2)
        memcpy(text + i, "\xc3\xa4", 2);
    ms_fault fault = {0};
    ms_quote at = {text, text, strlen(text), 50001};
    ms_fail_at(&fault, MS_EINPUT, &at, text, "%s", text);
    ck_assert_uint_lt(strlen(fault.source), sizeof fault.source);
    ck_assert_uint_gt(strlen(fault.source), 190);
    ck_assert_int_gt(fault.caret, 0);
    ck_assert_int_lt(fault.caret, 100);
    ck_assert_uint_eq(strlen(fault.what) % 2, 0);
    ck_assert_uint_eq(strlen(fault.hint) % 2, 0);
}
END_TEST

Suite *suite_arena(void)
{
    Suite *suite = suite_create("arena");
    TCase *tcase = tcase_create("arena");
    tcase_add_test(tcase, take_is_zeroed_and_aligned);
    tcase_add_test(tcase, take_beyond_a_block);
    tcase_add_test(tcase, take_refuses_overflow);
    tcase_add_test(tcase, limit_holds_until_reset);
    tcase_add_test(tcase, reset_keeps_the_blocks);
    tcase_add_test(tcase, the_nth_malloc_fails);
    tcase_add_test(tcase, grow_keeps_the_items);
    tcase_add_test(tcase, large_arrays_leave_no_copies);
    tcase_add_test(tcase, large_arrays_heed_the_limit);
    tcase_add_test(tcase, what_is_large_can_be_dropped);
    tcase_add_test(tcase, reset_keeps_large_blocks_whole);
    tcase_add_test(tcase, arrays_shrink_where_they_are);
    tcase_add_test(tcase, large_blocks_are_handed_over);
    tcase_add_test(tcase, what_is_left_over_is_trimmed);
    tcase_add_test(tcase, texts);
    tcase_add_test(tcase, first_failure_wins);
    tcase_add_test(tcase, fault_points_into_the_text);
    tcase_add_test(tcase, fault_cuts_long_texts);
    suite_add_tcase(suite, tcase);
    return suite;
}
