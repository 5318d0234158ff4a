/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Advice: its numbers are those of run, each change of the table is the first
 * way of some job, and a change without effect is not advised. */
#include "policies/common/policy.h"
#include "sim/graph.h"
#include "sim/report.h"
#include "sim/timeline.h"
#include "tests/tests.h"
#include "tools/advice/advice.h"
#include "tools/advice/lowerings.h"
#include "tools/advice/needless.h"
#include "tools/cli/commands.h"
#include "tools/job/job.h"
#include "tools/job/result.h"
#include "tools/job/settings.h"
#include "tools/options/options.h"

#include <stdio.h>
#include <string.h>

#define MOST_WORDS 48
#define GPT3 "gpt3-small --set model.layers=4 "

static ms_fault fault;
static ms_arena arena;

typedef struct tried {
    ms_arguments arguments;
    ms_job job;
    ms_result result;
} tried;

static void setup(void)
{
    arena = (ms_arena){0};
    fault = (ms_fault){.caret = -1};
}

static void teardown(void)
{
    ms_arena_free(&arena);
}

static void demand(ms_err err, const char *line)
{
    ck_assert_msg(err == MS_OK, "%s: %s: %s", line, fault.where, fault.what);
}

/* "MODEL OPTION...": as run reads it, with its pool or (exact) without. */
static void run_job(const char *line, bool exact, tried *t)
{
    const char *words[MOST_WORDS];
    char *copy = ms_arena_text(&arena, line, strlen(line));
    uint32_t n = 0;
    for (char *at = strtok(copy, " "); at != NULL; at = strtok(NULL, " "))
        words[n++] = at;
    ck_assert_uint_lt(n, MOST_WORDS);
    demand(
        ms_options_parse(MS_FOR_RUN, words, n, &arena, &t->arguments, &fault),
        line);
    demand((exact ? ms_settings_read : ms_settings_usual)(&t->arguments, &arena,
                                                          &t->job, &fault),
           line);
    demand(ms_jobway_run(&t->job, &arena, &arena, &t->result, &fault), line);
    ms_defaultpool_settle(&t->result, &t->job);
}

static void run_line(const char *line, tried *t)
{
    run_job(line, true, t);
}

static uint64_t reserved_bytes(const ms_result *result)
{
    return result->report->ranks[result->report->worst].peak.reserved_bytes;
}

static void advise(const tried *t, ms_advice *advice)
{
    demand(ms_advice_find(&t->job, &t->result, advice, &fault), t->job.model);
}

/* ---- the law ------------------------------------------------------------- */

static const char *const lines[] = {
    GPT3 "--batch 4 --memory 3GiB",
    GPT3 "--batch 4 --memory 1500MiB --optimizer adamw",
    GPT3 "--batch 4 --memory 1GiB --set training.loss_kernel=eager",
    GPT3 "--batch 6 --memory 4GiB --allocator torch -p microbatch:2",
    GPT3 "--memory 3401790259 --allocator torch",
    GPT3 "--kernels eager --memory 2200MiB -p checkpoint:sqrt",
    GPT3 "--gpus 4 -p ddp --memory 3300MiB",
    GPT3 "-p zero:1,dp=4,impl=deepspeed --memory 3GiB --batch 4",
    GPT3 "--allocator torch --batch 4 --lengths 512,256 --memory 2500MiB",
    "resnet18 --batch 32 --memory 1100MiB",
    GPT3 "--memory 400MiB",
};

/* Its own command gives each way's peak, time and verdict. */
static void check_way(const tried *t, const ms_advice_way *way)
{
    ms_text command = {.arena = &arena};
    tried then;
    demand(ms_changewords_command(&way->set, &t->arguments, &t->job, &t->result,
                                  &command, &fault),
           t->job.model);
    const char *line = command.bytes + strlen("memsim run ");
    run_job(line, false, &then);
    ck_assert_msg(reserved_bytes(&then.result) == way->reserved_bytes, "%s",
                  line);
    ck_assert_msg(then.result.line->step_ns == way->step_ns, "%s", line);
    ck_assert_msg(then.result.report->fits == way->fits, "%s", line);
}

START_TEST(law_advice_is_what_run_says)
{
    tried t;
    ms_advice advice;
    run_job(lines[_i], false, &t);
    advise(&t, &advice);
    ck_assert_msg(advice.n > 0 && advice.n >= advice.n_fitting, "%s",
                  lines[_i]);
    for (uint32_t i = 0; i < advice.n; i++) {
        check_way(&t, &advice.ways[i]);
        ck_assert_int_eq(advice.ways[i].fits, i < advice.n_fitting);
    }
    for (uint32_t i = 0; i + 1 < advice.n_fitting; i++)
        ck_assert_int_ne(advice.ways[i].costs, advice.ways[i + 1].costs);
}
END_TEST

