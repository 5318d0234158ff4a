/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "sim/sim.h"
#include "tests/tests.h"

#define GIB ((uint64_t)1 << 30)

static const ms_ring eight = {.ranks = 8,
                              .ranks_per_node = 8,
                              .nvlink = true,
                              .node_bytes_per_s = 360e9,
                              .network_bytes_per_s = 37.5e9};

/* nccl-tests' bus bandwidth in GB/s. */
static double bus(const ms_ring *ring, ms_collective kind, uint64_t bytes)
{
    return (double)ms_collective_sent_bytes(ring, kind, bytes) /
           (double)ms_collective_ns(ring, kind, bytes);
}

START_TEST(one_rank_needs_nobody)
{
    ms_ring alone = {.ranks = 1};
    ms_ring unsaid = {0};
    ck_assert_uint_eq(ms_collective_ns(&alone, MS_ALL_REDUCE, GIB), 0);
    ck_assert_uint_eq(ms_collective_ns(&unsaid, MS_ALL_GATHER, GIB), 0);
    ck_assert_uint_eq(ms_collective_sent_bytes(&alone, MS_ALL_REDUCE, GIB), 0);
}
END_TEST

START_TEST(volumes)
{
    ck_assert_uint_eq(ms_collective_sent_bytes(&eight, MS_ALL_GATHER, 800),
                      700);
    ck_assert_uint_eq(ms_collective_sent_bytes(&eight, MS_REDUCE_SCATTER, 800),
                      700);
    ck_assert_uint_eq(ms_collective_sent_bytes(&eight, MS_ALL_REDUCE, 800),
                      1400);
}
END_TEST

/* 8 x H200, 16 GiB: ring all-gather 361, reduce-scatter 363, ring all-reduce
 * 367.6 GB/s measured (specs/policies.md 1.7). */
START_TEST(large_ones_reach_the_link)
{
    ck_assert_double_eq_tol(bus(&eight, MS_ALL_GATHER, 16 * GIB), 361, 4);
    ck_assert_double_eq_tol(bus(&eight, MS_REDUCE_SCATTER, 16 * GIB), 363, 4);
    ck_assert_double_eq_tol(bus(&eight, MS_ALL_REDUCE, 16 * GIB), 367.6, 8);
}
END_TEST

/* LL: 6.6 us and seven hops of 0.6 us. */
START_TEST(small_ones_take_their_latency)
{
    ck_assert_uint_eq(ms_collective_ns(&eight, MS_ALL_GATHER, 8), 10800);
    ck_assert_double_lt(bus(&eight, MS_ALL_REDUCE, 32768), 4);
}
END_TEST

START_TEST(between_nodes_the_network_carries_it)
{
    ms_ring two = eight;
    two.ranks = 16;
    ck_assert_double_eq_tol(bus(&two, MS_ALL_GATHER, 64 * GIB), 300, 1);
    two.ranks_per_node = 1; /* one GPU per node: its own link */
    ck_assert_double_eq_tol(bus(&two, MS_ALL_GATHER, 64 * GIB), 37.5, 1);
}
END_TEST

START_TEST(more_bytes_take_longer)
{
    uint64_t before_ns = 0;
    for (uint64_t bytes = 1; bytes < 64 * GIB; bytes *= 2) {
        uint64_t ns = ms_collective_ns(&eight, MS_ALL_REDUCE, bytes);
        ck_assert_uint_ge(ns, before_ns);
        before_ns = ns;
    }
}
END_TEST

Suite *suite_collective(void)
{
    Suite *suite = suite_create("collective");
    TCase *tcase = tcase_create("collective");
    tcase_add_test(tcase, one_rank_needs_nobody);
    tcase_add_test(tcase, volumes);
    tcase_add_test(tcase, large_ones_reach_the_link);
    tcase_add_test(tcase, small_ones_take_their_latency);
    tcase_add_test(tcase, between_nodes_the_network_carries_it);
    tcase_add_test(tcase, more_bytes_take_longer);
    suite_add_tcase(suite, tcase);
    return suite;
}
