/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Laws of a capacity that is a wall: plans worked out by hand, and random
 * programs with moves. */
#include "sim/graph.h"
#include "sim/machine.h"
#include "sim/plan.h"
#include "sim/program.h"
#include "sim/report.h"
#include "sim/schedule/schedule.h"
#include "sim/timeline.h"
#include "tests/laws/asserts.h"
#include "tests/tests.h"

#include <string.h>

#define MOST 16u
#define N_TRIALS 1000u

static ms_arena arena;

/* ---- by hand ------------------------------------------------------------- */

/* A plan whose columns lie in here. */
typedef struct hand_plan {
    ms_graph graph;
    ms_plan plan;
    ms_plan_op op[MOST + 1];
    ms_row row[MOST];
    struct ms_transfer transfer[MOST];
    uint32_t release[MOST], wait_at[MOST + 1], wait[MOST];
    uint32_t use_at[MOST + 1], use[4 * MOST];
    uint32_t n_release, n_wait, n_use;
} hand_plan;

static uint32_t add_op(hand_plan *p, uint8_t stream, uint64_t ns)
{
    uint32_t op = p->plan.n_ops++;
    p->op[op].stream = stream;
    p->op[op].pass =
        stream == MS_STREAM_COMPUTE ? (uint8_t)MS_FORWARD : (uint8_t)MS_COPY;
    p->op[op].ns = ns;
    p->op[op + 1] =
        (ms_plan_op){.alloc_at = p->plan.n_rows, .release_at = p->n_release};
    p->wait_at[op + 1] = p->n_wait;
    p->use_at[op + 1] = p->n_use;
    if (stream == MS_STREAM_H2D)
        p->transfer[p->plan.n_transfers++] =
            (struct ms_transfer){.op = op, .kind = MS_TRANSFER_H2D, .bytes = 1};
    return op;
}

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
                        .use_at = p->use_at,
                        .use = p->use,
                        .transfers = p->transfer,
                        .n_ranks = 1};
    add_op(p, MS_STREAM_COMPUTE, 0);
    p->op[0].pass = MS_START;
}

/* What the last op uses. */
static void add_use(hand_plan *p, uint32_t row)
{
    p->use[p->n_use++] = row;
    p->use_at[p->plan.n_ops] = p->n_use;
}

static uint32_t add_row(hand_plan *p, uint64_t bytes, uint8_t pool)
{
    uint32_t row = p->plan.n_rows++;
    p->row[row] = (ms_row){
        .bytes = bytes, .pool = pool, .op = p->plan.n_ops - 1, .storage = 0};
    p->op[p->plan.n_ops].alloc_at = p->plan.n_rows;
    add_use(p, row);
    return row;
}

static void add_wait(hand_plan *p, uint32_t other)
{
    p->wait[p->n_wait++] = other;
    p->wait_at[p->plan.n_ops] = p->n_wait;
}

static void add_release(hand_plan *p, uint32_t row)
{
    p->release[p->n_release++] = row;
    p->op[p->plan.n_ops].release_at = p->n_release;
}

static ms_timeline run(hand_plan *p, uint64_t capacity_bytes)
{
    ms_machine machine = {
        .capacity_bytes = capacity_bytes, .book_device = true, .wall = true};
    ms_fault fault = {0};
    ms_timeline line;
    MUST(ms_replay(&p->plan, &machine, &arena, &line, &fault));
    return line;
}

static uint64_t peak_of(const ms_timeline *line, ms_pool_kind pool)
{
    return line->ranks[0].pool[pool].peak_bytes;
}

/* x (60) is made from 0 to 10 and copied out from 10 to 40; y (50) does not
 * fit beside it in 100, so that its maker, ready at 10, starts at 40. */
