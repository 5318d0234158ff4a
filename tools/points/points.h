/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_TOOLS_POINTS_H
#define MS_TOOLS_POINTS_H

/* Many variants of one job, each simulated: what compare, sweep and fit share.
 *
 *     points.c    the models and graphs that variants have in common
 *     workers.c   threads, their results in order
 *     grid.c      --grid: what the variants are
 *     filter.c    --filter: which of them
 *     progress.c  how far it is, on a terminal
 *
 * A model is read once per set of model.* overrides, a graph lowered once per
 * set of what lowering looks at; policies that only place tensors share it.
 * Reading (igraph) happens on one thread at a time; graphs are read-only once
 * made and shared by all threads.
 *
 *     ms_points points;
 *     ms_points_seat seat = {0};                    (one per thread)
 *     MS_TRY(ms_points_open(&points, fault));
 *     MS_TRY(ms_points_step(&points, &seat, &job, &result, fault));
 *     ... result.report ...
 *     ms_points_leave(&points, &seat);
 *     ms_points_close(&points);
 */

#include "graphs/device.h"
#include "graphs/model.h"
#include "policies/common/policy.h"
#include "tools/cli/commands.h"
#include "tools/job/job.h"
#include "tools/job/result.h"
#include "tools/options/options.h"
#include "tools/points/foldstep.h"

typedef struct ms_points {
    struct ms_points_cache *cache;
} ms_points;

/* Where a variant is simulated: its memory, the entry of its graph in use, and
 * those of whose graphs the families of its folds are. */
typedef struct ms_points_seat {
    ms_arena arena;
    struct ms_points_entry *held;
    struct ms_points_entry *folds[MS_FOLDSTEP_FAMILIES];
    ms_foldstep fold;
    /* By the caller: how many points of the next one's graph come, with it; 0:
     * that is not known. */
    uint32_t coming;
} ms_points_seat;

ms_err ms_points_open(ms_points *points, ms_fault *fault);
/* To be called after all seats were left. */
void ms_points_close(ms_points *points);
/* Does what ms_jobway_run does, with what earlier calls have made. Any thread
 * may call it with a seat of its own; job's device and names must last as long
 * as points. result is valid until the seat's next step or until the seat is
 * left: to compare results, use a seat for each. */
ms_err ms_points_step(ms_points *points, ms_points_seat *seat,
                      const ms_job *job, ms_result *result, ms_fault *fault);
/* The same for a caller that needs the peak and the times alone: *folded says
 * whether there is no more (foldstep.h). */
ms_err ms_points_fold(ms_points *points, ms_points_seat *seat,
                      const ms_job *job, ms_result *result, bool *folded,
                      ms_fault *fault);
/* The first half of ms_points_step, up to the graph; seat->arena is empty after
 * it. */
ms_err ms_points_lower(ms_points *points, ms_points_seat *seat,
                       const ms_job *job, ms_result *result, ms_fault *fault);
void ms_points_leave(ms_points *points, ms_points_seat *seat);
/* The text of standard input, which is read once and may be a model (that of
 * the name -) or not; valid until points is closed. */
ms_err ms_points_input(ms_points *points, ms_quote *text, ms_fault *fault);
/* Reads the job's model alone; it is valid until points is closed. */
ms_err ms_points_model(ms_points *points, const ms_job *job, ms_model *model,
                       ms_fault *fault);

/* ---- workers.c ----------------------------------------------------------- */

/* Item i does not begin before item i - AHEAD is done, so results that wait for
 * `done` fit into a ring of MS_WORKERS_AHEAD slots. */
#define MS_WORKERS_AHEAD 1024u
#define MS_WORKERS_MOST 1024u /* threads */

/* Called for item i (0 to n - 1) on some thread; thread is its number, from 0.
 */
typedef void ms_workers_do(void *of, uint32_t i, uint32_t thread);
/* Called on the calling thread for each item, in ascending order, as soon as
 * all items before it are done. False stops early (for example on a full disk):
 * items that are not begun are left out. */
typedef bool ms_workers_done(void *of, uint32_t i);
/* (optional) Called on the calling thread about twenty times a second while it
 * waits, and between items where it works alone; false stops early. */
typedef bool ms_workers_tick(void *of);
/* With one thread or none the calling thread does everything. MS_EUSAGE: too
 * many threads. */
ms_err ms_workers_run(uint32_t n, uint32_t threads, ms_workers_do *work,
                      ms_workers_done *done, ms_workers_tick *tick, void *of,
                      ms_fault *fault);
/* The number of cores that this process may use. */
uint32_t ms_workers_cores(void);
/* Reads the value of --jobs; NULL means the number of cores. */
ms_err ms_workers_read(const char *jobs, uint32_t *threads, ms_fault *fault);

