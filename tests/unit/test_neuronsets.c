/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What SuperNeurons keeps, recomputes and releases around each unit of
 * random steps. The paper's rules are stated a second time, without lists or
 * order: every set from its definition, over all storages and ops. */
#include "policies/common/policy.h"
#include "sim/graph.h"
#include "sim/kinds.h"
#include "sim/program.h"
#include "tests/laws/laws.h"
#include "tests/laws/policy.h"
#include "tests/tests.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define MOST_STORAGES 512u
#define MOST_UNITS 8u

static ms_arena arena;
static ms_fault fault;
static ms_graph graph;

/* Of each unit, by storage. */
static bool checkpoint[MOST_STORAGES], again[MOST_STORAGES];
static bool made[MOST_UNITS][MOST_STORAGES], dropped[MOST_UNITS][MOST_STORAGES];
static uint32_t need[MOST_STORAGES]; /* the first unit that needs it, or none */
static bool layer[MOST_UNITS];

static void teardown(void)
{
    ms_arena_free(&arena);
}

/* ---- the rules ----------------------------------------------------------- */

static bool reads(uint32_t op, uint32_t s)
{
    for (uint32_t i = graph.in_at[op]; i < graph.in_at[op + 1]; i++)
        if (graph.in[i] == s)
            return true;
    return false;
}

static bool makes(uint32_t op, uint32_t s)
{
    for (uint32_t i = graph.out_at[op]; i < graph.out_at[op + 1]; i++)
        if (graph.out[i] == s)
            return true;
    return false;
}

static bool is_expensive(uint32_t op)
{
    uint32_t n = 0;
    if (graph.op_kind[op] == MS_KIND_CONVOLUTION)
        return true;
    for (uint32_t s = graph.n_persistent; s < graph.n_storages; s++)
        n += reads(op, s);
    return graph.op_kind[op] == MS_KIND_ADD && n > 1;
}

/* The unit whose backward is op, or MS_NONE. */
static uint32_t backward_of(uint32_t op)
{
    for (uint32_t u = 0; u < graph.n_units; u++)
        if (op >= graph.backward_at[u + 1] && op < graph.backward_at[u])
            return u;
    return MS_NONE;
}

static bool backward_reads(uint32_t unit, uint32_t s)
{
    for (uint32_t op = 0; op < graph.n_ops; op++)
        if (backward_of(op) == unit && reads(op, s))
            return true;
    return false;
}

static bool backward_makes(uint32_t unit, uint32_t s)
{
    for (uint32_t op = 0; op < graph.n_ops; op++)
        if (backward_of(op) == unit && makes(op, s))
            return true;
    return false;
}

static bool is_saved(uint32_t s)
{
    return graph.storage_saved_end[s] != MS_NONE;
}

static void find_marks(void)
{
    uint32_t until = graph.forward_at[graph.loss_unit];
    memset(checkpoint, 0, sizeof checkpoint);
    memset(again, 0, sizeof again);
    memset(layer, 0, sizeof layer);
    for (uint32_t op = 0; op < until; op++)
        for (uint32_t s = 0; is_expensive(op) && s < graph.n_storages; s++) {
            layer[graph.op_unit[op]] = true;
            checkpoint[s] |= makes(op, s);
            if (graph.out_at[op] == graph.out_at[op + 1])
                checkpoint[s] |= graph.in[graph.in_at[op]] == s;
        }
    for (uint32_t s = graph.n_persistent; s < graph.n_storages; s++)
        again[s] = is_saved(s) && !checkpoint[s] &&
                   graph.storage_maker[s] < until &&
                   graph.storage_category[s] == MS_ACTIVATIONS;
    for (uint32_t i = 0; i < graph.n_kept; i++)
        again[graph.kept[i]] = false;
}

