/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The norm of all gradients in pipelines, against a naive clock (a time per
 * rank and two loops), in published orders and in orders of no rule: ranks that
 * meet update when the last has found its norm; ranks that are put right
 * afterwards wait for those before them alone, and their steps follow each
 * other at the longest of their own spans.  Zero bubble's second order keeps
 * its gain with the update in the step so, and loses it where ranks meet (Qi et
 * al. 2024, section 4). */
#include "policies/schedule/normmeeting.h"
#include "policies/schedule/orders.h"
#include "sim/graph.h"
#include "sim/machine.h"
#include "sim/plan.h"
#include "sim/program.h"
#include "sim/report.h"
#include "sim/timeline.h"
#include "tests/inlined.h"
#include "tests/laws/asserts.h"
#include "tests/laws/turns.h"
#include "tests/tests.h"
#include "tools/job/settings.h"

#include <stdio.h>
#include <string.h>

#define N_TRIALS 200u
#define MOST_RANKS 6u

static ms_arena keep_arena, arena;
static ms_fault fault;

static const char chain[] =
    "{\"memsim\": 1, \"name\": \"chain\", \"input\": {\"tokens\": true}, "
    "\"layers\": [{\"type\": \"embedding\", \"vocab\": 16, \"dim\": 8}, "
    "{\"repeat\": %u, \"name\": \"h\", \"layers\": [{\"type\": \"linear\", "
    "\"out\": 8, \"bias\": false}]}, {\"type\": \"mean\"}]}";

typedef struct pipeline {
    ms_graph graph;
    ms_schedule schedule;
    uint64_t forward_ns, input_ns, weight_ns, norm_ns, update_ns;
    ms_plan plan;
    ms_timeline line;
    ms_report report;
} pipeline;

/* One linear layer per stage; of the step the norms take time, and the ops
 * behind them. */
static void make_graph(pipeline *p)
{
    char json[512];
    ms_job job;
    ms_result result;
    snprintf(json, sizeof json, chain, p->schedule.n_stages);
    ms_settings_init(&job);
    job.training.clip_norm = 1;
    MUST(inlined_lower(json, "none", &job, &keep_arena, &result, &fault));
    ms_graph *g = &p->graph;
    *g = *result.graph;
    LAW(g->step_norm > g->step_all && g->step_norm < g->n_ops);
    for (uint32_t op = 0; op < g->n_ops; op++)
        g->op_ns[op] = op >= g->step_first
                           ? op < g->step_norm ? p->norm_ns : p->update_ns
                       : !(g->op_flags[op] & MS_OP_MATRIX) ? 0
                       : g->op_pass[op] == MS_FORWARD      ? p->forward_ns
                       : g->op_pass[op] == MS_GRAD_WEIGHT  ? p->weight_ns
                                                           : p->input_ns;
}

static void make_stages(pipeline *p, ms_order order, const ms_orders_size *size)
{
    uint32_t n = p->schedule.n_stages, block = 0;
    ms_stage *stages = ms_arena_take(&arena, n, sizeof *stages);
    for (uint32_t k = 0; k < n; k++)
        stages[k].rank = ms_orders_rank(order, size, k);
    for (uint32_t u = 0; u < p->graph.n_units; u++) {
        uint32_t own = p->graph.unit_block[u];
        block = own == MS_NONE ? block : own;
        if (u > 0 && stages[block].last == 0)
            stages[block].first = block > 0 ? u : 0;
        stages[block].last = u;
    }
    p->schedule.stages = stages;
}

static void make_schedule(pipeline *p, ms_order order, ms_orders_size size)
{
    p->schedule =
        (ms_schedule){.n_stages = size.ranks * size.chunks,
                      .n_ranks = (uint16_t)size.ranks,
                      .n_micro_batches = size.micro_batches,
                      .receives = MS_RECEIVE_AHEAD,
                      .turn_at = ms_arena_take(&arena, size.ranks + 1,
                                               sizeof *p->schedule.turn_at),
                      .turns = ms_arena_take(&arena, ms_orders_room(&size),
                                             sizeof *p->schedule.turns)};
    make_graph(p);
    make_stages(p, order, &size);
    MUST(ms_orders_write(order, &size, &arena, &p->schedule, &fault));
}

/* The text of the program reads back to itself. */
static void check_text(const pipeline *p, const ms_program *program)
{
    ms_text one = {.arena = &arena}, two = {.arena = &arena};
    ms_program again;
    ms_dump_program(&p->graph, program, &one);
    LAW(!one.failed);
    MUST(ms_dumpread_program(&p->graph, "p", one.bytes, one.length, &arena,
                             &again, &fault));
    LAW(again.overlaps == program->overlaps);
    for (uint32_t i = 0; i < again.n_buffers; i++) /* a comment */
        again.buffers[i].name = program->buffers[i].name;
    ms_dump_program(&p->graph, &again, &two);
    ck_assert_str_eq(one.bytes, two.bytes);
}

