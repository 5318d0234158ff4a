/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Which op is the cause of a wait, and which copies are hidden: a timeline
 * worked out by hand. */
#include "sim/graph.h"
#include "sim/plan.h"
#include "sim/replay/collective.h"
#include "sim/report.h"
#include "sim/timeline.h"
#include "tests/tests.h"

#include <string.h>

/* The disk is read from 0 to 30 and what was read copied until 50, beside a
 * forward of 10 ns: backward waits 20 ns for each.  Gradients are reduced from
 * 60 to 90, as soon as the host asks for it, between groups from 80 to 100;
 * the step waits for the former since 70.  Then the host's cores work until
 * 130, and a copy that the host issues at 125 ends the step at 150. */
enum { START, FORWARD, READ, COPY, BACKWARD, REDUCE, OUTER, STEP, CORES, LAST };
static ms_plan_op op[] = {
    [START] = {.of = MS_NONE, .pass = MS_START},
    [FORWARD] = {.of = MS_NONE, .pass = MS_FORWARD},
    [READ] = {.of = MS_NONE, .pass = MS_COPY, .stream = MS_STREAM_NVME_READ},
    [COPY] = {.of = MS_NONE, .pass = MS_COPY, .stream = MS_STREAM_H2D},
    [BACKWARD] = {.of = MS_NONE, .pass = MS_GRAD_INPUT},
    [REDUCE] = {.of = MS_NONE, .pass = MS_COPY, .stream = MS_STREAM_COMM},
    [OUTER] = {.of = MS_NONE, .pass = MS_COPY, .stream = MS_STREAM_OUTER},
    [STEP] = {.of = MS_NONE, .pass = MS_STEP},
    [CORES] = {.of = MS_NONE, .pass = MS_COPY, .stream = MS_STREAM_HOST},
    [LAST] = {.of = MS_NONE, .pass = MS_COPY, .stream = MS_STREAM_H2D},
    {.of = MS_NONE},
};
static uint64_t start_ns[] = {0, 0, 0, 30, 50, 60, 80, 90, 110, 125};
static uint64_t end_ns[] = {0, 10, 30, 50, 70, 90, 100, 110, 130, 150};
static uint8_t gap_cause[] = {
    [COPY] = MS_GAP_COPY,  [BACKWARD] = MS_GAP_COPY, [REDUCE] = MS_GAP_HOST,
    [OUTER] = MS_GAP_HOST, [STEP] = MS_GAP_COMM,     [CORES] = MS_GAP_IDLE,
    [LAST] = MS_GAP_HOST,
};
static uint32_t wait_at[] = {0, 0, 0, 0, 1, 2, 2, 2, 3, 4, 4};
static uint32_t wait_for[] = {READ, COPY, REDUCE, STEP};
static struct ms_transfer moved[] = {
    {.op = READ,
     .kind = MS_TRANSFER_NVME_READ,
     .bytes = 300,
     .network_bytes = 0},
    {.op = COPY, .kind = MS_TRANSFER_H2D, .bytes = 200, .network_bytes = 0},
    {.op = REDUCE,
     .kind = MS_TRANSFER_SCATTER,
     .bytes = 400,
     .network_bytes = 100},
    {.op = OUTER, .kind = MS_TRANSFER_OUTER, .bytes = 50, .network_bytes = 50},
    {.op = LAST, .kind = MS_TRANSFER_H2D, .bytes = 100, .network_bytes = 0},
};
static ms_graph graph;
static ms_plan plan = {.graph = &graph,
                       .n_ops = 10,
                       .op = op,
                       .wait_at = wait_at,
                       .wait = wait_for,
                       .n_transfers = 5,
                       .transfers = moved,
                       .n_ranks = 1};
static const ms_timeline line = {.plan = &plan,
                                 .start_ns = start_ns,
                                 .end_ns = end_ns,
                                 .gap_cause = gap_cause,
                                 .step_ns = 150};

static void measure(ms_rank_report *rank, ms_arena *arena)
{
    ms_fault fault = {0};
    ms_report report = {.n_ranks = 1, .ranks = rank};
    *rank = (ms_rank_report){0};
    ck_assert_int_eq(ms_times_measure(&line, arena, &report, &fault), MS_OK);
}

