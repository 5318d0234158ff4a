/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_TOOLS_COMPARE_H
#define MS_TOOLS_COMPARE_H

/* The parts of memsim compare:
 *
 *     compare.c        variants of a job, each simulated
 *     compare_text.c   side by side, for people
 *     compare_data.c   JSON and CSV
 *
 * A variant is a job with its result; what makes it differ (policies today) is
 * known to compare.c alone.
 */

#include "tools/explain.h"

typedef struct ms_variant {
    ms_job job;
    ms_result result;
    const char *policy; /* canonical spelling */
} ms_variant;

typedef struct ms_comparison {
    const ms_variant *variants;
    uint32_t n;
    bool explain;   /* the rest is set: of two variants */
    const char *at; /* as given, or NULL: the peaks */
    uint32_t top;   /* groups to tell of; MS_NONE: all */
    ms_alive alive[2];
    ms_group *groups; /* that they hold differently */
    uint32_t n_groups;
} ms_comparison;

/* What is compared, as data: a number of the rank with the highest peak. */
typedef struct ms_compare_row {
    const char *label; /* for people */
    const char *key;   /* "peak_allocated_bytes", "step_ns" */
    size_t offset;     /* of a uint64_t in ms_rank_report */
    bool is_time;      /* ns; else bytes */
} ms_compare_row;
enum { /* rows that begin a part of the table: sizes, the categories at the
          peak, times, what links move */
       MS_COMPARE_PEAK = 0,
       MS_COMPARE_HELD = 5,
       MS_COMPARE_STEP = 13,
       MS_COMPARE_MOVED = 25
};
extern const ms_compare_row ms_compare_rows[];
extern const uint32_t ms_compare_n_rows;

uint64_t ms_compare_value(const ms_variant *variant, uint32_t row);
const ms_rank_report *ms_compare_rank(const ms_variant *variant);

/* ---- compare_text.c ------------------------------------------------------ */

void ms_compare_text_write(const ms_comparison *comparison,
                           const ms_style *style, ms_text *text);

/* ---- compare_data.c ------------------------------------------------------ */

ms_err ms_compare_data_json(const ms_comparison *comparison, ms_text *text,
                            ms_fault *fault);
void ms_compare_data_csv(const ms_comparison *comparison, ms_text *text);

#endif
