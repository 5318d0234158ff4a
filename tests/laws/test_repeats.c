/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Micro-batches that repeat are counted instead of simulated. The report is,
 * byte for byte, that of the step with all of them, for every policy (each
 * on one of two models), several numbers of micro-batches, and hosts that
 * are ahead of the device or behind it. */
#include "policies/common/policy.h"
#include "sim/measure/bylayer.h"
#include "sim/timeline.h"
#include "tests/inlined.h"
#include "tests/laws/laws.h"
#include "tests/tests.h"
#include "tools/cli/commands.h"
#include "tools/job/job.h"
#include "tools/job/result.h"
#include "tools/job/settings.h"
#include "tools/results/sheet.h"

#include <stdio.h>
#include <string.h>

static const char *const checkpoints[] = {"", "+checkpoint:sqrt",
                                          "+checkpoint:full,variant=reentrant"};
static const char *const shares[] = {
    "",
    "+ddp:dp=4",
    "+zero:2,dp=3",
    "+zero:3,dp=4,prefetch=3",
    "+zero:1,dp=4,impl=deepspeed",
    "+zero:2,dp=3,impl=deepspeed,reduce_bucket_size=700,overlap_comm=1",
    "+zero:3,dp=4,impl=deepspeed,reduce_bucket_size=900,"
    "param_persistence_threshold=64,prefetch_bucket_size=2000,"
    "max_reuse_distance=1500",
    "+fsdp:dp=4,reshard_ranks=2",
    "+fsdp:dp=6,shard=3,reshard=but_last,units=split,sync=last",
    "+fsdp:impl=1,dp=4"};
static const char *const swaps[] = {"", "+swap:save_on_cpu", "+swap:vdnn=all",
                                    "+swap:belady", "+swap:torchtune"};
static const char *const offloads[] = {"", "+offload:optimizer/gradients",
                                       "+offload:optimizer,impl=deepspeed",
                                       ("+offload:optimizer,impl=deepspeed,"
                                        "topk_ratio=0.1,overlap_step=1")};
static const uint32_t counts[] = {9, 10, 17, 33};
/* the host is behind the device, or ahead of it */
static const uint64_t samples[] = {1, 4096};
#define MANY(list) (sizeof(list) / sizeof *(list))

static const char *const models[] = {
    "{\"memsim\": 1, \"family\": \"decoder\", \"config\": {\"layers\": 3, "
    "\"hidden\": 32, \"heads\": 2, \"vocab\": 100, \"positions\": 16}}",
    "{\"memsim\": 1, \"name\": \"mlp\", \"input\": {\"shape\": [32]}, "
    "\"layers\": [{\"repeat\": 4, \"name\": \"h\", \"layers\": ["
    "{\"type\": \"linear\", \"out\": 32}, {\"type\": \"dropout\"}, "
    "{\"type\": \"gelu\"}]}, {\"type\": \"mean\"}]}",
};

static ms_arena keep, trial;

static ms_err read_job(const char *json, const char *policy, uint64_t batch,
                       ms_job *job, ms_result *result, ms_fault *fault)
{
    ms_settings_init(job);
    job->training.batch = (int64_t)batch;
    return inlined_lower(json, policy, job, &keep, result, fault);
}

/* The report as text, without what only a timeline has, and the layers. */
static const char *words_of(ms_result *result)
{
    const ms_report_names names = {"model", "device", "none", "{}", NULL, NULL};
    ms_fault fault = {0};
    ms_text text = {.arena = &trial};
    ms_layer_use *layers;
    uint32_t n;
    result->report->events = result->report->repeats = 0;
    result->report->ranks[0].peak.number = 0;
    ms_sheet_json(result->report, result->graph, &names, NULL, &text);
    ck_assert_int_eq(
        ms_bylayer_measure(result->line, 0, &trial, &layers, &n, &fault),
        MS_OK);
    for (uint32_t i = 0; i < n; i++)
        ms_text_add(&text, "\n%s %llu %llu %llu", layers[i].name,
                    (unsigned long long)layers[i].saved_bytes,
                    (unsigned long long)layers[i].forward_ns,
                    (unsigned long long)layers[i].recompute_ns);
    ck_assert(!text.failed);
    return text.bytes;
}

/* The events are a subset of all events, at the same times. */
static void check_events(const ms_result *few, const ms_result *all)
{
    uint32_t e = 0;
    for (uint32_t i = 0; i < few->line->n_events; i++, e++) {
        const ms_event *event = &few->line->events[i];
        uint64_t bytes = few->plan->row[event->row].bytes;
        while (e < all->line->n_events &&
               (all->line->events[e].t_ns != event->t_ns ||
                all->plan->row[all->line->events[e].row].bytes != bytes))
            e++;
        ck_assert_uint_lt(e, all->line->n_events);
    }
    ck_assert_uint_eq(few->line->step_ns, all->line->step_ns);
}

