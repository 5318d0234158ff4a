/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "policies/common/least.h"
#include "policies/swap/swaplanes.h"
#include "policies/swap/swaprecompute.h"
#include "policies/swap/swapwrite.h"
#include "sim/base/size.h"
#include "sim/graph.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A plan that recomputes has to be measured, because the inputs of what is made
 * again are there for a while.  So many times the target is lowered by the
 * excess that was measured. */
#define TRIES 16u

/* To write, expand and replay one op of a step, in steps. */
#define OP_STEPS 100u

/* ---- columns ------------------------------------------------------------- */

typedef struct place_in_order {
    uint64_t key_ns;
    uint32_t tensor;
} place_in_order;

static int by_key(const void *a, const void *b)
{
    const place_in_order *x = a, *y = b;
    if (x->key_ns != y->key_ns)
        return x->key_ns < y->key_ns ? -1 : 1;
    return (x->tensor > y->tensor) - (x->tensor < y->tensor);
}

static ms_err sort_tensors(const ms_swapplan *p, bool by_back, uint32_t *order,
                           uint32_t *at)
{
    uint32_t n = p->profile->n_tensors;
    place_in_order *list = ms_arena_take_raw(p->swap->arena, n, sizeof *list);
    if (list == NULL)
        return ms_fail_nomem(p->swap->fault);
    for (uint32_t i = 0; i < n; i++) {
        const ms_profile_tensor *t = &p->profile->tensors[i];
        list[i] = (place_in_order){by_back ? t->back_ns : t->out_ns, i};
    }
    qsort(list, n, sizeof *list, by_key);
    for (uint32_t i = 0; i < n; i++) {
        order[i] = list[i].tensor;
        at[list[i].tensor] = i;
    }
    return MS_OK;
}

static ms_err take_orders(ms_swapplan *p)
{
    ms_arena *arena = p->swap->arena;
    size_t n = p->profile->n_tensors;
    size_t size = sizeof(uint32_t);
    p->by_out = ms_arena_take_raw(arena, n, size);
    p->by_back = ms_arena_take_raw(arena, n, size);
    p->by_use = ms_arena_take_raw(arena, n, size);
    p->at_out = ms_arena_take_raw(arena, n, size);
    p->at_back = ms_arena_take_raw(arena, n, size);
    p->out_busy_ns = ms_arena_take(arena, n, sizeof *p->out_busy_ns);
    p->in_busy_ns = ms_arena_take(arena, n, sizeof *p->in_busy_ns);
    if (p->by_out == NULL || p->by_back == NULL || p->by_use == NULL ||
        p->at_out == NULL || p->at_back == NULL || p->out_busy_ns == NULL ||
        p->in_busy_ns == NULL)
        return ms_fail_nomem(p->swap->fault);
    return MS_OK;
}

static ms_err take_columns(ms_swapplan *p)
{
    ms_arena *arena = p->swap->arena;
    const ms_graph *graph = p->swap->context->graph;
    size_t n = p->profile->n_tensors, size = sizeof(uint32_t);
    p->choice = ms_arena_take(arena, n, sizeof *p->choice);
    p->out_ns = ms_arena_take(arena, n, sizeof *p->out_ns);
    p->in_ns = ms_arena_take(arena, n, sizeof *p->in_ns);
    p->rank = ms_arena_take_raw(arena, n, size);
    p->levels = ms_arena_take(arena, 1, sizeof *p->levels);
    p->gone = ms_arena_take(arena, graph->n_storages, 1);
    p->stamp = ms_arena_take(arena, graph->n_ops, size);
    p->work = ms_arena_take_raw(arena, graph->n_ops, size);
    p->need_call = ms_arena_take_raw(arena, n, size);
    p->need_ns = ms_arena_take_raw(arena, n, sizeof *p->need_ns);
    if (p->choice == NULL || p->out_ns == NULL || p->in_ns == NULL ||
        p->levels == NULL || p->gone == NULL || p->rank == NULL ||
        p->stamp == NULL || p->work == NULL || p->need_call == NULL ||
        p->need_ns == NULL)
        return ms_fail_nomem(p->swap->fault);
    return MS_OK;
}

