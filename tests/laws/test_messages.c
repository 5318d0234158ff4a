/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Random graphs cut into stages of unequal work that send each other what they
 * read: all forwards, then all backwards; then each rank sums gradients with
 * ranks that are elsewhere, some ranks meet in a collective, and all step.
 * However the ranks' calls are mixed, each rank comes to the same; nothing is
 * read that has not come, no collective begins before the last rank has come;
 * and where a receive comes after what needs it, the fault is a deadlock of two
 * ranks. */
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
#define MOST_RANKS 5u
#define MOST_UNITS 64u
#define LAUNCH_NS 3u

static ms_arena arena;
static ms_fault fault;

typedef struct cutting {
    laws_random *random;
    const ms_graph *graph;
    uint16_t of[MOST_UNITS]; /* per unit, ascending */
    ms_program program;
    uint32_t sets[2][MOST_RANKS][MOST_RANKS]; /* direction, from, to */
    uint32_t met[MOST_RANKS]; /* the .grad that a rank brings, or MS_NONE */
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

static void run_unit(cutting *c, bool backward, uint32_t unit, uint32_t rank,
                     uint32_t micro)
{
    ms_call call = call_of(MS_RUN, rank, micro);
    call.unit = call.last = unit;
    call.run.pass = backward ? MS_GRAD_INPUT : MS_FORWARD;
    call.run.keep = backward ? MS_NOTHING : MS_ALL;
    if (c->of[unit] == rank)
        add(&c->program, call);
}

/* One micro-batch of one rank in one direction. */
static void run(cutting *c, bool backward, uint32_t rank, uint32_t micro)
{
    uint32_t n = c->graph->n_units, ranks = c->program.n_ranks;
    for (uint32_t peer = 0; peer < ranks; peer++)
        message(c, MS_RECV_SET, backward, rank, peer, micro);
    for (uint32_t i = 0; i < n; i++)
        run_unit(c, backward, backward ? n - 1 - i : i, rank, micro);
    for (uint32_t peer = 0; peer < ranks; peer++)
        message(c, MS_SEND_SET, backward, rank, peer, micro);
}

/* ---- the end of the step ------------------------------------------------- */

static bool is_made(const ms_graph *g, uint32_t grad)
{
    return g->storage_category[grad] == MS_GRADIENTS &&
           g->storage_maker[grad] != MS_NONE;
}

/* A random .grad that the rank's units make, or MS_NONE. */
static uint32_t some_grad(const cutting *c, uint32_t rank)
{
    const ms_graph *g = c->graph;
    uint32_t n = 0, chosen = MS_NONE;
    for (uint32_t s = 0; s < g->n_persistent; s++)
        if (is_made(g, s) && c->of[g->op_unit[g->storage_maker[s]]] == rank &&
            laws_below(c->random, ++n) == 0)
            chosen = s;
    return chosen;
}

/* The weight, its .grad and what becomes that have so many bytes. */
static void resize(ms_graph *g, uint32_t grad, uint64_t bytes)
{
    for (uint32_t s = 0; s < g->n_storages; s++)
        if (s == grad || g->storage_grad[s] == grad)
            g->storage_bytes[s] = bytes;
}

/* Which ranks meet, with gradients of one size. */
static void choose_met(cutting *c, ms_graph *g)
{
    uint32_t n = 0, only = 0;
    uint64_t bytes = 1 + laws_below(c->random, 1u << 20);
    for (uint32_t r = 0; r < c->program.n_ranks; r++) {
        c->met[r] =
            laws_chance(c->random, 70) ? some_grad(c, r) : (uint32_t)MS_NONE;
        if (c->met[r] == MS_NONE)
            continue;
        n++;
        only = r;
    }
    if (n == 1)
        c->met[only] = MS_NONE;
    for (uint32_t r = 0; r < c->program.n_ranks; r++)
        if (c->met[r] != MS_NONE)
            resize(g, c->met[r], bytes);
}

static void reduce(cutting *c, uint32_t rank, uint32_t grad, uint8_t group,
                   uint32_t tag)
{
    ms_call call = call_of(MS_REDUCE, rank, 0);
    call.reduce = (ms_reduce_call){.group = group, .tag = tag};
    MUST(ms_program_add_set(&c->program, &grad, 1, &arena, &call.set, &fault));
    add(&c->program, call);
}

static void end_step(cutting *c, uint32_t rank)
{
    uint32_t grad = some_grad(c, rank);
    ms_call call = call_of(MS_STEP_SET, rank, c->program.n_micro_batches - 1);
    if (grad != MS_NONE && laws_chance(c->random, 50))
        reduce(c, rank, grad,
               laws_chance(c->random, 50) ? MS_GROUP_DATA : MS_GROUP_REPLICATE,
               0);
    if (c->met[rank] != MS_NONE)
        reduce(c, rank, c->met[rank], MS_GROUP_PIPELINE, 1);
    call.set = MS_ALL;
    add(&c->program, call);
}

/* The last op of the rank that makes the .grad or what becomes it. */
static uint32_t maker_of(const ms_plan *plan, uint32_t rank, uint32_t grad)
{
    uint32_t op = MS_NONE;
    for (uint32_t r = 0; r < plan->n_rows; r++) {
        uint32_t s = plan->row[r].storage;
        if (plan->op[plan->row[r].op].rank == rank &&
            (s == grad || plan->graph->storage_grad[s] == grad) &&
            plan->op[plan->row[r].op].pass != MS_START)
            op = plan->row[r].op;
    }
    return op;
}

/* Each of those that meet begins when the last one's gradient is there, and
 * within a launch of the others. */
static void check_met(const cutting *c, const ms_plan *plan,
                      const ms_timeline *line)
{
    uint32_t n = 0, wanted = 0;
    uint64_t ready_ns = 0, first_ns = UINT64_MAX, last_ns = 0;
    for (uint32_t r = 0; r < plan->n_ranks; r++) {
        if (c->met[r] == MS_NONE)
            continue;
        uint32_t made = maker_of(plan, r, c->met[r]);
        LAW(made != MS_NONE || plan->graph->storage_at_start[c->met[r]]);
        if (made != MS_NONE)
            ready_ns = laws_larger(ready_ns, line->end_ns[made]);
        wanted++;
    }
    for (uint32_t i = 0; i < plan->n_transfers; i++) {
        const struct ms_transfer *it = &plan->transfers[i];
        if (it->group != MS_GROUP_PIPELINE || it->kind != MS_TRANSFER_OUTER)
            continue;
        uint64_t start_ns = line->start_ns[it->op];
        first_ns = start_ns < first_ns ? start_ns : first_ns;
        last_ns = laws_larger(last_ns, start_ns);
        LAW(c->met[plan->op[it->op].rank] != MS_NONE);
        n++;
    }
    HOLDS(n == wanted, "%u ranks meet, not %u", n, wanted);
    LAW(n == 0 || (first_ns >= ready_ns && last_ns - first_ns <= LAUNCH_NS));
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
    for (uint32_t r = 0; r < p->n_ranks; r++)
        end_step(c, r);
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
    ms_machine machine = {.launch_ns = LAUNCH_NS, .capacity_bytes = 1u << 30};
    MUST(ms_check_program(c->graph, program, &fault));
    MUST(ms_expand(c->graph, program, &opts, &arena, plan, &fault));
    MUST(ms_replay(plan, &machine, &arena, line, &fault));
    laws_check_rows(plan);
    laws_check_clock(plan, line, &machine);
    laws_check_levels(plan, line);
}

/* The rank whose unit makes the .grad that an op of the step reads. */
static uint32_t rank_of_step(const cutting *c, uint32_t op)
{
    const ms_graph *g = c->graph;
    for (uint32_t i = g->in_at[op]; i < g->in_at[op + 1]; i++)
        if (g->in[i] < g->n_persistent && is_made(g, g->in[i]))
            return c->of[g->op_unit[g->storage_maker[g->in[i]]]];
    return MS_NONE;
}

/* Each op of the graph once per micro-batch, those of the step once, on the
 * rank of its unit. */
static void check_ops(const cutting *c, const ms_plan *plan)
{
    const ms_graph *g = c->graph;
    uint32_t *n = ms_arena_take(&arena, g->n_ops, sizeof *n);
    for (uint32_t i = 0; i < plan->n_ops; i++) {
        uint32_t of = plan->op[i].of;
        if (of == MS_NONE)
            continue;
        uint32_t rank =
            of < g->step_first ? c->of[g->op_unit[of]] : rank_of_step(c, of);
        LAW(rank == plan->op[i].rank);
        n[of]++;
    }
    for (uint32_t op = 0; op < g->n_ops; op++)
        if (g->op_pass[op] != MS_ACCUMULATE)
            HOLDS(n[op] == (op < g->step_first ? plan->n_micro_batches : 1),
                  "op %u ran %u times", op, n[op]);
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
        choose_met(&c, &graph);
        write(&c);
        simulate(&c, &c.program, &plan, &line);
        check_ops(&c, &plan);
        check_met(&c, &plan, &line);
        ms_program other = mixed(&c);
        simulate(&c, &other, &other_plan, &other_line);
        check_met(&c, &other_plan, &other_line);
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

/* ---- equal ranks --------------------------------------------------------- */

#define EQUAL 4u /* members of the group of LAWS_GROUPS */

/* A whole step of each of n ranks, whose gradients are summed one by one: those
 * of one rank with ranks elsewhere, those of several among themselves. */
static ms_program whole_steps(const ms_graph *g, uint32_t n)
{
    cutting c = {.graph = g,
                 .program = {.n_frames = 1,
                             .n_ranks = (uint16_t)n,
                             .n_micro_batches = 1}};
    for (uint32_t r = 0; r < n; r++) {
        uint32_t tag = 0;
        for (uint32_t u = 0; u < g->n_units; u++)
            c.of[u] = (uint16_t)r;
        for (uint32_t both = 0; both < 2; both++)
            for (uint32_t u = 0; u < g->n_units; u++)
                run_unit(&c, both, both ? g->n_units - 1 - u : u, r, 0);
        for (uint32_t s = 0; s < g->n_persistent; s++)
            if (is_made(g, s))
                reduce(&c, r, s, MS_GROUP_PIPELINE, n > 1 ? ++tag : 0);
        ms_call step = call_of(MS_STEP_SET, r, 0);
        step.set = MS_ALL;
        add(&c.program, step);
    }
    return c.program;
}

/* One rank stands for all of them: so a job's data-parallel ranks are one rank
 * of the plan. */
START_TEST(equal_ranks_are_one)
{
    for (uint32_t trial = 0; trial < N_TRIALS; trial++) {
        laws_random random = {laws_seed = 64000 + trial};
        ms_graph graph;
        ms_plan plan, other_plan;
        ms_timeline line, other_line;
        laws_graph(&random, &arena, &graph);
        graph.n_kept = 0;
        const cutting c = {.graph = &graph};
        ms_program one = whole_steps(&graph, 1);
        ms_program all = whole_steps(&graph, EQUAL);
        simulate(&c, &one, &plan, &line);
        simulate(&c, &all, &other_plan, &other_line);
        LAW(line.step_ns == other_line.step_ns);
        LAW(other_line.n_events == EQUAL * line.n_events);
        for (uint32_t r = 0; r < EQUAL; r++)
            LAW(other_line.ranks[r].pool[MS_DEVICE_POOL].peak_bytes ==
                line.ranks[0].pool[MS_DEVICE_POOL].peak_bytes);
        ms_arena_reset(&arena);
    }
    ms_arena_free(&arena);
}
END_TEST

/* Rank and tag of four reductions, and what is wrong with them. */
static const struct {
    uint16_t rank[4];
    uint32_t tag[4], n;
    const char *what;
} wrong_meetings[] = {
    {{0, 0, 1, 1},
     {1, 2, 2, 1},
     4,
     "a deadlock: rank 1 at call 2, a reduction of micro-batch 0, waits for "
     "rank 0 at call 0, a reduction of micro-batch 0, which waits for it in "
     "turn"},
    {{0, 0, 1, 1}, {1, 1, 1, 1}, 4, "rank 0 reduces twice with tag 1 (call 1)"},
    {{0, 1, 1, 1},
     {1, 1, 2, 1},
     3,
     "rank 1 (call 2) reduces with tag 2, and no other does"},
    {{0, 1, 1, 1},
     {9, 9, 1, 1},
     2,
     "call 0 has tag 9; the program has 2 calls"},
    {{0, 1, 2, 0},
     {1, 1, 1, 1},
     3,
     "ranks 0 and 2 (calls 0, 2) reduce otherwise with tag 1"},
};

START_TEST(ranks_that_do_not_meet)
{
    laws_random random = {laws_seed = 63000};
    ms_graph graph;
    ms_plan plan;
    ms_fault found = {0};
    ms_expand_opts opts = {.groups = LAWS_GROUPS};
    uint32_t sets[2];
    laws_graph(&random, &arena, &graph);
    ms_program program = {.n_frames = 1, .n_ranks = 3, .n_micro_batches = 1};
    for (uint32_t s = 0; s < 2; s++)
        MUST(ms_program_add_set(&program, &s, 1, &arena, &sets[s], &fault));
    graph.storage_bytes[1] = graph.storage_bytes[0] + 1;
    for (uint32_t i = 0; i < wrong_meetings[_i].n; i++) {
        ms_call call = call_of(MS_REDUCE, wrong_meetings[_i].rank[i], 0);
        call.set = sets[call.rank == 2];
        call.reduce = (ms_reduce_call){.group = MS_GROUP_PIPELINE,
                                       .tag = wrong_meetings[_i].tag[i]};
        add(&program, call);
    }
    ck_assert_int_eq(ms_expand(&graph, &program, &opts, &arena, &plan, &found),
                     MS_EINPUT);
    ck_assert_str_eq(found.what, wrong_meetings[_i].what);
    ms_arena_free(&arena);
}
END_TEST

Suite *suite_messages(void)
{
    Suite *suite = suite_create("messages");
    TCase *tcase = tcase_create("messages");
    tcase_set_timeout(tcase, 120);
    tcase_add_test(tcase, ranks_come_to_the_same_in_any_order);
    tcase_add_test(tcase, equal_ranks_are_one);
    tcase_add_test(tcase, ranks_that_wait_for_each_other);
    tcase_add_loop_test(tcase, ranks_that_do_not_meet, 0,
                        sizeof wrong_meetings / sizeof *wrong_meetings);
    suite_add_tcase(suite, tcase);
    return suite;
}
