/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A policy with a budget promises it for the final program: whatever policies
 * stand beside it, the peak is within the budget, or the run is infeasible and
 * says what it would need. */
#include "policies/common/policy.h"
#include "sim/graph.h"
#include "sim/machine.h"
#include "sim/plan.h"
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
#include <stdlib.h>
#include <string.h>

/* A decoder whose activations outweigh its states, and a convolutional network.
 */
static const char *const models[] = {
    "{\"memsim\": 1, \"family\": \"decoder\", \"config\": {\"layers\": 4, "
    "\"hidden\": 64, \"heads\": 2, \"ffn\": 172, \"vocab\": 16, "
    "\"positions\": 256, \"norm_type\": \"rms_norm\", "
    "\"positions_type\": \"rotary\", \"activation\": \"swiglu\", "
    "\"bias\": false, \"dropout\": 0, \"tied\": false}}",
    "{\"memsim\": 1, \"name\": \"cnn\", \"input\": {\"shape\": [3, 16, 16]}, "
    "\"layers\": [{\"repeat\": 3, \"name\": \"b\", \"layers\": ["
    "{\"type\": \"conv2d\", \"out\": 8, \"kernel\": 3, \"padding\": 1}, "
    "{\"type\": \"batch_norm\"}, {\"type\": \"relu\", \"inplace\": true}]}, "
    "{\"type\": \"flatten\"}, {\"type\": \"linear\", \"out\": 10}, "
    "{\"type\": \"cross_entropy\"}]}",
};

/* % stands for the budget; min= because these tensors are small. */
static const char *const ways[] = {
    "swap:belady,min=16B,budget=%" PRIu64,
    "swap:capuchin,min=16B,budget=%" PRIu64,
    "swap:superneurons,min=16B,budget=%" PRIu64,
    "swap:vdnn=dyn,min=16B,budget=%" PRIu64,
    "swap:auto,min=16B,budget=%" PRIu64,
    "dtr:budget=%" PRIu64,
    "dtr:h=lru,budget=%" PRIu64,
    "dtr:h=random,seed=7,budget=%" PRIu64,
    "swap:auto,min=16B+checkpoint:auto,budget=%" PRIu64,
    "checkpoint:optimal,budget=%" PRIu64,
    "checkpoint:chen,budget=%" PRIu64,
    "checkpoint:knapsack,budget=%" PRIu64,
    "checkpoint:optimal,slots=40,early_stop=0,budget=%" PRIu64,
};
static const char *const checkpoints[] = {
    "", "+checkpoint:sqrt", "+checkpoint:sac", "+checkpoint:selective",
    "+checkpoint:full,variant=reentrant"};
static const char *const shares[] = {"",
                                     "+microbatch:2",
                                     "+ddp:dp=4",
                                     "+zero:2,dp=3",
                                     "+zero:3,dp=4,prefetch=3",
                                     "+zero:1,dp=4,impl=megatron",
                                     "+zero:2,dp=3,impl=deepspeed",
                                     "+zero:3,dp=4,impl=deepspeed",
                                     "+fsdp:dp=4",
                                     "+fsdp:impl=1,dp=4"};
static const char *const offloads[] = {"", "+offload:optimizer/gradients"};
#define MANY(list) (sizeof(list) / sizeof *(list))

static ms_arena keep, trial;

typedef struct outcome {
    ms_fault fault;
    uint64_t peak_bytes;
} outcome;

static outcome run(const char *json, const char *policy)
{
    outcome out = {0};
    ms_fault *fault = &out.fault;
    ms_result result;
    ms_job job;
    ms_settings_init(&job);
    job.training.batch = 8;
    job.training.cublas_workspace = 0;
    ms_err err =
        inlined_step(json, policy, &job, &keep, &trial, &result, fault);
    ck_assert_int_eq(err, fault->err);
    if (err == MS_OK)
        out.peak_bytes = result.report->ranks[0].peak.allocated_bytes;
    ms_arena_reset(&keep);
    ms_arena_reset(&trial);
    return out;
}

/* The budget is kept, or the run is infeasible and says what it needs, or the
 * policies are refused with a reason. */
static void check_outcome(const char *policy, const outcome *out,
                          uint64_t budget_bytes, size_t *n_kept)
{
    const ms_fault *fault = &out->fault;
    if (fault->err == MS_OK) {
        ck_assert_msg(out->peak_bytes <= budget_bytes,
                      "%s: the peak is %" PRIu64, policy, out->peak_bytes);
        ++*n_kept;
        return;
    }
    ck_assert_msg(fault->err == MS_EUSAGE || fault->err == MS_EINFEASIBLE,
                  "%s: %s", policy, fault->what);
    ck_assert_uint_gt(strlen(fault->hint), 0);
    if (fault->err == MS_EINFEASIBLE)
        ck_assert_msg(strstr(fault->hint, "budget=") != NULL, "%s: %s: %s",
                      policy, fault->what, fault->hint);
}

