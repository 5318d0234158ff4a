/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Two swap policies beside each other, and swaps to the disk: each tensor is
 * moved by one policy, on one path, and comes back as often as it leaves. */
#include "policies/common/policy.h"
#include "sim/graph.h"
#include "sim/names.h"
#include "sim/plan.h"
#include "tests/inlined.h"
#include "tests/laws/laws.h"
#include "tests/laws/policy.h"
#include "tests/tests.h"
#include "tools/cli/commands.h"
#include "tools/job/job.h"
#include "tools/job/result.h"
#include "tools/job/settings.h"

#include <stdio.h>
#include <string.h>

#define MANY(list) (sizeof(list) / sizeof *(list))
#define DECODER                                                                \
    "{\"memsim\": 1, \"family\": \"decoder\", \"config\": {\"layers\": 3, "    \
    "\"hidden\": 32, \"heads\": 2, \"vocab\": 100, \"positions\": 16}}"

static ms_arena keep, trial;
static ms_fault fault;
static ms_result result;

static ms_err run(const char *policy)
{
    ms_job job;
    inlined_begin(&job, &keep, &trial, &fault);
    job.uses = true;
    job.training.batch = 4;
    return inlined_step(DECODER, policy, &job, &keep, &trial, &result, &fault);
}

/* Copies of one tensor of one micro-batch, by stream. */
typedef struct copies {
    uint32_t n[MS_N_STREAMS];
} copies;

static copies *count_copies(void)
{
    const ms_plan *plan = result.plan;
    size_t n =
        (size_t)result.graph->n_storages * (plan->n_micro_batches + (size_t)1);
    copies *of = ms_arena_take(&trial, n, sizeof *of);
    ck_assert_ptr_nonnull(of);
    for (uint32_t op = 1; op < plan->n_ops; op++) {
        const ms_plan_op *it = &plan->op[op];
        for (uint32_t r = it->alloc_at; r < it[1].alloc_at; r++) {
            uint32_t s = plan->row[r].storage;
            if (it->pass != MS_COPY || s == MS_NONE)
                continue;
            of[(size_t)it->micro_batch * result.graph->n_storages + s]
                .n[it->stream]++;
        }
    }
    return of;
}

/* A tensor goes to the host and back; or by way of the host to the disk and
 * back; or straight to the disk and back. */
static void check_ways(const char *policy, bool once)
{
    const copies *of = count_copies();
    uint32_t storages = result.graph->n_storages;
    for (uint32_t m = 0; m < result.plan->n_micro_batches; m++)
        for (uint32_t s = result.graph->n_persistent; s < storages; s++) {
            const uint32_t *n = of[(size_t)m * storages + s].n;
            uint32_t out = n[MS_STREAM_D2H], in = n[MS_STREAM_H2D];
            uint32_t write = n[MS_STREAM_NVME_WRITE];
            uint32_t read = n[MS_STREAM_NVME_READ];
            ck_assert_msg(out == in && write == read &&
                              (out == 0 || write == 0 || out == write) &&
                              (!once || (out <= 1 && write <= 1)),
                          "%s: %s: %u out, %u written, %u read, %u in", policy,
                          result.graph->storage_name[s], out, write, read, in);
        }
}

static void check_step(const char *policy, bool once)
{
    laws_check_rows(result.plan);
    laws_check_clock(result.plan, result.line, result.machine);
    laws_check_levels(result.plan, result.line);
    laws_check_report(result.line, result.report, true);
    laws_check_steady(result.plan, true);
    check_ways(policy, once);
}

/* ---- two swaps ----------------------------------------------------------- */

static const char *const ways[] = {
    "te=1,min=1",      "te=2,min=1,to=nvme", "vdnn=all",
    "vdnn=all,to=gds", "checkpoints",        "megatron,modules=core_attn,min=1",
    "belady",          "capuchin,to=nvme",   "auto,to=nvme"};
