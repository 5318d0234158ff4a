/* SPDX-License-Identifier: GPL-3.0-or-later */
/* --grid and --filter: the points, and the messages for wrong ones. */
#include "policies/common/policy.h"
#include "tests/tests.h"
#include "tools/cli/commands.h"
#include "tools/job/job.h"
#include "tools/job/settings.h"
#include "tools/options/options.h"
#include "tools/points/points.h"

#include <stdio.h>
#include <string.h>

#define MAX_WORDS 12

static ms_arena arena;
static ms_fault fault;
static ms_arguments arguments;
static ms_job base;
static ms_grid grid;

static void setup(void)
{
    arena = (ms_arena){0};
    fault = (ms_fault){.caret = -1};
}

static void teardown(void)
{
    ms_arena_free(&arena);
}

static ms_err read_words(const char *const *words)
{
    const char *all[MAX_WORDS] = {"gpt2"};
    uint32_t n = 1;
    for (; words[n - 1] != NULL; n++)
        all[n] = words[n - 1];
    fault = (ms_fault){.caret = -1};
    MS_TRY(ms_options_parse(MS_FOR_SWEEP, all, n, &arena, &arguments, &fault));
    MS_TRY(ms_settings_read(&arguments, &arena, &base, &fault));
    return ms_grid_read(&arguments, &base, &arena, &grid, &fault);
}

static ms_err read_one(const char *text)
{
    const char *const words[] = {"--grid", text, NULL};
    return read_words(words);
}

static const struct {
    const char *text, *key, *values; /* joined with blanks */
} lists[] = {
    {"batch=1", "training.batch", "1"},
    {"training.batch=4,2,8", "training.batch", "4 2 8"},
    {"batch=1..5", "training.batch", "1 2 3 4 5"},
    {"batch=3..3", "training.batch", "3"},
    {"batch=1..64*2", "training.batch", "1 2 4 8 16 32 64"},
    {"batch=1..63*2", "training.batch", "1 2 4 8 16 32"},
    {"batch=1..20+8", "training.batch", "1 9 17"},
    {"batch=16;1..2;5", "training.batch", "16 1 2 5"},
    {"sequence=0..2", "training.sequence", "0 1 2"},
    {"policy=none;zero:3,dp=8;", "policy", "none zero:3,dp=8"},
    {"policy=microbatch:2+checkpoint:sqrt", "policy",
     "microbatch:2+checkpoint:sqrt"},
    {"memory=1GiB..4GiB*2", "memory", "1073741824 2147483648 4294967296"},
    {"memory=1kB,2000B", "memory", "1000 2000"},
    {"gpus=1..3", "gpus", "1 2 3"},
    {"device=h100,4090", "device", "h100-80gb-sxm rtx4090-24gb"},
    {"model.layers=2..6+2", "model.layers", "2 4 6"},
    {"model.name=a..b,c", "model.name", "a..b c"},
    {"graph.unknown_op=refuse,conservative", "graph.unknown_op",
     "refuse conservative"},
    {"training.device=cpu", "training.device", "cpu"},
    {"tensor=1,2,4", "tensor", "1 2 4"},
    {"tp=1..8*2", "tensor", "1 2 4 8"},
    {"context=none;4,mode=ring", "context", "none 4,mode=ring"},
    {"checkpoint=sqrt,none", "checkpoint", "sqrt none"},
};

START_TEST(lists_are_read)
{
    char values[256] = "";
    ck_assert_msg(read_one(lists[_i].text) == MS_OK, "%s", fault.what);
    ck_assert_uint_eq(grid.n_axes, 1);
    ck_assert_str_eq(grid.axes[0].key, lists[_i].key);
    for (uint64_t point = 0; point < grid.n_points; point++) {
        if (point > 0)
            strcat(values, " ");
        strcat(values, ms_grid_value(&grid, point, 0));
    }
    ck_assert_str_eq(values, lists[_i].values);
}
END_TEST

