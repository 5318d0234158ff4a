/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Rules that choose which tensor leaves when a measured step does not fit its
 * budget, and where it goes. */
#include "policies/swap/swaplanes.h"
#include "policies/swap/swaprecompute.h"

#include <string.h>

/* ---- belady: the furthest next use (SwapAdvisor's victim, 4.3) ----------- */

const ms_swapplan_rule ms_swaprules_rule_furthest = {.in_order = true,
                                                     .early = true};

/* ---- capuchin (4.4) ------------------------------------------------------ */

typedef struct found {
    uint32_t tensor; /* MS_NONE: there is none */
    uint64_t ns;     /* that it adds */
    double rate;     /* bytes saved per nanosecond */
} found;

/* The tensor that is away longest, of those whose copies are hidden. */
static uint32_t most_free(const ms_swapplan *p, uint32_t call)
{
    uint32_t best = MS_NONE;
    int64_t best_ns = 0;
    for (uint32_t i = p->idle_first[call]; i < p->idle_end[call]; i++) {
        if (!ms_swapplan_idle(p, i, call))
            continue;
        ms_swaplanes_fit fit = ms_swaplanes_try(p, i);
        if (fit.late_out_ns + fit.late_in_ns > 0 ||
            (best != MS_NONE && fit.free_ns <= best_ns))
            continue;
        best = i;
        best_ns = fit.free_ns;
    }
    return best;
}

static bool is_better(const ms_swapplan *p, uint32_t tensor, uint64_t ns,
                      found *best)
{
    double rate = (double)p->profile->tensors[tensor].bytes / ((double)ns + 1);
    if (best->tensor != MS_NONE && rate <= best->rate)
        return false;
    *best = (found){tensor, ns, rate};
    return true;
}

/* The most bytes moved per nanosecond that is waited. */
static found least_late(const ms_swapplan *p, uint32_t call)
{
    found best = {.tensor = MS_NONE};
    for (uint32_t i = p->idle_first[call]; i < p->idle_end[call]; i++) {
        if (!ms_swapplan_idle(p, i, call))
            continue;
        ms_swaplanes_fit fit = ms_swaplanes_try(p, i);
        is_better(p, i, fit.late_out_ns + fit.late_in_ns, &best);
    }
    return best;
}

/* How many of those that are made again are made from each tensor. */
static void count_readers(ms_swapplan *p, uint32_t *readers)
{
    memset(readers, 0, p->profile->n_tensors * sizeof *readers);
    for (uint32_t i = 0; i < p->profile->n_tensors; i++)
        if (p->choice[i].place == MS_GONE)
            ms_swaprecompute_ns(p, i, readers);
}

/* The highest MSPS: bytes saved per second of recomputation.  Of the tensors
 * chosen so far those that would be made from this one have to make it, too
 * (algorithm 2: its ext_time); those that this one would be made from are no
 * longer there (its rp_time). */
static found cheapest_again(ms_swapplan *p, uint32_t call)
{
    found best = {.tensor = MS_NONE};
    count_readers(p, p->lanes->readers);
    for (uint32_t i = p->idle_first[call]; i < p->idle_end[call]; i++) {
        if (!ms_swapplan_idle(p, i, call))
            continue;
        uint64_t ns = ms_swaprecompute_ns(p, i, NULL);
        if (ns != UINT64_MAX &&
            is_better(p, i, ns * (1 + p->lanes->readers[i]), &best))
            best.ns = ns;
    }
    return best;
}

static uint32_t move(ms_swapplan *p, uint32_t tensor, uint8_t *place)
{
    *place = MS_HOST;
    if (tensor != MS_NONE)
        ms_swaplanes_move(p, tensor);
    return tensor;
}

static uint32_t remake(ms_swapplan *p, const found *again, uint8_t *place)
{
    *place = MS_GONE;
    ms_swaplanes_remake(p, again->tensor, again->ns);
    return again->tensor;
}

/* Moves what the lanes hide, by free time; then whatever costs less, by bytes
 * per second. */
static uint32_t pick_capuchin(ms_swapplan *p, uint32_t call, uint8_t *place)
{
    ms_swaplanes_look(p);
    uint32_t hidden = most_free(p, call);
    if (hidden != MS_NONE)
        return move(p, hidden, place);
    found late = least_late(p, call);
    found again = {.tensor = MS_NONE};
    if (p->recompute)
        again = cheapest_again(p, call);
    if (again.tensor != MS_NONE && again.rate > late.rate)
        return remake(p, &again, place);
    return move(p, late.tensor, place);
}

/* Recomputes what can be made again, moves the rest. */
static uint32_t pick_again(ms_swapplan *p, uint32_t call, uint8_t *place)
{
    ms_swaplanes_look(p);
    found again = cheapest_again(p, call);
    if (again.tensor != MS_NONE)
        return remake(p, &again, place);
    return move(p, least_late(p, call).tensor, place);
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
