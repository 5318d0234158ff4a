/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Makes a static plan in the order that --allocator arena asks for. */

#include "tools/cli/alloc/alloc_arena.h"
#include "tools/cli/commands.h"
#include "tools/points/points.h"

#include <string.h>

/* the exact search spends this part of the limits on each capacity it tries */
#define PIECES 16u

/* Takes the lowest plan of the rules in [from, to). */
static ms_err place_rules(const ms_alloc_arena *run, ms_alloc_plan *plan,
                          uint32_t from, uint32_t to, const ms_hall *hall,
                          ms_fault *fault)
{
    for (uint32_t rule = from; rule < to; rule++) {
        uint64_t height, *offsets = ms_arena_take(hall->keep, run->list.n + 1,
                                                  sizeof *offsets);
        if (offsets == NULL)
            return ms_fail_nomem(fault);
        ms_arena_reset(hall->trial);
        MS_TRY(ms_placement_greedy(run->list.buffers, run->list.n,
                                   (ms_placement_rule)rule, offsets, &height,
                                   fault));
        if (plan->offsets != NULL && height >= plan->height)
            continue;
        plan->by = rule;
        plan->height = height;
        plan->offsets = offsets;
    }
    return MS_OK;
}

static ms_err place_objects(const ms_alloc_arena *run, ms_alloc_plan *plan,
                            const ms_hall *hall, ms_fault *fault)
{
    const ms_placement_buffer *buffers = run->list.buffers;
    uint32_t n = run->list.n, n_objects;
    ms_arena_reset(hall->trial);
    plan->offsets = ms_arena_take(hall->keep, n + 1, sizeof *plan->offsets);
    uint32_t *objects = ms_arena_take(hall->trial, n + 1, sizeof *objects);
    uint64_t *bytes = ms_arena_take(hall->trial, n + 1, sizeof *bytes);
    if (plan->offsets == NULL || objects == NULL || bytes == NULL)
        return ms_fail_nomem(fault);
    if (plan->order == MS_ALLOC_FLOW)
        MS_TRY(ms_placeobjects_flow(buffers, n, hall->trial, objects, bytes,
                                    &n_objects, fault));
    else
        MS_TRY(ms_placeobjects_greedy(buffers, n, hall->trial, objects, bytes,
                                      &n_objects, fault));
    ms_placeobjects_offsets(buffers, n, objects, n_objects, plan->offsets,
                            &plan->height);
    plan->by = plan->order;
    return MS_OK;
}

/* ---- exact --------------------------------------------------------------- */

/* What is left of the limits of a search. */
typedef struct budget {
    uint64_t steps;
    uint64_t end_ns; /* UINT64_MAX: there is no limit on the time */
} budget;

static bool is_late(void *of)
{
    const budget *b = of;
    return ms_progress_now_ns() >= b->end_ns;
}

static budget begin_budget(const ms_alloc_plan *plan)
{
    return (budget){plan->most_steps,
                    plan->most_ns == 0 ? UINT64_MAX
                                       : ms_progress_now_ns() + plan->most_ns};
}

static bool is_spent(budget *b)
{
    return b->steps == 0 || (b->end_ns != UINT64_MAX && is_late(b));
}

/* One share of all limits, but no more than is left. */
static budget part_of(const budget *left, const ms_alloc_plan *plan)
{
    budget part = *left;
    uint64_t steps = plan->most_steps / PIECES + 1;
    part.steps = steps < left->steps ? steps : left->steps;
    if (plan->most_ns > 0) {
        uint64_t end_ns = ms_progress_now_ns() + plan->most_ns / PIECES;
        part.end_ns = end_ns < left->end_ns ? end_ns : left->end_ns;
    }
    return part;
}

/* Searches for a plan within the capacity; a plan that is found replaces the
 * one there is. */
static ms_err search(const ms_alloc_arena *run, ms_alloc_plan *plan,
                     uint64_t capacity, budget part, const ms_hall *hall,
                     ms_placeexact_answer *answer, ms_fault *fault)
{
    ms_placeexact_result result;
    ms_placeexact_limits limits = {.most_steps = part.steps,
                                   .stop = part.end_ns == UINT64_MAX ? NULL
                                                                     : is_late,
                                   .of = &part};
    uint64_t *offsets =
        ms_arena_take(hall->keep, run->list.n + 1, sizeof *offsets);
    if (offsets == NULL)
        return ms_fail_nomem(fault);
    ms_arena_reset(hall->trial);
    MS_TRY(ms_placeexact_search(run->list.buffers, run->list.n, capacity,
                                &limits, hall->trial, offsets, &result, fault));
    plan->n_steps += result.n_steps;
    *answer = result.answer;
    if (result.answer == MS_PLACEEXACT_NONE && capacity >= plan->floor_bytes)
        plan->floor_bytes = capacity + 1;
    if (result.answer != MS_PLACEEXACT_FOUND)
        return MS_OK;
    plan->by = MS_ALLOC_EXACT;
    plan->offsets = offsets;
    plan->height = 0;
    for (uint32_t i = 0; i < run->list.n; i++)
        if (offsets[i] + run->list.buffers[i].bytes > plan->height)
            plan->height = offsets[i] + run->list.buffers[i].bytes;
    return MS_OK;
}