/* Data and workspace of a unit's backward; beside: what counts already. */
static uint64_t backward_bytes(uint32_t unit, const bool *beside)
{
    uint64_t bytes = 0;
    for (uint32_t s = graph.n_persistent; s < graph.n_storages; s++)
        if (beside[s] || (graph.storage_category[s] != MS_BECOMES_GRAD &&
                          (backward_reads(unit, s) || backward_makes(unit, s))))
            bytes += graph.storage_bytes[s];
    return bytes;
}

/* Is it read by the backward of a unit of [first, last]? */
static bool is_read(uint32_t s, uint32_t first, uint32_t last)
{
    for (uint32_t u = first; u <= last; u++)
        if (again[s] && backward_reads(u, s))
            return true;
    return false;
}

/* Does the segment, run again once, hold no more than the largest backward? */
static bool is_small(uint32_t first, uint32_t last)
{
    bool beside[MOST_STORAGES] = {false};
    uint64_t largest = 0, most = 0;
    for (uint32_t u = 0; u < graph.n_units; u++) {
        uint64_t bytes = backward_bytes(u, beside);
        largest = bytes > largest ? bytes : largest;
    }
    for (uint32_t u = first; u <= last; u++) {
        for (uint32_t s = 0; s < graph.n_storages; s++)
            beside[s] = is_read(s, first, u);
        uint64_t bytes = backward_bytes(u, beside);
        most = bytes > most ? bytes : most;
    }
    return most <= largest;
}

/* What storage s is made from is there until the backward of the unit. */
static void need_sources(uint32_t s, uint32_t unit)
{
    for (uint32_t from = graph.n_persistent; from < graph.n_storages; from++) {
        if (!reads(graph.storage_maker[s], from))
            continue;
        if (checkpoint[from] || (is_saved(from) && !again[from]))
            need[from] = unit < need[from] ? unit : need[from];
        else
            need_sources(from, unit);
    }
}

static void find_segment(uint32_t first, uint32_t last, bool once)
{
    for (uint32_t u = first; u <= last; u++)
        for (uint32_t s = graph.n_persistent; s < graph.n_storages; s++) {
            bool whole = once && u == last;
            made[u][s] = (whole || !once) && is_read(s, whole ? first : u, u);
            dropped[u][s] = is_read(s, u, u) &&
                            !(once && u > first && is_read(s, first, u - 1));
            if (made[u][s])
                need_sources(s, u);
        }
}

/* Segments end with a unit that makes a checkpoint. */
static void find_sets(const char *way)
{
    find_marks();
    memset(need, 0xff, sizeof need);
    memset(made, 0, sizeof made);
    memset(dropped, 0, sizeof dropped);
    for (uint32_t u = 0, first = 0; u < graph.n_units; u++) {
        if (!layer[u] && u + 1 < graph.n_units)
            continue;
        find_segment(first, u,
                     strcmp(way, "speed") == 0 ||
                         (strcmp(way, "cost") == 0 && is_small(first, u)));
        first = u + 1;
    }
}

/* ---- the program --------------------------------------------------------- */

static void check_set(const ms_program *program, uint32_t set, const bool *want,
                      const char *what)
{
    uint32_t count[MOST_STORAGES] = {0};
    for (uint32_t i = 0; set < program->n_sets &&
                         i + program->set_at[set] < program->set_at[set + 1];
         i++)
        count[program->set_item[i + program->set_at[set]]]++;
    for (uint32_t s = 0; s < graph.n_storages; s++)
        ck_assert_msg(count[s] == want[s],
                      "seed %" PRIu64 ": %s: s%u is there %u times", laws_seed,
                      what, s, count[s]);
}

static void check_forward(const ms_program *program, const ms_call *call)
{
    bool kept[MOST_STORAGES] = {false}, held[MOST_STORAGES] = {false};
    bool all = true;
    for (uint32_t op = graph.forward_at[call->unit];
         op < graph.forward_at[call->unit + 1]; op++)
        for (uint32_t s = 0; s < graph.n_storages; s++)
            if (makes(op, s)) {
                all &= !again[s];
                kept[s] = is_saved(s) && !again[s];
                held[s] = need[s] != MS_NONE;
            }
    ck_assert_int_eq(call->run.keep == MS_ALL, all);
    if (!all)
        check_set(program, call->run.keep, kept, "kept");
    check_set(program, call->set, held, "held");
}

