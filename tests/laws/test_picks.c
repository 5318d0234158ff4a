/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Capuchin's picks are those of its paper (Peng et al. 2020, 4.4), as someone
 * would make them who looks at all tensors, lanes and levels before each: on
 * random graphs and links, and on chains. */
#include "policies/common/policy.h"
#include "policies/swap/swapplan.h"
#include "sim/graph.h"
#include "sim/machine.h"
#include "sim/schedule/schedule.h"
#include "tests/laws/laws.h"
#include "tests/tests.h"

#include <inttypes.h>
#include <string.h>

#define GRAPHS 600u
#define MOST 4096u /* tensors, and calls */

static ms_arena arena;
static const ms_swapplan_rule *judged;
static uint32_t n_hidden, n_late, n_again;

/* ---- what is waited so far ----------------------------------------------- */

static uint64_t shift_ns[MOST];
static uint32_t first_call[MOST], last_call[MOST];

static void shift(uint32_t call, uint64_t ns)
{
    for (uint32_t c = call; c < MOST; c++)
        shift_ns[c] += ns;
}

static bool is_high(const ms_swapplan *p, uint32_t call)
{
    return ms_levels_most(p->levels, call, call + 1) > (int64_t)p->target_bytes;
}

static uint64_t used_ns(const ms_swapplan *p, uint32_t i)
{
    const ms_profile_tensor *t = &p->profile->tensors[i];
    return t->out_ns + shift_ns[t->out_call];
}

static uint64_t needed_ns(const ms_swapplan *p, uint32_t i)
{
    return p->need_ns[i] + shift_ns[p->need_call[i]];
}

static uint64_t begins_ns(const ms_swapplan *p, uint32_t call)
{
    return p->profile->start_ns[call] + shift_ns[call];
}

static uint64_t ended_ns(const ms_swapplan *p, uint32_t call)
{
    return p->profile->start_ns[call + 1] + shift_ns[call];
}

static uint64_t less(uint64_t a, uint64_t b)
{
    return a > b ? a - b : 0;
}

