/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Laws of unified memory, on random plans of one stream, against an oracle
 * that looks for the oldest use in a plain array. */
#include "sim/graph.h"
#include "sim/machine.h"
#include "sim/plan.h"
#include "sim/timeline.h"
#include "tests/laws/asserts.h"
#include "tests/tests.h"

#include <stdio.h>
#include <string.h>

#define OPS 40u
#define ROWS 60u
#define N_TRIALS 2000u

static ms_arena arena;

typedef struct random_plan {
    ms_graph graph;
    ms_plan plan;
    ms_plan_op op[OPS + 1];
    ms_row row[ROWS];
    uint32_t release[ROWS], use_at[OPS + 1], use[8 * OPS];
    uint32_t n_release, n_use;
} random_plan;

static void add_use(random_plan *p, uint32_t row)
{
    p->use[p->n_use++] = row;
}

static void add_rows(random_plan *p, laws_random *random, uint32_t op,
                     uint32_t n)
{
    for (; n > 0 && p->plan.n_rows < ROWS; n--) {
        uint32_t row = p->plan.n_rows++;
        p->row[row] =
            (ms_row){.bytes = laws_below(random, 100),
                     .op = op,
                     .category = (uint8_t)laws_below(random, MS_N_CATEGORIES)};
        add_use(p, row);
    }
}

/* Drops one of the live rows that was not there at the start. */
static void drop_some(random_plan *p, laws_random *random, bool *alive)
{
    uint32_t row = laws_below(random, p->plan.n_rows);
    if (row < p->op[1].alloc_at || !alive[row])
        return;
    alive[row] = false;
    p->release[p->n_release++] = row;
}

static void open_plan(random_plan *p, laws_random *random)
{
    static const uint8_t passes[] = {MS_FORWARD, MS_GRAD_INPUT, MS_STEP};
    bool alive[ROWS];
    memset(p, 0, sizeof *p);
    memset(alive, 1, sizeof alive);
    p->graph.name = "plan";
    p->plan = (ms_plan){.graph = &p->graph,
                        .op = p->op,
                        .row = p->row,
                        .release = p->release,
                        .use_at = p->use_at,
                        .use = p->use,
                        .n_ops = OPS,
                        .n_ranks = 1};
    for (uint32_t op = 0; op < OPS; op++) {
        p->op[op] = (ms_plan_op){.ns = op ? laws_below(random, 50) : 0,
                                 .pass = MS_START,
                                 .alloc_at = p->plan.n_rows,
                                 .release_at = p->n_release};
        p->use_at[op] = p->n_use;
        if (op > 0)
            p->op[op].pass = passes[laws_below(random, 3)];
        uint32_t was = p->plan.n_rows;
        add_rows(p, random, op, op ? laws_below(random, 3) : 5);
        for (uint32_t i = 0; op > 0 && i < 3; i++) {
            uint32_t row = laws_below(random, was);
            if (alive[row])
                add_use(p, row);
        }
        p->op[op + 1].alloc_at = p->plan.n_rows;
        if (op > 0)
            drop_some(p, random, alive);
    }
    p->op[OPS].release_at = p->n_release;
    p->use_at[OPS] = p->n_use;
}

static ms_machine machine_of(laws_random *random, uint32_t managed,
                             uint64_t capacity_bytes)
{
    return (ms_machine){.launch_ns = laws_below(random, 30),
                        .capacity_bytes = capacity_bytes,
                        .book_device = true,
                        .h2d_bytes_per_s = 1e9,
                        .d2h_bytes_per_s = 2e9,
                        .paging = {.page_bytes = 16,
                                   .fault_ns = laws_below(random, 100),
                                   .fault_percent = 1 + laws_below(random, 100),
                                   .hints = laws_chance(random, 50),
                                   .managed = managed}};
}

static ms_timeline run(const random_plan *p, const ms_machine *machine)
{
    ms_timeline line;
    ms_fault fault = {0};
    ck_assert_msg(ms_replay(&p->plan, machine, &arena, &line, &fault) == MS_OK,
                  "seed %llu: %s", (unsigned long long)laws_seed, fault.what);
    return line;
}

/* ---- the oracle ---------------------------------------------------------- */

typedef struct oracle {
    const random_plan *p;
    uint64_t limit_bytes;
    uint32_t managed;
    bool here[ROWS], exists[ROWS], dirty[ROWS];
    uint32_t used[ROWS]; /* by row: the tick of its last use */
    uint32_t tick;
    ms_pages pages;
} oracle;

/* Says whether the row is not managed, so that it stays while it lives. */
static bool is_plain(const oracle *o, uint32_t row)
{
    uint8_t category = o->p->row[row].category;
    if (row < o->p->op[1].alloc_at && category == MS_WORKSPACE)
        return true;
    return o->managed != 0 && (o->managed & 1u << category) == 0;
}

static uint64_t level_of(const oracle *o)
{
    uint64_t bytes = 0;
    for (uint32_t r = 0; r < o->p->plan.n_rows; r++)
        bytes += o->here[r] ? o->p->row[r].bytes : 0;
    return bytes;
}

