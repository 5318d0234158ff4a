/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Ranks that split layers, as others measured them (splits.tsv). */
#include "sim/pools/steps/pooled.h"
#include "sim/report.h"
#include "sim/timeline.h"
#include "tests/tests.h"
#include "tests/truth/truth.h"
#include "tools/job/result.h"

#include <stdio.h>
#include <string.h>

/* peak0, end0: of stage 0; used: of the device, with what is outside of the
 * pool. The end is that of the update, without the step's inputs, which memsim
 * keeps there. */
static uint64_t at_end(const ms_rank_report *rank)
{
    return rank->phase_peaks_with_workspace[MS_PHASE_OPTIMIZER] -
           rank->category_peaks[MS_INPUTS];
}

static uint64_t number(const ms_result *result, const char *quantity)
{
    const ms_pooled *pooled = result->line->pooled;
    if (strncmp(quantity, "peak", 4) == 0)
        return pooled->ranks[quantity[4] - '0'].allocated_peak_bytes;
    if (strncmp(quantity, "reserved", 8) == 0 && quantity[8] != '\0')
        return pooled->ranks[quantity[8] - '0'].reserved_peak_bytes;
    if (strncmp(quantity, "end", 3) == 0 && quantity[3] != '\0')
        return at_end(&result->report->ranks[quantity[3] - '0']);
    const ms_rank_report *rank = truth_rank(result);
    if (strcmp(quantity, "used") == 0)
        return ms_capacity_used(result->report);
    if (strcmp(quantity, "end") == 0)
        return at_end(rank);
    if (strcmp(quantity, "reserved") == 0)
        return rank->peak.reserved_bytes;
    return pooled->ranks[0].allocated_peak_bytes;
}

/* A number within the row's tolerance counts as 10000. */
static void compare(const truth_table *table, uint32_t row)
{
    char path[TESTS_PATH], file[96], words[96];
    const char *quantity = truth_cell(table, row, "quantity");
    snprintf(file, sizeof file, "tests/truth/%s",
             truth_cell(table, row, "model"));
    tests_source(file, path);
    const ms_result *result = truth_run("%s --allocator torch %s", path,
                                        truth_cell(table, row, "options"));
    uint64_t truth = truth_number(table, row, "bytes");
    uint64_t most = truth_number(table, row, "within");
    uint64_t memsim = number(result, quantity);
    uint64_t share = (uint64_t)(10000 * (double)memsim / (double)truth + 0.5);
    bool close = share + most >= 10000 && share <= 10000 + most;
    snprintf(words, sizeof words, "%s, 1/100 %% of truth, 10000: within %d",
             quantity, (int)most);
    truth_compare("splits", truth_cell(table, row, "name"), words, 10000,
                  close ? 10000 : share);
}

START_TEST(measured)
{
    truth_table table;
    truth_begin();
    truth_read_here("splits.tsv", &table);
    for (uint32_t row = 0; row < table.n_rows; row++)
        compare(&table, row);
    truth_end();
}
END_TEST

Suite *suite_splits(void)
{
    Suite *suite = suite_create("splits");
    TCase *tcase = tcase_create("splits");
    tcase_set_timeout(tcase, 120);
    tcase_add_test(tcase, measured);
    suite_add_tcase(suite, tcase);
    return suite;
}
