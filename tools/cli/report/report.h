/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_TOOLS_REPORT_H
#define MS_TOOLS_REPORT_H

/* The parts of memsim report: variants, as compare reads them, on one page
 * (plots/page/htmlpage.h).
 *
 *     report.c           the command
 *     report_variant.c   what the page says of a variant
 *     report_peak.c      who is alive at its peak, and what would change that
 *     report_front.c     the front that memsim fit finds for its model
 *     report_recorded.c  a recorded snapshot as a variant
 *     report_share.c     all of them on a page that is no larger than it may be
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
 *       "step": {...} or null, "most_alive": 24, "groups": 81,
 *       "alive": [{"bytes": 8, "name": "...", "category": "activations",
 *                  "why": "...", "less": ["checkpoint:full"]}, ...],
 *       "whatif": [{"change": "...", "costs": "...", "reserved_bytes": 8,
 *                   "step_ns": 8, "fits": true, "command": "..."}, ...],
 *       "search": "memsim fit ...",
 *       "front": {"searched": 609, "rows": [
 *        {"setup": "fused kernels, ...", "best": true, "reserved_bytes": 8,
 *         "headroom_bytes": 8, "step_ns": 8, "tokens_per_second": 8,
 *         "command": "memsim run ..."}, ...]}}]}   front: with --goal */

#include "plots/page/htmlpage.h"
#include "tools/cli/compare/compare.h"

#define MS_REPORT_MOST_ALIVE 24u /* groups in the table; tensors know all */

/* A variant on its way to the page: what is told of it whatever its share, and
 * what its share cuts. */
typedef struct ms_report_page {
    const ms_variant *variant; /* NULL: a recording */
    /* memsim run's for this variant alone; NULL: it was read back */
    const ms_arguments *arguments;
    ms_arena *arena;
    ms_text head; /* of the object, without its braces */
    /* Who is alive at the peak, the largest first: objects. */
    ms_text *groups;
    uint32_t n_groups;
    /* report_peak.c: by row of the plan its group, or MS_NONE; NULL: none */
    uint32_t *group_of;
    const char *front;  /* report_front.c; NULL: none was asked for */
    ms_pagelives lives; /* of a recording */
} ms_report_page;

/* ---- report_variant.c ---------------------------------------------------- */

ms_err ms_report_variant_read(ms_report_page *page, ms_fault *fault);
/* "step": {...} */
ms_err ms_report_variant_step(const ms_report_page *page,
                              const ms_pageshare *share, ms_text *text,
                              ms_fault *fault);

/* ---- report_peak.c ------------------------------------------------------- */

/* "whatif": [...], "search": "..." to the head, and the groups; empty where the
 * variant was read back.  Sets page->group_of. */
ms_err ms_report_peak_read(ms_report_page *page, ms_fault *fault);

/* ---- report_front.c ------------------------------------------------------ */

/* The object of "front": what memsim fit shows, whatever the policies of the
 * arguments; no rows where nothing fits. */
ms_err ms_report_front_find(const ms_arguments *arguments, ms_points *points,
                            ms_text *text, ms_fault *fault);

/* ---- report_recorded.c --------------------------------------------------- */

/* The page of the snapshot: "fits" and "command" are null. */
ms_err ms_report_recorded_read(const char *path, ms_report_page *page,
                               ms_fault *fault);

/* ---- report_share.c ------------------------------------------------------ */

typedef struct ms_report_pages {
    ms_text opening; /* what the object begins with, up to its variants */
    ms_report_page *all;
    uint32_t n;
} ms_report_pages;
/* The file, of at most MS_PAGE_BYTES. */
ms_err ms_report_share_make(const char *title, const ms_report_pages *pages,
                            ms_text *file, ms_fault *fault);

#endif
