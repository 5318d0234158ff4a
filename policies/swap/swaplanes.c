/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "policies/swap/swaplanes.h"
#include "policies/common/levels.h"

#include <math.h>
#include <string.h>

/* Calls in the spans of estimates.  Each counts twice: one that is waited for
 * shifts what comes; one that is too high bounds a copy, for as long as it is.
 */
#define WAITING(call) (2 * (call))
#define HIGH(call) (2 * (call) + 1)

static ms_err open_estimates(const ms_swapplan *p, ms_estimates *estimates)
{
    uint32_t n = p->profile->n_tensors;
    ms_arena *arena = p->swap->arena;
    uint64_t *bytes = ms_arena_take_raw(arena, n, sizeof *bytes);
    if (bytes == NULL)
        return ms_fail_nomem(p->swap->fault);
    for (uint32_t i = 0; i < n; i++)
        bytes[i] = p->profile->tensors[i].bytes;
    return ms_estimates_open(estimates, bytes, n, arena, p->swap->fault);
}

ms_err ms_swaplanes_open(ms_swapplan *p)
{
    ms_arena *arena = p->swap->arena;
    ms_fault *fault = p->swap->fault;
    uint32_t n = p->profile->n_tensors;
    size_t calls = (size_t)p->profile->n_calls + 2;
    ms_swaplanes *lanes = ms_arena_take(arena, 1, sizeof *lanes);
    if (lanes == NULL)
        return ms_fail_nomem(fault);
    p->lanes = lanes;
    lanes->first_call = ms_arena_take(arena, n, sizeof *lanes->first_call);
    lanes->last_call = ms_arena_take(arena, n, sizeof *lanes->last_call);
    lanes->shift_ns = ms_arena_take(arena, calls, sizeof *lanes->shift_ns);
    if (lanes->first_call == NULL || lanes->last_call == NULL ||
        lanes->shift_ns == NULL)
        return ms_fail_nomem(fault);
    for (uint32_t i = 0; i < n; i++)
        if (p->in_ns[i] > lanes->longest_in_ns)
            lanes->longest_in_ns = p->in_ns[i];
    MS_TRY(open_estimates(p, &lanes->estimates));
    MS_TRY(ms_copyqueue_open(&lanes->out, n, arena, fault));
    return ms_copyqueue_open(&lanes->in, n, arena, fault);
}

