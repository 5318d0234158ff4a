/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_TOOLS_SWEEP_H
#define MS_TOOLS_SWEEP_H

/* The parts of memsim sweep:
 *
 *     sweep.c       the points of this run, simulated on all cores
 *     sweep_order.c in which order
 *     sweep_rows.c  a point as a row of CSV or JSON
 *     sweep_file.c  where rows go, as whole lines; --resume
 */

#include "policies/common/policy.h"
#include "sim/report.h"
#include "tools/cli/commands.h"
#include "tools/job/job.h"
#include "tools/points/points.h"
#include "tools/results/rows.h"

/* The result of a point. With fault.err the point could not be simulated, and
 * only the fault is set. Without it, fault.what says what is missing where: the
 * op that is out of memory on the device, or the memory of a node that is too
 * small. */
typedef struct ms_outcome {
    ms_fault fault;
    ms_status status;
    ms_sweep_row row;            /* the row's numbers */
    char model[128], setup[256]; /* of the row; longer ones are cut */
} ms_outcome;

/* The points of a run: items [0, n) are rows [first, first + n) of the points
 * that pass the filters (kept; NULL: all points pass). */
typedef struct ms_sweep {
    const ms_grid *grid;
    const ms_job *base;
    const uint32_t *kept;
    uint64_t first;
    uint32_t n;
    /* by combination of policies (ms_grid_spec_index): its canonical spelling,
     * and a number for the shape of the graph that it asks for; shapes is NULL
     * where all ask for the same */
    const char **policies;
    const uint32_t *shapes;
    bool json;
} ms_sweep;

/* Simulates an item. MS_ESYSTEM and the like are returned and end the sweep; a
 * fault that concerns the point alone is in the outcome. */
ms_err ms_sweep_item(const ms_sweep *sweep, uint32_t item, ms_points *points,
                     ms_points_seat *seat, ms_arena *trial,
                     ms_outcome *outcome);

/* ---- sweep_order.c ------------------------------------------------------- */

/* The shapes that policies have asked for so far. */
typedef struct ms_sweep_shapes {
    ms_shape *shape;
    uint32_t n, capacity;
} ms_sweep_shapes;

/* Neighbours in the order of which `coming`, with those of later batches, share
 * a graph. */
typedef struct ms_sweep_batch {
    uint32_t first, n; /* of the order */
    uint32_t coming;
} ms_sweep_batch;

typedef struct ms_sweep_order {
    uint32_t *item; /* by place in the order: counted from the first item */
    ms_sweep_batch *batches;
    uint32_t n; /* of batches */
} ms_sweep_order;

/* The number of the shape that policies ask for: a point of another one has
 * another graph. */
ms_err ms_sweep_order_policy(const ms_job *base, const ms_spec *spec,
                             ms_arena *arena, ms_sweep_shapes *shapes,
                             uint32_t *shape, ms_fault *fault);
/* Puts n items from `first` on into the order in which they are simulated.
 * Those that share a graph follow each other, in their own order, and are cut
 * into batches of at most `most`.  n log n. */
ms_err ms_sweep_order_find(const ms_sweep *sweep, uint32_t first, uint32_t n,
                           uint32_t most, ms_arena *arena,
                           ms_sweep_order *order, ms_fault *fault);

/* ---- sweep_rows.c -------------------------------------------------------- */

/* The point of an item, counted from 0. */
uint64_t ms_sweep_rows_point(const ms_sweep *sweep, uint32_t item);
/* The header line of CSV; nothing for JSON. */
void ms_sweep_rows_header(const ms_sweep *sweep, ms_text *text);
/* The part of a row that is known before the simulation: point, varied keys,
 * policy. */
void ms_sweep_rows_begin(const ms_sweep *sweep, uint32_t item, ms_text *text);
/* The rest of the row, with the end of the line. */
void ms_sweep_rows_end(const ms_sweep *sweep, const ms_outcome *outcome,
                       ms_text *text);

/* ---- sweep_file.c -------------------------------------------------------- */

typedef struct ms_sweep_file {
    const char *path; /* NULL: standard output */
    int fd;
    bool regular;
    uint64_t end_bytes; /* end of the rows that are written */
    ms_text rows;       /* rows that wait to be written */
    uint64_t wrote_ns;  /* time of the last write */
    uint32_t found;     /* rows that --resume found */
} ms_sweep_file;

/* path NULL or "-" is standard output. Faults: MS_EUSAGE where the file has
 * rows and `resume` is false; MS_ESYSTEM where it cannot be written. */
ms_err ms_sweep_file_open(ms_sweep_file *file, const char *path, bool resume,
                          ms_arena *arena, ms_fault *fault);
/* Cuts off an incomplete last line. The other lines must be the sweep's first
 * rows, else MS_EINPUT at file:line:column. last gets the last row. */
ms_err ms_sweep_file_resume(ms_sweep_file *file, const ms_sweep *sweep,
                            ms_arena *trial, ms_text *last, ms_fault *fault);
/* Writes the rows that wait; unless `all`, only if many wait or the last write
 * was a while ago. On a full disk whole rows stay in the file. */
ms_err ms_sweep_file_flush(ms_sweep_file *file, bool all, ms_fault *fault);
ms_err ms_sweep_file_close(ms_sweep_file *file, ms_fault *fault);

#endif
