/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Saved results: the record that is read back is the one that was written, its
 * figures are the run's own, and bad files are reported. */
#include "plots/plots.h"
#include "plots/record/record.h"
#include "policies/common/policy.h"
#include "sim/graph.h"
#include "sim/pools/steps/pooled.h"
#include "sim/report.h"
#include "sim/timeline.h"
#include "tests/tests.h"
#include "tests/unit/folder.h"
#include "tools/advice/leftout.h"
#include "tools/cli/commands.h"
#include "tools/cli/run/figures.h"
#include "tools/job/job.h"
#include "tools/job/result.h"
#include "tools/job/settings.h"
#include "tools/library/runrecord.h"
#include "tools/options/options.h"
#include "tools/results/results.h"
#include "tools/results/sheet.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static ms_arena keep, trial;
static ms_fault fault;
static ms_job job;
static ms_result result;
static ms_record written;

#define MUST(call)                                                             \
    ck_assert_msg((call) == MS_OK, "%s: %s", fault.where, fault.what)

static void setup(void)
{
    keep = trial = (ms_arena){0};
    fault = (ms_fault){0};
    folder_open();
}

static void teardown(void)
{
    folder_close();
    ms_arena_free(&trial);
    ms_arena_free(&keep);
}

/* ---- runs ---------------------------------------------------------------- */

static const struct {
    const char *words[6];
} jobs[] = {
    {{"gpt2", "-p", "checkpoint:sqrt"}},
    {{"gpt2", "-p", "swap:te=6", "--batch=2"}},
    {{"gpt2", "-p", "zero:3,dp=8+microbatch:2", "--batch=2"}},
    {{"gpt2", "-p", "zero:3,dp=8+offload:optimizer/params,to=nvme"}},
    {{"gpt2", "-p", "uvm", "--memory=4GiB", "--batch=4"}},
    {{"gpt2", "-p", "swap:vdnn=all", "--wall", "--memory=3GiB", "--batch=4"}},
    {{"gpt2", "-p", "fsdp:dp=8"}},
    {{"resnet18", "--set=device=cpu", "--book=device"}},
    {{"gpt2", "--allocator=torch", "--batch=2"}},
    {{"gpt2", "--allocator=torch,expandable_segments=True", "-p", "fsdp:dp=8"}},
    {{"gpt2", "-p", "pipeline:3,schedule=zb-h1+microbatch:4+checkpoint:full",
      "--batch=4"}},
};
#define N_JOBS ((int)(sizeof jobs / sizeof jobs[0]))

static const char *run(int which)
{
    ms_arguments arguments;
    ms_text text = {.arena = &keep};
    uint32_t n = 0;
    while (n < 6 && jobs[which].words[n] != NULL)
        n++;
    MUST(ms_options_parse(MS_FOR_RUN, jobs[which].words, n, &keep, &arguments,
                          &fault));
    MUST(ms_settings_read(&arguments, &keep, &job, &fault));
    job.addresses = true;
    MUST(ms_jobway_run(&job, &keep, &trial, &result, &fault));
    const char *policy = ms_settings_policy(&job, &keep);
    MUST(ms_runrecord_of(&job, &result, policy, &keep, &written, &fault));
    MUST(ms_leftout_record(&job, &result, &keep, &written, &fault));
    MUST(ms_runrecord_json(&job, &result, policy, &text, &fault));
    ck_assert(!text.failed);
    return text.bytes;
}

static void save(const char *path, const char *first, const char *second)
{
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_ge(fputs(first, file), 0);
    ck_assert_int_ge(fputs(second, file), 0);
    ck_assert_int_eq(fclose(file), 0);
}

static char *put_both(const ms_record *record)
{
    ms_graph graph = {.parameters = record->parameters};
    ms_text text = {.arena = &keep};
    ms_report_names names = {record->model, record->device, record->policy,
                             NULL,          NULL,           NULL};
    ms_sheet_json(&record->report, &graph, &names, record, &text);
    ck_assert(!text.failed);
    return text.bytes;
}

