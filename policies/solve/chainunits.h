/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_POLICIES_CHAINUNITS_H
#define MS_POLICIES_CHAINUNITS_H

/* Private to policies/solve: the sizes of a chain in units of memory (bytes,
 * for one), and what parts of it need: what optimum.c and leastmemory.c share.
 * All are beside the input of the part's first stage, with the gradient of its
 * last one's output inside. */

#include "policies/solve/chain.h"

/* A stage in units. */
typedef struct ms_chainunits {
    uint64_t output, saved, forward_extra, backward_extra;
    uint64_t left; /* of all stages up to this one */
} ms_chainunits;

static inline uint64_t ms_chainunits_more(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* What the backwards of stages k to t leave. */
static inline uint64_t ms_chainunits_left(const ms_chainunits *stage,
                                          uint32_t k, uint32_t t)
{
    return stage[t].left - stage[k - 1].left;
}

/* The least units in which s can save for a chain to t. */
static inline uint64_t ms_chainunits_saved(const ms_chainunits *stage,
                                           uint32_t s, uint32_t t)
{
    return ms_chainunits_more(
        stage[t].output + stage[s].saved + stage[s].forward_extra,
        stage[s].output + stage[s].saved + stage[s].backward_extra +
            ms_chainunits_left(stage, s + 1, t));
}

/* One pass more over stages s to before end: highest of these acts, beside the
 * input of s; so_far is that of the stages before end - 1. */
static inline uint64_t ms_chainunits_pass(const ms_chainunits *stage,
                                          uint32_t s, uint32_t l,
                                          uint64_t so_far)
{
    uint64_t input = l == s ? 0 : stage[l - 1].output;
    return ms_chainunits_more(so_far,
                              input + stage[l].output + stage[l].forward_extra);
}

#endif
