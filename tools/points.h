/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_TOOLS_POINTS_H
#define MS_TOOLS_POINTS_H

/* Many variants of one job, each simulated: what compare, sweep and fit share.
 *
 *     points.c    the models and graphs that variants have in common
 *     workers.c   threads, their results in order
 *     grid.c      --grid and --filter: what the variants are
 *
 * A model is read once per set of model.* overrides, a graph lowered once per
 * set of what lowering looks at; policies that only place tensors share it.
 * Reading (igraph) happens on one thread at a time; graphs are read-only once
 * made and shared by all threads.
 *
 *     ms_points points;
 *     MS_TRY(ms_points_open(&points, fault));
 *     MS_TRY(ms_points_step(&points, &job, &trial, &result, fault));
 *     ... result.report; ms_arena_reset(&trial) or free it ...
 *     ms_points_close(&points);
 */

#include "tools/tools.h"

typedef struct ms_points {
    struct ms_points_cache *cache;
} ms_points;

ms_err ms_points_open(ms_points *points, ms_fault *fault);
void ms_points_close(ms_points *points);
/* As ms_pipeline_run, with what can be shared taken from earlier calls.  Of any
 * thread.  result is valid until trial is reset and points closed. */
ms_err ms_points_step(ms_points *points, const ms_job *job, ms_arena *trial,
                      ms_result *result, ms_fault *fault);

/* ---- workers.c ----------------------------------------------------------- */

/* Called for item i (0 to n - 1) on some thread, with that thread's number;
 * what it returns stands in done's order: done is called on the calling thread
 * for each item in ascending order, as soon as all before it are there.  done
 * returns false to stop early (a full disk): items not begun are left out. */
typedef void ms_workers_do(void *of, uint32_t i, uint32_t thread);
typedef bool ms_workers_done(void *of, uint32_t i);
/* threads 0: as many as there are cores. */
ms_err ms_workers_run(uint32_t n, uint32_t threads, ms_workers_do *work,
                      ms_workers_done *done, void *of, ms_fault *fault);
uint32_t ms_workers_cores(void);

/* ---- grid.c -------------------------------------------------------------- */

/* --grid 'KEY=V1,V2', repeated: a product, the last varies fastest.  KEY is
 * policy, a key of --set (training. may be left out), device, gpus or memory.
 * A list that contains ';' is separated by it: a policy has commas.  A range
 * A..B counts by 1, A..B+S by S, A..B*F multiplies; B is reached or stayed
 * below.  --filter 'KEY<=VALUE' keeps the points for which it holds. */
typedef struct ms_axis {
    const char *key; /* as given, with its group: "training.batch" */
    const char **values;
    uint32_t n;
} ms_axis;

typedef struct ms_grid {
    ms_axis *axes;
    uint32_t n_axes;
    uint64_t n_points; /* the product, filtered ones included */
} ms_grid;

/* Faults: MS_EUSAGE with what is wrong where in which --grid. */
ms_err ms_grid_read(const ms_arguments *arguments, ms_arena *arena,
                    ms_grid *grid, ms_fault *fault);
/* The value of an axis at a point (from 0). */
const char *ms_grid_value(const ms_grid *grid, uint64_t point, uint32_t axis);
/* base with the values of the point: MS_EUSAGE or MS_EINPUT where they cannot
 * be (the message of a refused row). */
ms_err ms_grid_job(const ms_grid *grid, uint64_t point, const ms_job *base,
                   ms_arena *arena, ms_job *job, ms_fault *fault);

#endif