/* The greatest common divisor of all sizes and alignments. In a plan without
 * needless gaps every height at which a buffer ends is a multiple of it, so
 * that the search may count in such units. */
static uint64_t find_unit(const ms_placement_list *list)
{
    uint64_t unit = 0;
    for (uint32_t i = 0; i < 2 * list->n; i++) {
        const ms_placement_buffer *b = &list->buffers[i / 2];
        uint64_t a = i % 2 == 0 ? b->bytes : b->align > 1 ? b->align : 0;
        while (a > 0) {
            uint64_t rest = unit % a;
            unit = a;
            a = rest;
        }
    }
    return unit > 0 ? unit : 1;
}

/* A binary search for the lowest height between the proven bound and the
 * best greedy plan, with a share of the limits for each height. A search
 * that runs out of its share proves nothing, so what is left of the limits
 * goes into one last search, a unit below the best plan by then. */
static ms_err search_lowest(const ms_alloc_arena *run, ms_alloc_plan *plan,
                            const ms_hall *hall, ms_fault *fault)
{
    uint64_t unit = find_unit(&run->list);
    budget left = begin_budget(plan);
    MS_TRY(place_rules(run, plan, 0, MS_PLACEMENT_N_RULES, hall, fault));
    uint64_t low = (run->bound_bytes + unit - 1) / unit, at = low;
    while (plan->floor_bytes + unit <= plan->height && !is_spent(&left)) {
        bool last = low >= plan->height / unit;
        ms_placeexact_answer answer;
        MS_TRY(search(run, plan, last ? plan->height - unit : at * unit,
                      last ? left : part_of(&left, plan), hall, &answer,
                      fault));
        left.steps = plan->most_steps - plan->n_steps;
        if (last && answer != MS_PLACEEXACT_FOUND)
            break;
        if (!last && answer != MS_PLACEEXACT_FOUND)
            low = at + 1;
        at = low + (plan->height / unit - low) / 2;
    }
    return MS_OK;
}

/* Where no plan within the capacity is found, the lowest greedy plan is noted,
 * for the message to name. */
static ms_err search_within(const ms_alloc_arena *run, ms_alloc_plan *plan,
                            const ms_hall *hall, ms_fault *fault)
{
    ms_placeexact_answer answer;
    ms_alloc_plan known = *plan;
    MS_TRY(search(run, plan, plan->capacity_bytes, begin_budget(plan), hall,
                  &answer, fault));
    if (plan->offsets != NULL)
        return MS_OK;
    MS_TRY(place_rules(run, &known, 0, MS_PLACEMENT_N_RULES, hall, fault));
    plan->known_bytes = known.height;
    plan->known_by = known.by;
    return MS_OK;
}

ms_err ms_alloc_place(const ms_alloc_arena *run, ms_alloc_plan *plan,
                      const ms_hall *hall, ms_fault *fault)
{
    plan->floor_bytes = run->bound_bytes;
    if (plan->order == MS_ALLOC_EXACT)
        MS_TRY(plan->capacity_bytes == 0
                   ? search_lowest(run, plan, hall, fault)
                   : search_within(run, plan, hall, fault));
    else if (plan->order == MS_ALLOC_OBJECTS || plan->order == MS_ALLOC_FLOW)
        MS_TRY(place_objects(run, plan, hall, fault));
    else if (plan->order == MS_ALLOC_BEST)
        MS_TRY(place_rules(run, plan, 0, MS_PLACEMENT_N_RULES, hall, fault));
    else
        MS_TRY(
            place_rules(run, plan, plan->order, plan->order + 1, hall, fault));
    /* The proven bound is rounded up to a unit, since no buffer ends between
     * two. */
    uint64_t unit = find_unit(&run->list), over = plan->floor_bytes % unit;
    plan->floor_bytes += over > 0 ? unit - over : 0;
    return MS_OK;
}
