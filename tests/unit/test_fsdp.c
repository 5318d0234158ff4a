/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The timelines of policies/sources.md 5 on three equal blocks and
 * nothing else, by hand. */
#include "policies/common/policy.h"
#include "sim/names.h"
#include "sim/plan.h"
#include "sim/report.h"
#include "tests/inlined.h"
#include "tests/tests.h"
#include "tools/cli/commands.h"
#include "tools/job/job.h"
#include "tools/job/result.h"
#include "tools/job/settings.h"

static const char model[] =
    "{\"memsim\": 1, \"name\": \"mlp\", \"input\": {\"shape\": [32]}, "
    "\"layers\": [{\"repeat\": 3, \"name\": \"h\", \"layers\": ["
    "{\"type\": \"linear\", \"out\": 32, \"bias\": false}, "
    "{\"type\": \"gelu\"}]}, {\"type\": \"mean\"}]}";
#define BLOCKS UINT64_C(3)
#define PARAMETERS UINT64_C(1024) /* of a block */
#define RANKS UINT64_C(4)
#define WEIGHT UINT64_C(2)  /* bytes: bf16 */
#define REDUCED UINT64_C(4) /* fp32 */

static ms_arena keep, trial;
static ms_fault fault;
static ms_result result;

static ms_err try_policy(const char *policy)
{
    ms_job job;
    inlined_begin(&job, &keep, &trial, &fault);
    job.training.batch = 8;
    return inlined_step(model, policy, &job, &keep, &trial, &result, &fault);
}

static void run_policy(const char *policy)
{
    ck_assert_msg(try_policy(policy) == MS_OK, "%s: %s: %s", policy,
                  fault.where, fault.what);
}

static void teardown(void)
{
    ms_arena_free(&keep);
    ms_arena_free(&trial);
}

/* ---- every allocation and free ------------------------------------------- */

/* What a letter of a script stands for. */
static uint64_t bytes_of(char letter)
{
    switch (letter) {
    case 'c': /* the rank's part, cast */
        return WEIGHT * PARAMETERS / RANKS;
    case 'a': /* what an all-gather fills */
    case 'u': /* unsharded weights */
    case 'g': /* their gradients */
    case 'f': /* FSDP1: these joined */
        return WEIGHT * PARAMETERS;
    case 'k': /* half of the weights */
        return WEIGHT * PARAMETERS / 2;
    case 'r': /* the input of a reduce-scatter */
        return REDUCED * PARAMETERS;
    case 's': /* the rank's gradients */
        return 4 * PARAMETERS / RANKS;
    default:
        ck_abort_msg("letter %c", letter);
    }
}

typedef struct script {
    const char *at;
    uint64_t level_bytes, peak_bytes, forward_bytes; /* its peak */
} script;

static void follow(script *s, const ms_row *row, char sign)
{
    bool counts =
        row->category == MS_COMMUNICATION || row->category == MS_GRADIENTS;
    if (!counts || row->pool != MS_DEVICE_POOL)
        return;
    ck_assert_msg(s->at[0] == sign, "%c%u bytes where the script says %s", sign,
                  (unsigned)row->bytes, s->at);
    ck_assert_msg(row->bytes == bytes_of(s->at[1]),
                  "%u bytes where the script says %s", (unsigned)row->bytes,
                  s->at);
    s->level_bytes += sign == '+' ? row->bytes : 0 - row->bytes;
    if (s->level_bytes > s->peak_bytes)
        s->peak_bytes = s->level_bytes;
    s->at += 2;
    while (*s->at == ' ')
        s->at++;
}

/* Buffers, unsharded weights and gradients come and go as the script says. */
static script walk(const char *text)
{
    const ms_plan *plan = result.plan;
    script s = {.at = text};
    for (uint32_t op = 0; op < plan->n_ops; op++) {
        if (plan->op[op].pass <= MS_LOSS)
            s.forward_bytes = s.peak_bytes;
        for (uint32_t r = plan->op[op].alloc_at; r < plan->op[op + 1].alloc_at;
             r++)
            follow(&s, &plan->row[r], '+');
        for (uint32_t i = plan->op[op].release_at;
             i < plan->op[op + 1].release_at; i++)
            follow(&s, &plan->row[plan->release[i]], '-');
    }
    ck_assert_str_eq(s.at, "");
    return s;
}

