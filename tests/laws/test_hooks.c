/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Hooks (such as save_on_cpu) copy every saved tensor: the bytes that go out
 * are those of the graph's saves by the hooks' rule, and the same bytes come
 * back, but for what the first node of the backward finds in torchtune's stash.
 * That holds for every model, all kernels and precisions; nothing is run again
 * for it, and a step leaves what it began with. */
#include "graphs/kernels/kernels.h"
#include "graphs/model.h"
#include "graphs/training.h"
#include "policies/common/policy.h"
#include "sim/graph.h"
#include "sim/names.h"
#include "sim/report.h"
#include "tests/laws/laws.h"
#include "tests/tests.h"
#include "tools/cli/commands.h"
#include "tools/job/job.h"
#include "tools/job/result.h"
#include "tools/job/settings.h"

#include <stdio.h>
#include <string.h>

static ms_arena keep, trial;
static char what[160];

/* False: these settings are refused, with a reason. */
static bool run(const char *model, const ms_training *training,
                const char *policy, ms_result *result)
{
    ms_fault fault = {0};
    ms_job job;
    ms_arena_reset(&keep);
    ms_arena_reset(&trial);
    *result = (ms_result){0};
    ms_settings_init(&job);
    job.model = model;
    job.uses = true;
    job.training = *training;
    job.training.batch = 8; /* fp8 needs a multiple of 8 rows */
    ck_assert_int_eq(ms_spec_parse(policy, &keep, &job.spec, &fault), MS_OK);
    snprintf(what, sizeof what, "%s, kernels %d, precision %d, %s", model,
             (int)training->kernels, (int)training->precision, policy);
    ms_err err = ms_jobway_run(&job, &keep, &trial, result, &fault);
    ck_assert_msg(err == MS_OK || (err == MS_EUSAGE && fault.what[0] != '\0') ||
                      (err == MS_EINPUT && fault.hint[0] != '\0'),
                  "%s: %s: %s", what, fault.where, fault.what);
    return err == MS_OK;
}

/* The saves that the rule packs, in order: with `once`, a tensor that is packed
 * whole is not packed again; a parameter never is. */
static uint8_t *find_packed(const ms_result *result)
{
    const ms_graph *graph = result->graph;
    const ms_hooks *hooks = &result->program->hooks;
    uint8_t *packs = ms_arena_take(&keep, graph->n_saves + 1, 1);
    uint8_t *whole = ms_arena_take(&keep, graph->n_storages + 1, 1);
    ck_assert(packs != NULL && whole != NULL);
    for (uint32_t i = 0; i < graph->n_saves; i++) {
        const ms_save *save = &graph->saves[i];
        uint32_t s = save->storage;
        bool all = save->bytes >= graph->storage_bytes[s];
        packs[i] = ms_hooks_packs(hooks, save);
        if (hooks->once &&
            ((all && whole[s]) || graph->storage_category[s] == MS_PARAMETERS))
            packs[i] = false;
        whole[s] |= all && packs[i];
    }
    return packs;
}

/* The bytes of the saves that the hooks pack; in *stashed those that the first
 * node of the backward reads while they are in the stash. */
static uint64_t packed_bytes(const ms_result *result, uint64_t *stashed)
{
    const ms_graph *graph = result->graph;
    const ms_hooks *hooks = &result->program->hooks;
    uint32_t first = MS_NONE, n = graph->n_saves;
    uint64_t bytes = 0;
    const uint8_t *packs = find_packed(result);
    *stashed = 0;
    ck_assert(hooks->used);
    for (uint32_t i = 0; i < n; i++) {
        const ms_save *save = &graph->saves[i];
        if (!packs[i])
            continue;
        bytes += save->bytes;
        if (first == MS_NONE || save->first < first)
            first = save->first;
    }
    /* Tensors that came to the hook; the last one that left sent others on. */
    uint32_t id = 0, most = 0;
    for (uint32_t i = 0; i < n; i++) {
        id += graph->saves[i].op < hooks->ops;
        if (packs[i])
            most = id;
    }
    id = 0;
    for (uint32_t i = 0; i < n; i++) {
        const ms_save *save = &graph->saves[i];
        id += save->op < hooks->ops;
        bool there = hooks->stash > 0 && id + hooks->stash > most;
        if (packs[i] && save->first == first && there &&
            save->storage >= graph->n_persistent)
            *stashed += save->bytes;
    }
    return bytes;
}

