/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Laws of the clock and of active bytes, on plans made by hand and at random:
 * without a graph and a policy, so that every stream can be busy. */
#include "sim/graph.h"
#include "sim/machine.h"
#include "sim/plan.h"
#include "sim/timeline.h"
#include "tests/laws/laws.h"
#include "tests/tests.h"

#include <stdlib.h>
#include <string.h>

#define MOST 64u
#define N_TRIALS 2000u
#define MOST_RANKS 5u
/* the unit of work: what an op does in a ns when it is alone */
#define WHOLE 10000u

/* A plan whose columns lie in here. */
typedef struct hand_plan {
    ms_graph graph;
    ms_plan plan;
    ms_plan_op op[MOST + 1];
    ms_row row[2 * MOST];
    uint32_t release[2 * MOST], wait_at[MOST + 1], wait[4 * MOST];
    struct ms_plan_sync sync[MOST];
    uint32_t n_release, n_wait;
} hand_plan;

static ms_arena arena;

static void open_plan(hand_plan *p)
{
    memset(p, 0, sizeof *p);
    p->graph.name = "plan";
    p->plan = (ms_plan){.graph = &p->graph,
                        .op = p->op,
                        .row = p->row,
                        .release = p->release,
                        .wait_at = p->wait_at,
                        .wait = p->wait,
                        .sync = p->sync,
                        .n_ranks = 1};
}

static uint32_t add_op(hand_plan *p, uint8_t stream, uint64_t ns)
{
    uint32_t op = p->plan.n_ops++;
    p->op[op].stream = stream;
    p->op[op].ns = ns;
    p->op[op + 1].alloc_at = p->plan.n_rows;
    p->op[op + 1].release_at = p->n_release;
    p->wait_at[op + 1] = p->n_wait;
    return op;
}

/* What the last op waits for, allocates and frees. */
static void add_wait(hand_plan *p, uint32_t other)
{
    p->wait[p->n_wait++] = other;
    p->wait_at[p->plan.n_ops] = p->n_wait;
}

static uint32_t add_row(hand_plan *p, uint64_t bytes, uint8_t streams)
{
    uint32_t r = p->plan.n_rows++, op = p->plan.n_ops - 1;
    p->row[r] = (ms_row){.bytes = bytes, .op = op, .streams = streams};
    p->op[op + 1].alloc_at = p->plan.n_rows;
    return r;
}

static void add_release(hand_plan *p, uint32_t row)
{
    p->release[p->n_release++] = row;
    p->op[p->plan.n_ops].release_at = p->n_release;
}

/* A sync of the host before the next op. */
static void add_sync(hand_plan *p, uint32_t until)
{
    p->sync[p->plan.n_sync++] = (struct ms_plan_sync){p->plan.n_ops, until, 0};
}

static ms_timeline run(const hand_plan *p, const ms_machine *machine)
{
    ms_fault fault = {0};
    ms_timeline line;
    ck_assert_msg(ms_replay(&p->plan, machine, &arena, &line, &fault) == MS_OK,
                  "seed %llu: %s", (unsigned long long)laws_seed, fault.what);
    return line;
}

static uint64_t active_of(const ms_timeline *line)
{
    return line->ranks[0].active_peak_bytes;
}

static uint64_t allocated_of(const ms_timeline *line)
{
    return line->ranks[0].pool[MS_DEVICE_POOL].peak_bytes;
}

static ms_machine with_collectives(uint16_t held)
{
    ms_machine machine = {0};
    machine.demand[MS_STREAM_COMPUTE][MS_MULTIPROCESSORS].shared = 1000;
    machine.demand[MS_STREAM_COMM][MS_MULTIPROCESSORS].held = held;
    return machine;
}

static void check_op(const ms_timeline *line, uint32_t op, uint64_t start_ns,
                     uint64_t end_ns)
{
    ck_assert_uint_eq(line->start_ns[op], start_ns);
    ck_assert_uint_eq(line->end_ns[op], end_ns);
}

/* ---- interference by hand ------------------------------------------------ */

