/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Stages of a pipeline whose states data ranks divide (pipeline:P+fsdp, and
 * ddp and zero besides): each rank exchanges what closed forms say of what it
 * has, in every order, and a stage alone changes nothing. */
#include "graphs/kernels/kernels.h"
#include "sim/graph.h"
#include "sim/plan.h"
#include "sim/program.h"
#include "sim/report.h"
#include "sim/timeline.h"
#include "tests/inlined.h"
#include "tests/laws/laws.h"
#include "tests/tests.h"
#include "tools/job/job.h"
#include "tools/job/result.h"

#include <stdio.h>
#include <string.h>

#define MANY(list) (sizeof(list) / sizeof *(list))
#define RANKS UINT64_C(4) /* that divide the states of a stage */
#define MICRO_BATCHES UINT64_C(8)
#define LAYERS 8
#define BLOCK UINT64_C(49984) /* parameters of one: 12 h^2 + 13 h */

/* All dimensions divide among the ranks. */
static const char model[] =
    "{\"memsim\": 1, \"name\": \"m\", \"family\": \"decoder\", \"config\": "
    "{\"layers\": 8, \"hidden\": 64, \"heads\": 8, \"vocab\": 512, "
    "\"positions\": 32, \"tied\": false}}";

static const struct {
    const char *policy;
    bool splits;       /* backward, into halves */
    uint64_t backward; /* of each stage */
    bool rooms;        /* for messages, all through the step */
} orders[] = {
    {"pipeline:2", false, MICRO_BATCHES, false},
    {"pipeline:4,schedule=gpipe", false, MICRO_BATCHES, false},
    {"pipeline:3,layers=2/3/3,impl=torch", false, MICRO_BATCHES, true},
    {"pipeline:2,schedule=interleaved,chunks=2", false, MICRO_BATCHES, false},
    {"pipeline:4,schedule=zb-h1", true, MICRO_BATCHES, false},
    {"pipeline:2,schedule=zb-v", true, MICRO_BATCHES, false},
    {"pipeline:4,schedule=dualpipe", true, MICRO_BATCHES / 2, false},
    {"pipeline:2,schedule=dualpipev", true, MICRO_BATCHES, false},
    {"pipeline:2,schedule=looped-bfs,chunks=4", false, MICRO_BATCHES, false},
};

static ms_arena keep, trial;
static ms_fault fault;
static ms_result result;

static ms_err run(const char *order, const char *more)
{
    char policy[160];
    snprintf(policy, sizeof policy, "microbatch:%u+%s%s",
             (unsigned)MICRO_BATCHES, order, more);
    return inlined_run(model, MICRO_BATCHES, MS_FLASH, policy, &keep, &trial,
                       &result, &fault);
}

static void must_run(int i, const char *more)
{
    const char *order = orders[i].policy;
    ck_assert_msg(run(order, more) == MS_OK, "%s%s: %s: %s", order, more,
                  fault.what, fault.hint);
    laws_check_levels(result.plan, result.line);
    if (!orders[i].rooms)
        laws_check_steady(result.plan, true);
}

/* What the other ranks have of as many bytes. */
static uint64_t others(uint64_t bytes)
{
    return bytes * (RANKS - 1) / RANKS;
}

static uint32_t blocks_of(uint16_t rank)
{
    bool has[LAYERS] = {false};
    uint32_t n = 0;
    for (uint32_t u = 0; u < result.graph->n_units; u++) {
        uint32_t block = result.graph->unit_block[u];
        if (block == MS_NONE || has[block] ||
            !ms_stage_has(result.program, rank, u))
            continue;
        has[block] = true;
        n++;
    }
    return n;
}

/* Parts of the weights are fp32: all 16 bits of the stage's are gathered once,
 * and its fp32 gradients are scattered once, whatever is recomputed. */