static bool is_of(const oracle *o, uint32_t op, uint32_t row)
{
    for (uint32_t i = o->p->use_at[op]; i < o->p->use_at[op + 1]; i++)
        if (o->p->use[i] == row)
            return true;
    return false;
}

static void evict_oldest(oracle *o, uint32_t op)
{
    uint32_t oldest = MS_NONE;
    for (uint32_t r = 0; r < o->p->plan.n_rows; r++)
        if (o->here[r] && !is_plain(o, r) && !is_of(o, op, r) &&
            (oldest == MS_NONE || o->used[r] < o->used[oldest]))
            oldest = r;
    ck_assert_uint_ne(oldest, MS_NONE);
    o->here[oldest] = false;
    if (o->dirty[oldest])
        o->pages.d2h_bytes += o->p->row[oldest].bytes;
    o->dirty[oldest] = false;
}

/* Uses the rows of an op in the order in which the pager sees them: first
 * those that are on the device, then those that have to come. */
static void touch(oracle *o, uint32_t op)
{
    const random_plan *p = o->p;
    uint64_t more = 0;
    bool seen[ROWS] = {false};
    for (uint32_t i = p->use_at[op]; i < p->use_at[op + 1]; i++) {
        uint32_t r = p->use[i];
        if (o->here[r] && !seen[r])
            o->used[r] = ++o->tick;
        more += o->here[r] || seen[r] ? 0 : p->row[r].bytes;
        seen[r] = true;
    }
    while (level_of(o) + more > o->limit_bytes)
        evict_oldest(o, op);
    for (uint32_t i = p->use_at[op]; i < p->use_at[op + 1]; i++) {
        uint32_t r = p->use[i];
        if (!o->here[r]) {
            o->used[r] = ++o->tick;
            if (o->exists[r]) {
                o->pages.h2d_bytes += p->row[r].bytes;
                o->pages.faults += (p->row[r].bytes + 15) / 16;
            }
        }
        o->here[r] = o->exists[r] = true;
        o->dirty[r] |= p->row[r].op == op || p->op[op].pass == MS_STEP;
    }
}

static void oracle_step(oracle *o)
{
    const random_plan *p = o->p;
    o->pages = (ms_pages){0};
    for (uint32_t r = 0; r < p->plan.n_rows; r++) {
        o->exists[r] = r < p->op[1].alloc_at;
        o->here[r] = (o->here[r] || is_plain(o, r)) && o->exists[r];
        o->dirty[r] = o->dirty[r] && o->exists[r];
    }
    for (uint32_t op = 1; op < OPS; op++) {
        touch(o, op);
        for (uint32_t i = p->op[op].release_at; i < p->op[op + 1].release_at;
             i++)
            o->here[p->release[i]] = o->exists[p->release[i]] = false;
    }
}

/* The most bytes that a single op uses, of managed rows and of others. */
static uint64_t least_of(const random_plan *p, uint32_t managed)
{
    const oracle o = {.p = p, .managed = managed};
    bool alive[ROWS] = {false};
    uint64_t most = 0;
    for (uint32_t op = 0; op < OPS; op++) {
        uint64_t bytes = 0;
        for (uint32_t r = p->op[op].alloc_at; r < p->op[op + 1].alloc_at; r++)
            alive[r] = true;
        for (uint32_t r = 0; r < p->plan.n_rows; r++)
            if (is_plain(&o, r) ? alive[r] : op > 0 && is_of(&o, op, r))
                bytes += p->row[r].bytes;
        most = bytes > most ? bytes : most;
        for (uint32_t i = p->op[op].release_at; i < p->op[op + 1].release_at;
             i++)
            alive[p->release[i]] = false;
    }
    return most;
}

/* Draws which categories are managed: all of them, or some. */
static uint32_t managed_of(laws_random *random)
{
    return laws_chance(random, 50) ? 0 : laws_below(random, 256);
}

/* ---- laws ---------------------------------------------------------------- */

static void check_oracle(const random_plan *p, const ms_machine *machine)
{
    ms_timeline line = run(p, machine);
    oracle o = {.p = p,
                .limit_bytes = machine->capacity_bytes,
                .managed = machine->paging.managed};
    oracle_step(&o);
    oracle_step(&o);
    LAW(line.pages.h2d_bytes == o.pages.h2d_bytes);
    LAW(line.pages.d2h_bytes == o.pages.d2h_bytes);
    bool faults = !machine->paging.hints && machine->paging.fault_ns > 0;
    LAW(line.pages.faults == (faults ? o.pages.faults : 0));
    LAW(line.ranks[0].pool[MS_DEVICE_POOL].peak_bytes <=
        machine->capacity_bytes);
}

/* Hints never cost time. Nothing waits for pages where copies take no time,
 * or where all memory fits. */