static const char *const besides[] = {"", "+microbatch:2", "+checkpoint:full",
                                      "+microbatch:2+checkpoint:sqrt"};

/* A refusal says what is wrong and what to do. Returns whether the pair runs.
 */
static bool try_pair(const char *policy)
{
    ms_err err = run(policy);
    if (err != MS_OK) {
        ck_assert_msg(err == MS_EUSAGE || err == MS_EINFEASIBLE, "%s: %s",
                      policy, fault.what);
        ck_assert_uint_gt(strlen(fault.hint), 0);
        return false;
    }
    return true;
}

START_TEST(a_tensor_has_one_mover)
{
    uint32_t ran = 0, n = 0;
    for (size_t a = 0; a < MANY(ways); a++)
        for (size_t b = 0; b < MANY(ways); b++) {
            char policy[160];
            snprintf(policy, sizeof policy, "swap:%s+swap:%s%s", ways[a],
                     ways[b], besides[_i]);
            n += a != b;
            if (!try_pair(policy))
                continue;
            ran++;
            check_step(policy, false);
        }
    ck_assert_uint_gt(3 * ran, n); /* checkpoints ask for a checkpoint */
}
END_TEST

static uint64_t moved_bytes(void)
{
    const ms_rank_report *rank = &result.report->ranks[0];
    return rank->d2h_bytes;
}

/* The first policy takes what it takes alone, and the second one only from what
 * is left. */
START_TEST(the_first_comes_first)
{
    static const char *const seconds[] = {"vdnn=all", "te=2,min=1",
                                          "te=1,min=1,to=nvme"};
    for (size_t i = 0; i < MANY(seconds); i++) {
        char policy[160];
        ck_assert_int_eq(run("swap:megatron,modules=core_attn,min=1"), MS_OK);
        uint64_t alone = moved_bytes();
        snprintf(policy, sizeof policy, "swap:%s", seconds[i]);
        ck_assert_int_eq(run(policy), MS_OK);
        uint64_t second = moved_bytes();
        snprintf(policy, sizeof policy, "swap:vdnn=conv+swap:%s", seconds[i]);
        ck_assert_int_eq(run(policy), MS_OK); /* no convolution: the same */
        ck_assert_uint_eq(moved_bytes(), second);
        snprintf(policy, sizeof policy,
                 "swap:megatron,modules=core_attn,min=1+swap:%s", seconds[i]);
        if (strncmp(seconds[i], "te", 2) == 0) {
            ck_assert_int_eq(run(policy), MS_EUSAGE);
            continue;
        }
        ck_assert_int_eq(run(policy), MS_OK);
        ck_assert_uint_gt(moved_bytes(), alone);
        ck_assert_uint_le(moved_bytes(), alone + second);
    }
}
END_TEST

/* A second policy that finds nothing to move is reported. */
START_TEST(a_second_that_finds_nothing_is_told)
{
    ck_assert_int_eq(run("swap:te=2,min=1+swap:te=1,min=1"), MS_EUSAGE);
    ck_assert_str_eq(fault.what,
                     "the swap before it takes all that this one would move");
    ck_assert_int_eq(run("swap:te=1,min=1+swap:te=2,min=1"), MS_OK);
    check_step("te twice", true);
    ck_assert_int_eq(run("swap:te=1+swap:te=1"), MS_EUSAGE);
    ck_assert_str_eq(fault.what, "policy \"swap\" is given twice");
    ck_assert_int_eq(run("swap:save_on_cpu+swap:te=1"), MS_EUSAGE);
    ck_assert_ptr_nonnull(strstr(fault.what, "take every save"));
}
END_TEST

/* ---- the disk ------------------------------------------------------------ */

/* To the disk and back goes what went to the host, the device's level in host
 * order is the same; host memory holds two buffers and what is read ahead. */