/* The call at i is a unit's backward. */
static void check_backward(const ms_program *program, uint32_t i)
{
    static const bool nothing[MOST_STORAGES];
    bool done[MOST_STORAGES] = {false};
    const ms_call *call = &program->calls[i];
    uint32_t u = call->unit, behind = i + 1, held = MS_NOTHING;
    if (i > 0 && call[-1].verb == MS_HOLD) {
        ck_assert(call[-1].hold.again);
        held = call[-1].set;
    }
    check_set(program, held, made[u], "made");
    for (uint32_t s = 0; s < graph.n_storages; s++)
        done[s] = need[s] == u;
    const bool *want[] = {dropped[u], done};
    for (int k = 0; k < 2; k++) {
        if (memcmp(want[k], nothing, sizeof nothing) == 0)
            continue;
        ck_assert_uint_lt(behind, program->n_calls);
        ck_assert_int_eq(program->calls[behind].verb, MS_DROP_SET);
        check_set(program, program->calls[behind++].set, want[k], "dropped");
    }
    if (behind < program->n_calls)
        ck_assert_int_ne(program->calls[behind].verb, MS_DROP_SET);
}

static uint32_t check_program(const char *way)
{
    char policy[128];
    uint32_t n = 0;
    snprintf(policy, sizeof policy,
             "swap:superneurons,min=2,recompute=%s,budget=1GB", way);
    laws_outcome out = laws_run_policy(&graph, policy, 25, 1, &arena, &fault);
    ck_assert_msg(out.err == MS_OK, "%s", fault.what);
    find_sets(way);
    for (uint32_t i = 0; i < out.program.n_calls; i++) {
        const ms_call *call = &out.program.calls[i];
        if (call->verb == MS_RUN && call->run.pass == MS_FORWARD)
            check_forward(&out.program, call);
        else if (call->verb == MS_RUN && call->run.pass == MS_GRAD_INPUT)
            check_backward(&out.program, i);
        n += call->verb == MS_HOLD;
    }
    return n;
}

/* Steps with skips; what ops save is not always what users call an
 * activation. */
static void build_random(uint64_t seed)
{
    laws_random random = {seed};
    laws_seed = seed;
    laws_graph(&random, &arena, &graph);
    for (uint32_t op = 0; op < graph.forward_at[graph.n_units]; op++) {
        if (laws_chance(&random, 10))
            graph.op_kind[op] = MS_KIND_CONVOLUTION;
        else if (laws_chance(&random, 30))
            graph.op_kind[op] = MS_KIND_ADD;
    }
    for (uint32_t s = graph.n_persistent; s < graph.n_storages; s++)
        if (is_saved(s) && laws_chance(&random, 10))
            graph.storage_category[s] = MS_TEMPORARIES;
}

START_TEST(sets_of_random_steps)
{
    static const char *const ways[] = {"cost", "speed", "memory"};
    uint32_t n = 0;
    for (uint64_t seed = 1; seed <= 150; seed++) {
        build_random(seed);
        n += check_program(ways[_i]);
        ms_arena_reset(&arena);
    }
    ck_assert_uint_gt(n, 150);
}
END_TEST

Suite *suite_neuronsets(void)
{
    Suite *suite = suite_create("neuronsets");
    TCase *tcase = tcase_create("neuronsets");
    tcase_add_checked_fixture(tcase, NULL, teardown);
    tcase_set_timeout(tcase, 60);
    tcase_add_loop_test(tcase, sets_of_random_steps, 0, 3);
    suite_add_tcase(suite, tcase);
    return suite;
}
