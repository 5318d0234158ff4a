/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Swaps of saved activations beside pipelines: in every order each micro-batch
 * of each rank brings back what it has sent away, as much as a walk over the
 * turns says, no rank's peak rises by more than what is sent for ahead, a node
 * holds what its ranks do, and a stage alone changes nothing. */
#include "graphs/kernels/kernels.h"
#include "sim/graph.h"
#include "sim/plan.h"
#include "sim/program.h"
#include "sim/report.h"
#include "sim/schedule/schedule.h"
#include "sim/timeline.h"
#include "tests/inlined.h"
#include "tests/laws/laws.h"
#include "tests/tests.h"
#include "tools/job/job.h"
#include "tools/job/result.h"

#include <stdio.h>
#include <string.h>

#define MANY(list) (sizeof(list) / sizeof *(list))
#define MICRO_BATCHES 8u
#define LAYERS 8u
#define MOST_RANKS 4u
#define MESSAGE (UINT64_C(32) * 64 * 2) /* positions, hidden, 16 bits */

static const char model[] =
    "{\"memsim\": 1, \"name\": \"m\", \"family\": \"decoder\", \"config\": "
    "{\"layers\": 8, \"hidden\": 64, \"heads\": 8, \"vocab\": 512, "
    "\"positions\": 32, \"tied\": false}}";

static const struct {
    const char *policy;
    bool torch, splits;
} orders[] = {
    {"pipeline:2", false, false},
    {"pipeline:4", false, false},
    {"pipeline:4,schedule=gpipe", false, false},
    {"pipeline:3,layers=2/3/3,impl=torch", true, false},
    {"pipeline:2,schedule=interleaved,chunks=2", false, false},
    {"pipeline:2,schedule=interleaved,chunks=4,impl=torch", true, false},
    {"pipeline:4,schedule=zb-h1", false, true},
    {"pipeline:2,schedule=zb-v", false, true},
    {"pipeline:4,schedule=dualpipe", false, true},
    {"pipeline:2,schedule=dualpipev", false, true},
    {"pipeline:2,schedule=looped-bfs,chunks=4", false, false},
};

#define MODULES "+swap:megatron,min=16B,modules="

static const struct {
    const char *policy, *without;
    bool hooks; /* torch's, on whole backwards */
} swaps[] = {
    {MODULES "mlp_norm", "", false},
    {MODULES "core_attn/attn_proj/mlp_norm", "", false},
    {MODULES "core_attn/attn_proj,fraction=50,inflight=1,prefetch=2", "",
     false},
    {MODULES "qkv_linear,to=nvme", "", false},
    {MODULES "qkv_linear,to=gds,prefetch=0", "", false},
    {MODULES "mlp_norm+checkpoint:modules=mlp", "+checkpoint:modules=mlp",
     false},
    {"+swap:checkpoints,min=16B+checkpoint:full", "+checkpoint:full", false},
    {"+swap:checkpoints,min=16B,prefetch=3+checkpoint:full,variant=reentrant",
     "+checkpoint:full,variant=reentrant", false},
    {"+swap:checkpoints,min=16B,to=nvme+checkpoint:full,early_stop=0",
     "+checkpoint:full,early_stop=0", false},
    {"+swap:save_on_cpu", "", true},
    {"+swap:save_on_cpu,pin=0+checkpoint:full", "+checkpoint:full", true},
};

static ms_arena keep, trial;
static ms_fault fault;
static ms_result result;

static ms_err run(const char *order, const char *more)
{
    char policy[200];
    snprintf(policy, sizeof policy, "microbatch:%u%s%s%s", MICRO_BATCHES,
             order[0] != '\0' ? "+" : "", order, more);
    return inlined_run(model, MICRO_BATCHES, MS_FLASH, policy, &keep, &trial,
                       &result, &fault);
}

static void must_run(const char *order, const char *more)
{
    ck_assert_msg(run(order, more) == MS_OK, "%s%s: %s: %s", order, more,
                  fault.what, fault.hint);
}

