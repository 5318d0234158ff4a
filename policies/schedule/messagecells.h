/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_MESSAGECELLS_H
#define MS_MESSAGECELLS_H

/* What stands beside the turns in a schedule that PyTorch has lowered
 * (torch/distributed/pipelining/schedules.py, _add_unshard_reshard,
 * _add_reduce_grad, _add_send_recv; format compute_comms):
 *
 *     0UNSHARD,0F0,0SEND_F0,0RECV_B0,0B0,0REDUCE_GRAD,0RESHARD
 *     1UNSHARD,1RECV_F0,1F0,1B0,1SEND_B0,1REDUCE_GRAD,1RESHARD
 *
 * They follow from the turns, and so they add nothing to them: a message goes
 * from the stage that makes it to the next one if another rank has that, once,
 * behind the turn that makes it; it is received before the turn that reads it.
 * Weights are there when their stage runs, and gradients are summed behind its
 * last turn.  A file in which that is not so would not run in PyTorch. */

#include "sim/schedule/schedule.h"

typedef enum ms_messagekind {
    MS_CELL_SEND_F,
    MS_CELL_RECV_F,
    MS_CELL_SEND_B,
    MS_CELL_RECV_B,
    MS_CELL_UNSHARD,
    MS_CELL_RESHARD,
    MS_CELL_REDUCE_GRAD,
    MS_N_MESSAGECELLS
} ms_messagekind;

typedef struct ms_messagecell {
    uint16_t rank; /* in whose row it stands */
    uint8_t kind;  /* ms_messagekind */
    uint32_t stage, micro_batch;
    uint32_t column; /* its cell in the row, from 1 up */
    uint32_t turn;   /* the turn of the schedule that stands behind it, or the
                        first of the next row */
} ms_messagecell;

/* The kind that n letters name, or MS_N_MESSAGECELLS. */
ms_messagekind ms_messagecells_kind(const char *letters, size_t n);
/* Is it of a micro-batch? */
bool ms_messagecells_has_number(ms_messagekind kind);
/* Do the cells, in the order of the file, fit the turns?  The schedule has its
 * ranks, name and columns; MS_EINPUT at name:row:column. */
ms_err ms_messagecells_check(const ms_schedule *schedule,
                             const ms_messagecell *cells, uint32_t n_cells,
                             ms_arena *arena, ms_fault *fault);

#endif
