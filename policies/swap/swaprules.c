/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Rules that choose which tensor leaves when a measured step does not fit its
 * budget, and where it goes. */
#include "policies/swap/swaplanes.h"
#include "policies/swap/swaprecompute.h"

#include <math.h>

/* ---- belady: the furthest next use (SwapAdvisor's victim, 4.3) ----------- */

const ms_swapplan_rule ms_swaprules_rule_furthest = {.in_order = true,
                                                     .early = true};

/* ---- capuchin (4.4) ------------------------------------------------------ */

/* More than any rate: bytes per nanosecond, of a tensor that fits a device. */
#define HIDDEN 0x1p52

typedef struct pick {
    ms_swapplan *plan;
    uint32_t call;
} pick;

/* A search for plans is bounded as if each pick looked at each tensor. */
static pick begin(ms_swapplan *p, uint32_t call)
{
    p->steps += p->profile->n_tensors;
    return (pick){p, call};
}

/* The bytes moved per nanosecond that is waited. */
static double late_rate(const ms_swapplan *p, uint32_t tensor, uint64_t late_ns)
{
    return (double)p->profile->tensors[tensor].bytes / ((double)late_ns + 1);
}

static double most_late(void *of, const ms_estimates_node *node, uint32_t like)
{
    const ms_swapplan *p = ((const pick *)of)->plan;
    return late_rate(p, like, (uint64_t)ms_swaplanes_least_late(p, node));
}

static double exact_late(void *of, ms_estimates_node *leaf)
{
    const pick *k = of;
    ms_swaplanes_fit fit = ms_swaplanes_try(k->plan, leaf->id, k->call, leaf);
    return late_rate(k->plan, leaf->id, fit.late_out_ns + fit.late_in_ns);
}

/* By the time for which it is away where its copies are hidden; else like
 * those. */
static double move_score(const ms_swapplan *p, uint32_t tensor,
                         uint64_t late_ns, int64_t free_ns)
{
    return late_ns > 0 ? late_rate(p, tensor, late_ns)
                       : HIDDEN + (double)free_ns;
}

static double most_move(void *of, const ms_estimates_node *node, uint32_t like)
{
    const ms_swapplan *p = ((const pick *)of)->plan;
    return move_score(p, like, (uint64_t)ms_swaplanes_least_late(p, node),
                      ms_swaplanes_most_free(p, node));
}

static double exact_move(void *of, ms_estimates_node *leaf)
{
    const pick *k = of;
    ms_swaplanes_fit fit = ms_swaplanes_try(k->plan, leaf->id, k->call, leaf);
    return move_score(k->plan, leaf->id, fit.late_out_ns + fit.late_in_ns,
                      fit.free_ns);
}

/* MSPS: bytes saved per second of recomputation.  Of the tensors chosen so far
 * those that would be made from this one have to make it, too (algorithm 2: its
 * ext_time); those that this one would be made from are no longer there (its
 * rp_time). */
static double again_rate(void *of, const ms_estimates_node *node, uint32_t like)
{
    (void)of;
    (void)like;
    return node->rate;
}

static ms_estimates_best find_again(const pick *k)
{
    static const ms_estimates_way way = {.most = again_rate};
    if (!k->plan->recompute)
        return (ms_estimates_best){MS_NONE, -INFINITY};
    return ms_estimates_find(&k->plan->lanes->estimates, k->call, &way,
                             -INFINITY);
}

static uint32_t move(const pick *k, ms_estimates_way way, double least,
                     uint8_t *place)
{
    uint32_t tensor =
        ms_estimates_find(&k->plan->lanes->estimates, k->call, &way, least)
            .tensor;
    *place = MS_HOST;
    if (tensor != MS_NONE)
        ms_swaplanes_move(k->plan, tensor, k->call);
    return tensor;
}

static uint32_t remake(const pick *k, uint32_t tensor, uint8_t *place)
{
    *place = MS_GONE;
    ms_swaplanes_remake(k->plan, tensor, k->plan->again->ns[tensor]);
    return tensor;
}

/* Moves what the lanes hide, by free time; then whatever costs less, by bytes
 * per second. */
static uint32_t pick_capuchin(ms_swapplan *p, uint32_t call, uint8_t *place)
{
    pick k = begin(p, call);
    ms_estimates_best again = find_again(&k);
    ms_estimates_way way = {most_move, exact_move, &k};
    uint32_t tensor = move(&k, way, again.score, place);
    if (tensor == MS_NONE && again.tensor != MS_NONE)
        return remake(&k, again.tensor, place);
    return tensor;
}

/* Recomputes what can be made again, moves the rest. */
static uint32_t pick_again(ms_swapplan *p, uint32_t call, uint8_t *place)
{
    pick k = begin(p, call);
    ms_estimates_best again = find_again(&k);
    ms_estimates_way way = {most_late, exact_late, &k};
    if (again.tensor != MS_NONE)
        return remake(&k, again.tensor, place);
    return move(&k, way, -INFINITY, place);
}

const ms_swapplan_rule ms_swaprules_rule_again = {
    .pick = pick_again, .early = true, .lanes = true};
const ms_swapplan_rule ms_swaprules_rule_capuchin = {.pick = pick_capuchin,
                                                     .lanes = true};

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
