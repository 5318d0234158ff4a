/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The alpha-beta model by which NCCL chooses (src/graph/tuning.cc of
 * NVIDIA/nccl, 5067397c and b6475625; busbw is that of nccl-tests,
 * doc/PERFORMANCE.md), and the size curves that nccl-tests measured. */
#include "sim/replay/collective.h"

#include <math.h>
#include <stddef.h>

/* Per protocol: the share of the link that it reaches, and in microseconds
 * what a collective and each of its hops takes (NVIDIA/nccl,
 * src/graph/tuning.cc, baseLat and hwLat). */
#define N_SIZES 23u
typedef struct protocol {
    const char *name;
    double share;
    double ring_us, tree_us;
    double nvlink_us, pcie_us, network_us; /* a hop of a ring */
    double tree_nvlink_us, tree_pcie_us, tree_network_us;
    /* In tenths, what a tree reaches of its rate by size: of 64 bytes and each
     * power of two above (treeCorrectionFactor; in one node it was not seen) */
    uint8_t tree_tenths[N_SIZES];
} protocol;

static const protocol protocols[] = {
    {"LL", 0.5, 6.6, 6.8, 0.6, 1.0, 2.7, 0.6, 1.0, 5.0, {10, 10, 10, 10, 9, 8,
                                                         7,  7,  7,  7,  6, 5,
                                                         4,  4,  5,  6,  7, 8,
                                                         9,  10, 10, 10, 10}},
    {"LL128", 0.92, 14.0, 14.0, 1.9, 2.5, 4.0, 1.25, 1.9, 8.5, {10, 10, 10, 10,
                                                                10, 9,  8,  8,
                                                                8,  7,  6,  6,
                                                                6,  6,  6,  6,
                                                                8,  9,  9,  9,
                                                                9,  10, 10}},
    {"Simple", 1.0, 8.4, 8.4, 3.4, 5.7, 14.0, 4.0, 4.0, 14.0, {9, 9, 9, 9, 9, 9,
                                                               9, 8, 7, 6, 6, 5,
                                                               5, 5, 5, 6, 7, 8,
                                                               7, 7, 8, 9, 9}},
};

#define LONGEST_NS 1e15 /* 11 days; sums of many stay in range */
#define TREE_SHARE 0.92 /* of a ring's bandwidth, all-reduce only */
/* What trees of several nodes carry at most, per second both ways together, on
 * GPUs before sm90: of two nodes, of more (NVIDIA/nccl 01afd20a, maxTreeBw). */
#define TREE_OF_TWO 110e9
#define TREE_OF_MORE 80e9
#define POST_US 1.0 /* a ring's hops where some go through the network */
/* Reduction in the switch (NVLS): NCCL's tuner again.  The bytes themselves
 * travel, not twice (n - 1) / n of them, at 5 / 6 of the links. */
#define NVLS_US 25.0
#define NVLS_NETWORK_US 18.0
#define NVLS_ALGORITHM (5.0 / 6.0)

/* Of the ranks: those of a node, and how many nodes. */
typedef struct span {
    double ranks, local, nodes;
} span;

static span span_of(const ms_group *group)
{
    uint32_t per_node = group->node_ranks > 0 ? group->node_ranks : 1;
    uint32_t local = group->ranks < per_node ? group->ranks : per_node;
    return (span){
        .ranks = group->ranks, .local = local, .nodes = ms_group_nodes(group)};
}

/* ---- what is sent -------------------------------------------------------- */

uint64_t ms_collective_sent_bytes(const ms_group *group, ms_collective kind,
                                  uint64_t bytes)
{
    if (group->ranks < 2)
        return 0;
    uint64_t sent = bytes - bytes / group->ranks;
    switch (kind) {
    case MS_ALL_REDUCE:
        return 2 * sent;
    case MS_BROADCAST:
    case MS_SEND:
        return bytes;
    default:
        return sent;
    }
}

/* ---- rings and trees ----------------------------------------------------- */

/* What a node's ranks reach among themselves.  Where every pair has a link of
 * its own and there is no switch, few ranks have few links. */
static double node_rate(const ms_group *group)
{
    double links = span_of(group).local - 1;
    double mesh = group->links.peer_bytes_per_s * (links > 1 ? links : 1);
    if (mesh > 0 && mesh < group->links.node_bytes_per_s)
        return mesh;
    return group->links.node_bytes_per_s;
}

/* What the slowest link of a ring carries per second: a node's ranks send
 * through the network side by side. */
static double ring_rate(const ms_group *group)
{
    span g = span_of(group);
    double network = group->links.network_bytes_per_s * g.local;
    if (g.nodes == 1 || (g.local > 1 && node_rate(group) < network))
        return node_rate(group);
    return network;
}