/* The parts of the waits of the compute stream, the latest of each first. */
static uint32_t list_waits(const ms_waits *waits, ms_wait *list)
{
    uint64_t free_ns = 0;
    uint32_t n = 0, last = MS_NONE;
    for (uint32_t i = 0; i < plan.n_ops; i++) {
        last = ms_waits_later(&line, i, last);
        if (plan.op[i].stream != MS_STREAM_COMPUTE)
            continue;
        ms_wait before = ms_waits_before(waits, i, free_ns);
        while (line.start_ns[i] > free_ns && ms_waits_next(waits, &before))
            list[n++] = before;
        free_ns = line.end_ns[i];
    }
    ms_wait wait = ms_waits_after(waits, last, free_ns);
    while (ms_waits_next(waits, &wait))
        list[n++] = wait;
    return n;
}

START_TEST(a_wait_is_told_by_its_chain)
{
    static const struct {
        uint64_t from_ns, to_ns;
        uint8_t cause;
    } parts[] = {{30, 50, MS_CAUSE_TO_DEVICE},
                 {10, 30, MS_CAUSE_DISK},
                 {70, 90, MS_CAUSE_REDUCE},
                 {125, 150, MS_CAUSE_TO_DEVICE},
                 {110, 125, MS_CAUSE_HOST}};
    ms_arena arena = {0};
    ms_fault fault = {0};
    ms_waits waits;
    ms_wait list[9];
    ck_assert_int_eq(ms_waits_open(&waits, &line, &arena, &fault), MS_OK);
    uint32_t n = list_waits(&waits, list);
    ck_assert_uint_eq(n, sizeof parts / sizeof parts[0]);
    for (uint32_t i = 0; i < n; i++) {
        ck_assert_uint_eq(list[i].from_ns, parts[i].from_ns);
        ck_assert_uint_eq(list[i].to_ns, parts[i].to_ns);
        ck_assert_uint_eq(list[i].cause, parts[i].cause);
    }
    ms_arena_free(&arena);
}
END_TEST

/* Before it issues the last copy, the host waits for its cores: their work is
 * what is waited for, then 2 ns of the host. */
START_TEST(a_host_that_was_held_blames_what_held_it)
{
    static struct ms_plan_sync sync[] = {{.op = LAST, .until = CORES}};
    uint64_t starts[10], ends[10], passed_ns[] = {0, 130};
    ms_arena arena = {0};
    ms_fault fault = {0};
    ms_rank_report rank = {0};
    ms_report report = {.n_ranks = 1, .ranks = &rank};
    ms_plan held = plan;
    ms_timeline later = line;
    memcpy(starts, start_ns, sizeof starts);
    memcpy(ends, end_ns, sizeof ends);
    starts[LAST] = 132;
    ends[LAST] = later.step_ns = 157;
    held.sync = sync;
    held.n_sync = 1;
    later.plan = &held;
    later.start_ns = starts;
    later.end_ns = ends;
    later.passed_ns = passed_ns;
    ck_assert_int_eq(ms_times_measure(&later, &arena, &report, &fault), MS_OK);
    ck_assert_uint_eq(rank.stalls_ns[MS_CAUSE_HOST_WORK], 20);
    ck_assert_uint_eq(rank.stalls_ns[MS_CAUSE_HOST], 2);
    ck_assert_uint_eq(rank.links[MS_LINK_HOST].time.exposed_ns, 20);
    ms_arena_free(&arena);
}
END_TEST

START_TEST(times_follow_the_causes)
{
    ms_arena arena = {0};
    ms_rank_report rank;
    measure(&rank, &arena);
    ck_assert_uint_eq(rank.time.forward_ns, 10);
    ck_assert_uint_eq(rank.time.backward_ns, 20);
    ck_assert_uint_eq(rank.time.optimizer_ns, 20);
    ck_assert_uint_eq(rank.time.exposed_comm_ns, 20);
    ck_assert_uint_eq(rank.time.stall_ns, 65);
    ck_assert_uint_eq(rank.time.host_bound_ns, 15);
    ck_assert_uint_eq(rank.time.idle_ns, 0);
    ck_assert_uint_eq(rank.stalls_ns[MS_CAUSE_DISK], 20);
    ck_assert_uint_eq(rank.stalls_ns[MS_CAUSE_TO_DEVICE], 45);
    ms_arena_free(&arena);
}
END_TEST

