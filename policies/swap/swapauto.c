/* SPDX-License-Identifier: GPL-3.0-or-later */
/* swap:auto: per tensor keep, swap or recompute, for the least time in the
 * budget.  Several rules make their plans; the fastest is then changed tensor
 * by tensor for as long as that makes it faster. */
#include "policies/swap/swaprecompute.h"
#include "policies/swap/swapwrite.h"

#include <string.h>

/* ---- who is idle --------------------------------------------------------- */

/* The first call from this one on that is not marked; marks are jumps. */
static uint32_t unmarked(uint32_t *jump, uint32_t call)
{
    while (jump[call] != call) {
        jump[call] = jump[jump[call]];
        call = jump[call];
    }
    return call;
}

/* Gives each call, once, the first tensor of an order that is idle there. */
static void mark_idle(const ms_profile_tensor *t, uint32_t id, uint32_t *jump,
                      uint32_t *of_call)
{
    uint32_t c = unmarked(jump, t->out_call + 1);
    for (; c < t->back_call; c = unmarked(jump, c)) {
        of_call[c] = id;
        jump[c] = c + 1;
    }
}

/* Narrows the tensors that a rule looks at for a call to those between the
 * first and the last that are idle there. */
static ms_err find_idle(ms_swapplan *p)
{
    const ms_profile *profile = p->profile;
    uint32_t n = profile->n_tensors, calls = profile->n_calls;
    ms_arena *arena = p->swap->arena;
    uint32_t *jump =
        ms_arena_take_raw(arena, 2 * ((size_t)calls + 2), sizeof *jump);
    p->idle_first = ms_arena_take(arena, calls, sizeof *p->idle_first);
    p->idle_end = ms_arena_take(arena, calls, sizeof *p->idle_end);
    if (jump == NULL || p->idle_first == NULL || p->idle_end == NULL)
        return ms_fail_nomem(p->swap->fault);
    uint32_t *back = jump + calls + 2;
    for (uint32_t c = 0; c < calls + 2; c++)
        jump[c] = back[c] = c;
    for (uint32_t i = 0; i < n; i++)
        mark_idle(&profile->tensors[i], i, jump, p->idle_first);
    for (uint32_t i = n; i-- > 0;)
        mark_idle(&profile->tensors[i], i + 1, back, p->idle_end);
    return MS_OK;
}