static void check(const ms_result *result)
{
    const ms_rank_report *rank = &result->report->ranks[0];
    uint64_t stashed, bytes = packed_bytes(result, &stashed);
    ck_assert_msg(rank->d2h_bytes == bytes, "%s: out %llu, not %llu", what,
                  (unsigned long long)rank->d2h_bytes,
                  (unsigned long long)bytes);
    ck_assert_msg(rank->h2d_bytes == bytes - stashed, "%s: in %llu, not %llu",
                  what, (unsigned long long)rank->h2d_bytes,
                  (unsigned long long)(bytes - stashed));
    ck_assert_msg(result->plan->recomputed_ops == 0, "%s: runs again", what);
    /* Megatron has a buffer of gradients */
    if (result->training.kernels != MS_MEGATRON)
        laws_check_rows(result->plan);
    laws_check_steady(result->plan, true);
    if (result->program->hooks.stash == 0)
        ck_assert_msg(result->report->host_peak_bytes == bytes, "%s: host",
                      what);
}

static const char *const policies[] = {
    "swap:save_on_cpu", "swap:save_on_cpu,pin=0,min=4KiB", "swap:torchtune",
    "swap:torchtune,inflight=2,min=1"};
#define N_POLICIES (sizeof policies / sizeof *policies)

static bool check_one(const char *model, const ms_training *training,
                      const char *policy)
{
    ms_result result;
    bool runs = run(model, training, policy, &result);
    if (runs)
        check(&result);
    return runs;
}

/* One model of each family. */
static const char *const some[] = {
    "gpt2",         "bert-base",        "t5-small",   "llama-3.2-1b",
    "mixtral-8x7b", "deepseek-v2-lite", "gemma-2-2b", "vit-b16",
    "resnet18",     "swin-t",           "lstm-lm"};
#define N_SOME (sizeof some / sizeof *some)

START_TEST(what_is_saved_again_stays)
{
    ms_training training;
    ms_training_init(&training);
    training.kernels = MS_EAGER;
    ck_assert(check_one(some[_i], &training, "swap:trl"));
    ms_arena_free(&keep);
    ms_arena_free(&trial);
}
END_TEST

START_TEST(every_model)
{
    ms_training training;
    uint32_t ran = 0;
    ms_training_init(&training);
    for (uint32_t m = 0; m < ms_builtin_n_models; m++)
        ran += check_one(ms_builtin_models[m].name, &training,
                         policies[2 * m % N_POLICIES]);
    ck_assert_uint_eq(ran, ms_builtin_n_models);
    ms_arena_free(&keep);
    ms_arena_free(&trial);
}
END_TEST

/* The hooks take turns, so that each meets many kernels and precisions. */
START_TEST(every_kernel_and_precision)
{
    ms_training training;
    uint32_t ran = 0;
    ms_training_init(&training);
    for (int64_t k = 0; k < MS_KERNELS_N; k++)
        for (int64_t p = MS_FP32; p <= MS_MSAMP_O3; p++) {
            training.kernels = k;
            training.precision = p;
            laws_seed = (uint64_t)(100 * k + p);
            ran += check_one(some[_i], &training,
                             policies[(size_t)(k + p + _i) % N_POLICIES]);
        }
    ck_assert_uint_gt(ran, 20);
    ms_arena_free(&keep);
    ms_arena_free(&trial);
}
END_TEST

Suite *suite_hooks(void)
{
    Suite *suite = suite_create("hooks");
    TCase *tcase = tcase_create("hooks");
    tcase_set_timeout(tcase, 300);
    tcase_add_loop_test(tcase, what_is_saved_again_stays, 0, (int)N_SOME);
    tcase_add_test(tcase, every_model);
    tcase_add_loop_test(tcase, every_kernel_and_precision, 0, (int)N_SOME);
    suite_add_tcase(suite, tcase);
    return suite;
}
