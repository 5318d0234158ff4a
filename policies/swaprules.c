/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Who leaves when a measured step does not fit its budget, and where to. */
#include "policies/swapplan.h"

/* Copy out, copy in and nothing to wait for: the free time of Capuchin,
 * (back - in) - (out + out); negative: so much is waited. */
static int64_t free_ns(const ms_swapplan *p, uint32_t tensor)
{
    const ms_profile_tensor *t = &p->profile->tensors[tensor];
    return (int64_t)(t->back_ns - t->out_ns) -
           (int64_t)(p->out_ns[tensor] + p->in_ns[tensor]);
}

/* ---- belady: the furthest next use (SwapAdvisor's victim, 4.3) ----------- */

static uint32_t pick_furthest(ms_swapplan *p, uint32_t call, uint8_t *place)
{
    uint32_t best = MS_NONE;
    *place = MS_HOST;
    for (uint32_t i = p->idle_first[call]; i < p->idle_end[call]; i++)
        if (ms_swapplan_idle(p, i, call) &&
            (best == MS_NONE || p->at_back[i] > p->at_back[best]))
            best = i;
    return best;
}

const ms_swapplan_rule ms_swaprules_rule_furthest = {
    .pick = pick_furthest, .in_order = true, .early = true};

/* ---- capuchin (4.4) ------------------------------------------------------ */

static uint32_t most_free(const ms_swapplan *p, uint32_t call)
{
    uint32_t best = MS_NONE;
    for (uint32_t i = p->idle_first[call]; i < p->idle_end[call]; i++)
        if (ms_swapplan_idle(p, i, call) &&
            (best == MS_NONE || free_ns(p, i) > free_ns(p, best)))
            best = i;
    return best;
}

/* The highest MSPS: bytes saved per second of recomputation. */
static uint32_t cheapest_again(ms_swapplan *p, uint32_t call, uint64_t *best_ns)
{
    uint32_t best = MS_NONE;
    double best_rate = 0;
    for (uint32_t i = p->idle_first[call]; i < p->idle_end[call]; i++) {
        if (!ms_swapplan_idle(p, i, call))
            continue;
        uint64_t ns = ms_swapplan_recompute_ns(p, i);
        double rate = (double)p->profile->tensors[i].bytes / ((double)ns + 1);
        if (ns == UINT64_MAX || (best != MS_NONE && rate <= best_rate))
            continue;
        best = i;
        best_rate = rate;
        *best_ns = ns;
    }
    return best;
}

static uint32_t pick_capuchin(ms_swapplan *p, uint32_t call, uint8_t *place)
{
    uint64_t again_ns;
    uint32_t away = most_free(p, call);
    *place = MS_HOST;
    if (away == MS_NONE || free_ns(p, away) >= 0 || !p->recompute)
        return away;
    uint32_t most = cheapest_again(p, call, &again_ns);
    if (most == MS_NONE || -free_ns(p, away) <= (int64_t)again_ns)
        return away;
    *place = MS_GONE;
    return most;
}

/* Recomputes what can be made again, moves the rest. */
static uint32_t pick_again(ms_swapplan *p, uint32_t call, uint8_t *place)
{
    uint64_t again_ns;
    uint32_t most = cheapest_again(p, call, &again_ns);
    *place = most == MS_NONE ? MS_HOST : MS_GONE;
    return most == MS_NONE ? most_free(p, call) : most;
}

const ms_swapplan_rule ms_swaprules_rule_again = {.pick = pick_again,
                                                  .early = true};
const ms_swapplan_rule ms_swaprules_rule_capuchin = {.pick = pick_capuchin};

/* ---- the ways ------------------------------------------------------------ */

ms_err ms_swaprules_open(ms_swap *w, const ms_policy_value *budget,
                         ms_swapplan *plan)
{
    ms_profile *profile = ms_arena_take(w->arena, 1, sizeof *profile);
    if (profile == NULL)
        return ms_fail_nomem(w->fault);
    MS_TRY(ms_profile_run(w->context, w->from,
                          (uint64_t)w->values[MS_SWAP_MIN].number, profile,
                          w->fault));
    MS_TRY(ms_swapplan_open(plan, w, profile,
                            ms_profile_budget(w->context, budget)));
    return ms_swapplan_check(plan);
}

ms_err ms_swaprules_belady(ms_swap *w)
{
    ms_swapplan plan;
    MS_TRY(ms_swaprules_open(w, &w->values[MS_SWAP_BUDGET], &plan));
    MS_TRY(ms_swapplan_make(&plan, &ms_swaprules_rule_furthest, false));
    if (!plan.fits)
        return ms_swapplan_refuse(&plan);
    *w->program = plan.program;
    return MS_OK;
}

ms_err ms_swaprules_capuchin(ms_swap *w)
{
    ms_swapplan plan;
    MS_TRY(ms_swaprules_open(w, &w->values[MS_SWAP_BUDGET], &plan));
    MS_TRY(ms_swapplan_make(&plan, &ms_swaprules_rule_capuchin, true));
    if (!plan.fits)
        MS_TRY(ms_swapplan_make(&plan, &ms_swaprules_rule_capuchin, false));
    if (!plan.fits)
        return ms_swapplan_refuse(&plan);
    MS_TRY(ms_swapplan_refine(&plan));
    *w->program = plan.program;
    return MS_OK;
}
