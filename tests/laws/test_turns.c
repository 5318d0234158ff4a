/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Turns against a naive clock (a table of ends and two loops): in every
 * published order each begins and ends when the clock says, whatever queues its
 * messages are in, and ranks idle as
 * long as the closed forms; in orders of no rule none begins before its input
 * has come, each message is sent and received once, and a rank's time is its
 * work and what it waits. */
#include "policies/schedule/orders.h"
#include "sim/graph.h"
#include "sim/machine.h"
#include "sim/plan.h"
#include "sim/program.h"
#include "sim/stage.h"
#include "sim/timeline.h"
#include "tests/inlined.h"
#include "tests/laws/asserts.h"
#include "tests/laws/turns.h"
#include "tests/tests.h"
#include "tools/job/settings.h"

#include <stdio.h>
#include <string.h>

#define N_TRIALS 120u
#define MOST_RANKS 6u

static ms_arena keep_arena, arena;
static ms_fault fault;

/* One linear layer per stage. */
static const char chain[] =
    "{\"memsim\": 1, \"name\": \"chain\", \"input\": {\"tokens\": true}, "
    "\"layers\": [{\"type\": \"embedding\", \"vocab\": 16, \"dim\": 8}, "
    "{\"repeat\": %u, \"name\": \"h\", \"layers\": [{\"type\": \"linear\", "
    "\"out\": 8, \"bias\": false}]}, {\"type\": \"mean\"}]}";

typedef struct span {
    uint64_t start, end;
} span;

typedef struct pipeline {
    ms_graph graph;
    ms_schedule schedule;
    uint64_t ns[MS_N_TURNS]; /* of a stage's turn */
    span *truth, *got; /* per stage, micro-batch and kind; end 0: not yet */
    uint64_t message_ns;
    uint64_t makespan; /* by the naive clock */
} pipeline;

static span *at(const pipeline *p, span *of, uint32_t k, uint32_t m,
                uint32_t kind)
{
    return &of[(k * (size_t)p->schedule.n_micro_batches + m) * MS_N_TURNS +
               kind];
}

/* ---- the naive clock ----------------------------------------------------- */

/* When the gradient that a stage makes is there; 0: not yet. */
static uint64_t back_end(const pipeline *p, span *of, uint32_t k, uint32_t m)
{
    uint64_t whole = at(p, of, k, m, MS_TURN_BACKWARD)->end;
    return whole > 0 ? whole : at(p, of, k, m, MS_TURN_GRAD_INPUT)->end;
}

/* When all that the turn reads is there; 0: something is not (all times are
 * from 1 up). */
static uint64_t ready(const pipeline *p, span *of, const ms_turn *t)
{
    uint32_t k = t->stage, m = t->micro_batch;
    uint64_t forward = at(p, of, k, m, MS_TURN_FORWARD)->end, next;
    switch (t->kind) {
    case MS_TURN_FORWARD:
        return k == 0 ? 1 : at(p, of, k - 1, m, MS_TURN_FORWARD)->end;
    case MS_TURN_GRAD_WEIGHT:
        return at(p, of, k, m, MS_TURN_GRAD_INPUT)->end;
    default:
        if (k + 1 == p->schedule.n_stages)
            return forward;
        next = back_end(p, of, k + 1, m);
        return next == 0 || forward == 0 ? 0 : next > forward ? next : forward;
    }
}

static void clock_naively(pipeline *p)
{
    const ms_schedule *s = &p->schedule;
    uint32_t *next = ms_arena_take(&arena, s->n_ranks, sizeof *next);
    uint64_t *busy = ms_arena_take(&arena, s->n_ranks, sizeof *busy);
    uint32_t left = s->turn_at[s->n_ranks];
    for (uint32_t r = 0; r < s->n_ranks; r++) {
        next[r] = s->turn_at[r];
        busy[r] = 1;
    }
    for (uint32_t r = 0; left > 0; r = (r + 1) % s->n_ranks) {
        if (next[r] == s->turn_at[r + 1])
            continue;
        const ms_turn *t = &s->turns[next[r]];
        uint32_t n = t->pairs ? 2 : 1;
        uint64_t start = ready(p, p->truth, t);
        uint64_t other = n == 2 ? ready(p, p->truth, t + 1) : start;
        if (start == 0 || other == 0)
            continue;
        start = other > start ? other : start;
        start = busy[r] > start ? busy[r] : start;
        uint64_t end = start + p->ns[t->kind] + (n == 2 ? p->ns[t[1].kind] : 0);
        for (uint32_t i = 0; i < n; i++)
            *at(p, p->truth, t[i].stage, t[i].micro_batch, t[i].kind) =
                (span){start, end};
        busy[r] = end;
        p->makespan = end - 1 > p->makespan ? end - 1 : p->makespan;
        next[r] += n;
        left -= n;
    }
}

