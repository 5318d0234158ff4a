/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Peaks of torchtitan's runs with FSDP1 and FSDP2: active bytes, and reserved
 * bytes of the caching allocator as its scripts set it, within 3 %. */
#include "sim/report.h"
#include "tests/tests.h"
#include "tests/truth/truth.h"

#include <stdio.h>
#include <string.h>

#define THOUSANDTH (1073741824.0 / 1000) /* of a GiB */
#define WANTED 19u

static truth_table table;

static const ms_rank_report *run(uint32_t row)
{
    char path[TESTS_PATH], file[96];
    const char *model = truth_cell(&table, row, "model");
    const char *fused = strstr(model, "_fused");
    int length = fused == NULL ? (int)strlen(model) : (int)(fused - model);
    snprintf(file, sizeof file, "tests/truth/torchtitan_%.*s.json", length,
             model);
    tests_source(file, path);
    const char *step = truth_cell(&table, row, "step");
    const char *pool = truth_cell(&table, row, "pool");
    bool first = strcmp(step, "first") == 0 && strcmp(pool, "exact") != 0;
    return truth_rank(truth_run(
        "%s --batch %s --sequence %s -p %s --set "
        "training.optimizer_impl=fused --set training.step=%s --set "
        "training.hold_output=%s --memory 95.0396GiB --allocator %s%s%s",
        path, truth_cell(&table, row, "batch"),
        truth_cell(&table, row, "sequence"), truth_cell(&table, row, "policy"),
        step, truth_cell(&table, row, "output"), pool,
        first ? " --steps 1" : "",
        fused == NULL ? "" : " --set training.norm_kernel=torch"));
}

static bool is(uint32_t row, const char *quantity)
{
    return strcmp(truth_cell(&table, row, "quantity"), quantity) == 0;
}

/* memsim's number in percent of the truth; 100 where it is within 3. */
static void compare_row(uint32_t row, uint64_t memsim)
{
    double truth = (double)truth_number(&table, row, "thousandths");
    double percent = 100 * (double)memsim / (truth * THOUSANDTH);
    bool within = percent > 97 && percent < 103;
    truth_compare("fsdp", truth_cell(&table, row, "name"),
                  is(row, "active") ? "active, % of truth, 100: within 3"
                                    : "reserved, % of truth, 100: within 3",
                  100, within ? 100 : (uint64_t)(percent + 0.5));
}

START_TEST(peaks)
{
    truth_begin();
    truth_read_here("fsdp.tsv", &table);
    for (uint32_t row = 0; row < table.n_rows; row++) {
        const ms_rank_report *rank = run(row);
        compare_row(row, is(row, "active") ? rank->peak.active_bytes
                                           : rank->peak.reserved_bytes);
    }
    ck_assert_uint_eq(table.n_rows, WANTED);
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

/* Of two rows, to a hundredth of the difference. */
static void compare_rows(const char *name, const char *more, const char *less)
{
    uint32_t a = row_of(more), b = row_of(less);
    double truth = (double)(truth_number(&table, a, "thousandths") -
                            truth_number(&table, b, "thousandths"));
    uint64_t memsim = run(a)->peak.reserved_bytes;
    memsim -= run(b)->peak.reserved_bytes;
    double off = (double)memsim / (truth * THOUSANDTH) - 1;
    truth_compare("fsdp", name, "within 1 %: 1", 1, off < 0.01 && off > -0.01);
}

START_TEST(differences)
{
    truth_begin();
    truth_read_here("fsdp.tsv", &table);
    /* Adam's moments, made by the first step; weights that stay. */
    compare_rows("b4087730b, Adam's moments", "tt_b4087730b_always",
                 "tt_b4087730b_always_step1");
    compare_rows("b4087730b, weights that stay", "tt_b4087730b_never_step1",
                 "tt_b4087730b_always_step1");
    truth_end();
}
END_TEST

Suite *suite_fsdp_torchtitan(void)
{
    Suite *suite = suite_create("fsdp_torchtitan");
    TCase *tcase = tcase_create("fsdp_torchtitan");
    tcase_add_test(tcase, peaks);
    tcase_add_test(tcase, differences);
    suite_add_tcase(suite, tcase);
    return suite;
}