/* A block's all-gather output outlives the next one's start in forward, not in
 * backward; a reduce-scatter's input lives until the next one's is wanted. */
START_TEST(fsdp2)
{
    run_policy("fsdp:dp=4");
    script s = walk("+c +a -c +u -u "
                    "+c +a -c -a +u -u "
                    "+c +a -c -a +u -u -a "
                    "+c +a -c +u -a +c +a -c +g -u +r -g +s "
                    "+u -a +c +a -c +g -u -r +r -g +s "
                    "+u -a +g -u -r +r -g +s -r ");
    /* Two outputs, or one and the unsharded weights, and a part cast. */
    ck_assert_uint_eq(s.forward_bytes, 2 * WEIGHT * PARAMETERS + bytes_of('c'));
    /* At the end of the middle block's backward: u, the next a, g, the last r,
     * and the one part of gradients that is there. */
    ck_assert_uint_eq(s.peak_bytes,
                      (3 * WEIGHT + REDUCED) * PARAMETERS + bytes_of('s'));
    ck_assert_uint_eq(s.level_bytes, BLOCKS * bytes_of('s'));
}
END_TEST

/* Replays find their weights there: what is gathered is the same. */
START_TEST(fsdp2_checkpoint)
{
    run_policy("fsdp:dp=4+checkpoint:full");
    walk("+c +a -c +u -u "
         "+c +a -c -a +u -u "
         "+c +a -c -a +u -u -a "
         "+c +a -c +u -a +c +a -c +g -u +r -g +s "
         "+u -a +c +a -c +g -u -r +r -g +s "
         "+u -a +g -u -r +r -g +s -r ");
    ck_assert_uint_gt(result.plan->recomputed_ops, 0);
}
END_TEST

/* SHARD_GRAD_OP in FSDP2's words. */
START_TEST(fsdp2_stays)
{
    run_policy("fsdp:dp=4,reshard=no");
    walk("+c +a -c +u +c +a -c -a +u +c +a -c -a +u -a "
         "+g -u +r -g +s +g -u -r +r -g +s +g -u -r +r -g +s -r ");
}
END_TEST

/* Pairs keep the weights between forward and backward, half of them each ('k'),
 * and gather within the pair. */
START_TEST(fsdp2_pairs)
{
    uint64_t weights = BLOCKS * WEIGHT * PARAMETERS;
    run_policy("fsdp:dp=4,reshard_ranks=2");
    walk("+c +a -c +u +k -u "
         "+c +a -c -a +u +k -u "
         "+c +a -c -a +u +k -u -a "
         "+a +u -k -a +a +g -u +r -g +s "
         "+u -k -a +a +g -u -r +r -g +s "
         "+u -k -a +g -u -r +r -g +s -r ");
    uint64_t sent = 0;
    for (uint32_t i = 0; i < result.plan->n_transfers; i++)
        if (result.plan->transfers[i].kind == MS_TRANSFER_GATHER)
            sent += result.plan->transfers[i].bytes;
    ck_assert_uint_eq(sent, weights * 3 / 4 + weights / 2);
}
END_TEST

/* One rank alone sends nothing, and still copies. */
START_TEST(alone)
{
    run_policy("fsdp:dp=1");
    const ms_plan *plan = result.plan;
    uint64_t copies = 0;
    for (uint32_t r = 0; r < plan->n_rows; r++)
        copies += plan->row[r].category == MS_COMMUNICATION &&
                  plan->row[r].bytes == WEIGHT * PARAMETERS;
    ck_assert_uint_eq(copies, 3 * BLOCKS); /* twice weights, once gradients */
    ck_assert_uint_eq(result.report->ranks[0].comm_bytes, 0);
    ck_assert_uint_eq(result.report->ranks[0].parameters_bytes,
                      4 * BLOCKS * PARAMETERS);
}
END_TEST

