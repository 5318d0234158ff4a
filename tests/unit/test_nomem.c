/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Host memory that runs out at every allocation of a run: the answer is "out of
 * memory", never a crash, a leak or a wrong result. */
#include "plots/plots.h"
#include "plots/record/record.h"
#include "policies/common/policy.h"
#include "sim/graph.h"
#include "sim/plan.h"
#include "sim/program.h"
#include "sim/timeline.h"
#include "tests/tests.h"
#include "tools/alive/alive.h"
#include "tools/cli/commands.h"
#include "tools/cli/compare/compare.h"
#include "tools/cli/help/help.h"
#include "tools/cli/schema/documents.h"
#include "tools/job/job.h"
#include "tools/job/result.h"
#include "tools/job/settings.h"
#include "tools/options/options.h"
#include "tools/results/sheet.h"
#include "tools/terminal/screen.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#define MOST_WORDS 16
#define MOST_MALLOCS 1000
#define ENOUGH_BYTES (UINT64_C(1) << 30)

static ms_arena keep, trial;
static ms_result result;

/* The model's file below tests/golden/files, then what a user may add. */
static const char *const jobs[][MOST_WORDS] = {
    {"mlp.json", "--batch=8"},
    {"like.json", "--sequence=4"},
    {"skip.json", "-p", "checkpoint:full,variant=reentrant", "--batch=4"},
    {"vision.json", "--kernels=eager", "--batch=2"},
    {"tiny.json", "-p", "checkpoint:sqrt+microbatch:2", "--batch=4"},
    {"tiny-llama.json", "-p", "checkpoint:sac", "--sequence=16"},
    {"tiny-llama.json", "-p", "fsdp:dp=4,shard=2", "--sequence=16"},
    {"tiny-llama.json", "-p", "fsdp:dp=4,impl=1", "--sequence=16"},
    {"tiny.json", "-p", "checkpoint:selective", "--kernels=eager",
     "--framework=torch-1.13", "--precision=fp16-mixed"},
    {"hf-llama.json", "--set=model.num_hidden_layers=2"},
    {"tiny.json", "--kernels=megatron", "--set=megatron.spec=local"},
    {"tiny-llama.json", "--kernels=megatron", "--sequence=16"},
    {"hf-llama.json", "--set=model.model_type=mixtral", "--kernels=eager",
     "--set=model.num_hidden_layers=1", "--set=model.num_local_experts=2",
     "--set=model.head=lm"},
    {"tiny-encoder.json", "--book=device", "--optimizer=sgd"},
    {"parameters.json", "--precision=fp16-mixed", "--optimizer=adam"},
    {"ops.json", "-p", "checkpoint:full"},
    {"tiny.json", "-p", "swap:auto,budget=71600000+checkpoint:auto"},
    {"unknown.json", "--set=graph.unknown_op=conservative"},
    {"tiny.json", "-p", "offload:optimizer", "--allocator=torch", "--steps=2"},
    {"mlp.json", "--allocator=torch", "--steps=2", "--memory=600MiB"},
    {"mlp.json", "--batch=8", "--optimizer=adamw-8bit", "--set=lora.rank=4",
     "--set=lora.targets=all"},
    {"mlp.json", "--optimizer=adafactor", "--set=training.clip_norm=1"},
    {"mlp.json", "--set=training.optimizer_in_backward=yes"},
    {"mlp.json", "-p", "fsdp:dp=2", "--set=training.optimizer_in_backward=yes"},
    {"mlp.json", "-p", "zero:2,dp=2,impl=deepspeed+offload:optimizer"},
    {"tiny.json", "--allocator=torch", "--lengths=2x8,16"},
    {"mlp.json", "--allocator=bfc,allow_growth=true", "--memory=600MiB"},
    {"mlp.json", "--allocator=contiguous", "--steps=2"},
    {"mlp.json", "--allocator=arena"},
    {"mlp.json", "--batch=8", "--precision=fp8", "--set=fp8.weights=kept"},
    {"mlp.json", "--batch=8", "--precision=msamp-o3"},
    {"tiny.json", "--precision=bf16", "--set=frozen.blocks=1",
     "--set=frozen.base=nf4"},
    {"parameters.json", "--hiden=1"}, /* faults run out of memory, too */
};
#define N_JOBS ((int)(sizeof jobs / sizeof jobs[0]))

