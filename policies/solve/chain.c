/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "policies/solve/chain.h"

#include <inttypes.h>
#include <stdio.h>

ms_err ms_chain_add(ms_chain_plan *plan, ms_chain_verb verb, uint32_t stage,
                    ms_arena *arena, ms_fault *fault)
{
    if (plan->n == plan->capacity) {
        ms_chain_act *acts = ms_arena_grow(arena, plan->acts, &plan->capacity,
                                           plan->n + 1, sizeof *acts);
        if (acts == NULL)
            return ms_fail_nomem(fault);
        plan->acts = acts;
    }
    plan->acts[plan->n++] =
        (ms_chain_act){.verb = (uint8_t)verb, .stage = stage};
    return MS_OK;
}

ms_err ms_chain_advance(ms_chain_plan *plan, uint32_t first, uint32_t end,
                        ms_arena *arena, ms_fault *fault)
{
    for (uint32_t l = first; l < end; l++)
        MS_TRY(ms_chain_add(plan,
                            l == first ? MS_CHAIN_CHECKPOINT : MS_CHAIN_PASS, l,
                            arena, fault));
    return MS_OK;
}

/* What is stored between two acts. */
typedef struct store {
    const ms_chain *chain;
    bool *output, *saved; /* per stage: a(l) by itself, A(l) */
    uint32_t gradient;    /* of this stage's output */
    uint64_t bytes, peak_bytes;
} store;

static uint64_t output_bytes(const ms_chain *chain, uint32_t stage)
{
    return stage == 0 ? chain->input_bytes : chain->stages[stage].output_bytes;
}

static bool has_output(const store *s, uint32_t stage)
{
    return s->output[stage] || s->saved[stage];
}

static void climb(store *s, uint64_t besides_bytes)
{
    if (s->bytes + besides_bytes > s->peak_bytes)
        s->peak_bytes = s->bytes + besides_bytes;
}

/* Frees a(l) where it is there by itself; the input of the chain stays. */
static void free_output(store *s, uint32_t stage)
{
    if (stage == 0 || !s->output[stage])
        return;
    s->output[stage] = false;
    s->bytes -= output_bytes(s->chain, stage);
}

static bool run_forward(store *s, ms_chain_act act)
{
    uint32_t l = act.stage;
    const ms_chain_stage *stage = &s->chain->stages[l];
    if (!has_output(s, l - 1) || has_output(s, l))
        return false;
    s->bytes +=
        act.verb == MS_CHAIN_SAVE ? stage->saved_bytes : stage->output_bytes;
    climb(s, stage->forward_extra_bytes);
    s->saved[l] = act.verb == MS_CHAIN_SAVE;
    s->output[l] = !s->saved[l];
    if (act.verb == MS_CHAIN_PASS)
        free_output(s, l - 1);
    return true;
}

static bool run_backward(store *s, uint32_t l)
{
    const ms_chain_stage *stage = &s->chain->stages[l];
    if (!s->saved[l] || !has_output(s, l - 1) || s->gradient != l)
        return false;
    climb(s, stage->backward_extra_bytes);
    s->saved[l] = false;
    s->bytes -= stage->saved_bytes;
    s->bytes -= stage->output_bytes; /* its gradient */
    s->bytes += stage->left_bytes;
    free_output(s, l - 1);
    s->gradient = l - 1;
    s->bytes += l > 1 ? output_bytes(s->chain, l - 1) : 0;
    return true;
}

/* Does a replay end with act i?  Stage n runs forward once. */
static bool ends_replay(const ms_chain *chain, const ms_chain_plan *plan,
                        uint32_t i)
{
    ms_chain_act act = plan->acts[i];
    return act.verb == MS_CHAIN_SAVE && act.stage < chain->n &&
           i + 1 < plan->n && plan->acts[i + 1].verb == MS_CHAIN_BACKWARD;
}

ms_err ms_chain_cost(const ms_chain *chain, const ms_chain_plan *plan,
                     ms_arena *scratch, uint64_t *time_ns, uint64_t *peak_bytes,
                     ms_fault *fault)
{
    store s = {.chain = chain, .gradient = chain->n};
    s.output = ms_arena_take(scratch, chain->n + 1u, sizeof *s.output);
    s.saved = ms_arena_take(scratch, chain->n + 1u, sizeof *s.saved);
    if (s.output == NULL || s.saved == NULL)
        return ms_fail_nomem(fault);
    s.output[0] = true;
    s.bytes = chain->input_bytes + output_bytes(chain, chain->n);
    *time_ns = 0;
    for (uint32_t i = 0; i < plan->n; i++) {
        ms_chain_act act = plan->acts[i];
        bool back = act.verb == MS_CHAIN_BACKWARD;
        char where[32];
        if (!(back ? run_backward(&s, act.stage) : run_forward(&s, act))) {
            snprintf(where, sizeof where, "act %" PRIu32, i);
            return ms_fail(fault, MS_EINPUT, where, NULL,
                           "stage %" PRIu32 " cannot run: what it needs is not "
                           "there, or what it makes is",
                           act.stage);
        }
        *time_ns += back ? chain->stages[act.stage].backward_ns
                         : chain->stages[act.stage].forward_ns;
        if (ends_replay(chain, plan, i))
            *time_ns += chain->replay_ns - chain->stages[act.stage].tail_ns;
    }
    *peak_bytes = s.peak_bytes;
    if (s.gradient != 0)
        return ms_fail(fault, MS_EINPUT, "plan", NULL,
                       "the backward of stage %" PRIu32 " is missing",
                       s.gradient);
    return MS_OK;
}
