/* SPDX-License-Identifier: GPL-3.0-or-later */
/* memsim compare: the names of variants, rows that add up, saved results
 * that compare as the runs did that they come from, and memory that runs
 * out. */
#include "plots/plots.h"
#include "policies/common/policy.h"
#include "sim/names.h"
#include "tests/tests.h"
#include "tests/unit/folder.h"
#include "tools/cli/commands.h"
#include "tools/cli/compare/compare.h"
#include "tools/options/options.h"
#include "tools/terminal/screen.h"

#include <stdio.h>
#include <string.h>

#define MOST_WORDS 12u
#define MOST_MALLOCS 2000
#define LIMITS 300

static ms_arena keep, trial;
static ms_fault fault;
static ms_points points;
static ms_comparison c;

#define MUST(call)                                                             \
    ck_assert_msg((call) == MS_OK, "%s: %s", fault.where, fault.what)

static void setup(void)
{
    keep = trial = (ms_arena){0};
    points = (ms_points){0};
    c = (ms_comparison){0};
    fault = (ms_fault){.caret = -1};
    folder_open();
}

static void close_all(void)
{
    ms_variants_close(&points, &c);
    ms_points_close(&points);
    ms_arena_free(&trial);
    ms_arena_free(&keep);
    keep = trial = (ms_arena){0};
    c = (ms_comparison){0};
    fault = (ms_fault){.caret = -1};
}

static void teardown(void)
{
    close_all();
    folder_close();
}

/* What the command does before it prints. */
static ms_err make(const char *const *words)
{
    ms_arguments arguments = {0};
    ms_hall hall = {&arguments, &keep, &trial, NULL};
    uint32_t n = 0;
    while (n < MOST_WORDS && words[n] != NULL)
        n++;
    MS_TRY(
        ms_options_parse(MS_FOR_COMPARE, words, n, &keep, &arguments, &fault));
    MS_TRY(ms_points_open(&points, &fault));
    MS_TRY(ms_variants_read(&hall, &points, &c, &fault));
    return ms_variants_fill(
        &hall, &points, MS_VARIANTS_JSON | MS_VARIANTS_TIMELINE, &c, &fault);
}

static const char *table(void)
{
    ms_text text = {.arena = &keep};
    ms_compare_data_csv(&c, &text);
    ck_assert(!text.failed);
    return text.bytes;
}

/* As compare --json prints it. */
static const char *save(const char *name)
{
    ms_text text = {.arena = &keep};
    ms_compare_data_json(&c, &text);
    ck_assert(!text.failed);
    char *path = ms_arena_format(&keep, "%s", folder_path(name));
    MUST(ms_output_write(path, text.bytes, text.length, &fault));
    return path;
}

/* ---- names --------------------------------------------------------------- */

static const struct {
    const char *words[MOST_WORDS], *names;
} named[] = {
    {{"gpt2", "-p", "none", "-p", "checkpoint:every=1"},
     "none|checkpoint:every=1|"},
    {{"gpt2", "--grid=batch=1,2"}, "batch=1|batch=2|"},
    {{"gpt2", "--grid=training.batch=1", "--grid=gpus=1,2"}, "gpus=1|gpus=2|"},
    {{"gpt2", "-p", "zero:1", "--gpus=2", "--grid=memory=1GiB,1KiB"},
     "memory=1.00 GiB|memory=1.00 KiB|"},
    {{"gpt2", "-p", "microbatch:2", "-p", "microbatch:4", "--batch=4",
      "--grid=policy=none;checkpoint:full"},
     "microbatch:2, none|microbatch:2, checkpoint:full|"
     "microbatch:4, none|microbatch:4, checkpoint:full|"},
    {{"gpt2", "--grid=batch=1..4", "--grid=precision=fp32,bf16",
      "--filter=precision=fp32", "--filter=batch>2"},
     "batch=3|batch=4|"},
    {{"gpt2", "gpt2-xl"}, "gpt2|gpt2-xl|"},
    {{"gpt2", "gpt2-xl", "-p", "none", "-p", "checkpoint:full"},
     "gpt2, none|gpt2, checkpoint:full|"
     "gpt2-xl, none|gpt2-xl, checkpoint:full|"},
};
#define N_NAMED ((int)(sizeof named / sizeof named[0]))

