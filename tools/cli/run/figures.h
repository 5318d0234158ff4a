/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_TOOLS_FIGURES_H
#define MS_TOOLS_FIGURES_H

/* The figures of one run, by the name of their kind: the values of --figure for
 * run and plot. compare.h has the figures of several runs. */

#include "plots/plots.h"
#include "plots/record/record.h"
#include "policies/common/policy.h"
#include "tools/cli/commands.h"
#include "tools/job/job.h"

typedef struct ms_figures_kind {
    const char *name;
    bool alone; /* there is none of several runs */
    ms_err (*draw)(const ms_record *run, const ms_drawing *drawing,
                   ms_fault *fault);
} ms_figures_kind;
extern const ms_figures_kind ms_figures_kinds[];
extern const uint32_t ms_figures_n_kinds;

/* Does the kind show memory over the step? True for NULL, which is the kind of
 * a run without --figure. */
bool ms_figures_is_timeline(const char *kind);
/* Does the kind show the addresses of a pool's blocks? False for NULL. */
bool ms_figures_is_address(const char *kind);
/* MS_EUSAGE for a kind that needs what the job does not make. NULL: no figure.
 */
ms_err ms_figures_check(const char *kind, const ms_job *job, ms_fault *fault);
/* The kind of that name; NULL: the first kind. */
const ms_figures_kind *ms_figures_find(const char *name);
/* Draws a figure. MS_EINPUT for a result that was saved without what the kind
 * shows. */
ms_err ms_figures_draw(const char *kind, const ms_record *run,
                       const ms_drawing *drawing, ms_fault *fault);

/* A run among others, under that name: as a bar, and as a trade between memory
 * and time. */
ms_bar ms_figures_bar(const ms_record *run, const char *name);
ms_err ms_figures_trade(const ms_record *run, const char *name, ms_arena *arena,
                        ms_trade *trade, ms_fault *fault);
/* "zero + checkpoint" for "zero:3,dp=8+checkpoint:full": the names of the
 * policies, each once; NULL: out of memory. */
const char *ms_figures_family(const char *policy, ms_arena *arena);

/* headings.c: the parts that all of the set-ups have, as ms_setupwords_put
 * writes them with "x" for times. */
void ms_headings_common(const char *const *setups, uint32_t n, ms_text *text);

#endif
