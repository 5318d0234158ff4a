/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_SIM_TIMELINE_H
#define MS_SIM_TIMELINE_H

/* The timeline: what a plan comes to on a machine, event by event.
 *
 * A rank is a process: it has a host that issues its ops in the order of the
 * plan, streams and pools of its own.  Hosts never wait for each other; ops of
 * one rank wait for another's only where the plan's wait list says so.  So what
 * a rank comes to does not depend on how the plan interleaves the ranks.
 *
 * A worked example: a row of 8 MiB that lives from op 40 to op 97 is two
 * events, one when op 40 starts, one when op 97 ends; their running sum is the
 * level.
 *
 *     ms_timeline line;
 *     MS_TRY(ms_replay(&plan, &machine, &trial, &line, fault));
 *     use(line.ranks[0].pool[MS_DEVICE_POOL].peak_bytes); */

#include "sim/base/base.h"
#include "sim/nouns.h"
#include "sim/plan.h"
#include "sim/shape.h"

/* 16 bytes; size, category and sign follow from the plan's row. */
typedef struct ms_event {
    uint64_t t_ns;
    uint32_t row;
    uint32_t op_act; /* plan op << 1 | 1 when it allocates */
} ms_event;

typedef struct ms_level {
    uint64_t now_bytes, peak_bytes;
    uint32_t peak_event; /* index into events, after which the level is peak */
} ms_level;

/* Active and requested bytes fall when a free is complete, which is when other
 * streams have passed the block, seen at the rank's next allocation by the
 * host's clock; with the exact pool reserved is the highest active so far. */
typedef struct ms_rank_levels {
    ms_level pool[MS_N_POOLS]; /* allocated */
    uint64_t active_peak_bytes, requested_peak_bytes, reserved_peak_bytes;
} ms_rank_levels;

/* Lossless: level by category, alive set at any instant, Gantt, pools are folds
 * over events and ops' times.  Events never go back; those of one rank are in
 * the order in which it books, those of several are merged by time.  Their
 * times are the device's, whatever the order: in host order an op of the
 * compute stream books as it starts and ends, another one no later than that
 * stream goes on with what the host issues behind it. */
typedef struct ms_timeline {
    const ms_plan *plan;
    const struct ms_pooled *pooled; /* NULL: the pool is exact */
    uint32_t n_events;
    ms_event *events;            /* NULL: see ms_timeline_next */
    uint64_t *start_ns, *end_ns; /* per plan op, device times */
    uint64_t *until_ns; /* in host order, per op: when its rank's compute stream
                           goes on with what is issued behind it; NULL: there is
                           no other stream */
    uint8_t *gap_cause; /* per op: why its stream waited before it */
    uint64_t *passed_ns; /* when the host was past its first k syncs, k = 0
                            to plan's n_sync; NULL: there are none */
    uint64_t step_ns;
    bool by_device; /* events are booked by device time */
    ms_rank_levels *ranks;
    /* With a pool, or frees that wait: the ops that raise what is reserved. */
    uint32_t n_raises;
    struct ms_raise {
        uint32_t op;
        uint64_t reserved_bytes;
    } * raises;
    /* With a wall: prefetches revoked after their copy, or put off instead of
     * it (their ops' times are those of the first try), the copies that came
     * for their users, and what was missing when nothing helped. */
    uint32_t n_revoked;
    struct ms_revoked {
        uint32_t op;
        bool put_off, came;
        uint64_t start_ns, end_ns; /* if it came */
    } * revoked;
    ms_lack lack;
    ms_pages pages;
} ms_timeline;

/* Why a compute stream stood still before an op. */
typedef enum ms_gap {
    MS_GAP_NONE,
    MS_GAP_HOST,   /* the host had not issued it yet */
    MS_GAP_COMM,   /* a collective had not ended */
    MS_GAP_COPY,   /* a copy (swap, offload) had not ended */
    MS_GAP_BUBBLE, /* another rank's output had not arrived */
    MS_GAP_PAGES,  /* unified memory: pages had not come */
    MS_GAP_MEMORY, /* the device's memory was full (ms_machine.wall) */
    MS_GAP_IDLE,
    MS_N_GAPS
} ms_gap;

/* When a host books what op does at t_ns: then, but no later than its compute
 * stream goes on. */
static inline uint64_t ms_timeline_booked(const ms_timeline *line, uint32_t op,
                                          uint64_t t_ns)
{
    return !line->until_ns || t_ns < line->until_ns[op] ? t_ns
                                                        : line->until_ns[op];
}