static ms_err export(const ms_report_names *names, ms_fault *fault)
{
    const ms_export of = {.line = result.line,
                          .machine = result.machine,
                          .names = names,
                          .model_path = "model.json",
                          .capacity_bytes = UINT64_C(1) << 40};
    MS_TRY(ms_memoryviz_write(&of, "/dev/null", &trial, fault));
    MS_TRY(ms_lifetimes_write(&of, "/dev/null", &trial, fault));
    return ms_allocations_write(&of, "/dev/null", &trial, fault);
}

/* What figures of a pool are drawn from. */
static ms_err keep_record(const ms_report_names *names, ms_text *text,
                          ms_fault *fault)
{
    ms_record record;
    if (result.line->pooled == NULL)
        return MS_OK;
    MS_TRY(ms_record_of(result.line, result.report, names, &trial, &record,
                        fault));
    MS_TRY(ms_addresses_of(result.line, "torch", &trial, &record, fault));
    ms_keys_write(&ms_keys_timeline, &record, text);
    return text->failed ? ms_fail_nomem(fault) : MS_OK;
}

static ms_err print(ms_text *text, ms_fault *fault)
{
    const ms_report_names names = {"model", "device", "none", "{}", NULL, NULL};
    MS_TRY(export(&names, fault));
    MS_TRY(keep_record(&names, text, fault));
    ms_sheet_json(result.report, result.graph, &names, NULL, text);
    ms_dump_graph(result.graph, result.program->groups,
                  result.program->n_groups, text);
    ms_dumpplan_write(result.plan, text);
    MS_TRY(ms_table_csv(result.line, text, fault));
    MS_TRY(ms_chart_line(result.line, 0, 50, &trial, text, fault));
    return text->failed ? ms_fail_nomem(fault) : MS_OK;
}

static ms_err read_back(ms_text *text, ms_fault *fault)
{
    ms_program again = {0};
    ms_dump_program(result.graph, result.program, text);
    if (text->failed)
        return ms_fail_nomem(fault);
    return ms_dumpread_program(result.graph, "again", text->bytes, text->length,
                               &trial, &again, fault);
}

/* The step against itself, the peak against the start. */
static ms_err compare(const ms_job *job, ms_text *text, ms_fault *fault)
{
    ms_variant one = {.name = "none",
                      .policy = "none",
                      .allocator = "torch",
                      .beside = "",
                      .setup = "a step",
                      .device = "a device",
                      .json = "{}",
                      .record = {.model = result.model.name,
                                 .device = "device",
                                 .policy = "none",
                                 .report = *result.report},
                      .job = *job,
                      .result = result};
    ms_variant variants[2] = {one, one};
    ms_comparison c = {
        .variants = variants, .n = 2, .explain = true, .top = MS_NONE};
    MS_TRY(ms_alive_find(&result, NULL, &trial, &c.alive[0], fault));
    MS_TRY(ms_alive_find(&result, "0s", &trial, &c.alive[1], fault));
    MS_TRY(ms_differ_find(c.alive, &trial, &c.groups, &c.n_groups, fault));
    ms_compare_text_write(&c, ms_screen_style(1, "never"), text);
    ms_compare_data_csv(&c, text);
    ms_compare_data_json(&c, text);
    return text->failed ? ms_fail_nomem(fault) : MS_OK;
}

/* From words to every text; peak gets the answer. */
static ms_err whole_way(int which, uint64_t *peak_bytes, ms_fault *fault)
{
    char path[TESTS_PATH], folder[TESTS_PATH];
    const char *words[MOST_WORDS];
    uint32_t n = 0;
    ms_job job;
    ms_arguments arguments = {0};
    ms_text text = {.arena = &trial}, program = {.arena = &trial};
    ms_text comparison = {.arena = &trial};
    tests_source("tests/golden/files/", folder);
    ck_assert_uint_lt(strlen(folder) + 32, sizeof path);
    strcat(strcpy(path, folder), jobs[which][0]);
    for (; n < MOST_WORDS && jobs[which][n] != NULL; n++)
        words[n] = n == 0 ? path : jobs[which][n];
    MS_TRY(ms_options_parse(MS_FOR_RUN, words, n, &keep, &arguments, fault));
    MS_TRY(ms_settings_read(&arguments, &keep, &job, fault));
    job.uses = job.addresses = true;
    MS_TRY(ms_jobway_run(&job, &keep, &trial, &result, fault));
    *peak_bytes = result.report->ranks[0].peak.allocated_bytes;
    MS_TRY(print(&text, fault));
    MS_TRY(compare(&job, &comparison, fault));
    return read_back(&program, fault);
}

