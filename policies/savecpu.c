/* SPDX-License-Identifier: GPL-3.0-or-later */
/* torch.autograd.graph.save_on_cpu: every saved tensor is copied out and in on
 * the compute stream; without pinned memory the host waits for each copy
 * (specs/policies.md 3.5, 4.5). */
#include "policies/swap.h"

ms_err ms_savecpu_around(ms_swap *w, const ms_call *call, bool before)
{
    uint32_t set = w->saved.unit_set[call->unit];
    uint16_t flags = MS_CALL_IN_LINE;
    if (!w->values[MS_SWAP_PIN].number)
        flags |= MS_CALL_PAGEABLE;
    if (ms_swap_is_forward(call) && !before)
        return ms_swap_emit(w, call, MS_MOVE, set, MS_HOST, flags);
    if (ms_swap_is_backward(call) && before)
        return ms_swap_emit(w, call, MS_MOVE, set, MS_HERE, flags);
    return MS_OK;
}