/* The collective runs from 0 to 100 and is not slowed.  Meanwhile compute does
 * 85 ns of its 100 ns of work; the other 15 it does alone, to 115. */
START_TEST(collective_takes_its_share)
{
    hand_plan p;
    ms_machine machine = with_collectives(150);
    open_plan(&p);
    uint32_t compute = add_op(&p, MS_STREAM_COMPUTE, 100);
    uint32_t comm = add_op(&p, MS_STREAM_COMM, 100);
    ms_timeline line = run(&p, &machine);
    check_op(&line, comm, 0, 100);
    check_op(&line, compute, 0, 115);
    ck_assert_uint_eq(line.step_ns, 115);
}
END_TEST

/* Compute a (100 ns) alone to 40, when the collective (100 ns; it waits for
 * a copy of 40 ns) starts: 60 ns of work at a half take 120, but the
 * collective ends at 140 after 50 of them; the last 10 end at 150.  b follows
 * at 150 and is alone. */
START_TEST(work_left_is_rescaled_at_starts_and_ends)
{
    hand_plan p;
    ms_machine machine = with_collectives(500);
    open_plan(&p);
    uint32_t a = add_op(&p, MS_STREAM_COMPUTE, 100);
    uint32_t copy = add_op(&p, MS_STREAM_H2D, 40);
    uint32_t comm = add_op(&p, MS_STREAM_COMM, 100);
    add_wait(&p, copy);
    uint32_t b = add_op(&p, MS_STREAM_COMPUTE, 10);
    ms_timeline line = run(&p, &machine);
    check_op(&line, comm, 40, 140);
    check_op(&line, a, 0, 150);
    check_op(&line, b, 150, 160);
}
END_TEST

/* An op follows at the very instant at which another of its stream ends: it
 * is slowed from its first ns on.  Two ops of 50 ns beside a collective of
 * 200: 100 each. */
START_TEST(the_next_op_is_slowed_too)
{
    hand_plan p;
    ms_machine machine = with_collectives(500);
    open_plan(&p);
    add_op(&p, MS_STREAM_COMM, 200);
    uint32_t a = add_op(&p, MS_STREAM_COMPUTE, 50);
    uint32_t b = add_op(&p, MS_STREAM_COMPUTE, 50);
    ms_timeline line = run(&p, &machine);
    check_op(&line, a, 0, 100);
    check_op(&line, b, 100, 200);
}
END_TEST

/* The host takes 30 ns per op and issues the collective at 60: compute, 100 ns
 * from 30 on, has done 30 when it starts and does 70 at a half: to 200.  The
 * start is known at 0, and must not slow anything before 60. */
START_TEST(a_later_start_slows_later)
{
    hand_plan p;
    ms_machine machine = with_collectives(500);
    machine.launch_ns = 30;
    open_plan(&p);
    uint32_t compute = add_op(&p, MS_STREAM_COMPUTE, 100);
    uint32_t comm = add_op(&p, MS_STREAM_COMM, 200);
    ms_timeline line = run(&p, &machine);
    check_op(&line, comm, 60, 260);
    check_op(&line, compute, 30, 200);
}
END_TEST

/* Without NVLink: copies and collectives share a direction of the link.  100
 * each, half the speed each until both end at 200; the other direction and
 * the third stream are not touched. */
START_TEST(a_link_is_shared)
{
    hand_plan p;
    ms_machine machine = {0};
    machine.demand[MS_STREAM_H2D][MS_LINK_IN].shared = 1000;
    machine.demand[MS_STREAM_D2H][MS_LINK_OUT].shared = 1000;
    machine.demand[MS_STREAM_COMM][MS_LINK_IN].shared = 1000;
    open_plan(&p);
    uint32_t in = add_op(&p, MS_STREAM_H2D, 100);
    uint32_t out = add_op(&p, MS_STREAM_D2H, 100);
    uint32_t comm = add_op(&p, MS_STREAM_COMM, 100);
    ms_timeline line = run(&p, &machine);
    check_op(&line, in, 0, 200);
    check_op(&line, comm, 0, 200);
    check_op(&line, out, 0, 100);
}
END_TEST

