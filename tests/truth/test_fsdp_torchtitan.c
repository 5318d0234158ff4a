/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Peaks of torchtitan's runs with FSDP1 and FSDP2: active bytes, which memsim
 * has, within 3 %; reserved bytes, which hold what the caching allocator cannot
 * use besides, are never less than active ones, and their differences are the
 * differences of active ones. */
#include "tests/tests.h"
#include "tests/truth/truth.h"

#include <stdio.h>
#include <string.h>

#define THOUSANDTH (1073741824.0 / 1000) /* of a GiB */
#define WANTED 3u                        /* rows of active bytes */

static truth_table table;

static uint64_t active_of(uint32_t row)
{
    char path[TESTS_PATH], file[96];
    snprintf(file, sizeof file, "tests/truth/torchtitan_%s.json",
             truth_cell(&table, row, "model"));
    tests_source(file, path);
    const ms_result *result = truth_run(
        "%s --batch %s --sequence %s -p %s --set "
        "training.optimizer_impl=fused --set training.step=%s",
        path, truth_cell(&table, row, "batch"),
        truth_cell(&table, row, "sequence"), truth_cell(&table, row, "policy"),
        truth_cell(&table, row, "step"));
    return truth_rank(result)->peak.active_bytes;
}

static bool is(uint32_t row, const char *quantity)
{
    return strcmp(truth_cell(&table, row, "quantity"), quantity) == 0;
}

static void compare_within(const char *name, double truth, double memsim)
{
    double off = memsim / truth - 1;
    bool within = off < 0.03 && off > -0.03;
    if (!within)
        fprintf(stderr, "%s: %.0f, memsim %.0f\n", name, truth, memsim);
    truth_compare("fsdp", name, "within 3 %: 1", 1, within);
}

START_TEST(active)
{
    uint32_t n = 0;
    truth_begin();
    truth_read_here("fsdp.tsv", &table);
    for (uint32_t row = 0; row < table.n_rows; row++) {
        if (!is(row, "active"))
            continue;
        n++;
        compare_within(truth_cell(&table, row, "name"),
                       (double)truth_number(&table, row, "thousandths") *
                           THOUSANDTH,
                       (double)active_of(row));
    }
    ck_assert_uint_eq(n, WANTED);
    truth_end();
}
END_TEST

static uint32_t row_of(const char *name)
{
    for (uint32_t row = 0; row < table.n_rows; row++)
        if (strcmp(truth_cell(&table, row, "name"), name) == 0)
            return row;
    ck_abort_msg("no row %s", name);
}

static void compare_rows(const char *name, const char *more, const char *less)
{
    uint32_t a = row_of(more), b = row_of(less);
    double truth = (double)(truth_number(&table, a, "thousandths") -
                            truth_number(&table, b, "thousandths"));
    compare_within(name, truth * THOUSANDTH,
                   (double)(active_of(a) - active_of(b)));
}

START_TEST(reserved)
{
    uint32_t n = 0;
    truth_begin();
    truth_read_here("fsdp.tsv", &table);
    for (uint32_t row = 0; row < table.n_rows; row++) {
        if (!is(row, "reserved"))
            continue;
        double truth =
            (double)truth_number(&table, row, "thousandths") * THOUSANDTH;
        n++;
        truth_compare("fsdp", truth_cell(&table, row, "name"),
                      "no less than active: 1", 1,
                      (double)active_of(row) <= truth);
    }
    ck_assert_uint_gt(n, 0);
    /* Adam's moments, made by the first step; weights that stay. */
    compare_rows("b4087730b, Adam's moments", "tt_b4087730b_always",
                 "tt_b4087730b_always_step1");
    compare_rows("b4087730b, weights that stay", "tt_b4087730b_never_step1",
                 "tt_b4087730b_always_step1");
    /* Where all is kept, hardly more is reserved. */
    uint32_t whole = row_of("tt_9dc418a8b_base");
    compare_within("tt_9dc418a8b_base",
                   (double)truth_number(&table, whole, "thousandths") *
                       THOUSANDTH,
                   (double)active_of(whole));
    truth_end();
}
END_TEST

Suite *suite_fsdp_torchtitan(void)
{
    Suite *suite = suite_create("fsdp_torchtitan");
    TCase *tcase = tcase_create("fsdp_torchtitan");
    tcase_add_test(tcase, active);
    tcase_add_test(tcase, reserved);
    suite_add_tcase(suite, tcase);
    return suite;
}
