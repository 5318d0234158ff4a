/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_SIM_TURNCALLS_H
#define MS_SIM_TURNCALLS_H

/* Private to sim/schedule: the calls of a turn, written once per stage and kind
 * and copied for each micro-batch. */

#include "sim/program.h"
#include "sim/schedule/handover.h"
#include "sim/schedule/keepsets.h"

typedef struct ms_turncalls {
    ms_program forms; /* calls alone */
    /* Per stage and kind of turn: [at[i], at[i + 1]) of forms.calls, i being
     * stage * MS_N_TURNS + kind. */
    uint32_t *at;
} ms_turncalls;

ms_err ms_turncalls_write(const ms_graph *graph, const ms_keep *keep,
                          const ms_schedule *schedule, const ms_keepsets *sets,
                          const ms_handovers *handovers, ms_arena *arena,
                          ms_turncalls *calls, ms_fault *fault);

#endif