static void check_beside(const char *json, const char *way, const char *others,
                         size_t *n_kept)
{
    static const uint32_t percents[] = {100, 90, 70, 50};
    char policy[320] = "none";
    strcat(policy, others);
    outcome alone = run(json, policy);
    if (alone.fault.err != MS_OK)
        return;
    for (size_t i = 0; i < MANY(percents); i++) {
        uint64_t budget_bytes = alone.peak_bytes / 100 * percents[i];
        int n = snprintf(policy, sizeof policy, way, budget_bytes);
        snprintf(policy + n, sizeof policy - (size_t)n, "%s", others);
        outcome out = run(json, policy);
        check_outcome(policy, &out, budget_bytes, n_kept);
    }
}

/* Beside a third of the compositions, each way another. */
START_TEST(budgets_are_kept)
{
    const char *json = models[(size_t)_i / MANY(ways)];
    const char *way = ways[(size_t)_i % MANY(ways)];
    size_t n_kept = 0, n = 0, i = (size_t)_i;
    for (size_t c = 0; c < MANY(checkpoints); c++)
        for (size_t s = 0; s < MANY(shares); s++)
            for (size_t o = 0; o < MANY(offloads); o++, i++) {
                char others[256];
                if (i % 3 > 0 || (c > 0 && strstr(way, "checkpoint:") != NULL))
                    continue;
                n++;
                snprintf(others, sizeof others, "%s%s%s", checkpoints[c],
                         shares[s], offloads[o]);
                check_beside(json, way, others, &n_kept);
            }
    ck_assert_msg(n_kept > n / 8, "%s: %zu of %zu", way, n_kept, n);
    ms_arena_free(&keep);
    ms_arena_free(&trial);
}
END_TEST

/* A policy that measures the step is spelled last and runs last. */
START_TEST(what_measures_runs_last)
{
    static const char *const spelled[][2] = {
        {"swap:belady,budget=1000+checkpoint:sac",
         "checkpoint:sac+swap:belady,budget=1000"},
        {"swap:vdnn=dyn+offload:optimizer+checkpoint:sqrt",
         "offload:optimizer+checkpoint:sqrt+swap:vdnn=dyn"},
        {"checkpoint:sac+swap:vdnn=all", "swap:vdnn=all+checkpoint:sac"},
    };
    for (size_t i = 0; i < MANY(spelled); i++) {
        ms_spec spec = {0};
        ms_fault fault = {0};
        ck_assert_int_eq(ms_spec_parse(spelled[i][0], &keep, &spec, &fault),
                         MS_OK);
        ck_assert_str_eq(ms_spec_print(&spec, &keep), spelled[i][1]);
    }
    ms_arena_free(&keep);
}
END_TEST

/* A policy that promises a budget and does nothing for it. */
static ms_err stand_by(const ms_policy_context *context, ms_program *program,
                       ms_fault *fault)
{
    (void)context;
    (void)program;
    (void)fault;
    return MS_OK;
}

static const ms_param promise[] = {
    {.name = "budget", .type = MS_PARAM_SIZE, .promise = true}};
static const ms_policy idle = {
    .name = "idle", .params = promise, .n_params = 1, .place = stand_by};

static ms_err promise_bytes(uint64_t bytes, ms_fault *fault)
{
    ms_graph graph;
    ms_program program;
    ms_machine machine = {.capacity_bytes = UINT64_C(1) << 40};
    ms_expand_opts opts = {0};
    ms_policy_context context = {
        .graph = &graph, .arena = &keep, .opts = &opts, .machine = &machine};
    ms_spec spec = {.n = 1};
    spec.items[0].policy = &idle;
    spec.items[0].values[0].given = bytes > 0;
    spec.items[0].values[0].number = (int64_t)bytes;
    *fault = (ms_fault){0};
    laws_chain(8, 1000, &keep, &graph);
    return ms_apply_program(&spec, &context, 1, &program, fault);
}

/* All kept, a chain of n units has n + 3 of their outputs at its peak. */
START_TEST(promises_are_checked)
{
    ms_fault fault;
    ck_assert_int_eq(promise_bytes(0, &fault), MS_OK);
    ck_assert_int_eq(promise_bytes(12000, &fault), MS_OK);
    ck_assert_int_eq(promise_bytes(9999, &fault), MS_EINFEASIBLE);
    ck_assert_str_eq(fault.where, "idle:budget");
    ck_assert_ptr_nonnull(strstr(fault.what, "9,999 bytes"));
    const char *at = strstr(fault.hint, "budget=");
    ck_assert_ptr_nonnull(at);
    uint64_t least = strtoull(at + strlen("budget="), NULL, 10);
    ck_assert_uint_ge(least, 11000);
    ck_assert_int_eq(promise_bytes(least, &fault), MS_OK);
    ck_assert_int_eq(promise_bytes(least - 1, &fault), MS_EINFEASIBLE);
    ms_arena_free(&keep);
}
END_TEST

Suite *suite_budgets(void)
{
    Suite *suite = suite_create("budgets");
    TCase *tcase = tcase_create("budgets");
    tcase_set_timeout(tcase, 120);
    tcase_add_loop_test(tcase, budgets_are_kept, 0,
                        (int)(MANY(models) * MANY(ways)));
    tcase_add_test(tcase, what_measures_runs_last);
    tcase_add_test(tcase, promises_are_checked);
    suite_add_tcase(suite, tcase);
    return suite;
}
