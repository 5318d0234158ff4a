/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What is run again is served like what runs first: a replay in parts equals
 * the whole replay, and nothing in it waits for weights that were not
 * gathered. */
#include "graphs/machines/hostcode.h"
#include "sim/graph.h"
#include "sim/machine.h"
#include "sim/names.h"
#include "sim/plan.h"
#include "sim/program.h"
#include "sim/report.h"
#include "sim/schedule/schedule.h"
#include "sim/timeline.h"
#include "tests/inlined.h"
#include "tests/laws/asserts.h"
#include "tests/tests.h"
#include "tools/job/job.h"
#include "tools/job/result.h"
#include "tools/job/settings.h"

#include <stdio.h>

#define N_TRIALS 500u

static ms_arena keep, trial;

/* ---- parts --------------------------------------------------------------- */

static ms_plan expand(const ms_graph *graph, const ms_program *program)
{
    ms_fault fault = {0};
    ms_plan plan;
    ms_expand_opts opts = {.uses = true};
    ck_assert_msg(ms_check_program(graph, program, &fault) == MS_OK,
                  "seed %llu: %s: %s", (unsigned long long)laws_seed,
                  fault.where, fault.what);
    ck_assert_int_eq(ms_expand(graph, program, &opts, &trial, &plan, &fault),
                     MS_OK);
    return plan;
}

static bool same_rows(const ms_plan *a, const ms_plan *b)
{
    bool same = a->n_ops == b->n_ops && a->n_rows == b->n_rows;
    for (uint32_t i = 0; same && i <= a->n_ops; i++)
        same = (i == a->n_ops || (a->op[i].of == b->op[i].of &&
                                  a->op[i].pass == b->op[i].pass)) &&
               a->op[i].alloc_at == b->op[i].alloc_at &&
               a->op[i].release_at == b->op[i].release_at;
    for (uint32_t i = 0; same && i < a->n_rows; i++)
        same = a->row[i].storage == b->row[i].storage &&
               a->row[i].category == b->row[i].category;
    for (uint32_t i = 0; same && i < a->op[a->n_ops].release_at; i++)
        same = a->release[i] == b->release[i];
    return same;
}

/* A program with every call for rank 0 and then for rank 1. */
static ms_program twice(const ms_program *one)
{
    ms_fault fault = {0};
    ms_program two;
    ck_assert_int_eq(ms_program_fork(one, &trial, &two, &fault), MS_OK);
    two.n_ranks = 2;
    for (uint32_t i = 0; i < one->n_calls; i++)
        for (uint16_t rank = 0; rank < 2; rank++) {
            ms_call call = one->calls[i];
            call.rank = rank;
            ck_assert_int_eq(ms_program_add(&two, call, &trial, &fault), MS_OK);
        }
    return two;
}

/* Says whether the rank runs the ops of the plan of one rank, in their
 * order. */
static bool same_ops(const ms_plan *one, const ms_plan *two, uint16_t rank)
{
    uint32_t k = 0;
    for (uint32_t i = 0; i < two->n_ops; i++) {
        if (two->op[i].rank != rank)
            continue;
        if (k == one->n_ops || one->op[k].of != two->op[i].of ||
            one->op[k].pass != two->op[i].pass)
            return false;
        k++;
    }
    return k == one->n_ops;
}

static uint32_t count_replays(const ms_program *program)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < program->n_calls; i++)
        n += program->calls[i].verb == MS_RERUN;
    return n;
}

START_TEST(parts_are_the_replay)
{
    uint32_t parted = 0;
    for (uint32_t seed = 1; seed <= N_TRIALS; seed++) {
        laws_random random = {seed};
        ms_fault fault = {0};
        ms_graph graph;
        ms_keep choice;
        ms_program program;
        laws_seed = seed;
        laws_graph(&random, &trial, &graph);
        laws_keep(&random, &graph, &trial, &choice);
        ck_assert_int_eq(ms_defaultprogram_alone(&graph, &choice,
                                                 1 + laws_below(&random, 2),
                                                 &trial, &program, &fault),
                         MS_OK);
        ms_plan whole = expand(&graph, &program);
        uint32_t before = count_replays(&program);
        ck_assert_int_eq(
            ms_program_part_replays(&graph, &program, &trial, &fault), MS_OK);
        ms_plan parts = expand(&graph, &program);
        LAW(same_rows(&whole, &parts));
        LAW(whole.recomputed_ops == parts.recomputed_ops);
        parted += count_replays(&program) > before;
        ms_program two = twice(&program);
        ms_plan both = expand(&graph, &two);
        LAW(same_ops(&parts, &both, 0));
        LAW(same_ops(&parts, &both, 1));
        ms_arena_reset(&trial);
    }
    ck_assert_uint_gt(parted, N_TRIALS / 4);
    ms_arena_free(&trial);
}
END_TEST

