/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Every composition of the policies on one of three models: it runs, or is
 * refused with a reason, and what runs obeys the laws. */
#include "graphs/model.h"
#include "graphs/training.h"
#include "policies/common/policy.h"
#include "tests/laws/laws.h"
#include "tests/tests.h"
#include "tools/cli/commands.h"
#include "tools/job/job.h"
#include "tools/job/result.h"
#include "tools/job/settings.h"

#include <stdio.h>
#include <string.h>

/* With training.gradients=fp32. */
#define SUMMED_UP "+zero:1,dp=5,impl=deepspeed"
/* Muon's matrices need whole gradients. */
#define MATRICES_SHARED "+zero:2,dp=3,impl=deepspeed,reduce_scatter=0"
#define ALL_WEIGHTS_SHARED                                                     \
    "+zero:3,dp=2,impl=deepspeed,param_persistence_threshold=0"

static const char *const checkpoints[] = {"", "+checkpoint:sqrt",
                                          "+checkpoint:sac",
                                          "+checkpoint:full,variant=reentrant"};
static const char *const micro_batches[] = {"", "+microbatch:2"};
static const char *const shares[] = {"",
                                     "+ddp:dp=4",
                                     "+zero:1,dp=4,impl=megatron",
                                     "+zero:2,dp=3",
                                     "+zero:3,dp=4",
                                     "+zero:3,dp=4,prefetch=3",
                                     "+zero:1,dp=4,impl=deepspeed",
                                     SUMMED_UP,
                                     "+zero:2,dp=3,impl=deepspeed,"
                                     "reduce_bucket_size=700,overlap_comm=1",
                                     "+zero:3,dp=4,impl=deepspeed,"
                                     "reduce_bucket_size=900,"
                                     "param_persistence_threshold=64,"
                                     "prefetch_bucket_size=2000,"
                                     "max_reuse_distance=1500",
                                     "+zero:3,dp=16,impl=deepspeed,"
                                     "reduce_bucket_size=900,"
                                     "param_persistence_threshold=64,"
                                     "max_reuse_distance=1500,"
                                     "mem_efficient_linear=0,"
                                     "zero_hpz_partition_size=8,"
                                     "zero_quantized_weights=1,"
                                     "zero_quantized_gradients=1",
                                     "+fsdp:dp=4,reshard_ranks=2",
                                     "+fsdp:dp=6,shard=3,reshard=but_last,"
                                     "units=split,reduce=bf16,sync=last",
                                     "+fsdp:impl=1,dp=4",
                                     "+fsdp:impl=1,dp=4,masters=optimizer",
                                     "+fsdp:dp=4,code=megatron,"
                                     "overlap_param_gather=1",
                                     "+fsdp:impl=1,dp=4,strategy=no_shard"};
static const char *const swaps[] = {"",
                                    "+swap:save_on_cpu",
                                    "+swap:vdnn=all",
                                    "+swap:te=1",
                                    "+swap:torchtune",
                                    "+swap:belady",
                                    "+swap:superneurons"};
static const char *const offloads[] = {
    "", "+offload:optimizer/gradients", "+offload:optimizer",
    "+offload:optimizer,pin=0",
    "+offload:optimizer/params/gradients,to=nvme,tile=100"};
#define MANY(list) (sizeof(list) / sizeof *(list))

/* A decoder, a network of convolutions, a chain with a state of its own; the
 * last two have experts. */
static const char *const models[] = {
    "{\"memsim\": 1, \"family\": \"decoder\", \"config\": {\"layers\": 3, "
    "\"hidden\": 32, \"heads\": 2, \"vocab\": 100, \"positions\": 16}}",
    "{\"memsim\": 1, \"name\": \"cnn\", \"input\": {\"shape\": [3, 16, 16]}, "
    "\"layers\": [{\"repeat\": 3, \"name\": \"b\", \"layers\": ["
    "{\"type\": \"conv2d\", \"out\": 8, \"kernel\": 3, \"padding\": 1}, "
    "{\"type\": \"batch_norm\"}, {\"type\": \"relu\", \"inplace\": true}]}, "
    "{\"type\": \"flatten\"}, {\"type\": \"linear\", \"out\": 10}, "
    "{\"type\": \"moe\", \"experts\": 2, \"hidden\": 4}, "
    "{\"type\": \"cross_entropy\"}]}",
    "{\"memsim\": 1, \"name\": \"mlp\", \"input\": {\"shape\": [32]}, "
    "\"layers\": [{\"repeat\": 4, \"name\": \"h\", \"layers\": ["
    "{\"type\": \"linear\", \"out\": 32}, {\"type\": \"dropout\"}, "
    "{\"type\": \"gelu\"}]}, {\"type\": \"moe\", \"experts\": 4, "
    "\"hidden\": 8}, {\"type\": \"mean\"}]}",
};

