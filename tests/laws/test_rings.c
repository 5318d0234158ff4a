/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Rings of ranks that divide a sequence (context:C,mode=ring): what they send,
 * compute and wait for is what closed forms say, however tokens are dealt. */
#include "graphs/kernels/kernels.h"
#include "sim/graph.h"
#include "sim/plan.h"
#include "sim/report.h"
#include "sim/timeline.h"
#include "tests/inlined.h"
#include "tests/laws/laws.h"
#include "tests/tests.h"
#include "tools/job/job.h"
#include "tools/job/result.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MANY(list) (sizeof(list) / sizeof *(list))
#define LAYERS UINT64_C(3)
#define HIDDEN UINT64_C(64)
#define BATCH UINT64_C(2)
#define SEQUENCE UINT64_C(64)
#define RANKS UINT64_C(4)
/* Bytes of a rank's keys and values of 16 bits, as many heads as queries. */
#define PAIR (2 * 2 * BATCH * SEQUENCE / RANKS * HIDDEN)

static const char gpt[] =
    "{\"memsim\": 1, \"name\": \"m\", \"family\": \"decoder\", \"config\": "
    "{\"layers\": 3, \"hidden\": 64, \"heads\": 8, \"vocab\": 512, "
    "\"positions\": 64, \"dropout\": 0}}";

/* Steps of its ring take longer than the host. */
static const char large[] =
    "{\"memsim\": 1, \"name\": \"m\", \"family\": \"decoder\", \"config\": "
    "{\"layers\": 3, \"hidden\": 1024, \"heads\": 8, \"vocab\": 512, "
    "\"positions\": 32768, \"dropout\": 0}}";

static ms_arena keep, trial;
static ms_fault fault;
static ms_result result;

static ms_err run(const char *policy, uint32_t kernels)
{
    return inlined_run(gpt, BATCH, kernels, policy, &keep, &trial, &result,
                       &fault);
}

static void must_run(const char *policy)
{
    ck_assert_msg(run(policy, MS_FLASH) == MS_OK, "%s: %s", policy, fault.what);
}

/* The other laws are of one rank. */
static void check_laws(void)
{
    laws_check_levels(result.plan, result.line);
    if (result.plan->n_ranks > 1)
        return;
    laws_check_rows(result.plan);
    laws_check_clock(result.plan, result.line, result.machine);
    laws_check_report(result.line, result.report, true);
}

/* FLOPs of attention of all layers, forward. */
static double attended(void)
{
    const ms_graph *g = result.graph;
    double flops = 0;
    for (uint32_t op = 0; op < g->step_first; op++)
        if (strstr(g->op_name[op], "flash_attention") != NULL &&
            g->op_pass[op] == MS_FORWARD)
            flops += g->op_flops[op];
    return flops;
}

START_TEST(one_rank_is_none)
{
    static const char *const alone[] = {"context:1,split=plain",
                                        "context:1,mode=ring,impl=rfa"};
    must_run("none");
    char *without = inlined_graph_text(&result, &trial);
    for (size_t i = 0; i < MANY(alone); i++) {
        must_run(alone[i]);
        char *with = inlined_graph_text(&result, &trial);
        ck_assert_str_eq(without, with);
        free(with);
    }
    free(without);
}
END_TEST

/* Of all pairs of tokens, S^2 / 2 blocks of (S / C)^2, plain rank r has r + 1/2
 * of C^2 / 2, in zigzag each the same; all ranks together all of them. */
START_TEST(work_is_dealt)
{
    must_run("none");
    double all = attended(), sum = 0;
    for (uint64_t r = 0; r < RANKS; r++) {
        char policy[64];
        snprintf(policy, sizeof policy, "context:4,split=plain,rank=%u",
                 (unsigned)r);
        must_run(policy);
        ck_assert_double_eq_tol(attended() / all,
                                (2. * (double)r + 1) / (RANKS * RANKS), 1e-12);
        sum += attended();
        snprintf(policy, sizeof policy, "context:4,impl=rfa,rank=%u",
                 (unsigned)r);
        must_run(policy);
        ck_assert_double_eq_tol(attended() * RANKS / all, 1, 1e-12);
        snprintf(policy, sizeof policy, "context:4,mode=ring,rank=%u",
                 (unsigned)r);
        must_run(policy);
        ck_assert_double_eq_tol(attended() * RANKS / all, 1, 1e-12);
    }
    ck_assert_double_eq_tol(sum / all, 1, 1e-12);
}
END_TEST

