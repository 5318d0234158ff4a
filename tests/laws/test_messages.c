/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Random graphs cut into stages that send each other what they read: all
 * forwards, then all backwards (test_stages.c has their steps).  However the
 * ranks' calls are mixed, each rank comes to the same; nothing is read that has
 * not come; and where a receive comes after what needs it, the fault is a
 * deadlock of two ranks. */
#include "sim/graph.h"
#include "sim/machine.h"
#include "sim/plan.h"
#include "sim/program.h"
#include "sim/stage.h"
#include "sim/timeline.h"
#include "tests/laws/asserts.h"
#include "tests/tests.h"

#include <string.h>

#define N_TRIALS 500u
#define MOST_RANKS 4u
#define MOST_UNITS 64u

static ms_arena arena;
static ms_fault fault;

typedef struct cutting {
    laws_random *random;
    const ms_graph *graph;
    uint16_t of[MOST_UNITS]; /* per unit, ascending */
    ms_program program;
    uint32_t sets[2][MOST_RANKS][MOST_RANKS]; /* direction, from, to */
} cutting;

static void cut(cutting *c, uint32_t n_ranks)
{
    uint32_t n = c->graph->n_units, first = 0;
    for (uint32_t r = 0; r < n_ranks; r++) {
        uint32_t left = n_ranks - r - 1;
        uint32_t most = n - first - left;
        uint32_t size = left == 0 ? most : 1 + laws_below(c->random, most);
        for (uint32_t u = first; u < first + size; u++)
            c->of[u] = (uint16_t)r;
        MUST(ms_stage_add(&c->program,
                          (ms_stage){(uint16_t)r, first, first + size - 1},
                          &arena, &fault));
        first += size;
    }
}

/* What ops of rank `to` read of what rank `from` makes. */
static void find_set(cutting *c, bool backward, uint32_t from, uint32_t to)
{
    const ms_graph *g = c->graph;
    uint32_t *list = ms_arena_take(&arena, g->n_storages, sizeof *list), n = 0;
    uint8_t *seen = ms_arena_take(&arena, g->n_storages, 1);
    for (uint32_t op = 0; op < g->step_first; op++) {
        if (c->of[g->op_unit[op]] != to)
            continue;
        for (uint32_t i = g->in_at[op]; i < g->in_at[op + 1]; i++) {
            uint32_t s = g->in[i], maker = g->storage_maker[s];
            if (s < g->n_persistent || maker == MS_NONE || seen[s] ||
                c->of[g->op_unit[maker]] != from ||
                (g->op_pass[maker] > MS_LOSS) != backward)
                continue;
            seen[s] = 1;
            list[n++] = s;
        }
    }
    MUST(ms_program_add_set(&c->program, list, n, &arena,
                            &c->sets[backward][from][to], &fault));
}

static ms_call call_of(ms_verb verb, uint32_t rank, uint32_t micro)
{
    ms_call call = ms_program_call(verb);
    call.rank = (uint16_t)rank;
    call.frame = (uint16_t)micro;
    call.micro_batch = micro;
    return call;
}

static void add(ms_program *program, ms_call call)
{
    MUST(ms_program_add(program, call, &arena, &fault));
}

static void message(cutting *c, ms_verb verb, bool backward, uint32_t rank,
                    uint32_t peer, uint32_t micro)
{
    bool sends = verb == MS_SEND_SET;
    ms_call call = call_of(verb, rank, micro);
    call.set = c->sets[backward][sends ? rank : peer][sends ? peer : rank];
    call.message = (ms_message_call){.peer = (uint16_t)peer,
                                     .saves = !sends && !backward,
                                     .tag = 2 * micro + backward};
    if (call.set != MS_NOTHING)
        add(&c->program, call);
}

/* One micro-batch of one rank in one direction. */
static void run(cutting *c, bool backward, uint32_t rank, uint32_t micro)
{
    uint32_t n = c->graph->n_units, ranks = c->program.n_ranks;
    for (uint32_t peer = 0; peer < ranks; peer++)
        message(c, MS_RECV_SET, backward, rank, peer, micro);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t unit = backward ? n - 1 - i : i;
        ms_call call = call_of(MS_RUN, rank, micro);
        call.unit = call.last = unit;
        call.run.pass = backward ? MS_GRAD_INPUT : MS_FORWARD;
        call.run.keep = backward ? MS_NOTHING : MS_ALL;
        if (c->of[unit] == rank)
            add(&c->program, call);
    }
    for (uint32_t peer = 0; peer < ranks; peer++)
        message(c, MS_SEND_SET, backward, rank, peer, micro);
}

static void write(cutting *c)
{
    const ms_program *p = &c->program;
    for (uint32_t both = 0; both < 2; both++)
        for (uint32_t a = 0; a < p->n_ranks; a++)
            for (uint32_t b = 0; b < p->n_ranks; b++) {
                c->sets[both][a][b] = MS_NOTHING;
                if (a != b)
                    find_set(c, both, a, b);
            }
    for (uint32_t both = 0; both < 2; both++)
        for (uint32_t r = 0; r < p->n_ranks; r++)
            for (uint32_t m = 0; m < p->n_micro_batches; m++)
                run(c, both, both ? p->n_ranks - 1 - r : r, m);
}