/* More policies of each kind, for compositions at random. */
static const char *const more_checkpoints[] = {
    "",
    "+checkpoint:full",
    "+checkpoint:every=2",
    "+checkpoint:sqrt,variant=reentrant",
    "+checkpoint:selective",
    "+checkpoint:sac",
    "+checkpoint:revolve=1",
    "+checkpoint:revolve=2"};
static const char *const more_shares[] = {"",
                                          "+zero:0,dp=4,impl=deepspeed",
                                          "+zero:1,dp=4",
                                          "+zero:1,dp=4,impl=megatron",
                                          "+zero:1,dp=3,impl=deepspeed",
                                          "+zero:2,dp=3,impl=deepspeed",
                                          MATRICES_SHARED,
                                          "+zero:2,dp=4",
                                          ALL_WEIGHTS_SHARED,
                                          "+zero:3,dp=4,prefetch=2",
                                          "+fsdp:dp=4,units=split",
                                          "+fsdp:impl=1,dp=4",
                                          SUMMED_UP};
static const char *const more_swaps[] = {"",
                                         "+swap:save_on_cpu,pin=0",
                                         "+swap:vdnn=conv",
                                         "+swap:capuchin",
                                         "+swap:torchtune,inflight=2,min=1",
                                         "+swap:te=2,prefetch=0",
                                         "+swap:layers",
                                         "+swap:checkpoints",
                                         "+swap:checkpoints,to=gds",
                                         "+swap:te=1,min=1,to=nvme",
                                         "+swap:vdnn=all,to=nvme+swap:te=2",
                                         "+swap:layers+swap:te=1,min=1"};
static const char *const states[] = {
    "", "+offload:optimizer", "+offload:optimizer/gradients",
    "+offload:optimizer/params", "+offload:optimizer/params/gradients"};
static const char *const impls[] = {"", ",impl=ideal", ",impl=deepspeed",
                                    ",impl=megatron"};
static const char *const ways[] = {"", ",to=nvme", ",percent=40", ",pin=0",
                                   ",tile=100"};

static ms_arena keep, trial;

/* Two policies that contradict each other are refused, with a reason. */
static bool is_refused(ms_err err, const ms_fault *fault)
{
    if (err != MS_EUSAGE)
        return false;
    ck_assert_uint_gt(strlen(fault->what), 0);
    ck_assert_uint_gt(strlen(fault->hint), 0);
    return true;
}

/* What else a composition varies. */
typedef struct setting {
    bool fp16, keeps_grads, holds_output, in_backward, clips, muon;
} setting;

/* Reads and lowers the model, on a device whose copies and collectives take
 * time. False: it was refused. */
