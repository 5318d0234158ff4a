/* SPDX-License-Identifier: GPL-3.0-or-later */
/* An online pass keeps to its budget or says that it cannot, on random graphs
 * too; it sees what is true; what it is not asked for it does not change; and
 * what DTR's paper claims of chains. */
#include "policies/common/policy.h"
#include "sim/graph.h"
#include "sim/machine.h"
#include "sim/online.h"
#include "sim/schedule/schedule.h"
#include "sim/timeline.h"
#include "tests/laws/laws.h"
#include "tests/laws/policy.h"
#include "tests/tests.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define GRAPHS 400u
#define MANY(list) (sizeof(list) / sizeof *(list))

static ms_arena arena;

static void close_arena(void)
{
    ms_arena_free(&arena);
}

/* ---- any victim ---------------------------------------------------------- */

/* What a pass that picks at random has seen. */
typedef struct witness {
    laws_random random;
    uint32_t asked;
    uint64_t now_ns;
} witness;

static void check_view(const ms_online *online, const ms_online_view *view,
                       const witness *seen)
{
    const ms_graph *graph = view->graph;
    const uint32_t *here;
    uint32_t n = ms_eviction_list(view, &here);
    ck_assert_uint_gt(view->missing_bytes, 0);
    ck_assert_uint_gt(view->level_bytes + view->missing_bytes,
                      view->missing_bytes);
    ck_assert_uint_ge(view->now_ns, seen->now_ns);
    ck_assert_uint_gt(online->budget_bytes, 0);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t s = here[i];
        ck_assert_uint_ge(s, graph->n_persistent);
        ck_assert_uint_lt(graph->op_pass[graph->storage_maker[s]],
                          MS_GRAD_INPUT);
        ck_assert_uint_ne(graph->storage_saved_end[s], MS_NONE);
        ck_assert_uint_ne(view->row[s], MS_NONE);
        ck_assert(!ms_online_gone(view, s));
        ck_assert_uint_le(view->used_ns[s], view->now_ns);
        for (uint32_t k = 0; k < i; k++) {
            ck_assert_uint_ne(here[k], s);
            ck_assert_uint_lt(view->came[here[k]], view->came[s]);
        }
    }
}

static uint32_t pick_any(const ms_online *online, void *state,
                         const ms_online_view *view)
{
    witness *seen = state;
    check_view(online, view, seen);
    seen->asked++;
    seen->now_ns = view->now_ns;
    seen->random.state += laws_seed;
    const uint32_t *here;
    uint32_t n = ms_eviction_list(view, &here);
    return n > 0 ? here[laws_below(&seen->random, n)] : MS_NONE;
}

/* The highest level in host order, by a walk over all rows for each op. */
static uint64_t highest(const ms_plan *plan)
{
    uint64_t most = 0, level = 0;
    for (uint32_t op = 0; op < plan->n_ops; op++) {
        for (uint32_t r = plan->op[op].alloc_at; r < plan->op[op + 1].alloc_at;
             r++)
            level +=
                plan->row[r].pool == MS_DEVICE_POOL ? plan->row[r].bytes : 0;
        most = laws_larger(most, level);
        for (uint32_t k = plan->op[op].release_at;
             k < plan->op[op + 1].release_at; k++) {
            const ms_row *row = &plan->row[plan->release[k]];
            level -= row->pool == MS_DEVICE_POOL ? row->bytes : 0;
        }
    }
    return most;
}

/* Is what the two do the same, allocation by allocation? */
static bool is_same(const ms_plan *a, const ms_plan *b)
{
    if (a->n_ops != b->n_ops || a->n_rows != b->n_rows)
        return false;
    for (uint32_t i = 0; i < a->n_ops; i++)
        if (a->op[i].of != b->op[i].of || a->op[i].pass != b->op[i].pass ||
            a->op[i].alloc_at != b->op[i].alloc_at ||
            a->op[i].release_at != b->op[i].release_at)
            return false;
    for (uint32_t i = 0; i < a->n_rows; i++)
        if (a->row[i].bytes != b->row[i].bytes ||
            a->row[i].storage != b->row[i].storage ||
            a->row[i].category != b->row[i].category)
            return false;
    return true;
}

