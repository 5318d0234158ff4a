/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What a set-up is worth: its cost, whether it can matter, which are equals. */

#include "graphs/machines/accuracy.h"
#include "tools/search/fit.h"

uint64_t ms_fitjudge_cost(const ms_fit_point *point)
{
    return point->step_ns * point->weight;
}

bool ms_fitjudge_is_too_big(const ms_fit *fit, const ms_fit_point *point)
{
    uint64_t context_bytes = point->bound.context_bytes > 0
                                 ? point->bound.context_bytes
                                 : fit->context_bytes;
    return point->bound.peak_bytes + context_bytes > fit->capacity_bytes;
}

static bool is_far(uint64_t value, uint64_t best)
{
    return value / MS_FIT_FAR_NUMERATOR > best / MS_FIT_FAR_DENOMINATOR;
}

bool ms_fitjudge_is_far(const ms_fit *fit, const ms_fit_point *point)
{
    if (fit->fastest == MS_NONE)
        return false;
    if (fit->goal == MS_FIT_MEMORY)
        return is_far(point->reserved_bytes,
                      fit->all[fit->leanest].reserved_bytes);
    return is_far(ms_fitjudge_cost(point),
                  ms_fitjudge_cost(&fit->all[fit->fastest]));
}

/* Is the point too far from the goal even at its lower bounds? */
bool ms_fitjudge_is_bound_far(const ms_fit *fit, const ms_fit_point *point)
{
    ms_fit_point least = {.reserved_bytes = point->bound.peak_bytes,
                          .step_ns = point->bound.step_ns,
                          .weight = point->weight};
    return ms_fitjudge_is_far(fit, &least);
}

/* What is further from the goal than that is not in the front. */
#define MOST_BAND                                                              \
    (100 * (MS_FIT_FAR_NUMERATOR - MS_FIT_FAR_DENOMINATOR) /                   \
         MS_FIT_FAR_DENOMINATOR -                                              \
     1)

uint32_t ms_fitjudge_band(const ms_fit_point *fastest)
{
    uint32_t percent = (uint32_t)fastest->error_percent;
    if (fastest->measured_runs == 0)
        return MS_ACCURACY_UNKNOWN;
    return percent < MOST_BAND ? percent : MOST_BAND;
}

uint32_t ms_fitjudge_equals(const ms_fit *fit, const uint32_t *list, uint32_t n)
{
    uint32_t k = 0;
    if (fit->goal == MS_FIT_MEMORY || n == 0)
        return n;
    const ms_fit_point *first = &fit->all[list[0]];
    uint32_t most = 100 + ms_fitjudge_band(first);
    while (k < n && ms_fitjudge_cost(&fit->all[list[k]]) / most <=
                        ms_fitjudge_cost(first) / 100)
        k++;
    return k;
}