/* At one instant all completions come first (stream order), then starts.
 * An op starts at max(stream free, waits ended, host issue time).  It takes its
 * ns, or longer while others that run on its rank slow it. */
ms_err ms_replay(const ms_plan *plan, const ms_machine *machine,
                 ms_arena *arena, ms_timeline *line, ms_fault *fault);

/* The clock alone: when ops start and end, and why; no events, no levels.
 * Without a wall and without unified memory. */
ms_err ms_replay_clock(const ms_plan *plan, const ms_machine *machine,
                       ms_arena *arena, ms_timeline *line, ms_fault *fault);

/* ---- timeline.c: the events ---------------------------------------------- */

/* Where one rank has one stream and books in host order, the events are those
 * of the ops one by one: an op's rows at its start, its releases at its end.
 * More than MS_EVENTWALK_LISTED of them would take more memory than all else of
 * a run, so there is no list of these: a walk makes some at a time.  Nor is
 * there one of several ranks on a machine that is unmerged, where it is not
 * needed.
 *
 *     ms_eventwalk walk;
 *     ms_timeline_walk(line, 0, &walk);
 *     for (uint32_t e = 0; e < line->n_events; e++) {
 *         const ms_event *event = ms_timeline_next(&walk); */
#define MS_EVENTWALK_LISTED (1u << 20)
#define MS_EVENTWALK 128u
typedef struct ms_eventwalk { /* not to be copied */
    const ms_timeline *line;
    const ms_event *at, *end;  /* those that are made */
    uint32_t made;             /* the number of the event behind them */
    uint32_t op, row, release; /* of it */
    ms_event some[MS_EVENTWALK];
} ms_eventwalk;

/* From event `first` on; it may be the end. */
void ms_timeline_walk(const ms_timeline *line, uint32_t first,
                      ms_eventwalk *walk);
/* The same in the order of the plan, op by op: with several ranks that of each,
 * not merged by time.  The times are those of the ops. */
void ms_timeline_walk_plan(const ms_timeline *line, uint32_t first,
                           ms_eventwalk *walk);
/* Makes the next ones; false: there are none. */
bool ms_timeline_make(ms_eventwalk *walk);
/* The next event, which stays the next, or NULL. */
static inline const ms_event *ms_timeline_peek(ms_eventwalk *walk)
{
    return walk->at < walk->end || ms_timeline_make(walk) ? walk->at : NULL;
}
/* The next event, which there is; valid until the next call. */
static inline const ms_event *ms_timeline_next(ms_eventwalk *walk)
{
    if (walk->at == walk->end)
        ms_timeline_make(walk);
    return walk->at++;
}
/* One event by its number, in O(log n) without a list. */
ms_event ms_timeline_event(const ms_timeline *line, uint32_t event);

/* ---- timeline.c: folds over events --------------------------------------- */

/* How many events are booked no later than the mark: start, before_loss and
 * after_forward of the first micro-batch, after_backward and end of the last.
 * MS_NONE: the program has no such mark. */
uint32_t ms_timeline_until(const ms_timeline *line, uint16_t rank,
                           ms_mark mark);
/* The same of every rank and mark, row rank * MS_N_MARKS + mark, as events in
 * the order of the plan (ms_timeline_walk_plan) where hosts book. */
ms_err ms_timeline_marks(const ms_timeline *line, ms_arena *arena,
                         uint32_t **until, ms_fault *fault);

/* Rows of rank's device pool alive just after event index e, largest first;
 * *n of them. */
ms_err ms_timeline_alive(const ms_timeline *line, uint32_t event, uint16_t rank,
                         ms_arena *arena, uint32_t **rows, uint32_t *n,
                         ms_fault *fault);

/* The device level of one rank as a step function, thinned to at most
 * max_points points (at least 4; per pixel column: first, lowest, highest,
 * last of the total) that always include the exact peak.  bytes[c] is the
 * level of category c from t_ns on.  Where all events are at one instant t_ns
 * counts them instead, those of the rank's device from 0. */
typedef struct ms_point {
    uint64_t t_ns, total_bytes;
    uint64_t bytes[MS_N_CATEGORIES];
} ms_point;
ms_err ms_timeline_points(const ms_timeline *line, uint16_t rank,
                          uint32_t max_points, ms_arena *arena,
                          ms_point **points, uint32_t *n, ms_fault *fault);

#endif