static double hop_us(const ms_group *group, const protocol *p)
{
    return group->links.nvlink ? p->nvlink_us : p->pcie_us;
}

static double moving_us(double bytes, double bytes_per_s)
{
    return bytes / bytes_per_s * 1e6;
}

/* Ring algorithms; rounds: 2 for an all-reduce, which goes round twice. */
static double ring_us(const ms_group *group, const protocol *p, double rounds,
                      double sent)
{
    span g = span_of(group);
    double steps = rounds * (g.ranks - 1), hop = hop_us(group, p);
    double between = g.nodes < 2 ? 0 : rounds < 2 ? g.nodes - 1 : 2 * g.nodes;
    if (g.nodes > 1)
        hop = fmax(hop, POST_US);
    return p->ring_us + fmax(steps - between, 0) * hop +
           between * p->network_us +
           moving_us(sent, ring_rate(group) * p->share);
}

/* What a tree reaches of its rate, by size; between two sizes on a line. */
static double tree_share(const ms_group *group, const protocol *p, double bytes)
{
    double at = log2(fmax(bytes, 64) / 64);
    uint32_t i = (uint32_t)at;
    if (span_of(group).nodes < 2)
        return TREE_SHARE;
    if (i + 1 >= N_SIZES)
        return TREE_SHARE;
    double tenths = p->tree_tenths[i] +
                    (at - i) * (p->tree_tenths[i + 1] - p->tree_tenths[i]);
    return TREE_SHARE * tenths / 10;
}

/* What leaves a node: of two, each of NCCL's two trees carries half of the
 * bytes one way and half the other; of more, an inner node has two children,
 * and is a leaf of the other tree. */
static double tree_leaves(const ms_group *group, double bytes)
{
    return span_of(group).nodes > 2 ? 2 * bytes : bytes;
}

/* What the slowest link of a tree takes for all bytes, which go up and down a
 * chain in each node. */
static double tree_moving_us(const ms_group *group, double bytes)
{
    span g = span_of(group);
    double network = group->links.network_bytes_per_s * g.local;
    bool older = group->links.compute_capability > 0 &&
                 group->links.compute_capability < 90;
    double us = moving_us(tree_leaves(group, bytes), network);
    if (g.local > 1)
        us = fmax(us, moving_us(2 * bytes, node_rate(group)));
    if (older)
        us = fmax(
            us, moving_us(2 * bytes, g.nodes > 2 ? TREE_OF_MORE : TREE_OF_TWO) *
                    TREE_SHARE);
    return us;
}

static double tree_us(const ms_group *group, const protocol *p, double bytes,
                      double sent)
{
    span g = span_of(group);
    double hop = group->links.nvlink ? p->tree_nvlink_us : p->tree_pcie_us;
    double moving = g.nodes > 1 ? tree_moving_us(group, bytes)
                                : moving_us(sent, ring_rate(group));
    return p->tree_us +
           2 * ((g.ranks / g.nodes - 1) * hop +
                log2(g.nodes) * p->tree_network_us) +
           moving / (p->share * tree_share(group, p, bytes));
}

/* ---- all-reduce of several nodes ----------------------------------------- */

/* The part between nodes: each rank reduces its share of the bytes with its
 * peers of the other nodes, over its own link to the network. */
static double between_us(const ms_group *group, double bytes)
{
    span g = span_of(group);
    double sent = 2 * (g.nodes - 1) / g.nodes * bytes / g.local;
    return g.nodes > 1 ? moving_us(sent, group->links.network_bytes_per_s) : 0;
}

/* Reduce-scatter in the node, all-reduce between nodes, all-gather in the
 * node; the phases of different chunks overlap (stas00/ml-engineering,
 * network/README.md), so that the slower of the two links counts.  NCCL has no
 * such way: only who asks for it gets it. */
static double nested_us(const ms_group *group, const protocol *p, double bytes)
{
    span g = span_of(group);
    double within =
        moving_us(2 * (g.local - 1) / g.local * bytes, node_rate(group));
    return p->ring_us + 2 * (g.local - 1) * hop_us(group, p) +
           2 * (g.nodes - 1) * p->network_us +
           fmax(within, between_us(group, bytes)) / p->share;
}

/* The switch of each node reduces; a tree joins the nodes: of two each sends
 * the bytes once, of more twice. */
static double nvls_us(const ms_group *group, double bytes)
{
    span g = span_of(group);
    double within =
        moving_us(bytes, node_rate(group) * group->links.nvls_share);
    double between =
        g.nodes < 2 ? 0
                    : moving_us(tree_leaves(group, bytes),
                                group->links.network_bytes_per_s * g.local);
    return NVLS_US + 2 * log2(g.nodes) * NVLS_NETWORK_US +
           fmax(within, between) / NVLS_ALGORITHM;
}

