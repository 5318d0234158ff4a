/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_POLICIES_SWAPPLAN_H
#define MS_POLICIES_SWAPPLAN_H

/* Private to the ways to swap that work to a budget: which tensors of a
 * measured step are away, and between which calls.  Memory is booked in the
 * order of the calls, so that the level of a plan without recomputation is
 * known exactly; only its time is not.
 *
 *     call             1      2      3      4      5      6      7
 *     tensor a         out           free                 in     back
 *     copies             [ d2h ]                          [h2d]
 *     level_bytes      + a    + a                         + a    + a
 *
 * out: the last use before the gap; free: the compute stream waits for the
 * copy and the memory goes; in: the copy back is issued; back: the next use. */

#include "policies/common/levels.h"
#include "policies/common/profile.h"
#include "policies/swap/swap.h"
#include "sim/program.h"

typedef struct ms_swapplan_choice {
    uint8_t place; /* MS_HERE, MS_HOST, MS_GONE */
    uint32_t free_call, in_call;
    uint64_t lead_ns; /* the copy in shall end so much early */
} ms_swapplan_choice;

typedef struct ms_swapplan ms_swapplan;

/* Which of the tensors that are idle all through a call goes first, and where
 * to, MS_HOST (unless it says otherwise) or MS_GONE; MS_NONE: none is left. */
typedef uint32_t (*ms_swapplan_pick)(ms_swapplan *plan, uint32_t call,
                                     uint8_t *place);

typedef struct ms_swapplan_rule {
    /* NULL: in order, what is needed last. */
    ms_swapplan_pick pick;
    bool in_order;    /* picks for the first call above the budget, not for the
                         highest */
    bool early;       /* copies in as early as room allows, not in time */
    bool lanes;       /* the pick asks lanes and (with recompute) again */
    uint32_t percent; /* pick's own */
} ms_swapplan_rule;

struct ms_swapplan {
    ms_swap *swap;
    const ms_profile *profile;
    const ms_swapplan_rule *rule;
    bool recompute;
    uint64_t budget_bytes, target_bytes;
    ms_swapplan_choice *choice; /* per tensor of the profile */
    ms_levels *levels;          /* of the calls */
    uint64_t *out_ns, *in_ns;   /* per tensor: its copies */
    uint32_t *by_out, *by_back; /* the tensors in these orders, */
    uint32_t *at_out, *at_back; /* and where in them each is */
    uint8_t *gone;              /* per storage */
    /* Per tensor: the call that needs it, its next use or that of a tensor
     * which is made again from it (or through it: what one recomputation makes
     * is kept for all later uses); by_back is in this order. */
    uint32_t *need_call;
    uint64_t *need_ns;
    uint32_t *by_use; /* by_back as it was when nothing was picked */
    struct ms_swaplanes *lanes;
    struct ms_swaprecompute *again;
    uint32_t n_picked; /* so far; the how-manieth each was: */
    uint32_t *rank;    /* per tensor; MS_NONE: not picked */
    /* swapauto.c: the picks' own; per call, all tensors that are idle there are
     * from idle_first to before idle_end. */
    uint32_t *idle_first, *idle_end;
    uint32_t *wanted_rank;
    uint8_t *wanted_place;
    /* For a rule with percent, in these orders, copies chosen so far that are
     * in the queues while this tensor's would be: out after its last use, in
     * before its next. */
    uint64_t *out_busy_ns, *in_busy_ns;
    uint32_t *stamp, tick; /* per graph op: seen in this search */
    uint32_t *work;
    ms_arena *programs; /* where they are written; first the swap's */
    ms_arena *scratch;  /* where they are measured; NULL: each in its own */
    /* What was looked at so far, tensors, calls and ops, about two
     * nanoseconds each; beyond most_steps no plan is made. */
    uint64_t steps, most_steps;
    /* What it came to. */
    ms_program program;
    bool fits;
    uint64_t peak_bytes, step_ns;
};

static inline bool ms_swapplan_idle(const ms_swapplan *plan, uint32_t tensor,
                                    uint32_t call)
{
    const ms_profile_tensor *t = &plan->profile->tensors[tensor];
    return plan->choice[tensor].place == MS_HERE && t->out_call < call &&
           call < plan->need_call[tensor];
}

/* In the calls from first to before end so many bytes are away, or there. */
static inline void ms_swapplan_add(ms_swapplan *plan, uint32_t first,
                                   uint32_t end, uint64_t bytes, bool away)
{
    ms_levels_add(plan->levels, first, end,
                  away ? -(int64_t)bytes : (int64_t)bytes);
}

ms_err ms_swapplan_open(ms_swapplan *plan, ms_swap *swap,
                        const ms_profile *profile, uint64_t budget_bytes);
/* Plans, writes and measures; recompute: GONE is a place, too.  fits: false
 * where the rule finds no plan in the budget, or not in so many steps; moving
 * alone always does where there is one and steps are left. */
ms_err ms_swapplan_make(ms_swapplan *plan, const ms_swapplan_rule *rule,
                        bool recompute);
/* MS_EINFEASIBLE, with the least budget that moving can work to, where this
 * plan's is less. */
ms_err ms_swapplan_check(const ms_swapplan *plan);
/* MS_EINFEASIBLE where that is not what is missing: booked by device time a
 * copy takes memory until it has ended. */
ms_err ms_swapplan_refuse(const ms_swapplan *plan);
/* Moves the copies in whose tensors were waited for 5 % of their time earlier
 * and keeps what is faster (Capuchin's feedback). */
ms_err ms_swapplan_refine(ms_swapplan *plan);

/* swaprules.c: the rules: the tensor that is away longest; Capuchin's; whatever
 * can be made again. */
extern const ms_swapplan_rule ms_swaprules_rule_furthest;
extern const ms_swapplan_rule ms_swaprules_rule_capuchin;
extern const ms_swapplan_rule ms_swaprules_rule_again;
/* swapauto.c: the way, and the steps that it took.  They are bounded: a plan
 * is sought for as long as there is none, and a better one until so many have
 * been taken in all (about a second; GPT-2's searches end by themselves). */
#define MS_SWAPAUTO_STEPS UINT64_C(500000000)
ms_err ms_swapauto_search(ms_swap *swap, uint64_t *steps);

/* Measures the program and opens a plan for it.  Faults: MS_EINFEASIBLE. */
ms_err ms_swaprules_open(ms_swap *swap, const ms_policy_value *budget,
                         ms_swapplan *plan);

#endif
