/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Ways to checkpoint that are spelled differently and are the same, ways that
 * cannot be better than others, and what is refused. */
#include "sim/report.h"
#include "tests/inlined.h"
#include "tests/laws/laws.h"
#include "tests/tests.h"
#include "tools/cli/commands.h"
#include "tools/job/job.h"
#include "tools/job/result.h"
#include "tools/job/settings.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define MANY(list) (sizeof(list) / sizeof *(list))

/* Six blocks. */
static const char decoder[] =
    "{\"memsim\": 1, \"family\": \"decoder\", \"config\": {\"layers\": 6, "
    "\"hidden\": 64, \"heads\": 2, \"vocab\": 16, \"positions\": 256}}";

/* Sixteen blocks that are all weights: 12 * 256^2 of two bytes each. */
static const char heavy[] =
    "{\"memsim\": 1, \"family\": \"decoder\", \"config\": {\"layers\": 16, "
    "\"hidden\": 256, \"heads\": 2, \"vocab\": 16, \"positions\": 2}}";
#define HEAVY_BLOCK_BYTES (24u * 256 * 256)
#define HEAVY_BLOCKS 16u

static ms_arena keep, trial;
static ms_fault fault;
static const char *model = decoder;

static void teardown(void)
{
    model = decoder;
    ms_arena_free(&trial);
    ms_arena_free(&keep);
}

typedef struct cost {
    uint64_t peak_bytes, step_ns, recomputed_ops;
} cost;

static ms_err run(const char *policy, const char *kernels, cost *own)
{
    ms_job job;
    ms_result result;
    inlined_begin(&job, &keep, &trial, &fault);
    job.training.batch = 8;
    ck_assert_int_eq(ms_training_set(&job.training, "kernels", kernels, &fault),
                     MS_OK);
    ms_err err =
        inlined_step(model, policy, &job, &keep, &trial, &result, &fault);
    if (err == MS_OK)
        *own = (cost){result.report->ranks[0].peak.allocated_bytes,
                      result.report->ranks[0].time.step_ns,
                      result.report->recomputed_ops};
    return err;
}

static cost cost_of(const char *policy, const char *kernels)
{
    cost own;
    ck_assert_msg(run(policy, kernels, &own) == MS_OK, "%s: %s: %s", policy,
                  fault.where, fault.what);
    return own;
}

START_TEST(two_spellings_are_one_way)
{
    static const char *const same[][2] = {
        {"each=1", "full"},
        {"layers=0-5", "full"},
        {"layers=1/3/5", "each=2"},
        {"layers=0-1", "first=2"},
        {"nested=2", "every=2"},
        {"recursive,parts=6", "full"},
        {"chen,segment=0", "full,last=open"},
        {"chen,segment=1024GiB", "none"},
        {"sequential=3,last=closed", "every=2"},
        {"blocks=layers.0/layers.3", "every=3"},
        {"blocks=layers.0/layers.3,last=open", "sequential=2"},
        {"full,micro_batches=0-3+microbatch:4", "full+microbatch:4"},
        {"modules=mlp,micro_batches=0/1-3+microbatch:4",
         "modules=mlp+microbatch:4"},
        {"each=2/2+pipeline:2+microbatch:4", "each=2+pipeline:2+microbatch:4"},
        {"every=3/1+pipeline:2+microbatch:4",
         "blocks=layers.0/layers.3/layers.4/layers.5+pipeline:2+microbatch:4"},
    };
    for (size_t i = 0; i < MANY(same); i++) {
        char a[160], b[160];
        snprintf(a, sizeof a, "checkpoint:%s", same[i][0]);
        snprintf(b, sizeof b, "checkpoint:%s", same[i][1]);
        cost x = cost_of(a, "eager"), y = cost_of(b, "eager");
        ck_assert_msg(x.peak_bytes == y.peak_bytes && x.step_ns == y.step_ns,
                      "%s: %" PRIu64 " bytes, %" PRIu64 " ns; %s: %" PRIu64
                      ", %" PRIu64,
                      a, x.peak_bytes, x.step_ns, b, y.peak_bytes, y.step_ns);
    }
}
END_TEST

/* The first has no higher peak than the second and takes no less time. */
START_TEST(memory_is_paid_for_with_time)
{
    static const char *const pairs[][2] = {
        {"each=2", "none"},
        {"full", "each=2"},
        {"every=3", "every=3,last=open"},
        {"nested=3/1", "every=3"},
        {"nested=6/2/1", "nested=6/2"},
        {"recursive", "none"},
        {"modules=mlp/layernorm", "modules=mlp"},
        {"modules=core_attn", "selective"},
        {"modules=core_attn/mlp/layernorm", "modules=mlp/layernorm"},
        {"save=aten.addmm", "none"},
        {"full", "save=aten.addmm"},
        {"save=aten.addmm", "save=torch.ops.aten.addmm.default/aten::gelu"},
        {"full", "recompute=aten.gelu"},
        {"full,micro_batches=0-2+microbatch:4",
         "full,micro_batches=0+microbatch:4"},
    };
    for (size_t i = 0; i < MANY(pairs); i++) {
        char a[160], b[160];
        snprintf(a, sizeof a, "checkpoint:%s", pairs[i][0]);
        snprintf(b, sizeof b, "checkpoint:%s", pairs[i][1]);
        cost x = cost_of(a, "eager"), y = cost_of(b, "eager");
        ck_assert_msg(x.peak_bytes <= y.peak_bytes && x.step_ns >= y.step_ns,
                      "%s: %" PRIu64 " bytes, %" PRIu64 " ns; %s: %" PRIu64
                      ", %" PRIu64,
                      a, x.peak_bytes, x.step_ns, b, y.peak_bytes, y.step_ns);
    }
}
END_TEST

