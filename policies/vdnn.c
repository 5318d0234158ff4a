/* SPDX-License-Identifier: GPL-3.0-or-later */
/* vDNN (Rhu et al. 2016): the input of a unit leaves while the unit runs
 * forward; each backward brings one back (specs/policies.md 4.1). */
#include "policies/swap.h"

#include <string.h>

static bool convolves(const ms_graph *graph, uint32_t unit)
{
    for (uint32_t op = graph->forward_at[unit];
         op < graph->forward_at[unit + 1]; op++)
        if (strstr(graph->op_name[op], "convolution") != NULL)
            return true;
    return false;
}

static uint32_t input_set(const ms_swap *w, uint32_t unit)
{
    bool leaves = !w->convolutions || convolves(w->saved.graph, unit);
    return leaves ? w->saved.input_set[unit] : MS_NOTHING;
}

/* The next unit, in backward order, to send for: the search ends at a unit
 * that convolves and has nothing to bring (vDNN, algorithm 1). */
static uint32_t next_to_bring(const ms_swap *w, uint32_t unit)
{
    while (unit-- > 0) {
        bool away = input_set(w, unit) != MS_NOTHING;
        if (away && !w->brought[unit])
            return unit;
        if (!away && convolves(w->saved.graph, unit))
            return MS_NONE;
    }
    return MS_NONE;
}

ms_err ms_vdnn_open(ms_swap *w)
{
    w->convolutions = w->values[MS_SWAP_VDNN].number == MS_SWAP_VDNN_CONV;
    w->brought = ms_arena_take(w->arena, w->saved.graph->n_units, 1);
    return w->brought == NULL ? ms_fail_nomem(w->fault) : MS_OK;
}

ms_err ms_vdnn_around(ms_swap *w, const ms_call *call, bool before)
{
    uint32_t set = input_set(w, call->unit);
    if (ms_swap_is_forward(call)) {
        w->brought[call->unit] = 0;
        return before
                   ? ms_swap_emit(w, call, MS_MOVE, set, MS_HOST, MS_CALL_LATER)
                   : ms_swap_emit(w, call, MS_WAIT, set, MS_HERE, 0);
    }
    if (!ms_swap_is_backward(call))
        return MS_OK;
    uint32_t other = next_to_bring(w, call->unit);
    if (other == MS_NONE)
        return MS_OK;
    if (before)
        return ms_swap_emit(w, call, MS_MOVE, input_set(w, other), MS_HERE, 0);
    w->brought[other] = 1;
    return ms_swap_emit(w, call, MS_WAIT, input_set(w, other), MS_HERE, 0);
}
