/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "policies/swap/swap.h"
#include "sim/graph.h"
#include "sim/program.h"

ms_err ms_swapgroups_open(ms_swap *w, uint32_t n, uint32_t ahead)
{
    w->groups = ms_arena_take_raw(w->arena, n, sizeof *w->groups);
    w->n_groups = 0;
    w->ahead = ahead;
    return w->groups == NULL ? ms_fail_nomem(w->fault) : MS_OK;
}

ms_err ms_swapgroups_send(ms_swap *w, const ms_call *call)
{
    if (ms_swap_is_forward(call))
        w->reached = w->next = w->n_groups;
    if (!ms_swap_is_backward(call))
        return MS_OK;
    uint32_t before = w->reached;
    /* Backward has reached a group with the first unit that reads it; then all
     * up to `ahead` groups further are sent for. */
    while (w->reached > 0 && w->groups[w->reached - 1].last >= call->unit)
        w->reached--;
    if (w->reached == before)
        return MS_OK;
    uint32_t until = w->reached > w->ahead ? w->reached - w->ahead : 0;
    while (w->next > until)
        MS_TRY(ms_swapcalls_move(w, call, w->groups[--w->next].set,
                                 w->coming_how));
    return MS_OK;
}

ms_err ms_swapgroups_open_leaving(ms_swap *w, uint32_t n)
{
    uint32_t units = w->saved.graph->n_units;
    w->leaving = ms_arena_take_raw(w->arena, n, sizeof *w->leaving);
    w->leaving_at =
        ms_arena_take(w->arena, (size_t)units + 1, sizeof *w->leaving_at);
    w->leaving_before =
        ms_arena_take(w->arena, units, sizeof *w->leaving_before);
    return w->leaving == NULL || w->leaving_at == NULL ||
                   w->leaving_before == NULL
               ? ms_fail_nomem(w->fault)
               : MS_OK;
}

ms_err ms_swapgroups_leave(ms_swap *w, const ms_call *call, bool before)
{
    if (!ms_swap_is_forward(call))
        return MS_OK;
    uint32_t first = w->leaving_at[call->unit];
    uint32_t end = w->leaving_at[call->unit + 1];
    uint32_t middle = first + w->leaving_before[call->unit];
    for (uint32_t i = before ? first : middle; i < (before ? middle : end);
         i++) {
        if (w->in_flight > 0 && i >= w->in_flight)
            MS_TRY(ms_swapcalls_wait(w, call, w->leaving[i - w->in_flight]));
        ms_move_call how = w->leaving_how;
        how.to = MS_HOST;
        MS_TRY(ms_swapcalls_move(w, call, w->leaving[i], how));
    }
    return MS_OK;
}
