/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A trade is optimal (on the Pareto front) when no other has a peak and a cost
 * that are both as low and one of them lower; of equal trades all are optimal
 * or none is.  Where some are a bound, these alone are.  The cost is the time
 * of the step or, where steps do different amounts of work, the time per token
 * or sample. */

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "plots/axes/frame.h"
#include "plots/figures/pareto.h"
#include "plots/plots.h"

/* ---- what is optimal ----------------------------------------------------- */

/* Equal trades keep the order given, by their place in the array: qsort alone
 * does not promise that. */
static int by_peak(const void *a, const void *b)
{
    const ms_trade *p = ((const ms_spot *)a)->trade,
                   *q = ((const ms_spot *)b)->trade;
    if (p->peak_bytes != q->peak_bytes)
        return p->peak_bytes < q->peak_bytes ? -1 : 1;
    double cost = ((const ms_spot *)a)->cost,
           other = ((const ms_spot *)b)->cost;
    if (cost < other || cost > other)
        return cost < other ? -1 : 1;
    return p < q ? -1 : p > q;
}

static bool are_equal(const ms_spot *a, const ms_spot *b)
{
    return a->trade->peak_bytes == b->trade->peak_bytes &&
           a->trade->is_bound == b->trade->is_bound && !(a->cost < b->cost) &&
           !(a->cost > b->cost);
}

/* In ascending order of the peak a trade is optimal if it costs less than all
 * before it.  Equal trades are drawn once, with the count of those hidden. */
static void judge(ms_pareto *p)
{
    double best = INFINITY;
    qsort(p->spots, p->n, sizeof *p->spots, by_peak);
    for (uint32_t i = 0, first = 0; i < p->n; i++) {
        ms_spot *spot = &p->spots[i];
        if (i > 0 && are_equal(spot, &p->spots[first])) {
            spot->is_optimal = p->spots[first].is_optimal;
            spot->is_hidden =
                spot->trade->fits == p->spots[first].trade->fits &&
                !spot->trade->is_chosen;
            p->spots[first].equals += spot->is_hidden;
            p->n_optimal += spot->is_optimal;
            continue;
        }
        first = i;
        spot->is_optimal =
            spot->cost < best && (!p->bounded || spot->trade->is_bound);
        if (spot->is_optimal)
            best = spot->cost;
        p->n_optimal += spot->is_optimal;
    }
}

/* Families have signs in the order in which they first appear.  When all signs
 * are used, the last one becomes "other". */
static uint32_t sign_of(ms_pareto *p, const char *family)
{
    for (uint32_t i = 0; i < p->n_families; i++)
        if (strcmp(p->families[i].name, family) == 0)
            return i;
    if (p->n_families == MS_PARETO_FAMILIES) {
        p->families[MS_PARETO_FAMILIES - 1].name = "other";
        return MS_PARETO_FAMILIES - 1;
    }
    p->families[p->n_families].name = family;
    return p->n_families++;
}

static void find_marks(ms_pareto *p)
{
    ms_sign_name names[MS_PARETO_FAMILIES];
    ms_sign marks[MS_PARETO_FAMILIES];
    for (uint32_t i = 0; i < p->n_families; i++)
        names[i] = (ms_sign_name){p->families[i].name, p->families[i].name};
    ms_marks_assign(names, p->n_families, marks);
    for (uint32_t i = 0; i < p->n_families; i++)
        p->families[i].mark = marks[i];
}

/* Do all steps do the same work?  They count as such where the work of one is
 * not known: then times per token cannot be compared either. */
static bool do_the_same(const ms_trade *trades, uint32_t n)
{
    bool same = true;
    for (uint32_t i = 1; i < n; i++)
        same &= !(trades[i].work < trades[0].work) &&
                !(trades[i].work > trades[0].work);
    for (uint32_t i = 0; i < n; i++)
        same |= trades[i].work <= 0.0 || trades[i].step_ns == 0 ||
                trades[i].has_tokens != trades[0].has_tokens;
    return same;
}

ms_err ms_trades_load(ms_pareto *p, const ms_trade *trades, uint32_t n,
                      ms_fault *fault)
{
    p->n = n;
    p->by_rate = !do_the_same(trades, n);
    p->places.leans_up = p->by_rate;
    p->spots = ms_arena_take(p->frame.script->arena, n, sizeof *p->spots);
    if (p->spots == NULL)
        return ms_fail_nomem(fault);
    for (uint32_t i = 0; i < n; i++)
        p->bounded |= trades[i].is_bound;
    for (uint32_t i = 0; i < n; i++)
        p->spots[i] = (ms_spot){
            .trade = &trades[i],
            .cost =
                (double)trades[i].step_ns / (p->by_rate ? trades[i].work : 1.0),
            .sign = trades[i].is_bound ? 0 : sign_of(p, trades[i].family)};
    find_marks(p);
    judge(p);
    p->radius = n > MS_PARETO_CROWD ? 4.0 : n > 60 ? 5.5 : 8.0;
    return MS_OK;
}