static bool run_policy(const char *json, const char *policy, setting with)
{
    ms_fault fault = {0};
    ms_result result = {0};
    ms_job job;
    ms_settings_init(&job);
    job.model = "composed";
    job.uses = true;
    job.training.batch = 4;
    job.training.zero_grad = with.keeps_grads;
    if (with.fp16)
        job.training.precision = MS_FP16_MIXED;
    if (with.holds_output)
        job.training.hold_output = 1;
    job.training.optimizer_in_backward = with.in_backward;
    job.training.clip_norm = with.clips ? 1 : 0;
    if (with.muon)
        job.training.optimizer = MS_MUON;
    if (strstr(policy, SUMMED_UP) != NULL)
        job.training.gradients = 1;
    ck_assert_int_eq(ms_read_model_bytes("composed", json, strlen(json), NULL,
                                         0, &keep, &result.model, &fault),
                     MS_OK);
    result.training = job.training;
    ck_assert_msg(
        ms_resolve_training(&result.training, &result.model, &fault) == MS_OK &&
            ms_dag_order(&result.model, &keep, &fault) == MS_OK &&
            ms_spec_parse(policy, &keep, &job.spec, &fault) == MS_OK,
        "%s: %s: %s", policy, fault.where, fault.what);
    if (is_refused(ms_jobway_lower(&job, &keep, &result, &fault), &fault))
        return false;
    ck_assert_msg(fault.err == MS_OK, "%s: %s: %s", policy, fault.where,
                  fault.what);
    if (is_refused(ms_jobway_step(&job, &trial, &result, &fault), &fault))
        return false;
    ck_assert_msg(fault.err == MS_OK, "%s: %s: %s", policy, fault.where,
                  fault.what);
    laws_check_rows(result.plan);
    laws_check_clock(result.plan, result.line, result.machine);
    laws_check_levels(result.plan, result.line);
    laws_check_report(result.line, result.report, true);
    laws_check_layers(result.line, result.report, &trial);
    laws_check_steady(result.plan, !result.shape.flat_step.used);
    ms_arena_reset(&keep);
    ms_arena_reset(&trial);
    return true;
}

/* The longest spelling of a composition. */
#define LONGEST 512u

static void put(char policy[LONGEST], const char *part)
{
    ck_assert_uint_lt(strlen(policy) + strlen(part), LONGEST);
    strcat(policy, part);
}

static void append(laws_random *random, const char *const *list, size_t n,
                   char policy[LONGEST])
{
    put(policy, list[laws_below(random, (uint32_t)n)]);
}

/* Every step-th composition with one of these shares, from the first on;
 * returns how many are not refused. */
static size_t compose(const char *model, const char *const *share, size_t n,
                      size_t first, size_t step, size_t *all)
{
    const size_t sizes[] = {MANY(checkpoints), MANY(micro_batches), n,
                            MANY(swaps), MANY(offloads)};
    const char *const *const parts[] = {checkpoints, micro_batches, share,
                                        swaps, offloads};
    size_t ran = 0;
    *all = sizes[0] * sizes[1] * sizes[2] * sizes[3] * sizes[4];
    for (size_t i = first; i < *all; i += step) {
        char policy[LONGEST] = "none";
        size_t rest = i;
        for (size_t p = 0; p < MANY(parts); p++) {
            put(policy, parts[p][rest % sizes[p]]);
            rest /= sizes[p];
        }
        laws_seed = i;
        ran += run_policy(model, policy, (setting){0});
    }
    return ran;
}

START_TEST(all_compositions)
{
    size_t all, ran = compose(models[_i], shares, MANY(shares), (size_t)_i,
                              MANY(models), &all);
    ck_assert_uint_gt(4 * MANY(models) * ran,
                      3 * all); /* few contradict each other */
    ms_arena_free(&keep);
    ms_arena_free(&trial);
}
END_TEST

START_TEST(random_compositions)
{
    const size_t trials = 700;
    size_t ran = 0;
    for (size_t i = 0; i < trials; i++) {
        laws_random random = {i};
        char policy[LONGEST] = "none";
        laws_seed = i;
        append(&random, more_checkpoints, MANY(more_checkpoints), policy);
        append(&random, micro_batches, MANY(micro_batches), policy);
        append(&random, more_shares, MANY(more_shares), policy);
        append(&random, more_swaps, MANY(more_swaps), policy);
        size_t before = strlen(policy);
        append(&random, states, MANY(states), policy);
        if (policy[before] != '\0') {
            append(&random, impls, MANY(impls), policy);
            append(&random, ways, MANY(ways), policy);
        }
        setting with = {.fp16 = laws_chance(&random, 30),
                        .keeps_grads = laws_chance(&random, 20),
                        .holds_output = laws_chance(&random, 20)};
        uint32_t step = laws_below(&random, 8);
        bool alone = policy[before] == '\0' && !strstr(policy, "microbatch");
        with.in_backward = step < 4 && !with.keeps_grads && alone;
        with.clips = !with.in_backward && step > 5;
        with.muon = policy[before] == '\0' && laws_chance(&random, 25) &&
                    (!strstr(policy, "deepspeed") ||
                     strstr(policy, "reduce_scatter=0"));
        ran += run_policy(models[_i], policy, with);
    }
    ck_assert_uint_gt(3 * ran, trials); /* many contradict each other */
    ms_arena_free(&keep);
    ms_arena_free(&trial);
}
END_TEST