/* ---- the least added time first ------------------------------------------ */

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
                            uint32_t call)
{
    const ms_profile_tensor *t = &p->profile->tensors[tensor];
    uint64_t at_ns = p->profile->start_ns[call];
    uint64_t before_ns = at_ns > t->out_ns ? at_ns - t->out_ns : 0;
    uint64_t need_ns = p->need_ns[tensor];
    uint64_t behind_ns = need_ns > at_ns ? need_ns - at_ns : 0;
    return beyond(p->out_busy_ns[p->at_out[tensor]], p->out_ns[tensor],
                  before_ns / 100 * p->rule->percent) +
           beyond(p->in_busy_ns[p->at_back[tensor]], p->in_ns[tensor],
                  behind_ns / 100 * p->rule->percent);
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
    for (uint32_t i = p->idle_first[call]; i < p->idle_end[call]; i++) {
        uint64_t bytes = p->profile->tensors[i].bytes;
        if (!ms_swapplan_idle(p, i, call))
            continue;
        int64_t ns = swap_cost_ns(p, i, call);
        uint64_t again_ns =
            p->recompute ? ms_swaprecompute_ns(p, i) : UINT64_MAX;
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

/* ---- from a plan to a better one ----------------------------------------- */

typedef struct search {
    ms_swapplan plan;
    bool recompute;
    /* trial, kept: programs, of the last plan and of the best. */
    ms_arena trial, kept, scratch;
    /* The best plan: its program, and which tensors were picked, in which order
     * and for which place. */
    ms_program program;
    uint64_t step_ns;
    uint32_t *rank;
    uint8_t *place;
} search;

/* Picks in the order of the search's ranks, then the tensor that adds the least
 * waiting. */
static uint32_t pick_ranked(ms_swapplan *p, uint32_t call, uint8_t *place)
{
    const uint32_t *rank = p->wanted_rank;
    uint32_t best = MS_NONE, least = MS_NONE;
    for (uint32_t i = p->idle_first[call]; i < p->idle_end[call]; i++)
        if (rank[i] < least && ms_swapplan_idle(p, i, call)) {
            best = i;
            least = rank[i];
        }
    if (best == MS_NONE)
        return pick_cheapest(p, call, place);
    *place = p->wanted_place[best];
    return best;
}

static const ms_swapplan_rule ranked[] = {
    {.pick = pick_ranked, .early = true, .percent = 100},
    {.pick = pick_ranked, .percent = 100}};

/* A tensor that was picked to leave, and then need not, is HERE; to pick it for
 * HERE would free nothing. */
static uint8_t place_picked(const ms_swapplan *p, uint32_t tensor)
{
    uint8_t place = p->choice[tensor].place;
    return place == MS_HERE && p->rank[tensor] != MS_NONE ? MS_HOST : place;
}

/* The plan is the best so far.  From the first that fits on steps are bounded.
 */
static void remember(search *s)
{
    ms_swapplan *p = &s->plan;
    ms_arena programs = s->trial;
    s->trial = s->kept;
    s->kept = programs;
    p->most_steps = MS_SWAPAUTO_STEPS;
    s->step_ns = p->step_ns;
    s->program = p->program;
    memcpy(s->rank, p->rank, p->profile->n_tensors * sizeof *s->rank);
    for (uint32_t i = 0; i < p->profile->n_tensors; i++)
        s->place[i] = place_picked(p, i);
}

static ms_err try_rule(search *s, const ms_swapplan_rule *rule, bool recompute)
{
    ms_arena_reset(&s->trial);
    MS_TRY(ms_swapplan_make(&s->plan, rule, recompute));
    if (s->plan.fits && s->plan.step_ns < s->step_ns)
        remember(s);
    return MS_OK;
}

static bool is_over(const search *s)
{
    return s->plan.steps > s->plan.most_steps;
}

/* The best plan with one tensor at another place: first of all, or (HERE) as
 * late as it comes. */
static ms_err try_place(search *s, uint32_t tensor, uint8_t place)
{
    ms_swapplan *p = &s->plan;
    uint32_t n = p->profile->n_tensors;
    for (size_t r = 0; r < sizeof ranked / sizeof *ranked && !is_over(s); r++) {
        for (uint32_t i = 0; i < n; i++) {
            p->wanted_rank[i] =
                s->rank[i] == MS_NONE ? MS_NONE : s->rank[i] + 1;
            p->wanted_place[i] = s->place[i];
        }
        p->wanted_rank[tensor] = place == MS_HERE ? MS_NONE : 0;
        p->wanted_place[tensor] = place;
        MS_TRY(try_rule(s, &ranked[r], s->recompute));
    }
    return MS_OK;
}

static ms_err improve(search *s)
{
    static const uint8_t places[] = {MS_HOST, MS_GONE, MS_HERE};
    uint64_t before_ns;
    do {
        before_ns = s->step_ns;
        for (uint32_t i = 0; i < s->plan.profile->n_tensors; i++)
            for (size_t k = 0; k < sizeof places; k++)
                if (places[k] != s->place[i] &&
                    (places[k] != MS_GONE || s->recompute))
                    MS_TRY(try_place(s, i, places[k]));
    } while (s->step_ns < before_ns && !is_over(s));
    return MS_OK;
}

/* ---- the way ------------------------------------------------------------- */

/* swap:auto,budget=B or checkpoint:auto,budget=B, not both. */
static ms_err find_budget(const ms_swap *w, const ms_policy_value **budget)
{
    const ms_policy_value *other =
        ms_policy_given(w->context->spec, "checkpoint", "budget");
    *budget = &w->values[MS_SWAP_BUDGET];
    if (other == NULL)
        return MS_OK;
    if ((*budget)->given)
        return ms_fail(w->fault, MS_EUSAGE, "swap:auto", "leave one out",
                       "swap:auto and checkpoint:auto both give a budget");
    *budget = other;
    return MS_OK;
}

static ms_err take_columns(ms_swap *w, search *s)
{
    ms_swapplan *p = &s->plan;
    size_t n = p->profile->n_tensors;
    s->rank = ms_arena_take_raw(w->arena, n, sizeof *s->rank);
    s->place = ms_arena_take(w->arena, n, 1);
    p->wanted_rank = ms_arena_take_raw(w->arena, n, sizeof *p->wanted_rank);
    p->wanted_place = ms_arena_take(w->arena, n, 1);
    return s->rank == NULL || s->place == NULL || p->wanted_rank == NULL ||
                   p->wanted_place == NULL
               ? ms_fail_nomem(w->fault)
               : find_idle(p);
}

/* None is faster than the step that the plan is for. */
static bool is_done(const search *s)
{
    return s->step_ns <= s->plan.profile->step_ns || is_over(s);
}

/* No rule is best everywhere. */
static ms_err try_rules(search *s)
{
    static const struct {
        const ms_swapplan_rule *rule;
        bool recompute;
    } rules[] = {{&ms_swaprules_rule_furthest, false},
                 {&ms_swaprules_rule_capuchin, false},
                 {&cheapest[0], false},
                 {&cheapest[0], true},
                 {&cheapest[1], true},
                 {&cheapest[2], true},
                 {&cheapest[3], true},
                 {&ms_swaprules_rule_again, true},
                 {&ms_swaprules_rule_capuchin, true}};
    for (size_t i = 0; i < sizeof rules / sizeof *rules && !is_done(s); i++)
        if (s->recompute || !rules[i].recompute)
            MS_TRY(try_rule(s, rules[i].rule, rules[i].recompute));
    return MS_OK;
}

static ms_err find_best(ms_swap *w, search *s)
{
    const ms_policy_value *budget;
    MS_TRY(find_budget(w, &budget));
    MS_TRY(ms_swaprules_open(w, budget, &s->plan));
    MS_TRY(take_columns(w, s));
    s->plan.programs = &s->trial;
    s->plan.scratch = &s->scratch;
    MS_TRY(try_rules(s));
    if (s->step_ns == UINT64_MAX)
        return ms_swapplan_refuse(&s->plan);
    if (!is_done(s))
        MS_TRY(improve(s));
    return ms_swapwrite_copy(&s->program, w->arena, w->program, w->fault);
}

ms_err ms_swapauto_search(ms_swap *w, uint64_t *steps)
{
    uint64_t limit_bytes = w->arena->limit_bytes;
    search s = {.step_ns = UINT64_MAX,
                .recompute = ms_policy_given(w->context->spec, "checkpoint",
                                             "auto") != NULL,
                .trial = {.limit_bytes = limit_bytes},
                .kept = {.limit_bytes = limit_bytes}};
    ms_err err = find_best(w, &s);
    *steps = s.plan.steps;
    ms_arena_free(&s.trial);
    ms_arena_free(&s.kept);
    ms_arena_free(&s.scratch);
    return err;
}

ms_err ms_swapauto_write(ms_swap *w)
{
    uint64_t steps;
    return ms_swapauto_search(w, &steps);
}
