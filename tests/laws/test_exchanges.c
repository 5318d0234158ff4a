/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Messages that are exchanged together, when turns are over: of interleaved
 * orders the exchanges are those that Megatron-LM's loop makes, call by call;
 * of any order a turn begins when the exchange before it has ended at both ends
 * of all its messages, by a naive clock.  Of 1F1B the host waits as often as a
 * rank exchanges. */
#include "policies/schedule/orders.h"
#include "sim/graph.h"
#include "sim/machine.h"
#include "sim/plan.h"
#include "sim/program.h"
#include "sim/timeline.h"
#include "tests/inlined.h"
#include "tests/laws/asserts.h"
#include "tests/laws/turns.h"
#include "tests/tests.h"
#include "tools/job/settings.h"

#include <stdio.h>
#include <string.h>

#define N_TRIALS 150u
#define MOST_RANKS 6u
#define MOST_MESSAGES 64u /* of an exchange */

static ms_arena keep_arena, arena;
static ms_fault fault;

/* One linear layer per stage. */
static const char chain[] =
    "{\"memsim\": 1, \"name\": \"chain\", \"input\": {\"tokens\": true}, "
    "\"layers\": [{\"type\": \"embedding\", \"vocab\": 16, \"dim\": 8}, "
    "{\"repeat\": %u, \"name\": \"h\", \"layers\": [{\"type\": \"linear\", "
    "\"out\": 8, \"bias\": false}]}, {\"type\": \"mean\"}]}";

/* Messages that a rank has in a row. */
typedef struct group {
    uint32_t n;
    uint64_t *key;    /* who makes it (key_of) * 2, + 1: it is received */
    uint32_t turns;   /* of the rank, before it */
    uint64_t come_ns; /* by the naive clock: when the rank has come to it */
} group;

typedef struct groups {
    group *all;
    uint32_t n;
} groups;

static ms_schedule schedule_of(ms_order order, ms_orders_size size)
{
    uint32_t n = size.ranks * size.chunks;
    ms_stage *stages = ms_arena_take(&arena, n, sizeof *stages);
    for (uint32_t k = 0; k < n; k++)
        stages[k].rank = ms_orders_rank(order, &size, k);
    ms_schedule schedule = {
        .n_stages = n,
        .stages = stages,
        .n_ranks = (uint16_t)size.ranks,
        .n_micro_batches = size.micro_batches,
        .receives = MS_RECEIVE_TOGETHER,
        .turn_at =
            ms_arena_take(&arena, size.ranks + 1, sizeof *schedule.turn_at),
        .turns = ms_arena_take(&arena, ms_orders_room(&size),
                               sizeof *schedule.turns)};
    MUST(ms_orders_write(order, &size, &arena, &schedule, &fault));
    return schedule;
}

/* Only products take time. */
static ms_graph graph_of(ms_schedule *schedule, const uint64_t *ns)
{
    char json[512];
    ms_job job;
    ms_result result;
    uint32_t block = 0, n = schedule->n_stages;
    ms_stage *stages = ms_arena_take(&arena, n, sizeof *stages);
    memcpy(stages, schedule->stages, n * sizeof *stages);
    snprintf(json, sizeof json, chain, n);
    ms_settings_init(&job);
    MUST(inlined_lower(json, "none", &job, &keep_arena, &result, &fault));
    ms_graph graph = *result.graph;
    for (uint32_t op = 0; op < graph.n_ops; op++)
        graph.op_ns[op] =
            graph.op_flags[op] & MS_OP_MATRIX ? ns[graph.op_pass[op]] : 0;
    for (uint32_t u = 0; u < graph.n_units; u++) {
        uint32_t own = graph.unit_block[u];
        block = own == MS_NONE ? block : own;
        if (u > 0 && stages[block].last == 0)
            stages[block].first = block > 0 ? u : 0;
        stages[block].last = u;
    }
    schedule->stages = stages;
    return graph;
}

static uint64_t key_of(bool back, uint32_t stage, uint32_t micro_batch)
{
    return ((uint64_t)micro_batch * 64 + stage) * 2 + back;
}

