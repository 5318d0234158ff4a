/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_POLICIES_DAGBLOCKS_H
#define MS_POLICIES_DAGBLOCKS_H

/* A DAG of nodes (nodedag.h) as blocks in a row.  A cut point is a node of
 * forward over which no edge of forward goes: all that comes behind it reads
 * what is before it through it alone (a dominator, where each node comes from
 * the first one).  Between two cut points lies a block, whose output is the
 * second one.
 *
 *     node      0 a   1 b   2 c     3 d       4 e   5 gd    6 gb    7 ga
 *     reads           0     0,1     2         3     4,2     5,1,0   6,0
 *
 *     cut points a, c, d; of b none, for c reads a over it
 *     blocks  a | b c | d | e;  gradients      | gb, ga |  gd
 *
 * A node of backward belongs to a block in which all of forward lies that it
 * reads, or at its input: to the last such block.  Where there is none the
 * blocks are joined.  What the backward of a block hands to those before it
 * are its nodes that they read. */

#include "policies/solve/nodedag.h"

typedef struct ms_dagblocks {
    uint32_t n;
    /* Per block, CSR: nodes of forward, the last of them its output; nodes of
     * backward; nodes of backward of later blocks that it, or one before it,
     * reads. */
    uint32_t *forward_at, *forward;
    uint32_t *backward_at, *backward;
    uint32_t *handed_at, *handed;
} ms_dagblocks;

ms_err ms_dagblocks_find(const ms_nodedag *dag, ms_arena *arena,
                         ms_dagblocks *blocks, ms_fault *fault);

#endif
