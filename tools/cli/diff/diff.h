/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_CLI_DIFF_H
#define MS_CLI_DIFF_H

/* The parts of memsim diff: two recordings, two steps, or one of each, side by
 * side (tools/differences/side.h).
 *
 *     diff.c         the command, what its operands are
 *     diff_text.c    the difference for people
 *     diff_keys.c    the keys of --json
 *     diff_figure.c  both levels on one axis */

#include "tools/differences/pairings.h"
#include "tools/job/outputs.h"
#include "tools/results/keys/keys.h"
#include "tools/terminal/screen.h"

typedef struct ms_diff {
    ms_side sides[2];
    bool has_pairs; /* of what both hold; else why_not */
    ms_pairings pairs;
    const char *why_not;
    uint64_t edges[MS_N_PHASES]; /* of the phases on the axis of both */
    int64_t gap;                 /* of the peaks, side 1 less side 0 */
    const char *cause;           /* a sentence on the largest difference */
    uint32_t top;                /* groups in the text; MS_NONE: all */
} ms_diff;

/* ---- diff_text.c --------------------------------------------------------- */

/* The sentence on the largest cause; NULL: no memory. */
const char *ms_diff_text_cause(const ms_diff *diff, ms_arena *arena);
void ms_diff_text_write(const ms_diff *diff, const ms_style *style,
                        ms_text *text);

/* ---- diff_keys.c --------------------------------------------------------- */

/* Of MS_PAGE_CATEGORIES, and of MS_N_PHASES + 1 phases. */
extern const char *const ms_diff_keys_categories[MS_PAGE_CATEGORIES];
extern const char *const ms_diff_keys_phases[MS_N_PHASES + 1];
extern const ms_keys ms_diff_keys;
void ms_diff_keys_write(const ms_diff *diff, ms_text *text);

/* ---- diff_figure.c ------------------------------------------------------- */

ms_err ms_diff_figure_draw(const ms_diff *diff, const ms_picture *figure,
                           ms_arena *arena, ms_fault *fault);

#endif