/* ---- served -------------------------------------------------------------- */

#define MODEL                                                                  \
    "{\"memsim\": 1, \"family\": \"decoder\", \"config\": {\"layers\": 8, "    \
    "\"hidden\": 1024, \"heads\": 8, \"vocab\": 1000, \"positions\": 1024}}"

/* A way to share weights, and the same way with gathering on demand.
 * DeepSpeed's host waits where it prefetches, and idles longer with
 * prefetching. */
static const struct {
    const char *ahead, *at_once;
    bool stays; /* units that a replay gathers are whole until their backward,
                   and none of them is gathered ahead but the last */
} shares[] = {
    {"fsdp", "fsdp:impl=1,prefetch=none,limit=0", true},
    {"fsdp:impl=1,limit=0", "fsdp:impl=1,prefetch=none,limit=0", false},
    {"fsdp:impl=1,limit=0,forward_prefetch=1",
     "fsdp:impl=1,prefetch=none,limit=0", false},
    {"fsdp:units=split", "fsdp:impl=1,prefetch=none,limit=0,units=split", true},
    {"zero:3", "zero:3,prefetch=0", false},
    {"zero:3,prefetch=3", "zero:3,prefetch=0", false},
    {"zero:3,impl=deepspeed,prefetch_bucket_size=10000000", NULL, false},
};
static const char *const checkpoints[] = {
    "checkpoint:full", "checkpoint:every=2", "checkpoint:every=3",
    "checkpoint:every=4", "checkpoint:sqrt,variant=reentrant"};
#define MANY(list) (sizeof(list) / sizeof *(list))

static void run_as(int64_t launch, const char *share, const char *checkpoint,
                   ms_result *result)
{
    char policy[160];
    ms_fault fault = {0};
    ms_job job;
    ms_settings_init(&job);
    snprintf(policy, sizeof policy, "%s%s%s", share,
             checkpoint[0] != '\0' ? "+" : "", checkpoint);
    job.gpus = 8;
    job.training.batch = 4;
    job.training.launch = launch;
    bool ran = inlined_step(MODEL, policy, &job, &keep, &trial, result,
                            &fault) == MS_OK;
    ck_assert_msg(ran, "%s: %s: %s", policy, fault.where, fault.what);
}

static void run(const char *share, const char *checkpoint, ms_result *result)
{
    run_as(MS_LAUNCH_EAGER, share, checkpoint, result);
}

static void end_runs(void)
{
    ms_arena_reset(&keep);
    ms_arena_reset(&trial);
}

static uint32_t count_gathers(const ms_plan *plan)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < plan->n_transfers; i++)
        n += plan->transfers[i].kind == MS_TRANSFER_GATHER;
    return n;
}

/* Checks that the weights a run reads were gathered once since the last run
 * that read them. */
static void read_weights(const ms_graph *graph, const ms_call *call,
                         uint8_t *gathered)
{
    bool back = call->verb == MS_RUN && call->run.pass != MS_FORWARD;
    uint32_t first = back ? graph->backward_at[call->unit + 1]
                          : graph->forward_at[call->unit];
    uint32_t end = back ? graph->backward_at[call->unit]
                        : graph->forward_at[call->unit + 1];
    for (uint32_t i = graph->in_at[first]; i < graph->in_at[end]; i++)
        gathered[graph->in[i]] = 0;
}

/* The number of storages that are gathered again before anything reads them. */
static uint32_t count_wasted(const ms_graph *graph, const ms_program *program)
{
    uint32_t wasted = 0;
    uint8_t *gathered = ms_arena_take(&trial, graph->n_storages, 1);
    ck_assert_ptr_nonnull(gathered);
    for (uint32_t i = 0; i < program->n_calls; i++) {
        const ms_call *call = &program->calls[i];
        if (call->verb == MS_RUN || call->verb == MS_RERUN)
            read_weights(graph, call, gathered);
        if (call->verb != MS_GATHER)
            continue;
        for (uint32_t k = program->set_at[call->set];
             k < program->set_at[call->set + 1]; k++)
            wasted += gathered[program->set_item[k]]++ > 0;
    }
    return wasted;
}