/* Of the message of a call: the stage that has made what is in it. */
static uint64_t key_of_call(const ms_graph *graph, const ms_schedule *schedule,
                            const ms_program *program, const ms_call *call)
{
    uint32_t s = program->set_item[program->set_at[call->set]], stage = 0;
    uint32_t maker = graph->storage_maker[s];
    while (graph->op_unit[maker] > schedule->stages[stage].last)
        stage++;
    return key_of(graph->op_pass[maker] != MS_FORWARD, stage,
                  call->micro_batch);
}

static void add(groups *to, uint64_t key, bool receives)
{
    group *it = &to->all[to->n - 1];
    it->key[it->n++] = key * 2 + receives;
}

static void open_group(groups *of, uint32_t turns)
{
    of->all[of->n++] =
        (group){.key = ms_arena_take(&arena, MOST_MESSAGES, sizeof(uint64_t)),
                .turns = turns};
}

static groups *take_groups(const ms_schedule *schedule)
{
    groups *all = ms_arena_take(&arena, schedule->n_ranks, sizeof *all);
    uint32_t n = schedule->n_stages * schedule->n_micro_batches;
    for (uint32_t r = 0; r < schedule->n_ranks; r++)
        all[r].all =
            ms_arena_take(&arena, 12 * (size_t)n + 2, sizeof *all[r].all);
    return all;
}

static void sort(group *it)
{
    for (uint32_t i = 0; i < it->n; i++)
        for (uint32_t k = i + 1; k < it->n; k++)
            if (it->key[k] < it->key[i]) {
                uint64_t key = it->key[i];
                it->key[i] = it->key[k];
                it->key[k] = key;
            }
}

/* What ranks exchange before, between and behind their turns. */
static groups *groups_of(const ms_graph *graph, const ms_schedule *schedule,
                         const ms_program *program)
{
    groups *all = take_groups(schedule);
    uint32_t *turns = ms_arena_take(&arena, schedule->n_ranks, sizeof *turns);
    ms_turn *last = ms_arena_take(&arena, schedule->n_ranks, sizeof *last);
    for (uint32_t i = 0; i < program->n_calls; i++) {
        const ms_call *call = &program->calls[i];
        groups *of = &all[call->rank];
        uint32_t *n = &turns[call->rank];
        if (call->verb == MS_RUN) {
            ms_turn turn = ms_schedule_turn_of(program, call);
            ms_turn before = last[call->rank];
            *n += *n == 0 || turn.stage != before.stage ||
                  turn.kind != before.kind ||
                  turn.micro_batch != before.micro_batch;
            last[call->rank] = turn;
        }
        if (call->verb != MS_SEND_SET && call->verb != MS_RECV_SET)
            continue;
        if (of->n == 0 || of->all[of->n - 1].turns < *n)
            open_group(of, *n);
        add(of, key_of_call(graph, schedule, program, call),
            call->verb == MS_RECV_SET);
    }
    return all;
}

/* ---- Megatron-LM's loop -------------------------------------------------- */

/* NVIDIA/Megatron-LM d98e8a64, megatron/core/pipeline_parallel/schedules.py,
 * forward_backward_pipelining_with_interleaving, without overlap_p2p_comm. */
typedef struct megatron {
    uint32_t p, v, m, group, rank;
    groups *to;
    uint64_t *sent[2]; /* per rank and way: what it has sent, in order */
    uint32_t *n_sent[2], *n_received[2];
} megatron;

static uint32_t warm_of(const megatron *g)
{
    uint32_t warm = (g->v - 1) * g->group + 2 * (g->p - 1 - g->rank);
    return warm < g->m * g->v ? warm : g->m * g->v;
}

static void kth(const megatron *g, uint32_t k, bool back, uint32_t *micro_batch,
                uint32_t *chunk)
{
    uint32_t first = 0, size = g->group < g->m ? g->group : g->m;
    while (k >= size * g->v) {
        k -= size * g->v;
        first += size;
        size = g->m - first < g->group ? g->m - first : g->group;
    }
    *micro_batch = first + k % size;
    *chunk = back ? g->v - 1 - k / size : k / size;
}