START_TEST(an_op_waits_for_a_copy_out)
{
    hand_plan p;
    open_plan(&p);
    uint32_t a = add_op(&p, MS_STREAM_COMPUTE, 10);
    uint32_t x = add_row(&p, 60, MS_DEVICE_POOL);
    add_op(&p, MS_STREAM_D2H, 30);
    add_wait(&p, a);
    add_row(&p, 60, MS_HOST_POOL);
    add_use(&p, x);
    add_release(&p, x);
    uint32_t b = add_op(&p, MS_STREAM_COMPUTE, 20);
    add_row(&p, 50, MS_DEVICE_POOL);
    ms_timeline line = run(&p, 100);
    ck_assert_uint_eq(line.start_ns[b], 40);
    ck_assert_uint_eq(line.gap_cause[b], MS_GAP_MEMORY);
    ck_assert_uint_eq(line.step_ns, 60);
    ck_assert_uint_eq(peak_of(&line, MS_DEVICE_POOL), 60);
    ck_assert_uint_eq(line.lack.missing_bytes, 0);
    line = run(&p, 110); /* both fit */
    ck_assert_uint_eq(line.start_ns[b], 10);
    ck_assert_uint_eq(line.step_ns, 40);
    ms_arena_free(&arena);
}
END_TEST

/* What was in the host's memory (60) is fetched from 0 to 5; its user comes
 * last.  Before it an op of 10 without memory, then one of 20 with t. */
static uint32_t plan_prefetch(hand_plan *p, uint64_t t_bytes)
{
    open_plan(p);
    uint32_t source = add_row(p, 60, MS_HOST_POOL);
    uint32_t fetch = add_op(p, MS_STREAM_H2D, 5);
    uint32_t row = add_row(p, 60, MS_DEVICE_POOL);
    add_use(p, source);
    add_release(p, source);
    add_op(p, MS_STREAM_COMPUTE, 10);
    add_op(p, MS_STREAM_COMPUTE, 20);
    add_release(p, add_row(p, t_bytes, MS_DEVICE_POOL));
    uint32_t user = add_op(p, MS_STREAM_COMPUTE, 10);
    add_wait(p, fetch);
    add_use(p, row);
    add_release(p, row);
    return user;
}

/* t (80) does not fit beside it in 100 and nothing will free anything: it is
 * revoked at 10 and fetched again when t is gone, from 30 to 35. */
START_TEST(a_prefetch_is_revoked)
{
    hand_plan p;
    uint32_t user = plan_prefetch(&p, 80);
    ms_timeline line = run(&p, 100);
    ck_assert_uint_eq(line.n_revoked, 1);
    ck_assert_uint_eq(line.revoked[0].op, 1);
    ck_assert(line.revoked[0].came && !line.revoked[0].put_off);
    ck_assert_uint_eq(line.revoked[0].start_ns, 30);
    ck_assert_uint_eq(line.revoked[0].end_ns, 35);
    ck_assert_uint_eq(line.start_ns[user], 35);
    ck_assert_uint_eq(line.gap_cause[user], MS_GAP_MEMORY);
    ck_assert_uint_eq(line.step_ns, 45);
    ck_assert_uint_eq(peak_of(&line, MS_DEVICE_POOL), 80);
    ck_assert_uint_eq(peak_of(&line, MS_HOST_POOL), 60);
    ck_assert_uint_eq(line.ranks[0].pool[MS_DEVICE_POOL].now_bytes, 0);
    ck_assert_uint_eq(line.ranks[0].pool[MS_HOST_POOL].now_bytes, 0);
    line = run(&p, 140);
    ck_assert_uint_eq(line.n_revoked, 0);
    ck_assert_uint_eq(line.step_ns, 40);
    ms_arena_free(&arena);
}
END_TEST

/* a (80) is there from 0 until its reader ends; before that reader the compute
 * stream waits for a copy of 60, as vDNN does at a layer's end.  There is no
 * room for it in 100 and all wait for it: it is put off at 10.  The reader
 * runs from 10 to 30, the copy from 30 to 35, its user from then on. */