/* Each rank has multiprocessors of its own, so ranks do not slow each other. */
START_TEST(ranks_do_not_slow_each_other)
{
    hand_plan p;
    ms_machine machine = with_collectives(500);
    open_plan(&p);
    p.plan.n_ranks = 2;
    uint32_t a = add_op(&p, MS_STREAM_COMPUTE, 100);
    uint32_t b = add_op(&p, MS_STREAM_COMM, 100);
    p.op[b].rank = 1;
    ms_timeline line = run(&p, &machine);
    check_op(&line, a, 0, 100);
    check_op(&line, b, 0, 100);
}
END_TEST

/* ---- syncs and ties by hand ---------------------------------------------- */

/* The host may issue c when a has ended (30), whatever b does (until 100); it
 * issues d when everything has (100). */
START_TEST(the_host_waits_for_one_op_or_all)
{
    hand_plan p;
    ms_machine machine = {0};
    open_plan(&p);
    uint32_t a = add_op(&p, MS_STREAM_COMM, 30);
    add_op(&p, MS_STREAM_COMPUTE, 100);
    add_sync(&p, a);
    uint32_t c = add_op(&p, MS_STREAM_H2D, 20);
    add_sync(&p, MS_NONE);
    uint32_t d = add_op(&p, MS_STREAM_COMM, 5);
    ms_timeline line = run(&p, &machine);
    check_op(&line, c, 30, 50);
    check_op(&line, d, 100, 105);
    ck_assert_uint_eq(line.gap_cause[c], MS_GAP_HOST);
}
END_TEST

/* The host stands at the sync for a before the one for b, though b ends
 * first; it does not go back in time for b. */
START_TEST(syncs_are_passed_in_order)
{
    hand_plan p;
    ms_machine machine = {0};
    open_plan(&p);
    uint32_t a = add_op(&p, MS_STREAM_COMM, 90);
    uint32_t b = add_op(&p, MS_STREAM_COMPUTE, 10);
    add_sync(&p, a);
    add_sync(&p, b);
    uint32_t c = add_op(&p, MS_STREAM_COMPUTE, 1);
    ms_timeline line = run(&p, &machine);
    check_op(&line, c, 90, 91);
}
END_TEST

/* At 100 the copy and compute end together: what waits for both, on a third
 * stream, starts there; zero-length ops in a row take no time, and end
 * before what waits for them. */
START_TEST(ends_come_before_starts)
{
    hand_plan p;
    ms_machine machine = with_collectives(150);
    open_plan(&p);
    uint32_t a = add_op(&p, MS_STREAM_COMPUTE, 100);
    uint32_t b = add_op(&p, MS_STREAM_H2D, 100);
    uint32_t none = add_op(&p, MS_STREAM_COMPUTE, 0);
    add_wait(&p, b);
    uint32_t again = add_op(&p, MS_STREAM_D2H, 0);
    add_wait(&p, none);
    uint32_t c = add_op(&p, MS_STREAM_COMM, 7);
    add_wait(&p, again);
    ms_timeline line = run(&p, &machine);
    check_op(&line, a, 0, 100);
    check_op(&line, none, 100, 100);
    check_op(&line, again, 100, 100);
    check_op(&line, c, 100, 107);
}
END_TEST

/* ---- active bytes by hand ------------------------------------------------ */

/* The host takes 10 ns per op.
 *
 *     op  stream   ns  issued  runs       allocates   then frees
 *     0   compute  20       0    0 -  20  x 100
 *     1   comm    200      10   20 - 220  -           x, read by comm
 *     2   compute  20      20   20 -  40  y 50        y
 *     3   compute  20      30   40 -  60  z 60        z
 *
 * Allocated: 100; 0; 50; 0; 60.  x is active until the host's clock, at an
 * allocation, has reached 220: never.  Active: 100; 100; 150; 100; 160. */