/* ---- the table ----------------------------------------------------------- */

/* A step whose first way has the change. */
static const struct {
    const char *change, *line;
} firsts[] = {
    {"optimizer_impl=fused",
     GPT3 "--optimizer adam --kernels fused -p checkpoint:full "
          "--memory 1700MiB"},
    {"allocator=expandable_segments:True",
     GPT3 "--memory 3401790259 --allocator torch"},
    {"kernels=flash", GPT3 "--kernels eager --memory 3761104365"},
    {"loss_kernel=liger_linear", GPT3 "--batch 4 --memory 2697MiB"},
    {"loss_kernel=liger", GPT3 "--memory 2552MiB"},
    {"megatron.loss=te", GPT3 "--batch 4 --kernels megatron --memory 4633MiB"},
    {"kernels=fused", "llama-3-8b --set model.layers=4 --batch 8 "
                      "--set loss_kernel=liger_linear --memory 33500MiB"},
    {"zero_grad=none", GPT3 "--set zero_grad=keep --memory 1578MiB"},
    {"hold_output=none",
     GPT3 "--batch 4 --kernels korthikanti --memory 8601MiB"},
    {"zero:1", GPT3 "--gpus 4 -p ddp --kernels fused --memory 3184MiB"},
    {"zero:2",
     GPT3 "--gpus 4 -p ddp --batch 4 --kernels fused --memory 3240MiB"},
    {"checkpoint:selective",
     GPT3 "--batch 4 --kernels megatron --set megatron.attention=unfused "
          "--set megatron.loss=te --memory 2553MiB"},
    {"microbatch:4", GPT3 "--batch 4 --kernels fused --optimizer sgd "
                          "--precision bf16 -p checkpoint:full "
                          "--memory 1010MiB"},
    {"checkpoint:sac", GPT3 "--batch 4 --device a100 "
                            "--set loss_kernel=liger --memory 2686MiB"},
    {"checkpoint:sqrt", GPT3 "--batch 4 --device a100 "
                             "--set loss_kernel=liger --memory 3014MiB"},
    {"checkpoint:full", GPT3 "--kernels fused --memory 781MiB "
                             "-p offload:optimizer/params/gradients"},
    {"zero:3", GPT3 "--gpus 4 -p zero:1 --kernels fused -p checkpoint:full "
                    "--memory 2640MiB"},
    {"fsdp", GPT3 "--batch 16 --gpus 4 -p ddp --kernels fused "
                  "--allocator torch --memory 6652626605"},
    {"swap:torchtune", GPT3 "--batch 4 --precision fp32 --kernels fused "
                            "--optimizer sgd --memory 1629MiB"},
    {"swap:checkpoints",
     GPT3 "--kernels fused --precision bf16 --optimizer adamw-8bit "
          "--set optimizer_in_backward=yes -p checkpoint:full "
          "--memory 1004MiB"},
    {"offload:optimizer", GPT3 "--sequence 512 --kernels fused "
                               "-p checkpoint:full --memory 960MiB"},
    {"offload:optimizer/gradients",
     GPT3 "--batch 4 --kernels fused -p checkpoint:full --memory 1211MiB"},
    {"offload:optimizer/params/gradients",
     GPT3 "--batch 4 --kernels fused --optimizer sgd --precision bf16 "
          "-p checkpoint:full --memory 1131MiB"},
    {"gradients=auto", GPT3 "--set gradients=fp32 --kernels fused "
                            "--precision bf16 -p checkpoint:full "
                            "--memory 1200MiB"},
    {"precision=bf16-mixed", GPT3 "--precision fp32 --kernels fused "
                                  "--optimizer sgd --memory 870MiB"},
    {"optimizer=adamw-8bit",
     GPT3 "--batch 4 --precision fp8 --kernels fused -p checkpoint:full "
          "--memory 1767MiB --host-memory 16MiB"},
    {"optimizer=adam-8bit", GPT3 "--optimizer adam --precision bf16 "
                                 "--kernels fused --memory 1128MiB "
                                 "-p checkpoint:full --host-memory 16MiB"},
    {"optimizer=lion-8bit", GPT3 "--optimizer lion --precision bf16 "
                                 "--kernels fused --memory 965MiB "
                                 "--host-memory 16MiB"},
    {"optimizer_in_backward=yes",
     GPT3 "--kernels fused --optimizer sgd --precision bf16 "
          "-p checkpoint:full --memory 878MiB --host-memory 16MiB"},
    {"precision=fp8", GPT3 "--kernels fused --memory 755MiB "
                           "-p checkpoint:full "
                           "-p offload:optimizer/params/gradients"},
    {"precision=bf16",
     GPT3 "--batch 4 --kernels fused -p checkpoint:full --memory 1424MiB "
          "--host-memory 16MiB"},
    {"lora.base=nf4",
     GPT3 "--batch 4 --set lora.rank=8 --kernels fused --memory 976MiB"},
    {"lora.rank=16",
     GPT3 "--batch 4 --kernels fused --precision bf16 --memory 1113MiB "
          "--optimizer adamw-8bit --set optimizer_in_backward=yes "
          "-p checkpoint:full"},
    {"lora.rank=16 lora.base=nf4",
     GPT3 "--kernels fused --precision bf16 --optimizer adamw-8bit "
          "--memory 756MiB"},
};
#define N_FIRSTS (sizeof firsts / sizeof firsts[0])

