/* SPDX-License-Identifier: GPL-3.0-or-later */
/* One reduction of gradients that are in the bucket together. */
#include "policies/deepspeed/deepspeed.h"
#include "sim/names.h"
#include "sim/program.h"

static uint64_t owner(const ms_deepspeed_writer *w, uint64_t at)
{
    return w->stretch > 0 ? at / w->stretch : 0;
}

/* Does what is in the bucket belong to several ranks? */
static bool has_owners(const ms_deepspeed_writer *w)
{
    uint64_t first = owner(w, w->rows[w->in[0]].at);
    for (uint32_t i = 0; i < w->n_in; i++) {
        const ms_deepspeed_row *it = &w->rows[w->in[i]];
        uint64_t last = it->at + (it->elements > 0 ? it->elements - 1 : 0);
        if (owner(w, it->at) != first || owner(w, last) != first)
            return true;
    }
    return false;
}

/* Is it copied before it is reduced?  Stages 1 and 2 flatten the slices of
 * several owners (allreduce_and_scatter) and, without a bucket, whatever there
 * is; stage 3 interleaves the ranks' chunks (reduce_scatter_coalesced). */
static bool is_copied(const ms_deepspeed_writer *w)
{
    const ms_deepspeed *how = w->how;
    const ms_deepspeed_row *first = &w->rows[w->in[0]];
    bool alone = w->n_in == 1;
    if (how->stage == 3)
        return how->scatter && !(alone && first->elements % w->ranks == 0);
    if (!how->contiguous)
        return !alone;
    if (alone && first->elements > how->bucket)
        return false;
    return how->scatter && how->multi_rank && has_owners(w);
}

static uint64_t copy_bytes(const ms_deepspeed_writer *w)
{
    uint64_t elements = 0, ranks = w->ranks;
    for (uint32_t i = 0; i < w->n_in; i++) {
        uint64_t n = w->rows[w->in[i]].elements;
        elements += w->how->stage == 3 ? (n + ranks - 1) / ranks * ranks : n;
    }
    return elements * w->item_bytes;
}

ms_err ms_deepspeedreduce_listed(ms_deepspeed_writer *w, const ms_call *like)
{
    const ms_deepspeed *how = w->how;
    uint32_t set, copy = MS_NONE;
    ms_reduce_call sum = {.to = MS_SHARD, .filled = true};
    for (uint32_t i = 0; i < w->n_in; i++)
        w->list[i] = w->rows[w->in[i]].grad;
    MS_TRY(ms_deepspeedcalls_add_set(w, w->n_in, &set));
    if (is_copied(w)) {
        MS_TRY(ms_deepspeedcalls_take(w, like,
                                      (ms_buffer){.name = "flattened",
                                                  .bytes = copy_bytes(w),
                                                  .category = MS_COMMUNICATION},
                                      &copy));
        MS_TRY(ms_deepspeedcalls_move(w, like, set, copy,
                                      (ms_move_call){.to = MS_PACKED}));
        sum.filled = false; /* all of it */
    }
    sum.whole = !how->scatter || (how->stage < 3 && how->multi_rank);
    MS_TRY(ms_deepspeedcalls_reduce(w, like, set, MS_NONE, sum));
    /* The copy ends with the function, before the gradients that leave the
     * bucket are looked at. */
    if (w->far && copy != MS_NONE)
        MS_TRY(ms_deepspeedcalls_give(w, like, copy));
    if (!how->overlap)
        MS_TRY(ms_deepspeedcalls_wait(w, like, set, MS_NONE));
    return !w->far && copy != MS_NONE ? ms_deepspeedcalls_give(w, like, copy)
                                      : MS_OK;
}