/* Every schema, and help on the same keys. */
static ms_err words_of_tables(ms_fault *fault)
{
    ms_text text = {.arena = &keep};
    for (uint32_t i = 0; i < ms_documents_n; i++)
        ms_schema_write(&ms_documents[i], &text);
    ms_help_texts_json(&text);
    return text.failed ? ms_fail_nomem(fault) : MS_OK;
}

START_TEST(words_without_memory)
{
    ms_fault fault = {0};
    keep = (ms_arena){0};
    ck_assert_int_eq(words_of_tables(&fault), MS_OK);
    uint64_t used = keep.used_bytes;
    ms_arena_free(&keep);
    for (uint64_t limit = 1; limit < used; limit += used / 200 + 1) {
        fault = (ms_fault){0};
        keep = (ms_arena){.limit_bytes = limit};
        ck_assert_int_eq(words_of_tables(&fault), MS_ENOMEM);
        ms_arena_free(&keep);
    }
    keep = (ms_arena){0};
}
END_TEST

/* One attempt with fresh arenas: false where memory ran out. */
static bool attempt(int which, ms_err expected, uint64_t expected_bytes)
{
    ms_fault fault = {0};
    uint64_t peak_bytes = 0;
    ms_err err = whole_way(which, &peak_bytes, &fault);
    ck_assert_int_eq(err, fault.err);
    if (err != MS_ENOMEM) {
        ck_assert_msg(err == expected, "%s: %s", fault.where, fault.what);
        ck_assert_uint_eq(peak_bytes, expected_bytes);
    }
    ms_arena_free(&keep);
    ms_arena_free(&trial);
    return err != MS_ENOMEM;
}

static ms_err undisturbed(int which, uint64_t *peak_bytes, uint64_t used[2])
{
    ms_fault fault = {0};
    *peak_bytes = 0;
    keep = trial = (ms_arena){0};
    ms_err err = whole_way(which, peak_bytes, &fault);
    used[0] = keep.used_bytes;
    used[1] = trial.used_bytes;
    ms_arena_free(&keep);
    ms_arena_free(&trial);
    return err;
}

START_TEST(each_malloc_fails)
{
    uint64_t peak_bytes, used[2];
    ms_err expected = undisturbed(_i, &peak_bytes, used);
    long n = 1;
    for (; n < MOST_MALLOCS; n++) {
        ms_arena_fail_after(n);
        if (attempt(_i, expected, peak_bytes))
            break;
    }
    ms_arena_fail_after(0);
    ck_assert_int_gt(n, 1);
    ck_assert_int_lt(n, MOST_MALLOCS);
}
END_TEST

/* A limit meets every taking of memory, not only those that need a malloc. */
START_TEST(each_taking_fails)
{
    uint64_t peak_bytes, used[2];
    ms_err expected = undisturbed(_i, &peak_bytes, used);
    uint64_t step = (used[0] + used[1]) / 150 + 1;
    for (uint64_t limit = 1; limit < used[0]; limit += step) {
        keep.limit_bytes = limit;
        ck_assert(!attempt(_i, expected, peak_bytes));
    }
    keep.limit_bytes = ENOUGH_BYTES;
    for (uint64_t limit = 1; limit < used[1]; limit += step) {
        trial.limit_bytes = limit;
        ck_assert(!attempt(_i, expected, peak_bytes));
    }
    trial.limit_bytes = 0;
    ck_assert(attempt(_i, expected, peak_bytes));
}
END_TEST

/* ---- memsim alloc -------------------------------------------------------- */