static const struct {
    const char *text, *what;
    int caret;
} wrong[] = {
    {"batch", "is not KEY=", 0},
    {"=1", "is not KEY=", 0},
    {"bach=1", "unknown key", 0},
    {"model.=1", "unknown key", 0},
    {"graph.batch=1", "unknown key", 0},
    {"batch=", "is missing", 6},
    {"batch=1,", "is missing", 8},
    {"batch=1,,2", "is missing", 8},
    {"batch=;1", "is missing", 6},
    {"batch=0", "must be", 6},
    {"batch=1,x", "must be", 8},
    {"batch=1, 2", "must be", 8},
    {"batch=1..1073741825*2", NULL, 0}, /* 2^30 is the last, and allowed */
    {"batch=1..2147483648*2", "must be", 6},
    {"batch=0..5", "must be", 6},
    {"batch=8..1", "ends before", 6},
    {"batch=1..8+0", "never ends", 6},
    {"batch=1..8*1", "never ends", 6},
    {"batch=1..8*0", "never ends", 6},
    {"sequence=0..8*2", "never ends", 9},
    {"batch=1..", "not a whole number", 9},
    {"batch=1..8+", "not a whole number", 11},
    {"batch=1..8*-2", "not a whole number", 11},
    {"batch=1...8", "not a whole number", 9},
    {"batch=1..8..2", "not a whole number", 9},
    {"batch=1..99999999999999999999", "beyond", 9},
    {"batch=1..10000001", "more than 10,000,000", 6},
    {"batch=2,1..3", "twice", 8},
    {"memory=80G", "no known unit", 7},
    {"memory=1GiB,1024MiB", "twice", 12},
    {"memory=1GiB..80G", "no known unit", 13},
    {"policy=zero:3,dp=8", "unknown policy", 14},
    {"policy=none;chekpoint:sqrt", "unknown policy", 12},
    {"policy=checkpoint:sqrt;checkpoint:sqrt", "twice", 23},
    {"device=h100,h100-80gb-sxm", "twice", 12},
    {"gpus=0", "expected a number of GPUs", 5},
    {"precision=fp99", "cannot be", 10},
    {"tensor=1,x", "unknown argument", 9},
    {"tensor=2..0", "ends before", 7},
    {"tensor=0", "out of range", 7},
    {"tensr=2", "unknown key", 0},
    {"tensor=1,2,1", "twice", 11},
};

START_TEST(wrong_lists_are_refused)
{
    ms_err err = read_one(wrong[_i].text);
    if (wrong[_i].what == NULL) {
        ck_assert_int_eq(err, MS_OK);
        return;
    }
    ck_assert_int_eq(err, MS_EUSAGE);
    ck_assert_str_eq(fault.where, "--grid");
    ck_assert_msg(strstr(fault.what, wrong[_i].what) != NULL, "%s: %s",
                  wrong[_i].text, fault.what);
    ck_assert_str_eq(fault.source, wrong[_i].text);
    ck_assert_int_eq(fault.caret, wrong[_i].caret);
}
END_TEST

START_TEST(the_last_varies_fastest)
{
    const char *const words[] = {"--grid", "policy=none;checkpoint:sqrt",
                                 "--grid", "batch=1,2,4",
                                 "-p",     "microbatch:1",
                                 "--grid", "model.layers=2,3",
                                 NULL};
    char got[16];
    ck_assert_int_eq(read_words(words), MS_OK);
    ck_assert_uint_eq(grid.n_points, 12);
    for (uint32_t point = 0; point < 12; point++) {
        static const char batches[] = {'1', '2', '4'};
        ms_job job;
        ck_assert_int_eq(ms_grid_job(&grid, point, &base, &arena, &job, &fault),
                         MS_OK);
        snprintf(got, sizeof got, "%c", batches[point / 2 % 3]);
        ck_assert_str_eq(ms_grid_value(&grid, point, 1), got);
        ck_assert_int_eq(job.training.batch, batches[point / 2 % 3] - '0');
        ck_assert_str_eq(job.overrides[0].value, point % 2 == 0 ? "2" : "3");
        ck_assert_str_eq(ms_spec_print(&job.spec, &arena),
                         point < 6 ? "microbatch:1"
                                   : "microbatch:1+checkpoint:sqrt");
        ck_assert_uint_eq(job.n_overrides, 1);
    }
}
END_TEST