static void sends(megatron *g, uint32_t k, bool back)
{
    uint32_t micro_batch, chunk, r = g->rank;
    kth(g, k, back, &micro_batch, &chunk);
    uint32_t stage = chunk * g->p + r;
    if (back ? stage == 0 : stage == g->p * g->v - 1)
        return;
    uint64_t key = key_of(back, stage, micro_batch);
    g->sent[back][r * g->m * g->v + g->n_sent[back][r]++] = key;
    add(&g->to[r], key, false);
}

/* recv_tensor_from_previous_stage; which message that is, the sender says. */
static bool comes(const megatron *g, uint32_t k, bool back)
{
    uint32_t micro_batch, chunk, last = back ? 0 : g->v - 1;
    if (g->rank != (back ? g->p - 1 : 0))
        return true;
    if (k < g->p - 1)
        return false;
    kth(g, k - (g->p - 1), back, &micro_batch, &chunk);
    return chunk != last;
}

static void receives(megatron *g, bool back, bool any)
{
    if (any)
        add(&g->to[g->rank], g->n_received[back][g->rank]++ * 2 + back, true);
}

static void run_rank(megatron *g)
{
    groups *to = &g->to[g->rank];
    uint32_t warm = warm_of(g), total = g->m * g->v;
    bool all_warm = warm == total;
    open_group(to, 0);
    receives(g, false, g->rank > 0);
    for (uint32_t k = 0; k < warm; k++) {
        bool last = k + 1 == warm && !all_warm;
        open_group(to, 0);
        sends(g, k, false);
        receives(g, false, k + 1 < total && comes(g, k, false));
        receives(g, true, last && g->rank < g->p - 1);
    }
    for (uint32_t k = 0; k < total - warm; k++) {
        open_group(to, 0);
        sends(g, k + warm, false);
        sends(g, k, true);
        receives(g, false, k + 1 < total - warm && comes(g, k + warm, false));
        receives(g, true, comes(g, k, true));
    }
    receives(g, true, all_warm && g->rank < g->p - 1);
    for (uint32_t k = total - warm; k < total; k++) {
        open_group(to, 0);
        sends(g, k, true);
        receives(g, true, k + 1 < total && comes(g, k, true));
    }
}

/* The n-th message that comes from a rank is the n-th that it has sent. */
static void find_keys(megatron *g)
{
    for (uint32_t r = 0; r < g->p; r++)
        for (uint32_t i = 0; i < g->to[r].n; i++)
            for (uint32_t k = 0; k < g->to[r].all[i].n; k++) {
                uint64_t *key = &g->to[r].all[i].key[k], code = *key >> 1;
                uint32_t back = code & 1;
                uint32_t from = back ? (r + 1) % g->p : (r + g->p - 1) % g->p;
                if (*key & 1)
                    *key =
                        g->sent[back][from * g->m * g->v + (code >> 1)] * 2 + 1;
            }
}

static groups *loop_of(const ms_schedule *schedule, ms_orders_size size)
{
    megatron g = {.p = size.ranks,
                  .v = size.chunks,
                  .m = size.micro_batches,
                  .group = size.group > 0 ? size.group : size.ranks,
                  .to = take_groups(schedule)};
    for (int back = 0; back < 2; back++) {
        g.sent[back] = ms_arena_take(&arena, g.p * g.m * (size_t)g.v,
                                     sizeof *g.sent[back]);
        g.n_sent[back] = ms_arena_take(&arena, g.p, sizeof(uint32_t));
        g.n_received[back] = ms_arena_take(&arena, g.p, sizeof(uint32_t));
    }
    for (g.rank = 0; g.rank < g.p; g.rank++)
        run_rank(&g);
    find_keys(&g);
    return g.to;
}

/* Those of nothing do not count. */
static group *next_group(groups *of, uint32_t *i)
{
    while (*i < of->n && of->all[*i].n == 0)
        (*i)++;
    return *i < of->n ? &of->all[(*i)++] : NULL;
}

static void expect_groups(groups *got, groups *truth, uint32_t ranks)
{
    for (uint32_t r = 0; r < ranks; r++)
        for (uint32_t a = 0, b = 0, n = 0;; n++) {
            group *mine = next_group(&got[r], &a);
            group *its = next_group(&truth[r], &b);
            if (mine == NULL && its == NULL)
                break;
            HOLDS(mine != NULL && its != NULL && mine->n == its->n,
                  "exchange %u of rank %u: %u messages, not %u", n, r,
                  mine ? mine->n : 0, its ? its->n : 0);
            sort(mine);
            sort(its);
            for (uint32_t k = 0; k < mine->n; k++)
                HOLDS(mine->key[k] == its->key[k],
                      "exchange %u of rank %u, message %u", n, r, k);
        }
}

