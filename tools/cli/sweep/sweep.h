/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_TOOLS_SWEEP_H
#define MS_TOOLS_SWEEP_H

/* The parts of memsim sweep:
 *
 *     sweep.c       the points of this run, simulated on all cores
 *     sweep_rows.c  a point as a row of CSV or JSON
 *     sweep_file.c  where rows go, as whole lines; --resume
 */

#include "graphs/graphs.h"
#include "policies/common/policy.h"
#include "sim/report.h"
#include "tools/cli/commands.h"
#include "tools/job/job.h"
#include "tools/job/points.h"
#include "tools/results/rows.h"

/* What a row tells of a point.  fault.err other than MS_OK: it could not be
 * simulated, only the fault is set.  Out of memory on the device, fault.what
 * says where; where a node has too little, of what. */
typedef struct ms_outcome {
    ms_fault fault;
    ms_status status;
    ms_sweep_row row;            /* its numbers */
    char model[128], setup[256]; /* of the row; what is longer is cut */
} ms_outcome;

/* The points of a run: items [0, n) are rows [first, first + n) of those that
 * pass the filters (kept; NULL: all points do). */
typedef struct ms_sweep {
    const ms_grid *grid;
    const ms_job *base;
    const uint32_t *kept;
    uint64_t first;
    uint32_t n;
    uint32_t policy_axis;  /* or MS_NONE */
    const char **policies; /* canonical spelling, by value of that axis; one
                              where there is none */
    bool json;
} ms_sweep;

/* Simulates an item: MS_ESYSTEM and the like end the sweep, whatever is wrong
 * with the point alone is a fault of the outcome. */
ms_err ms_sweep_item(const ms_sweep *sweep, uint32_t item, ms_points *points,
                     ms_points_seat *seat, ms_arena *trial,
                     ms_outcome *outcome);

/* ---- sweep_rows.c -------------------------------------------------------- */

/* The point of an item, from 0. */
uint64_t ms_sweep_rows_point(const ms_sweep *sweep, uint32_t item);
/* The line of names; JSON has none. */
void ms_sweep_rows_header(const ms_sweep *sweep, ms_text *text);
/* Point, varied keys and policy: what is known beforehand. */
void ms_sweep_rows_begin(const ms_sweep *sweep, uint32_t item, ms_text *text);
/* The rest, with the line's end. */
void ms_sweep_rows_end(const ms_sweep *sweep, const ms_outcome *outcome,
                       ms_text *text);

/* ---- sweep_file.c -------------------------------------------------------- */

typedef struct ms_sweep_file {
    const char *path; /* NULL: standard output */
    int fd;
    bool regular;
    uint64_t end_bytes; /* of the rows that are written */
    ms_text rows;       /* that wait to be */
    uint64_t wrote_ns;  /* when it was last */
    uint32_t found;     /* rows that --resume found */
} ms_sweep_file;

/* path NULL or "-": standard output.  Faults: MS_EUSAGE, it has rows and resume
 * is not said; MS_ESYSTEM, it cannot be written. */
ms_err ms_sweep_file_open(ms_sweep_file *file, const char *path, bool resume,
                          ms_arena *arena, ms_fault *fault);
/* Cuts a torn last line; the others must be the sweep's first rows: MS_EINPUT
 * with file:line:column.  last: gets the last one. */
ms_err ms_sweep_file_resume(ms_sweep_file *file, const ms_sweep *sweep,
                            ms_arena *trial, ms_text *last, ms_fault *fault);
/* Writes rows that wait; with all false only if the last time was a while
 * ago.  On a full disk whole rows stay. */
ms_err ms_sweep_file_flush(ms_sweep_file *file, bool all, ms_fault *fault);
ms_err ms_sweep_file_close(ms_sweep_file *file, ms_fault *fault);

#endif
