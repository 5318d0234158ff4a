/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_TOOLS_PLOT_H
#define MS_TOOLS_PLOT_H

/* The parts of memsim plot:
 *
 *     plot.c          files, the kind of figure that they give, the output;
 *                     runs without rows are drawn as memsim compare draws them
 *     plot_trades.c   rows as trades, with runs beside them
 *     plot_sweep.c    curves from the rows of a sweep
 *     plot_rows.c     headings and capacities that rows give */

#include "plots/plots.h"
#include "policies/common/policy.h"
#include "tools/cli/commands.h"
#include "tools/cli/compare/compare.h"
#include "tools/cli/front/front.h"
#include "tools/cli/run/figures.h"
#include "tools/options/options.h"
#include "tools/results/rows.h"

typedef struct ms_plot {
    const ms_arguments *arguments;
    ms_arena *arena;
    /* they have names where there are several, or rows beside them */
    ms_comparison runs;
    ms_rows rows;
    ms_front *front; /* of compare --checkpoint-all, alone; NULL: none */
    uint64_t capacity_bytes, usable_bytes; /* of rows; 0: not given */
    ms_drawing drawing; /* its title is that of --title, or NULL */
} ms_plot;

/* ---- plot_trades.c ------------------------------------------------------- */

ms_err ms_plot_trades_draw(const ms_plot *plot, ms_fault *fault);

/* ---- plot_rows.c --------------------------------------------------------- */

/* Takes policies that are keys of the rows ("tensor") out of their policy, so
 * that a key that becomes x does not tell lines apart. */
ms_err ms_plot_rows_part(ms_plot *plot, ms_fault *fault);

/* The title "What, per GPU: gpt2 on 8 GPUs"; NULL: out of memory. Files of
 * memsim 0.1.0 have no columns for it, so parts may be missing. */
const char *ms_plot_rows_title(const ms_plot *plot, const char *what);
/* Adds what all rows have in common. */
ms_err ms_plot_rows_setup(const ms_plot *plot, ms_text *text, ms_fault *fault);
/* Does any row have more than one GPU? */
bool ms_plot_rows_have_gpus(const ms_plot *plot);
/* The capacity: that of the command line, or else that of the row. */
ms_limit ms_plot_rows_limit(const ms_plot *plot, const ms_sweep_row *row);
/* The capacities as lines of a curve; x has a value for each row. */
ms_err ms_plot_rows_limits(const ms_plot *plot, const double *x,
                           ms_series **series, uint32_t *n, ms_fault *fault);

/* ---- plot_sweep.c -------------------------------------------------------- */

ms_err ms_plot_sweep_curve(const ms_plot *plot, ms_fault *fault);
/* Does a key with numbers vary, with few enough lines for one figure? */
bool ms_plot_sweep_has_curve(const ms_plot *plot);
/* What tells a row from the others: "checkpoint:sqrt, batch=8"; NULL: out of
 * memory. */
const char *ms_plot_sweep_name(const ms_plot *plot, const ms_sweep_row *row);

#endif