static uint64_t later(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static uint64_t sooner(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* ---- the lanes, from one end to the other -------------------------------- */

typedef struct fit {
    int64_t free_ns;
    uint64_t out_ns, in_ns; /* late */
    uint32_t first, last;   /* calls that are too high */
} fit;

static bool moves(const ms_swapplan *p, uint32_t i)
{
    return p->choice[i].place == MS_HOST;
}

static fit try(const ms_swapplan *p, uint32_t tensor)
{
    uint32_t n = p->profile->n_tensors, at = p->at_out[tensor];
    uint64_t out = 0, by = UINT64_MAX, in = UINT64_MAX, from = 0;
    fit f = {.first = p->profile->tensors[tensor].out_call + 1,
             .last = p->need_call[tensor] - 1};
    while (!is_high(p, f.first))
        f.first++;
    while (!is_high(p, f.last))
        f.last--;
    for (uint32_t k = 0, i; k < at; k++)
        if (moves(p, i = p->by_out[k]))
            out = later(out, used_ns(p, i)) + p->out_ns[i];
    for (uint32_t k = n, i; --k > at;)
        if (moves(p, i = p->by_out[k]))
            by = less(sooner(by, begins_ns(p, first_call[i])), p->out_ns[i]);
    at = p->at_back[tensor];
    for (uint32_t k = n, i; --k > at;)
        if (moves(p, i = p->by_back[k]))
            in = less(sooner(in, needed_ns(p, i)), p->in_ns[i]);
    for (uint32_t k = 0, i; k < at; k++)
        if (moves(p, i = p->by_back[k]))
            from = later(from, ended_ns(p, last_call[i])) + p->in_ns[i];
    uint64_t end = later(out, used_ns(p, tensor)) + p->out_ns[tensor];
    uint64_t start = less(sooner(in, needed_ns(p, tensor)), p->in_ns[tensor]);
    f.free_ns = (int64_t)start - (int64_t)end;
    f.out_ns = less(end, sooner(by, begins_ns(p, f.first)));
    f.in_ns = less(later(from, ended_ns(p, f.last)), start);
    return f;
}

/* ---- making again -------------------------------------------------------- */

/* How often each tensor is a source of what is made again. */
static uint32_t readers[MOST];

static uint32_t tensor_of(const ms_swapplan *p, uint32_t storage, uint32_t like)
{
    const ms_profile_tensor *tensors = p->profile->tensors;
    for (uint32_t i = 0; i < p->profile->n_tensors; i++)
        if (tensors[i].storage == storage &&
            tensors[i].micro_batch == tensors[like].micro_batch)
            return i;
    return MS_NONE;
}

static bool finishes(const ms_graph *graph, uint32_t op, uint32_t storage)
{
    uint32_t last = graph->storage_local_end[storage];
    return last != MS_NONE && op <= last &&
           op > graph->storage_maker[storage] &&
           graph->out_at[op] == graph->out_at[op + 1] &&
           graph->in_at[op] < graph->in_at[op + 1] &&
           graph->in[graph->in_at[op]] == storage &&
           graph->op_pass[op] <= MS_LOSS;
}

static bool want(const ms_graph *graph, uint32_t storage, uint8_t *wanted)
{
    uint32_t maker = graph->storage_maker[storage];
    if (maker == MS_NONE || graph->op_pass[maker] > MS_LOSS)
        return false;
    wanted[maker] |= 1;
    for (uint32_t op = 0; op < graph->n_ops; op++)
        wanted[op] |= finishes(graph, op, storage);
    return true;
}

static bool is_there(const ms_swapplan *p, uint32_t storage, uint32_t op)
{
    const ms_graph *graph = p->swap->context->graph;
    uint32_t end = graph->storage_saved_end[storage];
    return storage < graph->n_persistent ||
           (p->swap->saved.kept[storage] && !p->gone[storage] &&
            end != MS_NONE && end >= op);
}

/* The time of an op and of what it brings; false: an input cannot be made. */
static bool run_op(const ms_swapplan *p, uint32_t tensor, uint32_t op,
                   uint8_t *wanted, bool count, uint64_t *ns)
{
    const ms_graph *graph = p->swap->context->graph;
    *ns += graph->op_ns[op];
    for (uint32_t k = graph->in_at[op]; k < graph->in_at[op + 1]; k++) {
        uint32_t s = graph->in[k], other = tensor_of(p, s, tensor);
        bool there = is_there(p, s, p->profile->tensors[tensor].back_op);
        if (!there && !want(graph, s, wanted))
            return false;
        if (!there || other == MS_NONE)
            continue;
        readers[other] += count;
        if (moves(p, other) && p->need_call[other] > p->need_call[tensor])
            *ns += p->in_ns[other];
    }
    return true;
}

static uint64_t again_ns(const ms_swapplan *p, uint32_t tensor, bool count)
{
    const ms_graph *graph = p->swap->context->graph;
    const ms_profile_tensor *t = &p->profile->tensors[tensor];
    uint32_t end = graph->storage_saved_end[t->storage];
    uint8_t *wanted = ms_arena_take(&arena, graph->n_ops, 1);
    uint64_t ns = 0;
    bool more = true;
    if (end == MS_NONE || end < t->back_op || !want(graph, t->storage, wanted))
        return UINT64_MAX;
    while (more) {
        more = false;
        for (uint32_t op = 0; op < graph->n_ops; op++) {
            if (wanted[op] != 1)
                continue;
            wanted[op] = 2;
            more = true;
            if (!run_op(p, tensor, op, wanted, count, &ns))
                return UINT64_MAX;
        }
    }
    return ns;
}

/* ---- a pick -------------------------------------------------------------- */

typedef struct best {
    uint32_t tensor;
    double score;
} best;

static void offer(best *b, uint32_t tensor, double score)
{
    if (b->tensor == MS_NONE || score > b->score)
        *b = (best){tensor, score};
}

static double rate_of(const ms_swapplan *p, uint32_t i, uint64_t ns)
{
    return (double)p->profile->tensors[i].bytes / ((double)ns + 1);
}

static void find_best(const ms_swapplan *p, uint32_t call, best *hidden,
                      best *late, best *again)
{
    uint32_t n = p->profile->n_tensors;
    memset(readers, 0, sizeof readers);
    for (uint32_t i = 0; i < n; i++)
        if (p->choice[i].place == MS_GONE)
            again_ns(p, i, true);
    *hidden = *late = *again = (best){MS_NONE, 0};
    for (uint32_t i = 0; i < n; i++) {
        if (!ms_swapplan_idle(p, i, call))
            continue;
        fit f = try(p, i);
        uint64_t ns = p->recompute ? again_ns(p, i, false) : UINT64_MAX;
        if (f.out_ns + f.in_ns == 0)
            offer(hidden, i, (double)f.free_ns);
        offer(late, i, rate_of(p, i, f.out_ns + f.in_ns));
        if (ns != UINT64_MAX)
            offer(again, i, rate_of(p, i, ns * (1 + readers[i])));
    }
}

static best naive_pick(const ms_swapplan *p, uint32_t call, uint8_t *place)
{
    best hidden, late, again;
    find_best(p, call, &hidden, &late, &again);
    bool always = judged == &ms_swaprules_rule_again;
    bool remakes = again.tensor != MS_NONE && again.score > late.score;
    *place = MS_HOST;
    if (hidden.tensor != MS_NONE && !always) {
        n_hidden++;
        return hidden;
    }
    if (again.tensor == MS_NONE || !(remakes || always)) {
        n_late++;
        return late;
    }
    n_again++;
    *place = MS_GONE;
    return again;
}

/* The pick of the rule, which has to be the naive one. */
static uint32_t pick(ms_swapplan *p, uint32_t call, uint8_t *place)
{
    uint8_t other = 0;
    if (p->n_picked == 0)
        memset(shift_ns, 0, sizeof shift_ns);
    uint32_t naive = naive_pick(p, call, &other).tensor;
    fit f = naive != MS_NONE ? try(p, naive) : (fit){0};
    uint32_t tensor = judged->pick(p, call, place);
    ck_assert_msg(tensor == naive && (naive == MS_NONE || *place == other),
                  "seed %" PRIu64 ", pick %u, call %u: %u to %u, not %u to %u",
                  laws_seed, p->n_picked, call, tensor, *place, naive, other);
    if (naive == MS_NONE)
        return naive;
    first_call[naive] = f.first;
    last_call[naive] = f.last;
    uint64_t ns = other == MS_GONE ? again_ns(p, naive, false) : 0;
    shift(f.first, other == MS_HOST ? f.out_ns : 0);
    shift(p->need_call[naive], other == MS_HOST ? f.in_ns : ns);
    ms_arena_reset(&arena);
    return tensor;
}

/* ---- plans --------------------------------------------------------------- */

#define N_RULES 2
static const ms_swapplan_rule *const rules[N_RULES] = {
    &ms_swaprules_rule_capuchin, &ms_swaprules_rule_again};

static void make_plan(const ms_policy_context *context, ms_swap *swap,
                      const ms_profile *profile, uint64_t budget_bytes)
{
    ms_swapplan_rule rule = *judged;
    ms_swapplan plan;
    rule.pick = pick;
    swap->context = context;
    ck_assert_int_eq(ms_swapplan_open(&plan, swap, profile, budget_bytes),
                     MS_OK);
    ck_assert_int_eq(ms_swapplan_make(&plan, &rule, laws_seed % 4 > 0), MS_OK);
}

static void check_graph(const ms_graph *graph, laws_random *random,
                        ms_arena *trial)
{
    static const ms_policy_value values[MS_SWAP_N_PARAMS];
    ms_fault fault = {0};
    ms_machine machine = {.capacity_bytes = UINT64_C(1) << 40};
    ms_expand_opts opts = {.copy_ns = laws_below(random, 60),
                           .d2h_bytes_per_s = 1e9 * laws_below(random, 30),
                           .h2d_bytes_per_s = 1e9 * laws_below(random, 30)};
    ms_policy_context context = {
        .graph = graph, .arena = trial, .opts = &opts, .machine = &machine};
    ms_keep keep;
    ms_program program, made;
    ms_profile profile;
    ms_swap swap = {.from = &program,
                    .program = &made,
                    .arena = trial,
                    .fault = &fault,
                    .values = values};
    uint32_t micro_batches = 1 + laws_below(random, 2);
    ck_assert_int_eq(ms_program_keep_all(graph, trial, &keep, &fault), MS_OK);
    ck_assert_int_eq(ms_defaultprogram_alone(graph, &keep, micro_batches, trial,
                                             &program, &fault),
                     MS_OK);
    ck_assert_int_eq(ms_program_fork(&program, trial, &made, &fault), MS_OK);
    ck_assert_int_eq(
        ms_saved_find(graph, &program, 1, trial, &made, &swap.saved, &fault),
        MS_OK);
    ck_assert_int_eq(ms_profile_run(&context, &program, 1, &profile, &fault),
                     MS_OK);
    ck_assert_uint_lt(profile.n_tensors, MOST);
    ck_assert_uint_lt(profile.n_calls + 1, MOST);
    for (uint64_t percent = 55; percent < 100; percent += 20)
        make_plan(&context, &swap, &profile,
                  profile.peak_bytes * percent / 100);
}

START_TEST(picks_are_naive)
{
    ms_arena trial = {0};
    judged = rules[_i];
    n_hidden = n_late = n_again = 0;
    for (laws_seed = 1; laws_seed <= GRAPHS; laws_seed++) {
        laws_random random = {laws_seed};
        ms_graph graph;
        if (laws_seed % 10 == 0)
            laws_chain(8 + laws_below(&random, 24), 1000, &trial, &graph);
        else
            laws_graph(&random, &trial, &graph);
        check_graph(&graph, &random, &trial);
        ms_arena_reset(&trial);
    }
    ck_assert_uint_gt(n_again, GRAPHS);
    ck_assert_uint_gt(n_late, GRAPHS / 4);
    ck_assert(_i == 1 || n_hidden > GRAPHS);
    ms_arena_free(&trial);
    ms_arena_free(&arena);
}
END_TEST

Suite *suite_picks(void)
{
    Suite *suite = suite_create("picks");
    TCase *tcase = tcase_create("laws");
    tcase_set_timeout(tcase, 120);
    tcase_add_loop_test(tcase, picks_are_naive, 0, N_RULES);
    suite_add_tcase(suite, tcase);
    return suite;
}