static const char *const traces[][MOST_WORDS] = {
    {"alloc.txt", "--csv=/dev/null", "--json"},
    {"alloc.txt", "--allocator=torch", "--allocator",
     "torch,expandable_segments=True"},
    {"alloc.txt", "--allocator=bfc,allow_growth=true", "--allocator=buddy",
     "--allocator=contiguous", "--json"},
    {"recorded.json", "--allocator=contiguous", "--allocator=bfc"},
    {"recorded.json", "--csv=/dev/null"},
    {"expandable.json", "--json"},
    {"snapshot.pickle", "--allocator=torch,version=2.4"},
    {"../../fuzz/corpus/alloc/leak", "--leaks", "--json"},
    {"../../fuzz/corpus/alloc/leak", "--leaks"},
    {"alloc.txt", "--allocator=arena,order=best", "--csv=/dev/null"},
    {"buffers.csv", "--allocator=arena,order=exact", "--json"},
    {"recorded.json", "--allocator=arena"},
    {"buffers.csv", "--allocator=arena,order=exact,capacity=13288"},
    {"buffers.csv", "--allocator=arena,order=objects"},
    {"buffers.csv", "--allocator=arena,order=objects-flow", "--json"},
    {"alloc.txt", "--plot=-", "--allocator=torch", "--allocator",
     "torch,expandable_segments=True"},
    {"snapshot.pickle", "--plot=-"},
};
#define N_TRACES ((int)(sizeof traces / sizeof traces[0]))

/* memsim inspect goes the same way. */
static const char *const inspected[][MOST_WORDS] = {
    {"moe.json", "--wide"},
    {"tiny.json", "--csv=/dev/null", "--json"},
    {"hf-llama.json", "--csv=-", "--all"},
};
#define N_INSPECTED ((int)(sizeof inspected / sizeof inspected[0]))

static ms_err replay(int which, ms_fault *fault)
{
    char path[TESTS_PATH], folder[TESTS_PATH];
    const char *words[MOST_WORDS];
    uint32_t n = 0;
    int status;
    ms_arguments arguments = {0};
    ms_hall hall = {&arguments, &keep, &trial, NULL};
    tests_source("tests/golden/files/", folder);
    bool alloc = which < N_TRACES;
    const char *const *row =
        alloc ? traces[which] : inspected[which - N_TRACES];
    strcat(strcpy(path, folder), row[0]);
    for (; n < MOST_WORDS && row[n] != NULL; n++)
        words[n] = n == 0 ? path : row[n];
    MS_TRY(ms_options_parse(alloc ? MS_FOR_ALLOC : MS_FOR_INSPECT, words, n,
                            &keep, &arguments, fault));
    return (alloc ? ms_alloc_command : ms_inspect_command)(&hall, &status,
                                                           fault);
}

static bool attempt_replay(int which)
{
    ms_fault fault = {0};
    ms_err err = replay(which, &fault);
    ck_assert_int_eq(err, fault.err);
    /* gnuplot may be missing */
    ck_assert(err == MS_OK || err == MS_ENOMEM || err == MS_EPROGRAM);
    ms_arena_free(&keep);
    ms_arena_free(&trial);
    return err != MS_ENOMEM;
}

/* What it prints is not of interest. */
static void silence(void)
{
    int null = open("/dev/null", O_WRONLY);
    ck_assert_int_ge(null, 0);
    dup2(null, STDOUT_FILENO);
    dup2(null, STDERR_FILENO);
    close(null);
}

START_TEST(each_malloc_of_a_replay_fails)
{
    long n = 1;
    keep = trial = (ms_arena){0};
    silence();
    for (; n < MOST_MALLOCS; n++) {
        ms_arena_fail_after(n);
        if (attempt_replay(_i))
            break;
    }
    ms_arena_fail_after(0);
    ck_assert_int_gt(n, 1);
    ck_assert_int_lt(n, MOST_MALLOCS);
}
END_TEST

START_TEST(each_taking_of_a_replay_fails)
{
    bool done = false;
    keep = trial = (ms_arena){0};
    silence();
    for (uint64_t limit = 1; !done; limit += 20011) {
        keep.limit_bytes = limit;
        trial.limit_bytes = limit;
        done = attempt_replay(_i);
        ck_assert_uint_lt(limit, ENOUGH_BYTES);
    }
    ck_assert_uint_gt(keep.limit_bytes, 1);
}
END_TEST

Suite *suite_nomem(void)
{
    Suite *suite = suite_create("nomem");
    TCase *tcase = tcase_create("nomem");
    tcase_add_loop_test(tcase, each_malloc_fails, 0, N_JOBS);
    tcase_add_loop_test(tcase, each_taking_fails, 0, N_JOBS);
    tcase_add_loop_test(tcase, each_malloc_of_a_replay_fails, 0,
                        N_TRACES + N_INSPECTED);
    tcase_add_loop_test(tcase, each_taking_of_a_replay_fails, 0,
                        N_TRACES + N_INSPECTED);
    tcase_add_test(tcase, words_without_memory);
    suite_add_tcase(suite, tcase);
    return suite;
}
