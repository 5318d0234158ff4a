/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "policies/solve/chain.h"

#include <assert.h>

/* C(c + r, c): so many stages can be run backward with c checkpoints while each
 * runs forward at most r times; UINT64_MAX where it is more. */
static uint64_t reach(int64_t c, int64_t r)
{
    uint64_t value = 1;
    if (c < 0 || r < 0)
        return 0;
    int64_t few = c < r ? c : r, all = c + r;
    for (int64_t k = 1; k <= few; k++) {
        __uint128_t next =
            (__uint128_t)value * (uint64_t)(all - few + k) / (uint64_t)k;
        if (next > UINT32_MAX)
            return UINT64_MAX;
        value = (uint64_t)next;
    }
    return value;
}

/* The least number of forward runs of a stage. */
static uint32_t runs(uint32_t stages, uint32_t slots)
{
    uint32_t r = 0;
    while (reach(slots, r) < stages)
        r++;
    return r;
}

uint64_t ms_binomial_advances(uint32_t stages, uint32_t slots)
{
    uint64_t r = runs(stages, slots), sum = 0;
    /* C(c + r, c + 1) is the sum of C(c + k, c) over k < r, each less than the
     * number of stages. */
    for (uint64_t k = 0; k < r; k++)
        sum += reach(slots, (int64_t)k);
    return r * stages - sum;
}

/* How many of l stages lie before the next checkpoint: of the best numbers,
 * which are all from the first of these two to C(c + r - 1, c), the least. */
static uint32_t split(uint32_t l, uint32_t slots)
{
    int64_t c = slots, r = runs(l, slots);
    uint64_t least = reach(c, r - 2), behind = reach(c - 1, r);
    if (behind < l && l - behind > least)
        least = l - behind;
    return least > 1 ? (uint32_t)least : 1;
}

typedef struct span {
    uint32_t first, last, slots;
} span;

typedef struct writer {
    ms_chain_plan *plan;
    ms_arena *arena;
    ms_fault *fault;
} writer;

static ms_err add(const writer *w, ms_chain_verb verb, uint32_t stage)
{
    return ms_chain_add(w->plan, verb, stage, w->arena, w->fault);
}

static ms_err turn(const writer *w, uint32_t stage)
{
    MS_TRY(add(w, MS_CHAIN_SAVE, stage));
    return add(w, MS_CHAIN_BACKWARD, stage);
}

/* With one checkpoint each stage is reached from it anew. */
static ms_err write_alone(const writer *w, const span *s)
{
    for (uint32_t l = s->last; l >= s->first; l--) {
        MS_TRY(ms_chain_advance(w->plan, s->first, l, w->arena, w->fault));
        MS_TRY(turn(w, l));
    }
    return MS_OK;
}

/* The spans that are left lie on a stack: each has one checkpoint more than
 * those above it, so that there are at most as many as slots. */
ms_err ms_binomial_plan(uint32_t stages, uint32_t slots, ms_arena *arena,
                        ms_chain_plan *plan, ms_fault *fault)
{
    writer w = {plan, arena, fault};
    uint32_t most = slots < stages ? slots : stages, n = 0;
    assert(stages > 0 && slots > 0);
    *plan = (ms_chain_plan){0};
    span *left = ms_arena_take_raw(arena, most + 1u, sizeof *left);
    if (left == NULL)
        return ms_fail_nomem(fault);
    left[n++] = (span){1, stages, most};
    while (n > 0) {
        span s = left[--n];
        uint32_t length = s.last - s.first + 1;
        if (length == 1) {
            MS_TRY(turn(&w, s.first));
        } else if (s.slots == 1) {
            MS_TRY(write_alone(&w, &s));
        } else {
            uint32_t middle = s.first + split(length, s.slots);
            MS_TRY(ms_chain_advance(plan, s.first, middle, arena, fault));
            left[n++] = (span){s.first, middle - 1, s.slots};
            left[n++] = (span){middle, s.last, s.slots - 1};
        }
    }
    return MS_OK;
}
