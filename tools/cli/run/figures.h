/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_TOOLS_FIGURES_H
#define MS_TOOLS_FIGURES_H

/* The figures of one run by the name of their kind: what --figure of run and
 * plot means.  Those of several are compare.h's. */

#include "graphs/graphs.h"
#include "plots/plots.h"
#include "plots/record/record.h"
#include "policies/common/policy.h"
#include "tools/cli/commands.h"
#include "tools/job/job.h"

typedef struct ms_figures_kind {
    const char *name;
    bool alone; /* of several runs there is none */
    ms_err (*draw)(const ms_record *run, const ms_drawing *drawing,
                   ms_fault *fault);
} ms_figures_kind;
extern const ms_figures_kind ms_figures_kinds[];
extern const uint32_t ms_figures_n_kinds;

/* Is it memory over the step?  NULL, the kind of a run that says none: yes. */
bool ms_figures_is_timeline(const char *kind);
/* Does the kind show where the blocks of a pool lie?  NULL: no. */
bool ms_figures_is_address(const char *kind);
/* MS_EUSAGE for a kind (NULL: none) that the job has nothing for. */
ms_err ms_figures_check(const char *kind, const ms_job *job, ms_fault *fault);
/* Of the name; NULL: the first. */
const ms_figures_kind *ms_figures_find(const char *name);
/* MS_EINPUT for a result that was saved without what the kind shows. */
ms_err ms_figures_draw(const char *kind, const ms_record *run,
                       const ms_drawing *drawing, ms_fault *fault);

/* A run among others by that name: its peak, and as a trade between memory and
 * time. */
ms_bar ms_figures_bar(const ms_record *run, const char *name);
ms_err ms_figures_trade(const ms_record *run, const char *name, ms_arena *arena,
                        ms_trade *trade, ms_fault *fault);
/* " on 64 GPUs, per GPU"; of one, or where it is not known (0), nothing. */
void ms_figures_gpus(uint32_t gpus, ms_text *title);
/* "zero + checkpoint" of "zero:3,dp=8+checkpoint:full", each name once; NULL:
 * no memory. */
const char *ms_figures_family(const char *policy, ms_arena *arena);

/* headings.c: the parts that all of these have, as ms_setupwords_put writes
 * them with "x" for times. */
void ms_headings_common(const char *const *setups, uint32_t n, ms_text *text);

#endif
