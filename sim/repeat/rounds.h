/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_SIM_ROUNDS_H
#define MS_SIM_ROUNDS_H

/* Peak and time of a pipeline's step of many micro-batches, from one of few.
 * Between its first turns and its last ones each rank does the same again and
 * again: a round, for so many micro-batches as the order of its turns says.
 *
 * Two ranks, 1F1B; a round is one micro-batch and lies before the forward of
 * micro-batch 4, the cut, on either rank:
 *
 *     few    0F0 0F1 0B0 0F2 0B1 0F3 0B2 | 0F4 0B3 0B4
 *            1F0 1B0 1F1 1B1 1F2 1B2 1F3 1B3 | 1F4 1B4
 *     many   ... 0F3 0B2 (0F4 0B3) (0F5 0B4) ... | 0F502 0B501 0B502
 *
 * What is held to be one more round is held in three steps.  The turns of many
 * are those of few with rounds put at the cut, and rounds lie on both sides of
 * it (roundcut.c).  In the plan of few the rounds around the cut have the same
 * ops, rows, releases and waits, each so many later on its rank as a round has
 * (rounds.c).  In its times all of them are one period later.  An op starts
 * when what it waits for has ended and its host has issued it, and is slowed by
 * what runs on its rank meanwhile: where all of that is one period later, so is
 * the op; a host that waits for its device in each round is a period later,
 * too, and one that waits never and issues a round in less than a period is
 * never waited for behind the cut.  Levels repeat with the rows; what other
 * streams hold up longer from round to round (hosts run ahead) is counted op by
 * op, without rows (roundsums.c). */

#include "sim/base/base.h"
#include "sim/nouns.h"
#include "sim/report.h"
#include "sim/schedule/schedule.h"

/* Where rounds are put in.  `before` and MS_ROUNDS_BEHIND lie around the cut,
 * at least: an op may wait for one of the turn that began its micro-batch,
 * which is as many rounds earlier as there are micro-batches in flight. */
typedef struct ms_roundcut {
    uint32_t round;  /* micro-batches of a round */
    uint32_t before; /* rounds */
    uint32_t cut;    /* before the first forward of this micro-batch */
    uint32_t times;  /* rounds that many has more than few */
} ms_roundcut;
#define MS_ROUNDS_BEHIND 1u

/* How many rounds have to lie before the cut. */
uint32_t ms_roundcut_before(const ms_schedule *many, uint32_t round);
/* Are the turns of many those of few, with rounds put before the first forward
 * of one and the same micro-batch on each rank?  *found says so; round and
 * before are given.  Faults: MS_ENOMEM. */
ms_err ms_roundcut_find(const ms_schedule *few, const ms_schedule *many,
                        ms_arena *arena, ms_roundcut *cut, bool *found,
                        ms_fault *fault);

/* The ops of a plan by rank, and the rounds around the cut on each. */
typedef struct ms_rounds {
    uint32_t *op, *op_at; /* of rank r: op[op_at[r]] .. op[op_at[r + 1] - 1] */
    struct ms_rounds_rank {
        uint32_t first;   /* where the first round begins, as an index of op; */
        uint32_t cut;     /* where the last one before the cut ends, and */
        uint32_t end;     /* the last of all */
        uint32_t ops;     /* of a round */
        uint32_t rows;    /* the same */
        uint64_t host_ns; /* in which its host issues a round, or comes to the
                             next where it waits */
    } * ranks;
    uint64_t period_ns;
} ms_rounds;

/* Do the rounds of the plan and its times repeat?  false where they do not, or
 * what is asked of the machine does not (a wall, pages, books by device time),
 * or where memories other than the device's are in use.  Faults: MS_ENOMEM. */
ms_err ms_rounds_find(const ms_timeline *line, const ms_machine *machine,
                      const ms_roundcut *cut, ms_arena *arena,
                      ms_rounds *rounds, bool *found, ms_fault *fault);
/* Of the step with cut->times rounds more: per rank the peak's four levels and
 * the times.  line needs no events.  Faults: MS_ENOMEM. */
ms_err ms_roundsums_ranks(const ms_timeline *line, const ms_machine *machine,
                          const ms_roundcut *cut, const ms_rounds *rounds,
                          ms_arena *arena, ms_rank_report *ranks,
                          ms_fault *fault);

#endif
