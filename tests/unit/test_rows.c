/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Rows of a sweep, read back, and memsim plot without memory. */
#include "policies/common/policy.h"
#include "tests/tests.h"
#include "tests/unit/folder.h"
#include "tools/cli/commands.h"
#include "tools/options/options.h"
#include "tools/results/rows.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HEADER                                                                 \
    "point,training.batch,memory,policy,status,message,"                       \
    "peak_allocated_bytes,peak_reserved_bytes,fits,step_ns,recompute_ns,"      \
    "stall_ns,exposed_comm_ns,tokens_per_second,host_peak_bytes"

static ms_arena arena;
static ms_fault fault;
static ms_rows rows;

static void setup(void)
{
    arena = (ms_arena){0};
    fault = (ms_fault){0};
    rows = (ms_rows){0};
    folder_open();
}

static void teardown(void)
{
    folder_close();
    ms_arena_free(&arena);
}

static ms_err read_text(const char *text)
{
    const ms_quote source = {"rows", text, strlen(text), 0};
    return ms_rows_read(&source, &arena, &rows, &fault);
}

static void must_read(const char *text)
{
    ck_assert_msg(read_text(text) == MS_OK, "%s: %s", fault.where, fault.what);
}

/* Rate apart, no two numbers are the same: none can be taken for another. */
static void check_rows(void)
{
    ck_assert_uint_eq(rows.n, 2);
    ck_assert_uint_eq(rows.n_keys, 2);
    ck_assert_str_eq(rows.keys[0], "training.batch");
    ck_assert_str_eq(rows.keys[1], "memory");
    const ms_sweep_row *row = &rows.rows[0];
    ck_assert_uint_eq(row->point, 7);
    ck_assert_str_eq(row->values[0], "8");
    ck_assert_str_eq(row->values[1], "80GiB");
    ck_assert_str_eq(row->policy, "zero:3,dp=8");
    ck_assert_str_eq(row->status, "ok");
    ck_assert(row->has_numbers && row->fits);
    ck_assert_uint_eq(row->peak_allocated_bytes, UINT64_C(9007199254740993));
    ck_assert_uint_eq(row->peak_reserved_bytes, UINT64_C(9007199254740994));
    ck_assert_uint_eq(row->step_ns, 11);
    ck_assert_uint_eq(row->recompute_ns, 12);
    ck_assert_uint_eq(row->stall_ns, 13);
    ck_assert_uint_eq(row->exposed_comm_ns, 14);
    ck_assert_double_eq(row->tokens_per_second, 1.5e7);
    ck_assert_uint_eq(row->host_peak_bytes, 15);
    row = &rows.rows[1];
    ck_assert_uint_eq(row->point, 8);
    ck_assert_str_eq(row->status, "refused");
    ck_assert_str_eq(row->message, "say \"dp=8\",\nthen");
    ck_assert(!row->has_numbers && !row->fits);
    ck_assert(row->tokens_per_second < 0.0);
}

static const char *const written[] = {
    HEADER "\n"
           "7,8,80GiB,\"zero:3,dp=8\",ok,,9007199254740993,9007199254740994,"
           "true,11,12,13,14,1.5e+07,15\n"
           "8,8,24GiB,zero:3,refused,\"say \"\"dp=8\"\",\nthen\",,,,,,,,,\n",
    HEADER "\r\n"
           "7,8,80GiB,\"zero:3,dp=8\",ok,,9007199254740993,9007199254740994,"
           "true,11,12,13,14,15000000,15\r\n\r\n" HEADER "\r\n"
           "8,8,24GiB,zero:3,refused,\"say \"\"dp=8\"\",\nthen\",,,,,,,,,",
    "{\"point\": 7, \"training.batch\": 8, \"memory\": \"80GiB\", "
    "\"policy\": \"zero:3,dp=8\", \"status\": \"ok\", \"message\": null, "
    "\"peak_allocated_bytes\": 9007199254740993, "
    "\"peak_reserved_bytes\": 9007199254740994, \"fits\": true, "
    "\"step_ns\": 11, \"recompute_ns\": 12, \"stall_ns\": 13, "
    "\"exposed_comm_ns\": 14, \"tokens_per_second\": 1.5e+07, "
    "\"host_peak_bytes\": 15}\n"
    "{\"point\": 8,\n\"training.batch\": 8, \"memory\": \"24GiB\", "
    "\"policy\": \"zero:3\", \"status\": \"refused\", "
    "\"message\": \"say \\\"dp=8\\\",\\nthen\", "
    "\"peak_allocated_bytes\": null, \"peak_reserved_bytes\": null, "
    "\"fits\": null, \"step_ns\": null, \"recompute_ns\": null, "
    "\"stall_ns\": null, \"exposed_comm_ns\": null, "
    "\"tokens_per_second\": null, \"host_peak_bytes\": null}",
};
#define N_WRITTEN ((int)(sizeof written / sizeof written[0]))

