/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "policies/solve/evictstate.h"

#include <math.h>

/* xorshift64* (Vigna, An experimental exploration of Marsaglia's xorshift
 * generators, 2016). */
static uint32_t any(ms_evictstate *state)
{
    if (state->random == 0)
        state->random = state->setup->seed * 2 + 1;
    state->random ^= state->random >> 12;
    state->random ^= state->random << 25;
    state->random ^= state->random >> 27;
    return (uint32_t)((state->random * UINT64_C(2685821657736338717) >> 32) %
                      state->n_pool);
}

/* What it takes to make it again, with what is gone around it. */
static int64_t again_ns(ms_evictstate *state, uint32_t s)
{
    const ms_evictregions *r = &state->regions;
    uint64_t own = state->own_ns[s];
    switch (state->setup->heuristic) {
    case MS_EVICTOR_DTR:
    case MS_EVICTOR_ESIZE:
        return (int64_t)(own + r->sum_ns[MS_EVICT_DOWN][s] +
                         r->sum_ns[MS_EVICT_UP][s]);
    case MS_EVICTOR_MSPS:
        return (int64_t)(own + r->sum_ns[MS_EVICT_UP][s]);
    case MS_EVICTOR_EQ:
        return (int64_t)own + ms_evictclasses_around(state, s);
    default:
        return (int64_t)own;
    }
}

/* Above and below the line. */
typedef struct fraction {
    double above, below[2];
} fraction;

static fraction cost_of(ms_evictstate *state, uint32_t s)
{
    double bytes = (double)state->graph->storage_bytes[s];
    double stale = (double)(state->now_ns - state->used_ns[s]);
    switch (state->setup->heuristic) {
    case MS_EVICTOR_LRU:
        return (fraction){(double)state->used_ns[s], {1, 1}};
    case MS_EVICTOR_SIZE:
        return (fraction){1, {bytes, 1}};
    case MS_EVICTOR_MSPS:
    case MS_EVICTOR_ESIZE:
        return (fraction){(double)again_ns(state, s), {bytes, 1}};
    default:
        return (fraction){(double)again_ns(state, s), {bytes, stale}};
    }
}

/* The product below may have more digits than a double, and equals are told
 * apart by their last one: it is rounded once, as a division of integers is in
 * simrd's language. */
static double exact(fraction f)
{
    return (double)((long double)f.above /
                    ((long double)f.below[0] * (long double)f.below[1]));
}

/* A cost that is surely more than the least needs no second division. */
#define NEAR 1e-12

uint32_t ms_evictcosts_choose(ms_evictstate *state)
{
    uint32_t best = 0;
    double least = INFINITY;
    if (state->setup->heuristic == MS_EVICTOR_RANDOM)
        return any(state);
    for (uint32_t i = 0; i < state->n_pool; i++) {
        fraction f = cost_of(state, state->pool[i]);
        double below = f.below[0] * f.below[1];
        double cost = below > 0 ? f.above / below : INFINITY;
        if (cost - least > NEAR * fabs(cost))
            continue;
        if (below > 0)
            cost = exact(f);
        if (cost <= least) {
            least = cost;
            best = i;
        }
        if (cost == 0) /* as there: nothing is cheaper */
            break;
    }
    return best;
}
