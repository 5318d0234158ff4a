/* SPDX-License-Identifier: GPL-3.0-or-later */
/* torch.autograd.graph.save_on_cpu(pin_memory=True): every saved tensor is
 * copied out and in on the compute stream (specs/policies.md 4.5). */
#include "policies/swap.h"

ms_err ms_savecpu_around(ms_swap *w, const ms_call *call, bool before)
{
    uint32_t set = w->saved.unit_set[call->unit];
    if (ms_swap_is_forward(call) && !before)
        return ms_swap_emit(w, call, MS_MOVE, set, MS_HOST, MS_CALL_IN_LINE);
    if (ms_swap_is_backward(call) && before)
        return ms_swap_emit(w, call, MS_MOVE, set, MS_HERE, MS_CALL_IN_LINE);
    return MS_OK;
}