/* The same calls, each rank's in its order, the ranks' mixed. */
static ms_program mixed(cutting *c)
{
    ms_program other = c->program;
    uint32_t at[MOST_RANKS] = {0}, n = c->program.n_calls;
    other.calls = ms_arena_take(&arena, n, sizeof *other.calls);
    for (uint32_t i = 0; i < n;) {
        uint32_t r = laws_below(c->random, c->program.n_ranks);
        while (at[r] < n && c->program.calls[at[r]].rank != r)
            at[r]++;
        if (at[r] < n)
            other.calls[i++] = c->program.calls[at[r]++];
    }
    return other;
}

static void simulate(const cutting *c, const ms_program *program, ms_plan *plan,
                     ms_timeline *line)
{
    ms_expand_opts opts = {.uses = true, .groups = LAWS_GROUPS};
    ms_machine machine = {.launch_ns = 3, .capacity_bytes = 1u << 30};
    MUST(ms_check_program(c->graph, program, &fault));
    MUST(ms_expand(c->graph, program, &opts, &arena, plan, &fault));
    MUST(ms_replay(plan, &machine, &arena, line, &fault));
    laws_check_rows(plan);
    laws_check_clock(plan, line, &machine);
    laws_check_levels(plan, line);
}

/* Each op of the graph once per micro-batch, on the rank of its unit. */
static void check_ops(const cutting *c, const ms_plan *plan)
{
    const ms_graph *g = c->graph;
    uint32_t *n = ms_arena_take(&arena, g->n_ops, sizeof *n);
    for (uint32_t i = 0; i < plan->n_ops; i++) {
        uint32_t of = plan->op[i].of;
        if (of == MS_NONE || of >= g->step_first)
            continue;
        LAW(c->of[g->op_unit[of]] == plan->op[i].rank);
        n[of]++;
    }
    for (uint32_t op = 0; op < g->step_first; op++)
        if (g->op_pass[op] != MS_ACCUMULATE)
            HOLDS(n[op] == plan->n_micro_batches, "op %u ran %u times", op,
                  n[op]);
}

START_TEST(ranks_come_to_the_same_in_any_order)
{
    for (uint32_t trial = 0; trial < N_TRIALS; trial++) {
        laws_random random = {laws_seed = 61000 + trial};
        ms_graph graph;
        ms_plan plan, other_plan;
        ms_timeline line, other_line;
        laws_graph(&random, &arena, &graph);
        graph.n_kept = 0;
        cutting c = {.random = &random, .graph = &graph};
        uint32_t n = 1 + laws_below(&random, MOST_RANKS);
        uint16_t micro_batches = (uint16_t)(1 + laws_below(&random, 3));
        n = n < graph.n_units ? n : graph.n_units;
        c.program = (ms_program){.n_frames = micro_batches,
                                 .n_ranks = (uint16_t)n,
                                 .n_micro_batches = micro_batches};
        cut(&c, n);
        write(&c);
        simulate(&c, &c.program, &plan, &line);
        check_ops(&c, &plan);
        ms_program other = mixed(&c);
        simulate(&c, &other, &other_plan, &other_line);
        LAW(line.step_ns == other_line.step_ns);
        for (uint32_t r = 0; r < n; r++)
            LAW(memcmp(&line.ranks[r].pool[MS_DEVICE_POOL].peak_bytes,
                       &other_line.ranks[r].pool[MS_DEVICE_POOL].peak_bytes,
                       sizeof(uint64_t)) == 0);
        ms_arena_reset(&arena);
    }
    ms_arena_free(&arena);
}
END_TEST

/* Two ranks, each of which sends before it receives; then one that does not
 * receive at all. */
START_TEST(ranks_that_wait_for_each_other)
{
    laws_random random = {laws_seed = 62000};
    ms_graph graph;
    ms_plan plan;
    ms_expand_opts opts = {.groups = LAWS_GROUPS};
    laws_graph(&random, &arena, &graph);
    ms_program program = {.n_frames = 1, .n_ranks = 2, .n_micro_batches = 1};
    uint32_t set, s = graph.n_persistent;
    MUST(ms_program_add_set(&program, &s, 1, &arena, &set, &fault));
    for (uint32_t i = 0; i < 4; i++) {
        ms_call call = call_of(i % 2 ? MS_RECV_SET : MS_SEND_SET, i / 2, 0);
        call.set = set;
        call.message.peer = (uint16_t)(1 - i / 2);
        call.message.tag = (i == 1 || i == 2);
        add(&program, call);
    }
    ms_fault found = {0};
    ck_assert_int_eq(ms_expand(&graph, &program, &opts, &arena, &plan, &found),
                     MS_EINPUT);
    ck_assert_str_eq(found.what,
                     "a deadlock: rank 0 at call 0, a send of micro-batch 0, "
                     "waits for rank 1 at call 2, a send of micro-batch 0, "
                     "which waits for it in turn");
    program.n_calls = 3;
    found = (ms_fault){0};
    ck_assert_int_eq(ms_expand(&graph, &program, &opts, &arena, &plan, &found),
                     MS_EINPUT);
    ck_assert_str_eq(found.what,
                     "rank 0 sends set 0 to rank 1 (call 0, tag 0, micro-batch "
                     "0), which never receives it");
    ms_arena_free(&arena);
}
END_TEST

Suite *suite_messages(void)
{
    Suite *suite = suite_create("messages");
    TCase *tcase = tcase_create("messages");
    tcase_set_timeout(tcase, 120);
    tcase_add_test(tcase, ranks_come_to_the_same_in_any_order);
    tcase_add_test(tcase, ranks_that_wait_for_each_other);
    suite_add_tcase(suite, tcase);
    return suite;
}
