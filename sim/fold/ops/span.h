/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_SIM_SPAN_H
#define MS_SIM_SPAN_H

/* Private to sim/fold: the ops of a call, as it was expanded once, in a form
 * that can be put behind any others: ops of before are named by what they did
 * (sim/fold/cells/cells.h).  Rows of the device's memory are no part of it,
 * their sum is in the call's effect; those of the host's and the disk's are.
 *
 * A worked example: the gather of a unit's three weights, one op on the ranks'
 * queue.  Its span has this op, a wait for the last op of the compute stream,
 * a transfer of so many bytes, and three ties: who reads one of these wholes
 * from now on waits for op 0 of this call. */

#include "sim/fold/calls/effect.h"
#include "sim/fold/calls/question.h"
#include "sim/fold/cells/cells.h"

typedef struct ms_span_op {
    ms_plan_op op;    /* its offsets count the span's rows and releases; of: see
                         unit */
    uint32_t wait_at; /* counts the span's waits */
    int32_t unit;     /* op.of counts that unit's ops of this side, as the
                         question sees the unit; MS_SPAN_ALL: all ops */
    uint32_t timed;   /* the op of the graph whose time it takes, or MS_NONE */
    bool backward;
    /* Of the device's memory: what the op takes, what is free behind it; and
     * whether it asks for any memory at all. */
    uint64_t taken_bytes, given_bytes;
    bool takes;
} ms_span_op;
#define MS_SPAN_ALL INT32_MAX

/* A row of another memory than the device's; its storage by name. */
typedef struct ms_span_row {
    ms_row row;
    ms_earlier cell;
} ms_span_row;

/* Memory of the device that goes behind an op (MS_NONE: behind the op before
 * the span) while these streams have yet to pass. */
typedef struct ms_span_late {
    uint32_t op;
    ms_streams streams;
    uint64_t bytes;
} ms_span_late;

/* Bytes that a span has, and whose they are. */
typedef enum ms_span_use {
    MS_SPAN_TAKEN, /* by op `at` of the span */
    MS_SPAN_GIVEN, /* behind it; MS_NONE: before the span */
    MS_SPAN_LATER, /* of the span's late ones, number `at` */
    MS_SPAN_ROW,   /* of its row `at` */
    MS_SPAN_COPY   /* of its transfer `at`, a copy */
} ms_span_use;
typedef struct ms_span_term {
    uint64_t bytes; /* where the size is nobody's */
    uint32_t storage, at;
    uint8_t use, size; /* ms_rowkind_whose */
} ms_span_term;

/* The streams that have used a row before it is let go. */
typedef struct ms_span_release {
    ms_earlier row;
    ms_streams streams;
} ms_span_release;

typedef struct ms_span_sync {
    uint32_t op; /* before this one */
    ms_earlier until;
} ms_span_sync;

/* From now on `to` (a cell, a buffer, its reader, the side queue) is as `by`
 * says: an op, or (far) a row. */
typedef struct ms_span_tie {
    ms_earlier to, by;
    bool far;
} ms_span_tie;

/* A cell lies in the buffer-th of the call's from now on; MS_NONE: in none. */
typedef struct ms_span_packed {
    ms_earlier cell;
    uint32_t buffer;
} ms_span_packed;

/* The first of its own in each list, and how many they are.  before: releases
 * behind the op before the span. */
typedef struct ms_span {
    uint32_t op, n_ops, wait, n_waits, row, n_rows, release, n_releases;
    uint32_t before, sync, n_syncs, transfer, n_transfers;
    uint32_t tie, n_ties, packed, n_packed, kind, n_kinds, late, n_late;
    uint32_t term, n_terms;
    uint64_t given_bytes; /* before */
    uint32_t compute;     /* its last op of the compute stream, or MS_NONE */
    uint8_t side;         /* the stream of the side queue's last copy */
    bool moves; /* a tie is to a row, or to what was tied before the span */
} ms_span;

typedef struct ms_spans {
    ms_arena *arena;
    ms_span *span;
    ms_span_op *op;
    ms_earlier *wait;
    ms_span_row *row;
    ms_span_release *release;
    ms_span_sync *sync;
    struct ms_transfer *transfer;
    ms_span_tie *tie;
    ms_span_packed *packed;
    ms_span_late *late;
    ms_span_term *term;
    uint32_t *kind; /* of the rows of the call's buffers, in their order */
    uint32_t n, n_ops, n_waits, n_rows, n_releases, n_syncs, n_transfers;
    uint32_t n_ties, n_packed, n_kinds, n_late, n_terms;
    bool fixed; /* an op takes a time that is of the graph's own numbers */
    uint32_t capacity[12];
    uint32_t *number, number_capacity; /* per row of the books: among the
                                          span's */
} ms_spans;

/* Nothing is known. */
void ms_span_open(ms_spans *spans, ms_arena *arena);
/* What the call that was just expanded in the cells has done: owners and
 * buffers are those of its question.  *id is the number of the new span.
 * Faults: MS_ENOMEM. */
ms_err ms_span_learn(ms_spans *spans, ms_cells *cells,
                     const ms_question *question, uint32_t *id,
                     ms_fault *fault);
/* Puts the numbers of the cells' graph, which is another one now, in the place
 * of those that a span has. */
void ms_span_renumber(ms_spans *spans, const ms_cells *cells, uint32_t id);
/* What it does to the level. */
ms_effect ms_span_effect(const ms_spans *spans, uint32_t id,
                         const ms_machine *machine);

#endif
