/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Transformer Engine's CPU offload, version 2 (transformer_engine/pytorch/
 * cpu_offload.py, d0067d0d): blocks 0 .. n - 1 of L leave when
 * their forward ends; block i is waited for, and freed, before the forward of
 * block L - n + i and comes back L - n - 1 blocks ahead of its backward, so
 * that at most L - n blocks' tensors are here.  One stream takes the copies of
 * both directions. */
#include "policies/swap/swap.h"
#include "sim/graph.h"
#include "sim/program.h"

#include <stdio.h>

/* 256 * 1024 elements of 16 bits. */
#define MIN_BYTES ((uint64_t)256 * 1024 * 2)

static ms_err fail_blocks(ms_swap *w)
{
    char where[48];
    snprintf(where, sizeof where, "swap:te=%u", w->te);
    return ms_fail(w->fault, MS_EUSAGE, where, "leave at least one block here",
                   "the model has %u blocks", w->saved.n_blocks);
}

/* Smaller tensors stay, where the words say no other size. */
void ms_te_stays(const ms_swap *w, uint8_t *stays)
{
    const ms_graph *graph = w->context->graph;
    if (w->values[MS_SWAP_MIN].given)
        return;
    for (uint32_t s = 0; s < graph->n_storages; s++)
        stays[s] = graph->storage_bytes[s] < MIN_BYTES;
}

ms_err ms_te_open(ms_swap *w)
{
    const ms_saved *saved = &w->saved;
    const ms_policy_value *prefetch = &w->values[MS_SWAP_PREFETCH];
    w->te = (uint32_t)w->values[MS_SWAP_TE].number;
    if (w->te >= saved->n_blocks)
        return fail_blocks(w);
    uint32_t away = saved->n_blocks - w->te;
    w->coming_how.side = true; /* offload_stream */
    MS_TRY(ms_swapgroups_open(w, saved->n_blocks,
                              prefetch->given ? (uint32_t)prefetch->number
                                              : away - 1));
    for (uint32_t b = 0; b < saved->n_blocks; b++)
        w->groups[w->n_groups++] =
            (ms_swap_group){.set = b < w->te ? saved->block_set[b] : MS_NOTHING,
                            .last = saved->block_last[b]};
    return ms_swapgroups_close(w);
}

/* The block that begins (first) or ends with this unit, or MS_NONE. */
static uint32_t block_at(const ms_saved *saved, uint32_t unit, bool first)
{
    uint32_t block = saved->block_of[unit];
    bool edge = block != MS_NONE && (first ? saved->block_first[block]
                                           : saved->block_last[block]) == unit;
    return edge ? block : MS_NONE;
}

ms_err ms_te_around(ms_swap *w, const ms_call *call, bool before)
{
    const ms_saved *saved = &w->saved;
    uint32_t away = saved->n_blocks - w->te;
    uint32_t block = block_at(saved, call->unit, before);
    if (before)
        MS_TRY(ms_swapgroups_send(w, call));
    if (!ms_swap_is_forward(call) || block == MS_NONE)
        return MS_OK;
    if (!before && block < w->te)
        return ms_swapcalls_move(
            w, call, saved->block_set[block],
            (ms_move_call){.to = MS_HOST, .later = true, .side = true});
    if (before && block >= away)
        return ms_swapcalls_wait(w, call, saved->block_set[block - away]);
    return MS_OK;
}
