/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_TOOLS_FRONT_H
#define MS_TOOLS_FRONT_H

/* memsim compare MODEL --checkpoint-all: every way to checkpoint on one plane
 * of memory and time, with the optimal curve under it.
 *
 *     front.c          the command, and its outputs
 *     strategies.c     which ways there are, for so many blocks
 *     frontfind.c      the steps, the curve, how far each way is above it
 *     front_text.c     for people
 *     front_keys.c     JSON and CSV, and saved JSON read back
 *     front_figure.c   the figure
 *
 * A row is a way; a row of the curve is the best plan of the solver's model for
 * a budget, as the final program runs it.  Memory is what tensors take (no
 * pool), on the rank with the highest peak. */

#include "plots/plots.h"
#include "policies/common/policy.h"
#include "tools/cli/commands.h"
#include "tools/job/job.h"
#include "tools/job/result.h"
#include "tools/points/points.h"
#include "tools/terminal/screen.h"

#define MS_FRONT_MOST 96u  /* rows */
#define MS_FRONT_CURVE 12u /* rows of the curve, where no --budget is given */

typedef struct ms_front_row {
    const char *name;    /* "checkpoint:sqrt" */
    const char *policy;  /* all of the step's, in canonical spelling */
    const char *family;  /* "sqrt": what its sign in a figure is of */
    const char *status;  /* "ok", "over", "infeasible", "refused" */
    const char *message; /* why there are no numbers; NULL: there are some */
    bool is_curve;
    uint64_t budget_bytes; /* of a row of the curve */
    uint64_t peak_bytes, step_ns, recompute_ns;
    uint64_t foreseen_peak_bytes, foreseen_ns; /* by the solver; 0: none is */
    const char *best; /* what the plan is the best of; NULL: not claimed */
    /* The row of the curve that takes least within its peak, from 1 up; 0:
     * there is none; by how many percent its step is longer (less: shorter). */
    uint64_t against;
    int64_t more_ns;
    double more_percent;
    bool is_above; /* more_ns and more_percent are known */
} ms_front_row;

typedef struct ms_front {
    ms_front_row rows[MS_FRONT_MOST];
    uint32_t n; /* ways first, then the curve by peak */
    uint32_t n_ways, n_curve;
    uint32_t n_blocks; /* 0: nodes that were measured */
    const char *memsim, *model, *device, *setup, *device_words;
    const char *policy; /* what all rows have besides: "fsdp:dp=8", "none" */
    uint64_t parameters, capacity_bytes, usable_bytes;
    uint32_t gpus;
    double work; /* samples or tokens of a step */
    bool has_tokens;
} ms_front;

/* ---- strategies.c -------------------------------------------------------- */

typedef struct ms_strategy {
    const char *spec, *family;
} ms_strategy;

/* For n blocks that are cut together; in list, at most most, n_found.  Some are
 * refused where the model, or a policy beside them, does not know them. */
ms_err ms_strategies_list(uint32_t n, ms_arena *arena, ms_strategy *list,
                          uint32_t most, uint32_t *n_found, ms_fault *fault);

/* Of measured nodes, which have no blocks: DTR by each of its heuristics, in
 * seven eighths of the peak, three quarters and a half. */
#define MS_STRATEGIES_BUDGETS 3u
ms_err ms_strategies_online(uint64_t peak_bytes, ms_arena *arena,
                            ms_strategy *list, uint32_t *n_found,
                            ms_fault *fault);

/* ---- frontfind.c --------------------------------------------------------- */

/* budgets: of the curve, n_budgets; 0: at the peaks of the ways. */
ms_err ms_frontfind_rows(const ms_job *job, ms_points *points,
                         const uint64_t *budgets, uint32_t n_budgets,
                         ms_arena *arena, ms_front *front, ms_fault *fault);

/* ---- the outputs --------------------------------------------------------- */

void ms_front_text_write(const ms_front *front, const ms_style *style,
                         ms_text *text);
void ms_front_keys_json(const ms_front *front, ms_text *text);
void ms_front_keys_csv(const ms_front *front, ms_text *text);
/* Does the text begin with the object of ms_front_keys_json?  MS_ENOMEM. */
ms_err ms_front_keys_are(const ms_quote *text, ms_arena *scratch, bool *are,
                         ms_fault *fault);
/* What the figure needs, from that object.  Faults: MS_EINPUT. */
ms_err ms_front_keys_read(const ms_quote *text, ms_arena *arena,
                          ms_front *front, ms_fault *fault);
ms_err ms_front_figure_draw(const ms_front *front, const ms_drawing *drawing,
                            ms_fault *fault);

/* The command, which compare calls where --checkpoint-all is given. */
ms_err ms_front_command(const ms_hall *hall, int *status, ms_fault *fault);

#endif