static const char *name_of(const tried *t, ms_change_use use)
{
    const char *name = ms_changewords_name(use, &t->job, &t->result, &arena);
    ck_assert_ptr_nonnull(name);
    return name;
}

START_TEST(each_change_is_a_first)
{
    tried t;
    ms_advice advice;
    bool found = false;
    ck_assert_uint_eq(N_FIRSTS, ms_changes_table_n);
    run_line(firsts[_i].line, &t);
    advise(&t, &advice);
    ck_assert_msg(advice.n_fitting > 0, "%s", firsts[_i].line);
    for (uint32_t i = 0; i < advice.ways[0].set.n; i++) {
        ms_change_use use = advice.ways[0].set.use[i];
        found |= use.row == &ms_changes_table[_i] &&
                 strcmp(name_of(&t, use), firsts[_i].change) == 0;
    }
    ck_assert_msg(found, "%s: %s", firsts[_i].change, firsts[_i].line);
}
END_TEST

/* What a run has already is not advised, nor what is of another policy. */
START_TEST(what_is_set_is_no_change)
{
    static const struct {
        const char *slot, *line;
    } none[] = {
        {"share", GPT3},
        {"share", GPT3 "-p zero:3,dp=4"},
        {"share", GPT3 "-p fsdp:dp=4"},
        {"kernels", GPT3 "--kernels fused"},
        {"lora", GPT3 "--set lora.rank=8"},
        {"base", GPT3},
        {"allocator", GPT3},
        {"allocator", GPT3 "--allocator torch,expandable_segments:True"},
        {"offload", GPT3 "-p offload:optimizer"},
        {"optimizer", GPT3 "--optimizer sgd"},
        {"zero_grad", GPT3},
    };
    for (size_t i = 0; i < sizeof none / sizeof none[0]; i++) {
        tried t;
        run_line(none[i].line, &t);
        for (uint32_t r = 0; r < ms_changes_table_n; r++)
            if (strcmp(ms_changes_table[r].slot, none[i].slot) == 0)
                ck_assert_msg(!ms_changes_apply_to(&ms_changes_table[r], &t.job,
                                                   &t.result),
                              "%s: %s", none[i].line, none[i].slot);
    }
}
END_TEST

/* ---- policies that do nothing -------------------------------------------- */

static uint32_t needless_of(const char *line)
{
    tried t;
    uint32_t needless;
    run_line(line, &t);
    demand(ms_needless_find(&t.job, &t.result, &needless, &fault), line);
    return needless;
}

START_TEST(policies_that_do_nothing_are_found)
{
    ck_assert_uint_eq(needless_of(GPT3 "-p checkpoint:selective"), 1);
    ck_assert_uint_eq(needless_of(GPT3 "-p checkpoint:selective "
                                       "--kernels eager"),
                      0);
    ck_assert_uint_eq(needless_of(GPT3 "-p checkpoint:sqrt"), 0);
    ck_assert_uint_eq(needless_of(GPT3 "-p none"), 0);
    ck_assert_uint_eq(needless_of("resnet18 -p checkpoint:selective "
                                  "--allocator torch"),
                      1);
    /* In canonical order: microbatch comes first. */
    ck_assert_uint_eq(needless_of(GPT3 "-p checkpoint:full -p microbatch:1"),
                      1);
    /* Without it the job would have GPUs that nothing shares. */
    ck_assert_uint_eq(needless_of(GPT3 "--gpus 4 -p ddp"), 0);
}
END_TEST