/* What torch's partitioner saves, beside what divides or moves states. */
START_TEST(partitioned)
{
    static const char *const saved[] = {
        "mincut", "knapsack,share=60", "knapsack,share=20", "knapsack,share=0"};
    static const char *const beside[] = {"",
                                         "+microbatch:2",
                                         "+ddp:dp=2",
                                         "+zero:2,dp=4",
                                         "+zero:3,dp=4",
                                         "+fsdp:dp=4",
                                         "+offload:optimizer"};
    for (size_t i = 0; i < MANY(saved) * MANY(beside); i++) {
        char policy[LONGEST];
        laws_seed = i;
        snprintf(policy, sizeof policy, "none+checkpoint:%s%s",
                 saved[i % MANY(saved)], beside[i / MANY(saved)]);
        ck_assert_msg(run_policy(models[_i], policy, (setting){0}), "%s",
                      policy);
    }
    ms_arena_free(&keep);
    ms_arena_free(&trial);
}
END_TEST

/* ZenFlow, on one rank and on those of DeepSpeed's stage 2. */
START_TEST(columns_apart)
{
    static const char *const apart[] = {
        "", "+zero:2,dp=3,impl=deepspeed,reduce_bucket_size=900"};
    static const char *const selects[] = {
        "topk_ratio=0.2", "topk_ratio=0.05,overlap_step=1",
        "topk_ratio=0.5,overlap_step=1,pin=0"};
    size_t ran = 0, trials = 150;
    for (size_t i = 0; i < trials; i++) {
        laws_random random = {i};
        char policy[LONGEST] = "none";
        laws_seed = i;
        append(&random, more_checkpoints, MANY(more_checkpoints), policy);
        append(&random, micro_batches, MANY(micro_batches), policy);
        append(&random, apart, MANY(apart), policy);
        append(&random, swaps, MANY(swaps), policy);
        put(policy, "+offload:optimizer,impl=deepspeed,");
        append(&random, selects, MANY(selects), policy);
        ran += run_policy(models[_i], policy,
                          (setting){.clips = laws_chance(&random, 50)});
    }
    ck_assert_uint_gt(2 * ran, trials);
    ms_arena_free(&keep);
    ms_arena_free(&trial);
}
END_TEST

/* The models that have experts, which other ranks divide than the rest. */
START_TEST(experts_apart)
{
    static const char *const apart[] = {
        "+zero:3,dp=8,expert_ranks=4,prefetch=2", "+zero:2,dp=8,expert_ranks=2",
        "+fsdp:dp=8,expert_ranks=4", "+fsdp:dp=8,expert_ranks=2,shard=4"};
    size_t all, ran = compose(models[_i], apart, MANY(apart), 0, 1, &all);
    ck_assert_uint_gt(4 * ran, 3 * all);
    ms_arena_free(&keep);
    ms_arena_free(&trial);
}
END_TEST

Suite *suite_compose(void)
{
    Suite *suite = suite_create("compose");
    TCase *tcase = tcase_create("compose");
    tcase_set_timeout(tcase, 120);
    tcase_add_loop_test(tcase, all_compositions, 0, (int)MANY(models));
    tcase_add_loop_test(tcase, columns_apart, 0, (int)MANY(models));
    tcase_add_loop_test(tcase, experts_apart, 1, (int)MANY(models));
    tcase_add_loop_test(tcase, random_compositions, 0, (int)MANY(models));
    tcase_add_loop_test(tcase, partitioned, 0, (int)MANY(models));
    suite_add_tcase(suite, tcase);
    return suite;
}
