/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_TOOLS_FOLDSTEP_H
#define MS_TOOLS_FOLDSTEP_H

/* Steps of one graph by summaries (sim/fold/fold.h), for callers that ask for
 * many of them and need the peak and the times alone.
 *
 * Few points are replayed, as if there were no fold: the first two of a graph
 * where it is not known how many come, since most graphs have no more.  The
 * next one is folded and replayed: where the two say the same, as they must,
 * the points behind it are folded alone.  What a fold refuses is replayed.
 * Pipelines of many micro-batches are told from few (sim/repeat/rounds.h): the
 * first of a graph is replayed, too.
 *
 * Graphs that differ in bytes and times alone, such as those of one model at
 * several batch sizes, share what is learnt (ms_fold_turn): each of a few
 * families of them has a fold.  A point is replayed besides of the first graph
 * of a family, of the second, the fourth, the eighth, and so on.
 *
 *     ms_foldstep of = {0};
 *     family = ms_foldstep_turn(&of, graph, 0);
 *     MS_TRY(ms_foldstep_run(&of, &job, &trial, &result, &folded, fault));
 *     use(result.report);               its levels and events only if !folded
 *     ms_foldstep_leave(&of);           before the graphs are given back */

#include "sim/fold/fold.h"
#include "sim/machine.h"
#include "tools/job/job.h"
#include "tools/job/result.h"

#define MS_FOLDSTEP_FAMILIES 6u

typedef struct ms_foldstep_family {
    const ms_graph *graph; /* of which points were asked last; NULL: none yet */
    uint32_t n_points;     /* of it and of those before it */
    bool is_ready;         /* the fold has its machine */
    bool is_proven, is_refused;
    uint32_t n_graphs; /* of which points were folded */
    uint64_t used;     /* when, by the count of turns */
    ms_fold *fold;
    ms_arena arena; /* the fold's */
    ms_machine machine;
    ms_expand_opts opts;
} ms_foldstep_family;

typedef struct ms_foldstep {
    ms_foldstep_family families[MS_FOLDSTEP_FAMILIES];
    ms_foldstep_family *family; /* of the graph at hand */
    uint64_t turns;
    /* By the caller: the categories at the peak are asked for, too; a point of
     * which they are not known is replayed. */
    bool by_category;
    /* By the caller: what is told of a pipeline from few micro-batches stands
     * without a replay, as the caller replays what it shows. */
    bool tells_rounds;
    uint32_t coming; /* points of it that were said to come */
    bool is_misled;  /* others came: what is said is left out of account */
    bool no_rounds;  /* of the last point, a pipeline: it has to be replayed */
} ms_foldstep;

/* Turns to the graph of the next point.  coming: so many points of it, with
 * this one; 0: that is not known.  What comes back is the family that has the
 * graph from now on, in the place of the one that it had before. */
uint32_t ms_foldstep_turn(ms_foldstep *of, const ms_graph *graph,
                          uint32_t coming);
/* Does what ms_jobway_step does.  *folded: of the report the peaks of the
 * ranks, their step, forward, recompute and backward times, the capacity and
 * the rates are set, and of the rest of the result the program (of a pipeline
 * that of fewer micro-batches) and the machine. */
ms_err ms_foldstep_run(ms_foldstep *of, const ms_job *job, ms_arena *trial,
                       ms_result *result, bool *folded, ms_fault *fault);
void ms_foldstep_leave(ms_foldstep *of);
/* Of the step that was run last: why no fold tells of one like it, as a
 * sentence without its full stop; NULL: one does.  It does not depend on which
 * points were replayed. */
const char *ms_foldstep_bar(const ms_foldstep *of, const ms_job *job,
                            const ms_result *result);

#endif