static char *picture(const ms_record *record, const char *kind)
{
    enum { SIZE = 1 << 20 };
    char *bytes = ms_arena_take(&keep, SIZE, 1);
    char script[256];
    strcpy(script, folder_path("a.gp"));
    ms_drawing drawing = {
        record->title, record->subtitle, folder_path("a.svg"), script, &keep,
        false};
    MUST(ms_figures_draw(kind, record, &drawing, &fault));
    ck_assert_uint_gt(folder_read(folder_path("a.svg"), bytes, SIZE), 0);
    return bytes;
}

/* Says where two texts part. */
static void check_same(const char *text, const char *other)
{
    size_t at = 0;
    while (text[at] == other[at] && text[at] != '\0')
        at++;
    size_t from = at > 40 ? at - 40 : 0;
    ck_assert_msg(text[at] == other[at], "...%.80s\n...%.80s", text + from,
                  other + from);
}

/* The last point has seen all that was reserved, the highest is the peak. */
static void check_peaks(void)
{
    for (uint32_t r = 0; r < written.report.n_ranks; r++) {
        const ms_record_rank *rank = &written.ranks[r];
        const ms_peak *peak = &written.report.ranks[r].peak;
        uint64_t highest_bytes = 0;
        for (uint32_t i = 0; i < rank->n_points; i++)
            if (rank->points[i].total_bytes > highest_bytes)
                highest_bytes = rank->points[i].total_bytes;
        ck_assert_uint_eq(highest_bytes, peak->allocated_bytes);
        ck_assert_uint_eq(rank->reserved_bytes[rank->n_points - 1],
                          peak->reserved_bytes);
        ck_assert_uint_le(rank->n_points, MS_RECORD_COLUMNS + 2);
    }
}

/* Of a pool what comparisons need comes back. */
static void check_pool(const ms_pooled *pool, const ms_pooled *read,
                       uint16_t worst)
{
    ck_assert_int_eq(pool == NULL, read == NULL);
    if (pool == NULL)
        return;
    const ms_pooled_rank *rank = &pool->ranks[worst];
    const ms_pooled_rank *same = &read->ranks[worst];
    ck_assert_uint_eq(pool->setup.steps, read->setup.steps);
    ck_assert_uint_eq(rank->reserved_most_bytes, same->reserved_most_bytes);
    ck_assert_uint_eq(rank->segments, same->segments);
    ck_assert_uint_eq(rank->at_peak.idle_bytes, same->at_peak.idle_bytes);
    ck_assert_uint_eq(rank->at_peak.usable_bytes, same->at_peak.usable_bytes);
}

START_TEST(a_record_comes_back)
{
    ms_record *read;
    uint32_t n;
    save(folder_path("a.json"), run(_i), "\n");
    check_peaks();
    MUST(ms_results_read(folder_path("a.json"), &keep, &read, &n, &fault));
    ck_assert_uint_eq(n, 1);
    check_pool(written.report.pooled, read->report.pooled,
               written.report.worst);
    written.report.pooled = read->report.pooled = NULL;
    check_same(put_both(&written), put_both(read));
    ck_assert_str_eq(read->title, written.title);
    if (system("command -v gnuplot > /dev/null") == 0)
        for (uint32_t i = 0; i < ms_figures_n_kinds; i++) {
            const char *kind = ms_figures_kinds[i].name;
            if (ms_figures_is_address(kind) && written.addresses == NULL)
                continue;
            if (strcmp(kind, "pipeline") == 0 && written.ranks[0].n_turns == 0)
                continue;
            check_same(picture(&written, kind), picture(read, kind));
        }
}
END_TEST

