/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Real models in pipelines, beside the policies that may stand there: the ranks
 * together are the model, whatever the order of their turns. */
#include "sim/graph.h"
#include "sim/plan.h"
#include "sim/report.h"
#include "sim/timeline.h"
#include "tests/tests.h"
#include "tests/truth/truth.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const models[] = {
    "gpt2 --sequence 32", "resnet18", "bert-base --sequence 32",
    "t5-small --sequence 32", "mixtral-8x7b --sequence 16"};
static const char *const schedules[] = {"1f1b",
                                        "gpipe",
                                        "zb-h1",
                                        "zb-h2",
                                        "zb-v",
                                        "interleaved,chunks=2",
                                        "looped-bfs,chunks=2",
                                        "zb-h1,chunks=2",
                                        "zb-1p",
                                        "zb-2p",
                                        "1f1b,overlap=1"};
static const char *const beside[] = {"",
                                     "+checkpoint:full",
                                     "+checkpoint:sqrt",
                                     "+checkpoint:full,variant=reentrant",
                                     "+ddp:dp=2",
                                     "+zero:1,dp=2",
                                     "+zero:2,dp=2"};

typedef struct sums {
    uint64_t parameters_bytes, gradients_bytes;
    double forward, backward, recompute;
} sums;

static sums sum(const ms_report *report)
{
    sums out = {.forward = report->forward_flops,
                .backward = report->backward_flops,
                .recompute = report->recompute_flops};
    for (uint32_t r = 0; r < report->n_ranks; r++) {
        out.parameters_bytes += report->ranks[r].parameters_bytes;
        out.gradients_bytes += report->ranks[r].gradients_bytes;
    }
    return out;
}

static bool is_near(double a, double b, double share)
{
    return a <= b * (1 + share) && a >= b * (1 - share);
}

/* What the stages of a tied weight have of it beyond one. */
static uint64_t copies_of(const ms_graph *graph, uint64_t parameters_bytes)
{
    uint64_t bytes = 0;
    for (uint32_t s = 0; s < graph->n_persistent; s++)
        if (ms_graph_is_weight(graph, s))
            bytes += graph->storage_bytes[s];
    return bytes - parameters_bytes;
}

static void check_states(const char *words, const ms_result *result,
                         const sums *alone)
{
    sums staged = sum(result->report);
    /* the adds of gradients differ: those of tied weights, or shared ones */
    ck_assert_msg(is_near(staged.forward, alone->forward, 1e-9) &&
                      is_near(staged.backward, alone->backward, 0.05),
                  "%s: forward %.0f, backward %.0f FLOPs; alone %.0f, %.0f",
                  words, staged.forward, staged.backward, alone->forward,
                  alone->backward);
    uint64_t whole = alone->parameters_bytes +
                     copies_of(result->graph, alone->parameters_bytes);
    ck_assert_msg(staged.parameters_bytes == whole,
                  "%s: %llu bytes of parameters, not %llu", words,
                  (unsigned long long)staged.parameters_bytes,
                  (unsigned long long)whole);
    for (uint32_t r = 0; r < result->report->n_ranks; r++) {
        const ms_rank_report *rank = &result->report->ranks[r];
        ck_assert_msg(rank->levels[MS_MARK_END] != MS_NO_LEVEL &&
                          rank->levels[MS_MARK_AFTER_FORWARD] <=
                              rank->peak.allocated_bytes,
                      "%s: rank %u has no levels", words, r);
    }
}

START_TEST(ranks_are_the_model)
{
    char words[256];
    truth_begin();
    snprintf(words, sizeof words, "%s --batch 4 -p microbatch:4", models[_i]);
    sums alone = sum(truth_run("%s", words)->report);
    for (size_t s = 0; s < sizeof schedules / sizeof *schedules; s++)
        for (size_t b = 0; b < sizeof beside / sizeof *beside; b++) {
            snprintf(words, sizeof words,
                     "%s --batch 4 -p microbatch:4+pipeline:2,schedule=%s%s",
                     models[_i], schedules[s], beside[b]);
            const ms_result *result = truth_run("%s", words);
            check_states(words, result, &alone);
            bool again = b >= 1 && b <= 3;
            ck_assert_msg((result->report->recompute_flops > 0) == again, "%s",
                          words);
        }
    truth_end();
}
END_TEST

/* The plan of a run and the times of its ops as text, on the heap. */
static char *events_of(const char *words)
{
    ms_arena arena = {0};
    ms_text text = {.arena = &arena};
    const ms_result *result = truth_run("%s", words);
    ms_dumpplan_write(result->plan, &text);
    for (uint32_t i = 0; i < result->plan->n_ops; i++)
        ms_text_add(&text, "%llu-%llu\n",
                    (unsigned long long)result->line->start_ns[i],
                    (unsigned long long)result->line->end_ns[i]);
    ck_assert(!text.failed);
    char *out = strdup(text.bytes);
    ck_assert_ptr_nonnull(out);
    ms_arena_free(&arena);
    return out;
}

/* One rank is no pipeline: whatever the schedule, and whatever stands beside
 * it, its events are those of the run without to the byte and the nanosecond.
 */
