/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_SIM_EXCHANGE_H
#define MS_SIM_EXCHANGE_H

/* Private to sim/schedule: the turns of each rank with its sends and receives
 * between them (ms_receives says where those stand).
 *
 *     rank 0   0F0 send(0) 0F1 send(0) ...
 *     rank 1   receive(0) 1F0 receive(1) ... */

#include "sim/schedule/handover.h"

typedef enum ms_deed_kind {
    MS_DEED_TURN,
    MS_DEED_SEND,
    MS_DEED_RECEIVE,
    MS_DEED_WAIT, /* for what was received: before the first turn of a pair, and
                     at the end of an exchange */
    MS_DEED_SYNC  /* the host waits for all that the rank has under way */
} ms_deed_kind;

typedef struct ms_deed {
    uint32_t what; /* a turn of the schedule, or a handover */
    uint32_t micro_batch;
    uint8_t kind; /* ms_deed_kind */
} ms_deed;

typedef struct ms_deeds {
    ms_deed *all;
    uint32_t n;
} ms_deeds;

/* *deeds: n_ranks rows.  MS_EINPUT: turns that wait for each other for ever;
 * the fault names two ranks and their turns. */
ms_err ms_exchange_write(const ms_schedule *schedule,
                         const ms_handovers *handovers, ms_arena *arena,
                         ms_deeds **deeds, ms_fault *fault);

#endif
