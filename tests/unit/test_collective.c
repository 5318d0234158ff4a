/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The time of collectives, by the links of a device and of its nodes. */
#include "graphs/machines/communicators.h"
#include "sim/replay/collective.h"
#include "tests/tests.h"

#define GIB ((uint64_t)1 << 30)

static const ms_group eight = {.ranks = 8,
                               .node_ranks = 8,
                               .links = {.nvlink = true,
                                         .node_bytes_per_s = 360e9,
                                         .network_bytes_per_s = 37.5e9}};

/* nccl-tests' bus bandwidth in GB/s. */
static double bus(const ms_group *ring, ms_collective kind, uint64_t bytes)
{
    return (double)ms_collective_sent_bytes(ring, kind, bytes) /
           (double)ms_collective_ns(ring, kind, bytes);
}

START_TEST(one_rank_needs_nobody)
{
    ms_group alone = {.ranks = 1};
    ms_group unsaid = {0};
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
 * 367.6 GB/s measured (stas00/ml-engineering, network/README.md, 744d01e1). */
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
    ms_group two = eight;
    two.ranks = 16;
    ck_assert_double_eq_tol(bus(&two, MS_ALL_GATHER, 64 * GIB), 300, 1);
    two.node_ranks = 1; /* one GPU per node: its own link */
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

/* ---- every kind, every device -------------------------------------------- */

#define N_KINDS 6u
static const uint32_t counts[] = {1, 2, 3, 7, 8, 9, 16, 31, 32, 64, 1000};
#define N_COUNTS (sizeof counts / sizeof *counts)

/* Calls law with each device's links for each count of ranks. */
static void for_each_ring(void (*law)(const ms_group *ring))
{
    for (uint32_t i = 0; i < ms_devices_n; i++)
        for (size_t j = 0; j < N_COUNTS; j++) {
            ms_group ring = ms_communicators_row(ms_devicerows_at(i),
                                                 MS_GROUP_DATA, counts[j], 1);
            law(&ring);
            ring.links.n_curves = 0;
            law(&ring);
        }
}

static void alone_is_free(const ms_group *ring)
{
    for (uint32_t kind = 0; ring->ranks == 1 && kind < N_KINDS; kind++) {
        ck_assert_uint_eq(ms_collective_ns(ring, kind, GIB), 0);
        ck_assert_uint_eq(ms_collective_sent_bytes(ring, kind, GIB), 0);
    }
}

static void size_costs_time(const ms_group *ring)
{
    for (uint32_t kind = 0; kind < N_KINDS; kind++) {
        uint64_t before_ns = 0;
        for (uint64_t bytes = 1; bytes < 64 * GIB; bytes += bytes / 3 + 1) {
            uint64_t ns = ms_collective_ns(ring, kind, bytes);
            ck_assert_uint_ge(ns, before_ns);
            before_ns = ns;
        }
    }
}

static void volumes_add_up(const ms_group *ring)
{
    for (uint64_t bytes = 1; bytes < 64 * GIB; bytes += bytes / 3 + 1) {
        uint64_t sent[N_KINDS];
        for (uint32_t kind = 0; kind < N_KINDS; kind++)
            sent[kind] = ms_collective_sent_bytes(ring, kind, bytes);
        ck_assert_uint_eq(sent[MS_ALL_REDUCE],
                          sent[MS_ALL_GATHER] + sent[MS_REDUCE_SCATTER]);
        ck_assert_uint_eq(sent[MS_ALL_TO_ALL], sent[MS_ALL_GATHER]);
        ck_assert_uint_eq(sent[MS_SEND], ring->ranks > 1 ? bytes : 0);
    }
}

static void no_broadcast_beyond_all_reduce(const ms_group *ring)
{
    for (uint64_t bytes = 1; bytes < 64 * GIB; bytes += bytes / 3 + 1)
        ck_assert_uint_le(ms_collective_ns(ring, MS_BROADCAST, bytes),
                          ms_collective_ns(ring, MS_ALL_REDUCE, bytes));
}

/* Every point of every curve, to the nanosecond. */
static void curves_hold_at_their_points(const ms_group *ring)
{
    for (uint32_t i = 0; i < ring->links.n_curves; i++) {
        const ms_curve *curve = &ring->links.curves[i];
        if (curve->ranks != ring->ranks)
            continue;
        for (uint32_t j = 0; j < curve->n; j++) {
            const ms_curve_point *point = &curve->points[j];
            double ns = (double)ms_collective_sent_bytes(ring, curve->kind,
                                                         point->bytes) /
                        point->bytes_per_s * 1e9;
            ck_assert_uint_eq(ms_collective_ns(ring, curve->kind, point->bytes),
                              (uint64_t)(ns + 0.5));
        }
    }
}

START_TEST(laws)
{
    for_each_ring(alone_is_free);
    for_each_ring(size_costs_time);
    for_each_ring(volumes_add_up);
    for_each_ring(no_broadcast_beyond_all_reduce);
    for_each_ring(curves_hold_at_their_points);
}
END_TEST

/* 25 us and the bytes at 0.85 * 5 / 6 of the links; small ones by LL. */
START_TEST(switches_reduce)
{
    ms_group hopper = eight;
    hopper.links.nvls_share = 0.85;
    double ns = 25e3 + (double)GIB / (360 * 0.85 * 5 / 6);
    ck_assert_uint_eq(ms_collective_ns(&hopper, MS_ALL_REDUCE, GIB),
                      (uint64_t)(ns + 0.5));
    ck_assert_uint_eq(ms_collective_ns(&hopper, MS_ALL_REDUCE, 8),
                      ms_collective_ns(&eight, MS_ALL_REDUCE, 8));
    ck_assert_uint_eq(ms_collective_ns(&hopper, MS_ALL_GATHER, GIB),
                      ms_collective_ns(&eight, MS_ALL_GATHER, GIB));
}
END_TEST

/* What is reduced per second, in GB/s. */
static double reduced(const ms_group *group)
{
    return 16.0 * GIB /
           (double)ms_collective_ns(group, MS_ALL_REDUCE, 16 * GIB);
}

/* 2 nodes of 8: in a tree a node sends the bytes once, in a ring 15/8 of them;
 * with 300 GB/s to the network the chains of NVLinks are slower than it. */
START_TEST(trees_of_two_nodes_spare_the_network)
{
    ms_group two = eight;
    two.ranks = 16;
    ck_assert_double_eq_tol(reduced(&two), 0.92 * 360 / 2, 1);
    two.links.network_bytes_per_s = 10e9;
    ck_assert_double_eq_tol(reduced(&two), 0.92 * 8 * 10, 0.5);
    ck_assert_uint_eq(ms_collective_network_bytes(&two, MS_ALL_REDUCE, GIB),
                      GIB / 8);
    two.ranks = 24; /* of three nodes twice: a ring is faster */
    ck_assert_double_eq_tol(reduced(&two), 80 * 24.0 / 46, 0.5);
    ck_assert_uint_eq(ms_collective_network_bytes(&two, MS_ALL_REDUCE, GIB),
                      (uint64_t)(2 * 23.0 / 24 * GIB / 8));
}
END_TEST

/* 800 Gb/s of a node: 55 GB/s by A100s' trees of two nodes, which NCCL counts
 * as 110 both ways; slower networks are so by themselves. */
START_TEST(trees_of_older_nodes_have_a_most)
{
    ms_group two = eight;
    two.ranks = 16;
    two.links.compute_capability = 80;
    two.links.network_bytes_per_s = 12e9;
    ck_assert_double_eq_tol(reduced(&two), 55, 0.1);
    two.links.network_bytes_per_s = 6e9;
    ck_assert_double_eq_tol(reduced(&two), 0.92 * 48, 0.1);
    two.links.compute_capability = 90;
    two.links.network_bytes_per_s = 12e9;
    ck_assert_double_eq_tol(reduced(&two), 0.92 * 96, 0.2);
}
END_TEST

/* Of two nodes of 8 an all-reduce goes twice round: 26 hops in the nodes, and
 * each ring passes four times from one to the other; a gather's once less. */
START_TEST(rings_pass_the_network)
{
    ms_group two = eight;
    two.ranks = 16;
    two.algorithm = MS_ALGORITHM_RING;
    double sent = 30.0 / 16 * GIB / 300;
    ck_assert_double_eq_tol((double)ms_collective_ns(&two, MS_ALL_REDUCE, GIB),
                            1e3 * (8.4 + 26 * 3.4 + 4 * 14) + sent, 1);
    ck_assert_double_eq_tol((double)ms_collective_ns(&two, MS_ALL_GATHER, GIB),
                            1e3 * (8.4 + 14 * 3.4 + 14) + sent / 2, 1);
    ck_assert_double_eq_tol((double)ms_collective_ns(&two, MS_ALL_REDUCE, 8),
                            1e3 * (6.6 + 26 * 1.0 + 4 * 2.7), 1);
}
END_TEST

START_TEST(pairs_without_a_switch_have_one_link)
{
    ms_group mesh = eight;
    mesh.links.peer_bytes_per_s = 50e9;
    ck_assert_double_eq_tol(bus(&mesh, MS_ALL_REDUCE, 16 * GIB), 350, 1);
    ck_assert_double_eq_tol(bus(&mesh, MS_SEND, 16 * GIB), 50, 0.1);
    mesh.ranks = 2;
    ck_assert_double_eq_tol(bus(&mesh, MS_ALL_REDUCE, 16 * GIB), 50, 0.1);
}
END_TEST

/* Of 16 ranks on two nodes, 8 / 16 of the bytes leave a node, over the links
 * of the ranks side by side. */
START_TEST(messages_to_all)
{
    ms_group two = eight;
    ck_assert_double_eq_tol(bus(&two, MS_ALL_TO_ALL, 16 * GIB), 360, 1);
    two.ranks = 16;
    ck_assert_double_eq_tol(
        (double)(8 * GIB) /
            (double)ms_collective_ns(&two, MS_ALL_TO_ALL, 16 * GIB),
        37.5, 0.1);
    ck_assert_double_eq_tol(bus(&two, MS_SEND, 16 * GIB), 37.5, 0.1);
}
END_TEST

/* Between 1 MiB at 40 GB/s and 4 MiB at 90, a third of the way in time: 2 MiB
 * at 2 / (1 / 40 + (4 / 90 - 1 / 40) / 3).  Below, the latency of 1 MiB;
 * above, 90.
 */
START_TEST(curves_are_lines_in_time)
{
    static const ms_curve_point points[] = {{1 << 20, 40e9}, {4 << 20, 90e9}};
    static const ms_curve curve = {8, 8, MS_ALL_REDUCE, 2, points};
    ms_group ring = eight;
    ring.links.curves = &curve;
    ring.links.n_curves = 1;
    ck_assert_double_eq_tol(bus(&ring, MS_ALL_REDUCE, 2 << 20), 63.53, 0.01);
    ck_assert_double_eq_tol(bus(&ring, MS_ALL_REDUCE, 8 << 20), 90, 0.01);
    ck_assert_uint_eq(ms_collective_ns(&ring, MS_ALL_REDUCE, 1),
                      ms_collective_ns(&ring, MS_ALL_REDUCE, 1 << 20));
    ck_assert_double_eq_tol(bus(&ring, MS_ALL_GATHER, 2 << 20), 63.53, 0.01);
    ring.ranks = 4; /* another group: the model */
    ck_assert_double_eq_tol(bus(&ring, MS_ALL_REDUCE, GIB), 360, 4);
}
END_TEST

/* A collective's own curve goes before that of the all-reduce, also where this
 * is faster or its algorithm is forced; a message has one only of its own. */
START_TEST(own_curves_go_first)
{
    static const ms_curve_point slow = {1 << 20, 40e9}, fast = {1 << 20, 90e9};
    static const ms_curve curves[] = {{8, 8, MS_ALL_REDUCE, 1, &slow},
                                      {8, 8, MS_ALL_GATHER, 1, &fast},
                                      {8, 8, MS_SEND, 1, &fast}};
    ms_group ring = eight;
    ring.links.curves = curves;
    ring.links.n_curves = 2;
    uint64_t model_ns = ms_collective_ns(&ring, MS_SEND, GIB);
    ck_assert_double_eq_tol(bus(&ring, MS_ALL_REDUCE, GIB), 40, 0.01);
    ck_assert_double_eq_tol(bus(&ring, MS_ALL_GATHER, GIB), 90, 0.01);
    ck_assert_double_eq_tol(bus(&ring, MS_REDUCE_SCATTER, GIB), 40, 0.01);
    ring.algorithm = MS_ALGORITHM_RING;
    ck_assert_double_eq_tol(bus(&ring, MS_ALL_REDUCE, GIB), 360, 4);
    ck_assert_double_eq_tol(bus(&ring, MS_ALL_GATHER, GIB), 90, 0.01);
    ring.links.n_curves = 3;
    ck_assert_double_eq_tol(bus(&ring, MS_SEND, GIB), 90, 0.01);
    ck_assert_uint_ne(ms_collective_ns(&ring, MS_SEND, GIB), model_ns);
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
    tcase_add_test(tcase, laws);
    tcase_add_test(tcase, switches_reduce);
    tcase_add_test(tcase, trees_of_two_nodes_spare_the_network);
    tcase_add_test(tcase, trees_of_older_nodes_have_a_most);
    tcase_add_test(tcase, rings_pass_the_network);
    tcase_add_test(tcase, pairs_without_a_switch_have_one_link);
    tcase_add_test(tcase, messages_to_all);
    tcase_add_test(tcase, curves_are_lines_in_time);
    tcase_add_test(tcase, own_curves_go_first);
    suite_add_tcase(suite, tcase);
    return suite;
}
