/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_SIM_BIND_H
#define MS_SIM_BIND_H

/* What a RERUN does, unit by unit, for who asks of one unit (sim/fold).  Each
 * stage comes before the next: OPEN; WANT, from the last unit to the first,
 * finds which of their ops run again; RUN, from the first to the last, runs
 * them.  With the last unit the replay ends: STATE lets go of the random state,
 * and END of what a unit has made and nothing saved.
 *
 *     MS_TRY(ms_bind_step(books, at, call, MS_BIND_OPEN, call->unit));
 *     for (u = call->last + 1; u-- > call->unit;)
 *         MS_TRY(ms_bind_step(books, at, call, MS_BIND_WANT, u));
 *     ...
 *     books->replays[at->rank].open = false; */

#include "sim/expand/books.h"

typedef enum ms_bind_stage {
    MS_BIND_OPEN,
    MS_BIND_WANT,
    MS_BIND_RUN,
    MS_BIND_STATE,
    MS_BIND_END,
    MS_N_BIND_STAGES
} ms_bind_stage;

/* The books have stamps, and behind OPEN the rank's replay is open. */
ms_err ms_bind_step(ms_books *books, const ms_books_at *at, const ms_call *call,
                    ms_bind_stage stage, uint32_t unit);

#endif