static uint32_t count_gather_calls(const ms_program *program)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < program->n_calls; i++)
        n += program->calls[i].verb == MS_GATHER;
    return n;
}

/* The most bytes that the gathered weights of a unit take: those of a block,
 * or of what is around the blocks. */
static uint64_t unit_bytes(const ms_result *result)
{
    const ms_graph *graph = result->graph;
    uint64_t all = 0;
    for (uint32_t s = 0; s < graph->n_persistent; s++)
        if (ms_graph_is_weight(graph, s))
            all += graph->storage_bytes[s];
    return all / 8;
}

/* The time of all collectives, one after the other. */
static uint64_t alone_ns(const ms_result *result)
{
    uint64_t ns = 0;
    for (uint32_t i = 0; i < result->plan->n_ops; i++)
        if (result->plan->op[i].stream == MS_STREAM_COMM)
            ns += result->line->end_ns[i] - result->line->start_ns[i];
    return ns;
}

/* The most blocks that the checkpoints have in a segment. */
#define LONGEST 4u

/* With prefetching, two units more than the running one may be on the
 * device, both as gathered buffers and as weights; where units stay, the
 * weights of a segment's. */
static void check_prefetch(const ms_result *ahead, const char *at_once,
                           const char *checkpoint, bool stays)
{
    ms_result on_demand;
    run(at_once, checkpoint, &on_demand);
    const ms_rank_report *with = &ahead->report->ranks[0];
    const ms_rank_report *without = &on_demand.report->ranks[0];
    LAW(with->time.exposed_comm_ns <= without->time.exposed_comm_ns);
    LAW(with->peak.allocated_bytes <=
        without->peak.allocated_bytes +
            (4 + (stays ? LONGEST - 2 : 0)) * unit_bytes(ahead));
}

START_TEST(replays_are_served)
{
    for (size_t c = 0; c < MANY(checkpoints); c++) {
        ms_result ahead;
        run(shares[_i].ahead, checkpoints[c], &ahead);
        laws_seed = (uint64_t)_i * 100 + c;
        LAW(count_gathers(ahead.plan) <= count_gather_calls(ahead.program));
        LAW(count_wasted(ahead.graph, ahead.program) == 0);
        LAW(ahead.report->ranks[0].time.exposed_comm_ns <= alone_ns(&ahead));
        if (shares[_i].at_once != NULL)
            check_prefetch(&ahead, shares[_i].at_once, checkpoints[c],
                           shares[_i].stays);
        end_runs();
    }
    ms_arena_free(&keep);
    ms_arena_free(&trial);
}
END_TEST

/* Where the device computes for longer than the ranks communicate, a longer
 * segment idles no more than a segment of one block, except for the
 * collectives of one unit at the turn, or, where the first unit of a replay is
 * not gathered ahead, in front of each of the two segments.  No host is waited
 * for: the gaps of one that runs hooks have room for collectives. */
START_TEST(longer_segments_stand_no_more_still)
{
    ms_result block, segment;
    run_as(MS_LAUNCH_GRAPH_STEP, shares[_i].ahead, "checkpoint:full", &block);
    run_as(MS_LAUNCH_GRAPH_STEP, shares[_i].ahead, "checkpoint:every=4",
           &segment);
    laws_seed = (uint64_t)_i;
    LAW(segment.report->ranks[0].time.exposed_comm_ns <=
        block.report->ranks[0].time.exposed_comm_ns +
            alone_ns(&block) / 8 * (shares[_i].stays ? 2 : 1));
    end_runs();
    ms_arena_free(&keep);
    ms_arena_free(&trial);
}
END_TEST

Suite *suite_replays(void)
{
    Suite *suite = suite_create("replays");
    TCase *tcase = tcase_create("replays");
    tcase_set_timeout(tcase, 120);
    tcase_add_test(tcase, parts_are_the_replay);
    tcase_add_loop_test(tcase, replays_are_served, 0, (int)MANY(shares));
    tcase_add_loop_test(tcase, longer_segments_stand_no_more_still, 0,
                        (int)MANY(shares));
    suite_add_tcase(suite, tcase);
    return suite;
}