START_TEST(what_another_stream_uses_stays_active)
{
    hand_plan p;
    ms_machine machine = {.launch_ns = 10};
    open_plan(&p);
    uint32_t maker = add_op(&p, MS_STREAM_COMPUTE, 20);
    uint32_t x = add_row(&p, 100, 1u << MS_STREAM_COMM);
    uint32_t comm = add_op(&p, MS_STREAM_COMM, 200);
    add_wait(&p, maker);
    add_release(&p, x);
    add_op(&p, MS_STREAM_COMPUTE, 20);
    add_release(&p, add_row(&p, 50, 1u << MS_STREAM_COMPUTE));
    uint32_t last = add_op(&p, MS_STREAM_COMPUTE, 20);
    add_release(&p, add_row(&p, 60, 0));
    ms_timeline line = run(&p, &machine);
    check_op(&line, comm, 30, 230);
    check_op(&line, last, 50, 70);
    ck_assert_uint_eq(allocated_of(&line), 100);
    ck_assert_uint_eq(active_of(&line), 160);
    ck_assert_uint_eq(line.ranks[0].reserved_peak_bytes, 160);
    ck_assert_uint_eq(line.ranks[0].requested_peak_bytes, 160);
    p.row[x].waited = true; /* the side that frees has waited */
    line = run(&p, &machine);
    ck_assert_uint_eq(active_of(&line), 100);
}
END_TEST

/* As above, and the host waits for the collective before op 3, so that z
 * finds x complete: active 100; 100; 150; then 60. */
START_TEST(a_sync_lets_frees_complete)
{
    hand_plan p;
    ms_machine machine = {.launch_ns = 10};
    open_plan(&p);
    add_op(&p, MS_STREAM_COMPUTE, 20);
    uint32_t x = add_row(&p, 100, 1u << MS_STREAM_COMM);
    uint32_t comm = add_op(&p, MS_STREAM_COMM, 200);
    add_wait(&p, 0);
    add_release(&p, x);
    add_op(&p, MS_STREAM_COMPUTE, 20);
    add_release(&p, add_row(&p, 50, 0));
    add_sync(&p, comm);
    add_op(&p, MS_STREAM_COMPUTE, 20);
    add_release(&p, add_row(&p, 60, 0));
    ms_timeline line = run(&p, &machine);
    ck_assert_uint_eq(active_of(&line), 150);
}
END_TEST

/* ---- at random ----------------------------------------------------------- */

/* A host waits for an op of its own rank, or for all of them. */
static void random_sync(laws_random *random, hand_plan *p, uint16_t rank)
{
    uint32_t until = laws_below(random, p->plan.n_ops);
    if (laws_chance(random, 50))
        until = MS_NONE;
    else if (p->op[until].rank != rank)
        return;
    add_sync(p, until);
    p->sync[p->plan.n_sync - 1].rank = rank;
}

/* An op of one stream is rank 0's; one of many waits for any rank's ops. */
static void random_op(laws_random *random, hand_plan *p, bool one_stream)
{
    uint8_t stream = one_stream ? 0 : (uint8_t)laws_below(random, MS_N_STREAMS);
    uint16_t rank = (uint8_t)laws_below(random, p->plan.n_ranks);
    if (laws_chance(random, 5) && p->plan.n_ops > 0)
        random_sync(random, p, rank);
    uint32_t op = add_op(
        p, stream, laws_chance(random, 10) ? 0 : laws_below(random, 1000));
    p->op[op].rank = rank;
    for (uint32_t i = 0; i < 2 && op > 0; i++)
        if (!one_stream && laws_chance(random, 40))
            add_wait(p, laws_below(random, op));
    if (laws_chance(random, 70))
        add_row(p, 1 + laws_below(random, 1000),
                one_stream ? 0 : (uint8_t)laws_below(random, 64));
    for (uint32_t r = p->op[op].alloc_at; r < p->plan.n_rows; r++) {
        p->row[r].home = laws_chance(random, 20) ? MS_HOME_COMPUTE : 0;
        p->row[r].waited = laws_chance(random, 20);
    }
    for (uint32_t r = 0; r < p->plan.n_rows; r++) {
        bool gone = p->op[p->row[r].op].rank != rank;
        for (uint32_t i = 0; i < p->n_release; i++)
            gone |= p->release[i] == r;
        if (!gone && laws_chance(random, 20))
            add_release(p, r);
    }
}

