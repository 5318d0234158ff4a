/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_COMPARE_KEYS_H
#define MS_COMPARE_KEYS_H

/* What memsim compare prints for scripts: structs that compare_data.c fills,
 * and the rows of their keys.  Numbers of variants count from 1. */

#include "tools/alive/alive_keys.h"
#include "tools/cli/compare/compare.h"
#include "tools/results/keys/keys.h"
#include "tools/results/sheet.h"

/* ---- JSON ---------------------------------------------------------------- */

/* What run --json printed, or why there is no such object. */
typedef struct ms_compare_variant {
    ms_sheet_refused refused; /* first: its keys are those of an element */
    ms_key_printed run;       /* json NULL: it was refused */
} ms_compare_variant;

/* A variant minus another, by the rows of compare_rows.c. */
typedef struct ms_compare_difference {
    uint64_t variant, against;
    int64_t of[MS_COMPARE_N_ROWS];
} ms_compare_difference;

/* Variants that differ in their pools alone. */
typedef struct ms_compare_pools {
    uint64_t against, best;
    uint64_t variants[MS_VARIANTS_MOST];
    uint32_t n;
} ms_compare_pools;

typedef struct ms_compare_sheet {
    const char *memsim;
    const char *model; /* NULL: there are several */
    const ms_comparison *comparison;
    ms_compare_variant *variants; /* comparison->n */
    ms_compare_difference *differences;
    ms_compare_pools *pools;
    uint32_t n_differences, n_pools;
    /* With --explain: */
    ms_instant_shown instants[2];
    ms_group_shown *groups;
    uint32_t n_groups;
} ms_compare_sheet;

extern const ms_keys ms_compare_keys; /* of ms_compare_sheet */

/* ---- CSV ----------------------------------------------------------------- */

/* A variant; the pointers are NULL where it was refused. */
typedef struct ms_compare_line {
    uint64_t number;
    const ms_variant *variant;
    const char *status;
    const ms_rank_report *rank;        /* with the highest peak */
    const ms_pooled *pooled;           /* NULL, too: the pool is exact */
    const ms_pooled_rank *pooled_rank; /* of that rank */
} ms_compare_line;

extern const ms_keys ms_compare_keys_line; /* of ms_compare_line */

#endif