static void check_times(const random_plan *p, ms_machine machine)
{
    ms_machine plain = {.launch_ns = machine.launch_ns, .book_device = true};
    ms_timeline none = run(p, &plain);
    machine.paging.hints = false;
    ms_timeline faults = run(p, &machine);
    machine.paging.hints = true;
    ms_timeline hints = run(p, &machine);
    LAW(none.step_ns <= hints.step_ns && hints.step_ns <= faults.step_ns);
    ms_machine wide = machine;
    wide.capacity_bytes = UINT64_MAX / 2;
    wide.paging.hints = false;
    ms_timeline all = run(p, &wide);
    LAW(all.step_ns == none.step_ns && all.pages.h2d_bytes == 0);
    machine.paging.hints = false;
    machine.paging.fault_ns = 0;
    /* copies take no time */
    machine.h2d_bytes_per_s = machine.d2h_bytes_per_s = 0;
    LAW(run(p, &machine).step_ns == none.step_ns);
}

START_TEST(pages_go_as_the_oracle_says)
{
    for (laws_seed = 1; laws_seed <= N_TRIALS; laws_seed++) {
        laws_random random = {laws_seed};
        random_plan p;
        open_plan(&p, &random);
        uint32_t managed = managed_of(&random);
        uint64_t least = least_of(&p, managed);
        ms_machine machine =
            machine_of(&random, managed, least + laws_below(&random, 400));
        check_oracle(&p, &machine);
        check_times(&p, machine);
        ms_arena_reset(&arena);
    }
    ms_arena_free(&arena);
}
END_TEST

/* A device with less than one op uses is refused, and the message says how
 * much it would take. */
START_TEST(what_one_op_touches_must_fit)
{
    for (laws_seed = 1; laws_seed <= 100; laws_seed++) {
        laws_random random = {laws_seed};
        random_plan p;
        ms_timeline line;
        ms_fault fault = {0};
        char least[32];
        open_plan(&p, &random);
        uint32_t managed = managed_of(&random);
        uint64_t needs = least_of(&p, managed);
        ms_machine machine = machine_of(&random, managed, needs - 1);
        LAW(ms_replay(&p.plan, &machine, &arena, &line, &fault) ==
            MS_EINFEASIBLE);
        snprintf(least, sizeof least, " %llu ", (unsigned long long)needs);
        ck_assert_ptr_nonnull(strstr(fault.hint, least));
        ms_arena_reset(&arena);
    }
    ms_arena_free(&arena);
}
END_TEST

/* By hand: 100 bytes, a and b of 60 exist, an op of 10 ns uses a, one b.  In a
 * steady step b is here at the start; each comes once, at 1 byte/ns, 4 pages of
 * 16 at 5 ns; neither is changed.  Hints bring b beside the op before it, but
 * a must go first, which that op uses. */
START_TEST(two_tensors_change_places)
{
    random_plan p = {.row = {{.bytes = 60}, {.bytes = 60}},
                     .op = {{.pass = MS_START},
                            {.ns = 10, .alloc_at = 2},
                            {.ns = 10, .alloc_at = 2},
                            {.alloc_at = 2}},
                     .use_at = {0, 2, 3, 4},
                     .use = {0, 1, 0, 1}};
    ms_machine machine = {.capacity_bytes = 100,
                          .book_device = true,
                          .h2d_bytes_per_s = 1e9,
                          .d2h_bytes_per_s = 1e9,
                          .paging = {16, 5, 100, false, 0}};
    p.plan = (ms_plan){.graph = &p.graph,
                       .op = p.op,
                       .row = p.row,
                       .release = p.release,
                       .use_at = p.use_at,
                       .use = p.use,
                       .n_ops = 3,
                       .n_rows = 2,
                       .n_ranks = 1};
    ms_timeline line = run(&p, &machine);
    ck_assert_uint_eq(line.pages.faults, 8);
    ck_assert_uint_eq(line.pages.h2d_bytes, 120);
    ck_assert_uint_eq(line.pages.d2h_bytes, 0);
    ck_assert_uint_eq(line.start_ns[1], 60 + 4 * 5);
    ck_assert_uint_eq(line.gap_cause[1], MS_GAP_PAGES);
    ck_assert_uint_eq(line.step_ns, 2 * (60 + 4 * 5 + 10));
    ck_assert_uint_eq(line.ranks[0].pool[MS_DEVICE_POOL].peak_bytes, 60);
    ck_assert_uint_eq(line.pages.host_peak_bytes, 120);
    machine.paging.hints = true;
    ck_assert_uint_eq(run(&p, &machine).step_ns, 2 * (60 + 10));
    ms_arena_free(&arena);
}
END_TEST

Suite *suite_paging(void)
{
    Suite *suite = suite_create("paging");
    TCase *tcase = tcase_create("paging");
    tcase_set_timeout(tcase, 120);
    tcase_add_test(tcase, pages_go_as_the_oracle_says);
    tcase_add_test(tcase, what_one_op_touches_must_fit);
    tcase_add_test(tcase, two_tensors_change_places);
    suite_add_tcase(suite, tcase);
    return suite;
}
