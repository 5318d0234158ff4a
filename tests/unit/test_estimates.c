/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Copies in a row, and the best of many tensors without a look at each: the
 * examples of copyqueue.h and estimates.h. */
#include "policies/common/copyqueue.h"
#include "policies/common/estimates.h"
#include "tests/tests.h"

#include <math.h>

static ms_arena arena;
static ms_fault fault;

static void teardown(void)
{
    ms_arena_free(&arena);
}

/* ---- copies -------------------------------------------------------------- */

static void check_gap(const ms_copyqueue *queue, uint32_t place,
                      ms_copyqueue_gap gap, uint32_t from, uint32_t by)
{
    ms_copyqueue_source from_source, by_source;
    ms_copyqueue_gap found =
        ms_copyqueue_trace(queue, place, &from_source, &by_source);
    ck_assert_int_eq(found.from_ns, gap.from_ns);
    ck_assert_int_eq(found.by_ns, gap.by_ns);
    ck_assert_uint_eq(from_source.place, from);
    ck_assert_uint_eq(by_source.place, by);
}

/* That of copyqueue.h; then call 3, with which the first is used, is 7 later:
 * the second copy, used with call 1, has to wait for it. */
START_TEST(copies_in_a_row)
{
    static const ms_copyqueue_copy first = {4, 0, 10, 3, 5};
    static const ms_copyqueue_copy second = {4, 2, 12, 1, 2};
    const int64_t never = MS_COPYQUEUE_NEVER;
    ms_copyqueue queue;
    ck_assert_int_eq(ms_copyqueue_open(&queue, 4, &arena, &fault), MS_OK);
    check_gap(&queue, 1, (ms_copyqueue_gap){0, never}, MS_NONE, MS_NONE);
    ms_copyqueue_set(&queue, 0, &first);
    ms_copyqueue_set(&queue, 2, &second);
    check_gap(&queue, 1, (ms_copyqueue_gap){4, 8}, 0, 2);
    check_gap(&queue, 3, (ms_copyqueue_gap){8, never}, 0, MS_NONE);
    ms_copyqueue_shift(&queue, 3, 7);
    check_gap(&queue, 1, (ms_copyqueue_gap){11, 8}, 0, 2);
    check_gap(&queue, 3, (ms_copyqueue_gap){15, never}, 0, MS_NONE);
    ms_copyqueue_set(&queue, 0, NULL);
    check_gap(&queue, 3, (ms_copyqueue_gap){6, never}, 2, MS_NONE);
}
END_TEST

/* ---- estimates ----------------------------------------------------------- */

#define TENSORS 5u

/* The copy out of tensor i is so late, between places 10 i and 10 i + 10 and
 * calls 10 i and 10 i + 10. */
static int64_t late_ns[TENSORS];
static uint32_t n_tried;

static double most(void *of, const ms_estimates_node *node, uint32_t like)
{
    (void)of;
    (void)like;
    return -(double)node->late_ns;
}

static double exact(void *of, ms_estimates_node *leaf)
{
    uint32_t first = 10 * leaf->id, last = first + 10;
    ms_estimates_term *term = &leaf->term[MS_ESTIMATES_OUT];
    (void)of;
    n_tried++;
    *term = ms_estimates_known(late_ns[leaf->id]);
    term->span[MS_ESTIMATES_OUT_PLACE] = ms_estimates_between(first, last);
    term->span[MS_ESTIMATES_CALL] = ms_estimates_between(first, last);
    leaf->late_ns = late_ns[leaf->id] > 0 ? late_ns[leaf->id] : 0;
    return -(double)leaf->late_ns;
}

static void check_best(ms_estimates *estimates, uint32_t tensor, uint32_t tried)
{
    static const ms_estimates_way way = {.most = most, .exact = exact};
    n_tried = 0;
    ms_estimates_best best = ms_estimates_find(estimates, 5, &way, -INFINITY);
    ck_assert_uint_eq(best.tensor, tensor);
    ck_assert_uint_eq(n_tried, tried);
}

static void open_estimates(ms_estimates *estimates)
{
    static const uint64_t bytes[TENSORS] = {8, 8, 8, 8, 8};
    ck_assert_int_eq(
        ms_estimates_open(estimates, bytes, TENSORS, &arena, &fault), MS_OK);
    check_best(estimates, MS_NONE, 0);
    for (uint32_t i = 0; i < TENSORS - 1; i++)
        ms_estimates_set(estimates, i, 1, 9);
    for (uint32_t i = 0; i < TENSORS; i++)
        late_ns[i] = 20 - i;
}

/* Tensor 3 is the least late (4 is not there); all are tried once.  A copy of 4
 * between its two makes it 21 late: 2 is the best then, and the only one that
 * is tried again.  A shift of 10 at a call between those of 1 makes that the
 * best. */
START_TEST(only_what_changed_is_tried)
{
    ms_estimates estimates;
    open_estimates(&estimates);
    check_best(&estimates, 3, 4);
    check_best(&estimates, 3, 1);
    late_ns[3] += 4;
    ms_estimates_add(&estimates, MS_ESTIMATES_OUT_PLACE, 35, 4);
    check_best(&estimates, 2, 1);
    late_ns[1] -= 10;
    ms_estimates_add(&estimates, MS_ESTIMATES_CALL, 15, -10);
    check_best(&estimates, 1, 1);
    ms_estimates_add(&estimates, MS_ESTIMATES_IN_PLACE, 15, 100);
    ms_estimates_add(&estimates, MS_ESTIMATES_OUT_PLACE, 10, 100);
    check_best(&estimates, 1, 1);
    ms_estimates_set(&estimates, 1, 0, 0);
    check_best(&estimates, 2, 1);
}
END_TEST

/* Call 20 is where the span of 1 ends; it ends at 50 now, 5 sooner, and a shift
 * of call 45 counts. */
START_TEST(a_bound_moves)
{
    ms_estimates estimates;
    open_estimates(&estimates);
    check_best(&estimates, 3, 4);
    late_ns[1] -= 5;
    ms_estimates_move(&estimates, MS_ESTIMATES_OUT, 20, 50, -5);
    check_best(&estimates, 1, 1);
    late_ns[1] += 2;
    ms_estimates_add(&estimates, MS_ESTIMATES_CALL, 45, 2);
    check_best(&estimates, 1, 1);
    late_ns[1] += 2;
    ms_estimates_add(&estimates, MS_ESTIMATES_CALL, 15, 2);
    check_best(&estimates, 3, 1);
}
END_TEST

START_TEST(rates_need_no_try)
{
    ms_estimates estimates;
    open_estimates(&estimates);
    for (uint32_t i = 0; i < TENSORS; i++)
        ms_estimates_rate(&estimates, i, i == 2 ? 3.0 : -INFINITY);
    ck_assert(estimates.nodes[1].rate == 3.0);
    ms_estimates_set(&estimates, 2, 0, 0);
    ck_assert(isinf(estimates.nodes[1].rate));
}
END_TEST

Suite *suite_estimates(void)
{
    Suite *suite = suite_create("estimates");
    TCase *tcase = tcase_create("estimates");
    tcase_add_checked_fixture(tcase, NULL, teardown);
    tcase_add_test(tcase, copies_in_a_row);
    tcase_add_test(tcase, only_what_changed_is_tried);
    tcase_add_test(tcase, a_bound_moves);
    tcase_add_test(tcase, rates_need_no_try);
    suite_add_tcase(suite, tcase);
    return suite;
}