/* Keys and values go round C - 1 times each way, their gradients C times in
 * fp32; whoever has no work sends as much. */
START_TEST(volumes_are_those_of_the_ring)
{
    static const char *const rings[] = {
        "context:4,split=plain", "context:4,split=plain,rank=0",
        "context:4,impl=rfa", "context:4,impl=rfa,rank=1"};
    for (size_t i = 0; i < MANY(rings); i++) {
        must_run(rings[i]);
        ck_assert_uint_eq(laws_exchanged(result.plan),
                          LAYERS * PAIR * (2 * (RANKS - 1) + 2 * RANKS));
        check_laws();
    }
}
END_TEST

static ms_times time_of(const char *policy)
{
    ms_job job;
    inlined_begin(&job, &keep, &trial, &fault);
    job.training.sequence = 32768;
    ck_assert_msg(inlined_step(large, policy, &job, &keep, &trial, &result,
                               &fault) == MS_OK,
                  "%s: %s", policy, fault.what);
    return result.report->ranks[0].time;
}

/* All ranks take as long as the last one, but for the sums of results that
 * those without work do not make: the earlier, the longer they wait. */
START_TEST(all_wait_for_the_last)
{
    const ms_times last = time_of("context:4,split=plain,rank=3");
    uint64_t work = last.forward_ns + last.backward_ns, waits = 0;
    for (int r = 2; r >= 0; r--) {
        char policy[64];
        snprintf(policy, sizeof policy, "context:4,split=plain,rank=%d", r);
        const ms_times time = time_of(policy);
        uint64_t own = time.forward_ns + time.backward_ns;
        ck_assert_uint_lt(own, work);
        ck_assert_uint_le(time.step_ns, last.step_ns);
        ck_assert_uint_ge(time.step_ns, last.step_ns * 97 / 100);
        ck_assert_uint_gt(time.exposed_comm_ns, waits);
        waits = time.exposed_comm_ns;
    }
    const ms_times even = time_of("context:4,impl=rfa");
    ck_assert_uint_lt(even.step_ns, last.step_ns);
}
END_TEST

/* Transformer Engine holds all that comes round, C K, and C results; ring-
 * flash-attention two of each, and results in fp32. */
static uint64_t most_live(const char *name)
{
    const ms_plan *plan = result.plan;
    uint64_t most = 0;
    for (uint32_t r = 0; r < plan->n_rows; r++) {
        uint64_t live = 0;
        for (uint32_t q = 0; q < plan->n_rows; q++) {
            uint32_t s = plan->row[q].storage;
            if (s == MS_NONE ||
                strcmp(result.graph->storage_name[s], name) != 0)
                continue;
            uint32_t end = plan->n_ops;
            for (uint32_t op = plan->row[q].op; op < plan->n_ops; op++)
                for (uint32_t i = plan->op[op].release_at;
                     i < plan->op[op + 1].release_at; i++)
                    if (plan->release[i] == q)
                        end = op;
            if (plan->row[q].op <= plan->row[r].op && end >= plan->row[r].op)
                live += plan->row[q].bytes;
        }
        if (live > most)
            most = live;
    }
    return most;
}

START_TEST(buffers_are_those_of_the_code)
{
    must_run("context:4,mode=ring+checkpoint:full");
    ck_assert_uint_eq(most_live("received"), (RANKS - 1) * PAIR);
    must_run("context:4,impl=rfa+checkpoint:full");
    /* Backward: what comes next of both kinds, and the gradients' spare. */
    ck_assert_uint_eq(most_live("received"), 2 * PAIR + 2 * PAIR);
    must_run("context:4,split=plain+checkpoint:full");
    ck_assert_uint_eq(most_live("received"), 3 * PAIR + 2 * PAIR);
    must_run("context:4,mode=ring,rank=0");
    uint64_t least = most_live("partial");
    must_run("context:4,mode=ring,rank=3");
    ck_assert_uint_eq(8 * least, 5 * most_live("partial"));
}
END_TEST

/* The whole way of a command. */
static void must_go(const char *policy)
{
    ms_job job;
    inlined_begin(&job, &keep, &trial, &fault);
    job.model = "gpt2";
    job.training.batch = 1;
    job.training.sequence = 1024;
    ck_assert_int_eq(ms_spec_parse(policy, &keep, &job.spec, &fault), MS_OK);
    ck_assert_msg(ms_jobway_run(&job, &keep, &trial, &result, &fault) == MS_OK,
                  "%s: %s", policy, fault.what);
}

/* All ranks of a plain split are told: what each of them tells when asked for
 * alone, which the last one does without being asked. */