START_TEST(a_prefetch_is_put_off)
{
    hand_plan p;
    open_plan(&p);
    uint32_t maker = add_op(&p, MS_STREAM_COMPUTE, 10);
    uint32_t a = add_row(&p, 80, MS_DEVICE_POOL);
    uint32_t fetch = add_op(&p, MS_STREAM_H2D, 5);
    uint32_t row = add_row(&p, 60, MS_DEVICE_POOL);
    add_wait(&p, maker);
    uint32_t wait = add_op(&p, MS_STREAM_COMPUTE, 0);
    p.op[wait].pass = MS_COPY;
    add_wait(&p, fetch);
    add_use(&p, row);
    uint32_t reader = add_op(&p, MS_STREAM_COMPUTE, 20);
    add_use(&p, a);
    add_release(&p, a);
    uint32_t user = add_op(&p, MS_STREAM_COMPUTE, 10);
    add_use(&p, row);
    add_release(&p, row);
    ms_timeline line = run(&p, 100);
    ck_assert_uint_eq(line.n_revoked, 1);
    ck_assert(line.revoked[0].came && line.revoked[0].put_off);
    ck_assert_uint_eq(line.start_ns[reader], 10);
    ck_assert_uint_eq(line.revoked[0].start_ns, 30);
    ck_assert_uint_eq(line.start_ns[user], 35);
    ck_assert_uint_eq(line.step_ns, 45);
    ck_assert_uint_eq(line.lack.missing_bytes, 0);
    ck_assert_uint_eq(peak_of(&line, MS_DEVICE_POOL), 80);
    ms_arena_free(&arena);
}
END_TEST

/* t (120) does not fit whatever is revoked: nothing is, and the step goes on
 * as without a wall. */
START_TEST(where_nothing_helps_the_step_goes_on)
{
    hand_plan p;
    plan_prefetch(&p, 120);
    ms_timeline line = run(&p, 100);
    ck_assert_uint_eq(line.lack.op, 3);
    ck_assert_uint_eq(line.lack.t_ns, 10);
    ck_assert_uint_eq(line.lack.missing_bytes, 60 + 120 - 100);
    ck_assert_uint_eq(line.n_revoked, 0);
    ck_assert_uint_eq(line.step_ns, 40);
    ck_assert_uint_eq(peak_of(&line, MS_DEVICE_POOL), 180);
    ms_arena_free(&arena);
}
END_TEST

/* Memory that is taken and let go in one instant is there again in the next
 * nanosecond: two ops of no length, 60 each. */
START_TEST(an_instant_counts_all_that_it_takes)
{
    hand_plan p;
    open_plan(&p);
    for (int i = 0; i < 2; i++) {
        add_op(&p, MS_STREAM_COMPUTE, 0);
        add_release(&p, add_row(&p, 60, MS_DEVICE_POOL));
    }
    ms_timeline line = run(&p, 100);
    ck_assert_uint_eq(line.lack.missing_bytes, 0);
    ck_assert_uint_eq(line.start_ns[2], 1);
    ck_assert_uint_eq(peak_of(&line, MS_DEVICE_POOL), 60);
    ms_arena_free(&arena);
}
END_TEST

/* ---- at random ----------------------------------------------------------- */

typedef struct one_run {
    ms_timeline line;
    ms_report report;
} one_run;

static one_run replay(const ms_plan *plan, const ms_machine *machine)
{
    one_run it;
    ms_fault fault = {0};
    MUST(ms_replay(plan, machine, &arena, &it.line, &fault));
    MUST(ms_measure(&it.line, machine, &arena, &it.report, &fault));
    return it;
}

/* Moves, and sometimes what ranks share and work of the program's own. */
static ms_plan random_plan(laws_random *random)
{
    ms_fault fault = {0};
    ms_graph *graph = ms_arena_take(&arena, 1, sizeof *graph);
    ms_program *program = ms_arena_take(&arena, 1, sizeof *program);
    ms_keep keep;
    ms_plan plan;
    ms_expand_opts opts = {.uses = true,
                           .hbm_bytes_per_s = 1e11,
                           .h2d_bytes_per_s = 1e10,
                           .d2h_bytes_per_s = 2e10,
                           .copy_ns = 7,
                           .groups = LAWS_GROUPS};
    laws_graph(random, &arena, graph);
    laws_keep(random, graph, &arena, &keep);
    bool shares = laws_chance(random, 30);
    if (shares)
        laws_share(random, graph, &arena);
    MUST(ms_defaultprogram_alone(graph, &keep, 1 + laws_below(random, 3),
                                 &arena, program, &fault));
    laws_moves(random, graph, &arena, program);
    if (shares)
        laws_collectives(random, graph, &arena, program);
    if (laws_chance(random, 30))
        laws_work(random, graph, &arena, program);
    MUST(ms_expand(graph, program, &opts, &arena, &plan, &fault));
    return plan;
}