START_TEST(results_follow_one_another)
{
    ms_record *read;
    uint32_t n;
    const char *first = run(0), *second = run(1);
    char *both = ms_arena_format(
        &keep, "{\"schema_version\": 1, \"variants\": [%s, %s]}", first,
        second);
    save(folder_path("a.json"), ms_arena_format(&keep, "%s\n%s", first, second),
         "\n\n");
    MUST(ms_results_read(folder_path("a.json"), &keep, &read, &n, &fault));
    ck_assert_uint_eq(n, 2);
    check_same(put_both(&written), put_both(&read[1]));
    save(folder_path("a.json"), both, "");
    MUST(ms_results_read(folder_path("a.json"), &keep, &read, &n, &fault));
    ck_assert_uint_eq(n, 2);
    check_same(put_both(&written), put_both(&read[1]));
    ck_assert(ms_results_is(folder_path("a.json")));
}
END_TEST

/* ---- bad files ----------------------------------------------------------- */

/* The text with the first `old` after `after` replaced. */
static const char *edit(const char *text, const char *after, const char *old,
                        const char *new)
{
    const char *at = strstr(text, after);
    ck_assert_ptr_nonnull(at);
    at = strstr(at + strlen(after), old);
    ck_assert_ptr_nonnull(at);
    return ms_arena_format(&keep, "%.*s%s%s", (int)(at - text), text, new,
                           at + strlen(old));
}

static void check_refused(const char *text, const char *what)
{
    ms_record *read;
    uint32_t n;
    fault = (ms_fault){0};
    save(folder_path("a.json"), text, "");
    ck_assert_int_eq(
        ms_results_read(folder_path("a.json"), &keep, &read, &n, &fault),
        MS_EINPUT);
    ck_assert_msg(strstr(fault.what, what) != NULL, "%s, not %s", fault.what,
                  what);
    ck_assert_ptr_nonnull(strstr(fault.where, "a.json"));
}

static const struct {
    const char *after, *old, *new, *what;
} edits[] = {
    {"schema_version", "1", "2", "schema version 2; this memsim reads version"},
    {"schema_version", "1", "\"1\"", "\"schema_version\" should be an integer"},
    {"{", "\"schema_version\"", "\"schema\"", "no \"schema_version\""},
    {"status", "\"ok\"", "\"fine\"", "unknown word \"fine\""},
    {"fits", "true", "1", "\"fits\" should be true or false, not an integer"},
    {"by_category", "\"gradients\": ", "\"gradients\": 1", "does not sum to"},
    {"ranks", "\"gradients\": ", "\"gradients\": 1", "does not sum to"},
    {"peak", "\"rank\": 0", "\"rank\": 1", "does not list this rank"},
    {"peak", "\"allocated_bytes\": ", "\"allocated_bytes\": -", "from 0 on"},
    {"ranks", "\"step_ns\": ", "\"step_ns\": 1", "do not sum to \"step_ns\""},
    {"ranks", "\"links\"", "\"lines\"", "there is no \"links\""},
    {"timeline", "\"rank\": 0", "\"rank\": 1", "this should be rank 0"},
    {"timeline", "\"end_ns\": ", "\"end_ns\": null, \"x\": ",
     "\"end_event\" should be an integer, not null"},
    {"\"rows\": [", "], [", ", 1], [", "a row of"},
    {"\"rows\": [[0, ", ", 0, 0, ", ", 0, 0, 9", "less than the categories"},
    {"\"rows\": [[0, ", ", 0, 0, ", ", 9, 0, ", "what is recomputed falls"},
    {"timeline", "\"recompute_ns\": ", "\"recompute_ns\": 1",
     "\"recompute_ns\" is not that of the report"},
    {"\"rows\": [", "[0, ", "[999999999999, ", "a point after the end"},
    {"\"rows\": [", "[0, ", "[999999, ", "do not ascend in time"},
    {"columns", "\"parameters\"", "\"gradients\"", "stands twice"},
    {"columns", "\"reserved_bytes\"", "\"inputs\"", "stands twice"},
    {"columns", "\"t_ns\"", "\"t\"", "unknown word \"t\""},
    {"phases", "\"from_ns\": ", "\"from_ns\": 1", "do not follow one another"},
    {"streams", "\"compute\"", "\"h2d\"", "do not begin with compute"},
    {"work_ns", "\"forward\": ", "\"forward\": 1", "does not sum to \"work_ns"},
    {"work_ns", "\"forward\"", "\"frward\"", "unknown word \"frward\""},
    {"slices", "[[0, ", "[[0, 99999999999", "ends before it begins, or after"},
    {"\"layers\": {\"col", "\"name\", ", "", "the columns should be"},
    {"\"without\"", "\"peak_bytes\": ", "\"peak_bytes\": 1",
     "the highest point is not \"peak_bytes\""},
    {"\"without\"",
     "\"end_ns\": ", "\"end_ns\": 0, \"x\": ", "lies after the end"},
    {"\"without\"", "[[0, ", "[[999999999999, ", "do not ascend in time"},
    {"\"without\"", "\"allocated_bytes\"", "\"t_ns\"", "stands twice"},
};
#define N_EDITS ((int)(sizeof edits / sizeof edits[0]))