START_TEST(needless_ones_say_why)
{
    tried t;
    ms_text words = {.arena = &arena};
    run_line(GPT3 "-p checkpoint:selective", &t);
    demand(ms_needless_words(&t.job, 1, &arena, &words, &fault), "words");
    ck_assert_str_eq(words.bytes,
                     "checkpoint:selective changes nothing here: attention "
                     "keeps no scores that could be dropped");
}
END_TEST

/* ---- memory -------------------------------------------------------------- */

static ms_err advise_in_words(const tried *t, ms_arena *own)
{
    ms_text text = {.arena = own};
    ms_advice advice;
    uint32_t needless;
    fault = (ms_fault){.caret = -1};
    MS_TRY(ms_advice_find(&t->job, &t->result, &advice, &fault));
    MS_TRY(ms_advicewords_put(&advice, &t->job, &t->result, 10, &text, &fault));
    if (advice.n > 0)
        MS_TRY(ms_changewords_command(&advice.ways[0].set, &t->arguments,
                                      &t->job, &t->result, &text, &fault));
    MS_TRY(ms_needless_find(&t->job, &t->result, &needless, &fault));
    MS_TRY(ms_needless_words(&t->job, needless, own, &text, &fault));
    return text.failed ? ms_fail_nomem(&fault) : MS_OK;
}

START_TEST(each_malloc_fails)
{
    tried t;
    long n = 1;
    run_line("resnet18 --batch 32 --memory 1100MiB -p checkpoint:selective",
             &t);
    for (; n < 1000; n++) {
        ms_arena own = {0};
        ms_arena_fail_after(n);
        ms_err err = advise_in_words(&t, &own);
        ms_arena_fail_after(0);
        ms_arena_free(&own);
        ck_assert_int_eq(err, fault.err);
        if (err == MS_OK)
            break;
        ck_assert_int_eq(err, MS_ENOMEM);
    }
    ck_assert_int_gt(n, 3);
    ck_assert_int_lt(n, 1000);
}
END_TEST

/* The graph of the job with the line's batch and sequence. */
static const ms_graph *graph_of(ms_lowerings *kept, const tried *t,
                                int64_t batch, int64_t sequence)
{
    ms_result own = t->result;
    own.training.batch = batch;
    own.training.sequence = sequence;
    own.graph = NULL;
    demand(ms_jobway_shape(&t->job, &own, &fault), "shape");
    demand(ms_lowerings_graph(kept, &t->job, &own, &fault), "lower");
    ck_assert_uint_eq(own.graph->tokens, (uint64_t)(batch * sequence));
    return own.graph;
}

START_TEST(the_last_graphs_are_kept)
{
    ms_lowerings kept = {0};
    tried t;
    run_line(GPT3 "-p checkpoint:full", &t);
    const ms_graph *first = graph_of(&kept, &t, 1, 64);
    for (int64_t batch = 2; batch <= MS_LOWERINGS_MOST; batch++)
        ck_assert_ptr_ne(graph_of(&kept, &t, batch, 64), first);
    ck_assert_ptr_eq(graph_of(&kept, &t, 1, 64), first);
    /* those of batches 2 and 3 were used longest ago, and go for these two */
    const ms_graph *longer = graph_of(&kept, &t, 1, 128);
    graph_of(&kept, &t, 2, 64);
    ck_assert_ptr_eq(graph_of(&kept, &t, 1, 64), first);
    ck_assert_ptr_eq(graph_of(&kept, &t, 1, 128), longer);
    ms_lowerings_free(&kept);
}
END_TEST

Suite *suite_advice(void)
{
    Suite *suite = suite_create("advice");
    TCase *tcase = tcase_create("advice");
    tcase_set_timeout(tcase, 60);
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_loop_test(tcase, law_advice_is_what_run_says, 0,
                        (int)(sizeof lines / sizeof lines[0]));
    tcase_add_loop_test(tcase, each_change_is_a_first, 0, (int)N_FIRSTS);
    tcase_add_test(tcase, what_is_set_is_no_change);
    tcase_add_test(tcase, policies_that_do_nothing_are_found);
    tcase_add_test(tcase, needless_ones_say_why);
    tcase_add_test(tcase, the_last_graphs_are_kept);
    tcase_add_test(tcase, each_malloc_fails);
    suite_add_tcase(suite, tcase);
    return suite;
}