static ms_machine random_machine(laws_random *random, bool slows)
{
    ms_machine machine = {.launch_ns = laws_below(random, 40),
                          .capacity_bytes = UINT64_MAX / 2,
                          .book_device = true};
    laws_framework(&machine);
    for (uint32_t s = 0; slows && s < MS_N_STREAMS; s++)
        machine.demand[s][MS_HOST_DRAM].shared =
            (uint16_t)laws_below(random, 1001);
    return machine;
}

/* A wall that is never reached changes nothing, to the byte. */
static void check_far(laws_random *random)
{
    ms_plan plan = random_plan(random);
    ms_machine machine = random_machine(random, laws_chance(random, 50));
    one_run a = replay(&plan, &machine);
    machine.wall = true;
    one_run b = replay(&plan, &machine);
    size_t n = plan.n_ops;
    LAW(a.line.step_ns == b.line.step_ns);
    LAW(a.line.n_events == b.line.n_events);
    ck_assert_mem_eq(a.line.start_ns, b.line.start_ns, n * sizeof(uint64_t));
    ck_assert_mem_eq(a.line.end_ns, b.line.end_ns, n * sizeof(uint64_t));
    ck_assert_mem_eq(a.line.gap_cause, b.line.gap_cause, n);
    ck_assert_mem_eq(a.line.events, b.line.events,
                     a.line.n_events * sizeof *a.line.events);
    LAW(b.line.n_revoked == 0 && b.line.lack.missing_bytes == 0);
}

/* Waiting makes nothing start sooner. (Except where ops slow each other: one
 * that comes later may leave more of the link to another.) */
static void check_later(const ms_plan *plan, const one_run *a, const one_run *b)
{
    LAW(b->line.step_ns >= a->line.step_ns);
    for (uint32_t op = 0; op < plan->n_ops; op++)
        LAW(b->line.start_ns[op] >= a->line.start_ns[op]);
}

static void check_order(const ms_plan *plan, const one_run *b)
{
    uint64_t free_ns[MS_N_STREAMS] = {0};
    for (uint32_t op = 0; op < plan->n_ops; op++) {
        uint8_t stream = plan->op[op].stream;
        LAW(b->line.start_ns[op] >= free_ns[stream]);
        free_ns[stream] = b->line.end_ns[op];
    }
}

/* Is the row there while op runs? A naive walk over all events. */
static bool is_there(const ms_timeline *line, uint32_t row, uint32_t op)
{
    bool there = false, starts = false, gap = false;
    for (uint32_t e = 0; e < line->n_events; e++) {
        const ms_event *event = &line->events[e];
        if (event->row != row)
            continue;
        if (event->t_ns <= line->start_ns[op] && (event->op_act & 1u))
            there = true;
        else if (event->t_ns < line->start_ns[op])
            there = false;
        else if (event->t_ns > line->start_ns[op] &&
                 event->t_ns < line->end_ns[op])
            gap = true;
        starts |= there;
    }
    return there && starts && !gap;
}

static void check_uses(const ms_plan *plan, const ms_timeline *line)
{
    for (uint32_t op = 0; op < plan->n_ops; op++)
        for (uint32_t i = plan->use_at[op]; i < plan->use_at[op + 1]; i++)
            LAW(line->end_ns[op] == line->start_ns[op] ||
                is_there(line, plan->use[i], op));
}

/* The traffic is that of the run without a wall, plus what was fetched again,
 * less what was put off and never fetched. */
static void check_traffic(const one_run *a, const one_run *b)
{
    const ms_rank_report *x = a->report.ranks, *y = b->report.ranks;
    const ms_plan *plan = b->line.plan;
    uint64_t more = 0;
    for (uint32_t k = 0; k < b->line.n_revoked; k++) {
        const struct ms_revoked *it = &b->line.revoked[k];
        LAW(!it->came || it->start_ns >= b->line.end_ns[it->op]);
        for (uint32_t i = 0; i < plan->n_transfers; i++)
            if (plan->transfers[i].op == it->op && it->came != it->put_off)
                more += it->came ? plan->transfers[i].bytes
                                 : 0 - plan->transfers[i].bytes;
    }
    LAW(x->d2h_bytes == y->d2h_bytes);
    LAW(x->h2d_bytes + x->comm_bytes + more == y->h2d_bytes + y->comm_bytes);
}