START_TEST(names_tell_what_varies)
{
    char names[512] = "";
    MUST(make(named[_i].words));
    for (uint32_t i = 0; i < c.n; i++) {
        ck_assert_uint_lt(strlen(names) + strlen(c.variants[i].name) + 2,
                          sizeof names);
        strcat(strcat(names, c.variants[i].name), "|");
    }
    ck_assert_str_eq(names, named[_i].names);
}
END_TEST

/* ---- rows ---------------------------------------------------------------- */

static uint64_t sum(const ms_variant *variant, uint32_t from, uint32_t to)
{
    uint64_t total = 0;
    for (uint32_t row = from; row < to; row++)
        total += ms_compare_values_of(variant, row);
    return total;
}

START_TEST(rows_add_up)
{
    static const char *const words[] = {"gpt2", "--batch=8",
                                        "-p",   "none",
                                        "-p",   "checkpoint:sqrt+microbatch:2",
                                        "-p",   "zero:3,dp=8",
                                        "-p",   "offload:optimizer",
                                        NULL};
    MUST(make(words));
    for (uint32_t i = 0; i < c.n; i++) {
        const ms_variant *it = &c.variants[i];
        ck_assert_uint_eq(sum(it, MS_COMPARE_HELD, MS_COMPARE_STEP),
                          ms_compare_values_of(it, MS_COMPARE_PEAK));
        ck_assert_uint_eq(sum(it, MS_COMPARE_STEP + 1, MS_COMPARE_MOVED),
                          ms_compare_values_of(it, MS_COMPARE_STEP));
        for (uint32_t p = 0; p < MS_N_PHASES; p++) {
            uint32_t from = MS_COMPARE_IN_TIME + p * MS_N_CATEGORIES;
            ck_assert_uint_eq(sum(it, from, from + MS_N_CATEGORIES),
                              ms_compare_values_of(it, MS_COMPARE_PHASES + p));
        }
    }
}
END_TEST

START_TEST(rows_have_keys_of_their_own)
{
    for (uint32_t row = 0; row < MS_COMPARE_N_ROWS; row++) {
        const ms_compare_row *it = &ms_compare_rows[row];
        ck_assert_ptr_nonnull(it->key);
        const char *unit = it->is_time ? "_ns" : "_bytes";
        ck_assert_str_eq(it->key + strlen(it->key) - strlen(unit), unit);
        for (uint32_t other = 0; other < row; other++)
            ck_assert_str_ne(ms_compare_rows[other].key, it->key);
        if (row < MS_COMPARE_IN_TIME)
            continue;
        uint32_t i = row - MS_COMPARE_IN_TIME;
        ck_assert_str_eq(
            it->key, ms_arena_format(&keep, "%s_%s_bytes",
                                     ms_names_phase[i / MS_N_CATEGORIES],
                                     ms_names_category[i % MS_N_CATEGORIES]));
    }
}
END_TEST

/* ---- results ------------------------------------------------------------- */

START_TEST(results_are_the_variants_they_were)
{
    static const char *const words[] = {"gpt2", "--grid=batch=1,4",
                                        "--grid=optimizer=sgd,adamw", NULL};
    static char first[1 << 14];
    MUST(make(words));
    const char *path = save("a.json");
    ck_assert_uint_lt(strlen(table()), sizeof first);
    strcpy(first, table());
    char copy[4096];
    ck_assert_uint_lt(strlen(path), sizeof copy);
    strcpy(copy, path);
    close_all();
    MUST(make((const char *const[]){copy, NULL}));
    ck_assert_str_eq(table(), first);
}
END_TEST

/* A result, one of the three variants, is read again and reported as before. */
START_TEST(refused_variants_stay)
{
    static const char *const words[] = {"gpt2", "-p",       "microbatch:3",
                                        "-p",   "none",     "-p",
                                        "ddp",  "--gpus=2", NULL};
    MUST(make(words));
    ck_assert_uint_eq(c.base, 2);
    ck_assert_ptr_nonnull(c.variants[0].refused);
    ck_assert_ptr_nonnull(c.variants[1].refused);
    ck_assert_ptr_null(c.variants[2].refused);
    ck_assert_str_eq(ms_variants_status(&c.variants[0]), "refused");
    char path[4096], why[512];
    snprintf(why, sizeof why, "%s", c.variants[1].refused);
    ck_assert_uint_lt(strlen(save("a.json")), sizeof path);
    strcpy(path, save("a.json"));
    close_all();
    MUST(make((const char *const[]){path, NULL}));
    ck_assert_uint_eq(c.n, 3);
    ck_assert_uint_eq(c.base, 2);
    ck_assert_str_eq(c.variants[0].name, "microbatch:3");
    ck_assert_str_eq(ms_variants_status(&c.variants[0]), "refused");
    ck_assert_str_eq(c.variants[1].refused, why);
    ck_assert_str_eq(c.variants[2].policy, "ddp");
}
END_TEST

