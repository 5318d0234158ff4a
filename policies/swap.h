/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_POLICIES_SWAP_H
#define MS_POLICIES_SWAP_H

/* Private to swap.c and vdnn.c: a swap under way from one program to the
 * next.  Each way to swap is one function that is asked before and after each
 * run of a unit, and adds calls. */

#include "policies/saved.h"

typedef struct ms_swap {
    ms_saved saved;
    ms_program *program; /* the new one */
    ms_arena *arena;
    ms_fault *fault;
    const ms_policy_value *values;
    bool convolutions; /* vDNN: only the inputs of units that convolve */
    uint32_t te;       /* blocks that leave */
    uint8_t *brought;  /* per unit: its set was sent for, in this backward */
} ms_swap;

static inline bool ms_swap_is_forward(const ms_call *call)
{
    return call->verb == MS_RUN && call->pass == MS_FORWARD;
}

static inline bool ms_swap_is_backward(const ms_call *call)
{
    return call->verb == MS_RUN && call->pass != MS_FORWARD;
}

/* Adds a call of this verb on a set, in the name of `like`. */
ms_err ms_swap_emit(ms_swap *swap, const ms_call *like, ms_verb verb,
                    uint32_t set, uint8_t place, uint8_t flags);

/* vdnn.c */
ms_err ms_vdnn_around(ms_swap *swap, const ms_call *call, bool before);

#endif
