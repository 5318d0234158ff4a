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
    for (uint32_t k = p->profile->n_tensors; k-- > 0 && best == MS_NONE;)
        if (ms_swapplan_idle(p, p->by_back[k], call))
            best = p->by_back[k];
    return best;
}

static const ms_swapplan_rule furthest = {
    .pick = pick_furthest, .in_order = true, .early = true};

/* ---- capuchin (4.4) ------------------------------------------------------ */

static uint32_t most_free(const ms_swapplan *p, uint32_t call)
{
    uint32_t best = MS_NONE;
    for (uint32_t i = 0; i < p->profile->n_tensors; i++)
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
    for (uint32_t i = 0; i < p->profile->n_tensors; i++) {
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

static const ms_swapplan_rule again = {.pick = pick_again, .early = true};
static const ms_swapplan_rule capuchin = {.pick = pick_capuchin};

/* ---- auto ---------------------------------------------------------------- */

/* What the copies chosen so far, and this one, take beyond the time that there
 * is for them on one side of the call that is too high. */
static int64_t beyond(uint64_t busy_ns, uint64_t copy_ns, uint64_t there_ns)
{
    uint64_t all_ns = busy_ns + copy_ns;
    uint64_t over_ns = all_ns > there_ns ? all_ns - there_ns : 0;
    return (int64_t)(over_ns < copy_ns ? over_ns : copy_ns);
}

/* The time that it adds to move a tensor: the part of its copies that the
 * queues of copies leave exposed. */
static int64_t swap_cost_ns(const ms_swapplan *p, uint32_t tensor,
                            uint32_t call, uint64_t out_busy_ns,
                            uint64_t in_busy_ns)
{
    const ms_profile_tensor *t = &p->profile->tensors[tensor];
    uint64_t at_ns = p->profile->start_ns[call];
    uint64_t before_ns = at_ns > t->out_ns ? at_ns - t->out_ns : 0;
    uint64_t behind_ns = t->back_ns > at_ns ? t->back_ns - at_ns : 0;
    return beyond(out_busy_ns, p->out_ns[tensor],
                  before_ns / 100 * p->rule->percent) +
           beyond(in_busy_ns, p->in_ns[tensor],
                  behind_ns / 100 * p->rule->percent);
}

/* Copies that are in the queues while this tensor would be: out after its last
 * use, in before its next. */
static void find_busy(const ms_swapplan *p, uint32_t tensor,
                      uint64_t *out_busy_ns, uint64_t *in_busy_ns)
{
    const ms_profile_tensor *t = &p->profile->tensors[tensor];
    *out_busy_ns = *in_busy_ns = 0;
    for (uint32_t i = 0; i < p->profile->n_tensors; i++) {
        const ms_profile_tensor *other = &p->profile->tensors[i];
        if (p->choice[i].place != MS_HOST)
            continue;
        if (other->out_ns >= t->out_ns)
            *out_busy_ns += p->out_ns[i];
        if (other->back_ns <= t->back_ns)
            *in_busy_ns += p->in_ns[i];
    }
}

static bool is_cheaper(int64_t ns, uint64_t bytes, int64_t best_ns,
                       uint64_t best_bytes)
{
    double rate = (double)ns / (double)bytes;
    double best = (double)best_ns / (double)best_bytes;
    return rate < best || (rate <= best && bytes > best_bytes);
}

/* The least added time per byte. */
static uint32_t pick_cheapest(ms_swapplan *p, uint32_t call, uint8_t *place)
{
    uint32_t best = MS_NONE;
    int64_t best_ns = 0;
    for (uint32_t i = 0; i < p->profile->n_tensors; i++) {
        uint64_t bytes = p->profile->tensors[i].bytes, out_ns, in_ns;
        if (!ms_swapplan_idle(p, i, call))
            continue;
        find_busy(p, i, &out_ns, &in_ns);
        int64_t ns = swap_cost_ns(p, i, call, out_ns, in_ns);
        uint64_t again_ns =
            p->recompute ? ms_swapplan_recompute_ns(p, i) : UINT64_MAX;
        bool gone = again_ns < (uint64_t)ns;
        ns = gone ? (int64_t)again_ns : ns;
        if (best != MS_NONE &&
            !is_cheaper(ns, bytes, best_ns, p->profile->tensors[best].bytes))
            continue;
        best = i;
        best_ns = ns;
        *place = gone ? MS_GONE : MS_HOST;
    }
    return best;
}

/* How much of that time copies may fill before they are in the way of those
 * that come later: auto tries several. */
#define CHEAPEST(percentage)                                                   \
    {                                                                          \
        .pick = pick_cheapest, .early = true, .percent = (percentage)          \
    }
static const ms_swapplan_rule cheapest[] = {CHEAPEST(100), CHEAPEST(75),
                                            CHEAPEST(50), CHEAPEST(25)};

/* ---- the ways ------------------------------------------------------------ */

static ms_err open_plan(ms_swap *w, const ms_policy_value *budget,
                        ms_swapplan *plan)
{
    ms_profile *profile = ms_arena_take(w->arena, 1, sizeof *profile);
    if (profile == NULL)
        return ms_fail_nomem(w->fault);
    MS_TRY(ms_profile_run(w->context, w->from,
                          (uint64_t)w->values[MS_SWAP_MIN].number, profile,
                          w->fault));
    return ms_swapplan_open(plan, w, profile,
                            ms_profile_budget(w->context, budget));
}

ms_err ms_swaprules_belady(ms_swap *w)
{
    ms_swapplan plan;
    MS_TRY(open_plan(w, &w->values[MS_SWAP_BUDGET], &plan));
    MS_TRY(ms_swapplan_make(&plan, &furthest, false));
    if (!plan.fits)
        return ms_swapplan_refuse(&plan);
    *w->program = plan.program;
    return MS_OK;
}

ms_err ms_swaprules_capuchin(ms_swap *w)
{
    ms_swapplan plan;
    MS_TRY(open_plan(w, &w->values[MS_SWAP_BUDGET], &plan));
    MS_TRY(ms_swapplan_make(&plan, &capuchin, true));
    if (!plan.fits)
        MS_TRY(ms_swapplan_make(&plan, &capuchin, false));
    if (!plan.fits)
        return ms_swapplan_refuse(&plan);
    MS_TRY(ms_swapplan_refine(&plan));
    *w->program = plan.program;
    return MS_OK;
}

/* swap:auto,budget=B or checkpoint:auto,budget=B, not both. */
static ms_err find_budget(const ms_swap *w, const ms_policy_value **budget)
{
    const ms_policy_value *other =
        ms_spec_value(w->context->spec, "checkpoint", "budget");
    *budget = &w->values[MS_SWAP_BUDGET];
    if (other == NULL)
        return MS_OK;
    if ((*budget)->given)
        return ms_fail(w->fault, MS_EUSAGE, "swap:auto", "leave one out",
                       "swap:auto and checkpoint:auto both give a budget");
    *budget = other;
    return MS_OK;
}

/* No rule is best everywhere: each makes its plan, the fastest that fits is
 * taken. */
ms_err ms_swaprules_auto(ms_swap *w)
{
    static const struct {
        const ms_swapplan_rule *rule;
        bool recompute;
    } rules[] = {
        {&furthest, false},   {&capuchin, false},   {&cheapest[0], false},
        {&cheapest[0], true}, {&cheapest[1], true}, {&cheapest[2], true},
        {&cheapest[3], true}, {&again, true},       {&capuchin, true}};
    bool may = ms_spec_value(w->context->spec, "checkpoint", "auto") != NULL;
    const ms_policy_value *budget;
    ms_swapplan plan;
    uint64_t best_ns = UINT64_MAX;
    MS_TRY(find_budget(w, &budget));
    MS_TRY(open_plan(w, budget, &plan));
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
        if (rules[i].recompute && !may)
            continue;
        MS_TRY(ms_swapplan_make(&plan, rules[i].rule, rules[i].recompute));
        if (!plan.fits || plan.step_ns >= best_ns)
            continue;
        best_ns = plan.step_ns;
        *w->program = plan.program;
    }
    return best_ns < UINT64_MAX ? MS_OK : ms_swapplan_refuse(&plan);
}