static ms_program program_of(const ms_graph *graph, const ms_schedule *schedule)
{
    ms_keep keep;
    ms_program program;
    MUST(ms_program_keep_all(graph, &arena, &keep, &fault));
    MUST(ms_schedule_check(graph, schedule, &fault));
    MUST(ms_defaultprogram(graph, &keep, schedule, &arena, &program, &fault));
    MUST(ms_check_program(graph, &program, &fault));
    return program;
}

START_TEST(interleaved_exchanges_as_megatron)
{
    const uint64_t ns[MS_N_PASSES] = {0};
    for (uint32_t trial = 0; trial < N_TRIALS; trial++) {
        laws_random random = {laws_seed = 97000 + trial};
        uint32_t p = 2 + laws_below(&random, MOST_RANKS - 1);
        uint32_t many = p + laws_below(&random, 3), n = 1;
        n += laws_below(&random, 3);
        uint32_t left = laws_chance(&random, 50) ? p : 0;
        ms_orders_size size = {p, 2 + laws_below(&random, 2),
                               many * n + (left < many ? left : 0), many};
        ms_schedule schedule = schedule_of(MS_ORDER_INTERLEAVED, size);
        ms_graph graph = graph_of(&schedule, ns);
        ms_program program = program_of(&graph, &schedule);
        expect_groups(groups_of(&graph, &schedule, &program),
                      loop_of(&schedule, size), p);
        ms_arena_reset(&keep_arena);
        ms_arena_reset(&arena);
    }
    ms_arena_free(&keep_arena);
    ms_arena_free(&arena);
}
END_TEST

/* ---- the naive clock ----------------------------------------------------- */

typedef struct clock_state {
    const ms_schedule *schedule;
    groups *groups;
    const uint64_t *ns; /* by pass */
    uint64_t message_ns;
    uint64_t *start; /* per stage, micro-batch and kind, + 1 */
} clock_state;

static uint64_t *start_of(const clock_state *c, uint32_t stage, uint32_t m,
                          uint32_t kind)
{
    size_t at = (size_t)stage * c->schedule->n_micro_batches + m;
    return &c->start[at * MS_N_TURNS + kind];
}

static uint64_t length_of(const clock_state *c, const ms_turn *turn)
{
    const uint64_t of[MS_N_TURNS] = {
        c->ns[MS_FORWARD], c->ns[MS_GRAD_INPUT] + c->ns[MS_GRAD_WEIGHT],
        c->ns[MS_GRAD_INPUT], c->ns[MS_GRAD_WEIGHT]};
    return of[turn->kind];
}

/* When the other end of a message has come to its exchange, + 1; 0: it has
 * not. */
static uint64_t other_end(const clock_state *c, uint64_t key)
{
    for (uint32_t r = 0; r < c->schedule->n_ranks; r++)
        for (uint32_t i = 0; i < c->groups[r].n; i++)
            for (uint32_t k = 0; k < c->groups[r].all[i].n; k++)
                if (c->groups[r].all[i].key[k] == (key ^ 1))
                    return c->groups[r].all[i].come_ns;
    ck_abort_msg("a message of one end");
}

/* When the exchange is over, + 1; 0: nobody knows yet. */
static uint64_t end_of(const clock_state *c, const group *it)
{
    uint64_t end = it->come_ns;
    for (uint32_t k = 0; k < it->n; k++) {
        uint64_t other = other_end(c, it->key[k]);
        uint64_t first = other > it->come_ns ? other : it->come_ns;
        if (other == 0)
            return 0;
        end = first + c->message_ns > end ? first + c->message_ns : end;
    }
    return end;
}