static int64_t later(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static int64_t sooner(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* ---- when, with what is waited for --------------------------------------- */

static uint64_t shifted_ns(const ms_swapplan *p, uint32_t call)
{
    uint64_t ns = 0;
    for (uint32_t i = call + 1; i > 0; i &= i - 1)
        ns += p->lanes->shift_ns[i];
    return ns;
}

static int64_t used_ns(const ms_swapplan *p, uint32_t tensor, uint32_t call)
{
    const ms_profile_tensor *t = &p->profile->tensors[tensor];
    return (int64_t)(t->out_ns + shifted_ns(p, call));
}

static int64_t begins_ns(const ms_swapplan *p, uint32_t call)
{
    return (int64_t)(p->profile->start_ns[call] + shifted_ns(p, call));
}

static int64_t ended_ns(const ms_swapplan *p, uint32_t call)
{
    return (int64_t)(p->profile->start_ns[call + 1] + shifted_ns(p, call));
}

/* Between a last use and the call the first that is too high; that one is. */
static uint32_t first_high(const ms_swapplan *p, uint32_t out_call,
                           uint32_t call)
{
    return ms_levels_above(p->levels, out_call + 1, call,
                           (int64_t)p->target_bytes);
}

static uint32_t last_high(const ms_swapplan *p, uint32_t need_call,
                          uint32_t call)
{
    return ms_levels_behind(p->levels, call + 1, need_call,
                            (int64_t)p->target_bytes) -
           1;
}

/* ---- what bounds a copy -------------------------------------------------- */

/* A time, and the place and the call from which, or up to which, it changes. */
typedef struct edge {
    int64_t ns;
    uint32_t place, call;
} edge;

/* Of the two copies that a tensor would be. */
typedef struct edges {
    edge end, start; /* out ends, in begins */
    /* Out has to end, in may begin: for other copies, and for the calls that
     * are too high. */
    edge by, by_high, from, from_high;
} edges;

/* Of the tensors in the order of by_back, those that are needed before.  Places
 * in by_back change when one is needed earlier, these of the others do not. */
static uint32_t needed_place(const ms_swapplan *p, uint32_t tensor)
{
    uint32_t low = 0, high = p->profile->n_tensors;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        const ms_profile_tensor *t = &p->profile->tensors[p->by_use[middle]];
        if (t->back_ns < p->need_ns[tensor])
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void find_out(const ms_swapplan *p, uint32_t tensor, uint32_t call,
                     edges *e)
{
    uint32_t place = p->at_out[tensor];
    uint32_t out_call = p->profile->tensors[tensor].out_call;
    uint32_t high = first_high(p, out_call, call);
    int64_t used = used_ns(p, tensor, out_call);
    ms_copyqueue_source from, by;
    ms_copyqueue_gap gap =
        ms_copyqueue_trace(&p->lanes->out, place, &from, &by);
    e->end = (edge){used, place, WAITING(out_call)};
    if (gap.from_ns > used)
        e->end = (edge){gap.from_ns, from.place, WAITING(from.call)};
    e->end.ns += (int64_t)p->out_ns[tensor];
    e->by = (edge){gap.by_ns, by.place, WAITING(by.call + 1)};
    e->by_high = (edge){begins_ns(p, high), place, HIGH(high)};
}

static void find_in(const ms_swapplan *p, uint32_t tensor, uint32_t call,
                    edges *e)
{
    uint32_t need = p->need_call[tensor], place = needed_place(p, tensor);
    uint32_t high = last_high(p, need, call);
    int64_t need_ns = (int64_t)(p->need_ns[tensor] + shifted_ns(p, need));
    ms_copyqueue_source from, by;
    ms_copyqueue_gap gap =
        ms_copyqueue_trace(&p->lanes->in, p->at_back[tensor], &from, &by);
    e->start = (edge){need_ns, place, WAITING(need + 1)};
    if (gap.by_ns < need_ns)
        e->start = (edge){gap.by_ns, needed_place(p, p->by_back[by.place]),
                          WAITING(by.call + 1)};
    e->start.ns = later(0, e->start.ns - (int64_t)p->in_ns[tensor]);
    e->from = (edge){gap.from_ns, MS_NONE, 0};
    if (from.place != MS_NONE)
        e->from = (edge){gap.from_ns, needed_place(p, p->by_back[from.place]),
                         WAITING(from.call)};
    e->from_high = (edge){ended_ns(p, high), place, HIGH(high)};
}

/* ---- estimates ----------------------------------------------------------- */

/* Once a call is not too high it is hidden, and lower() does not come upon it
 * again where it was for a while. */
static bool is_seen(const ms_swapplan *p, const edge *high)
{
    return !ms_levels_is_hidden(p->levels, high->call / 2);
}

/* It is late by what is between two edges. */
static void know(ms_estimates_term *term, const edge *first, const edge *last,
                 uint32_t axis)
{
    *term = ms_estimates_known(first->ns - last->ns);
    term->span[axis] = ms_estimates_between(first->place, last->place);
    term->span[MS_ESTIMATES_CALL] =
        ms_estimates_between(first->call, last->call);
}

/* Of what bounds it most; of calls that are hidden nothing is learnt. */
static void learn(const ms_swapplan *p, const edges *e, ms_estimates_node *leaf)
{
    ms_estimates_term *term = leaf->term;
    bool by = e->by_high.ns < e->by.ns && is_seen(p, &e->by_high);
    bool from = e->from_high.ns > e->from.ns && is_seen(p, &e->from_high);
    if (by || e->by.place != MS_NONE)
        know(&term[MS_ESTIMATES_OUT], &e->end, by ? &e->by_high : &e->by,
             MS_ESTIMATES_OUT_PLACE);
    if (from || e->from.place != MS_NONE)
        know(&term[MS_ESTIMATES_IN], from ? &e->from_high : &e->from, &e->start,
             MS_ESTIMATES_IN_PLACE);
    know(&term[MS_ESTIMATES_AWAY], &e->end, &e->start, MS_ESTIMATES_OUT_PLACE);
    term[MS_ESTIMATES_AWAY].span[MS_ESTIMATES_OUT_PLACE] =
        ms_estimates_between(e->end.place, e->by_high.place);
    term[MS_ESTIMATES_AWAY].span[MS_ESTIMATES_IN_PLACE] =
        ms_estimates_between(e->from_high.place, e->start.place);
    leaf->late_ns = later(0, term[MS_ESTIMATES_OUT].least_ns) +
                    later(0, term[MS_ESTIMATES_IN].least_ns);
    leaf->end_ns = e->end.ns;
}

ms_swaplanes_fit ms_swaplanes_try(const ms_swapplan *p, uint32_t tensor,
                                  uint32_t call, ms_estimates_node *leaf)
{
    edges e;
    find_out(p, tensor, call, &e);
    find_in(p, tensor, call, &e);
    if (leaf != NULL)
        learn(p, &e, leaf);
    int64_t by_ns = later(0, sooner(e.by.ns, e.by_high.ns));
    int64_t from_ns = later(e.from.ns, e.from_high.ns);
    return (ms_swaplanes_fit){
        .free_ns = e.start.ns - e.end.ns,
        .late_out_ns = (uint64_t)later(0, e.end.ns - by_ns),
        .late_in_ns = (uint64_t)later(0, from_ns - e.start.ns)};
}

/* No copy in has to begin before the step does: then estimates hold, for late
 * ones are counted from when they would have to. */
static bool holds(const ms_swapplan *p)
{
    const ms_swaplanes *lanes = p->lanes;
    return lanes->in.nodes[1].by_ns >= (int64_t)lanes->longest_in_ns;
}

int64_t ms_swaplanes_least_late(const ms_swapplan *p,
                                const ms_estimates_node *node)
{
    return holds(p) ? sooner(node->late_ns, node->end_ns) : 0;
}

int64_t ms_swaplanes_most_free(const ms_swapplan *p,
                               const ms_estimates_node *node)
{
    return holds(p) ? -node->term[MS_ESTIMATES_AWAY].least_ns
                    : MS_COPYQUEUE_NEVER;
}

static void estimate(ms_swapplan *p, uint32_t tensor)
{
    bool here = p->choice[tensor].place == MS_HERE;
    ms_estimates_set(&p->lanes->estimates, tensor,
                     p->profile->tensors[tensor].out_call,
                     here ? p->need_call[tensor] : 0);
}

/* Calls that are not too high any more bound copies no more: the next do. */
static void lower(ms_swapplan *p, uint32_t first, uint32_t end)
{
    ms_estimates *estimates = &p->lanes->estimates;
    int64_t bytes = (int64_t)p->target_bytes;
    uint32_t n = p->profile->n_calls, call = first;
    while ((call = ms_levels_below(p->levels, call, end, bytes)) < end) {
        uint32_t next = ms_levels_above(p->levels, call + 1, n, bytes);
        uint32_t behind = ms_levels_behind(p->levels, 0, call, bytes);
        ms_levels_hide(p->levels, call);
        if (next < n)
            ms_estimates_move(estimates, MS_ESTIMATES_OUT, HIGH(call),
                              HIGH(next),
                              begins_ns(p, call) - begins_ns(p, next));
        if (behind > 0)
            ms_estimates_move(estimates, MS_ESTIMATES_IN, HIGH(call),
                              HIGH(behind - 1),
                              ended_ns(p, behind - 1) - ended_ns(p, call));
        call++;
    }
}

void ms_swaplanes_begin(ms_swapplan *p)
{
    ms_swaplanes *lanes = p->lanes;
    size_t calls = (size_t)p->profile->n_calls + 2;
    memset(lanes->shift_ns, 0, calls * sizeof *lanes->shift_ns);
    ms_copyqueue_clear(&lanes->out);
    ms_copyqueue_clear(&lanes->in);
    for (uint32_t i = 0; i < p->profile->n_tensors; i++) {
        ms_estimates_rate(&lanes->estimates, i, -INFINITY);
        estimate(p, i);
    }
    lower(p, 0, p->profile->n_calls);
}

void ms_swaplanes_picked(ms_swapplan *p, uint32_t tensor)
{
    estimate(p, tensor);
    lower(p, p->choice[tensor].free_call, p->choice[tensor].in_call);
}

/* ---- what comes is later ------------------------------------------------- */

static void shift(ms_swapplan *p, uint32_t call, uint64_t ns)
{
    ms_swaplanes *lanes = p->lanes;
    if (ns == 0)
        return;
    for (uint32_t i = call + 1; i < p->profile->n_calls + 2; i += i & (0 - i))
        lanes->shift_ns[i] += ns;
    ms_copyqueue_shift(&lanes->out, call, (int64_t)ns);
    ms_copyqueue_shift(&lanes->in, call, (int64_t)ns);
    ms_estimates_add(&lanes->estimates, MS_ESTIMATES_CALL, WAITING(call),
                     -(int64_t)ns);
}

static void queue_out(ms_swapplan *p, uint32_t tensor)
{
    uint32_t out_call = p->profile->tensors[tensor].out_call;
    uint32_t first_call = p->lanes->first_call[tensor];
    ms_copyqueue_copy copy = {(int64_t)p->out_ns[tensor],
                              used_ns(p, tensor, out_call),
                              begins_ns(p, first_call), out_call, first_call};
    ms_copyqueue_set(&p->lanes->out, p->at_out[tensor], &copy);
}

static void queue_in(ms_swapplan *p, uint32_t tensor)
{
    uint32_t need_call = p->need_call[tensor];
    uint32_t last_call = p->lanes->last_call[tensor];
    uint64_t need_ns = p->need_ns[tensor] + shifted_ns(p, need_call);
    ms_copyqueue_copy copy = {(int64_t)p->in_ns[tensor], ended_ns(p, last_call),
                              (int64_t)need_ns, last_call, need_call};
    ms_copyqueue_set(&p->lanes->in, p->at_back[tensor], &copy);
}

void ms_swaplanes_move(ms_swapplan *p, uint32_t tensor, uint32_t call)
{
    ms_swaplanes *lanes = p->lanes;
    ms_estimates *estimates = &lanes->estimates;
    ms_swaplanes_fit fit = ms_swaplanes_try(p, tensor, call, NULL);
    uint32_t out_call = p->profile->tensors[tensor].out_call;
    uint32_t need_call = p->need_call[tensor];
    lanes->first_call[tensor] = first_high(p, out_call, call);
    lanes->last_call[tensor] = last_high(p, need_call, call);
    shift(p, lanes->first_call[tensor], fit.late_out_ns);
    shift(p, need_call, fit.late_in_ns);
    queue_out(p, tensor);
    queue_in(p, tensor);
    ms_estimates_add(estimates, MS_ESTIMATES_OUT_PLACE, p->at_out[tensor],
                     (int64_t)p->out_ns[tensor]);
    ms_estimates_add(estimates, MS_ESTIMATES_IN_PLACE, needed_place(p, tensor),
                     (int64_t)p->in_ns[tensor]);
}

void ms_swaplanes_remake(ms_swapplan *p, uint32_t tensor, uint64_t ns)
{
    shift(p, p->need_call[tensor], ns);
}

static void requeue(ms_swapplan *p, uint32_t place)
{
    uint32_t tensor = p->by_back[place];
    if (p->choice[tensor].place == MS_HOST)
        queue_in(p, tensor);
    else
        ms_copyqueue_set(&p->lanes->in, place, NULL);
}

void ms_swaplanes_needed(ms_swapplan *p, uint32_t tensor, uint32_t end)
{
    for (uint32_t place = p->at_back[tensor]; place < end; place++)
        requeue(p, place);
    if (p->choice[tensor].place != MS_HOST)
        estimate(p, tensor);
    else /* its copy may bound any other */
        for (uint32_t i = 0; i < p->profile->n_tensors; i++)
            estimate(p, i);
}
