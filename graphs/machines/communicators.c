/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "graphs/machines/communicators.h"
#include "graphs/machines/rankorder.h"

/* What collectives reach of a link's printed rate.  NVLink: a modelling default
 * that the bus bandwidths measured on 8 A100 and 8 H200 bear out (tests/truth).
 * Network: 24 GB/s of a card of 200 Gb/s (NCCL's maintainer in
 * NVIDIA/nccl-tests, issue 119), which three nodes there reach, and 32 B200 too
 * (links.tsv). */
#define NVLINK_SHARE 0.8
#define NETWORK_SHARE 0.96

ms_group ms_communicators_row(const ms_device *device, ms_group_role role,
                              uint32_t ranks, uint32_t stride)
{
    bool nvlink = device->nvlink_bytes_per_s > 0;
    ms_group row = ms_group_of(role, ranks, stride, device->gpus_per_node);
    row.links = (ms_links){
        .nvlink = nvlink,
        .node_bytes_per_s = nvlink ? device->nvlink_bytes_per_s * NVLINK_SHARE
                                   : device->d2h_bytes_per_s,
        .network_bytes_per_s = device->network_bytes_per_s * NETWORK_SHARE,
        .peer_bytes_per_s = device->peer_bytes_per_s * NVLINK_SHARE,
        .nvls_share = device->nvls_share,
        .compute_capability = device->compute_capability,
        .curves = device->curves,
        .n_curves = device->n_curves};
    return row;
}

/* ---- a job's ------------------------------------------------------------- */

/* So many of the ranks of data and context, each `step` of them apart. */
static ms_group data_row(const ms_device *device, const ms_rankorder *order,
                         ms_group_role role, uint32_t ranks, uint32_t step)
{
    uint64_t stride = ms_rankorder_rank(order, step);
    ms_group row = ms_communicators_row(device, role, ranks, (uint32_t)stride);
    if (order->even)
        return row;
    uint32_t here = 0; /* with the first one */
    for (uint64_t i = 0; i < ranks; i++)
        here += ms_rankorder_rank(order, i * step) < device->gpus_per_node;
    row.node_ranks = here;
    return row;
}

/* How many of the ranks of data and context lie on a node. */
static uint32_t local_of(const ms_device *device, const ms_rankorder *order,
                         uint32_t ranks)
{
    return data_row(device, order, MS_GROUP_NODE, ranks, 1).node_ranks;
}

typedef struct wanted {
    uint32_t ranks, step;
} wanted;

/* Neighbours divide the states; those that hold the same part are as far apart
 * as there are parts.  Of experts neighbours hold the same part, as where they
 * shared out the experts themselves: expert parallelism is the inner of the two
 * dimensions of the mesh (pytorch/torchtitan, torchtitan/distributed/
 * parallel_dims.py: dp_shard_mod_ep, dp_shard_in_ep). */
static void make_data(const ms_device *device, const ms_shape *shape,
                      const ms_rankorder *order, ms_group *rows)
{
    uint32_t ranks = shape->data_ranks, parts = ms_shape_parts(shape);
    uint32_t local = local_of(device, order, ranks);
    wanted want[MS_N_GROUP_ROLES] = {
        [MS_GROUP_DATA] = {parts, 1},
        [MS_GROUP_REPLICATE] = {ranks / parts, parts},
        [MS_GROUP_SECONDARY] = {shape->reshard_ranks, 1},
        [MS_GROUP_NODE] = {1, 1},
        [MS_GROUP_ACROSS] = {1, local},
        [MS_GROUP_EXPERT_DATA] = {1, 1},
        [MS_GROUP_EXPERT_REPLICATE] = {1, 1}};
    if (shape->expert_split > 0) {
        want[MS_GROUP_EXPERT_REPLICATE] = (wanted){ranks / parts, parts};
    } else if (shape->expert_ranks > 0) {
        want[MS_GROUP_EXPERT_DATA] =
            (wanted){shape->expert_ranks, ranks / shape->expert_ranks};
        want[MS_GROUP_EXPERT_REPLICATE] =
            (wanted){ranks / shape->expert_ranks, 1};
    }
    if (shape->exchanges) {
        want[MS_GROUP_NODE].ranks = ranks < local ? ranks : local;
        want[MS_GROUP_ACROSS].ranks = ranks / local + (ranks % local > 0);
    }
    for (uint32_t role = 0; role < MS_GROUP_PIPELINE; role++)
        rows[role] = data_row(device, order, (ms_group_role)role,
                              want[role].ranks > 0 ? want[role].ranks : 1,
                              want[role].step);
}

void ms_communicators_make(const ms_device *device, const ms_shape *shape,
                           ms_group rows[MS_N_GROUP_ROLES])
{
    uint32_t apart = ms_shape_expert_tensor(shape);
    bool experts = shape->expert_split > 0;
    ms_rankorder order;
    ms_rankorder_find(shape, &order);
    make_data(device, shape, &order, rows);
    const struct {
        uint8_t role;
        uint32_t ranks, stride;
    } others[] = {
        {MS_GROUP_PIPELINE, shape->pipeline_ranks,
         order.stride[MS_RANK_PIPELINE]},
        {MS_GROUP_TENSOR, ms_shape_tensor(shape), order.stride[MS_RANK_TENSOR]},
        {MS_GROUP_CONTEXT, ms_shape_context(shape),
         order.stride[MS_RANK_CONTEXT]},
        {MS_GROUP_EXPERT, ms_shape_experts(shape), order.expert},
        {MS_GROUP_EXPERT_TENSOR, experts ? apart : 1, order.expert_tensor},
        {MS_GROUP_EXPERT_DATA, experts ? shape->expert_ranks : 0,
         order.expert_data}};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (others[i].role != MS_GROUP_EXPERT_DATA || experts)
            rows[others[i].role] = ms_communicators_row(
                device, (ms_group_role)others[i].role,
                others[i].ranks > 0 ? others[i].ranks : 1, others[i].stride);
}