ms_err ms_swapplan_open(ms_swapplan *p, ms_swap *swap,
                        const ms_profile *profile, uint64_t budget_bytes)
{
    *p = (ms_swapplan){.swap = swap,
                       .profile = profile,
                       .budget_bytes = budget_bytes,
                       .programs = swap->arena,
                       .most_steps = UINT64_MAX};
    MS_TRY(take_columns(p));
    MS_TRY(take_orders(p));
    MS_TRY(sort_tensors(p, false, p->by_out, p->at_out));
    MS_TRY(sort_tensors(p, true, p->by_back, p->at_back));
    memcpy(p->by_use, p->by_back, profile->n_tensors * sizeof *p->by_use);
    MS_TRY(ms_levels_open(p->levels, profile->level_bytes, profile->n_calls,
                          swap->arena, swap->fault));
    for (uint32_t i = 0; i < profile->n_tensors; i++) {
        uint64_t bytes = profile->tensors[i].bytes;
        p->out_ns[i] = ms_swapdisk_copy_ns(swap, bytes, false);
        p->in_ns[i] = ms_swapdisk_copy_ns(swap, bytes, true);
    }
    for (uint32_t c = 0; c < profile->n_calls; c++) /* searches rely on it */
        assert(profile->start_ns[c] <= profile->start_ns[c + 1]);
    return MS_OK;
}

/* ---- choices ------------------------------------------------------------- */

static void add_busy(ms_swapplan *p, uint32_t tensor)
{
    uint64_t out_ns = p->out_ns[tensor], in_ns = p->in_ns[tensor];
    for (uint32_t k = 0; k <= p->at_out[tensor]; k++)
        p->out_busy_ns[k] += out_ns;
    for (uint32_t k = p->at_back[tensor]; k < p->profile->n_tensors; k++)
        p->in_busy_ns[k] += in_ns;
}

static void choose(ms_swapplan *p, uint32_t tensor, uint8_t place)
{
    const ms_profile_tensor *t = &p->profile->tensors[tensor];
    ms_swapplan_choice *choice = &p->choice[tensor];
    choice->place = place;
    choice->free_call = t->out_call + 1;
    choice->in_call = p->need_call[tensor];
    p->rank[tensor] = p->n_picked++;
    ms_swapplan_add(p, choice->free_call, choice->in_call, t->bytes, true);
    if (place == MS_HOST && p->rule->percent > 0)
        add_busy(p, tensor);
    if (place != MS_GONE)
        return;
    p->gone[t->storage] = 1;
    ms_swaprecompute_need(p, tensor);
}

/* The first call at which the level is highest, if it is too high there, or,
 * for a rule that works in order, at which it is; n_calls: nowhere. */
static uint32_t too_high(const ms_swapplan *p)
{
    uint32_t n = p->profile->n_calls;
    int64_t bytes, target_bytes = (int64_t)p->target_bytes;
    uint32_t call = ms_levels_highest(p->levels, &bytes);
    if (bytes <= target_bytes)
        return n;
    return p->rule->in_order ? ms_levels_above(p->levels, 0, n, target_bytes)
                             : call;
}

/* The least peak that moving alone can reach: every tensor is away between its
 * two uses. */
static ms_err find_least(const ms_swapplan *p, uint64_t *least)
{
    uint32_t n = p->profile->n_calls;
    uint64_t away = 0;
    uint64_t *leaves =
        ms_arena_take(p->swap->arena, (size_t)n + 1, 2 * sizeof *leaves);
    if (leaves == NULL)
        return ms_fail_nomem(p->swap->fault);
    uint64_t *returns = leaves + n + 1;
    *least = 0;
    for (uint32_t i = 0; i < p->profile->n_tensors; i++) {
        const ms_profile_tensor *t = &p->profile->tensors[i];
        leaves[t->out_call + 1] += t->bytes;
        returns[t->back_call] += t->bytes;
    }
    for (uint32_t c = 0; c < n; c++) {
        away += leaves[c] - returns[c];
        uint64_t level = p->profile->level_bytes[c] - away;
        *least = level > *least ? level : *least;
    }
    return MS_OK;
}

