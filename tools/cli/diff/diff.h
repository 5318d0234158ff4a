/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_CLI_DIFF_H
#define MS_CLI_DIFF_H

/* The parts of memsim diff: two recordings, two steps, or one of each, side by
 * side (tools/differences/side.h).
 *
 *     diff.c         the command, what its operands are
 *     diff_text.c    the difference for people
 *     diff_keys.c    the keys of --json
 *     diff_figure.c  both levels on one axis
 *     diff_page.c    all of that as a page to hand on
 *
 * The data of the page has no variants, but
 *
 *     {"made": "...", "categories": ..., "variants": [], "overlay":
 *      {"title": "yesterday.pickle against gpt2", "cause": "...",
 *       "end": 1000000, "by_name": true,
 *       "phases": [[0, 402311, "forward"], ...],
 *       "sides": [{"name": "yesterday.pickle", "peak_bytes": 8,
 *                  "knots": [...], "step": {...}}, ...],
 *       "rows": [["peak allocated", "5.58 GiB", "4.46 GiB", "-1.13 GiB"], ...],
 *       "differences": 15,
 *       "groups": [{"gap": -8, "category": "activations", "phase": "forward",
 *                   "name": "...", "sides": ["12 x 24.00 MiB", ""],
 *                   "made": "none alike in B's step"}, ...],
 *       "facts": [["A", "yesterday.pickle, recorded, ..."], ...]}} */

#include "tools/differences/pairings.h"
#include "tools/job/outputs.h"
#include "tools/results/keys/keys.h"
#include "tools/terminal/quantity.h"
#include "tools/terminal/screen.h"

typedef struct ms_diff {
    ms_side sides[2];
    bool has_pairs; /* of what both hold; else why_not */
    ms_pairings pairs;
    const char *why_not;
    uint64_t edges[MS_N_PHASES]; /* of the phases on the axis of both */
    int64_t gap;                 /* of the peaks, side 1 less side 0 */
    const char *cause;           /* a sentence on the largest difference */
    uint32_t top; /* groups in the text and on the page; MS_NONE: all */
} ms_diff;

/* The table of peaks: A, B, and B less A in words. */
typedef struct ms_diff_row {
    ms_label label, cells[3];
} ms_diff_row;
typedef struct ms_diff_rows {
    ms_diff_row rows[MS_PAGE_CATEGORIES + MS_N_PHASES + 2];
    uint32_t n;
} ms_diff_rows;

/* ---- diff_text.c --------------------------------------------------------- */

/* The sentence on the largest cause; NULL: no memory. */
const char *ms_diff_text_cause(const ms_diff *diff, ms_arena *arena);
void ms_diff_text_write(const ms_diff *diff, const ms_style *style,
                        ms_text *text);
/* Its parts: "+1.50 GiB"; "12 x 24.00 MiB", what side s holds of a group; */
ms_label ms_diff_text_gap(int64_t bytes);
void ms_diff_text_count(const ms_pairings_group *group, int s, ms_text *text);
const char *ms_diff_text_name(const ms_pairings_group *group);
ms_diff_rows ms_diff_text_rows(const ms_diff *diff);
/* "y.pickle, recorded, 1,433 allocations"; what both hold; why that is not
 * known. */
void ms_diff_text_side(const ms_side *side, ms_text *words);
void ms_diff_text_same(const ms_diff *diff, ms_text *words);
void ms_diff_text_why_not(const ms_diff *diff, ms_text *words);

/* ---- diff_keys.c --------------------------------------------------------- */

/* Of MS_PAGE_CATEGORIES, and of MS_N_PHASES + 1 phases. */
extern const char *const ms_diff_keys_categories[MS_PAGE_CATEGORIES];
extern const char *const ms_diff_keys_phases[MS_N_PHASES + 1];
extern const ms_keys ms_diff_keys;
extern const ms_keys ms_diff_keys_group; /* of ms_pairings_group */
void ms_diff_keys_write(const ms_diff *diff, ms_text *text);

/* ---- diff_figure.c ------------------------------------------------------- */

/* "yesterday.pickle" of "runs/yesterday.pickle" */
const char *ms_diff_figure_name(const ms_side *side);
ms_err ms_diff_figure_draw(const ms_diff *diff, const ms_picture *figure,
                           ms_arena *arena, ms_fault *fault);

/* ---- diff_page.c --------------------------------------------------------- */

/* title: in place of the page's own, or NULL. */
ms_err ms_diff_page_make(const ms_diff *diff, const ms_arguments *arguments,
                         const char *title, ms_text *file, ms_fault *fault);

#endif