/* Weights are views of what is gathered; gradients are joined, then cast. */
START_TEST(fsdp1)
{
    run_policy("fsdp:impl=1,dp=4");
    script s = walk("+c +u -c -u +c +u -c -u +c +u -c -u "
                    "+c +u -c +c +u -c +g +f -g -u +r -f +s -r "
                    "+c +u -c +g +f -g -u +r -f +s -r "
                    "+g +f -g -u +r -f +s -r ");
    ck_assert_uint_eq(s.level_bytes, BLOCKS * bytes_of('s'));
    run_policy("fsdp:impl=1,dp=4,prefetch=post");
    walk("+c +u -c -u +c +u -c -u +c +u -c -u "
         "+c +u -c +g +f -g -u +c +u -c +r -f +s -r "
         "+g +f -g -u +c +u -c +r -f +s -r "
         "+g +f -g -u +r -f +s -r ");
    run_policy("fsdp:impl=1,dp=4,prefetch=none,forward_prefetch=1");
    walk("+c +u -c +c +u -c -u +c +u -c -u -u "
         "+c +u -c +g +f -g -u +r -f +s -r "
         "+c +u -c +g +f -g -u +r -f +s -r "
         "+c +u -c +g +f -g -u +r -f +s -r ");
    /* parts of 16 bits are gathered, and sums are of them, as they are */
    run_policy("fsdp:impl=1,dp=4,masters=optimizer");
    s = walk("+u -u +u -u +u -u +u +u +g +f -g -u +c -f "
             "+u +g +f -g -u +c -f +g +f -g -u +c -f ");
    ck_assert_uint_eq(s.level_bytes, BLOCKS * bytes_of('c'));
}
END_TEST

/* ---- volumes and states -------------------------------------------------- */

static uint64_t moved(ms_transfer_kind kind, uint32_t *count)
{
    const ms_plan *plan = result.plan;
    uint64_t bytes = 0;
    *count = 0;
    for (uint32_t i = 0; i < plan->n_transfers; i++) {
        if (plan->transfers[i].kind != kind)
            continue;
        bytes += plan->transfers[i].bytes;
        (*count)++;
    }
    return bytes;
}

static void expect_moved(ms_transfer_kind kind, uint64_t count, uint64_t bytes)
{
    uint32_t n;
    ck_assert_uint_eq(moved(kind, &n), bytes);
    ck_assert_uint_eq(n, count);
}

/* Per micro-batch a unit is gathered twice and scattered once. */
START_TEST(volumes)
{
    uint64_t weights = BLOCKS * WEIGHT * PARAMETERS * (RANKS - 1) / RANKS;
    uint64_t grads = BLOCKS * REDUCED * PARAMETERS * (RANKS - 1) / RANKS;
    run_policy("fsdp:dp=4+microbatch:2");
    expect_moved(MS_TRANSFER_GATHER, 2 * 2 * BLOCKS, 2 * 2 * weights);
    expect_moved(MS_TRANSFER_SCATTER, 2 * BLOCKS, 2 * grads);
    run_policy("fsdp:dp=4,sync=last+microbatch:2");
    expect_moved(MS_TRANSFER_GATHER, 2 * 2 * BLOCKS, 2 * 2 * weights);
    expect_moved(MS_TRANSFER_SCATTER, BLOCKS, grads);
    run_policy("fsdp:impl=1,dp=4,strategy=shard_grad_op,sync=last"
               "+microbatch:2");
    expect_moved(MS_TRANSFER_GATHER, BLOCKS, weights);
    expect_moved(MS_TRANSFER_SCATTER, BLOCKS, grads);
    run_policy("fsdp:dp=4,reduce=bf16");
    expect_moved(MS_TRANSFER_SCATTER, BLOCKS, grads / 2);
    run_policy("fsdp:dp=4,reshard=but_last");
    expect_moved(MS_TRANSFER_GATHER, 2 * BLOCKS - 1,
                 (2 * BLOCKS - 1) * weights / BLOCKS);
    run_policy("fsdp:dp=4,units=whole");
    expect_moved(MS_TRANSFER_GATHER, 1, weights);
    expect_moved(MS_TRANSFER_SCATTER, 1, grads);
}
END_TEST

/* Two groups of four: scattered within each, then summed across. */
START_TEST(groups)
{
    uint64_t part = REDUCED * PARAMETERS / RANKS;
    run_policy("fsdp:dp=8,shard=4");
    expect_moved(MS_TRANSFER_SCATTER, BLOCKS,
                 BLOCKS * REDUCED * PARAMETERS * (RANKS - 1) / RANKS);
    expect_moved(MS_TRANSFER_OUTER, BLOCKS, BLOCKS * part);
    run_policy("fsdp:dp=8,shard=4,reduce=bf16");
    expect_moved(MS_TRANSFER_OUTER, BLOCKS, BLOCKS * part / 2);
    run_policy("fsdp:impl=1,dp=8,strategy=no_shard");
    expect_moved(MS_TRANSFER_GATHER, BLOCKS, 0);
    expect_moved(MS_TRANSFER_OUTER, BLOCKS,
                 BLOCKS * REDUCED * PARAMETERS * 2 * 7 / 8);
}
END_TEST