START_TEST(fsdp_once_a_step)
{
    static const char *const more[] = {
        "+fsdp:dp=4", "+fsdp:dp=4,units=split+checkpoint:full",
        "+fsdp:dp=4,units=whole", "+tensor:2+fsdp:dp=4"};
    for (size_t i = 0; i < MANY(more); i++) {
        must_run(_i, more[i]);
        for (uint16_t r = 0; r < result.report->n_ranks; r++) {
            const ms_rank_report *rank = &result.report->ranks[r];
            uint64_t elements = rank->parameters_bytes * RANKS / 4;
            ck_assert_msg(
                rank->group_bytes[MS_GROUP_DATA] == others((2 + 4) * elements),
                "%s%s: rank %u", orders[_i].policy, more[i], (unsigned)r);
        }
    }
}
END_TEST

/* How often a rank's blocks are gathered where they let go behind forward: by
 * a forward behind another, and by a backward behind a forward. */
static uint64_t gathers_of(uint16_t rank)
{
    const ms_program *program = result.program;
    bool whole[LAYERS] = {false};
    uint32_t now = MS_NONE, micro_batch = 0; /* whose forward is under way */
    uint64_t n = 0;
    for (uint32_t i = 0; i < program->n_calls; i++) {
        const ms_call *call = &program->calls[i];
        if (call->verb != MS_RUN || call->rank != rank ||
            call->run.pass == MS_GRAD_WEIGHT)
            continue;
        uint32_t block = result.graph->unit_block[call->unit];
        bool forward = call->run.pass == MS_FORWARD;
        bool on = forward && block == now && call->micro_batch == micro_batch;
        if (now != MS_NONE && !on)
            whole[now] = false;
        if (block != MS_NONE) {
            n += !whole[block];
            whole[block] = true;
        }
        now = forward ? block : MS_NONE;
        micro_batch = call->micro_batch;
    }
    return n;
}

START_TEST(fsdp_that_lets_go)
{
    must_run(_i, "+fsdp:dp=4,reshard=yes");
    for (uint16_t r = 0; r < result.report->n_ranks; r++) {
        const ms_rank_report *rank = &result.report->ranks[r];
        uint64_t elements = rank->parameters_bytes * RANKS / 4;
        uint64_t blocks = blocks_of(r) * BLOCK;
        ck_assert_uint_eq(rank->group_bytes[MS_GROUP_DATA],
                          others(2 * (elements - blocks) +
                                 2 * gathers_of(r) * BLOCK + 4 * elements));
    }
}
END_TEST

/* Of both directions of DualPipe, too: whoever made gradients sums them.  Where
 * backward is split, a sum may find those of two micro-batches. */
START_TEST(sums_of_each_rank)
{
    static const char *const more[] = {"+ddp:dp=4", "+zero:1,dp=4",
                                       "+zero:2,dp=4"};
    for (size_t stage = 0; stage < MANY(more); stage++) {
        must_run(_i, more[stage]);
        for (uint16_t r = 0; r < result.report->n_ranks; r++) {
            const ms_rank_report *rank = &result.report->ranks[r];
            uint64_t once = others(rank->parameters_bytes);
            uint64_t sums = stage == 2 ? orders[_i].backward : 1;
            uint64_t bytes = rank->group_bytes[MS_GROUP_DATA];
            if (stage == 0 && !orders[_i].rooms) /* its buckets */
                ck_assert_uint_eq(rank->category_peaks[MS_COMMUNICATION],
                                  rank->gradients_bytes);
            if (orders[_i].splits && stage == 2) {
                ck_assert_uint_le(bytes, once * (sums + 1));
                ck_assert_uint_gt(bytes, once * sums);
            } else /* and the updated weights, or the sum, to all */
                ck_assert_msg(bytes == once * (sums + 1), "%s%s: rank %u",
                              orders[_i].policy, more[stage], (unsigned)r);
        }
    }
}
END_TEST

/* Whoever has a stage has its optimizer's states in host memory, and what goes
 * to and fro for them: together as one rank alone, each rank's share of an op's
 * bytes rounded up.  Gradients come at other times. */