START_TEST(all_ranks_are_told)
{
    struct ms_ring_rank ring[RANKS];
    must_go("context:4,split=plain");
    ck_assert_uint_eq(result.report->n_ring, RANKS);
    memcpy(ring, result.report->ring, sizeof ring);
    for (uint32_t r = 0; r < RANKS; r++) {
        char policy[64];
        snprintf(policy, sizeof policy, "context:4,split=plain,rank=%u", r);
        must_go(policy);
        const ms_rank_report *alone = &result.report->ranks[0];
        ck_assert_uint_eq(result.report->n_ring, 0);
        ck_assert_uint_eq(ring[r].rank, r);
        ck_assert_uint_eq(ring[r].peak_bytes, alone->peak.allocated_bytes);
        ck_assert_uint_eq(ring[r].wait_ns, alone->time.exposed_comm_ns);
        ck_assert_uint_eq(ring[r].work_ns, alone->time.forward_ns +
                                               alone->time.backward_ns +
                                               alone->time.recompute_ns +
                                               alone->time.optimizer_ns);
        if (r > 0)
            ck_assert_uint_gt(ring[r].work_ns, ring[r - 1].work_ns);
    }
    must_go("context:4,mode=ring");
    ck_assert_uint_eq(result.report->n_ring, 0);
    must_go("context:1,split=plain");
    ck_assert_uint_eq(result.report->n_ring, 0);
}
END_TEST

static const char *const beside[] = {
    "+checkpoint:full", "+zero:1,dp=4+microbatch:2",
    "+fsdp:dp=4",       "+tensor:2,sp+zero:3,dp=8",
    "+swap:torchtune",  "+offload:optimizer",
    "+pipeline:3",      "+ddp:dp=4+checkpoint:sqrt"};

START_TEST(steps_keep_the_laws)
{
    static const char *const rings[] = {
        "context:4,split=plain", "context:2,split=plain,rank=0",
        "context:4,mode=ring,impl=rfa", "context:2,mode=ring,rank=0"};
    static const uint32_t kernels[] = {MS_FLASH, MS_MEGATRON, MS_FUSED};
    for (size_t i = 0; i < MANY(rings); i++)
        for (size_t k = 0; k < MANY(kernels); k++) {
            char policy[96];
            snprintf(policy, sizeof policy, "%s%s", rings[i], beside[_i]);
            ck_assert_msg(run(policy, kernels[k]) == MS_OK, "%s: %s", policy,
                          fault.what);
            check_laws();
        }
}
END_TEST

START_TEST(what_is_refused)
{
    static const struct {
        const char *policy, *hint;
    } bad[] = {
        {"context:4,mode=a2a,split=plain", "take mode=ring, or leave it out"},
        {"context:4,mode=allgather,rank=1", "take mode=ring, or leave it out"},
        {"context:4,split=plain,impl=te", "take impl=rfa, or split=zigzag"},
        {"context:4,split=plain,rank=4", "type a rank from 0 to 3"},
        {"context:12,split=plain", "type --sequence 60 or 72"},
        {"context:32,split=zigzag,mode=ring", NULL},
        {"context:64,split=zigzag,mode=ring", "type --sequence 128 or 256"}};
    for (size_t i = 0; i < MANY(bad); i++) {
        ms_err err = run(bad[i].policy, MS_FLASH);
        if (bad[i].hint == NULL) {
            ck_assert_int_eq(err, MS_OK);
            continue;
        }
        ck_assert_int_ne(err, MS_OK);
        ck_assert_str_eq(fault.hint, bad[i].hint);
    }
}
END_TEST

static void teardown(void)
{
    ms_arena_free(&keep);
    ms_arena_free(&trial);
}

Suite *suite_rings(void)
{
    Suite *suite = suite_create("rings");
    TCase *tcase = tcase_create("rings");
    tcase_set_timeout(tcase, 120);
    tcase_add_checked_fixture(tcase, NULL, teardown);
    tcase_add_test(tcase, one_rank_is_none);
    tcase_add_test(tcase, work_is_dealt);
    tcase_add_test(tcase, volumes_are_those_of_the_ring);
    tcase_add_test(tcase, all_wait_for_the_last);
    tcase_add_test(tcase, all_ranks_are_told);
    tcase_add_test(tcase, buffers_are_those_of_the_code);
    tcase_add_loop_test(tcase, steps_keep_the_laws, 0, (int)MANY(beside));
    tcase_add_test(tcase, what_is_refused);
    suite_add_tcase(suite, tcase);
    return suite;
}