/* A level at which there is still room for so many bytes. */
static int64_t room_for(const ms_swapplan *p, uint64_t bytes)
{
    return (int64_t)p->target_bytes - (int64_t)bytes;
}

/* From this call on the first that begins at a time or after it. */
static uint32_t find_start(const ms_swapplan *p, uint32_t call, uint64_t ns)
{
    uint32_t low = call, high = p->profile->n_calls + 1;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (p->profile->start_ns[middle] < ns)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Where there is room, a tensor that leaves stays until its copy is expected to
 * have ended, so that nothing waits for the copy. */
static void delay_frees(ms_swapplan *p)
{
    uint64_t free_ns = 0;
    for (uint32_t k = 0; k < p->profile->n_tensors; k++) {
        uint32_t i = p->by_out[k];
        const ms_profile_tensor *t = &p->profile->tensors[i];
        ms_swapplan_choice *choice = &p->choice[i];
        if (choice->place != MS_HOST)
            continue;
        uint64_t begin_ns = t->out_ns > free_ns ? t->out_ns : free_ns;
        free_ns = begin_ns + p->out_ns[i];
        uint32_t first = choice->free_call;
        uint32_t end = find_start(p, first, free_ns);
        end = end < choice->in_call ? end : choice->in_call;
        choice->free_call =
            ms_levels_above(p->levels, first, end, room_for(p, t->bytes));
        ms_swapplan_add(p, first, choice->free_call, t->bytes, false);
        if (choice->free_call == choice->in_call)
            choice->place = MS_HERE; /* it need not leave at all */
    }
}

/* It comes back as early as room allows, but not before a call. */
static void bring(ms_swapplan *p, uint32_t tensor, uint32_t call)
{
    uint64_t bytes = p->profile->tensors[tensor].bytes;
    ms_swapplan_choice *choice = &p->choice[tensor];
    uint32_t first = choice->free_call + 1, end = choice->in_call;
    first = first > call ? first : call;
    if (end <= first)
        return;
    choice->in_call =
        ms_levels_behind(p->levels, first, end, room_for(p, bytes));
    ms_swapplan_add(p, choice->in_call, end, bytes, false);
}

/* The tensor that is needed soonest comes first: the copies are a queue. */
static void bring_early(ms_swapplan *p)
{
    uint32_t before = 0;
    for (uint32_t k = 0; k < p->profile->n_tensors; k++) {
        uint32_t i = p->by_back[k];
        if (p->choice[i].place != MS_HOST)
            continue;
        bring(p, i, before);
        before = p->choice[i].in_call;
    }
}

/* Latest needed first: each copy ends when the one behind it begins, or when
 * its tensor is needed (in-triggers of Capuchin, section 4.4). */
static void bring_in_time(ms_swapplan *p)
{
    uint64_t next_ns = UINT64_MAX;
    for (uint32_t k = p->profile->n_tensors; k-- > 0;) {
        uint32_t i = p->by_back[k];
        ms_swapplan_choice *choice = &p->choice[i];
        if (choice->place != MS_HOST)
            continue;
        uint64_t need_ns = p->need_ns[i];
        uint64_t end_ns = need_ns < next_ns ? need_ns : next_ns;
        uint64_t all_ns = p->in_ns[i] + choice->lead_ns;
        next_ns = end_ns > all_ns ? end_ns - all_ns : 0;
        uint32_t call = find_start(p, 0, next_ns + 1);
        call = call < choice->in_call + 1 ? call : choice->in_call + 1;
        bring(p, i, call > 0 ? call - 1 : 0);
    }
}

/* ---- a plan -------------------------------------------------------------- */

static void time_copies(ms_swapplan *p)
{
    delay_frees(p);
    if (p->rule->early)
        bring_early(p);
    else
        bring_in_time(p);
}

static void pick_none(ms_swapplan *p)
{
    ms_levels_set(p->levels, p->profile->level_bytes, p->profile->n_calls);
    memset(p->gone, 0, p->swap->context->graph->n_storages);
    p->n_picked = 0;
    for (uint32_t i = 0; i < p->profile->n_tensors; i++) {
        p->by_back[i] = p->by_use[i];
        p->at_back[p->by_use[i]] = i;
        p->need_call[i] = p->profile->tensors[i].back_call;
        p->need_ns[i] = p->profile->tensors[i].back_ns;
        p->choice[i].place = MS_HERE;
        p->rank[i] = MS_NONE;
        p->out_busy_ns[i] = p->in_busy_ns[i] = 0;
    }
    if (p->rule->lanes)
        ms_swaplanes_begin(p);
    if (p->rule->lanes && p->recompute)
        ms_swaprecompute_begin(p);
}

/* ---- in order ------------------------------------------------------------ */

/* What is picked for a call lowers levels, so that the first call above the
 * target is never one before the last.  The calls are walked once. */
typedef struct walk {
    uint32_t *entering, *entering_at; /* tensors idle from a call on, CSR */
    uint64_t *leaves, *returns;       /* per call, bytes picked so far */
    ms_least furthest; /* of those idle so far: places at the end of by_back */
} walk;

static ms_err open_walk(const ms_swapplan *p, walk *w)
{
    ms_arena *arena = p->swap->arena;
    const ms_profile *profile = p->profile;
    uint32_t n = profile->n_tensors, calls = profile->n_calls;
    w->entering = ms_arena_take_raw(arena, n, sizeof *w->entering);
    w->entering_at =
        ms_arena_take(arena, (size_t)calls + 2, sizeof *w->entering_at);
    w->leaves = ms_arena_take(arena, (size_t)calls + 2, sizeof *w->leaves);
    w->returns = ms_arena_take(arena, (size_t)calls + 2, sizeof *w->returns);
    if (w->entering == NULL || w->entering_at == NULL || w->leaves == NULL ||
        w->returns == NULL)
        return ms_fail_nomem(p->swap->fault);
    for (uint32_t i = 0; i < n; i++)
        w->entering_at[profile->tensors[i].out_call + 2]++;
    for (uint32_t c = 0; c <= calls; c++)
        w->entering_at[c + 1] += w->entering_at[c];
    for (uint32_t i = 0; i < n; i++)
        w->entering[w->entering_at[profile->tensors[i].out_call + 1]++] = i;
    return ms_least_open(&w->furthest, n, arena, p->swap->fault);
}

/* The idle tensor that is needed last; MS_NONE: none is left. */
static uint32_t take_furthest(const ms_swapplan *p, walk *w, uint32_t call)
{
    uint32_t slot;
    while ((slot = ms_least_slot(&w->furthest)) != MS_NONE) {
        uint32_t tensor = p->by_back[p->profile->n_tensors - 1 - slot];
        ms_least_set(&w->furthest, slot, MS_NONE);
        if (call < p->need_call[tensor])
            return tensor;
    }
    return MS_NONE;
}

static void enter(const ms_swapplan *p, walk *w, uint32_t call)
{
    uint32_t first = call > 0 ? w->entering_at[call - 1] : 0;
    for (uint32_t k = first; k < w->entering_at[call]; k++) {
        uint32_t slot = p->profile->n_tensors - 1 - p->at_back[w->entering[k]];
        ms_least_set(&w->furthest, slot, slot);
    }
}

static void move_away(ms_swapplan *p, walk *w, uint32_t tensor)
{
    const ms_profile_tensor *t = &p->profile->tensors[tensor];
    ms_swapplan_choice *choice = &p->choice[tensor];
    choice->place = MS_HOST;
    choice->free_call = t->out_call + 1;
    choice->in_call = p->need_call[tensor];
    p->rank[tensor] = p->n_picked++;
    w->leaves[choice->free_call] += t->bytes;
    w->returns[choice->in_call] += t->bytes;
}

static bool may_look(ms_swapplan *p)
{
    bool may = p->steps <= p->most_steps;
    if (may)
        p->steps += p->profile->n_calls + p->profile->n_tensors;
    return may;
}

static bool pick_walking(ms_swapplan *p, walk *w)
{
    uint64_t away = 0;
    for (uint32_t c = 0; c < p->profile->n_calls; c++) {
        enter(p, w, c);
        away -= w->returns[c];
        while (p->profile->level_bytes[c] - away > p->target_bytes) {
            uint32_t tensor = may_look(p) ? take_furthest(p, w, c) : MS_NONE;
            if (tensor == MS_NONE)
                return false;
            move_away(p, w, tensor);
            away += p->profile->tensors[tensor].bytes;
        }
    }
    return may_look(p);
}

/* As pick_all. */
static ms_err pick_furthest(ms_swapplan *p, bool *done)
{
    walk w;
    uint64_t away = 0;
    MS_TRY(open_walk(p, &w));
    pick_none(p);
    *done = pick_walking(p, &w);
    for (uint32_t c = 0; c < p->profile->n_calls; c++) {
        away += w.leaves[c] - w.returns[c];
        w.leaves[c] = p->profile->level_bytes[c] - away;
    }
    ms_levels_set(p->levels, w.leaves, p->profile->n_calls);
    return MS_OK;
}

static ms_err pick_by_rule(ms_swapplan *p, bool *done)
{
    *done = false;
    pick_none(p);
    while (may_look(p)) {
        uint8_t place = MS_HOST;
        uint32_t call = too_high(p);
        *done = call == p->profile->n_calls;
        if (*done)
            return MS_OK;
        if (p->rule->lanes && p->recompute)
            MS_TRY(ms_swaprecompute_refresh(p));
        uint32_t tensor = p->rule->pick(p, call, &place);
        if (tensor == MS_NONE)
            return MS_OK;
        assert(p->choice[tensor].place == MS_HERE && place != MS_HERE);
        choose(p, tensor, place);
        if (p->rule->lanes)
            ms_swaplanes_picked(p, tensor);
        if (p->rule->lanes && p->recompute)
            ms_swaprecompute_changed(p, tensor);
    }
    return MS_OK;
}

/* done: false: nothing is left to pick, or no step, and the level is still too
 * high.  It ends: what is picked is idle no more. */
static ms_err pick_all(ms_swapplan *p, bool *done)
{
    if (p->rule->pick == NULL)
        return pick_furthest(p, done);
    return pick_by_rule(p, done);
}

ms_err ms_swapplan_check(const ms_swapplan *p)
{
    char hint[80], budget[MS_SIZE_COUNT], least[MS_SIZE_COUNT];
    uint64_t least_bytes = 0;
    MS_TRY(find_least(p, &least_bytes));
    if (p->budget_bytes >= least_bytes)
        return MS_OK;
    ms_size_count(p->budget_bytes, budget);
    ms_size_count(least_bytes, least);
    snprintf(hint, sizeof hint, "give it budget=%llu or more",
             (unsigned long long)least_bytes);
    return ms_fail(p->swap->fault, MS_EINFEASIBLE, "swap", hint,
                   "no plan fits in %s bytes: with every tensor away until it "
                   "is used the peak is %s",
                   budget, least);
}

ms_err ms_swapplan_refuse(const ms_swapplan *p)
{
    char hint[80], budget[MS_SIZE_COUNT], peak[MS_SIZE_COUNT];
    ms_size_count(p->budget_bytes, budget);
    ms_size_count(p->peak_bytes, peak);
    snprintf(hint, sizeof hint, "give it budget=%llu or more",
             (unsigned long long)p->peak_bytes);
    return ms_fail(p->swap->fault, MS_EINFEASIBLE, "swap", hint,
                   "no plan found fits in %s bytes: the last one's peak is %s",
                   budget, peak);
}

static ms_err write_and_measure(ms_swapplan *p)
{
    MS_TRY(ms_swapwrite_program(p, &p->program));
    p->steps += (uint64_t)OP_STEPS * p->profile->n_ops;
    if (p->scratch == NULL)
        return ms_profile_measure(p->swap->context, &p->program, &p->peak_bytes,
                                  &p->step_ns, p->swap->fault);
    return ms_profile_measure_in(p->swap->context, &p->program, p->scratch,
                                 &p->peak_bytes, &p->step_ns, p->swap->fault);
}

ms_err ms_swapplan_make(ms_swapplan *p, const ms_swapplan_rule *rule,
                        bool recompute)
{
    if (rule->lanes && p->lanes == NULL)
        MS_TRY(ms_swaplanes_open(p));
    if (recompute)
        MS_TRY(ms_swaprecompute_open(p));
    p->rule = rule;
    p->recompute = recompute;
    p->fits = false;
    p->target_bytes = p->budget_bytes;
    for (uint32_t i = 0; i < p->profile->n_tensors; i++)
        p->choice[i].lead_ns = 0;
    for (uint32_t t = 0; t < TRIES; t++) {
        bool done;
        MS_TRY(pick_all(p, &done));
        if (!done)
            break;
        time_copies(p);
        MS_TRY(write_and_measure(p));
        p->fits = p->peak_bytes <= p->budget_bytes;
        if (p->fits)
            break;
        uint64_t over_bytes = p->peak_bytes - p->budget_bytes;
        if (over_bytes > p->target_bytes)
            break;
        p->target_bytes -= over_bytes;
    }
    return MS_OK;
}

/* ---- feedback ------------------------------------------------------------ */

/* With 5 % of a copy each, a copy has moved by all of its length. */
#define ROUNDS 20u

/* The same tensors with their copies in at other times. */
static ms_err time_again(ms_swapplan *p)
{
    ms_levels_set(p->levels, p->profile->level_bytes, p->profile->n_calls);
    for (uint32_t i = 0; i < p->profile->n_tensors; i++)
        if (p->choice[i].place != MS_HERE)
            choose(p, i, p->choice[i].place);
    time_copies(p);
    return write_and_measure(p);
}

/* Capuchin's feedback: the in-trigger of a tensor that was still on its way
 * moves by 5 % of its copy. */
static ms_err give_lead(ms_swapplan *p, uint32_t *n)
{
    ms_profile_copy *copies;
    MS_TRY(ms_swaprecompute_open(p));
    MS_TRY(ms_profile_waited(p->swap->context, &p->program, &copies, n,
                             p->swap->fault));
    for (uint32_t k = 0; k < *n; k++) {
        const uint32_t *at = p->again->storage_at + copies[k].storage;
        for (uint32_t i = at[0]; i < at[1]; i++) {
            uint32_t tensor = p->again->by_storage[i];
            if (p->profile->tensors[tensor].micro_batch ==
                copies[k].micro_batch)
                p->choice[tensor].lead_ns += p->in_ns[tensor] / 20;
        }
    }
    return MS_OK;
}

ms_err ms_swapplan_refine(ms_swapplan *p)
{
    ms_program program = p->program;
    uint64_t peak_bytes = p->peak_bytes, step_ns = p->step_ns;
    for (uint32_t round = 0; round < ROUNDS; round++) {
        uint32_t n;
        MS_TRY(give_lead(p, &n));
        if (n == 0)
            break;
        MS_TRY(time_again(p));
        if (p->peak_bytes > p->budget_bytes || p->step_ns >= step_ns)
            continue;
        program = p->program;
        peak_bytes = p->peak_bytes;
        step_ns = p->step_ns;
    }
    p->program = program;
    p->peak_bytes = peak_bytes;
    p->step_ns = step_ns;
    return MS_OK;
}
