/* SPDX-License-Identifier: GPL-3.0-or-later */
/* memsim alloc --leaks: which steps are compared, what is alive at them and
 * what of it grows, on traces of a few allocations counted by hand. */
#include "policies/common/policy.h"
#include "tests/tests.h"
#include "tools/cli/alloc/alloc.h"
#include "tools/cli/commands.h"

#include <string.h>

static ms_arena arena;
static ms_fault fault;
static ms_alloc_leaks leaks;

static void setup(void)
{
    static const char *sites[] = {"a", "b", "c", "d", "e",
                                  "f", "g", "h", "i", "j"};
    const ms_recording recording = {.sites = sites, .n_sites = 10};
    arena = (ms_arena){0};
    fault = (ms_fault){0};
    leaks = (ms_alloc_leaks){.arena = &arena};
    ck_assert_int_eq(ms_alloc_leaks_begin(&leaks, &recording, &fault), MS_OK);
}

static void teardown(void)
{
    ms_arena_free(&arena);
}

static void take_at(uint64_t id, uint64_t bytes, uint64_t stream, uint32_t site)
{
    ck_assert_int_eq(
        ms_alloc_leaks_alloc(&leaks, id, bytes, stream, site, &fault), MS_OK);
}

static void take(uint64_t id, uint64_t bytes)
{
    take_at(id, bytes, 0, MS_NONE);
}

static void give(uint64_t id)
{
    ms_alloc_leaks_free(&leaks, id);
}

static void mark_as(ms_alloc_mark kind)
{
    ck_assert_int_eq(ms_alloc_leaks_mark(&leaks, kind, &fault), MS_OK);
}

static void mark(void)
{
    mark_as(MS_ALLOC_STEPS);
}

static ms_err find(void)
{
    const ms_alloc_source source = {.name = "trace"};
    return ms_alloc_leaks_find(&leaks, &source, &fault);
}

static void check_found(uint32_t n_points, uint32_t n_found)
{
    ck_assert_int_eq(find(), MS_OK);
    ck_assert_uint_eq(leaks.n_points, n_points);
    ck_assert_uint_eq(leaks.n_found, n_found);
}

static void check_level(uint32_t group, uint32_t point, uint64_t count,
                        uint64_t bytes)
{
    const ms_alloc_level *level = &ms_alloc_leaks_levels(&leaks, group)[point];
    ck_assert_uint_eq(level->count, count);
    ck_assert_uint_eq(level->bytes, bytes);
}

/* ---- which steps --------------------------------------------------------- */

/* The first mark is where what stays is set up; of the others the last 64
 * count.  At mark i there are i blocks. */
static void mark_growth(uint32_t n_marks)
{
    for (uint32_t i = 0; i < n_marks; i++) {
        mark();
        take(i, 10);
    }
}

START_TEST(the_first_mark_is_left_out)
{
    mark_growth(4);
    check_found(3, 1);
    for (uint32_t k = 0; k < 3; k++)
        check_level(0, k, 1 + k, 10 * (1 + k));
    ck_assert_uint_eq(ms_alloc_leaks_growth(&leaks, 0), 20);
}
END_TEST

START_TEST(three_marks_are_too_few)
{
    mark_growth(3);
    ck_assert_int_eq(find(), MS_EINPUT);
    ck_assert_str_eq(fault.what,
                     "--leaks compares at least four marked steps, the first "
                     "of which sets up what stays");
}
END_TEST

START_TEST(the_last_64_steps_are_compared)
{
    mark_growth(65);
    check_found(64, 1);
    check_level(0, 0, 1, 10);
    teardown();
    setup();
    mark_growth(70);
    check_found(64, 1);
    check_level(0, 0, 70 - 64, 60);
    check_level(0, 63, 69, 690);
}
END_TEST

START_TEST(marks_go_before_resets_before_recurrence)
{
    for (uint32_t i = 0; i < 6; i++) {
        take(i, 10);
        mark_as(MS_ALLOC_RESETS);
        if (_i == 1)
            mark();
    }
    check_found(5, 1);
    ck_assert_int_eq(leaks.by, _i == 1 ? MS_ALLOC_STEPS : MS_ALLOC_RESETS);
}
END_TEST

/* ---- recurrence ---------------------------------------------------------- */

static void take_each(const char *bytes)
{
    for (; *bytes != '\0'; bytes++)
        take(leaks.clock, (uint64_t)*bytes);
}

