/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_POLICIES_ESTIMATES_H
#define MS_POLICIES_ESTIMATES_H

/* The best of many tensors that may move, without a look at each.  Of a tensor
 * that was tried it is known how late its copies would be, and why: which copy
 * ends last before one of them can begin, by which one it has to have ended.
 * From then on what is queued between those two makes it later by as long as
 * that takes, and what comes later between their calls, sooner by no more than
 * that; anything else makes it later, if it does anything.  So what is known
 * stays an estimate from below, and mostly a true one.  Tensors of as many
 * bytes are a tree: a change is added to a node where it is one for all below
 * it, and a search goes on only below nodes that may be better than what was
 * found; what it tries there is known better then.
 *
 *     a tensor between copies           [ a     ][ ? ][ b   ]
 *     late by                           end of a + its own - begin of b
 *     a copy of 4 is queued before b    4 more
 *     a waits for 3, b for 5            no change of 3, then 2 less */

#include "sim/base/base.h"

/* What is estimated of a tensor: how late its copies out and in are, and, less
 * than zero, for how long it is away between them. */
enum {
    MS_ESTIMATES_OUT,
    MS_ESTIMATES_IN,
    MS_ESTIMATES_AWAY,
    MS_ESTIMATES_TERMS
};

/* Along what changes come: places in the queues of both lanes, and calls. */
enum {
    MS_ESTIMATES_OUT_PLACE,
    MS_ESTIMATES_IN_PLACE,
    MS_ESTIMATES_CALL,
    MS_ESTIMATES_AXES
};

/* Where changes count, behind a first and before a last, of each of the tensors
 * below a node: between which numbers these are.  None: least > most. */
typedef struct ms_estimates_span {
    uint32_t least_first, most_first, least_last, most_last;
} ms_estimates_span;

typedef struct ms_estimates_term {
    int64_t least_ns, more_ns; /* more_ns: to add to both halves */
    ms_estimates_span span[MS_ESTIMATES_AXES];
} ms_estimates_term;

/* Of the tensors below it; none: last_call is 0. */
typedef struct ms_estimates_node {
    uint32_t id;                    /* the least */
    uint32_t first_call, last_call; /* idle between these at most */
    double rate;                    /* the highest of ms_estimates_rate */
    ms_estimates_term term[MS_ESTIMATES_TERMS];
    /* The least of late out and late in together; or as much as the least of
     * ends of copies out, where one would have to begin before the step. */
    int64_t late_ns, end_ns;
} ms_estimates_node;

typedef struct ms_estimates {
    uint32_t *leaf, *kind_of; /* per tensor: its node, of which kind */
    /* Per kind: nodes[root + i] is node i; a tensor of it. */
    uint32_t *root, *n_leaves, *sample, n;
    ms_estimates_node *nodes;
} ms_estimates;

/* How tensors are compared. */
typedef struct ms_estimates_way {
    /* At most what one below the node scores, which are like a tensor. */
    double (*most)(void *of, const ms_estimates_node *node, uint32_t like);
    /* What it scores; may tell more of it.  NULL: the most. */
    double (*exact)(void *of, ms_estimates_node *leaf);
    void *of;
} ms_estimates_way;

/* Of the highest score the first id.  MS_NONE: no tensor is idle in the call,
 * or none scores as much. */
typedef struct ms_estimates_best {
    uint32_t tensor;
    double score;
} ms_estimates_best;

/* Nothing is in the trees.  Faults: MS_ENOMEM. */
ms_err ms_estimates_open(ms_estimates *estimates, const uint64_t *bytes,
                         uint32_t n, ms_arena *arena, ms_fault *fault);
/* Of a tensor that is idle between these calls nothing is known, or none is
 * there (last_call 0). */
void ms_estimates_set(ms_estimates *estimates, uint32_t tensor,
                      uint32_t first_call, uint32_t last_call);
void ms_estimates_rate(ms_estimates *estimates, uint32_t tensor, double rate);
/* A term that is so much at least, but for changes; all spans empty. */
ms_estimates_term ms_estimates_known(int64_t least_ns);
ms_estimates_span ms_estimates_between(uint32_t first, uint32_t last);
/* So much is added to all terms in whose spans it is. */
void ms_estimates_add(ms_estimates *estimates, uint32_t axis, uint32_t where,
                      int64_t ns);
/* The last of spans of calls (of a term for copies in: the first) that is a
 * call is now another, and so much is added to these. */
void ms_estimates_move(ms_estimates *estimates, uint32_t term, uint32_t call,
                       uint32_t other, int64_t ns);
/* Among those that are idle in the call and score least or more. */
ms_estimates_best ms_estimates_find(ms_estimates *estimates, uint32_t call,
                                    const ms_estimates_way *way, double least);

#endif
