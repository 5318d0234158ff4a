/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Peaks of torchtitan's runs with FSDP1 and FSDP2: active bytes, and reserved
 * bytes of the caching allocator as its scripts set it, within 3 %; those of
 * stages of a pipeline, whose code is not all memsim's, within more. */
#include "sim/report.h"
#include "sim/timeline.h"
#include "tests/tests.h"
#include "tests/truth/truth.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
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

/* The step of a row of stagepeaks.tsv. */
static const ms_result *run_stages(uint32_t row)
{
    return truth_run(
        "llama-3.1-405b --gpus 512 --batch %s --sequence %s --device "
        "h100-96gb-sxm --set training.optimizer_impl=fused --set "
        "training.hold_output=none -p tensor:8,sp,overlap%s+pipeline:8,%s,"
        "impl=torch+fsdp+microbatch:8+checkpoint:full --allocator torch",
        truth_cell(&table, row, "batch"), truth_cell(&table, row, "sequence"),
        truth_cell(&table, row, "context"), truth_cell(&table, row, "order"));
}

static void compare_stages(uint32_t row, uint64_t bytes)
{
    char words[64];
    const char *within = truth_cell(&table, row, "within");
    double truth = (double)truth_number(&table, row, "thousandths");
    double percent = 100 * (double)bytes / (truth * THOUSANDTH);
    bool near = fabs(percent - 100) <= strtod(within, NULL);
    snprintf(words, sizeof words, "reserved, %% of truth, 100: within %s",
             within);
    truth_compare("fsdp", truth_cell(&table, row, "name"), words, 100,
                  near ? 100 : (uint64_t)(percent + 0.5));
}

/* Interleaving gains as much as there: 128 tokens a second and GPU for 100. */
START_TEST(stages)
{
    uint64_t step_ns[2];
    truth_begin();
    truth_read_here("stagepeaks.tsv", &table);
    ck_assert_uint_eq(table.n_rows, 6);
    for (uint32_t row = 0; row < table.n_rows; row++) {
        const ms_result *made = run_stages(row);
        uint64_t most = 0;
        for (uint16_t r = 0; r < made->report->n_ranks; r++)
            if (made->report->ranks[r].peak.reserved_bytes > most)
                most = made->report->ranks[r].peak.reserved_bytes;
        ck_assert(made->report->fits);
        compare_stages(row, most);
        if (row < 2)
            step_ns[row] = made->line->step_ns;
    }
    double gain = (double)step_ns[0] / (double)step_ns[1];
    truth_compare("fsdp", "tt_t5_405b: interleaved over 1f1b",
                  "tokens a second, 1.28 within 3 %: 1", 1,
                  fabs(gain / 1.28 - 1) <= 0.03);
    truth_end();
}
END_TEST

Suite *suite_fsdp_torchtitan(void)
{
    Suite *suite = suite_create("fsdp_torchtitan");
    TCase *tcase = tcase_create("fsdp_torchtitan");
    tcase_set_timeout(tcase, 120);
    tcase_add_test(tcase, peaks);
    tcase_add_test(tcase, differences);
    tcase_add_test(tcase, stages);
    suite_add_tcase(suite, tcase);
    return suite;
}