static void check_budget(const ms_graph *graph, ms_program *program,
                         const ms_plan *all, uint64_t budget_bytes,
                         uint32_t *kept)
{
    const ms_online any = {.name = "any",
                           .budget_bytes = budget_bytes,
                           .most_again_ns = UINT64_MAX,
                           .state_bytes = sizeof(witness),
                           .victim = pick_any};
    const ms_expand_opts opts = {.uses = true};
    ms_machine machine = {.capacity_bytes = UINT64_C(1) << 40};
    ms_timeline line;
    ms_fault fault = {0};
    ms_plan plan;
    program->online = &any;
    ms_err err = ms_expand(graph, program, &opts, &arena, &plan, &fault);
    program->online = NULL;
    if (err != MS_OK) {
        ck_assert_msg(err == MS_EINFEASIBLE, "seed %" PRIu64 ": %s", laws_seed,
                      fault.what);
        ck_assert_uint_lt(budget_bytes, highest(all));
        return;
    }
    ++*kept;
    laws_check_rows(&plan);
    ck_assert_int_eq(ms_replay(&plan, &machine, &arena, &line, &fault), MS_OK);
    laws_check_clock(&plan, &line, &machine);
    laws_check_levels(&plan, &line);
    ck_assert_uint_ge(plan.n_ops, all->n_ops);
    if (budget_bytes >= highest(all))
        ck_assert(is_same(&plan, all));
    /* The step has nothing that could go: what it takes is not held. */
    uint32_t first_step = plan.n_ops;
    for (uint32_t op = plan.n_ops; op-- > 0;)
        first_step = plan.op[op].pass == MS_STEP ? op : first_step;
    plan.n_ops = first_step;
    ck_assert_msg(highest(&plan) <= budget_bytes, "seed %" PRIu64, laws_seed);
}

static void check_graph(uint32_t *kept)
{
    static const uint32_t percents[] = {100, 95, 90, 80, 70};
    laws_random random = {laws_seed};
    ms_graph graph;
    ms_keep keep;
    ms_schedule schedule;
    ms_program program;
    ms_plan all;
    const ms_expand_opts opts = {.uses = true};
    ms_fault fault = {0};
    laws_graph(&random, &arena, &graph);
    ck_assert_int_eq(ms_program_keep_all(&graph, &arena, &keep, &fault), MS_OK);
    ck_assert_int_eq(ms_schedule_default(&graph, 1 + laws_below(&random, 3),
                                         &arena, &schedule, &fault),
                     MS_OK);
    ck_assert_int_eq(
        ms_defaultprogram(&graph, &keep, &schedule, &arena, &program, &fault),
        MS_OK);
    ck_assert_int_eq(ms_expand(&graph, &program, &opts, &arena, &all, &fault),
                     MS_OK);
    for (size_t i = 0; i < MANY(percents); i++)
        check_budget(&graph, &program, &all,
                     (highest(&all) * percents[i] + 99) / 100, kept);
    ms_arena_reset(&arena);
}

START_TEST(budgets_are_kept)
{
    uint32_t kept = 0;
    for (laws_seed = 1; laws_seed <= GRAPHS; laws_seed++)
        check_graph(&kept);
    ck_assert_uint_gt(kept, 2 * GRAPHS); /* refusing everything is no way */
    close_arena();
}
END_TEST

/* ---- DTR by its formulas ------------------------------------------------- */

/* Does forward make or finish the storage with this op? */
static bool makes(const ms_graph *graph, uint32_t op, uint32_t storage)
{
    uint32_t first = graph->out_at[op], end = graph->out_at[op + 1];
    if (first == end)
        return graph->in_at[op] < graph->in_at[op + 1] &&
               graph->in[graph->in_at[op]] == storage;
    for (uint32_t i = first; i < end; i++)
        if (graph->out[i] == storage)
            return true;
    return false;
}

static bool reads(const ms_graph *graph, uint32_t op, uint32_t storage)
{
    for (uint32_t i = graph->in_at[op]; i < graph->in_at[op + 1]; i++)
        if (graph->in[i] == storage)
            return true;
    return false;
}

static uint32_t end_forward(const ms_graph *graph)
{
    return graph->backward_at[graph->n_units];
}

static uint64_t own_ns(const ms_graph *graph, uint32_t storage)
{
    uint64_t ns = 0;
    for (uint32_t op = 0; op < end_forward(graph); op++)
        ns += makes(graph, op, storage) ? graph->op_ns[op] : 0;
    return ns;
}

static bool is_made_from(const ms_graph *graph, uint32_t child, uint32_t parent)
{
    for (uint32_t op = 0; op < end_forward(graph); op++)
        if (child != parent && makes(graph, op, child) &&
            reads(graph, op, parent))
            return true;
    return false;
}

/* What is gone and can be reached one way, found again and again until no more
 * is. */
static uint64_t around_ns(const ms_online_view *view, uint32_t storage, bool up)
{
    const ms_graph *graph = view->graph;
    uint8_t *found = ms_arena_take(&arena, graph->n_storages, 1);
    uint64_t ns = 0;
    bool more = true;
    found[storage] = 1;
    while (more) {
        more = false;
        for (uint32_t s = graph->n_persistent; s < graph->n_storages; s++)
            for (uint32_t t = graph->n_persistent;
                 t < graph->n_storages && !found[s] && ms_online_gone(view, s);
                 t++)
                if (found[t] && (up ? is_made_from(graph, t, s)
                                    : is_made_from(graph, s, t))) {
                    found[s] = more = true;
                    ns += own_ns(graph, s);
                }
    }
    return ns;
}