static void check_recurs(const char *bytes, uint32_t period, uint32_t n)
{
    teardown();
    setup();
    take_each(bytes);
    ck_assert_msg(find() == (n > 0 ? MS_OK : MS_EINPUT), "%s", bytes);
    if (n == 0)
        return;
    ck_assert_uint_eq(leaks.period, period);
    ck_assert_uint_eq(leaks.n_points, n);
    /* Right behind the last allocation of each. */
    for (uint32_t k = 0; k < n; k++)
        ck_assert_uint_eq(leaks.points[k],
                          strlen(bytes) - (size_t)(n - 1 - k) * period);
}

/* Three times the same, and at least as much of it as of what came before; a
 * first run of which only the end is there is none. */
START_TEST(what_recurs_three_times_is_a_step)
{
    check_recurs("abcabcabc", 3, 3);
    check_recurs("abcabc", 0, 0);
    check_recurs("abcabcab", 0, 0);
    check_recurs("abababa", 2, 3);
    check_recurs("aaa", 1, 3);
    check_recurs("aa", 0, 0);
    check_recurs("stuabab", 0, 0);
    check_recurs("stuvwxababab", 2, 3);
    check_recurs("stuvwxyababab", 0, 0);
    check_recurs("bcabcabcabc", 3, 3);
    check_recurs("aabaabaab", 3, 3);
    check_recurs("abaaabaaabaa", 4, 3);
}
END_TEST

/* What one site asks for differs from time to time. */
START_TEST(a_step_asks_for_the_same_each_time)
{
    for (uint32_t i = 0; i < 6; i++)
        take_at(i, _i == 0 ? 10 : 10 + i, 0, 5);
    ck_assert_int_eq(find(), _i == 0 ? MS_OK : MS_EINPUT);
    ck_assert_uint_eq(leaks.n_groups, 1);
}
END_TEST

START_TEST(the_last_64_recurrences_are_compared)
{
    for (uint32_t i = 0; i < 70; i++) {
        take(2 * i, 10);
        take(2 * i + 1, 20);
        give(2 * i);
    }
    check_found(64, 1);
    ck_assert_uint_eq(leaks.period, 2);
    check_level(0, 0, 1, 10); /* given behind the step's last allocation */
    check_level(1, 0, 70 - 63, 20 * 7);
    check_level(1, 63, 70, 1400);
}
END_TEST

/* ---- what is alive ------------------------------------------------------- */

/* What is taken before a mark and not given before it. */
START_TEST(a_life_counts_from_its_beginning_to_its_end)
{
    take(1, 100); /* given right before the second mark */
    mark();
    take(2, 200); /* given right behind it */
    give(1);
    mark();
    give(2);
    take(3, 300); /* taken right before the third */
    mark();
    take(4, 400); /* taken right behind it */
    give(3);
    mark();
    check_found(3, 0);
    for (uint32_t k = 0; k < 3; k++) {
        check_level(0, k, 0, 0);
        check_level(1, k, k == 0, k == 0 ? 200 : 0);
        check_level(2, k, k == 1, k == 1 ? 300 : 0);
        check_level(3, k, k == 2, k == 2 ? 400 : 0);
    }
}
END_TEST

/* An id is given once; then it is free to name another block.  Ids from before
 * the trace are nobody's. */
START_TEST(an_id_names_its_last_block)
{
    mark();
    give(7);
    take(7, 100);
    mark();
    give(7);
    mark();
    give(7);
    take(7, 100);
    take(7, 100); /* the one before is never given */
    mark();
    check_found(3, 0);
    ck_assert_uint_eq(leaks.n_ids, 1);
    check_level(0, 0, 1, 100);
    check_level(0, 1, 0, 0);
    check_level(0, 2, 2, 200);
}
END_TEST

/* More ids than the first table of slots holds, all alive as it grows. */
START_TEST(ids_are_found_again_in_a_larger_table)
{
    const uint64_t n = 5000;
    for (uint64_t id = 0; id < n; id++)
        take(id << 9, 1 + id);
    for (int i = 0; i < 2; i++)
        mark();
    for (uint64_t id = 0; id < n; id += 2)
        give(id << 9);
    mark();
    for (uint64_t id = 1; id < n; id += 2)
        give(id << 9);
    mark();
    check_found(3, 0);
    ck_assert_uint_eq(leaks.n_groups, n);
    ck_assert_uint_eq(leaks.n_ids, n);
    for (uint32_t g = 0; g < n; g++) {
        check_level(g, 0, 1, 1 + g);
        check_level(g, 1, g % 2, g % 2 * (1 + g));
        check_level(g, 2, 0, 0);
    }
}
END_TEST

