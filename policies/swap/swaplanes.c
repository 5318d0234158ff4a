/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "policies/swap/swaplanes.h"

#include <string.h>

ms_err ms_swaplanes_open(ms_swapplan *p)
{
    size_t n = p->profile->n_tensors, calls = p->profile->n_calls;
    ms_swaplanes *lanes = ms_arena_take(p->swap->arena, 1, sizeof *lanes);
    if (lanes == NULL)
        return ms_fail_nomem(p->swap->fault);
    p->lanes = lanes;
    uint32_t **const ids[] = {&lanes->first_call, &lanes->last_call,
                              &lanes->readers, &lanes->high_next,
                              &lanes->high_before};
    uint64_t **const times[] = {&lanes->out_ns, &lanes->out_by_ns,
                                &lanes->in_ns, &lanes->in_from_ns,
                                &lanes->shift_ns};
    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++) {
        *ids[i] =
            ms_arena_take(p->swap->arena, i < 3 ? n : calls, sizeof **ids[i]);
        *times[i] = ms_arena_take(p->swap->arena, (i < 4 ? n : calls) + 1,
                                  sizeof **times[i]);
        if (*ids[i] == NULL || *times[i] == NULL)
            return ms_fail_nomem(p->swap->fault);
    }
    return MS_OK;
}

static uint64_t later(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static uint64_t sooner(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static uint64_t less(uint64_t a, uint64_t b)
{
    return a > b ? a - b : 0;
}

/* ---- when, with what is waited for --------------------------------------- */

static uint64_t used_ns(const ms_swapplan *p, uint32_t tensor)
{
    const ms_profile_tensor *t = &p->profile->tensors[tensor];
    return t->out_ns + p->lanes->shift_ns[t->out_call];
}

static uint64_t needed_ns(const ms_swapplan *p, uint32_t tensor)
{
    return p->need_ns[tensor] + p->lanes->shift_ns[p->need_call[tensor]];
}

static uint64_t begins_ns(const ms_swapplan *p, uint32_t call)
{
    return p->profile->start_ns[call] + p->lanes->shift_ns[call];
}

static uint64_t ended_ns(const ms_swapplan *p, uint32_t call)
{
    return p->profile->start_ns[call + 1] + p->lanes->shift_ns[call];
}

/* ---- the lanes ----------------------------------------------------------- */

static bool moves(const ms_swapplan *p, uint32_t tensor)
{
    return p->choice[tensor].place == MS_HOST;
}

static void look_out(ms_swapplan *p)
{
    ms_swaplanes *lanes = p->lanes;
    uint32_t n = p->profile->n_tensors;
    lanes->out_ns[0] = 0;
    lanes->out_by_ns[n] = UINT64_MAX;
    for (uint32_t k = 0; k < n; k++) {
        uint32_t i = p->by_out[k];
        lanes->out_ns[k + 1] =
            moves(p, i) ? later(lanes->out_ns[k], used_ns(p, i)) + p->out_ns[i]
                        : lanes->out_ns[k];
    }
    for (uint32_t k = n; k-- > 0;) {
        uint32_t i = p->by_out[k];
        lanes->out_by_ns[k] = lanes->out_by_ns[k + 1];
        if (moves(p, i))
            lanes->out_by_ns[k] =
                less(sooner(lanes->out_by_ns[k + 1],
                            begins_ns(p, lanes->first_call[i])),
                     p->out_ns[i]);
    }
}

static void look_in(ms_swapplan *p)
{
    ms_swaplanes *lanes = p->lanes;
    uint32_t n = p->profile->n_tensors;
    lanes->in_ns[n] = UINT64_MAX;
    lanes->in_from_ns[0] = 0;
    for (uint32_t k = n; k-- > 0;) {
        uint32_t i = p->by_back[k];
        lanes->in_ns[k] = lanes->in_ns[k + 1];
        if (moves(p, i))
            lanes->in_ns[k] =
                less(sooner(lanes->in_ns[k + 1], needed_ns(p, i)), p->in_ns[i]);
    }
    for (uint32_t k = 0; k < n; k++) {
        uint32_t i = p->by_back[k];
        lanes->in_from_ns[k + 1] = lanes->in_from_ns[k];
        if (moves(p, i))
            lanes->in_from_ns[k + 1] =
                later(lanes->in_from_ns[k], ended_ns(p, lanes->last_call[i])) +
                p->in_ns[i];
    }
}

static void look_high(ms_swapplan *p)
{
    ms_swaplanes *lanes = p->lanes;
    uint32_t n = p->profile->n_calls, high = n;
    for (uint32_t c = n; c-- > 0;) {
        high = p->level_bytes[c] > p->target_bytes ? c : high;
        lanes->high_next[c] = high;
    }
    high = 0;
    for (uint32_t c = 0; c < n; c++) {
        high = p->level_bytes[c] > p->target_bytes ? c : high;
        lanes->high_before[c] = high;
    }
}

void ms_swaplanes_look(ms_swapplan *p)
{
    if (p->n_picked == 0)
        memset(p->lanes->shift_ns, 0,
               (p->profile->n_calls + 1) * sizeof *p->lanes->shift_ns);
    p->steps += p->profile->n_tensors;
    look_high(p);
    look_out(p);
    look_in(p);
}

static uint32_t first_high(const ms_swapplan *p, uint32_t tensor)
{
    return p->lanes->high_next[p->profile->tensors[tensor].out_call + 1];
}

static uint32_t last_high(const ms_swapplan *p, uint32_t tensor)
{
    return p->lanes->high_before[p->need_call[tensor] - 1];
}

ms_swaplanes_fit ms_swaplanes_try(const ms_swapplan *p, uint32_t tensor)
{
    const ms_swaplanes *lanes = p->lanes;
    uint32_t out = p->at_out[tensor], in = p->at_back[tensor];
    uint64_t out_end_ns =
        later(lanes->out_ns[out], used_ns(p, tensor)) + p->out_ns[tensor];
    uint64_t out_by_ns =
        sooner(lanes->out_by_ns[out + 1], begins_ns(p, first_high(p, tensor)));
    uint64_t in_start_ns = less(
        sooner(lanes->in_ns[in + 1], needed_ns(p, tensor)), p->in_ns[tensor]);
    uint64_t in_from_ns =
        later(lanes->in_from_ns[in], ended_ns(p, last_high(p, tensor)));
    return (ms_swaplanes_fit){.free_ns =
                                  (int64_t)in_start_ns - (int64_t)out_end_ns,
                              .late_out_ns = less(out_end_ns, out_by_ns),
                              .late_in_ns = less(in_from_ns, in_start_ns)};
}

/* ---- what comes is later ------------------------------------------------- */

static void shift(ms_swapplan *p, uint32_t call, uint64_t ns)
{
    for (uint32_t c = call; ns > 0 && c <= p->profile->n_calls; c++)
        p->lanes->shift_ns[c] += ns;
}

void ms_swaplanes_move(ms_swapplan *p, uint32_t tensor)
{
    ms_swaplanes_fit fit = ms_swaplanes_try(p, tensor);
    uint32_t call = first_high(p, tensor);
    p->lanes->first_call[tensor] = call;
    p->lanes->last_call[tensor] = last_high(p, tensor);
    shift(p, call, fit.late_out_ns);
    shift(p, p->need_call[tensor], fit.late_in_ns);
}

void ms_swaplanes_remake(ms_swapplan *p, uint32_t tensor, uint64_t ns)
{
    shift(p, p->need_call[tensor], ns);
}