/* 0: it was refused; 1: the step does not repeat; 2: it does, and the report
 * is the same. */
static int try_policy(const char *json, const char *policy, uint64_t batch)
{
    ms_fault fault = {0};
    ms_job job;
    ms_result few = {0}, all;
    if (read_job(json, policy, batch, &job, &few, &fault) != MS_OK)
        return 0;
    all = few;
    job.whole_ops = UINT64_MAX;
    if (ms_jobway_step(&job, &trial, &all, &fault) != MS_OK)
        return 0;
    job.whole_ops = 1;
    ck_assert_msg(ms_jobway_step(&job, &trial, &few, &fault) == MS_OK, "%s: %s",
                  policy, fault.what);
    if (few.report->repeats == 0)
        return 1;
    check_events(&few, &all);
    const char *words = words_of(&few), *expected = words_of(&all);
    const char *why = differ_texts(policy, words, expected);
    ck_assert_msg(why == NULL, "%s", why);
    return 2;
}

START_TEST(what_repeats_is_what_all_are)
{
    const size_t sizes[] = {MANY(checkpoints), MANY(shares), MANY(swaps),
                            MANY(offloads)};
    const char *const *const parts[] = {checkpoints, shares, swaps, offloads};
    size_t all = sizes[0] * sizes[1] * sizes[2] * sizes[3], n[3] = {0};
    for (size_t i = 0; i < all; i++) {
        char policy[320];
        size_t rest = i;
        uint32_t count = counts[i / MANY(models) % MANY(counts)];
        snprintf(policy, sizeof policy, "microbatch:%u", count);
        for (size_t p = 0; p < MANY(parts); p++) {
            strcat(policy, parts[p][rest % sizes[p]]);
            rest /= sizes[p];
        }
        n[try_policy(models[i % MANY(models)], policy,
                     count * samples[i / MANY(models) / MANY(counts) % 2])]++;
        ms_arena_reset(&keep);
        ms_arena_reset(&trial);
    }
    /* most steps repeat; the others are expanded in full */
    ck_assert_uint_gt(n[2], 4 * n[1]);
    ms_arena_free(&keep);
    ms_arena_free(&trial);
}
END_TEST

/* Where micro-batches do not repeat there is a limit on the ops. */
START_TEST(too_many_are_refused)
{
    ms_fault fault = {0};
    ms_job job;
    ms_result result = {0};
    ck_assert_int_eq(read_job(models[0], "microbatch:1000000", 1000000, &job,
                              &result, &fault),
                     MS_OK);
    job.book_device = true;
    ck_assert_int_eq(ms_jobway_step(&job, &trial, &result, &fault), MS_EUSAGE);
    ck_assert_ptr_nonnull(strstr(fault.what, "1000000 micro-batches of"));
    job.book_device = false;
    fault = (ms_fault){0};
    ck_assert_int_eq(ms_jobway_step(&job, &trial, &result, &fault), MS_OK);
    ck_assert_uint_gt(result.report->repeats, 999900);
    ck_assert_uint_lt(result.plan->n_ops, 100000);
    ms_arena_free(&keep);
    ms_arena_free(&trial);
}
END_TEST

/* Those of a pipeline overlap, and a schedule may not have any number of them:
 * all are run. */
START_TEST(pipelines_run_all)
{
    static const char six[] =
        "{\"memsim\": 1, \"name\": \"mlp\", \"input\": {\"shape\": [32]}, "
        "\"layers\": [{\"repeat\": 6, \"name\": \"h\", \"layers\": ["
        "{\"type\": \"linear\", \"out\": 32}, {\"type\": \"gelu\"}]}, "
        "{\"type\": \"mean\"}]}";
    const char *policy = "microbatch:18+pipeline:3,schedule=interleaved,"
                         "chunks=2";
    ck_assert_int_eq(try_policy(six, policy, 18), 1);
    ms_arena_free(&keep);
    ms_arena_free(&trial);
}
END_TEST

Suite *suite_repeats(void)
{
    Suite *suite = suite_create("repeats");
    TCase *tcase = tcase_create("repeats");
    tcase_set_timeout(tcase, 120);
    tcase_add_test(tcase, what_repeats_is_what_all_are);
    tcase_add_test(tcase, too_many_are_refused);
    tcase_add_test(tcase, pipelines_run_all);
    suite_add_tcase(suite, tcase);
    return suite;
}
