/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_SIM_TAPE_H
#define MS_SIM_TAPE_H

/* Private to sim/fold: the ops of a program, span by span, without the rows of
 * the device's memory: a plan for the clock.  With it goes who the ops of
 * before are: per cell the op that wrote it last, the same of the buffers and
 * of what else a call may wait for.
 *
 *     MS_TRY(ms_tape_begin(&tape, &cells, far, n_far, &program, fault));
 *     for (each call)
 *         MS_TRY(ms_tape_put(&tape, &spans, span, &question, fault));
 *     MS_TRY(ms_tape_end(&tape, fault));
 *     replay(tape.plan); */

#include "sim/fold/fold.h"
#include "sim/fold/ops/span.h"

typedef struct ms_tape_buffer {
    uint32_t kind;             /* of its row; 0: it is not taken */
    uint32_t ready, read, row; /* its last writer, its last reader; where it is
                                  far: the row of the plan */
} ms_tape_buffer;

/* Of the device's memory, per op: see ms_span_op. */
typedef struct ms_tape_level {
    uint64_t taken_bytes, given_bytes;
    bool takes;
} ms_tape_level;

typedef struct ms_tape {
    ms_arena arena; /* of a program */
    const ms_classes *classes;
    ms_plan plan;
    uint32_t ops_capacity, waits_capacity, rows_capacity, releases_capacity;
    uint32_t syncs_capacity, transfers_capacity, late_capacity;
    ms_tape_level *level; /* per op */
    ms_span_late *late;   /* n_late, by op */
    uint32_t n_late;
    uint32_t n_waits, n_releases;
    uint32_t *found, found_capacity;     /* room for the ties of a span */
    uint32_t *ready[MS_N_CELLS_COLUMNS]; /* per storage */
    uint32_t *far[MS_N_CELLS_COLUMNS];   /* per storage: the row */
    uint32_t *packed;                    /* per storage: its buffer */
    ms_tape_buffer *buffer;
    uint32_t compute, side, limit[2]; /* ops, or MS_NONE */
    uint8_t side_stream;
} ms_tape;

/* far: the rows of other memories as the step starts. */
ms_err ms_tape_begin(ms_tape *tape, const ms_cells *cells, const ms_row *far,
                     uint32_t n_far, const ms_program *program,
                     ms_fault *fault);
ms_err ms_tape_put(ms_tape *tape, const ms_spans *spans, uint32_t span,
                   const ms_question *question, uint32_t micro_batch,
                   ms_fault *fault);
/* Of a tape that has been put together from spans: room for all that the clock
 * asks of it, in an arena; the rest is not there. */
ms_err ms_tape_copy(const ms_tape *tape, ms_arena *arena, ms_tape *copy,
                    ms_fault *fault);
/* The same of a list of n entries: the pointer at copy is to one that has room
 * for one more. */
ms_err ms_tape_copy_list(ms_arena *arena, const void *list, size_t n,
                         size_t size, void *copy, ms_fault *fault);
/* How much of each list has been gone over. */
typedef struct ms_tape_place {
    uint32_t op, row, transfer, late;
} ms_tape_place;
/* The numbers of the next span of a tape, which have changed; far: see begin.
 */
ms_tape_place ms_tape_renumber_start(ms_tape *tape, const ms_row *far,
                                     uint32_t n_far);
void ms_tape_renumber(ms_tape *tape, const ms_spans *spans, uint32_t span,
                      ms_tape_place *at);
/* The host waits before its next op: for this one, or for all (MS_NONE). */
ms_err ms_tape_sync(ms_tape *tape, uint32_t until, ms_fault *fault);
ms_err ms_tape_end(ms_tape *tape, ms_fault *fault);
void ms_tape_close(ms_tape *tape);
/* taperun.c: the tape, closed, through the clock of sim/replay, and what other
 * memories than the device's hold meanwhile.  Fills active_bytes, step_ns,
 * recompute_ns, time and far, once peak_bytes is known; start_bytes: on the
 * device as the step starts.  Faults: MS_ENOMEM; MS_EINPUT where streams and
 * host wait for each other. */
ms_err ms_taperun(ms_tape *tape, const ms_machine *machine,
                  uint64_t start_bytes, ms_folded *folded, ms_fault *fault);

#endif