START_TEST(states_on_the_host)
{
    static const char *const more[] = {
        "+zero:1,dp=4+offload:optimizer",
        "+zero:1,dp=4,impl=megatron+offload:optimizer",
        "+fsdp:dp=4+offload:optimizer"};
    for (size_t i = 0; i < MANY(more) && orders[_i].backward > 4; i++) {
        ck_assert_msg(run("", more[i] + 1) == MS_OK, "%s: %s", more[i],
                      fault.what);
        struct ms_far_memory whole = result.report->far[MS_HOST_POOL];
        const ms_rank_report *rank = &result.report->ranks[0];
        uint64_t moved = rank->h2d_bytes + rank->d2h_bytes, parts = 0;
        must_run(_i, more[i]);
        const struct ms_far_memory *host = &result.report->far[MS_HOST_POOL];
        uint32_t n = result.report->n_ranks;
        for (uint32_t r = 0; r < n; r++) {
            rank = &result.report->ranks[r];
            parts += rank->h2d_bytes + rank->d2h_bytes;
        }
        ck_assert_uint_ge(parts, moved);
        ck_assert_uint_le(parts, moved + 2 * (uint64_t)n);
        ck_assert_uint_eq(host->by_category[MS_OPTIMIZER_STATE],
                          whole.by_category[MS_OPTIMIZER_STATE]);
        ck_assert_uint_le(host->peak_bytes, whole.peak_bytes);
        uint64_t most = 0; /* 8 ranks are a node of the default device */
        for (uint32_t r = 0; r < n; r += 8 / RANKS) {
            uint64_t held = 0;
            for (uint32_t k = r; k < r + 8 / RANKS && k < n; k++)
                held += RANKS *
                        result.report->ranks[k].far[MS_HOST_POOL].peak_bytes;
            most = held > most ? held : most;
        }
        ck_assert_uint_eq(host->node_bytes, most);
    }
}
END_TEST

/* Products read copies of the weights alone, which last; no bias says whose the
 * layers are.  dualpipe has each layer on two ranks. */
static const char copied[] =
    "{\"memsim\": 1, \"name\": \"c\", \"family\": \"decoder\", \"config\": "
    "{\"layers\": 8, \"hidden\": 64, \"heads\": 8, \"vocab\": 512, "
    "\"positions\": 32, \"tied\": false, \"bias\": false, \"norm_type\": "
    "\"rms_norm\"}}";

/* Sums over ranks of weights, gradients and optimizer state. */
static void states_of(const char *policy, const ms_training *like,
                      uint64_t sums[3])
{
    ms_job job;
    inlined_begin(&job, &keep, &trial, &fault);
    job.training = *like;
    job.training.batch = (int64_t)MICRO_BATCHES;
    ck_assert_msg(inlined_step(copied, policy, &job, &keep, &trial, &result,
                               &fault) == MS_OK,
                  "%s: %s: %s", policy, fault.what, fault.hint);
    memset(sums, 0, 3 * sizeof *sums);
    for (uint32_t r = 0; r < result.report->n_ranks; r++) {
        const ms_rank_report *rank = &result.report->ranks[r];
        sums[0] += rank->parameters_bytes;
        sums[1] += rank->gradients_bytes;
        sums[2] += rank->optimizer_state_bytes;
    }
}

static void compare_parts(const char *order, const ms_training *like)
{
    bool twice = strcmp(order, "pipeline:4,schedule=dualpipe") == 0;
    uint64_t whole[3], parts[3];
    char policy[160];
    snprintf(policy, sizeof policy, "microbatch:8+%s", order);
    states_of("microbatch:8", like, whole);
    states_of(policy, like, parts);
    for (int i = 0; i < 3; i++)
        ck_assert_uint_eq(parts[i], (twice ? 2 : 1) * whole[i]);
}