START_TEST(the_disk_takes_what_the_host_did)
{
    static const char *const fixed[] = {"te=2,min=1", "vdnn=all", "checkpoints",
                                        "megatron,modules=core_attn,min=1"};
    for (size_t b = 0; b < MANY(besides); b++) {
        char policy[160];
        snprintf(policy, sizeof policy, "swap:%s%s", fixed[_i], besides[b]);
        if (!try_pair(policy))
            continue;
        check_step(policy, true);
        uint64_t peak = result.report->ranks[0].peak.allocated_bytes;
        uint64_t host = result.report->host_peak_bytes, out = moved_bytes();
        for (int straight = 0; straight < 2; straight++) {
            snprintf(policy, sizeof policy, "swap:%s,to=%s%s", fixed[_i],
                     straight ? "gds" : "nvme", besides[b]);
            ck_assert_msg(run(policy) == MS_OK, "%s: %s", policy, fault.what);
            check_step(policy, true);
            const ms_report *report = result.report;
            ck_assert_uint_eq(report->ranks[0].peak.allocated_bytes, peak);
            ck_assert_uint_le(report->host_peak_bytes, host);
            ck_assert_uint_eq(report->nvme_peak_bytes, host);
            ck_assert_uint_eq(report->ranks[0].nvme_bytes, 2 * out);
            ck_assert_uint_eq(moved_bytes(), straight ? 0 : out);
            ck_assert(!straight || report->host_peak_bytes == 0);
        }
    }
}
END_TEST

/* By hand: six blocks that save their inputs of 100 bytes; te sends those of
 * the first four away, but for the step's own input: 300 bytes go, and the
 * third copy out waits until the disk has what is in the first buffer. */
START_TEST(two_buffers_by_hand)
{
    ms_graph graph;
    laws_chain(6, 100, &keep, &graph);
    laws_outcome out = laws_run_policy(
        &graph, "swap:te=4,min=1,prefetch=1,to=nvme", 10, 1, &keep, &fault);
    ck_assert_int_eq(out.err, MS_OK);
    ck_assert_uint_eq(out.report.nvme_peak_bytes, 300);
    ck_assert_uint_eq(out.report.host_peak_bytes, 200);
    uint32_t copy[8], write[8], n_copies = 0, n_writes = 0;
    for (uint32_t op = 0; op < out.plan.n_ops; op++) {
        if (out.plan.op[op].stream == MS_STREAM_D2H)
            copy[n_copies++] = op;
        if (out.plan.op[op].stream == MS_STREAM_NVME_WRITE)
            write[n_writes++] = op;
    }
    ck_assert_uint_eq(n_copies, 3);
    ck_assert_uint_eq(n_writes, 3);
    bool waits = false;
    for (uint32_t k = out.plan.wait_at[copy[2]];
         k < out.plan.wait_at[copy[2] + 1]; k++)
        waits |= out.plan.wait[k] == write[0];
    ck_assert(waits);
    out =
        laws_run_policy(&graph, "swap:te=4,min=1,to=gds", 10, 1, &keep, &fault);
    ck_assert_uint_eq(out.report.nvme_peak_bytes, 300);
    ck_assert_uint_eq(out.report.host_peak_bytes, 0);
}
END_TEST

static void teardown(void)
{
    ms_arena_free(&keep);
    ms_arena_free(&trial);
}

Suite *suite_movers(void)
{
    Suite *suite = suite_create("movers");
    TCase *tcase = tcase_create("movers");
    tcase_add_checked_fixture(tcase, NULL, teardown);
    tcase_set_timeout(tcase, 120);
    tcase_add_loop_test(tcase, a_tensor_has_one_mover, 0, (int)MANY(besides));
    tcase_add_test(tcase, the_first_comes_first);
    tcase_add_test(tcase, a_second_that_finds_nothing_is_told);
    tcase_add_loop_test(tcase, the_disk_takes_what_the_host_did, 0, 4);
    tcase_add_test(tcase, two_buffers_by_hand);
    suite_add_tcase(suite, tcase);
    return suite;
}
