/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_TOOLS_PLOT_H
#define MS_TOOLS_PLOT_H

/* The parts of memsim plot:
 *
 *     plot.c          files, what kind of figure they give, where it goes
 *     plot_runs.c     figures of runs, and trades of rows
 *     plot_sweep.c    curves from the rows of a sweep
 */

#include "tools/figures.h"
#include "tools/results.h"
#include "tools/rows.h"

typedef struct ms_plot {
    const ms_arguments *arguments;
    ms_arena *arena;
    ms_record *runs;
    const char **files; /* of each run: the file it comes from */
    uint32_t n_runs, runs_capacity, files_capacity;
    ms_rows rows;
    uint64_t capacity_bytes, usable_bytes; /* of rows; 0: not given */
    ms_drawing drawing;                    /* title: --title, or NULL */
} ms_plot;

/* ---- plot_runs.c --------------------------------------------------------- */

/* A kind of figures.h, of the runs. */
ms_err ms_plot_runs_draw(const ms_plot *plot, const char *kind,
                         ms_fault *fault);
/* With the rows. */
ms_err ms_plot_runs_pareto(const ms_plot *plot, ms_fault *fault);

/* ---- plot_sweep.c -------------------------------------------------------- */

ms_err ms_plot_sweep_curve(const ms_plot *plot, ms_fault *fault);
/* Does a numeric key vary, with few enough lines for one figure? */
bool ms_plot_sweep_has_curve(const ms_plot *plot);
/* What tells a row from the others: "checkpoint:sqrt, batch=8"; NULL: no
 * memory. */
const char *ms_plot_sweep_name(const ms_plot *plot, const ms_sweep_row *row);

#endif
