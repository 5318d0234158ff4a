/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_TOOLS_FIGURES_H
#define MS_TOOLS_FIGURES_H

/* The figures of runs by the name of their kind: what --figure of run, plot
 * and compare means. */

#include "tools/tools.h"

typedef struct ms_figures_kind {
    const char *name;
    bool of_one; /* of one run; else of one or several */
    ms_err (*draw)(const ms_record *runs, const char *const *names, uint32_t n,
                   const ms_drawing *drawing, ms_fault *fault);
} ms_figures_kind;
extern const ms_figures_kind ms_figures_kinds[];
extern const uint32_t ms_figures_n_kinds;

/* names: what tells the runs apart; NULL: their policies.  kind NULL: the
 * first.  Faults: MS_EUSAGE for several runs where the kind is of one;
 * MS_EINPUT for a result that was saved without what the kind shows. */
ms_err ms_figures_draw(const char *kind, const ms_record *runs,
                       const char *const *names, uint32_t n,
                       const ms_drawing *drawing, ms_fault *fault);

/* A run as a trade between memory and time; name: as above. */
ms_err ms_figures_trade(const ms_record *run, const char *name, ms_arena *arena,
                        ms_trade *trade, ms_fault *fault);
/* "zero + checkpoint" of "zero:3,dp=8+checkpoint:full", each name once; NULL:
 * no memory. */
const char *ms_figures_family(const char *policy, ms_arena *arena);

#endif
