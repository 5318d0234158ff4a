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

ms_err ms_swapgroups_close(ms_swap *w)
{
    uint32_t units = w->saved.graph->n_units;
    w->group_at = ms_arena_take_raw(w->arena, units + 1u, sizeof *w->group_at);
    if (w->group_at == NULL)
        return ms_fail_nomem(w->fault);
    for (uint32_t u = 0, g = 0; u <= units; u++) {
        while (g < w->n_groups && w->groups[g].last < u)
            g++;
        w->group_at[u] = g;
    }
    MS_TRY(ms_swapturns_find(w));
    for (uint32_t t = 0; t < w->n_turns; t++) {
        ms_swap_turn *turn = &w->turns[t];
        turn->reached = turn->sent = w->group_at[turn->last + 1];
    }
    return MS_OK;
}

uint32_t ms_swapgroups_leaves(const ms_swap *w, const ms_swap_turn *turn,
                              uint32_t group)
{
    bool last = group + 1 == w->group_at[turn->last + 1];
    return w->last_stays && last && !turn->waits ? MS_NOTHING
                                                 : w->groups[group].set;
}

/* Sends for the groups of a backward from `until` on that were not. */
static ms_err send(ms_swap *w, ms_swap_turn *turn, const ms_call *like,
                   uint32_t until)
{
    const ms_swap_turn *forward =
        turn->forward == MS_NONE ? NULL : &w->turns[turn->forward];
    while (turn->sent > until) {
        uint32_t set = w->groups[--turn->sent].set;
        if (forward != NULL)
            set = ms_swapgroups_leaves(w, forward, turn->sent);
        MS_TRY(ms_swapcalls_move(w, like, set, w->coming_how));
    }
    return MS_OK;
}

/* The last groups of the rank's next backward, where that has run forward. */
static ms_err send_next(ms_swap *w, const ms_swap_turn *turn, uint32_t n)
{
    ms_swap_turn *next = turn->next == MS_NONE ? NULL : &w->turns[turn->next];
    if (next == NULL || next->forward == MS_NONE ||
        w->turns[next->forward].call > turn->call)
        return MS_OK;
    uint32_t first = w->group_at[next->first];
    uint32_t end = w->group_at[next->last + 1];
    return send(w, next, &w->from->calls[next->call],
                end - first > n ? end - n : first);
}

/* Backward has reached a group with the first unit that reads it; then all up
 * to `ahead` groups further are sent for. */
ms_err ms_swapgroups_send(ms_swap *w, const ms_call *call)
{
    ms_swap_turn *turn = ms_swapturns_of(w, call);
    if (!ms_swap_is_backward(call) || turn->second)
        return MS_OK;
    uint32_t first = w->group_at[turn->first], before = turn->reached;
    while (turn->reached > first &&
           w->groups[turn->reached - 1].last >= call->unit)
        turn->reached--;
    uint32_t left = turn->reached - first;
    if (turn->reached == before)
        return MS_OK;
    if (left >= w->ahead)
        return send(w, turn, call, turn->reached - w->ahead);
    MS_TRY(send(w, turn, call, first));
    return send_next(w, turn, w->ahead - left);
}