/* ---- grid.c -------------------------------------------------------------- */

/* --grid 'KEY=V1,V2', which may be repeated: the grid is the product, whose
 * last key varies fastest. KEY is policy, a policy's name ("tensor=1,2,4"), a
 * key of --set ("training." may be left out) or another key of settings_table.h
 * that a grid takes. A list that contains ';' is separated by ';', because a
 * policy has commas. A range A..B counts by 1, A..B+S by S, and A..B*F
 * multiplies; it ends at or below B. */
#define MS_GRID_AXIS 10000000u    /* values of a key, at most */
#define MS_GRID_POINTS 100000000u /* points of the product, at most */
#define MS_GRID_POLICIES 10000u   /* values of a key of policies, at most */
#define MS_GRID_SPECS 1000000u    /* combinations of policies, at most */

typedef struct ms_axis {
    const char *key; /* with its group: "training.batch" */
    /* as rows show them: memory in bytes, policies in canonical spelling,
     * devices by their full names */
    const char **values;
    ms_device *devices; /* only of the key device */
    ms_spec *specs;     /* only of policies: the value's alone */
    uint32_t n;
    uint64_t stride; /* number of points between two values */
    /* of policies: number of combinations of policies between two values */
    uint32_t spec_stride;
} ms_axis;

typedef struct ms_grid {
    ms_axis *axes;
    uint32_t n_axes;
    /* the product, including points that filters leave out */
    uint64_t n_points;
    uint32_t n_specs; /* combinations of policies; 1 where no key is of them */
} ms_grid;

/* base has what all points share. A policy of the grid joins base's policies;
 * other values replace base's. Faults: MS_EUSAGE with the --grid and the place
 * in it; also for a policy or a setting that base or another key rules out. */
ms_err ms_grid_read(const ms_arguments *arguments, const ms_job *base,
                    ms_arena *arena, ms_grid *grid, ms_fault *fault);
/* The index of the axis' value at a point (from 0), and that value. */
uint32_t ms_grid_index(const ms_grid *grid, uint64_t point, uint32_t axis);
const char *ms_grid_value(const ms_grid *grid, uint64_t point, uint32_t axis);
/* Which combination of policies the point has, from 0, and the policies of a
 * combination: base's and those of all keys. */
uint32_t ms_grid_spec_index(const ms_grid *grid, uint64_t point);
void ms_grid_spec(const ms_grid *grid, uint32_t index, const ms_job *base,
                  ms_spec *spec);
/* base, that of ms_grid_read, with the values of the point; the memory is the
 * grid's and arena's. The model is not read yet: its faults come later. */
ms_err ms_grid_job(const ms_grid *grid, uint64_t point, const ms_job *base,
                   ms_arena *arena, ms_job *job, ms_fault *fault);
/* A key as axes spell it, in *whole; NULL: there is no such key. MS_ENOMEM. The
 * hint says which key may have been meant. */
ms_err ms_grid_key(const char *key, ms_arena *arena, const char **whole,
                   ms_fault *fault);
void ms_grid_key_hint(const char *key, char *hint, size_t size);

/* ---- filter.c ------------------------------------------------------------ */

/* --filter 'SIDE<=SIDE', which may be repeated: points are simulated at which
 * all of them hold. A side is a number, a key, or a product of these; a key
 * that is not in the grid has base's value. "=", "!=" and "~" (contains)
 * compare a key with a word, as rows show it. */
typedef struct ms_filters {
    const struct ms_filter *rows;
    uint32_t n;
} ms_filters;

/* Faults: MS_EUSAGE with the place in the filter. */
ms_err ms_filter_read(const ms_arguments *arguments, const ms_grid *grid,
                      const ms_job *base, ms_arena *arena, ms_filters *filters,
                      ms_fault *fault);
bool ms_filter_holds(const ms_filters *filters, const ms_grid *grid,
                     uint64_t point);

/* ---- progress.c ---------------------------------------------------------- */

/* "1,234 of 10,000 points, 523/s, 17 s left" on a terminal, after half a
 * second, at most ten times a second. */
typedef struct ms_progress {
    bool wanted;
    uint64_t from, total; /* from: points that were done before */
    uint64_t start_ns, shown_ns;
    uint32_t width; /* width of the line on the terminal now */
} ms_progress;

/* to_terminal: results go to the terminal, so nothing else is written there. */
void ms_progress_open(ms_progress *progress, bool quiet, bool to_terminal,
                      uint64_t from, uint64_t total);
void ms_progress_show(ms_progress *progress, uint64_t done);
void ms_progress_clear(ms_progress *progress);
uint64_t ms_progress_now_ns(void); /* of a monotonic clock */

#endif