/* ---- the naive clock of messages in line --------------------------------- */

/* Per rank, until when it computes, and sends or receives; and per stage,
 * micro-batch and way (1: back) when what the turn reads is there. */
typedef struct queues {
    uint64_t *busy, *line, *there;
} queues;

static uint64_t later(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static uint64_t *there(const pipeline *p, const queues *q, uint32_t k,
                       uint32_t m, bool back)
{
    return &q->there[(k * (size_t)p->schedule.n_micro_batches + m) * 2 + back];
}

/* As ready(), of what has come. */
static uint64_t come(const pipeline *p, const queues *q, const ms_turn *t)
{
    uint32_t k = t->stage, m = t->micro_batch;
    bool back = t->kind != MS_TURN_FORWARD;
    uint64_t made = ready(p, p->truth, t);
    bool first = back ? k + 1 == p->schedule.n_stages : k == 0;
    if (made == 0 || first || t->kind == MS_TURN_GRAD_WEIGHT)
        return made;
    uint64_t there_ns = *there(p, q, k, m, back);
    return there_ns == 0 ? 0 : later(made, there_ns);
}

/* The receiver makes room behind the last turn that it has taken. */
static void hand_on(const pipeline *p, queues *q, const ms_turn *t,
                    uint64_t end)
{
    const ms_schedule *s = &p->schedule;
    uint32_t k = t->stage, m = t->micro_batch;
    bool back = t->kind != MS_TURN_FORWARD;
    if (t->kind == MS_TURN_GRAD_WEIGHT ||
        (back ? k == 0 : k + 1 == s->n_stages))
        return;
    uint32_t to = back ? k - 1 : k + 1;
    uint16_t a = ms_schedule_rank(s, k, m), b = ms_schedule_rank(s, to, m);
    uint64_t ns = end;
    if (a != b) {
        ns = later(later(end, q->busy[b]), later(q->line[a], q->line[b]));
        ns += p->message_ns;
        q->line[a] = q->line[b] = ns;
    }
    *there(p, q, to, m, back) = ns;
}

/* How many turns the rank takes, from the next one on: 0 to 2. */
static uint32_t take_naively(pipeline *p, queues *q, uint32_t r, uint32_t next)
{
    const ms_turn *t = &p->schedule.turns[next];
    if (next == p->schedule.turn_at[r + 1])
        return 0;
    uint32_t n = t->pairs ? 2 : 1;
    uint64_t start = come(p, q, t), other = n == 2 ? come(p, q, t + 1) : start;
    if (start == 0 || other == 0)
        return 0;
    start = later(later(start, other), q->busy[r]);
    uint64_t end = start + p->ns[t->kind] + (n == 2 ? p->ns[t[1].kind] : 0);
    q->busy[r] = end;
    for (uint32_t i = 0; i < n; i++)
        *at(p, p->truth, t[i].stage, t[i].micro_batch, t[i].kind) =
            (span){start, end};
    for (uint32_t i = 0; i < n; i++)
        hand_on(p, q, &t[i], end);
    return n;
}

/* Ranks come to their turns in rounds. */
static void clock_queues(pipeline *p)
{
    const ms_schedule *s = &p->schedule;
    uint32_t left = s->turn_at[s->n_ranks], n = s->n_ranks;
    uint64_t *of = ms_arena_take(&arena, 2 * n, sizeof *of);
    uint32_t *next = ms_arena_take(&arena, n, sizeof *next);
    queues q = {of, of + n,
                ms_arena_take(&arena,
                              (size_t)s->n_stages * s->n_micro_batches * 2,
                              sizeof *q.there)};
    for (uint32_t r = 0; r < n; r++) {
        next[r] = s->turn_at[r];
        q.busy[r] = q.line[r] = 1;
    }
    for (uint32_t r = 0; left > 0; r = (r + 1) % n) {
        uint32_t taken = take_naively(p, &q, r, next[r]);
        next[r] += taken;
        left -= taken;
    }
}

/* ---- memsim's ------------------------------------------------------------ */

static void make_graph(pipeline *p)
{
    char json[512];
    ms_job job;
    ms_result result;
    uint32_t block = 0;
    ms_stage *stages =
        ms_arena_take(&arena, p->schedule.n_stages, sizeof *stages);
    memcpy(stages, p->schedule.stages, p->schedule.n_stages * sizeof *stages);
    snprintf(json, sizeof json, chain, p->schedule.n_stages);
    ms_settings_init(&job);
    MUST(inlined_lower(json, "none", &job, &keep_arena, &result, &fault));
    p->graph = *result.graph;
    for (uint32_t op = 0; op < p->graph.n_ops; op++) {
        uint8_t pass = p->graph.op_pass[op];
        p->graph.op_ns[op] = !(p->graph.op_flags[op] & MS_OP_MATRIX) ? 0
                             : pass == MS_FORWARD ? p->ns[MS_TURN_FORWARD]
                             : pass == MS_GRAD_WEIGHT
                                 ? p->ns[MS_TURN_GRAD_WEIGHT]
                                 : p->ns[MS_TURN_GRAD_INPUT];
    }
    for (uint32_t u = 0; u < p->graph.n_units; u++) {
        uint32_t own = p->graph.unit_block[u];
        block = own == MS_NONE ? block : own;
        if (u > 0 && stages[block].last == 0)
            stages[block].first = block > 0 ? u : 0;
        stages[block].last = u;
    }
    p->schedule.stages = stages;
}

static uint32_t stage_of(const pipeline *p, uint32_t unit)
{
    uint32_t k = 0;
    while (unit > p->schedule.stages[k].last)
        k++;
    return k;
}

static void run(pipeline *p, ms_program *program, ms_plan *plan,
                ms_timeline *line)
{
    ms_keep keep;
    ms_machine machine = {0};
    ms_expand_opts opts = {.groups = LAWS_GROUPS};
    MUST(ms_program_keep_all(&p->graph, &arena, &keep, &fault));
    MUST(ms_schedule_check(&p->graph, &p->schedule, &fault));
    MUST(ms_defaultprogram(&p->graph, &keep, &p->schedule, &arena, program,
                           &fault));
    MUST(ms_check_program(&p->graph, program, &fault));
    MUST(ms_expand(&p->graph, program, &opts, &arena, plan, &fault));
    for (uint32_t i = 0; i < plan->n_ops; i++)
        if (plan->op[i].stream != MS_STREAM_COMPUTE)
            plan->op[i].ns = p->message_ns;
    MUST(ms_replay(plan, &machine, &arena, line, &fault));
}

static void read_spans(pipeline *p, const ms_plan *plan,
                       const ms_timeline *line)
{
    for (uint32_t i = 0; i < plan->n_ops; i++) {
        const ms_plan_op *op = &plan->op[i];
        if (op->ns == 0 || op->of == MS_NONE ||
            p->graph.op_unit[op->of] == MS_NONE) /* of the step */
            continue;
        uint32_t k = stage_of(p, p->graph.op_unit[op->of]);
        uint32_t m = op->micro_batch, kind = MS_TURN_FORWARD;
        if (op->pass != MS_FORWARD) {
            kind = op->pass == MS_GRAD_WEIGHT ? MS_TURN_GRAD_WEIGHT
                                              : MS_TURN_GRAD_INPUT;
            if (at(p, p->truth, k, m, MS_TURN_BACKWARD)->end > 0)
                kind = MS_TURN_BACKWARD;
        }
        span *it = at(p, p->got, k, m, kind);
        uint64_t start = line->start_ns[i] + 1, end = line->end_ns[i] + 1;
        it->start = it->end == 0 || start < it->start ? start : it->start;
        it->end = end > it->end ? end : it->end;
    }
}

static void take_spans(pipeline *p)
{
    size_t n =
        (size_t)p->schedule.n_stages * p->schedule.n_micro_batches * MS_N_TURNS;
    p->truth = ms_arena_take(&arena, n, sizeof *p->truth);
    p->got = ms_arena_take(&arena, n, sizeof *p->got);
    p->ns[MS_TURN_BACKWARD] =
        p->ns[MS_TURN_GRAD_INPUT] + p->ns[MS_TURN_GRAD_WEIGHT];
}

/* Of a pair, the first turn ends where the second begins. */
static void expect_spans(const pipeline *p, const char *name)
{
    const ms_schedule *s = &p->schedule;
    for (uint32_t i = 0; i < s->turn_at[s->n_ranks]; i++) {
        const ms_turn *t = &s->turns[i];
        bool second = i > 0 && t[-1].pairs;
        span *a = at(p, p->truth, t->stage, t->micro_batch, t->kind);
        span *b = at(p, p->got, t->stage, t->micro_batch, t->kind);
        ck_assert_msg((second || a->start == b->start) &&
                          (t->pairs || a->end == b->end),
                      "%s, seed %llu, %u ranks, %u micro-batches: %u%c%u from "
                      "%llu to %llu, not %llu to %llu",
                      name, (unsigned long long)laws_seed, (unsigned)s->n_ranks,
                      s->n_micro_batches, t->stage,
                      ms_schedule_letters[t->kind], t->micro_batch,
                      (unsigned long long)b->start, (unsigned long long)b->end,
                      (unsigned long long)a->start, (unsigned long long)a->end);
    }
}

/* ---- published orders ---------------------------------------------------- */

static const char *const names[MS_N_ORDERS] = {
    "1f1b",   "gpipe", "interleaved", "looped-bfs", "zb-h1", "zb-h2", "zb-v",
    "v-half", "v-min", "dualpipev",   "dualpipe",   "zb-1p", "zb-2p"};

static void write_order(pipeline *p, ms_order order, ms_orders_size size)
{
    uint32_t n = size.ranks * size.chunks;
    ms_stage *stages = ms_arena_take(&arena, n, sizeof *stages);
    for (uint32_t k = 0; k < n; k++)
        stages[k].rank = ms_orders_rank(order, &size, k);
    p->schedule =
        (ms_schedule){.n_stages = n,
                      .stages = stages,
                      .n_ranks = (uint16_t)size.ranks,
                      .n_micro_batches = size.micro_batches,
                      .receives = MS_RECEIVE_AHEAD,
                      .turn_at = ms_arena_take(&arena, size.ranks + 1,
                                               sizeof *p->schedule.turn_at),
                      .turns = ms_arena_take(&arena, ms_orders_room(&size),
                                             sizeof *p->schedule.turns)};
    MUST(ms_orders_write(order, &size, &arena, &p->schedule, &fault));
    take_spans(p);
}

/* Messages take no time where no one waits for another, so that only the order
 * counts; each neighbour has a queue then. */
START_TEST(orders_keep_time)
{
    bool in_line = _i == 1;
    for (uint32_t trial = 0; trial < N_TRIALS; trial++) {
        laws_random random = {laws_seed = 91000 + 2000u * in_line + trial};
        ms_order order = (ms_order)(trial % MS_N_ORDERS);
        ms_orders_size size = {.ranks = 1 + laws_below(&random, MOST_RANKS)};
        bool loops = order == MS_ORDER_INTERLEAVED ||
                     order == MS_ORDER_LOOPED_BFS || order == MS_ORDER_ZB_H1;
        if (order == MS_ORDER_DUALPIPE)
            size.ranks += size.ranks % 2;
        size.chunks =
            ms_orders_chunks(order, loops ? 1 + laws_below(&random, 3) : 0);
        size.micro_batches = size.ranks * (2 + laws_below(&random, 3));
        pipeline p = {.ns = {1 + laws_below(&random, 9), 0,
                             1 + laws_below(&random, 9),
                             1 + laws_below(&random, 9)}};
        ms_program program;
        ms_plan plan;
        ms_timeline line;
        write_order(&p, order, size);
        make_graph(&p);
        if (in_line) {
            p.schedule.receives = MS_RECEIVE_IN_LINE;
            p.message_ns = laws_below(&random, 4);
            clock_queues(&p);
        } else {
            clock_naively(&p);
        }
        run(&p, &program, &plan, &line);
        read_spans(&p, &plan, &line);
        expect_spans(&p, names[order]);
        ms_arena_reset(&keep_arena);
        ms_arena_reset(&arena);
    }
    ms_arena_free(&keep_arena);
    ms_arena_free(&arena);
}
END_TEST

/* How long a rank of an order waits, from the first turn of all to the last. */
static uint64_t idle(ms_order order, ms_orders_size size, uint64_t f,
                     uint64_t i, uint64_t w)
{
    pipeline p = {.ns = {f, 0, i, w}};
    size.chunks = ms_orders_chunks(order, size.chunks);
    write_order(&p, order, size);
    clock_naively(&p);
    uint64_t chunks = order == MS_ORDER_DUALPIPE ? 1 : size.chunks;
    uint64_t work = (f + i + w) * chunks * size.micro_batches;
    ms_arena_reset(&arena);
    return p.makespan - work;
}

#define IDLE(order, v, f, i, w)                                                \
    idle(order, (ms_orders_size){p, v, m, 0}, f, i, w)

/* Huang 2019, Narayanan 2021, Qi et al. 2024 (with W no longer than F and I),
 * deepseek-ai/DualPipe's README (exact where F, I and W are equal), and for
 * V-half and V-min what sail-sg/zero-bubble's own clock says. */
START_TEST(ranks_idle_by_the_formulas)
{
    for (uint32_t p = 2; p <= 12; p++)
        for (uint32_t m = 2 * p; m <= 4 * p; m += p) {
            uint64_t f = 5, i = 4, w = 3, whole = f + i + w;
            uint64_t half = p % 2 == 0 ? 3 * p - 7 : 3 * p - 4;
            uint64_t least = p % 3 == 0 ? 4 * p - 7 : 4 * p - 5;
            ck_assert_uint_eq(IDLE(MS_ORDER_GPIPE, 0, f, i, w),
                              (p - 1) * whole);
            ck_assert_uint_eq(IDLE(MS_ORDER_1F1B, 0, f, i, w), (p - 1) * whole);
            ck_assert_uint_eq(IDLE(MS_ORDER_INTERLEAVED, 3, f, i, w),
                              (p - 1) * whole);
            ck_assert_uint_eq(IDLE(MS_ORDER_ZB_H1, 0, f, i, w),
                              (p - 1) * (f + i - w));
            ck_assert_uint_eq(IDLE(MS_ORDER_ZB_V, 0, 1, 1, 1), p - 1);
            ck_assert_uint_eq(IDLE(MS_ORDER_DUALPIPEV, 0, 1, 1, 1),
                              2 * (p - 1));
            if (p % 2 == 0)
                ck_assert_uint_eq(IDLE(MS_ORDER_DUALPIPE, 0, 1, 1, 1),
                                  2 * (p / 2 - 1));
            if (p > 3) {
                ck_assert_uint_eq(IDLE(MS_ORDER_V_HALF, 0, 1, 1, 1), half);
                ck_assert_uint_eq(IDLE(MS_ORDER_V_MIN, 0, 1, 1, 1), least);
            }
        }
    ms_arena_free(&arena);
}
END_TEST

/* ---- orders of no rule --------------------------------------------------- */

static void check_messages(const ms_program *program)
{
    uint32_t *n = ms_arena_take(&arena, program->n_calls, sizeof *n);
    for (uint32_t i = 0; i < program->n_calls; i++) {
        const ms_call *call = &program->calls[i];
        if (call->verb != MS_SEND_SET && call->verb != MS_RECV_SET)
            continue;
        uint32_t *it = &n[call->message.tag];
        *it += call->verb == MS_SEND_SET ? 1 : 0x10000;
    }
    for (uint32_t i = 0; i < program->n_calls; i++)
        HOLDS(n[i] == 0 || n[i] == 0x10001, "message %u: %x", i, n[i]);
}

static void check_turns(const pipeline *p)
{
    const ms_schedule *s = &p->schedule;
    for (uint32_t r = 0; r < s->n_ranks; r++) {
        uint64_t busy = 1, work = 0, wait = 0;
        for (uint32_t i = s->turn_at[r]; i < s->turn_at[r + 1]; i++) {
            const ms_turn *t = &s->turns[i];
            span *it = at(p, p->got, t->stage, t->micro_batch, t->kind);
            uint64_t from = ready(p, p->got, t);
            HOLDS(from > 0 && it->start >= from && it->start >= busy,
                  "%u%c%u begins too early", t->stage,
                  ms_schedule_letters[t->kind], t->micro_batch);
            if (t->pairs)
                HOLDS(it->start >= ready(p, p->got, t + 1),
                      "%u%c%u does not wait for what it pairs with", t->stage,
                      ms_schedule_letters[t->kind], t->micro_batch);
            wait += it->start - busy;
            work += p->ns[t->kind];
            busy = it->end;
        }
        HOLDS(wait + work + 1 == busy, "rank %u", r);
    }
}

START_TEST(turns_of_no_rule)
{
    for (uint32_t trial = 0; trial < N_TRIALS; trial++) {
        laws_random random = {laws_seed = 92000 + trial};
        pipeline p = {.ns = {1 + laws_below(&random, 9), 0,
                             1 + laws_below(&random, 9),
                             1 + laws_below(&random, 9)}};
        ms_program program;
        ms_plan plan;
        ms_timeline line;
        uint32_t ranks = 1 + laws_below(&random, MOST_RANKS);
        uint32_t n = ranks * (1 + laws_below(&random, 3));
        ms_stage *stages = ms_arena_take(&arena, n, sizeof *stages);
        for (uint32_t k = 0; k < n; k++)
            stages[k].rank =
                (uint16_t)(k < ranks ? k : laws_below(&random, ranks));
        p.schedule =
            (ms_schedule){.n_stages = n,
                          .stages = stages,
                          .n_ranks = (uint16_t)ranks,
                          .receives = MS_RECEIVE_AHEAD,
                          .n_micro_batches = 1 + laws_below(&random, 8)};
        laws_turns(&random, &arena, &p.schedule);
        take_spans(&p);
        make_graph(&p);
        clock_naively(&p);
        run(&p, &program, &plan, &line);
        read_spans(&p, &plan, &line);
        check_messages(&program);
        check_turns(&p);
        ms_arena_reset(&keep_arena);
        ms_arena_reset(&arena);
    }
    ms_arena_free(&keep_arena);
    ms_arena_free(&arena);
}
END_TEST

/* ---- what waits for the weights' half ------------------------------------ */

/* A product of the second half has read the storage before this op. */
static bool waits(const ms_graph *graph, const uint8_t *second, uint32_t op,
                  uint32_t storage)
{
    while (op-- > graph->forward_at[graph->n_units])
        for (uint32_t i = graph->in_at[op]; i < graph->in_at[op + 1]; i++)
            if (second[op] && graph->in[i] == storage)
                return true;
    return false;
}

/* Sums in place of gradients, and those of them that the second half reads. */
static uint32_t count_sums(const char *model, const char *policy,
                           uint32_t *wrong)
{
    ms_job job;
    ms_result result;
    uint32_t n = 0;
    ms_settings_init(&job);
    job.training.batch = 4;
    MUST(inlined_lower(model, policy, &job, &keep_arena, &result, &fault));
    const ms_graph *graph = result.graph;
    uint8_t *second = ms_arena_take(&arena, graph->n_ops, 1);
    ms_stage_halves(graph, second);
    *wrong = 0;
    for (uint32_t op = graph->forward_at[graph->n_units];
         op < graph->step_first; op++) {
        if (strcmp(graph->op_name[op], "aten::add_") != 0 || second[op])
            continue;
        n++;
        *wrong += waits(graph, second, op, graph->in[graph->in_at[op]]);
    }
    ms_arena_reset(&keep_arena);
    ms_arena_reset(&arena);
    return n;
}

/* torch adds a gradient to another in place where nothing else holds that; the
 * weights' half holds the gradients of the outputs of linear layers. */
START_TEST(held_gradients_are_not_added_to)
{
    static const char model[] =
        "{\"memsim\": 1, \"family\": \"decoder\", \"config\": {\"layers\": 8, "
        "\"hidden\": 32, \"heads\": 2, \"dropout\": 0, \"vocab\": 100, "
        "\"positions\": 16}}";
    uint32_t wrong, n = count_sums(model, "pipeline:2", &wrong);
    ck_assert_uint_gt(wrong, 0); /* whole backwards need not care */
    for (uint32_t order = MS_ORDER_ZB_H1; order < MS_N_ORDERS; order++) {
        char policy[64];
        snprintf(policy, sizeof policy, "pipeline:2,schedule=%s+microbatch:4",
                 names[order]);
        uint32_t fewer = count_sums(model, policy, &wrong);
        ck_assert_uint_eq(wrong, 0);
        ck_assert_uint_lt(fewer, n);
    }
    ms_arena_free(&keep_arena);
    ms_arena_free(&arena);
}
END_TEST

Suite *suite_turns(void)
{
    Suite *suite = suite_create("turns");
    TCase *tcase = tcase_create("turns");
    tcase_set_timeout(tcase, 120);
    tcase_add_loop_test(tcase, orders_keep_time, 0, 2);
    tcase_add_test(tcase, ranks_idle_by_the_formulas);
    tcase_add_test(tcase, turns_of_no_rule);
    tcase_add_test(tcase, held_gradients_are_not_added_to);
    suite_add_tcase(suite, tcase);
    return suite;
}