/* ---- who ----------------------------------------------------------------- */

START_TEST(groups_are_sites_or_else_sizes_on_streams)
{
    take_at(1, 100, 0, 5);
    take_at(2, 200, 7, 5);
    take_at(3, 100, 0, 6);
    ck_assert_uint_eq(leaks.n_groups, 2);
    take_at(4, 100, 0, MS_NONE);
    take_at(5, 101, 0, MS_NONE);
    take_at(6, 100, 7, MS_NONE);
    take_at(7, 100, 7, MS_NONE);
    ck_assert_uint_eq(leaks.n_groups, 5);
    for (uint64_t i = 0; i < 300; i++)
        take_at(8 + i, 200, i, MS_NONE);
    ck_assert_uint_eq(leaks.n_groups, 5 + 300);
    for (int i = 0; i < 4; i++)
        mark();
    check_found(3, 0);
    check_level(0, 0, 2, 300);
    check_level(4, 0, 2, 200);
}
END_TEST

/* ---- what grows ---------------------------------------------------------- */

/* A block of each site, of other bytes at each of the points. */
static void replace(uint32_t site, uint64_t bytes)
{
    give(site);
    take_at(site, bytes, 0, site);
}

/* Never falls, and rises more than once; the largest first, of equals the one
 * that came first. */
START_TEST(what_rises_twice_and_never_falls_grows)
{
    static const uint64_t bytes[][4] = {
        {10, 20, 30, 40},                                      /* 30 more */
        {10, 20, 20, 20},                                      /* once */
        {10, 20, 20, 25},                                      /* 15 more */
        {10, 10, 10, 90},                                      /* once */
        {10, 20, 30, 29},                                      /* falls */
        {20, 10, 30, 90},                                      /* falls */
        {10, 60, 60, 61},                                      /* 51 more */
        {70, 80, 90, 100}, {10, 10, 10, 10}, {10, 10, 11, 12}, /* 2 more */
    };
    static const uint32_t order[] = {6, 0, 7, 2, 9};
    mark();
    for (uint32_t k = 0; k < 4; k++) {
        for (uint32_t g = 0; g < sizeof bytes / sizeof *bytes; g++)
            replace(g, bytes[g][k]);
        mark();
    }
    check_found(4, sizeof order / sizeof *order);
    for (uint32_t g = 0; g < sizeof bytes / sizeof *bytes; g++)
        for (uint32_t k = 0; k < 4; k++)
            check_level(g, k, 1, bytes[g][k]);
    for (uint32_t i = 0; i < leaks.n_found; i++)
        ck_assert_uint_eq(leaks.found[i], order[i]);
    ck_assert_uint_eq(ms_alloc_leaks_growth(&leaks, 6), 51);
    ck_assert_uint_eq(ms_alloc_leaks_growth(&leaks, 9), 2);
}
END_TEST

Suite *suite_leaks(void)
{
    Suite *suite = suite_create("leaks");
    TCase *tcase = tcase_create("leaks");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, the_first_mark_is_left_out);
    tcase_add_test(tcase, three_marks_are_too_few);
    tcase_add_test(tcase, the_last_64_steps_are_compared);
    tcase_add_loop_test(tcase, marks_go_before_resets_before_recurrence, 0, 2);
    tcase_add_test(tcase, what_recurs_three_times_is_a_step);
    tcase_add_loop_test(tcase, a_step_asks_for_the_same_each_time, 0, 2);
    tcase_add_test(tcase, the_last_64_recurrences_are_compared);
    tcase_add_test(tcase, a_life_counts_from_its_beginning_to_its_end);
    tcase_add_test(tcase, an_id_names_its_last_block);
    tcase_add_test(tcase, ids_are_found_again_in_a_larger_table);
    tcase_add_test(tcase, groups_are_sites_or_else_sizes_on_streams);
    tcase_add_test(tcase, what_rises_twice_and_never_falls_grows);
    suite_add_tcase(suite, tcase);
    return suite;
}