/* Messages take no time, so that only who waits for whom counts. */
static void run(pipeline *p, const char *policy)
{
    ms_spec spec = {0};
    ms_keep keep;
    ms_program program;
    ms_machine machine = {.launch_ns = 0};
    ms_expand_opts opts = {.groups = LAWS_GROUPS};
    ms_policy_context context = {
        .graph = &p->graph, .arena = &arena, .spec = &spec};
    MUST(ms_spec_parse(policy, &arena, &spec, &fault));
    MUST(ms_program_keep_all(&p->graph, &arena, &keep, &fault));
    MUST(ms_schedule_check(&p->graph, &p->schedule, &fault));
    MUST(ms_defaultprogram(&p->graph, &keep, &p->schedule, &arena, &program,
                           &fault));
    MUST(ms_normmeeting_write(&context, &program, &fault));
    MUST(ms_check_program(&p->graph, &program, &fault));
    check_text(p, &program);
    MUST(ms_expand(&p->graph, &program, &opts, &arena, &p->plan, &fault));
    for (uint32_t i = 0; i < p->plan.n_ops; i++)
        if (p->plan.op[i].stream != MS_STREAM_COMPUTE)
            p->plan.op[i].ns = 0;
    MUST(ms_replay(&p->plan, &machine, &arena, &p->line, &fault));
    MUST(ms_measure(&p->line, &machine, &arena, &p->report, &fault));
}

/* ---- the naive clock ----------------------------------------------------- */

typedef struct rank_times {
    uint64_t first, back, norm, update; /* ns; back: backward's end */
    uint64_t updates_from, end;         /* as replayed */
} rank_times;

static void read_times(const pipeline *p, rank_times *ranks)
{
    const ms_plan *plan = &p->plan;
    for (uint32_t r = 0; r < plan->n_ranks; r++)
        ranks[r] =
            (rank_times){.first = UINT64_MAX, .updates_from = UINT64_MAX};
    for (uint32_t i = 0; i < plan->n_ops; i++) {
        const ms_plan_op *op = &plan->op[i];
        rank_times *it = &ranks[op->rank];
        if (op->of == MS_NONE || op->ns == 0)
            continue;
        if (p->line.start_ns[i] < it->first)
            it->first = p->line.start_ns[i];
        if (op->of < p->graph.step_first)
            it->back = p->line.end_ns[i];
        else if (op->of < p->graph.step_norm)
            it->norm += op->ns;
        else
            it->update += op->ns;
        if (op->of >= p->graph.step_norm &&
            p->line.start_ns[i] < it->updates_from)
            it->updates_from = p->line.start_ns[i];
        it->end = p->line.end_ns[i];
    }
}

/* Returns the step. */
static uint64_t expect_times(const pipeline *p, bool meets)
{
    rank_times ranks[MOST_RANKS];
    uint64_t longest = 0, last = 0;
    read_times(p, ranks);
    for (uint32_t r = 0; r < p->plan.n_ranks; r++) {
        uint64_t known = 0, others = meets ? p->plan.n_ranks : r + 1;
        for (uint32_t q = 0; q < others; q++)
            if (ranks[q].back + ranks[q].norm > known)
                known = ranks[q].back + ranks[q].norm;
        HOLDS(ranks[r].updates_from == known,
              "rank %u of %u updates from %llu, not %llu", r,
              (unsigned)p->plan.n_ranks,
              (unsigned long long)ranks[r].updates_from,
              (unsigned long long)known);
        HOLDS(ranks[r].end == known + ranks[r].update, "rank %u", r);
        if (ranks[r].end - ranks[r].first > longest)
            longest = ranks[r].end - ranks[r].first;
        last = ranks[r].end > last ? ranks[r].end : last;
    }
    return meets ? last : longest;
}

static void expect_report(const pipeline *p, uint64_t step_ns)
{
    for (uint32_t r = 0; r < p->plan.n_ranks; r++) {
        const ms_times *t = &p->report.ranks[r].time;
        uint64_t sum = t->forward_ns + t->backward_ns + t->recompute_ns +
                       t->optimizer_ns + t->exposed_comm_ns + t->stall_ns +
                       t->bubble_ns + t->host_bound_ns + t->idle_ns +
                       t->page_wait_ns + t->memory_wait_ns;
        HOLDS(t->step_ns == step_ns, "a step of %llu, not %llu",
              (unsigned long long)t->step_ns, (unsigned long long)step_ns);
        HOLDS(sum == step_ns, "rank %u: parts of %llu, a step of %llu", r,
              (unsigned long long)sum, (unsigned long long)step_ns);
    }
}