/* The fused update counts the steps of each block's tensor in 4 bytes. */
#define COUNTERS (4 * BLOCKS)

/* 16 bytes a parameter over the ranks: no copy is a master besides. */
START_TEST(states)
{
    static const char *const policies[] = {"fsdp:dp=4", "fsdp:impl=1,dp=4",
                                           "fsdp:dp=12,shard=4",
                                           "fsdp:dp=4+microbatch:4"};
    for (size_t i = 0; i < sizeof policies / sizeof *policies; i++) {
        run_policy(policies[i]);
        const ms_rank_report *rank = &result.report->ranks[0];
        uint64_t part = 4 * BLOCKS * PARAMETERS / RANKS;
        ck_assert_uint_eq(rank->parameters_bytes, part);
        ck_assert_uint_eq(rank->gradients_bytes, part);
        ck_assert_uint_eq(rank->optimizer_state_bytes, 2 * part + COUNTERS);
    }
}
END_TEST

/* As many where the optimizer has the copies. */
START_TEST(copies_of_the_optimizer)
{
    static const char *const policies[] = {
        "fsdp:dp=4,masters=optimizer", "fsdp:impl=1,dp=4,masters=optimizer",
        "fsdp:dp=12,shard=4,masters=optimizer",
        "fsdp:dp=4,masters=optimizer+microbatch:4", "fsdp:dp=4,code=megatron"};
    for (size_t i = 0; i < sizeof policies / sizeof *policies; i++) {
        run_policy(policies[i]);
        const ms_rank_report *rank = &result.report->ranks[0];
        uint64_t part = BLOCKS * PARAMETERS / RANKS;
        ck_assert_uint_eq(rank->parameters_bytes, 2 * part);
        ck_assert_uint_eq(rank->gradients_bytes, 2 * part);
        ck_assert_uint_eq(rank->optimizer_state_bytes, 12 * part + COUNTERS);
    }
}
END_TEST

/* One rank has NO_SHARD, whose weights are used where they lie. */
START_TEST(used_in_place)
{
    uint32_t n;
    run_policy("fsdp:impl=1,dp=1,masters=optimizer");
    uint64_t peak = result.report->ranks[0].peak.allocated_bytes;
    ck_assert_uint_eq(moved(MS_TRANSFER_GATHER, &n), 0);
    ck_assert_uint_eq(n, 0);
    run_policy("none");
    ck_assert_uint_eq(result.report->ranks[0].peak.allocated_bytes, peak);
}
END_TEST

/* A level of a model with a layer in no block. */
static uint64_t level_of(const char *policy, ms_mark mark)
{
    static const char rooted[] =
        "{\"memsim\": 1, \"name\": \"rooted\", \"input\": {\"shape\": [32]}, "
        "\"layers\": [{\"type\": \"linear\", \"out\": 32, \"bias\": false}, "
        "{\"repeat\": 3, \"name\": \"h\", \"layers\": [{\"type\": \"linear\", "
        "\"out\": 32, \"bias\": false}]}, {\"type\": \"mean\"}]}";
    ms_job job;
    inlined_begin(&job, &keep, &trial, &fault);
    job.training.batch = 8;
    ck_assert_int_eq(
        inlined_step(rooted, policy, &job, &keep, &trial, &result, &fault),
        MS_OK);
    return result.report->ranks[0].levels[mark];
}

/* Megatron's gradients are there from the start, and its root is whole from
 * behind an update to the next one, if it is told so. */
START_TEST(megatron)
{
    static const ms_mark marks[] = {MS_MARK_START, MS_MARK_END};
    uint64_t gradients = WEIGHT * (BLOCKS + 1) * PARAMETERS / RANKS;
    uint64_t plain = level_of("fsdp:dp=4,masters=optimizer", MS_MARK_START);
    for (size_t i = 0; i < 2; i++) {
        uint64_t without = level_of("fsdp:dp=4,code=megatron", marks[i]);
        uint64_t with = level_of(
            "fsdp:dp=4,code=megatron,overlap_param_gather=1", marks[i]);
        ck_assert_uint_eq(without - plain, gradients);
        ck_assert_uint_eq(with - without, WEIGHT * PARAMETERS);
    }
}
END_TEST

