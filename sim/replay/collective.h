/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_SIM_COLLECTIVE_H
#define MS_SIM_COLLECTIVE_H

/* What a collective takes. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bus bandwidth of an all-reduce by size, as nccl-tests measures it on so
 * many ranks: points ascend in bytes, and so does the time they take. */
typedef struct ms_curve_point {
    uint64_t bytes;
    double bytes_per_s;
} ms_curve_point;
typedef struct ms_curve {
    uint32_t ranks, ranks_per_node;
    uint32_t n; /* at least 1 */
    const ms_curve_point *points;
} ms_curve;

/* The ranks that share a model's states and the links between them; rates per
 * rank and direction, as reached, not as printed.  0 or 1 ranks: nothing
 * takes time. */
typedef struct ms_ring {
    uint32_t ranks, ranks_per_node;
    bool nvlink; /* within a node; else PCIe */
    double node_bytes_per_s, network_bytes_per_s;
    double peer_bytes_per_s; /* of the link of a pair; 0: a switch */
    double nvls_share; /* where the switch reduces, of its links; else 0 */
    const ms_curve *curves;
    uint32_t n_curves;
} ms_ring;

typedef enum ms_collective {
    MS_ALL_GATHER,
    MS_REDUCE_SCATTER,
    MS_ALL_REDUCE,
    MS_BROADCAST,
    MS_ALL_TO_ALL,
    MS_SEND /* from one rank to another: point to point */
} ms_collective;

/* The curve of so many ranks where there is one; else NCCL's own model
 * (NVIDIA/nccl src/graph/tuning.cc): the fastest of its algorithms and
 * protocols, alpha + bytes / bandwidth each.  bytes: of the whole, all ranks
 * together; of an all-to-all what a rank sends and keeps. */
uint64_t ms_collective_ns(const ms_ring *ring, ms_collective kind,
                          uint64_t bytes);
/* What each rank sends, and receives: (n - 1) / n of the bytes; twice that for
 * an all-reduce; the bytes themselves for a broadcast and a message. */
uint64_t ms_collective_sent_bytes(const ms_ring *ring, ms_collective kind,
                                  uint64_t bytes);
/* Of these what goes between nodes, on average over a node's ranks: what
 * passes the nodes' borders, which the node's ranks carry together; the same
 * as ms_collective_ns takes there. */
uint64_t ms_collective_network_bytes(const ms_ring *ring, ms_collective kind,
                                     uint64_t bytes);

#endif