static pipeline draw(laws_random *random)
{
    pipeline p = {.forward_ns = 1 + laws_below(random, 9),
                  .input_ns = 1 + laws_below(random, 9),
                  .weight_ns = 1 + laws_below(random, 9),
                  .norm_ns = 100 + laws_below(random, 900),
                  .update_ns = 100 + laws_below(random, 900)};
    ms_order order = (ms_order)laws_below(random, MS_ORDER_ZB_H2 + 1u);
    bool chunks = order == MS_ORDER_INTERLEAVED || order == MS_ORDER_LOOPED_BFS;
    ms_orders_size size = {.ranks = 2 + laws_below(random, MOST_RANKS - 1),
                           .chunks = ms_orders_chunks(order, chunks ? 2 : 0)};
    size.micro_batches = size.ranks * (1 + laws_below(random, 3));
    make_schedule(&p, order, size);
    if (laws_chance(random, 40))
        laws_turns(random, &arena, &p.schedule);
    return p;
}

START_TEST(ranks_agree_upon_the_norm)
{
    for (uint32_t trial = 0; trial < N_TRIALS; trial++) {
        laws_random random = {laws_seed = 93000 + trial};
        pipeline p = draw(&random);
        run(&p, "pipeline:2,optimizer=sync");
        LAW(!p.plan.overlaps);
        expect_report(&p, expect_times(&p, true));
        uint64_t met_ns = p.report.ranks[0].time.step_ns;
        run(&p, "pipeline:2,optimizer=postvalidate");
        LAW(p.plan.overlaps);
        expect_report(&p, expect_times(&p, false));
        LAW(p.report.ranks[0].time.step_ns <= met_ns);
        ms_arena_reset(&arena);
        ms_arena_reset(&keep_arena);
    }
    ms_arena_free(&arena);
    ms_arena_free(&keep_arena);
}
END_TEST

/* W <= min(F, I), messages of no time: pipelines.md 5 of the specifications,
 * ZB-H2's span and makespan; Qi et al. 2024, table 1. */
START_TEST(zero_bubble_keeps_its_gain)
{
    for (uint32_t trial = 0; trial < N_TRIALS / 4; trial++) {
        laws_random random = {laws_seed = 94000 + trial};
        pipeline p = {.weight_ns = 1 + laws_below(&random, 9)};
        p.forward_ns = p.weight_ns + laws_below(&random, 9);
        p.input_ns = p.weight_ns + laws_below(&random, 9);
        ms_orders_size size = {.ranks = 2 + laws_below(&random, MOST_RANKS - 1),
                               .chunks = 1};
        size.micro_batches = 2 * size.ranks + laws_below(&random, 9);
        make_schedule(&p, MS_ORDER_ZB_H2, size);
        uint64_t work =
            size.micro_batches * (p.forward_ns + p.input_ns + p.weight_ns);
        uint64_t others = size.ranks - 1;
        uint64_t bubble =
            others * (p.forward_ns + p.input_ns - 2 * p.weight_ns);
        uint64_t ramp = others * p.forward_ns;
        run(&p, "pipeline:2,optimizer=sync");
        expect_report(&p, work + (bubble > ramp ? bubble : ramp));
        run(&p, "pipeline:2,optimizer=postvalidate");
        expect_report(&p, work + bubble);
        ms_arena_reset(&arena);
        ms_arena_reset(&keep_arena);
    }
    ms_arena_free(&arena);
    ms_arena_free(&keep_arena);
}
END_TEST

static const char *program_of(const char *policy)
{
    static ms_arena trial;
    char json[512];
    ms_job job;
    ms_result result;
    ms_text text = {.arena = &keep_arena};
    snprintf(json, sizeof json, chain, 4);
    ms_settings_init(&job);
    job.training.clip_norm = 1;
    job.training.batch = 4;
    ms_arena_reset(&trial);
    MUST(
        inlined_step(json, policy, &job, &keep_arena, &trial, &result, &fault));
    ms_dump_program(result.graph, result.program, &text);
    ms_arena_free(&trial);
    return text.bytes;
}

/* One rank agrees with itself. */
START_TEST(one_rank_is_as_without)
{
    const char *plain = program_of("microbatch:4");
    static const char *const words[] = {
        "pipeline:1+microbatch:4", "pipeline:1,optimizer=sync+microbatch:4",
        "pipeline:1,optimizer=postvalidate+microbatch:4"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        ck_assert_str_eq(program_of(words[i]), plain);
    ms_arena_free(&keep_arena);
}
END_TEST

Suite *suite_norms(void)
{
    Suite *suite = suite_create("norms");
    TCase *tcase = tcase_create("norms");
    tcase_set_timeout(tcase, 120);
    tcase_add_test(tcase, ranks_agree_upon_the_norm);
    tcase_add_test(tcase, zero_bubble_keeps_its_gain);
    tcase_add_test(tcase, one_rank_is_as_without);
    suite_add_tcase(suite, tcase);
    return suite;
}