/* A copy that is put off lets others pass, or is never made. */
static bool puts_off(const ms_timeline *line)
{
    for (uint32_t k = 0; k < line->n_revoked; k++)
        if (line->revoked[k].put_off)
            return true;
    return false;
}

typedef struct ways {
    uint32_t fits, revoked, put_off, lacks, waits;
} ways;

static void check_near(laws_random *random, ways *tally)
{
    ms_plan plan = random_plan(random);
    bool slows = laws_chance(random, 30);
    ms_machine machine = random_machine(random, slows);
    one_run a = replay(&plan, &machine);
    uint64_t peak = a.report.ranks[0].peak.allocated_bytes;
    uint32_t most = laws_chance(random, 70) ? 80 : 500; /* thousandths */
    uint64_t limit = peak - peak * laws_below(random, most) / 1000;
    machine.wall = true;
    machine.capacity_bytes = limit;
    one_run b = replay(&plan, &machine);
    laws_check_report(&b.line, &b.report, false);
    bool lacks = b.line.lack.missing_bytes > 0;
    /* An op of no length needs what it frees and what it makes at once; the
     * books count the frees of an instant first. */
    LAW(lacks || b.report.ranks[0].peak.allocated_bytes <= limit);
    LAW(lacks == (b.report.status == MS_OUT_OF_MEMORY));
    LAW(lacks == !b.report.fits);
    if (!slows && !puts_off(&b.line))
        check_later(&plan, &a, &b);
    LAW(b.line.ranks[0].pool[MS_DEVICE_POOL].now_bytes ==
        a.line.ranks[0].pool[MS_DEVICE_POOL].now_bytes);
    LAW(b.line.ranks[0].pool[MS_HOST_POOL].now_bytes ==
        a.line.ranks[0].pool[MS_HOST_POOL].now_bytes);
    check_order(&plan, &b);
    check_uses(&plan, &b.line);
    check_traffic(&a, &b);
    tally->lacks += lacks;
    tally->fits += !lacks && limit < peak;
    tally->put_off += puts_off(&b.line);
    tally->revoked += b.line.n_revoked > 0;
    tally->waits += b.report.ranks[0].time.memory_wait_ns > 0;
}

START_TEST(a_far_wall_changes_nothing)
{
    for (laws_seed = 1; laws_seed <= N_TRIALS; laws_seed++) {
        laws_random random = {laws_seed};
        check_far(&random);
        ms_arena_reset(&arena);
    }
    ms_arena_free(&arena);
}
END_TEST

/* The trials reach every way out: revoke, put off, wait, give up. */
START_TEST(a_near_wall_is_never_passed)
{
    ways tally = {0};
    for (laws_seed = 1; laws_seed <= N_TRIALS; laws_seed++) {
        laws_random random = {laws_seed};
        check_near(&random, &tally);
        ms_arena_reset(&arena);
    }
    ck_assert_uint_gt(tally.fits, N_TRIALS / 100);
    ck_assert_uint_gt(tally.waits, N_TRIALS / 100);
    ck_assert_uint_gt(tally.lacks, N_TRIALS / 100);
    ck_assert_uint_gt(tally.put_off, 0);
    ck_assert_uint_gt(tally.revoked, N_TRIALS / 200);
    ms_arena_free(&arena);
}
END_TEST

Suite *suite_wall(void)
{
    Suite *suite = suite_create("wall");
    TCase *tcase = tcase_create("wall");
    tcase_set_timeout(tcase, 120);
    tcase_add_test(tcase, an_op_waits_for_a_copy_out);
    tcase_add_test(tcase, a_prefetch_is_revoked);
    tcase_add_test(tcase, a_prefetch_is_put_off);
    tcase_add_test(tcase, where_nothing_helps_the_step_goes_on);
    tcase_add_test(tcase, an_instant_counts_all_that_it_takes);
    tcase_add_test(tcase, a_far_wall_changes_nothing);
    tcase_add_test(tcase, a_near_wall_is_never_passed);
    suite_add_tcase(suite, tcase);
    return suite;
}
