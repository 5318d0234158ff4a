/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_SIM_WALL_H
#define MS_SIM_WALL_H

/* Private to clock.c and replay.c: the device's memory as a wall.
 *
 * An op that allocates there starts only when its bytes fit.  A row is there
 * from the start of the op that allocates it until the host has dropped it and
 * the last op that uses it has ended; what is taken and let go in one instant
 * counts until the next, so that the level of the books never passes the
 * capacity, whatever the order in which an instant is booked.
 *
 * A prefetch is a copy from the host or a gather whose rows no op has used
 * yet.  It takes no memory while an op of the compute stream waits for some.
 * Where nothing that runs will free anything, the youngest is revoked: its
 * memory goes, and the copy is issued once more when its user is next.  One
 * that has not begun, and for which there is no room while all else waits for
 * it, is put off: it is over at once, and its copy comes for its user.  The
 * source in the host's memory is counted again from then until the copy has
 * arrived. */

#include "sim/base/base.h"
#include "sim/nouns.h"

typedef struct ms_wall ms_wall;

/* One change of the books; replay.c sorts and books them. */
typedef struct ms_wall_instant {
    uint64_t t_ns;
    uint32_t row, op;
    uint8_t turn; /* at one time: 0 frees, 1 allocations, 2 frees of rows that
                     were allocated at that very time */
} ms_wall_instant;

typedef enum ms_wall_answer {
    MS_WALL_PASS,
    MS_WALL_HOLD,
    MS_WALL_LATER, /* hold, but the next nanosecond has more room */
    MS_WALL_FETCH  /* hold, and issue *again once more */
} ms_wall_answer;

/* plan.use must be there. */
ms_err ms_wall_open(const ms_plan *plan, const ms_machine *machine,
                    ms_arena *arena, ms_timeline *line, ms_wall **wall,
                    ms_fault *fault);
/* Heads of the rank's streams are about to be asked for. */
void ms_wall_round(ms_wall *wall, uint32_t rank, uint64_t now_ns);
/* May op start now?  If so it has taken its bytes. */
ms_err ms_wall_ask(ms_wall *wall, uint32_t op, ms_wall_answer *answer,
                   uint32_t *again);
/* May the revoked copy start once more on behalf of user?  As above. */
ms_err ms_wall_fetch(ms_wall *wall, uint32_t op, uint32_t user, bool *may);
ms_err ms_wall_arrive(ms_wall *wall, uint32_t op);
ms_err ms_wall_end(ms_wall *wall, uint32_t op);
/* Ops of the rank wait.  Revokes a prefetch for one for which nothing that runs
 * (running: an op or MS_NONE per stream) frees anything; idle: nothing runs or
 * will.  *gave: there is more room now.  *put_off: MS_NONE, or a prefetch at
 * the head of its stream that is to be put off. */
ms_err ms_wall_give_way(ms_wall *wall, uint32_t rank, const uint32_t *running,
                        bool idle, bool *gave, uint32_t *put_off);
/* The prefetch is over without a copy, which will come for its user. */
ms_err ms_wall_put_off(ms_wall *wall, uint32_t op);
/* Nothing helps: notes in the timeline how much was missing, where that is the
 * first time, and from then on the wall no longer holds this rank.  False if no
 * op of it waits for memory. */
bool ms_wall_fall(ms_wall *wall, uint32_t rank);
/* All changes of the books, in no order. */
ms_wall_instant *ms_wall_instants(ms_wall *wall, uint32_t *n);

#endif