START_TEST(two_of_a_key_and_too_many)
{
    const char *const twice[] = {"--grid", "batch=1", "--grid",
                                 "training.batch=2", NULL};
    const char *const many[] = {"--grid", "batch=1..10000", "--grid",
                                "sequence=1..10001", NULL};
    const char *const clash[] = {"--grid", "policy=none;checkpoint:full", "-p",
                                 "checkpoint:sqrt", NULL};
    const char *const both[] = {"--grid", "tensor=1,2", "--grid",
                                "policy=tensor:2;none", NULL};
    ck_assert_int_eq(read_words(twice), MS_EUSAGE);
    ck_assert_ptr_nonnull(strstr(fault.what, "two grids"));
    ck_assert_int_eq(read_words(many), MS_EUSAGE);
    ck_assert_ptr_nonnull(strstr(fault.what, "more than 100,000,000 points"));
    ck_assert_int_eq(read_words(clash), MS_EUSAGE);
    ck_assert_int_eq(fault.caret, 12);
    ck_assert_int_eq(read_words(both), MS_EUSAGE);
    ck_assert_str_eq(fault.what, "policy \"tensor\" is given twice");
}
END_TEST

/* A policy's name is a key whose values join all others, in whatever order the
 * grids are given. */
START_TEST(policies_are_keys)
{
    static const char *const expected[] = {
        "microbatch:2+zero:1",          "microbatch:2+zero:3",
        "microbatch:2+tensor:2+zero:1", "microbatch:2+tensor:2+zero:3",
        "microbatch:2+tensor:4+zero:1", "microbatch:2+tensor:4+zero:3"};
    const char *const words[] = {
        "--grid", "tp=none,2,4", "--grid", "policy=zero:1;zero:3",
        "--grid", "batch=4,8",   "-p",     "microbatch:2",
        NULL};
    ck_assert_msg(read_words(words) == MS_OK, "%s", fault.what);
    ck_assert_uint_eq(grid.n_points, 12);
    ck_assert_uint_eq(grid.n_specs, 6);
    for (uint32_t point = 0; point < 12; point++) {
        ms_job job;
        ms_spec spec;
        uint32_t index = ms_grid_spec_index(&grid, point);
        ck_assert_uint_eq(index, point / 2);
        ms_grid_spec(&grid, index, &base, &spec);
        ck_assert_int_eq(ms_grid_job(&grid, point, &base, &arena, &job, &fault),
                         MS_OK);
        ck_assert_str_eq(ms_spec_print(&job.spec, &arena), expected[index]);
        ck_assert_str_eq(ms_spec_print(&spec, &arena), expected[index]);
    }
}
END_TEST

/* ---- filters ------------------------------------------------------------- */

static ms_err read_filter(const char *text, ms_filters *filters)
{
    const char *const words[] = {
        "--grid",   "batch=1..8*2", "--grid", "policy=none;checkpoint:sqrt",
        "--filter", text,           "--set",  "sequence=512",
        "--memory", "80GiB",        NULL};
    MS_TRY(read_words(words));
    return ms_filter_read(&arguments, &grid, &base, &arena, filters, &fault);
}