/* Classes of what is gone, each named in the row of each member. */
#define MOST_CLASSES 65536u
static struct {
    uint32_t n, of[4096];
    int64_t sum_ns[MOST_CLASSES];
} classes;

static bool is_next(const ms_graph *graph, uint32_t a, uint32_t b)
{
    return is_made_from(graph, a, b) || is_made_from(graph, b, a);
}

static void go(const ms_graph *graph, uint32_t s)
{
    uint32_t class = ++classes.n;
    ck_assert_uint_lt(class, MOST_CLASSES);
    classes.of[s] = class;
    classes.sum_ns[class] = (int64_t)own_ns(graph, s);
    for (uint32_t t = graph->n_persistent; t < graph->n_storages; t++) {
        uint32_t other = classes.of[t];
        if (other == 0 || other == class || !is_next(graph, s, t))
            continue;
        classes.sum_ns[class] += classes.sum_ns[other];
        for (uint32_t u = 0; u < graph->n_storages; u++)
            classes.of[u] = classes.of[u] == other ? class : classes.of[u];
    }
}

static void update_classes(const ms_online_view *view)
{
    for (uint32_t i = 0; i < view->n_changed; i++) {
        uint32_t s = view->changed[i];
        bool gone = ms_online_gone(view, s);
        if (gone && classes.of[s] == 0)
            go(view->graph, s);
        if (!gone && classes.of[s] != 0) {
            classes.sum_ns[classes.of[s]] -= (int64_t)own_ns(view->graph, s);
            classes.of[s] = 0;
        }
    }
}

static uint64_t classes_ns(const ms_graph *graph, uint32_t s)
{
    int64_t ns = 0;
    for (uint32_t class = 1; class <= classes.n; class ++)
        for (uint32_t t = graph->n_persistent; t < graph->n_storages; t++)
            if (classes.of[t] == class && is_next(graph, s, t)) {
                ns += classes.sum_ns[class];
                break;
            }
    return ns > 0 ? (uint64_t)ns : 0;
}

static const char *const heuristics[] = {"dtr",  "local", "msps", "lru",
                                         "size", "eq",    "esize"};

static double formula(const ms_online_view *view, int heuristic, uint32_t s)
{
    double bytes = (double)view->graph->storage_bytes[s];
    double stale = (double)(view->now_ns - view->used_ns[s]);
    uint64_t ns = own_ns(view->graph, s);
    if (heuristic == 0 || heuristic == 6)
        ns += around_ns(view, s, false);
    if (heuristic == 0 || heuristic == 2 || heuristic == 6)
        ns += around_ns(view, s, true);
    if (heuristic == 5)
        ns += classes_ns(view->graph, s);
    if (heuristic == 3)
        return (double)view->used_ns[s];
    if (heuristic == 4)
        return 1 / bytes;
    if (ns == 0)
        return 0;
    return heuristic == 2 || heuristic == 6 ? (double)ns / bytes
                                            : (double)ns / (bytes * stale);
}

typedef struct judge {
    int heuristic;
    uint32_t n;
    const ms_online *online; /* the one that is judged */
} judge;

/* The last of the least. */
static uint32_t pick_judged(const ms_online *online, void *state,
                            const ms_online_view *view)
{
    judge *it = *(judge *const *)online->setup;
    uint32_t victim = it->online->victim(it->online, state, view);
    const uint32_t *here;
    uint32_t n = ms_eviction_list(view, &here), best = MS_NONE;
    if (it->heuristic == 5)
        update_classes(view);
    double least = INFINITY;
    for (uint32_t i = 0; i < n; i++) {
        double of = formula(view, it->heuristic, here[i]);
        best = best == MS_NONE || of <= least ? here[i] : best;
        least = best == here[i] ? of : least;
    }
    ck_assert_msg(victim == best, "seed %" PRIu64 ", h=%s: %u for %u",
                  laws_seed, heuristics[it->heuristic], victim, best);
    it->n++;
    return victim;
}

static uint64_t peak_of(const char *policy, const ms_graph *graph)
{
    ms_fault fault;
    return laws_run_policy(graph, policy, 0, 1, &arena, &fault)
        .report.ranks[0]
        .peak.allocated_bytes;
}

