/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "graphs/machines/communicators.h"

/* What collectives reach of a link's printed rate; modelling defaults that the
 * bus bandwidths measured on 8 A100 and 8 H200 bear out (tests/truth). */
#define NVLINK_SHARE 0.8
#define NETWORK_SHARE 0.75

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
        .curves = device->curves,
        .n_curves = device->n_curves};
    return row;
}

/* Neighbours divide the states; those that hold the same part are as far apart
 * as there are parts.  Of experts neighbours hold the same part, as where they
 * shared out the experts themselves: expert parallelism is the inner of the two
 * dimensions of the mesh (pytorch/torchtitan, torchtitan/distributed/
 * parallel_dims.py: dp_shard_mod_ep, dp_shard_in_ep).  The stages of a pipeline
 * are as far apart as it has copies, and the ranks that split layers are next
 * to each other (Megatron-LM, parallel_state.py: the order of ranks is
 * tp-cp-ep-dp-pp).  Experts have a grid of their own over the same ranks: those
 * that split one, those that divide them, those that have the same ones. */
void ms_communicators_make(const ms_device *device, const ms_shape *shape,
                           ms_group rows[MS_N_GROUP_ROLES])
{
    uint32_t ranks = shape->data_ranks, parts = ms_shape_parts(shape);
    uint32_t inner = ms_shape_tensor(shape);
    uint32_t local = device->gpus_per_node / inner;
    uint32_t apart = ms_shape_expert_tensor(shape);
    if (local == 0)
        local = 1;
    uint32_t size[MS_N_GROUP_ROLES] = {
        [MS_GROUP_DATA] = parts,
        [MS_GROUP_REPLICATE] = ranks / parts,
        [MS_GROUP_SECONDARY] = shape->reshard_ranks,
        [MS_GROUP_PIPELINE] = shape->pipeline_ranks,
        [MS_GROUP_TENSOR] = inner,
        [MS_GROUP_CONTEXT] = ms_shape_context(shape),
        [MS_GROUP_EXPERT] = ms_shape_experts(shape),
        [MS_GROUP_EXPERT_TENSOR] = shape->expert_split > 0 ? apart : 1};
    uint32_t stride[MS_N_GROUP_ROLES] = {[MS_GROUP_DATA] = inner,
                                         [MS_GROUP_REPLICATE] = parts * inner,
                                         [MS_GROUP_SECONDARY] = inner,
                                         [MS_GROUP_NODE] = inner,
                                         [MS_GROUP_ACROSS] = local * inner,
                                         [MS_GROUP_PIPELINE] = ranks * inner,
                                         [MS_GROUP_TENSOR] = 1,
                                         [MS_GROUP_CONTEXT] = inner,
                                         [MS_GROUP_EXPERT] = apart,
                                         [MS_GROUP_EXPERT_TENSOR] = 1};
    if (shape->expert_split > 0) {
        size[MS_GROUP_EXPERT_DATA] = shape->expert_ranks;
        size[MS_GROUP_EXPERT_REPLICATE] = ranks / parts;
        stride[MS_GROUP_EXPERT_DATA] = ms_shape_experts(shape) * apart;
        stride[MS_GROUP_EXPERT_REPLICATE] = parts * inner;
    } else if (shape->expert_ranks > 0) {
        size[MS_GROUP_EXPERT_DATA] = shape->expert_ranks;
        size[MS_GROUP_EXPERT_REPLICATE] = ranks / shape->expert_ranks;
        stride[MS_GROUP_EXPERT_DATA] = ranks / shape->expert_ranks * inner;
        stride[MS_GROUP_EXPERT_REPLICATE] = inner;
    }
    if (shape->exchanges) {
        size[MS_GROUP_NODE] = ranks < local ? ranks : local;
        size[MS_GROUP_ACROSS] = ranks / local + (ranks % local > 0);
    }
    for (uint32_t role = 0; role < MS_N_GROUP_ROLES; role++)
        rows[role] = ms_communicators_row(device, (ms_group_role)role,
                                          size[role] > 0 ? size[role] : 1,
                                          stride[role] > 0 ? stride[role] : 1);
}
