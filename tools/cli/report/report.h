/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_TOOLS_REPORT_H
#define MS_TOOLS_REPORT_H

/* The parts of memsim report: variants, as compare reads them, on one page
 * (plots/page/htmlpage.h).
 *
 *     report.c           the command
 *     report_variant.c   what the page says of a variant
 *     report_peak.c      who is alive at its peak, and what would change that
 *     report_recorded.c  a recorded snapshot as a variant
 *
 * The object that the page reads is
 *
 *     {"made": "...", "categories": ..., "variants": [
 *      {"name": "checkpoint:sqrt", "title": "...", "refused": null,
 *       "subtitle": "...", "fits": true, "verdict": "fits, ...",
 *       "usable_bytes": 84494589624, "command": "memsim run ...",
 *       "numbers": [["Step", "31.1 ms"], ...],
 *       "accuracy": [["Step", "within 9 % ..."], ...],
 *       "facts": [["Model", "gpt2, ..."], ...],
 *       "step": {...} or null, "most_alive": 24,
 *       "alive": [{"bytes": 8, "name": "...", "category": "activations",
 *                  "why": "...", "less": ["checkpoint:full"]}, ...],
 *       "whatif": [{"change": "...", "costs": "...", "reserved_bytes": 8,
 *                   "step_ns": 8, "fits": true, "command": "..."}, ...],
 *       "search": "memsim fit ..."}]} */

#include "plots/page/htmlpage.h"
#include "tools/cli/compare/compare.h"

#define MS_REPORT_MOST 8u        /* variants of a page */
#define MS_REPORT_MOST_ALIVE 24u /* groups in the table; tensors know all */

/* What a variant may have of the page. */
typedef struct ms_report_share {
    uint32_t most_events, most_tensors;
} ms_report_share;

/* A variant on its way to the page. */
typedef struct ms_report_page {
    const ms_variant *variant;
    /* memsim run's for this variant alone; NULL: it was read back */
    const ms_arguments *arguments;
    ms_arena *arena;
    ms_report_share share;
    /* report_peak.c: by row of the plan its group, or MS_NONE; NULL: none */
    uint32_t *group_of;
} ms_report_page;

/* ---- report_variant.c ---------------------------------------------------- */

/* The object of the variant. */
ms_err ms_report_variant_put(ms_report_page *page, ms_text *text,
                             ms_fault *fault);

/* ---- report_peak.c ------------------------------------------------------- */

/* "alive": [...], "whatif": [...], "search": "..."; empty where the variant was
 * read back. Sets
 * page->group_of. */
ms_err ms_report_peak_put(ms_report_page *page, ms_text *text, ms_fault *fault);

/* ---- report_recorded.c --------------------------------------------------- */

/* The object of the snapshot: "fits" and "command" are null. */
ms_err ms_report_recorded_put(const char *path, const ms_report_share *share,
                              ms_arena *arena, ms_text *text, ms_fault *fault);

#endif