START_TEST(one_rank_is_none)
{
    static const char *const orders[] = {"",
                                         ",schedule=gpipe",
                                         ",schedule=interleaved",
                                         ",impl=torch",
                                         ",schedule=zb-h1",
                                         ",schedule=zb-h2,impl=torch",
                                         ",schedule=looped-bfs,deallocate=0",
                                         ",schedule=zb-v",
                                         ",schedule=v-half",
                                         ",schedule=v-min",
                                         ",schedule=dualpipev",
                                         ",schedule=dualpipe",
                                         ",layers=12,overlap=1"};
    static const char *const more[] = {"",
                                       "+checkpoint:full",
                                       "+checkpoint:sqrt,variant=reentrant",
                                       "+ddp:dp=2",
                                       "+zero:1,dp=4",
                                       "+zero:2,dp=4",
                                       "+zero:3,dp=4",
                                       "+fsdp:dp=4",
                                       "+fsdp:dp=4+checkpoint:full",
                                       "+offload:optimizer"};
    char words[256];
    truth_begin();
    for (size_t m = 0; m < sizeof more / sizeof *more; m++) {
        snprintf(words, sizeof words,
                 "gpt2 --set model.layers=4 --sequence 64 --batch 4 -p "
                 "microbatch:4%s",
                 more[m]);
        char *alone = events_of(words);
        for (size_t o = 0; o < sizeof orders / sizeof *orders; o++) {
            snprintf(words, sizeof words,
                     "gpt2 --set model.layers=4 --sequence 64 --batch 4 -p "
                     "microbatch:4%s+pipeline:1%s",
                     more[m], o == 12 ? ",layers=4,overlap=1" : orders[o]);
            char *one = events_of(words);
            ck_assert_str_eq(one, alone);
            free(one);
        }
        free(alone);
    }
    truth_end();
}
END_TEST

/* Data-parallel ranks do the same with as many bytes in the same time: the plan
 * has one of them for each stage (laws.messages: what holds for one holds for
 * all). */
START_TEST(equal_ranks_are_one)
{
    static const struct {
        const char *policies;
        uint32_t ranks;
    } shapes[] = {{"ddp:dp=8", 1},
                  {"zero:3,dp=8", 1},
                  {"fsdp:dp=16,shard=4", 1},
                  {"microbatch:2+pipeline:2+ddp:dp=4", 2},
                  {"microbatch:2+pipeline:2,chunks=2+zero:1,dp=8", 2}};
    truth_begin();
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        ck_assert_uint_eq(truth_run("gpt2 --batch 2 -p %s", shapes[i].policies)
                              ->plan->n_ranks,
                          shapes[i].ranks);
    truth_end();
}
END_TEST

static void expect_same(const char *one, const char *other)
{
    const ms_report *report =
        truth_run("gpt2 --batch 8 -p microbatch:8+%s", one)->report;
    const ms_rank_report a = report->ranks[report->worst];
    report = truth_run("gpt2 --batch 8 -p microbatch:8+%s", other)->report;
    const ms_rank_report b = report->ranks[report->worst];
    ck_assert_msg(a.time.step_ns == b.time.step_ns &&
                      a.peak.allocated_bytes == b.peak.allocated_bytes,
                  "%s: %llu bytes, %llu ns; %s: %llu, %llu", one,
                  (unsigned long long)a.peak.allocated_bytes,
                  (unsigned long long)a.time.step_ns, other,
                  (unsigned long long)b.peak.allocated_bytes,
                  (unsigned long long)b.time.step_ns);
}

/* Megatron's partial checkpoints: none of the micro-batches in flight is all in
 * full, all of them is what `first` says; between, more in full takes less
 * memory and more time. */
START_TEST(partial_checkpoints)
{
    static const char *const shape[] = {"pipeline:4", "pipeline:2,chunks=2",
                                        "pipeline:4,schedule=zb-h1"};
    char one[128], other[128];
    truth_begin();
    for (size_t i = 0; i < sizeof shape / sizeof *shape; i++) {
        snprintf(one, sizeof one, "%s+checkpoint:first=1,partial=0", shape[i]);
        snprintf(other, sizeof other, "%s+checkpoint:full", shape[i]);
        expect_same(one, other);
        snprintf(one, sizeof one, "%s+checkpoint:first=1,partial=8", shape[i]);
        snprintf(other, sizeof other, "%s+checkpoint:first=1", shape[i]);
        expect_same(one, other);
    }
    double recomputed = 0;
    for (uint32_t n = 4; n <= 4; n--) {
        const ms_report *report =
            truth_run("gpt2 --batch 8 -p microbatch:8+pipeline:4+checkpoint:"
                      "first=0,partial=%u",
                      n)
                ->report;
        ck_assert(n == 4 ? report->recompute_flops <= 0
                         : report->recompute_flops > recomputed);
        recomputed = report->recompute_flops;
    }
    truth_end();
}
END_TEST

Suite *suite_staged(void)
{
    Suite *suite = suite_create("staged");
    TCase *tcase = tcase_create("staged");
    tcase_set_timeout(tcase, 120);
    tcase_add_loop_test(tcase, ranks_are_the_model, 0,
                        sizeof models / sizeof *models);
    tcase_add_test(tcase, one_rank_is_none);
    tcase_add_test(tcase, equal_ranks_are_one);
    tcase_add_test(tcase, partial_checkpoints);
    suite_add_tcase(suite, tcase);
    return suite;
}