static void clock_naively(const clock_state *c)
{
    const ms_schedule *s = c->schedule;
    uint32_t left = s->turn_at[s->n_ranks];
    uint32_t *next = ms_arena_take(&arena, s->n_ranks, sizeof *next);
    uint32_t *group_at = ms_arena_take(&arena, s->n_ranks, sizeof *group_at);
    uint64_t *now = ms_arena_take(&arena, s->n_ranks, sizeof *now);
    for (uint32_t r = 0; r < s->n_ranks; r++) {
        next[r] = s->turn_at[r];
        now[r] = 1;
    }
    for (uint32_t r = 0; left > 0; r = (r + 1) % s->n_ranks) {
        group *it = &c->groups[r].all[group_at[r]];
        bool any = group_at[r] < c->groups[r].n;
        if (any && it->turns == next[r] - s->turn_at[r]) {
            it->come_ns = now[r];
            uint64_t end = end_of(c, it);
            now[r] = end > 0 ? end : now[r];
            group_at[r] += end > 0;
        } else if (next[r] < s->turn_at[r + 1]) {
            const ms_turn *turn = &s->turns[next[r]++];
            *start_of(c, turn->stage, turn->micro_batch, turn->kind) = now[r];
            now[r] += length_of(c, turn);
            left--;
        }
    }
}

/* Each op of the plan that takes time is in the turn that the clock says, whose
 * first begins with it. */
static void expect_starts(const clock_state *c, const ms_graph *graph,
                          const ms_plan *plan, const ms_timeline *line,
                          uint64_t *first)
{
    const ms_schedule *s = c->schedule;
    size_t n = (size_t)s->n_stages * s->n_micro_batches * MS_N_TURNS;
    for (uint32_t i = 0; i < plan->n_ops; i++) {
        const ms_plan_op *op = &plan->op[i];
        if (op->ns == 0 || op->of == MS_NONE ||
            graph->op_unit[op->of] == MS_NONE)
            continue;
        uint32_t stage = 0, kind = op->pass == MS_FORWARD ? MS_TURN_FORWARD
                                   : op->pass == MS_GRAD_INPUT
                                       ? MS_TURN_GRAD_INPUT
                                       : MS_TURN_GRAD_WEIGHT;
        while (graph->op_unit[op->of] > s->stages[stage].last)
            stage++;
        if (kind != MS_TURN_FORWARD &&
            *start_of(c, stage, op->micro_batch, MS_TURN_BACKWARD) > 0)
            kind = MS_TURN_BACKWARD;
        uint64_t *own = start_of(c, stage, op->micro_batch, kind);
        uint64_t *got = &first[own - c->start], start = line->start_ns[i] + 1;
        *got = *got == 0 || start < *got ? start : *got;
    }
    for (size_t i = 0; i < n; i++)
        HOLDS(first[i] == c->start[i],
              "%c of stage %zu, micro-batch %zu begins at %llu, not %llu",
              ms_schedule_letters[i % MS_N_TURNS],
              i / MS_N_TURNS / s->n_micro_batches,
              i / MS_N_TURNS % s->n_micro_batches, (unsigned long long)first[i],
              (unsigned long long)c->start[i]);
}

static void check_times(laws_random *random, ms_order order,
                        ms_orders_size size)
{
    uint64_t ns[MS_N_PASSES] = {[MS_FORWARD] = 1 + laws_below(random, 9),
                                [MS_GRAD_INPUT] = 1 + laws_below(random, 9),
                                [MS_GRAD_WEIGHT] = 1 + laws_below(random, 9)};
    ms_schedule schedule = schedule_of(order, size);
    ms_graph graph = graph_of(&schedule, ns);
    ms_program program = program_of(&graph, &schedule);
    size_t n = (size_t)schedule.n_stages * size.micro_batches * MS_N_TURNS;
    uint32_t v = ms_orders_rank(order, &size, size.ranks) != 0;
    bool twice = size.ranks == 2 || v || order == MS_ORDER_DUALPIPE;
    clock_state c = {&schedule, groups_of(&graph, &schedule, &program), ns,
                     twice ? 0 : laws_below(random, 4),
                     ms_arena_take(&arena, n, sizeof(uint64_t))};
    ms_machine machine = {0};
    ms_expand_opts opts = {.groups = LAWS_GROUPS};
    ms_plan plan;
    ms_timeline line;
    MUST(ms_expand(&graph, &program, &opts, &arena, &plan, &fault));
    for (uint32_t i = 0; i < plan.n_ops; i++)
        if (plan.op[i].stream != MS_STREAM_COMPUTE)
            plan.op[i].ns = c.message_ns;
    MUST(ms_replay(&plan, &machine, &arena, &line, &fault));
    clock_naively(&c);
    expect_starts(&c, &graph, &plan, &line,
                  ms_arena_take(&arena, n, sizeof(uint64_t)));
}