static void random_plan(laws_random *random, hand_plan *p, bool one_stream)
{
    uint32_t n = 2 + laws_below(random, MOST - 2);
    open_plan(p);
    if (one_stream)
        p->plan.wait_at = NULL;
    else if (laws_chance(random, 60))
        p->plan.n_ranks = (uint16_t)(1 + laws_below(random, MOST_RANKS));
    while (p->plan.n_ops < n)
        random_op(random, p, one_stream);
}

static ms_machine random_machine(laws_random *random)
{
    ms_machine machine = {.launch_ns = laws_below(random, 300)};
    laws_framework(&machine);
    for (uint32_t s = 0; s < MS_N_STREAMS; s++)
        for (uint32_t r = 0; r < MS_N_RESOURCES; r++) {
            if (laws_chance(random, 30))
                machine.demand[s][r].shared =
                    (uint16_t)laws_below(random, 1001);
            else if (laws_chance(random, 20))
                machine.demand[s][r].held = (uint16_t)laws_below(random, 400);
        }
    return machine;
}

static uint32_t speed_at(const hand_plan *p, const ms_timeline *line,
                         const ms_machine *machine, uint32_t op, uint64_t t_ns)
{
    uint32_t shared[MS_N_RESOURCES] = {0}, left[MS_N_RESOURCES];
    uint32_t speed = WHOLE;
    for (uint32_t r = 0; r < MS_N_RESOURCES; r++)
        left[r] = 1000;
    for (uint32_t i = 0; i < p->plan.n_ops; i++)
        for (uint32_t r = 0; r < MS_N_RESOURCES; r++) {
            const ms_demand *demand = &machine->demand[p->op[i].stream][r];
            if (p->op[i].rank != p->op[op].rank || line->start_ns[i] > t_ns ||
                line->end_ns[i] <= t_ns)
                continue;
            shared[r] += demand->shared;
            if (i != op)
                left[r] = left[r] > demand->held ? left[r] - demand->held : 1;
        }
    for (uint32_t r = 0; r < MS_N_RESOURCES; r++)
        if (machine->demand[p->op[op].stream][r].shared > 0 &&
            WHOLE * left[r] / shared[r] < speed)
            speed = WHOLE * left[r] / shared[r];
    return speed > 0 ? speed : 1;
}

/* The work done between an op's start and its end, summed ns by ns, is exactly
 * the op's. */
static void check_work(const hand_plan *p, const ms_timeline *line,
                       const ms_machine *machine, uint32_t op)
{
    uint64_t done = 0, before = 0, t_ns = line->start_ns[op];
    while (t_ns < line->end_ns[op]) {
        uint64_t next_ns = line->end_ns[op];
        for (uint32_t i = 0; i < p->plan.n_ops; i++) {
            if (line->start_ns[i] > t_ns && line->start_ns[i] < next_ns)
                next_ns = line->start_ns[i];
            if (line->end_ns[i] > t_ns && line->end_ns[i] < next_ns)
                next_ns = line->end_ns[i];
        }
        uint64_t speed = speed_at(p, line, machine, op, t_ns);
        done += (next_ns - t_ns) * speed;
        before = done - speed;
        t_ns = next_ns;
    }
    uint64_t work = p->op[op].ns * WHOLE;
    ck_assert_msg(work <= done && (work == 0 || before < work),
                  "seed %llu: op %u", (unsigned long long)laws_seed, op);
}

static void check_interference(laws_random *random)
{
    hand_plan p;
    ms_machine machine = random_machine(random), alone = {0};
    random_plan(random, &p, false);
    alone.launch_ns = machine.launch_ns;
    alone.recorded = machine.recorded;
    ms_timeline line = run(&p, &machine), before = run(&p, &alone);
    for (uint32_t op = 0; op < p.plan.n_ops; op++) {
        check_work(&p, &line, &machine, op);
        ck_assert_uint_ge(line.start_ns[op], before.start_ns[op]);
        ck_assert_uint_ge(line.end_ns[op], before.end_ns[op]);
    }
    ck_assert_uint_ge(line.step_ns, before.step_ns);
    laws_check_clock(&p.plan, &before, &alone);
}

