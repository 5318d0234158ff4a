/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_COMPARE_KEYS_H
#define MS_COMPARE_KEYS_H

/* What memsim compare prints for scripts: structs that compare_data.c fills,
 * and the rows of their keys. Variants are numbered from 1. */

#include "tools/alive/alive_keys.h"
#include "tools/cli/compare/compare.h"
#include "tools/results/keys/keys.h"
#include "tools/results/sheet.h"

/* ---- JSON ---------------------------------------------------------------- */

/* The object that run --json prints, or why there is none. */
typedef struct ms_compare_variant {
    /* it comes first, since its keys are those of the element */
    ms_sheet_refused refused;
    ms_key_printed run; /* json is NULL where the variant was refused */
} ms_compare_variant;

/* A variant minus the base, by the rows of compare_rows.c. */
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

/* The fastest, and those that are too close to it to tell. */
typedef struct ms_compare_shown_fastest {
    uint64_t variant, percent;
    bool known;
    uint64_t close[MS_VARIANTS_MOST];
    uint32_t n_close;
} ms_compare_shown_fastest;

typedef struct ms_compare_sheet {
    const char *memsim;
    const char *model; /* NULL: there are several models */
    const ms_comparison *comparison;
    ms_compare_variant *variants; /* comparison->n */
    ms_compare_difference *differences;
    ms_compare_pools *pools;
    uint32_t n_differences, n_pools;
    ms_compare_shown_fastest *fastest; /* NULL: all take the same time */
    /* Only with --explain: */
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
    const ms_rank_report *rank;        /* the one with the highest peak */
    const ms_pooled *pooled;           /* also NULL where the pool is exact */
    const ms_pooled_rank *pooled_rank; /* that of the rank */
} ms_compare_line;

extern const ms_keys ms_compare_keys_line; /* of ms_compare_line */

#endif
