/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_SIM_PLAN_H
#define MS_SIM_PLAN_H

/* The plan: the program expanded, op by op and allocation by allocation, in the
 * order in which the hosts issue them.  It knows how long each op takes alone,
 * not yet when it starts.
 *
 * A worked example (storage 71 of sim/graph.h).  A program that keeps all has
 * one row for it: op 40 allocates it, op 97 releases it.  One that runs unit 3
 * again has two: the first from op 40 to op 41, the second from op 40 run again
 * to op 97.
 *
 *     ms_plan plan;
 *     MS_TRY(ms_expand(&graph, &program, &opts, &trial, &plan, fault));
 *     for (uint32_t r = plan.op[i].alloc_at; r < plan.op[i + 1].alloc_at; r++)
 *         sum += plan.row[r].bytes;                  what op i allocates */

#include "sim/base/base.h"
#include "sim/names.h"
#include "sim/nouns.h"

/* The expanded program in host issue order.  A row is one allocation.
 * Op i allocates rows [op[i].alloc_at, op[i + 1].alloc_at) in order and after
 * it the host drops release[op[i].release_at .. op[i + 1].release_at).  Op r is
 * the start of rank r: it allocates what exists before the step.
 * wait lists, per op, earlier ops on other streams that must have ended.
 * use (only with opts.uses, else NULL) lists, per op, each row it touches;
 * cross-stream uses are always in wait. */
typedef struct ms_plan_op {
    uint64_t ns;
    uint32_t of; /* graph op, or MS_NONE (start, copies) */
    uint32_t micro_batch;
    uint32_t alloc_at, release_at;
    uint8_t pass, stream;
    uint16_t rank;
    uint32_t cut; /* the share of the graph's op that it does, in 2^-32; 0: all
                     of it (sim/stage.h) */
} ms_plan_op;

/* What of its graph op's FLOPs and bytes an op stands for. */
static inline double ms_plan_part(const ms_plan_op *op)
{
    return op->cut > 0 ? (double)op->cut * 0x1p-32 : 1.0;
}

/* streams: one bit per ms_stream_kind of its rank on which an op reads it; kept
 * where several streams are in use.  A block that another stream has read stays
 * active after the host's free until that stream has passed the reading op
 * (torch's record_stream), unless the stream that frees has waited for it. */
typedef struct ms_row {
    uint64_t bytes;
    uint32_t storage; /* MS_NONE: a buffer of the program */
    uint32_t buffer;  /* then, which; else MS_NONE or unset */
    uint32_t op;      /* the op that allocates it */
    uint8_t category;
    uint8_t pool;            /* ms_pool_kind */
    ms_streams streams : 10; /* see above */
    bool saved : 1;          /* held by an autograd node */
    uint8_t home : 2;        /* ms_block_home: whose block it is */
    bool waited : 1;         /* no record_stream: freed is free */
} ms_row;

typedef struct ms_plan {
    const ms_graph *graph;

    uint32_t n_ops;
    ms_plan_op *op; /* n_ops + 1: the last holds the closing offsets */
    uint32_t *release;
    uint32_t *wait_at, *wait; /* NULL where every op is on one stream */
    uint32_t *use_at, *use;

    uint32_t n_rows;
    ms_row *row;

    uint32_t n_marks;
    struct ms_plan_mark {
        uint8_t mark;
        uint16_t rank;
        uint32_t micro_batch;
        uint32_t op;       /* the last op before the mark */
        uint32_t releases; /* entries of release before the mark: op's last
                              ones may come after it */
    } * marks;

    uint32_t n_transfers; /* ops that move bytes, in order */
    struct ms_transfer {
        uint32_t op;
        uint8_t kind;            /* ms_transfer_kind */
        uint8_t group;           /* of a collective: row of the groups */
        bool pageable, straight; /* as in ms_move_call, of */
        uint32_t copied; /* a copy of one storage; MS_NONE: it is none */
        uint64_t bytes;  /* of a collective: that each rank sends, and of */
        uint64_t network_bytes; /* these between nodes */
    } * transfers;
    const ms_buffer *buffers; /* the program's */
    const uint8_t *saved_in;  /* the program's */

    uint32_t n_sync; /* where a rank's host waits, ascending by op */
    struct ms_plan_sync {
        uint32_t op;    /* before it issues this one or a later of its own */
        uint32_t until; /* for the end of this earlier op; MS_NONE: of all of
                           the rank's */
        uint16_t rank;
    } * sync;
    uint16_t n_ranks;
    const struct ms_stage *stages; /* the program's; n_stages 0: each rank has
                                      the whole model */
    uint32_t n_stages;
    uint32_t n_micro_batches;
    bool overlaps;           /* as of the program */
    uint32_t recomputed_ops; /* how many ops ran again */
    uint32_t repeated; /* this micro-batch stands for so many more, which do */
    uint32_t
        repeats; /* the same and are left out (sim/repeat/repeat.h); or 0 */
} ms_plan;

/* bind and expand (sim/README.md 3).  Whatever an op needs that is not present
 * is made present: GONE re-runs its maker with only what that needs.  Faults:
 * MS_EINPUT for a program that runs a unit before its inputs exist, reads a
 * dropped storage that nothing can make, or forms a cycle. */
ms_err ms_expand(const ms_graph *graph, const ms_program *program,
                 const ms_expand_opts *opts, ms_arena *arena, ms_plan *plan,
                 ms_fault *fault);

/* text/dumpplan.c: the plan as text, an op a line. */
void ms_dumpplan_write(const ms_plan *plan, ms_text *text);
/* The full name of what a row holds: a storage's or a buffer's. */
const char *ms_dumpplan_row_name(const ms_plan *plan, uint32_t row,
                                 char buffer[MS_STORAGE_NAME]);

#endif