START_TEST(work_is_conserved_and_never_sooner)
{
    for (laws_seed = 1; laws_seed <= N_TRIALS; laws_seed++) {
        laws_random random = {laws_seed};
        check_interference(&random);
        ms_arena_reset(&arena);
    }
    ms_arena_free(&arena);
}
END_TEST

/* Where the demands never exceed the resource, the clock that counts work
 * agrees to the byte with the one that does not. */
static void check_same_clock(laws_random *random)
{
    hand_plan p;
    ms_machine alone = {.launch_ns = laws_below(random, 300)};
    laws_framework(&alone);
    ms_machine machine = alone;
    for (uint32_t s = 0; s < MS_N_STREAMS; s++)
        machine.demand[s][MS_HOST_DRAM].shared = 1000 / MS_N_STREAMS;
    random_plan(random, &p, false);
    ms_timeline a = run(&p, &alone), b = run(&p, &machine);
    size_t n = p.plan.n_ops;
    ck_assert_uint_eq(a.step_ns, b.step_ns);
    ck_assert_mem_eq(a.start_ns, b.start_ns, n * sizeof *a.start_ns);
    ck_assert_mem_eq(a.end_ns, b.end_ns, n * sizeof *a.end_ns);
    ck_assert_mem_eq(a.gap_cause, b.gap_cause, n);
    ck_assert_mem_eq(a.events, b.events, a.n_events * sizeof *a.events);
    ck_assert_mem_eq(a.ranks, b.ranks, p.plan.n_ranks * sizeof *a.ranks);
}

START_TEST(what_is_not_slowed_is_as_before)
{
    for (laws_seed = 1; laws_seed <= N_TRIALS; laws_seed++) {
        laws_random random = {laws_seed};
        check_same_clock(&random);
        ms_arena_reset(&arena);
    }
    ms_arena_free(&arena);
}
END_TEST

static void check_active(laws_random *random)
{
    hand_plan p;
    ms_machine machine = random_machine(random);
    random_plan(random, &p, false);
    ms_timeline line = run(&p, &machine);
    laws_check_active(&p.plan, &line, &machine);
    random_plan(random, &p, true);
    line = run(&p, &machine);
    laws_check_active(&p.plan, &line, &machine);
    ck_assert_uint_eq(active_of(&line), allocated_of(&line));
}

START_TEST(active_agrees_with_oracle)
{
    for (laws_seed = 1; laws_seed <= N_TRIALS; laws_seed++) {
        laws_random random = {laws_seed};
        check_active(&random);
        ms_arena_reset(&arena);
    }
    ms_arena_free(&arena);
}
END_TEST

Suite *suite_clock(void)
{
    Suite *suite = suite_create("clock");
    TCase *tcase = tcase_create("clock");
    tcase_set_timeout(tcase, 120);
    tcase_add_test(tcase, collective_takes_its_share);
    tcase_add_test(tcase, work_left_is_rescaled_at_starts_and_ends);
    tcase_add_test(tcase, the_next_op_is_slowed_too);
    tcase_add_test(tcase, a_later_start_slows_later);
    tcase_add_test(tcase, a_link_is_shared);
    tcase_add_test(tcase, ranks_do_not_slow_each_other);
    tcase_add_test(tcase, the_host_waits_for_one_op_or_all);
    tcase_add_test(tcase, syncs_are_passed_in_order);
    tcase_add_test(tcase, ends_come_before_starts);
    tcase_add_test(tcase, what_another_stream_uses_stays_active);
    tcase_add_test(tcase, a_sync_lets_frees_complete);
    tcase_add_test(tcase, work_is_conserved_and_never_sooner);
    tcase_add_test(tcase, what_is_not_slowed_is_as_before);
    tcase_add_test(tcase, active_agrees_with_oracle);
    suite_add_tcase(suite, tcase);
    return suite;
}
