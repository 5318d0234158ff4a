/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_POLICIES_NODEDAG_H
#define MS_POLICIES_NODEDAG_H

/* DAGs of nodes that can be made again, and orders that run them in less
 * memory: the model of Checkmate (Jain et al., "Checkmate: Breaking the Memory
 * Wall with Optimal Tensor Rematerialization", MLSys 2020, section 4) and of
 * pebbling.
 *
 * To make node v takes cost_ns[v]; what it reads is there then, and its output
 * of bytes[v] beside all that is there.  What is there may be dropped at any
 * time for nothing, and made again.  Gradients are nodes as any other.  All
 * nodes that nobody reads are to be made once, and need not stay.
 *
 * A worked example, a chain of two with its gradients, 1 byte each:
 *
 *     node     0 f0     1 loss   2 b1         3 b0
 *     reads             0        1 0          2 0
 *
 *     make 0 (1 byte), 1 (2), 2 (3), drop 1, make 3 (3): 3 bytes */

#include "policies/common/policy.h"

typedef struct ms_nodedag {
    uint32_t n;
    const uint64_t *cost_ns, *bytes; /* per node */
    const uint32_t *dep_at, *dep;    /* CSR: earlier nodes */
    const uint8_t *is_backward;      /* a flag per node */
} ms_nodedag;

/* A measured DAG; MS_EUSAGE: some of the graph's ops make several tensors, or
 * views, as those of a log do. */
ms_err ms_nodedag_find(const ms_graph *graph, ms_arena *arena, ms_nodedag *dag,
                       ms_fault *fault);

/* What an act is on: an op of the graph, or one of its storages. */
typedef enum ms_nodeact {
    MS_NODEACT_MAKE, /* op */
    MS_NODEACT_DROP  /* storage */
} ms_nodeact;

/* Acts, in their order: MS_NODEPLAN(act, id). */
#define MS_NODEPLAN(act, id) ((uint32_t)(id) << 1 | (uint32_t)(act))
#define MS_NODEPLAN_ACT(item) ((item)&1u)
#define MS_NODEPLAN_ID(item) ((item) >> 1)
typedef struct ms_nodeplan {
    uint32_t n, capacity;
    uint32_t *items;
} ms_nodeplan;

ms_err ms_nodedag_add(ms_nodeplan *plan, ms_nodeact act, uint32_t id,
                      ms_arena *arena, ms_fault *fault);

/* ---- dagcost.c ----------------------------------------------------------- */

/* What a plan costs, made node by node.  MS_EINPUT: it is none. */
ms_err ms_dagcost_find(const ms_nodedag *dag, const ms_nodeplan *plan,
                       ms_arena *scratch, uint64_t *time_ns,
                       uint64_t *peak_bytes, ms_fault *fault);
/* The plan that makes these nodes, and drops each behind the last of them that
 * reads it before it is made again: no plan of the same makes takes less. */
ms_err ms_dagcost_plan(const ms_nodedag *dag, const uint32_t *made, uint32_t n,
                       ms_arena *arena, ms_nodeplan *plan, ms_fault *fault);
/* In the order of the nodes, each dropped behind its last reader. */
uint64_t ms_dagcost_all(const ms_nodedag *dag, ms_arena *scratch);

/* ---- pebble.c ------------------------------------------------------------ */

/* The plan of least time in the budget, of all there are: A* over sets of what
 * is there, with the time of what is yet to be made at least once as its bound
 * (consistent, so that no set is looked at twice).  What is there is dropped
 * only where the next node would not fit, and no more than that takes: dropped
 * later it costs the same.  Where all fits, of however many nodes, each is made
 * once. */
#define MS_PEBBLE_NODES 64u
#define MS_PEBBLE_STATES (UINT32_C(1) << 21)
typedef uint64_t ms_pebble_set; /* of nodes: a bit each */
typedef struct ms_pebble {
    ms_nodeplan plan;
    uint64_t time_ns;
    bool ended;        /* false: more nodes, or sets, than it looks at */
    uint32_t n_states; /* sets that it looked at */
} ms_pebble;

/* MS_EINFEASIBLE: names the least budget, where the search for it ends. */
ms_err ms_pebble_find(const ms_nodedag *dag, uint64_t budget_bytes,
                      ms_arena *arena, ms_pebble *pebble, ms_fault *fault);

/* The same search on a part of a DAG, of at most MS_PEBBLE_NODES nodes. */
typedef struct ms_pebble_task {
    ms_pebble_set given; /* is there, or made, before */
    ms_pebble_set ends;  /* to be made; nobody reads them, so they go at once */
    ms_pebble_set goal;  /* to be there at the end */
    /* When node hand (MS_NONE: none; an end) is made, at most hand_bytes are
     * there, and `handed` comes: nodes that cannot be made. */
    uint32_t hand;
    ms_pebble_set handed;
    uint64_t hand_bytes;
    uint32_t most_states; /* it gives up behind so many */
} ms_pebble_task;

typedef struct ms_pebble_part {
    bool ended, found; /* found: there is a plan */
    uint64_t time_ns;
    uint32_t n, n_states;
    uint8_t *made; /* nodes, in their order */
} ms_pebble_part;

ms_err ms_pebble_part_find(const ms_nodedag *dag, const ms_pebble_task *task,
                           uint64_t budget_bytes, ms_arena *arena,
                           ms_pebble_part *part, ms_fault *fault);

#endif