START_TEST(contradictions_are_told)
{
    const char *text = run(0);
    for (int i = 0; i < N_EDITS; i++)
        check_refused(edit(text, edits[i].after, edits[i].old, edits[i].new),
                      edits[i].what);
}
END_TEST

START_TEST(what_breaks_off_is_told)
{
    const char *text = run(0);
    size_t length = strlen(text);
    for (size_t part = 1; part < 40; part++) {
        char *cut = ms_arena_text(&keep, text, length * part / 40);
        check_refused(cut, "");
        ck_assert(ms_results_is(folder_path("a.json")));
    }
}
END_TEST

/* Any byte changed: a result or an error with its reason. */
START_TEST(changed_bytes_do_no_harm)
{
    char *text = ms_arena_format(&keep, "%s", run(0));
    size_t length = strlen(text);
    uint32_t seed = 1;
    for (int i = 0; i < 300; i++) {
        ms_arena scratch = {0};
        ms_record *read;
        uint32_t n;
        seed = seed * 1664525u + 1013904223u;
        size_t at = seed % length;
        char was = text[at];
        text[at] = "0919,-{}[]\" n:."[i % 16];
        fault = (ms_fault){0};
        save(folder_path("a.json"), text, "");
        ms_err err =
            ms_results_read(folder_path("a.json"), &scratch, &read, &n, &fault);
        ck_assert(err == MS_OK || err == MS_EINPUT);
        ck_assert_int_eq(err, fault.err);
        text[at] = was;
        ms_arena_free(&scratch);
    }
}
END_TEST

/* Out of memory at each allocation: an error, never half a result. */
START_TEST(reading_runs_out_of_memory)
{
    const char *path = ms_arena_format(&keep, "%s", folder_path("a.json"));
    ms_err err = MS_ENOMEM;
    long n = 1;
    save(path, run(1), "\n");
    for (; err == MS_ENOMEM && n < 1000; n++) {
        ms_arena scratch = {0};
        ms_record *read;
        uint32_t n_read;
        fault = (ms_fault){0};
        ms_arena_fail_after(n);
        err = ms_results_read(path, &scratch, &read, &n_read, &fault);
        ms_arena_fail_after(0);
        ck_assert_int_eq(err, fault.err);
        ms_arena_free(&scratch);
    }
    ck_assert_int_eq(err, MS_OK);
    ck_assert_int_gt(n, 2);
}
END_TEST

static const struct {
    const char *text, *what, *hint;
} others[] = {
    {"", "the file is empty", "memsim run MODEL --json >FILE"},
    {"[1]", "no saved result", "memsim run MODEL --json >FILE"},
    {"{}", "no result of memsim", "memsim run MODEL --json >FILE"},
    {"{\"memsim\": 1, \"family\": \"decoder\"}", "this is a model",
     "memsim run FILE"},
    {"{\"model_type\": \"llama\"}", "configuration", "memsim run FILE"},
    {"point,policy,status\n1,none,ok\n", "a table of memsim sweep",
     "memsim plot FILE"},
    {"{\"point\": 1, \"policy\": \"none\"}\n", "rows of memsim sweep",
     "memsim plot FILE"},
    {"event,t_ns,op\n", "a timeline of run --csv", "run --json"},
    {"variant,policy,status\n", "compare --csv", "compare --json"},
    {"{\"traceEvents\": []}", "a trace of run --trace", "run --json"},
    {"{\"schema_version\": 1, \"at\": {}, \"groups\": []}", "explain --json",
     "run --json"},
    {"{\"schema_version\": 1, \"variants\": [{}]}", "no result of memsim", ""},
};
#define N_OTHERS ((int)(sizeof others / sizeof others[0]))