/* ---- memory that runs out ------------------------------------------------ */

static ms_err everything(const char *const *words)
{
    ms_text text = {.arena = &trial};
    MS_TRY(make(words));
    ms_compare_text_write(&c, ms_screen_style(1, "never"), &text);
    ms_compare_data_csv(&c, &text);
    ms_compare_data_json(&c, &text);
    return text.failed ? ms_fail_nomem(&fault) : MS_OK;
}

static bool runs_out(const char *const *words)
{
    ms_err err = everything(words);
    ms_arena_fail_after(0);
    ck_assert_msg(err == MS_OK || err == MS_ENOMEM, "%s: %s", fault.where,
                  fault.what);
    ck_assert_int_eq(err, fault.err);
    close_all();
    return err == MS_ENOMEM;
}

/* A limit meets every taking of memory, not only those that need a malloc. */
static void run_out(const char *const *words)
{
    long n = 1;
    MUST(everything(words));
    uint64_t used[2] = {keep.used_bytes, trial.used_bytes};
    close_all();
    for (bool out = true; out && n < MOST_MALLOCS; n++) {
        ms_arena_fail_after(n);
        out = runs_out(words);
    }
    ck_assert_int_gt(n, 3);
    ck_assert_int_lt(n, MOST_MALLOCS);
    for (uint64_t i = 1; i < LIMITS; i++) {
        keep.limit_bytes = used[0] * i / LIMITS;
        ck_assert(runs_out(words));
        trial.limit_bytes = used[1] * i / LIMITS;
        ck_assert(runs_out(words));
    }
}

START_TEST(each_malloc_fails)
{
    char path[TESTS_PATH], saved[TESTS_PATH];
    tests_source("tests/golden/files/tiny.json", path);
    const char *const words[] = {path,
                                 "-p",
                                 "none",
                                 "-p",
                                 "microbatch:2",
                                 "--grid=batch=1,2",
                                 "--filter=batch<9",
                                 NULL};
    run_out(words);
    MUST(make(words));
    ck_assert_uint_lt(strlen(save("a.json")), sizeof saved);
    strcpy(saved, save("a.json"));
    close_all();
    run_out((const char *const[]){saved, path, NULL});
}
END_TEST

static const char *const kinds[] = {"bars", "pareto", "timeline"};
#define N_KINDS ((int)(sizeof kinds / sizeof kinds[0]))

/* Memory of the figure alone runs out: nothing is drawn, nothing is written. */
START_TEST(figures_run_out)
{
    static const char *const words[] = {
        "gpt2", "-p", "none", "-p", "ddp", "-p", "checkpoint:sqrt", NULL};
    char path[TESTS_PATH];
    strcpy(path, folder_path("a.svg"));
    const ms_drawing drawing = {.path = path, .arena = &trial};
    ms_err err = MS_ENOMEM;
    MUST(make(words));
    ck_assert_ptr_nonnull(c.variants[1].refused);
    for (uint64_t i = 1; i <= LIMITS && err == MS_ENOMEM; i++) {
        fault = (ms_fault){.caret = -1};
        ms_arena_free(&trial);
        trial.limit_bytes = i << 12;
        ck_assert_int_eq(folder_entries(), 0);
        err = ms_compare_figure_draw(&c, kinds[_i], &drawing, &fault);
    }
    ck_assert_msg(err == MS_OK || err == MS_EPROGRAM, "%s", fault.what);
    ck_assert_int_eq(folder_entries(), err == MS_OK);
}
END_TEST

Suite *suite_compare(void)
{
    Suite *suite = suite_create("compare");
    TCase *tcase = tcase_create("compare");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_set_timeout(tcase, 300);
    tcase_add_loop_test(tcase, names_tell_what_varies, 0, N_NAMED);
    tcase_add_test(tcase, rows_add_up);
    tcase_add_test(tcase, rows_have_keys_of_their_own);
    tcase_add_test(tcase, results_are_the_variants_they_were);
    tcase_add_test(tcase, refused_variants_stay);
    tcase_add_test(tcase, each_malloc_fails);
    tcase_add_loop_test(tcase, figures_run_out, 0, N_KINDS);
    suite_add_tcase(suite, tcase);
    return suite;
}
