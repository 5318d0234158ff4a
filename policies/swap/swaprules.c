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

/* So late at most scores least. */
static int64_t most_ns(double bytes, double least)
{
    return least > bytes * 0x1p-62 ? (int64_t)(bytes / least) : INT64_MAX;
}

/* The bytes moved per nanosecond that is waited. */
static double late_rate(ms_swapplan *p, const ms_swapkinds_node *node,
                        uint32_t like, uint32_t call, double least)
{
    double bytes = (double)p->profile->tensors[like].bytes;
    ms_swaplanes_fit fit =
        ms_swaplanes_try(p, node, like, call, most_ns(bytes, least));
    return bytes / ((double)(fit.late_out_ns + fit.late_in_ns) + 1);
}

/* By the time for which it is away where its copies are hidden; else like
 * those. */
static double move_score(ms_swapplan *p, const ms_swapkinds_node *node,
                         uint32_t like, uint32_t call, double least)
{
    double bytes = (double)p->profile->tensors[like].bytes;
    ms_swaplanes_fit fit =
        ms_swaplanes_try(p, node, like, call, most_ns(bytes, least));
    uint64_t late_ns = fit.late_out_ns + fit.late_in_ns;
    return late_ns > 0 ? bytes / ((double)late_ns + 1)
                       : HIDDEN + (double)fit.free_ns;
}

/* MSPS: bytes saved per second of recomputation.  Of the tensors chosen so far
 * those that would be made from this one have to make it, too (algorithm 2: its
 * ext_time); those that this one would be made from are no longer there (its
 * rp_time). */
static double again_rate(ms_swapplan *p, const ms_swapkinds_node *node,
                         uint32_t like, uint32_t call, double least)
{
    (void)p;
    (void)like;
    (void)call;
    (void)least;
    return node->rate;
}

static uint32_t move(ms_swapplan *p, uint32_t tensor, uint32_t call,
                     uint8_t *place)
{
    *place = MS_HOST;
    if (tensor != MS_NONE)
        ms_swaplanes_move(p, tensor, call);
    return tensor;
}

static uint32_t remake(ms_swapplan *p, uint32_t tensor, uint8_t *place)
{
    *place = MS_GONE;
    ms_swaplanes_remake(p, tensor, p->again->ns[tensor]);
    return tensor;
}

/* Moves what the lanes hide, by free time; then whatever costs less, by bytes
 * per second. */
static uint32_t pick_capuchin(ms_swapplan *p, uint32_t call, uint8_t *place)
{
    ms_swapkinds_best again = {MS_NONE, -INFINITY};
    if (p->recompute)
        again = ms_swapkinds_find(p, call, again_rate, -INFINITY);
    uint32_t moves = ms_swapkinds_find(p, call, move_score, again.score).tensor;
    if (moves == MS_NONE && again.tensor != MS_NONE)
        return remake(p, again.tensor, place);
    return move(p, moves, call, place);
}

/* Recomputes what can be made again, moves the rest. */
static uint32_t pick_again(ms_swapplan *p, uint32_t call, uint8_t *place)
{
    ms_swapkinds_best again = {MS_NONE, -INFINITY};
    if (p->recompute)
        again = ms_swapkinds_find(p, call, again_rate, -INFINITY);
    if (again.tensor != MS_NONE)
        return remake(p, again.tensor, place);
    return move(p, ms_swapkinds_find(p, call, late_rate, -INFINITY).tensor,
                call, place);
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