START_TEST(what_is_no_result_is_told)
{
    check_refused(others[_i].text, others[_i].what);
    ck_assert_ptr_nonnull(strstr(fault.hint, others[_i].hint));
    ck_assert(ms_results_is(folder_path("a.json")) == (_i == N_OTHERS - 1));
}
END_TEST

START_TEST(figures_need_a_timeline)
{
    ms_record *read;
    uint32_t n;
    const char *text = run(0);
    char *path = ms_arena_format(&keep, "%s", folder_path("a.json"));
    ms_drawing drawing = {.title = "x", .arena = &keep};
    save(path, edit(text, "\"ranks\"", "\"timeline\"", "\"line\""), "");
    MUST(ms_results_read(path, &keep, &read, &n, &fault));
    ck_assert_ptr_null(read->ranks);
    drawing.path = folder_path("a.svg");
    for (uint32_t i = 0; i < ms_figures_n_kinds; i++) {
        const char *kind = ms_figures_kinds[i].name;
        if (strcmp(kind, "bars") == 0 || strcmp(kind, "ranks") == 0 ||
            strcmp(kind, "pareto") == 0)
            continue;
        fault = (ms_fault){0};
        ck_assert_int_eq(ms_figures_draw(kind, read, &drawing, &fault),
                         MS_EINPUT);
        ck_assert_ptr_nonnull(strstr(fault.what, "no \"timeline\" to draw"));
    }
    ck_assert_int_eq(folder_entries(), 1);
    ck_assert(!ms_results_is("gpt2") && !ms_results_is("-"));
}
END_TEST

/* Are the words of the one list among those of the other? */
static void check_words(const char *some, const char *all)
{
    for (size_t length; *some != '\0'; some += length + (some[length] == '|')) {
        length = strcspn(some, "|");
        const char *word = ms_arena_text(&keep, some, length);
        ck_assert_msg(ms_options_one_of(all, word), "%s", word);
    }
}

/* What --figure takes is what there is. */
START_TEST(kinds_are_those_of_the_option)
{
    ms_text words = {.arena = &keep};
    for (uint32_t i = 0; i < ms_figures_n_kinds; i++)
        ms_text_add(&words, "%s%s", i > 0 ? "|" : "", ms_figures_kinds[i].name);
    /* of rows of a sweep, and of compare --checkpoint-all */
    ms_text_add(&words, "|curve|front");
    for (uint32_t i = 0; i < ms_options_table_n; i++) {
        const ms_option *option = &ms_options_table[i];
        if (option->id != MS_OPTION_FIGURE)
            continue;
        ck_assert_str_eq(ms_optionuses_of(option, MS_FOR_PLOT)->words,
                         words.bytes);
        for (uint32_t k = 0; option->uses[k].commands != 0; k++)
            check_words(option->uses[k].words, words.bytes);
    }
}
END_TEST

Suite *suite_results(void)
{
    Suite *suite = suite_create("results");
    TCase *tcase = tcase_create("results");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_loop_test(tcase, a_record_comes_back, 0, N_JOBS);
    tcase_add_test(tcase, results_follow_one_another);
    tcase_add_test(tcase, contradictions_are_told);
    tcase_add_test(tcase, what_breaks_off_is_told);
    tcase_add_test(tcase, changed_bytes_do_no_harm);
    tcase_add_test(tcase, reading_runs_out_of_memory);
    tcase_add_loop_test(tcase, what_is_no_result_is_told, 0, N_OTHERS);
    tcase_add_test(tcase, figures_need_a_timeline);
    tcase_add_test(tcase, kinds_are_those_of_the_option);
    suite_add_tcase(suite, tcase);
    return suite;
}
