/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The inputs of checkpointed blocks wait on the host: the offload of
 * ZeRO-Infinity's section 5.1.2 and of transformers' pull request 48444.  A
 * block's inputs leave when it has run, and come back blocks ahead of its
 * replay.  impl=deepspeed: cpu_checkpointing of DeepSpeed's
 * runtime/activation_checkpointing/checkpointing.py, which copies them by
 * .to(): to memory that is not pinned, and the host waits; they come back when
 * the replay begins. */
#include "policies/swap/swap.h"
#include "sim/graph.h"
#include "sim/program.h"

#include <string.h>

/* Everything stays but what a checkpoint holds; a stage of a pipeline holds
 * what it hands on, too. */
void ms_swapcheckpoints_stays(const ms_swap *w, uint8_t *stays)
{
    const ms_program *program = w->from;
    memset(stays, 1, w->context->graph->n_storages);
    for (uint32_t i = 0; i < program->n_calls; i++) {
        const ms_call *call = &program->calls[i];
        bool forward = ms_swap_is_forward(call);
        bool all = forward || program->n_stages == 0;
        if ((!forward && call->verb != MS_HOLD) || call->set >= program->n_sets)
            continue;
        for (uint32_t k = program->set_at[call->set];
             k < program->set_at[call->set + 1]; k++)
            if (all || w->replayed[program->set_item[k]])
                stays[program->set_item[k]] = 0;
    }
}

static bool is_deepspeed(const ms_swap *w)
{
    return w->values[MS_SWAP_IMPL].number == MS_SWAP_IMPL_DEEPSPEED;
}

ms_err ms_swapcheckpoints_open(ms_swap *w)
{
    const ms_saved *saved = &w->saved;
    const ms_policy_value *prefetch = &w->values[MS_SWAP_PREFETCH];
    bool deepspeed = is_deepspeed(w), some = false;
    if (deepspeed && w->from->n_ranks > 1)
        return ms_fail(w->fault, MS_EUSAGE, "swap:checkpoints",
                       "leave impl=deepspeed or pipeline out",
                       "DeepSpeed's pipeline keeps each stage's input beside "
                       "the copy that its cpu_checkpointing moves");
    for (uint32_t b = 0; b < saved->n_blocks; b++)
        some |= saved->block_set[b] != MS_NOTHING;
    if (!some)
        return ms_fail(w->fault, MS_EUSAGE, "swap:checkpoints",
                       "add a checkpoint policy, e.g. checkpoint:full",
                       "no checkpoint holds anything");
    if (deepspeed && prefetch->given)
        return ms_fail(w->fault, MS_EUSAGE, "swap:checkpoints",
                       "leave prefetch or impl=deepspeed out",
                       "DeepSpeed's cpu_checkpointing copies nothing ahead");
    if (deepspeed && w->values[MS_SWAP_TO].number != MS_SWAP_TO_HOST)
        return ms_fail(w->fault, MS_EUSAGE, "swap:checkpoints",
                       "leave to or impl=deepspeed out",
                       "DeepSpeed's cpu_checkpointing copies to host memory");
    MS_TRY(ms_swapgroups_open(
        w, saved->n_blocks, prefetch->given ? (uint32_t)prefetch->number : 1));
    for (uint32_t b = 0; b < saved->n_blocks; b++)
        w->groups[w->n_groups++] = (ms_swap_group){
            .set = saved->block_set[b], .last = saved->block_last[b]};
    return ms_swapgroups_close(w);
}

static ms_err around(ms_swap *w, const ms_call *call, bool before)
{
    const ms_saved *saved = &w->saved;
    uint32_t block = saved->block_of[call->unit];
    bool deepspeed = is_deepspeed(w);
    if (before)
        return deepspeed ? MS_OK : ms_swapgroups_send(w, call);
    if (!ms_swap_is_forward(call) || block == MS_NONE ||
        saved->block_last[block] != call->unit)
        return MS_OK;
    return ms_swapcalls_move(w, call, saved->block_set[block],
                             (ms_move_call){.to = MS_HOST,
                                            .in_line = deepspeed,
                                            .pageable = deepspeed});
}

/* Before a replay, what its units read comes back. */
static ms_err bring(ms_swap *w, const ms_call *call)
{
    for (uint32_t u = call->unit; u <= call->last; u++)
        MS_TRY(ms_swapcalls_move(
            w, call, w->saved.unit_set[u],
            (ms_move_call){.to = MS_HERE, .in_line = true, .pageable = true}));
    return MS_OK;
}

ms_err ms_swapcheckpoints_write(ms_swap *w)
{
    for (uint32_t i = 0; i < w->from->n_calls; i++) {
        const ms_call *call = &w->from->calls[i];
        if (call->verb == MS_RUN)
            MS_TRY(around(w, call, true));
        if (call->verb == MS_RERUN && is_deepspeed(w))
            MS_TRY(bring(w, call));
        MS_TRY(ms_program_add(w->program, *call, w->arena, w->fault));
        if (call->verb == MS_RUN)
            MS_TRY(around(w, call, false));
    }
    return MS_OK;
}
