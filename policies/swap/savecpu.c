/* SPDX-License-Identifier: GPL-3.0-or-later */
/* torch.autograd.graph.save_on_cpu: hooks on every save, of parameters too and
 * of one tensor as often as it is saved; the copies are on the compute stream.
 * Without pinned memory the host waits for each; PyTorch 1.13 waits for those
 * out of pinned memory, too (policies/sources.md 7).  What a checkpoint
 * holds was saved by a node of its own. */
#include "policies/swap/swap.h"
#include "sim/graph.h"
#include "sim/program.h"

ms_err ms_savecpu_open(ms_swap *w)
{
    const ms_graph *graph = w->context->graph;
    w->program->hooks = (ms_hooks){.used = true,
                                   .pageable = !w->values[MS_SWAP_PIN].number,
                                   .waits = w->context->torch_1,
                                   .ops = graph->backward_at[graph->n_units],
                                   .min_bytes = w->min_bytes};
    return MS_OK;
}

ms_err ms_savecpu_around(ms_swap *w, const ms_call *call, bool before)
{
    uint32_t set = w->saved.unit_set[call->unit];
    bool in = ms_swap_is_backward(call);
    ms_move_call how = {.to = in ? MS_HERE : MS_HOST,
                        .in_line = true,
                        .pageable = !w->values[MS_SWAP_PIN].number};
    if (ms_swap_is_forward(call) && !before)
        return ms_swapcalls_move(w, call, set, how);
    if (in && before)
        return ms_swapcalls_move(w, call, set, how);
    return MS_OK;
}
