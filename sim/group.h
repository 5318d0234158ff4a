/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_SIM_GROUP_H
#define MS_SIM_GROUP_H

/* The table of groups: the communicators of a job.  A collective, an op that
 * gathers and a storage that ranks share name a row of it.
 *
 * Nouns.  A group is a way to divide the job's ranks among communicators of
 * `ranks` members each, `stride` apart: rank r meets r + stride * k.  So the
 * order of ranks decides what lies within a node: with 8 GPUs per node a group
 * of stride 1 has 8 of its members there, one of stride 8 has one.  Links are
 * what carries it.  A queue is the stream on which its collectives run: groups
 * with queues of their own overlap, those on one queue take turns.
 *
 * Invariants: ranks of 0 and 1 are a rank that meets nobody; the first rows
 * are the roles of a job, at their places whether it has them or not; a
 * program's own rows stand behind them.
 *
 * A worked example: 16 ranks on two nodes of 8, fsdp:dp=16,shard=4 (HSDP).
 * Four neighbours divide the states, and the four ranks that hold the same
 * part, two on each node, sum their gradients once more:
 *
 *     group 0 = data ranks 4 stride 1 node 8 queue comm
 *     group 1 = replicate ranks 4 stride 4 node 2 queue outer
 *     reduce 3 to shard             reduce-scatter among ranks 0, 1, 2, 3
 *     reduce 3 to shard group 1     all-reduce among ranks 0, 4, 8, 12 */

#include <stdbool.h>
#include <stdint.h>

/* Bus bandwidth of a collective by size, as nccl-tests measures it on so
 * many ranks: points ascend in bytes, and so does the time they take. */
typedef struct ms_curve_point {
    uint64_t bytes;
    double bytes_per_s;
} ms_curve_point;
typedef struct ms_curve {
    uint32_t ranks, ranks_per_node;
    uint32_t kind; /* ms_collective (sim/replay/collective.h) */
    uint32_t n;    /* at least 1 */
    const ms_curve_point *points;
} ms_curve;

/* The links between ranks; rates per rank and direction, as reached, not as
 * printed. */
typedef struct ms_links {
    bool nvlink; /* within a node; else PCIe */
    double node_bytes_per_s, network_bytes_per_s;
    double peer_bytes_per_s; /* of the link of a pair; 0: a switch */
    double nvls_share; /* where the switch reduces, of its links; else 0 */
    uint32_t
        compute_capability; /* of the GPUs, as CUDA counts (80: A100), which
                               NCCL's tuner looks at; 0: another maker's */
    const ms_curve *curves; /* the one of the kind that has as many ranks, so
                               many on a node, is used */
    uint32_t n_curves;
} ms_links;

/* What the ranks of a group do together. */
typedef enum ms_collective {
    MS_ALL_GATHER,
    MS_REDUCE_SCATTER,
    MS_ALL_REDUCE,
    MS_BROADCAST,
    MS_ALL_TO_ALL,
    MS_SEND, /* from one rank to another: point to point */
    MS_N_COLLECTIVES
} ms_collective;

/* How an all-reduce goes; every other collective has one way only. */
typedef enum ms_algorithm {
    MS_ALGORITHM_FASTEST, /* whatever NCCL has that is fastest for its size
                             (sim/replay/collective.h) */
    MS_ALGORITHM_RING,
    MS_ALGORITHM_TREE,
    MS_ALGORITHM_NESTED, /* in the node, between nodes, in the node: what a
                            program may ask for, and NCCL has not */
    MS_ALGORITHM_SWITCH, /* reduced in the nodes' switches (NVLS); a ring where
                            they cannot */
    MS_N_ALGORITHMS
} ms_algorithm;

/* The rows of every job. */
typedef enum ms_group_role {
    MS_GROUP_DATA,        /* the ranks that divide the states; where nothing is
                             divided, those with other samples */
    MS_GROUP_REPLICATE,   /* those that hold the same part (HSDP) */
    MS_GROUP_SECONDARY,   /* neighbours that divide weights between forward and
                             backward (FSDP2's reshard_after_forward, ZeRO++) */
    MS_GROUP_NODE,        /* those on one node */
    MS_GROUP_ACROSS,      /* those at the same place of each node */
    MS_GROUP_EXPERT_DATA, /* those that divide the states of experts, where
                             others than the rest's do */
    MS_GROUP_EXPERT_REPLICATE, /* and those that hold the same part of them */
    MS_GROUP_PIPELINE,      /* the stages of one model, the ranks of a plan */
    MS_GROUP_TENSOR,        /* those that split each layer of one model */
    MS_GROUP_CONTEXT,       /* those that divide a sequence */
    MS_GROUP_EXPERT,        /* those that divide the experts of a layer */
    MS_GROUP_EXPERT_TENSOR, /* those that split each expert */
    MS_N_GROUP_ROLES
} ms_group_role;

typedef struct ms_group {
    const char *name;
    uint32_t ranks, stride;
    uint32_t node_ranks; /* how many of its ranks a node has room for; 0: 1 */
    uint8_t algorithm;   /* ms_algorithm */
    uint8_t queue;       /* ms_stream_kind: COMM or OUTER */
    ms_links links;
} ms_group;

/* Of the roles, and of any other row. */
#define MS_GROUP_NAMES (MS_N_GROUP_ROLES + 1)
extern const char *const ms_group_names[MS_GROUP_NAMES];
extern const char *const ms_group_algorithms[MS_N_ALGORITHMS];
extern const char *const ms_group_collectives[MS_N_COLLECTIVES];

/* Neighbours on a node with so many GPUs: a group of `ranks` members `stride`
 * apart, on the queue of its role.  Its links are not set. */
ms_group ms_group_of(ms_group_role role, uint32_t ranks, uint32_t stride,
                     uint32_t gpus_per_node);
/* On how many nodes a group lies; at least 1. */
uint32_t ms_group_nodes(const ms_group *group);

#endif