START_TEST(copies_have_their_weights_states)
{
    ms_training like;
    ms_training_init(&like);
    for (like.fp8_weights = 0; like.fp8_weights < 4; like.fp8_weights++) {
        like.precision = MS_FP8;
        compare_parts(orders[_i].policy, &like);
        like.precision = MS_FP8_PRIMARY;
        compare_parts(orders[_i].policy, &like);
    }
}
END_TEST

/* Megatron's: those of the master copies exist at the step alone. */
START_TEST(gradients_of_each_rank)
{
    static const int64_t precisions[] = {MS_BF16_MIXED, MS_BF16_REMAINDERS,
                                         MS_FP8, MS_FP16_MIXED};
    static const int64_t formats[] = {MS_GRADIENTS_AUTO, MS_GRADIENTS_WEIGHTS};
    ms_training like;
    ms_training_init(&like);
    like.kernels = MS_MEGATRON;
    for (size_t p = 0; p < MANY(precisions); p++)
        for (size_t f = 0; f < MANY(formats); f++) {
            like.precision = precisions[p];
            like.gradients = formats[f];
            compare_parts(orders[_i].policy, &like);
        }
}
END_TEST

START_TEST(one_stage_changes_nothing)
{
    static const char *const more[] = {"", "+checkpoint:full"};
    for (size_t i = 0; i < MANY(more); i++) {
        char words[64];
        snprintf(words, sizeof words, "+fsdp:dp=4%s", more[i]);
        ck_assert_int_eq(run("pipeline:1", words), MS_OK);
        ck_assert_int_eq(result.program->n_stages, 0);
        uint64_t peak = result.report->ranks[0].peak.allocated_bytes;
        uint64_t step_ns = result.line->step_ns;
        ck_assert_int_eq(run("", words + 1), MS_OK);
        ck_assert_uint_eq(result.report->ranks[0].peak.allocated_bytes, peak);
        ck_assert_uint_eq(result.line->step_ns, step_ns);
    }
}
END_TEST

START_TEST(what_is_refused)
{
    static const struct {
        const char *more, *hint;
    } bad[] = {
        {"+fsdp:impl=1,dp=4", "leave impl=1 out beside pipeline"},
        {"+fsdp:code=megatron,dp=4",
         "take fsdp or zero:1,impl=megatron beside pipeline"},
        {"+fsdp:dp=4,sync=each", "leave it out beside pipeline"},
        {"+zero:1,dp=4,impl=megatron+offload:optimizer,percent=50",
         "leave percent or pipeline out"},
    };
    for (size_t i = 0; i < MANY(bad); i++) {
        ck_assert_int_eq(run("pipeline:2", bad[i].more), MS_EUSAGE);
        ck_assert_str_eq(fault.hint, bad[i].hint);
    }
}
END_TEST

static void teardown(void)
{
    ms_arena_free(&keep);
    ms_arena_free(&trial);
}

Suite *suite_stagestates(void)
{
    Suite *suite = suite_create("stagestates");
    TCase *tcase = tcase_create("stagestates");
    tcase_add_checked_fixture(tcase, NULL, teardown);
    tcase_set_timeout(tcase, 60);
    tcase_add_loop_test(tcase, fsdp_once_a_step, 0, MANY(orders));
    tcase_add_loop_test(tcase, fsdp_that_lets_go, 0, MANY(orders));
    tcase_add_loop_test(tcase, sums_of_each_rank, 0, MANY(orders));
    tcase_add_loop_test(tcase, states_on_the_host, 0, MANY(orders));
    tcase_add_loop_test(tcase, copies_have_their_weights_states, 0,
                        MANY(orders));
    tcase_add_loop_test(tcase, gradients_of_each_rank, 0, MANY(orders));
    tcase_add_test(tcase, one_stage_changes_nothing);
    tcase_add_test(tcase, what_is_refused);
    suite_add_tcase(suite, tcase);
    return suite;
}