static bool applies(int order, size_t swap)
{
    return !swaps[swap].hooks || (orders[order].torch && !orders[order].splits);
}

static uint64_t bytes_of(const ms_call *call)
{
    const ms_program *program = result.program;
    uint64_t bytes = 0;
    for (uint32_t i = program->set_at[call->set];
         i < program->set_at[call->set + 1]; i++)
        bytes += result.graph->storage_bytes[program->set_item[i]];
    return bytes;
}

/* ---- what leaves comes back ---------------------------------------------- */

/* By the calls: what each micro-batch of the rank sends away and for. */
static void check_calls(uint16_t rank)
{
    const ms_program *program = result.program;
    uint64_t out[MICRO_BATCHES] = {0}, in[MICRO_BATCHES] = {0};
    for (uint32_t i = 0; i < program->n_calls; i++) {
        const ms_call *call = &program->calls[i];
        bool ahead = call->verb == MS_MOVE && call->move.to == MS_HOST &&
                     i > 0 && program->calls[i - 1].verb == MS_MOVE &&
                     program->calls[i - 1].move.to == MS_HERE;
        if (call->verb != MS_MOVE || call->rank != rank || ahead)
            continue; /* the disk is read for the next copy in */
        bool back = call->move.to == MS_HERE;
        (back ? in : out)[call->micro_batch] += bytes_of(call);
    }
    ck_assert(memcmp(out, in, sizeof out) == 0);
}

START_TEST(all_comes_back)
{
    for (size_t s = 0; s < MANY(swaps); s++) {
        uint64_t moved = 0;
        if (!applies(_i, s))
            continue;
        must_run(orders[_i].policy, swaps[s].policy);
        laws_check_levels(result.plan, result.line);
        for (uint16_t r = 0; r < result.report->n_ranks; r++) {
            const ms_rank_report *rank = &result.report->ranks[r];
            const ms_link_use *links = rank->links;
            moved += rank->d2h_bytes + links[MS_LINK_NVME_WRITE].bytes;
            ck_assert_msg(rank->d2h_bytes == rank->h2d_bytes, "%s%s: rank %u",
                          orders[_i].policy, swaps[s].policy, (unsigned)r);
            ck_assert_uint_eq(links[MS_LINK_NVME_READ].bytes,
                              links[MS_LINK_NVME_WRITE].bytes);
            if (!swaps[s].hooks)
                check_calls(r);
        }
        ck_assert_uint_gt(moved, 0);
    }
}
END_TEST

/* ---- how much: a naive walk over the turns ------------------------------- */

/* The rank's next call from i on that begins another turn's backward; a turn
 * is what runs of one stage on one micro-batch one after the other. */
static bool own_is_next(uint32_t i)
{
    const ms_program *program = result.program;
    const ms_call *call = &program->calls[i];
    ms_turn own = ms_schedule_turn_of(program, call);
    while (++i < program->n_calls) {
        const ms_call *next = &program->calls[i];
        if (next->verb != MS_RUN || next->rank != call->rank ||
            next->run.pass != MS_GRAD_INPUT)
            continue;
        ms_turn turn = ms_schedule_turn_of(program, next);
        return turn.stage == own.stage && turn.micro_batch == own.micro_batch;
    }
    return false;
}

static bool is_last_block(const ms_call *call)
{
    const ms_program *program = result.program;
    const uint32_t *block = result.graph->unit_block;
    ms_turn turn = ms_schedule_turn_of(program, call);
    const ms_stage *stage = &program->stages[turn.stage];
    uint32_t last = MS_NONE;
    for (uint32_t u = stage->first; u <= stage->last; u++)
        last = block[u] != MS_NONE ? block[u] : last;
    return block[call->unit] == last;
}

/* Every block's input of the second norm but, where no other backward comes
 * first, that of a stage's last block. */
