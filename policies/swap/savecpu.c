/* SPDX-License-Identifier: GPL-3.0-or-later */
/* torch.autograd.graph.save_on_cpu: hooks on every save, of parameters too and
 * of one tensor as often as it is saved; the copies are on the compute stream.
 * Without pinned memory the host waits for each; PyTorch 1.13 waits for those
 * out of pinned memory, too (policies/sources.md 7).  What a checkpoint
 * holds was saved by a node of its own. */
#include "policies/swap/swap.h"
#include "sim/graph.h"
#include "sim/program.h"
#include "sim/schedule/schedule.h"

/* torch's stages keep what they receive and hand on themselves. */
static ms_err check_ranks(const ms_swap *w)
{
    const ms_schedule *schedule = w->context->schedule;
    if (ms_schedule_splits(schedule))
        return ms_fail(w->fault, MS_EUSAGE, "swap:save_on_cpu",
                       "take a schedule with whole backwards, or swap:megatron",
                       "memsim does not follow its hooks through the halves of "
                       "a backward");
    if (schedule->n_ranks > 1 && !schedule->keeps.messages)
        return ms_fail(w->fault, MS_EUSAGE, "swap:save_on_cpu",
                       "add impl=torch to pipeline, or take swap:megatron",
                       "it is torch's, whose pipelines keep what a stage "
                       "receives beside the copies");
    return MS_OK;
}

ms_err ms_savecpu_open(ms_swap *w)
{
    const ms_graph *graph = w->context->graph;
    MS_TRY(check_ranks(w));
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