/* How one algorithm would do it, or forever where it cannot: a tree of
 * switches needs switches, nesting needs nodes with several ranks. */
static double one_way_us(const ms_group *group, const protocol *p,
                         ms_algorithm algorithm, double bytes, double sent)
{
    span g = span_of(group);
    switch (algorithm) {
    case MS_ALGORITHM_TREE:
        return tree_us(group, p, bytes, sent);
    case MS_ALGORITHM_NESTED:
        return g.nodes > 1 && g.local > 1 ? nested_us(group, p, bytes)
                                          : INFINITY;
    case MS_ALGORITHM_SWITCH:
        return group->links.nvls_share > 0 && g.local > 1
                   ? nvls_us(group, bytes)
                   : INFINITY;
    default:
        return ring_us(group, p, 2, sent);
    }
}

/* How it goes with a protocol: as forced, or as is fastest. */
static double all_reduce_us(const ms_group *group, const protocol *p,
                            double bytes, double sent, ms_algorithm *way)
{
    static const ms_algorithm nccl[] = {MS_ALGORITHM_TREE, MS_ALGORITHM_SWITCH};
    ms_algorithm forced = (ms_algorithm)group->algorithm;
    double best = one_way_us(group, p, MS_ALGORITHM_RING, bytes, sent);
    *way = MS_ALGORITHM_RING;
    if (forced != MS_ALGORITHM_FASTEST) {
        double us = one_way_us(group, p, forced, bytes, sent);
        *way = us < INFINITY ? forced : *way;
        return us < INFINITY ? us : best;
    }
    for (size_t i = 0; i < sizeof nccl / sizeof *nccl; i++) {
        double us = one_way_us(group, p, nccl[i], bytes, sent);
        *way = us < best ? nccl[i] : *way;
        best = fmin(best, us);
    }
    return best;
}

/* ---- chains and messages ------------------------------------------------- */

/* A chain that passes pieces on: NCCL counts one hop. */
static double broadcast_us(const ms_group *group, const protocol *p,
                           double bytes)
{
    bool away = span_of(group).nodes > 1;
    return p->ring_us + (away ? p->network_us : hop_us(group, p)) +
           moving_us(bytes, ring_rate(group) * p->share);
}

/* All messages leave at once: those to the own node and those to others do
 * not share a link. */
static double all_to_all_us(const ms_group *group, const protocol *p,
                            double bytes)
{
    span g = span_of(group);
    double within =
        moving_us((g.local - 1) / g.ranks * bytes, node_rate(group));
    double away = g.ranks - g.local;
    double hop = away > 0 ? p->network_us : hop_us(group, p);
    if (away > 0)
        within = fmax(within, moving_us(away / g.ranks * bytes,
                                        group->links.network_bytes_per_s));
    return p->ring_us + hop + within / p->share;
}

/* One message to a neighbour; of ranks on several nodes, to another node. */
static double send_us(const ms_group *group, const protocol *p, double bytes)
{
    bool away = span_of(group).nodes > 1;
    double rate =
        away ? group->links.network_bytes_per_s : group->links.node_bytes_per_s;
    if (!away && group->links.peer_bytes_per_s > 0)
        rate = fmin(rate, group->links.peer_bytes_per_s);
    return p->ring_us + (away ? p->network_us : hop_us(group, p)) +
           moving_us(bytes, rate * p->share);
}

/* way: how an all-reduce goes. */
static double kind_us(const ms_group *group, const protocol *p,
                      ms_collective kind, uint64_t bytes, ms_algorithm *way)
{
    double sent = (double)ms_collective_sent_bytes(group, kind, bytes);
    switch (kind) {
    case MS_ALL_REDUCE:
        return all_reduce_us(group, p, (double)bytes, sent, way);
    case MS_BROADCAST:
        return broadcast_us(group, p, (double)bytes);
    case MS_ALL_TO_ALL:
        return all_to_all_us(group, p, (double)bytes);
    case MS_SEND:
        return send_us(group, p, (double)bytes);
    default:
        return ring_us(group, p, 1, sent);
    }
}

/* NCCL takes what its model finds fastest. */
static double model_us(const ms_group *group, ms_collective kind,
                       uint64_t bytes, ms_algorithm *way)
{
    double best = INFINITY;
    *way = MS_ALGORITHM_RING;
    for (size_t i = 0; i < sizeof protocols / sizeof *protocols; i++) {
        ms_algorithm with = MS_ALGORITHM_RING;
        double us = kind_us(group, &protocols[i], kind, bytes, &with);
        *way = us < best ? with : *way;
        best = fmin(best, us);
    }
    return best;
}

/* ---- what goes through the network --------------------------------------- */