static bool is_rows(const ms_quote *source)
{
    ms_fault own = {0};
    bool are;
    ck_assert_int_eq(ms_rows_are(source, &arena, &are, &own), MS_OK);
    return are;
}

START_TEST(rows_are_read_as_written)
{
    const ms_quote source = {"rows", written[_i], strlen(written[_i]), 0};
    ck_assert(is_rows(&source));
    must_read(written[_i]);
    check_rows();
}
END_TEST

/* CSV, then JSON Lines of the same sweep. */
START_TEST(files_join)
{
    must_read(written[0]);
    must_read(written[2]);
    ck_assert_uint_eq(rows.n, 4);
    ck_assert_str_eq(rows.rows[3].values[1], "24GiB");
}
END_TEST

/* Every file that breaks off is read to the end of a row or is refused with
 * its place; none is read beyond its end. */
START_TEST(files_that_break_off)
{
    const char *whole = written[_i];
    size_t length = strlen(whole);
    for (size_t n = 1; n < length; n++) {
        char *part = ms_arena_text(&arena, whole, n);
        ck_assert_ptr_nonnull(part);
        rows = (ms_rows){0};
        fault = (ms_fault){0};
        ms_err err = read_text(part);
        if (err != MS_OK)
            ck_assert_msg(strncmp(fault.where, "rows:", 5) == 0, "%s",
                          fault.where);
        else
            ck_assert_uint_le(rows.n, 2);
    }
}
END_TEST

START_TEST(other_files_are_none)
{
    static const char *const texts[] = {
        "",  "variant,policy\n", "{\"schema_version\": 1}",
        "{", "pointless,",       "{\"point\": "};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        const ms_quote source = {"x", texts[i], strlen(texts[i]), 0};
        ck_assert(!is_rows(&source));
    }
}
END_TEST

/* ---- the command --------------------------------------------------------- */

static const char *const options[][3] = {
    {"--memory=8GiB", "--title=t", NULL},
    {"--figure=pareto", "--keep-script", NULL},
    {"--x=policy", "--y=step", "--series=batch"},
};
#define N_OPTIONS ((int)(sizeof options / sizeof options[0]))

static ms_err plot(int which, ms_arena *keep)
{
    char path[TESTS_PATH];
    const char *words[8] = {"-q", path, "-o", folder_path("figure.svg")};
    uint32_t n = 4;
    int status;
    ms_arguments arguments;
    ms_arena trial = {0};
    ms_hall hall = {&arguments, keep, &trial, NULL};
    tests_source("tests/golden/files/swept.csv", path);
    for (int i = 0; i < 3 && options[which][i] != NULL; i++)
        words[n++] = options[which][i];
    MS_TRY(ms_options_parse(MS_FOR_PLOT, words, n, keep, &arguments, &fault));
    return ms_plot_command(&hall, &status, &fault);
}

START_TEST(memory_runs_out)
{
    ms_arena keep = {0};
    ms_err err = plot(_i, &keep), got = MS_ENOMEM;
    uint64_t used = keep.used_bytes;
    ck_assert(err == MS_OK || err == MS_EPROGRAM);
    ms_arena_free(&keep);
    for (long i = 1; got == MS_ENOMEM; i++) {
        fault = (ms_fault){0};
        ck_assert_int_lt(i, 1000);
        ms_arena_fail_after(i);
        got = plot(_i, &keep);
        ms_arena_fail_after(0);
        ck_assert_int_eq(got, fault.err);
        ms_arena_free(&keep);
    }
    ck_assert_int_eq(got, err);
    for (uint64_t limit = 1; limit < used / 2; limit += used / 100) {
        fault = (ms_fault){0};
        keep.limit_bytes = limit;
        ck_assert_int_eq(plot(_i, &keep), MS_ENOMEM);
        ms_arena_free(&keep);
        keep = (ms_arena){0};
    }
}
END_TEST

Suite *suite_rows(void)
{
    Suite *suite = suite_create("rows");
    TCase *tcase = tcase_create("rows");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_loop_test(tcase, rows_are_read_as_written, 0, N_WRITTEN);
    tcase_add_test(tcase, files_join);
    tcase_add_loop_test(tcase, files_that_break_off, 0, N_WRITTEN);
    tcase_add_test(tcase, other_files_are_none);
    tcase_add_loop_test(tcase, memory_runs_out, 0, N_OPTIONS);
    suite_add_tcase(suite, tcase);
    return suite;
}