static uint64_t sends(uint16_t rank)
{
    const ms_program *program = result.program;
    const uint32_t *block = result.graph->unit_block;
    uint64_t n = 0;
    for (uint32_t i = 0; i < program->n_calls; i++) {
        const ms_call *call = &program->calls[i];
        if (call->verb != MS_RUN || call->rank != rank ||
            call->run.pass != MS_FORWARD || block[call->unit] == MS_NONE ||
            (call->unit > 0 && block[call->unit - 1] == block[call->unit]))
            continue; /* not the first unit of a block */
        n += !(is_last_block(call) && own_is_next(i));
    }
    return n;
}

START_TEST(groups_of_each_turn)
{
    must_run(orders[_i].policy, swaps[0].policy);
    for (uint16_t r = 0; r < result.report->n_ranks; r++)
        ck_assert_msg(result.report->ranks[r].d2h_bytes == sends(r) * MESSAGE,
                      "%s: rank %u: %llu of %llu", orders[_i].policy,
                      (unsigned)r,
                      (unsigned long long)result.report->ranks[r].d2h_bytes,
                      (unsigned long long)(sends(r) * MESSAGE));
}
END_TEST

/* A checkpoint a block, and nothing of it stays. */
START_TEST(checkpoints_of_each_turn)
{
    must_run(orders[_i].policy, "+swap:checkpoints,min=16B+checkpoint:full");
    uint64_t bytes = 0;
    for (uint16_t r = 0; r < result.report->n_ranks; r++)
        bytes += result.report->ranks[r].d2h_bytes;
    ck_assert_uint_eq(bytes, LAYERS * MICRO_BATCHES * MESSAGE);
}
END_TEST

/* ---- memory -------------------------------------------------------------- */

/* The most that one copy in makes room for. */
static uint64_t largest_set(void)
{
    const ms_program *program = result.program;
    uint64_t most = 0;
    for (uint32_t i = 0; i < program->n_calls; i++)
        if (program->calls[i].verb == MS_MOVE &&
            bytes_of(&program->calls[i]) > most)
            most = bytes_of(&program->calls[i]);
    return most;
}

START_TEST(peaks_do_not_rise)
{
    for (size_t s = 0; s < MANY(swaps); s++) {
        uint64_t before[MOST_RANKS];
        if (!applies(_i, s))
            continue;
        must_run(orders[_i].policy, swaps[s].without);
        for (uint16_t r = 0; r < result.report->n_ranks; r++)
            before[r] = result.report->ranks[r].peak.allocated_bytes;
        must_run(orders[_i].policy, swaps[s].policy);
        for (uint16_t r = 0; r < result.report->n_ranks; r++) {
            uint64_t peak = result.report->ranks[r].peak.allocated_bytes;
            ck_assert_msg(peak <= before[r] + largest_set(),
                          "%s%s: rank %u: %llu, %llu without",
                          orders[_i].policy, swaps[s].policy, (unsigned)r,
                          (unsigned long long)peak,
                          (unsigned long long)before[r]);
        }
    }
}
END_TEST

/* Four ranks beside each of the stage, eight on a node: two stages. */
START_TEST(a_node_holds_two_stages)
{
    for (size_t s = 0; s < MANY(swaps); s++) {
        uint64_t most[2] = {0}, all = 0;
        char more[160];
        if (!applies(_i, s))
            continue;
        snprintf(more, sizeof more, "+ddp:dp=4%s", swaps[s].policy);
        must_run(orders[_i].policy, more);
        const ms_report *report = result.report;
        const struct ms_far_memory *host = &report->far[MS_HOST_POOL];
        for (uint16_t r = 0; r < report->n_ranks; r += 2) {
            uint64_t bytes[2] = {0};
            for (uint16_t k = r; k < r + 2 && k < report->n_ranks; k++) {
                bytes[0] += 4 * report->ranks[k].far[MS_HOST_POOL].peak_bytes;
                bytes[1] +=
                    4 * report->ranks[k].far[MS_HOST_POOL].reserved_bytes;
            }
            for (int i = 0; i < 2; i++)
                most[i] = bytes[i] > most[i] ? bytes[i] : most[i];
            all += bytes[0];
        }
        ck_assert_uint_eq(host->node_bytes, most[0]);
        ck_assert_uint_eq(host->node_reserved_bytes, most[1]);
        ck_assert_uint_ge(all, 4 * host->peak_bytes);
    }
}
END_TEST

