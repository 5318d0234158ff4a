/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_POLICIES_UNSHARDUNITS_H
#define MS_POLICIES_UNSHARDUNITS_H

/* Private to unshard.c: the units of fully sharded data parallelism, with the
 * sets and buffers of their collectives. */

#include "policies/share/unshard.h"

/* A gradient that ranks which split layers sum by itself, in a copy. */
typedef struct ms_unshard_sum {
    uint32_t set, buffer;
} ms_unshard_sum;

/* What is gathered and reduced together. */
typedef struct ms_unshard_unit {
    uint32_t weights, grads; /* sets */
    uint8_t group;           /* whose ranks divide them */
    uint64_t part_bytes;     /* of all weights, padded, of one rank, in the
                                format of whole copies */
    uint64_t part_elements;  /* of those that are trained, padded, likewise */
    uint8_t part_width;      /* bytes of such an element */
    uint64_t grad_bytes;     /* of an element of the whole gradients */
    bool kept;               /* .grad exists when the step starts */
    bool parked;             /* divided among reshard_ranks since its forward */
    bool whole, flying;      /* flying: the all-gather is under way */
    uint32_t cast, gathered; /* buffers of the all-gather, or MS_NONE */
    uint32_t small;          /* the part while it is parked */
    uint32_t flat, in, out;  /* of the reduce-scatter */
    uint32_t place, n_weight; /* in order; how many weights */
    uint32_t n_sums;          /* partial gradients */
    ms_unshard_sum *sums;
} ms_unshard_unit;

typedef struct ms_unshardunits {
    const ms_graph *graph;
    const ms_unshard *options;
    ms_arena *arena;
    ms_fault *fault;
    ms_program *program;  /* gets the sets and the buffers */
    uint32_t first, last; /* units of the graph: the module's */
    uint32_t block;       /* the module's first: unit 0 */
    ms_unshard_unit *unit;
    uint32_t n_units, root; /* root + 1, root + 2: before, behind the blocks */
    uint32_t n_plain; /* the experts of unit f, where other ranks divide them,
                         are unit f + n_plain; without such n_units */
    uint32_t *order, n_order; /* units but the root, as forward runs them */
} ms_unshardunits;

/* Fills what is below last. */
ms_err ms_unshardunits_open(ms_unshardunits *units);
/* The unit to which unit u of the graph belongs. */
uint32_t ms_unshardunits_of(const ms_unshardunits *units, uint32_t u);

#endif