/* The weights that a replay reads are gathered before each of its units, and
 * let go behind it: what a way runs again does not depend on who has the
 * weights, and no more than two blocks are whole beside those of a plain replay
 * (the one whose backward waits, and what is gathered ahead of it).  With FSDP2
 * all that ran again may be whole until its backward. */
START_TEST(replays_have_their_weights_unit_by_unit)
{
    static const char *const ways[] = {"revolve=2", "revolve=4", "nested=16/1",
                                       "recursive", "chen,segment=1KiB"};
    static const char *const shares[] = {"zero:3,dp=4", "fsdp:dp=4",
                                         "fsdp1:dp=4", "swap:layers",
                                         ("zero:3,dp=4,impl=deepspeed,"
                                          "max_live_parameters=0")};
    const char *share = shares[_i];
    uint64_t whole = strncmp(share, "fsdp:", 5) == 0 ? HEAVY_BLOCKS : 2;
    char alone[64], beside[160], full[160];
    model = heavy;
    snprintf(full, sizeof full, "checkpoint:full+%s", share);
    cost most = cost_of(full, "eager");
    for (size_t i = 0; i < MANY(ways); i++) {
        snprintf(alone, sizeof alone, "checkpoint:%s", ways[i]);
        snprintf(beside, sizeof beside, "%s+%s", alone, share);
        cost plain = cost_of(alone, "eager"), own = cost_of(beside, "eager");
        ck_assert_msg(own.recomputed_ops == plain.recomputed_ops,
                      "%s: %" PRIu64 " ops, not %" PRIu64, beside,
                      own.recomputed_ops, plain.recomputed_ops);
        ck_assert_msg(own.peak_bytes <=
                          most.peak_bytes + whole * HEAVY_BLOCK_BYTES,
                      "%s: %" PRIu64 " bytes, full %" PRIu64, beside,
                      own.peak_bytes, most.peak_bytes);
    }
}
END_TEST

/* No size of a segment has a lower peak than chen's choice; in a budget none
 * that keeps to it is faster. */
START_TEST(chen_tries_all_sizes)
{
    cost least = cost_of("checkpoint:chen", "flash");
    for (uint64_t kib = 0; kib <= 30000; kib += 500) {
        char policy[96];
        snprintf(policy, sizeof policy,
                 "checkpoint:chen,segment=%" PRIu64 "KiB", kib);
        cost one = cost_of(policy, "flash");
        ck_assert_uint_ge(one.peak_bytes, least.peak_bytes);
        snprintf(policy, sizeof policy, "checkpoint:chen,budget=%" PRIu64,
                 one.peak_bytes);
        cost best = cost_of(policy, "flash");
        ck_assert_uint_le(best.peak_bytes, one.peak_bytes);
        ck_assert_uint_le(best.step_ns, one.step_ns);
    }
}
END_TEST

START_TEST(what_cannot_be_is_refused)
{
    static const char *const bad[][2] = {
        {"layers=6", "they go from 0 to 5"},
        {"layers=3-1", "write 0-3/7"},
        {"layers=x", "write 0-3/7"},
        {"each=7", NULL},
        {"each=2/3", "add pipeline:N"},
        {"nested=2/4", "write 12/4/1"},
        {"nested=7", NULL},
        {"save=aten.admm", "did you mean aten::addmm?"},
        {"recompute=convolve", "--dump graph"},
        {"modules=moe", "it has core_attn mlp layernorm"},
        {"full,micro_batches=1", "they go from 0 to 0"},
        {"first=2,partial=1,micro_batches=0", "leave one of the two out"},
        {"chen,budget=1000", "of its 6 plans is budget="},
        {"chen,budget=1000+pipeline:2", "of its 3 plans is budget="},
        {"nested=4+pipeline:2", NULL},
    };
    for (size_t i = 0; i < MANY(bad); i++) {
        char policy[96];
        cost own;
        snprintf(policy, sizeof policy, "checkpoint:%s", bad[i][0]);
        ck_assert_msg(run(policy, "flash", &own) != MS_OK, "%s", policy);
        ck_assert_uint_gt(strlen(fault.what), 0);
        if (bad[i][1] != NULL)
            ck_assert_msg(strstr(fault.hint, bad[i][1]) != NULL, "%s: %s",
                          policy, fault.hint);
        fault = (ms_fault){0};
    }
}
END_TEST

Suite *suite_strategies(void)
{
    Suite *suite = suite_create("strategies");
    TCase *tcase = tcase_create("strategies");
    tcase_add_checked_fixture(tcase, NULL, teardown);
    tcase_add_test(tcase, two_spellings_are_one_way);
    tcase_add_test(tcase, memory_is_paid_for_with_time);
    tcase_add_loop_test(tcase, replays_have_their_weights_unit_by_unit, 0, 5);
    tcase_add_test(tcase, chen_tries_all_sizes);
    tcase_add_test(tcase, what_cannot_be_is_refused);
    suite_add_tcase(suite, tcase);
    return suite;
}