/* ---- one stage, and what is refused -------------------------------------- */

START_TEST(one_stage_changes_nothing)
{
    for (size_t s = 0; s < MANY(swaps); s++) {
        must_run("", swaps[s].policy);
        struct ms_far_memory host = result.report->far[MS_HOST_POOL];
        ms_rank_report rank = result.report->ranks[0];
        uint32_t n_calls = result.program->n_calls;
        must_run("pipeline:1", swaps[s].policy);
        const ms_rank_report *now = &result.report->ranks[0];
        ck_assert_uint_eq(result.program->n_calls, n_calls);
        ck_assert_uint_eq(now->peak.allocated_bytes, rank.peak.allocated_bytes);
        ck_assert_uint_eq(now->time.step_ns, rank.time.step_ns);
        ck_assert_uint_eq(now->d2h_bytes, rank.d2h_bytes);
        ck_assert(
            memcmp(&result.report->far[MS_HOST_POOL], &host, sizeof host) == 0);
    }
}
END_TEST

START_TEST(what_is_refused)
{
    static const char other[] =
        "take swap:megatron, checkpoints or save_on_cpu";
    static const struct {
        const char *order, *more, *hint;
    } bad[] = {
        {"pipeline:2", "+swap:te=2", other},
        {"pipeline:2", "+swap:torchtune", other},
        {"pipeline:2", "+swap:trl", other},
        {"pipeline:2", "+swap:layers+offload:optimizer", other},
        {"pipeline:2", "+swap:vdnn=all", other},
        {"pipeline:2", "+swap:vdnn=dyn", other},
        {"pipeline:2", "+swap:belady", other},
        {"pipeline:2", "+swap:capuchin", other},
        {"pipeline:2", "+swap:superneurons", other},
        {"pipeline:2", "+swap:auto", other},
        {"pipeline:2", "+checkpoint:full+swap:checkpoints,impl=deepspeed",
         "leave impl=deepspeed or pipeline out"},
        {"pipeline:2", "+swap:save_on_cpu",
         "add impl=torch to pipeline, or take swap:megatron"},
        {"pipeline:2,schedule=zb-h1,impl=torch", "+swap:save_on_cpu",
         "take a schedule with whole backwards, or swap:megatron"},
        {"pipeline:2", "+swap:checkpoints",
         "add a checkpoint policy, e.g. checkpoint:full"},
    };
    for (size_t i = 0; i < MANY(bad); i++) {
        ck_assert_int_eq(run(bad[i].order, bad[i].more), MS_EUSAGE);
        ck_assert_str_eq(fault.hint, bad[i].hint);
    }
}
END_TEST

static void teardown(void)
{
    ms_arena_free(&keep);
    ms_arena_free(&trial);
}

Suite *suite_stageswaps(void)
{
    Suite *suite = suite_create("stageswaps");
    TCase *tcase = tcase_create("stageswaps");
    tcase_add_checked_fixture(tcase, NULL, teardown);
    tcase_set_timeout(tcase, 60);
    tcase_add_loop_test(tcase, all_comes_back, 0, MANY(orders));
    tcase_add_loop_test(tcase, groups_of_each_turn, 0, MANY(orders));
    tcase_add_loop_test(tcase, checkpoints_of_each_turn, 0, MANY(orders));
    tcase_add_loop_test(tcase, peaks_do_not_rise, 0, MANY(orders));
    tcase_add_loop_test(tcase, a_node_holds_two_stages, 0, MANY(orders));
    tcase_add_test(tcase, one_stage_changes_nothing);
    tcase_add_test(tcase, what_is_refused);
    suite_add_tcase(suite, tcase);
    return suite;
}