/* Two messages between the same two ranks follow each other: where there may
 * be, they take no time. */
START_TEST(turns_wait_for_exchanges)
{
    for (uint32_t trial = 0; trial < N_TRIALS; trial++) {
        laws_random random = {laws_seed = 98000 + trial};
        ms_order order = (ms_order)(trial % MS_N_ORDERS);
        ms_orders_size size = {.ranks = 2 + laws_below(&random, 4)};
        bool loops = order == MS_ORDER_INTERLEAVED ||
                     order == MS_ORDER_LOOPED_BFS || order == MS_ORDER_ZB_H1;
        if (order == MS_ORDER_DUALPIPE)
            size.ranks += size.ranks % 2;
        size.chunks =
            ms_orders_chunks(order, loops ? 1 + laws_below(&random, 3) : 0);
        size.micro_batches = size.ranks * (2 + laws_below(&random, 2));
        check_times(&random, order, size);
        ms_arena_reset(&keep_arena);
        ms_arena_reset(&arena);
    }
    ms_arena_free(&keep_arena);
    ms_arena_free(&arena);
}
END_TEST

/* ---- hosts that wait ----------------------------------------------------- */

/* Exchanges of a rank of 1F1B: one before its first turn, if it is not the
 * first rank, and one behind each turn that sends, or whose next turn reads. */
static uint32_t exchanges_of(const ms_schedule *schedule, uint32_t rank)
{
    uint32_t n = rank > 0, last = schedule->n_ranks - 1u;
    uint32_t end = schedule->turn_at[rank + 1];
    for (uint32_t i = schedule->turn_at[rank]; i < end; i++) {
        bool back = schedule->turns[i].kind == MS_TURN_BACKWARD;
        bool next = i + 1 < end, then_back = false;
        if (next)
            then_back = schedule->turns[i + 1].kind == MS_TURN_BACKWARD;
        bool sends = back ? rank > 0 : rank < last;
        bool reads = next && (then_back ? rank < last : rank > 0);
        n += sends || reads;
    }
    return n;
}

START_TEST(hosts_wait_for_exchanges)
{
    const uint64_t ns[MS_N_PASSES] = {0};
    for (uint32_t trial = 0; trial < N_TRIALS; trial++) {
        laws_random random = {laws_seed = 99000 + trial};
        ms_orders_size size = {.ranks = 2 + laws_below(&random, MOST_RANKS - 1),
                               .chunks = 1};
        size.micro_batches = 1 + laws_below(&random, 9);
        ms_schedule schedule = schedule_of(MS_ORDER_1F1B, size);
        schedule.receives = MS_RECEIVE_NEXT;
        schedule.waits = true;
        ms_graph graph = graph_of(&schedule, ns);
        ms_program program = program_of(&graph, &schedule);
        uint32_t syncs[MOST_RANKS] = {0};
        for (uint32_t i = 0; i < program.n_calls; i++)
            syncs[program.calls[i].rank] += program.calls[i].verb == MS_SYNC;
        for (uint32_t r = 0; r < size.ranks; r++)
            ck_assert_uint_eq(syncs[r], exchanges_of(&schedule, r));
        ms_arena_reset(&keep_arena);
        ms_arena_reset(&arena);
    }
    ms_arena_free(&keep_arena);
    ms_arena_free(&arena);
}
END_TEST

Suite *suite_exchanges(void)
{
    Suite *suite = suite_create("exchanges");
    TCase *tcase = tcase_create("exchanges");
    tcase_set_timeout(tcase, 120);
    tcase_add_test(tcase, interleaved_exchanges_as_megatron);
    tcase_add_test(tcase, turns_wait_for_exchanges);
    tcase_add_test(tcase, hosts_wait_for_exchanges);
    suite_add_tcase(suite, tcase);
    return suite;
}