START_TEST(links_are_busy_hidden_and_exposed)
{
    static const struct {
        uint8_t link;
        uint64_t bytes, busy_ns, exposed_ns;
    } rows[] = {{MS_LINK_NVME_READ, 300, 30, 20}, {MS_LINK_H2D, 300, 45, 45},
                {MS_LINK_COMM, 400, 30, 20},      {MS_LINK_OUTER, 50, 20, 0},
                {MS_LINK_HOST, 0, 20, 0},         {MS_LINK_D2H, 0, 0, 0}};
    ms_arena arena = {0};
    ms_rank_report rank;
    measure(&rank, &arena);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const ms_link_use *use = &rank.links[rows[i].link];
        ck_assert_uint_eq(use->bytes, rows[i].bytes);
        ck_assert_uint_eq(use->time.busy_ns, rows[i].busy_ns);
        ck_assert_uint_eq(use->time.exposed_ns, rows[i].exposed_ns);
    }
    ck_assert_uint_eq(rank.links[MS_LINK_COMM].network_bytes, 100);
    ck_assert_uint_eq(rank.comm.busy_ns, 40); /* both at once from 80 to 90 */
    ck_assert_uint_eq(rank.comm.exposed_ns, 20);
    ck_assert_uint_eq(rank.copies.busy_ns, 75);
    ck_assert_uint_eq(rank.copies.exposed_ns, 65);
    ck_assert_uint_eq(rank.comm_bytes, 450);
    ms_arena_free(&arena);
}
END_TEST

/* A ring of two nodes of 8: an eighth of what a rank sends leaves the node. */
START_TEST(nodes_borders_are_shared)
{
    ms_group ring = {
        .ranks = 16,
        .node_ranks = 8,
        .links = {.node_bytes_per_s = 1e11, .network_bytes_per_s = 1e10}};
    ck_assert_uint_eq(ms_collective_network_bytes(&ring, MS_ALL_GATHER, 1600),
                      1500 / 8);
    ring.algorithm = MS_ALGORITHM_RING;
    ck_assert_uint_eq(ms_collective_network_bytes(&ring, MS_ALL_REDUCE, 1600),
                      2 * 1500 / 8);
    ring.algorithm = MS_ALGORITHM_NESTED;
    ck_assert_uint_eq(ms_collective_network_bytes(&ring, MS_ALL_REDUCE, 1600),
                      2 * 1600 / 2 / 8);
    ring.algorithm = MS_ALGORITHM_RING;
    ck_assert_uint_eq(ms_collective_network_bytes(&ring, MS_ALL_TO_ALL, 1600),
                      800);
    ring.ranks = 8;
    ck_assert_uint_eq(ms_collective_network_bytes(&ring, MS_ALL_GATHER, 1600),
                      0);
    ring.node_ranks = 1; /* one of each node: all of it */
    ck_assert_uint_eq(ms_collective_network_bytes(&ring, MS_ALL_REDUCE, 1600),
                      ms_collective_sent_bytes(&ring, MS_ALL_REDUCE, 1600));
}
END_TEST

START_TEST(no_memory_is_a_fault)
{
    ms_arena none = {.limit_bytes = 16};
    ms_fault fault = {0};
    ms_rank_report rank = {0};
    ms_report report = {.n_ranks = 1, .ranks = &rank};
    ck_assert_int_eq(ms_times_measure(&line, &none, &report, &fault),
                     MS_ENOMEM);
    ms_arena_free(&none);
}
END_TEST

Suite *suite_waits(void)
{
    Suite *suite = suite_create("waits");
    TCase *tcase = tcase_create("waits");
    tcase_add_test(tcase, a_wait_is_told_by_its_chain);
    tcase_add_test(tcase, a_host_that_was_held_blames_what_held_it);
    tcase_add_test(tcase, times_follow_the_causes);
    tcase_add_test(tcase, links_are_busy_hidden_and_exposed);
    tcase_add_test(tcase, nodes_borders_are_shared);
    tcase_add_test(tcase, no_memory_is_a_fault);
    suite_add_tcase(suite, tcase);
    return suite;
}
