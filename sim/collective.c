/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The alpha-beta model by which NCCL chooses (specs/policies.md 1.7). */
#include "sim/sim.h"

#include <math.h>

/* Per protocol: the share of the link that it reaches, and in microseconds
 * what a collective and each of its hops takes (NVIDIA/nccl,
 * src/graph/tuning.cc, baseLat and hwLat). */
typedef struct protocol {
    const char *name;
    double share;
    double ring_us, tree_us;
    double nvlink_us, pcie_us, network_us; /* a hop of a ring */
    double tree_nvlink_us, tree_pcie_us, tree_network_us;
} protocol;

static const protocol protocols[] = {
    {"LL", 0.5, 6.6, 6.8, 0.6, 1.0, 2.7, 0.6, 1.0, 5.0},
    {"LL128", 0.92, 14.0, 14.0, 1.9, 2.5, 4.0, 1.25, 1.9, 8.5},
    {"Simple", 1.0, 8.4, 8.4, 3.4, 5.7, 14.0, 4.0, 4.0, 14.0},
};

#define TREE_SHARE 0.92 /* of a ring's bandwidth, all-reduce only */

static uint32_t nodes_of(const ms_ring *ring)
{
    uint32_t per_node = ring->ranks_per_node > 0 ? ring->ranks_per_node : 1;

    return (ring->ranks + per_node - 1) / per_node;
}

/* What the slowest link carries per second: a node's ranks send through the
 * network side by side. */
static double bus_bytes_per_s(const ms_ring *ring)
{
    uint32_t nodes = nodes_of(ring);
    uint32_t side_by_side =
        ring->ranks < ring->ranks_per_node ? ring->ranks : ring->ranks_per_node;
    double network = ring->network_bytes_per_s * side_by_side;

    if (nodes == 1 || (side_by_side > 1 && ring->node_bytes_per_s < network))
        return ring->node_bytes_per_s;
    return network;
}

static double ring_us(const ms_ring *ring, const protocol *p, bool twice)
{
    double steps = (twice ? 2.0 : 1.0) * (ring->ranks - 1);
    double between = (twice ? 2.0 : 1.0) * (nodes_of(ring) - 1);
    double hop = ring->nvlink ? p->nvlink_us : p->pcie_us;

    return p->ring_us + (steps - between) * hop + between * p->network_us;
}

static double tree_us(const ms_ring *ring, const protocol *p)
{
    double nodes = nodes_of(ring), hop = p->tree_pcie_us;

    if (ring->nvlink)
        hop = p->tree_nvlink_us;
    return p->tree_us + 2 * ((ring->ranks / nodes - 1) * hop +
                             log2(nodes) * p->tree_network_us);
}

uint64_t ms_collective_sent_bytes(const ms_ring *ring, ms_collective kind,
                                  uint64_t bytes)
{
    if (ring->ranks < 2)
        return 0;
    uint64_t sent = bytes - bytes / ring->ranks;
    return kind == MS_ALL_REDUCE ? 2 * sent : sent;
}

uint64_t ms_collective_ns(const ms_ring *ring, ms_collective kind,
                          uint64_t bytes)
{
    bool twice = kind == MS_ALL_REDUCE;
    double best = INFINITY;

    if (ring->ranks < 2)
        return 0;
    double sent = (double)ms_collective_sent_bytes(ring, kind, bytes);
    double rate = bus_bytes_per_s(ring) / 1e6; /* bytes per microsecond */
    for (size_t i = 0; i < sizeof protocols / sizeof *protocols; i++) {
        const protocol *p = &protocols[i];
        double us = ring_us(ring, p, twice) + sent / (rate * p->share);
        best = fmin(best, us);
        if (twice)
            best = fmin(best, tree_us(ring, p) +
                                  sent / (rate * p->share * TREE_SHARE));
    }
    return (uint64_t)(best * 1e3 + 0.5);
}