/* Points in the order batch 1 none, 1 sqrt, 2 none, ...; x: kept. */
static const struct {
    const char *text, *kept;
} filters_table[] = {
    {"batch<4", "xxxx...."},
    {"batch<=4", "xxxxxx.."},
    {"batch>4", "......xx"},
    {"training.batch>=4", "....xxxx"},
    {"batch=2", "..xx...."},
    {"batch!=2", "xx..xxxx"},
    {"4<=batch", "....xxxx"},
    {"batch*sequence<=1024", "xxxx...."},
    {"batch*batch*2>batch*4", "....xxxx"},
    {"memory>=80GiB", "xxxxxxxx"},
    {"memory*batch>160GiB", "....xxxx"},
    {"policy=none", "x.x.x.x."},
    {"policy!=none", ".x.x.x.x"},
    {"policy=checkpoint:sqrt", ".x.x.x.x"},
    {"policy~sqrt", ".x.x.x.x"},
    {"policy~e", "xxxxxxxx"},
    {"precision=bf16-mixed", "xxxxxxxx"},
    {"precision!=bf16-mixed", "........"},
    {"device=h100", "xxxxxxxx"},
    {"tensor=none", "xxxxxxxx"},
    {"tensor=4", "........"},
};

START_TEST(filters_keep)
{
    ms_filters filters;
    char kept[16] = "";
    ck_assert_msg(read_filter(filters_table[_i].text, &filters) == MS_OK, "%s",
                  fault.what);
    for (uint64_t point = 0; point < grid.n_points; point++)
        strcat(kept, ms_filter_holds(&filters, &grid, point) ? "x" : ".");
    const char *why =
        differ_texts(filters_table[_i].text, kept, filters_table[_i].kept);
    ck_assert_msg(why == NULL, "%s", why);
}
END_TEST

static const struct {
    const char *text, *what;
    int caret;
} wrong_filters[] = {
    {"batch", "compares with", 0},
    {"batch!4", "compares with", 5},
    {"<4", "is missing", 0},
    {"batch<", "is missing", 6},
    {"batch*<4", "is missing", 6},
    {"bach<4", "neither a number nor a key", 0},
    {"batch<4x", "not a number", 6},
    {"batch==4", "neither a number nor a key", 6},
    {"batch<policy", "not numbers", 6},
    {"policy<4", "not numbers", 0},
    {"policy*2=4", "not numbers", 0},
    {"policy=nome", "unknown policy", 7},
    {"policy!=", "is missing", 8},
    {"2~4", "looks for a word", 0},
    {"gpus<4", "has no value", 0},
    {"tensor<4", "not numbers", 0},
    {"model.layers=4", "has no value", 0},
    {"1*1*1*1*1*1*1*1*1<2", "more than 8", 16},
};

START_TEST(wrong_filters_are_refused)
{
    ms_filters filters;
    ck_assert_int_eq(read_filter(wrong_filters[_i].text, &filters), MS_EUSAGE);
    ck_assert_str_eq(fault.where, "--filter");
    ck_assert_msg(strstr(fault.what, wrong_filters[_i].what) != NULL, "%s: %s",
                  wrong_filters[_i].text, fault.what);
    ck_assert_msg(fault.caret == wrong_filters[_i].caret, "%s: %d",
                  wrong_filters[_i].text, fault.caret);
}
END_TEST

#define N(table) ((int)(sizeof table / sizeof table[0]))

Suite *suite_grid(void)
{
    Suite *suite = suite_create("grid");
    TCase *tcase = tcase_create("grid");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_loop_test(tcase, lists_are_read, 0, N(lists));
    tcase_add_loop_test(tcase, wrong_lists_are_refused, 0, N(wrong));
    tcase_add_test(tcase, the_last_varies_fastest);
    tcase_add_test(tcase, two_of_a_key_and_too_many);
    tcase_add_test(tcase, policies_are_keys);
    tcase_add_loop_test(tcase, filters_keep, 0, N(filters_table));
    tcase_add_loop_test(tcase, wrong_filters_are_refused, 0, N(wrong_filters));
    suite_add_tcase(suite, tcase);
    return suite;
}
