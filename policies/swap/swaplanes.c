/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "policies/swap/swaplanes.h"
#include "policies/common/levels.h"

#include <string.h>

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
    MS_TRY(ms_copyqueue_open(&lanes->out, n, arena, fault));
    return ms_copyqueue_open(&lanes->in, n, arena, fault);
}

void ms_swaplanes_begin(ms_swapplan *p)
{
    ms_swaplanes *lanes = p->lanes;
    size_t calls = (size_t)p->profile->n_calls + 2;
    memset(lanes->shift_ns, 0, calls * sizeof *lanes->shift_ns);
    ms_copyqueue_clear(&lanes->out);
    ms_copyqueue_clear(&lanes->in);
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

/* ---- the lanes ----------------------------------------------------------- */

/* How many tensors come before this time, or with it, in by_back. */
static uint32_t count_needed(const ms_swapplan *p, uint64_t ns, bool with)
{
    uint32_t low = 0, high = p->profile->n_tensors;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        uint64_t need_ns = p->need_ns[p->by_back[middle]];
        if (need_ns < ns || (with && need_ns == ns))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Places in by_back, of all tensors of the node and perhaps of others. */
static void find_places(const ms_swapplan *p, const ms_swapkinds_node *node,
                        uint32_t *first, uint32_t *end)
{
    if (node->first_out == node->last_out) {
        *first = p->at_back[node->least_id];
        *end = *first + 1;
    } else {
        *first = count_needed(p, node->first_need_ns, false);
        *end = count_needed(p, node->last_need_ns, true);
    }
}

/* Are all of these calls too high? */
static bool all_high(const ms_swapplan *p, uint32_t first, uint32_t last)
{
    return ms_levels_least(p->levels, first, last + 1) >
           (int64_t)p->target_bytes;
}

/* A copy out that takes so long: where each next call is too high, it is late
 * by what the time until then is too short. */
static int64_t too_long_out(const ms_swapplan *p, const ms_swapkinds_node *node,
                            uint32_t last_out, int64_t copy_ns)
{
    uint32_t first = node->first_out_call;
    int64_t late_ns = copy_ns - node->most_behind_ns;
    if (late_ns <= 0 || !all_high(p, first + 1, last_out + 1))
        return 0;
    return late_ns -
           (int64_t)(shifted_ns(p, last_out + 1) - shifted_ns(p, first));
}

/* The same of a copy in and the calls before. */
static int64_t too_long_in(const ms_swapplan *p, const ms_swapkinds_node *node,
                           uint32_t first_need, int64_t copy_ns)
{
    uint32_t last = node->last_need_call;
    int64_t late_ns = copy_ns - node->most_before_ns;
    if (late_ns <= 0 || !all_high(p, first_need - 1, last - 1))
        return 0;
    return late_ns -
           (int64_t)(shifted_ns(p, last) - shifted_ns(p, first_need - 1));
}

/* Returns when a copy out ends, at the earliest. */
static int64_t try_out(const ms_swapplan *p, const ms_swapkinds_node *node,
                       int64_t copy_ns, uint32_t call, int64_t most_ns,
                       int64_t *late_ns)
{
    ms_copyqueue *queue = &p->lanes->out;
    uint32_t first = node->first_out, end = node->last_out + 1;
    uint32_t last = node->last_out_call;
    ms_copyqueue_gap gap = ms_copyqueue_look(queue, first, end);
    int64_t used = used_ns(p, p->by_out[first], node->first_out_call);
    int64_t end_ns = later(gap.from_ns, used) + copy_ns;
    last = last < call ? last : call - 1;
    int64_t by_ns = sooner(gap.by_ns, begins_ns(p, first_high(p, last, call)));
    *late_ns = later(0, end_ns - later(0, by_ns));
    if (end - first == 1 || *late_ns > most_ns)
        return end_ns;
    *late_ns = later(*late_ns, too_long_out(p, node, last, copy_ns));
    if (*late_ns <= most_ns) {
        int64_t left_ns = ms_copyqueue_most(queue, first, end, gap);
        *late_ns = later(*late_ns, copy_ns - later(0, left_ns));
    }
    return end_ns;
}

/* Returns when a copy in begins, at the latest. */
static int64_t try_in(const ms_swapplan *p, const ms_swapkinds_node *node,
                      int64_t copy_ns, uint32_t call, int64_t most_ns,
                      int64_t *late_ns)
{
    ms_copyqueue *queue = &p->lanes->in;
    uint32_t first, end, need = node->first_need_call;
    find_places(p, node, &first, &end);
    ms_copyqueue_gap gap = ms_copyqueue_look(queue, first, end);
    uint64_t need_ns = node->last_need_ns + shifted_ns(p, node->last_need_call);
    int64_t start_ns = later(0, sooner(gap.by_ns, (int64_t)need_ns) - copy_ns);
    need = need > call ? need : call + 1;
    int64_t from_ns = later(gap.from_ns, ended_ns(p, last_high(p, need, call)));
    *late_ns = later(0, from_ns - start_ns);
    if (node->first_out == node->last_out || *late_ns > most_ns)
        return start_ns;
    /* What has to begin before the step does begins with it. */
    *late_ns =
        later(*late_ns, sooner(from_ns, too_long_in(p, node, need, copy_ns)));
    if (*late_ns <= most_ns) {
        int64_t left_ns = ms_copyqueue_most(queue, first, end, gap);
        *late_ns = later(*late_ns, sooner(gap.from_ns, copy_ns - left_ns));
    }
    return start_ns;
}

ms_swaplanes_fit ms_swaplanes_try(const ms_swapplan *p,
                                  const ms_swapkinds_node *node, uint32_t like,
                                  uint32_t call, int64_t most_ns)
{
    int64_t out_ns, in_ns = 0, free_ns = 0;
    int64_t end_ns =
        try_out(p, node, (int64_t)p->out_ns[like], call, most_ns, &out_ns);
    if (out_ns <= most_ns)
        free_ns = try_in(p, node, (int64_t)p->in_ns[like], call,
                         most_ns - out_ns, &in_ns) -
                  end_ns;
    return (ms_swaplanes_fit){free_ns, (uint64_t)out_ns, (uint64_t)in_ns};
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
    const ms_profile_tensor *t = &p->profile->tensors[tensor];
    ms_swapkinds_node node = ms_swapkinds_leaf(p, tensor);
    ms_swaplanes_fit fit = ms_swaplanes_try(p, &node, tensor, call, INT64_MAX);
    uint32_t first = first_high(p, t->out_call, call);
    p->lanes->first_call[tensor] = first;
    p->lanes->last_call[tensor] = last_high(p, p->need_call[tensor], call);
    shift(p, first, fit.late_out_ns);
    shift(p, p->need_call[tensor], fit.late_in_ns);
    queue_out(p, tensor);
    queue_in(p, tensor);
}

void ms_swaplanes_remake(ms_swapplan *p, uint32_t tensor, uint64_t ns)
{
    shift(p, p->need_call[tensor], ns);
}

void ms_swaplanes_reorder(ms_swapplan *p, uint32_t first, uint32_t end)
{
    for (uint32_t k = first; k < end; k++)
        if (p->choice[p->by_back[k]].place == MS_HOST)
            queue_in(p, p->by_back[k]);
        else
            ms_copyqueue_set(&p->lanes->in, k, NULL);
}
