/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Threads that hand their results over in order, and stop when told. */
#include "tests/tests.h"
#include "tools/points/points.h"

#include <stdatomic.h>
#include <string.h>
#include <time.h>

#define MANY 5000u

static struct {
    atomic_uint begun[MANY]; /* how often work was called */
    uint32_t ring[MS_WORKERS_AHEAD];
    uint32_t n_done, stop_at, n_ticks, stop_after_ticks;
    bool in_order, slow;
    atomic_uint most_thread;
} seen;

static void setup(void)
{
    memset(&seen, 0, sizeof seen);
    seen.in_order = true;
    seen.stop_at = MS_NONE;
}

static void work(void *of, uint32_t i, uint32_t thread)
{
    const struct timespec pause = {.tv_nsec = seen.slow ? 200000000 : 0};
    (void)of;
    atomic_fetch_add(&seen.begun[i], 1);
    if (thread > atomic_load(&seen.most_thread))
        atomic_store(&seen.most_thread, thread);
    for (volatile uint32_t busy = 0; busy < i * 7919 % 512; busy++)
        ; /* items are not all as long */
    if (seen.slow)
        nanosleep(&pause, NULL);
    seen.ring[i % MS_WORKERS_AHEAD] = i * 3 + 1;
}

static bool done(void *of, uint32_t i)
{
    (void)of;
    seen.in_order &= i == seen.n_done;
    seen.in_order &= seen.ring[i % MS_WORKERS_AHEAD] == i * 3 + 1;
    seen.n_done++;
    return i != seen.stop_at;
}

static bool tick(void *of)
{
    (void)of;
    seen.n_ticks++;
    return seen.stop_after_ticks == 0 || seen.n_ticks < seen.stop_after_ticks;
}

static const uint32_t threads[] = {0, 1, 2, 3, 8, 64};
#define N_THREADS ((int)(sizeof threads / sizeof threads[0]))

START_TEST(each_once_in_order)
{
    static const uint32_t counts[] = {0, 1, 2, 1023, 1024, 1025, MANY};
    ms_fault fault = {0};
    for (size_t n = 0; n < sizeof counts / sizeof counts[0]; n++) {
        setup();
        ck_assert_int_eq(ms_workers_run(counts[n], threads[_i], work, done,
                                        NULL, NULL, &fault),
                         MS_OK);
        ck_assert_uint_eq(seen.n_done, counts[n]);
        ck_assert(seen.in_order);
        for (uint32_t i = 0; i < MANY; i++)
            ck_assert_uint_eq(seen.begun[i], i < counts[n]);
        ck_assert_uint_lt(seen.most_thread, threads[_i] + 1);
    }
}
END_TEST

START_TEST(stops_early)
{
    ms_fault fault = {0};
    uint32_t begun = 0;
    setup();
    seen.stop_at = 10;
    ck_assert_int_eq(
        ms_workers_run(MANY, threads[_i], work, done, tick, NULL, &fault),
        MS_OK);
    ck_assert_uint_eq(seen.n_done, 11);
    for (uint32_t i = 0; i < MANY; i++)
        begun += seen.begun[i];
    ck_assert_uint_le(begun, 11 + MS_WORKERS_AHEAD);
}
END_TEST

/* While items take their time, tick is called, and can stop. */
START_TEST(ticks_while_waiting)
{
    ms_fault fault = {0};
    setup();
    seen.slow = true;
    seen.stop_after_ticks = 2;
    ck_assert_int_eq(
        ms_workers_run(MANY, threads[_i], work, done, tick, NULL, &fault),
        MS_OK);
    ck_assert_uint_eq(seen.n_ticks, 2);
    ck_assert_uint_lt(seen.n_done, 3);
}
END_TEST

START_TEST(too_many_threads)
{
    ms_fault fault = {0};
    setup();
    ck_assert_int_eq(
        ms_workers_run(1, MS_WORKERS_MOST + 1, work, done, NULL, NULL, &fault),
        MS_EUSAGE);
    ck_assert_uint_ge(ms_workers_cores(), 1);
}
END_TEST

Suite *suite_workers(void)
{
    Suite *suite = suite_create("workers");
    TCase *tcase = tcase_create("workers");
    tcase_add_loop_test(tcase, each_once_in_order, 0, N_THREADS);
    tcase_add_loop_test(tcase, stops_early, 0, N_THREADS);
    tcase_add_loop_test(tcase, ticks_while_waiting, 0, N_THREADS);
    tcase_add_test(tcase, too_many_threads);
    suite_add_tcase(suite, tcase);
    return suite;
}