/* Returns how many victims were judged. */
static uint32_t judge_graph(int heuristic, uint64_t percent)
{
    laws_random random = {laws_seed};
    ms_graph graph;
    ms_fault fault = {0};
    ms_plan plan;
    ms_spec spec = {0};
    ms_program program;
    ms_machine machine = {.capacity_bytes = UINT64_C(1) << 40};
    ms_expand_opts opts = {.uses = true};
    ms_policy_context context = {
        .graph = &graph, .arena = &arena, .opts = &opts, .machine = &machine};
    char policy[80];
    laws_graph(&random, &arena, &graph);
    snprintf(policy, sizeof policy, "dtr:most=1000,h=%s,budget=%" PRIu64,
             heuristics[heuristic], peak_of("none", &graph) * percent / 100);
    ck_assert_int_eq(ms_spec_parse(policy, &arena, &spec, &fault), MS_OK);
    ms_err err = ms_apply_program(&spec, &context, 1 + laws_below(&random, 2),
                                  &program, &fault);
    ck_assert(err == MS_OK || err == MS_EINFEASIBLE);
    if (err != MS_OK) {
        ms_arena_reset(&arena);
        return 0;
    }
    judge it = {heuristic, 0, program.online}, *setup = &it;
    memset(&classes, 0, sizeof classes);
    ms_online judged = *program.online;
    judged.setup = &setup;
    judged.victim = pick_judged;
    program.online = &judged;
    ck_assert_int_eq(ms_expand(&graph, &program, &opts, &arena, &plan, &fault),
                     MS_OK);
    ms_arena_reset(&arena);
    return it.n;
}

START_TEST(victims_are_the_formulas)
{
    uint32_t n = 0;
    for (laws_seed = 1; laws_seed <= GRAPHS / 4; laws_seed++)
        for (uint64_t percent = 60; percent < 100; percent += 15)
            n += judge_graph(_i, percent);
    ck_assert_uint_gt(n, GRAPHS / 4);
    close_arena();
}
END_TEST

/* ---- chains -------------------------------------------------------------- */

/* Ops that run again for a chain of n equal units in so many tensors beside the
 * least that any way needs. */
static uint32_t again(uint32_t n, uint32_t tensors, const char *heuristic)
{
    ms_graph graph;
    ms_fault fault;
    char policy[80];
    snprintf(policy, sizeof policy, "dtr:most=1000,h=%s,budget=%u", heuristic,
             (tensors + 4) * 1000);
    laws_chain(n, 1000, &arena, &graph);
    laws_outcome out = laws_run_policy(&graph, policy, 0, 1, &arena, &fault);
    ck_assert_msg(out.err == MS_OK, "%u units, %s: %s", n, policy, fault.what);
    uint32_t ops = out.plan.recomputed_ops;
    ck_assert_uint_le(out.report.ranks[0].peak.allocated_bytes,
                      (tensors + 4) * 1000);
    close_arena();
    return ops;
}

/* Theorem 1: in 2 sqrt(N) tensors a chain of N ops takes O(N) more. */
START_TEST(a_chain_is_linear)
{
    for (uint32_t n = 16; n <= 1024; n *= 2) {
        uint32_t tensors = 2 * (uint32_t)ceil(sqrt(n));
        ck_assert_uint_le(again(n, tensors, "dtr"), 2 * n);
    }
}
END_TEST

/* Figure 2: what does not look around itself falls behind. */
START_TEST(looking_around_pays)
{
    uint32_t n = 256, tensors = 24; /* 3 log2 N */
    uint32_t dtr = again(n, tensors, "dtr");
    ck_assert_uint_lt(dtr, again(n, tensors, "local"));
    ck_assert_uint_lt(dtr, again(n, tensors, "lru"));
    ck_assert_uint_lt(dtr, again(n, tensors, "size"));
}
END_TEST

/* With less, more is run again; with enough, nothing. */
START_TEST(memory_buys_time)
{
    uint32_t last = UINT32_MAX;
    for (uint32_t tensors = 8; tensors <= 64; tensors *= 2) {
        uint32_t ops = again(64, tensors, "dtr");
        ck_assert_uint_lt(ops, last);
        last = ops;
    }
    ck_assert_uint_eq(last, 0);
}
END_TEST

Suite *suite_evictions(void)
{
    Suite *suite = suite_create("evictions");
    TCase *tcase = tcase_create("laws");
    tcase_set_timeout(tcase, 120);
    tcase_add_test(tcase, budgets_are_kept);
    tcase_add_loop_test(tcase, victims_are_the_formulas, 0,
                        (int)MANY(heuristics));
    tcase_add_test(tcase, a_chain_is_linear);
    tcase_add_test(tcase, looking_around_pays);
    tcase_add_test(tcase, memory_buys_time);
    suite_add_tcase(suite, tcase);
    return suite;
}