/* CPUOffloadPolicy: fp32 parts come before each all-gather, fp32 gradients go
 * after each reduce-scatter, and 16 bytes a parameter are the host's. */
START_TEST(offloaded)
{
    uint64_t part = 4 * BLOCKS * PARAMETERS / RANKS;
    run_policy("fsdp:dp=4+offload:optimizer/params/gradients+microbatch:2");
    expect_moved(MS_TRANSFER_H2D, 2 * 2 * BLOCKS, 2 * 2 * part);
    expect_moved(MS_TRANSFER_D2H, 2 * BLOCKS, 2 * part);
    ck_assert_uint_eq(result.report->host_peak_bytes, 4 * part);
    ck_assert_uint_eq(result.report->ranks[0].parameters_bytes, 0);
    ck_assert_uint_eq(result.report->ranks[0].optimizer_state_bytes, 0);
}
END_TEST

/* 32 rows over 12 ranks are 3 each; 1024 elements are 86. */
START_TEST(rounding)
{
    run_policy("fsdp:dp=12");
    ck_assert_uint_eq(result.report->ranks[0].parameters_bytes,
                      BLOCKS * 3 * 32 * 4);
    run_policy("fsdp:impl=1,dp=12");
    ck_assert_uint_eq(result.report->ranks[0].parameters_bytes,
                      BLOCKS * 86 * 4);
    run_policy("fsdp:impl=1,units=whole,dp=12");
    ck_assert_uint_eq(result.report->ranks[0].parameters_bytes, 256 * 4);
}
END_TEST

START_TEST(refused)
{
    static const char *const policies[] = {
        "fsdp",
        "zero:1,dp=4+fsdp:dp=4",
        "ddp:dp=4+fsdp:dp=4",
        "fsdp:dp=4,shard=3",
        "fsdp:dp=4,shard=8",
        "fsdp:dp=4,limit=1",
        "fsdp:dp=4,reshard_ranks=3",
        "fsdp:dp=4,shard=2,reshard_ranks=2",
        "fsdp:dp=4,reshard=no,reshard_ranks=2",
        "fsdp:impl=1,dp=4,reshard_ranks=2",
        "fsdp:dp=4,strategy=no_shard",
        "fsdp:impl=1,dp=4,reshard=no",
        "fsdp:impl=1,dp=4,strategy=hybrid_shard",
        "fsdp:impl=1,dp=4,shard=2,strategy=no_shard",
        "fsdp:impl=1,dp=4,strategy=no_shard,masters=optimizer",
        "fsdp:impl=1,dp=4,code=megatron",
        "fsdp:dp=4,masters=parts,code=megatron",
        "fsdp:dp=4,overlap_param_gather=1",
        "fsdp:dp=4,units=split,code=megatron,overlap_param_gather=1"};
    for (size_t i = 0; i < sizeof policies / sizeof *policies; i++) {
        ck_assert_msg(try_policy(policies[i]) == MS_EUSAGE, "%s", policies[i]);
        ck_assert_ptr_nonnull(fault.hint);
    }
}
END_TEST

Suite *suite_fsdp(void)
{
    Suite *suite = suite_create("fsdp");
    TCase *tcase = tcase_create("fsdp");
    tcase_add_checked_fixture(tcase, NULL, teardown);
    tcase_add_test(tcase, fsdp2);
    tcase_add_test(tcase, fsdp2_checkpoint);
    tcase_add_test(tcase, fsdp2_stays);
    tcase_add_test(tcase, fsdp2_pairs);
    tcase_add_test(tcase, alone);
    tcase_add_test(tcase, fsdp1);
    tcase_add_test(tcase, volumes);
    tcase_add_test(tcase, groups);
    tcase_add_test(tcase, states);
    tcase_add_test(tcase, copies_of_the_optimizer);
    tcase_add_test(tcase, used_in_place);
    tcase_add_test(tcase, megatron);
    tcase_add_test(tcase, offloaded);
    tcase_add_test(tcase, rounding);
    tcase_add_test(tcase, refused);
    suite_add_tcase(suite, tcase);
    return suite;
}
