/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What the ways to swap write their calls with. */
#include "policies/swap/swap.h"
#include "sim/program.h"

ms_err ms_swapcalls_move(ms_swap *w, const ms_call *like, uint32_t set,
                         ms_move_call how)
{
    ms_call call = ms_program_move(like, set, how);
    if (set == MS_NOTHING)
        return MS_OK;
    ms_swapdisk_aim(w, &call);
    return ms_program_add(w->program, call, w->arena, w->fault);
}

ms_err ms_swapcalls_wait(ms_swap *w, const ms_call *like, uint32_t set)
{
    return set == MS_NOTHING
               ? MS_OK
               : ms_program_add(w->program, ms_program_wait(like, set),
                                w->arena, w->fault);
}

ms_err ms_swapcalls_walk(ms_swap *w,
                         ms_err (*around)(ms_swap *swap, const ms_call *call,
                                          bool before))
{
    for (uint32_t i = 0; i < w->from->n_calls; i++) {
        const ms_call *call = &w->from->calls[i];
        bool run = call->verb == MS_RUN;
        if (run)
            MS_TRY(around(w, call, true));
        MS_TRY(ms_program_add(w->program, *call, w->arena, w->fault));
        if (run)
            MS_TRY(around(w, call, false));
    }
    return MS_OK;
}
