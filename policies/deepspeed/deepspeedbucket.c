/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The gradient bucket of stages 1 to 3. */
#include "policies/deepspeed/deepspeed.h"
#include "sim/graph.h"
#include "sim/names.h"
#include "sim/program.h"

static uint64_t parts_bytes(const ms_deepspeed_writer *w)
{
    uint64_t bytes = 0;
    for (uint32_t r = 0; r < w->n_rows; r++)
        if (w->rows[r].made)
            bytes += w->graph->storage_shard_bytes[w->rows[r].grad];
    return bytes;
}

/* The owner's partition of the whole group is made with the first slice of it
 * in a backward; in stage 2 those of later micro-batches are added to the first
 * one when the backward ends. */
static ms_err open_parts(ms_deepspeed_writer *w, const ms_call *like)
{
    if (w->has_parts || w->how->stage == 3 || w->far)
        return MS_OK;
    w->has_parts = true;
    if (w->how->stage == 1 || like->micro_batch == 0)
        return ms_deepspeedcalls_move(
            w, like, w->all_grads, MS_NONE,
            (ms_move_call){.to = MS_SHARD, .later = true});
    return ms_deepspeedcalls_take(w, like,
                                  (ms_buffer){.name = "grads_in_partition",
                                              .bytes = parts_bytes(w),
                                              .category = MS_GRADIENTS},
                                  &w->parts);
}

ms_err ms_deepspeedbucket_close(ms_deepspeed_writer *w, const ms_call *like)
{
    const ms_deepspeed *how = w->how;
    if (w->n_in == 0)
        return MS_OK;
    MS_TRY(open_parts(w, like));
    if (how->stage == 3)
        MS_TRY(ms_deepspeedcalls_await(w, like, &w->reductions));
    if (how->quantized_gradients && w->ranks / w->node_ranks > 1)
        MS_TRY(ms_deepspeedpp_reduce(w, like));
    else
        MS_TRY(ms_deepspeedreduce_listed(w, like));
    if (how->stage == 3)
        MS_TRY(ms_deepspeedcalls_record(w, like, &w->reductions));
    if (how->overlap && how->stage < 3)
        w->active = 1 - w->active;
    w->n_in = 0;
    w->filled = 0;
    return MS_OK;
}

/* Adds a gradient that was made to the bucket, or reduces it beside the bucket
 * if it is larger than that. */
ms_err ms_deepspeedbucket_add(ms_deepspeed_writer *w, const ms_call *like,
                              uint32_t r)
{
    ms_deepspeed_row *it = &w->rows[r];
    uint64_t most = w->how->bucket;
    if (w->n_in > 0 && w->filled + it->elements > most)
        MS_TRY(ms_deepspeedbucket_close(w, like));
    if (w->how->contiguous && w->filled + it->elements <= most) {
        w->list[0] = it->grad;
        if (it->set == MS_NOTHING)
            MS_TRY(ms_deepspeedcalls_add_set(w, 1, &it->set));
        MS_TRY(ms_deepspeedcalls_move(w, like, it->set, w->bucket[w->active],
                                      (ms_move_call){.to = MS_PACKED}));
    }
    w->in[w->n_in++] = r;
    w->filled += it->elements;
    return MS_OK;
}

ms_err ms_deepspeedbucket_ready(ms_deepspeed_writer *w, const ms_call *like,
                                uint32_t unit)
{
    for (uint32_t i = w->grad_at[unit]; i < w->grad_at[unit + 1]; i++)
        MS_TRY(ms_deepspeedbucket_add(w, like, w->grad_of[i]));
    return MS_OK;
}
