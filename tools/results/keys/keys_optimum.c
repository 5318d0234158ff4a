/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What the plan of a policy is the best of, and what its model foresaw. */
#include "sim/report.h"
#include "tools/results/sheet.h"

static bool has_peak(const void *of)
{
    return ((const ms_sheet *)of)->optimum.peak_bytes > 0;
}

#define OPTIMUM(kind, member) MS_KEYS_AT(kind, ms_sheet, optimum.member)
static const ms_key optimum_rows[] = {
    MS_KEYS_TEXT("class", OPTIMUM(TEXT, best),
                 .help = "the plan takes least of: all_orders (anything made "
                         "again), cut_points (persistent plans over a DAG's "
                         "cut points, all orders inside its blocks), "
                         "persistent (those of a chain, rotor's), tried (those "
                         "of a chain that were tried)"),
    {.name = "unit_bytes",
     .type = MS_KEY_COUNT,
     OPTIMUM(SOME, unit_bytes),
     .null = true,
     .help = "the sizes were rounded up to it; null: it is exact"},
    {.name = "foreseen_peak_bytes",
     .type = MS_KEY_COUNT,
     OPTIMUM(SOME, peak_bytes),
     .null = true,
     .help = "what the solver's model says; null: it does not say"},
    MS_KEYS_COUNT("foreseen_step_ns", OPTIMUM(U64, ns),
                  .help = "the same of time"),
    {.name = "peak_gap_bytes",
     .type = MS_KEY_INTEGER,
     OPTIMUM(I64, more_bytes),
     .null = true,
     .there = has_peak,
     .help = "the peak of the step less what was foreseen"},
    {.name = "step_gap_ns",
     .type = MS_KEY_INTEGER,
     OPTIMUM(I64, more_ns),
     .help = "the time of the step less what was foreseen"},
};
const ms_keys ms_keys_optimum = MS_KEYS_OBJECT("optimum", optimum_rows);
