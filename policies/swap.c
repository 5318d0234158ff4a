/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Saved activations spend the time between forward and backward in host
 * memory; three published ways to choose what goes and when it comes back
 * (specs/policies.md 4.1, 4.5, 4.7). */
#include "policies/swap.h"

#include <stdio.h>

enum { SAVE_ON_CPU, VDNN, TE, MIN, N_PARAMS };
enum { VDNN_ALL, VDNN_CONV };

static const ms_param params[N_PARAMS] = {
    [SAVE_ON_CPU] = {.name = "save_on_cpu",
                     .type = MS_PARAM_FLAG,
                     .choice = true,
                     .help = "torch's save_on_cpu with pinned memory: all of "
                             "it, copied on the compute stream"},
    [VDNN] = {.name = "vdnn",
              .type = MS_PARAM_WORD,
              .choice = true,
              .words = "all|conv",
              .help = "vDNN: inputs of all units, or of those that convolve, "
                      "leave while the unit runs; one comes back per backward"},
    [TE] = {.name = "te",
            .type = MS_PARAM_INT,
            .choice = true,
            .low = 1,
            .high = 1000000,
            .help = "Transformer Engine: the first N of L blocks leave; L - N "
                    "blocks' tensors are here at a time"},
    [MIN] = {.name = "min",
             .type = MS_PARAM_INT,
             .fallback = 1024,
             .low = 1,
             .high = INT64_C(1) << 40,
             .help = "bytes of the smallest tensor that moves"},
};

ms_err ms_swap_emit(ms_swap *w, const ms_call *like, ms_verb verb, uint32_t set,
                    uint8_t place, uint8_t flags)
{
    ms_call call = ms_program_call_like(verb, like);
    if (set == MS_NOTHING)
        return MS_OK;
    call.place = place;
    call.flags = flags;
    call.set = set;
    return ms_program_add(w->program, call, w->arena, w->fault);
}

/* ---- save_on_cpu --------------------------------------------------------- */

static ms_err copy_in_line(ms_swap *w, const ms_call *call, bool before)
{
    uint32_t set = w->saved.unit_set[call->unit];
    if (ms_swap_is_forward(call) && !before)
        return ms_swap_emit(w, call, MS_MOVE, set, MS_HOST, MS_CALL_IN_LINE);
    if (ms_swap_is_backward(call) && before)
        return ms_swap_emit(w, call, MS_MOVE, set, MS_HERE, MS_CALL_IN_LINE);
    return MS_OK;
}

/* ---- Transformer Engine -------------------------------------------------- */

/* The block that begins (first) or ends with this unit, or MS_NONE. */
static uint32_t block_at(const ms_swap *w, uint32_t unit, bool first)
{
    const ms_saved *saved = &w->saved;
    uint32_t block = saved->block_of[unit];
    bool edge = block != MS_NONE && (first ? saved->block_first[block]
                                           : saved->block_last[block]) == unit;
    return edge ? block : MS_NONE;
}

static ms_err run_te(ms_swap *w, const ms_call *call, bool before)
{
    const ms_saved *saved = &w->saved;
    uint32_t away = saved->n_blocks - w->te; /* blocks between leaving and
                                                being waited for */
    uint32_t block =
        block_at(w, call->unit, ms_swap_is_forward(call) == before);
    if (block == MS_NONE)
        return MS_OK;
    if (ms_swap_is_forward(call) && !before && block < w->te)
        return ms_swap_emit(w, call, MS_MOVE, saved->block_set[block], MS_HOST,
                            MS_CALL_LATER);
    if (ms_swap_is_forward(call) && before && block >= away)
        return ms_swap_emit(w, call, MS_WAIT, saved->block_set[block - away],
                            MS_HERE, 0);
    if (ms_swap_is_backward(call) && before && block + 1 >= away &&
        block + 1 - away < w->te)
        return ms_swap_emit(w, call, MS_MOVE,
                            saved->block_set[block + 1 - away], MS_HERE, 0);
    return MS_OK;
}

static ms_err check_te(ms_swap *w)
{
    char where[48];
    uint32_t n = w->saved.n_blocks;
    w->te = (uint32_t)w->values[TE].number;
    if (w->te < n)
        return MS_OK;
    snprintf(where, sizeof where, "swap:te=%u", w->te);
    return ms_fail(w->fault, MS_EUSAGE, where, "leave at least one block here",
                   "the model has %u blocks", n);
}

/* ---- the hook ------------------------------------------------------------ */

static ms_err around(ms_swap *w, const ms_call *call, bool before)
{
    if (call->verb != MS_RUN)
        return MS_OK;
    if (w->values[SAVE_ON_CPU].given)
        return copy_in_line(w, call, before);
    return w->values[TE].given ? run_te(w, call, before)
                               : ms_vdnn_around(w, call, before);
}

static ms_err place(const ms_policy_context *context, ms_program *program,
                    ms_fault *fault)
{
    ms_program made = ms_program_without_calls(program);
    ms_swap w = {.program = &made,
                 .arena = context->arena,
                 .fault = fault,
                 .values = context->values,
                 .convolutions = context->values[VDNN].number == VDNN_CONV};
    w.brought = ms_arena_take(w.arena, context->graph->n_units, 1);
    if (w.brought == NULL)
        return ms_fail_nomem(fault);
    MS_TRY(ms_saved_find(context->graph, program,
                         (uint64_t)context->values[MIN].number, w.arena, &made,
                         &w.saved, fault));
    if (context->values[TE].given)
        MS_TRY(check_te(&w));
    for (uint32_t i = 0; i < program->n_calls; i++) {
        MS_TRY(around(&w, &program->calls[i], true));
        MS_TRY(ms_program_add(&made, program->calls[i], w.arena, fault));
        MS_TRY(around(&w, &program->calls[i], false));
    }
    *program = made;
    return MS_OK;
}

const ms_policy ms_policy_swap = {
    .name = "swap",
    .summary = "saved activations wait for their backward in host memory",
    .example = "swap:te=4",
    .params = params,
    .n_params = N_PARAMS,
    .place = place,
};
