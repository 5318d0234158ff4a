/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Frees that wait for streams, by hand. */
#include "sim/replay/heldfrees.h"
#include "tests/tests.h"

enum { A = 1, B = 3 }; /* two streams */

static const ms_heldfrees none = {.first_ns = UINT64_MAX};

START_TEST(the_stream_that_ends_last_holds_a_free_up)
{
    ms_heldfrees held = none;
    ms_heldfrees_item items[2];
    held.tail_ns[A] = 10;
    held.tail_ns[B] = 20;
    ms_heldfrees_push(&held, items, 0, 1u << A | 1u << B, 700);
    ck_assert_uint_eq(held.first_ns, 20);
    ms_heldfrees_push(&held, items, 1, 1u << A, 800);
    ck_assert_uint_eq(held.first_ns, 10);
    ck_assert_uint_eq(ms_heldfrees_pop(&held, items), 800);
    ck_assert_uint_eq(held.first_ns, 20);
    ck_assert_uint_eq(ms_heldfrees_pop(&held, items), 700);
    ck_assert_uint_eq(held.first_ns, UINT64_MAX);
    ck_assert_uint_eq(held.holding, 0);
}
END_TEST

START_TEST(a_stream_lets_go_in_order)
{
    ms_heldfrees held = none;
    ms_heldfrees_item items[4];
    for (uint32_t i = 0; i < 4; i++) {
        held.tail_ns[A] = 10 * i;
        held.tail_ns[B] = 15;
        ms_heldfrees_push(&held, items, i, i == 3 ? 1u << B : 1u << A, i);
    }
    ck_assert_uint_eq(ms_heldfrees_pop(&held, items), 0);
    ck_assert_uint_eq(ms_heldfrees_pop(&held, items), 1);
    ck_assert_uint_eq(ms_heldfrees_pop(&held, items), 3);
    ck_assert_uint_eq(ms_heldfrees_pop(&held, items), 2);
}
END_TEST

START_TEST(of_equal_streams_the_first_counts)
{
    ms_heldfrees held = none;
    held.tail_ns[A] = held.tail_ns[B] = 5;
    ck_assert_uint_eq(ms_heldfrees_longest(&held, 1u << A | 1u << B), A);
    held.tail_ns[B] = 6;
    ck_assert_uint_eq(ms_heldfrees_longest(&held, 1u << A | 1u << B), B);
}
END_TEST

Suite *suite_heldfrees(void)
{
    Suite *suite = suite_create("heldfrees");
    TCase *tcase = tcase_create("heldfrees");
    tcase_add_test(tcase, the_stream_that_ends_last_holds_a_free_up);
    tcase_add_test(tcase, a_stream_lets_go_in_order);
    tcase_add_test(tcase, of_equal_streams_the_first_counts);
    suite_add_tcase(suite, tcase);
    return suite;
}
