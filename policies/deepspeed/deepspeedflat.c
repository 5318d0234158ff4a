/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The calls of stages 0 to 2. */
#include "policies/deepspeed/deepspeed.h"
#include "sim/names.h"
#include "sim/program.h"

static bool is_last(const ms_deepspeed_writer *w, const ms_call *call)
{
    return call->micro_batch + 1 == w->program->n_micro_batches;
}

static ms_err open_backward(ms_deepspeed_writer *w, const ms_call *like)
{
    uint32_t n = w->how->overlap ? 2 : 1;
    w->open = true;
    w->has_parts = false;
    w->parts = MS_NONE;
    w->active = 0;
    if (w->how->stage == 0 || w->has_sum)
        return MS_OK;
    for (uint32_t i = 0; i < n && w->how->contiguous; i++)
        MS_TRY(ms_deepspeedcalls_take(
            w, like,
            (ms_buffer){.name = "ipg_bucket",
                        .bytes = w->how->bucket * w->item_bytes,
                        .category = MS_COMMUNICATION},
            &w->bucket[i]));
    return MS_OK;
}

/* Stage 0: flat copies of all gradients are reduced, one after the other
 * (engine.py, buffered_allreduce_fallback). */
static ms_err reduce_all(ms_deepspeed_writer *w, const ms_call *like)
{
    uint32_t r = 0;
    while (r < w->n_rows) {
        uint32_t n = 0, set, copy;
        uint64_t elements = 0;
        for (; r < w->n_rows && elements <= w->how->bucket; r++) {
            if (!w->rows[r].made)
                continue;
            w->list[n++] = w->rows[r].grad;
            elements += w->rows[r].elements;
        }
        if (n == 0)
            break;
        MS_TRY(ms_deepspeedcalls_add_set(w, n, &set));
        MS_TRY(ms_deepspeedcalls_take(
            w, like,
            (ms_buffer){.name = "flattened",
                        .bytes = elements * w->item_bytes,
                        .category = MS_COMMUNICATION},
            &copy));
        MS_TRY(ms_deepspeedcalls_reduce(w, like, set, MS_NONE,
                                        (ms_reduce_call){.to = MS_HERE}));
        MS_TRY(ms_deepspeedcalls_wait(w, like, set, MS_NONE));
        MS_TRY(ms_deepspeedcalls_give(w, like, copy));
    }
    return MS_OK;
}

/* BF16_Optimizer: all of the fp32 sum, one flat tensor, is cast to bf16,
 * all-reduced and copied back (engine.py: get_grads_for_reduction,
 * allreduce_bucket with communication_data_type, which for bf16 is bf16).  Its
 * elements are those of .grad. */
static ms_err reduce_sum(ms_deepspeed_writer *w, const ms_call *like)
{
    uint64_t elements = 0;
    uint32_t copy;
    for (uint32_t r = 0; r < w->n_rows; r++)
        elements += w->rows[r].made ? w->rows[r].elements : 0;
    MS_TRY(ms_deepspeedcalls_take(w, like,
                                  (ms_buffer){.name = "cast",
                                              .bytes = elements * w->item_bytes,
                                              .category = MS_COMMUNICATION},
                                  &copy));
    MS_TRY(ms_deepspeedcalls_reduce(w, like, w->all_grads, MS_NONE,
                                    (ms_reduce_call){.to = MS_HERE}));
    MS_TRY(ms_deepspeedcalls_wait(w, like, w->all_grads, MS_NONE));
    return ms_deepspeedcalls_give(w, like, copy);
}

/* Reduces what is left in the bucket at the end of backward: in stage 1 without
 * overlap, where gradients have no hooks, all of them. */
static ms_err close_backward(ms_deepspeed_writer *w, const ms_call *like)
{
    const ms_deepspeed *how = w->how;
    w->open = false;
    if (how->stage == 0)
        return is_last(w, like) ? reduce_all(w, like) : MS_OK;
    if (w->has_sum)
        return is_last(w, like) ? reduce_sum(w, like) : MS_OK;
    for (uint32_t r = 0;
         r < w->n_rows && how->stage == 1 && !how->overlap && is_last(w, like);
         r++)
        if (w->rows[r].made)
            MS_TRY(ms_deepspeedbucket_add(w, like, r));
    MS_TRY(ms_deepspeedbucket_close(w, like));
    for (uint32_t i = 0; i < (how->overlap ? 2u : 1u) && how->contiguous; i++)
        MS_TRY(ms_deepspeedcalls_give(w, like, w->bucket[i]));
    if (w->parts != MS_NONE)
        MS_TRY(ms_deepspeedcalls_give(w, like, w->parts));
    return MS_OK;
}

ms_err ms_deepspeedflat_write(ms_deepspeed_writer *w, const ms_program *old)
{
    uint32_t stage = w->how->stage;
    const ms_call *last = NULL; /* run of the backward under way */
    for (uint32_t i = 0; i < old->n_calls; i++) {
        const ms_call *call = &old->calls[i];
        bool back = call->verb == MS_RUN && call->run.pass != MS_FORWARD;
        if (w->open && last != NULL && ms_deepspeedcalls_ends(call))
            MS_TRY(close_backward(w, last));
        if (!w->open && (back || call->verb == MS_RERUN))
            MS_TRY(open_backward(w, call));
        MS_TRY(ms_program_add(w->program, *call, w->arena, w->fault));
        if (back) {
            bool hooks = stage == 2 || (stage == 1 && !w->has_sum &&
                                        w->how->overlap && is_last(w, call));
            last = call;
            if (hooks)
                MS_TRY(ms_deepspeedbucket_ready(w, call, call->unit));
        }
        if (call->verb == MS_STEP_SET && stage > 0)
            MS_TRY(ms_deepspeedcalls_gather(w, call, w->all_weights, MS_NONE,
                                            (ms_gather_call){0}));
    }
    return w->open && last != NULL ? close_backward(w, last) : MS_OK;
}