/* Of an all-reduce what a node sends on average, all its ranks together: in a
 * ring what each rank sends, once; else the bytes along each edge of a tree of
 * nodes, up and down, which is as much as where each rank of a node sums its
 * share with its peers. */
static double leaves_node(const ms_group *group, uint64_t bytes)
{
    ms_algorithm way;
    span g = span_of(group);
    model_us(group, MS_ALL_REDUCE, bytes, &way);
    double ends = way == MS_ALGORITHM_RING ? g.ranks : g.nodes;
    return 2 * (ends - 1) / ends * (double)bytes;
}

uint64_t ms_collective_network_bytes(const ms_group *group, ms_collective kind,
                                     uint64_t bytes)
{
    span g = span_of(group);
    double sent = (double)ms_collective_sent_bytes(group, kind, bytes);
    if (group->ranks < 2 || g.nodes < 2)
        return 0;
    switch (kind) {
    case MS_ALL_REDUCE:
        return (uint64_t)(leaves_node(group, bytes) / g.local);
    case MS_ALL_TO_ALL:
        return (uint64_t)((g.ranks - g.local) / g.ranks * (double)bytes);
    case MS_SEND:
        return bytes;
    default: /* a ring leaves each node once */
        return (uint64_t)(sent / g.local);
    }
}

/* ---- measured ------------------------------------------------------------ */

/* What lies on one node is on the same links, whoever lies between. */
static bool lies_as(const ms_group *group, const ms_curve *curve)
{
    return curve->ranks <= curve->ranks_per_node
               ? group->ranks <= group->node_ranks
               : group->node_ranks == curve->ranks_per_node;
}

static const ms_curve *curve_of(const ms_group *group, ms_collective kind)
{
    for (uint32_t i = 0; i < group->links.n_curves; i++)
        if (group->links.curves[i].ranks == group->ranks &&
            group->links.curves[i].kind == kind &&
            lies_as(group, &group->links.curves[i]))
            return &group->links.curves[i];
    return NULL;
}

/* What the bus carries of it, by the bytes (nccl-tests, doc/PERFORMANCE.md). */
static double bus_share(const ms_group *group, ms_collective kind)
{
    double share = 1 - 1.0 / group->ranks; /* not rounded to whole bytes */
    if (kind == MS_ALL_REDUCE)
        return 2 * share;
    return kind == MS_BROADCAST || kind == MS_SEND ? 1 : share;
}

static double point_us(const ms_curve_point *point)
{
    return moving_us((double)point->bytes, point->bytes_per_s);
}

/* Between two points the time is a straight line, as alpha + bytes / bandwidth
 * is: sizes that were kept back are then 2.1 % off at the median, and 3.7 % on
 * a line through the logarithms (tests/truth/collectives.tsv).  A smaller one
 * than was measured takes as long as the smallest (its latency), a larger one
 * has the bandwidth of the largest. */
static double measured_us(const ms_group *group, const ms_curve *curve,
                          ms_collective kind, uint64_t bytes)
{
    const ms_curve_point *point = curve->points, *last = point + curve->n - 1;
    double share = bus_share(group, kind);
    if (bytes <= point->bytes)
        return share * point_us(point);
    while (point < last && bytes >= point[1].bytes)
        point++;
    if (point == last)
        return share * moving_us((double)bytes, last->bytes_per_s);
    double part = (double)(bytes - point->bytes) /
                  (double)(point[1].bytes - point->bytes);
    return share *
           (point_us(point) + part * (point_us(point + 1) - point_us(point)));
}

/* What has no curve of its own has the bus bandwidth of the all-reduce
 * (nccl-tests defines it so that it is one for all); but no switch reduces for
 * it, so that it is never faster than its ring: 8 H200 measure 482 GB/s for the
 * all-reduce and 361 for the all-gather.  Messages have one only of their own.
 */
static double any_us(const ms_group *group, ms_collective kind, uint64_t bytes)
{
    bool forced = group->algorithm != MS_ALGORITHM_FASTEST;
    const ms_curve *own = curve_of(group, kind),
                   *of = forced || kind == MS_SEND
                             ? NULL
                             : curve_of(group, MS_ALL_REDUCE);
    if (bytes > 0 && own != NULL && (!forced || kind != MS_ALL_REDUCE))
        return measured_us(group, own, kind, bytes);
    ms_algorithm way;
    double us = model_us(group, kind, bytes, &way);
    return bytes > 0 && of != NULL
               ? fmax(us, measured_us(group, of, kind, bytes))
               : us;
}

uint64_t ms_collective_ns(const ms_group *group, ms_collective kind,
                          uint64_t bytes)
{
    if (group->ranks < 2)
        return 0;
    return (uint64_t)fmin(any_us(group, kind, bytes) * 1e3 + 0.5, LONGEST_NS);
}
