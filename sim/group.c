/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "sim/group.h"
#include "sim/names.h"

const char *const ms_group_names[MS_GROUP_NAMES] = {
    [MS_GROUP_DATA] = "data",
    [MS_GROUP_REPLICATE] = "replicate",
    [MS_GROUP_SECONDARY] = "secondary",
    [MS_GROUP_NODE] = "node",
    [MS_GROUP_ACROSS] = "across",
    [MS_GROUP_EXPERT_DATA] = "expert-data",
    [MS_GROUP_EXPERT_REPLICATE] = "expert-replicate",
    [MS_GROUP_PIPELINE] = "pipeline",
    [MS_GROUP_TENSOR] = "tensor",
    [MS_GROUP_CONTEXT] = "context",
    [MS_GROUP_EXPERT] = "expert",
    [MS_GROUP_EXPERT_TENSOR] = "expert-tensor",
    [MS_N_GROUP_ROLES] = "other",
};

const char *const ms_group_algorithms[MS_N_ALGORITHMS] = {
    [MS_ALGORITHM_FASTEST] = "fastest", [MS_ALGORITHM_RING] = "ring",
    [MS_ALGORITHM_TREE] = "tree",       [MS_ALGORITHM_NESTED] = "hierarchical",
    [MS_ALGORITHM_SWITCH] = "nvls",
};

const char *const ms_group_collectives[MS_N_COLLECTIVES] = {
    [MS_ALL_GATHER] = "all-gather",         [MS_BROADCAST] = "broadcast",
    [MS_REDUCE_SCATTER] = "reduce-scatter", [MS_ALL_TO_ALL] = "all-to-all",
    [MS_ALL_REDUCE] = "all-reduce",         [MS_SEND] = "send",
};

ms_group ms_group_of(ms_group_role role, uint32_t ranks, uint32_t stride,
                     uint32_t gpus_per_node)
{
    uint32_t local = stride > 0 ? gpus_per_node / stride : gpus_per_node;
    bool apart = role == MS_GROUP_REPLICATE ||
                 role == MS_GROUP_EXPERT_REPLICATE ||
                 role == MS_GROUP_PIPELINE || role == MS_GROUP_TENSOR ||
                 role == MS_GROUP_CONTEXT || role == MS_GROUP_EXPERT ||
                 role == MS_GROUP_EXPERT_TENSOR;
    return (ms_group){.name = ms_group_names[role],
                      .ranks = ranks,
                      .stride = stride,
                      .node_ranks = local > 0 ? local : 1,
                      .queue = apart ? MS_STREAM_OUTER : MS_STREAM_COMM};
}

uint32_t ms_group_nodes(const ms_group *group)
{
    uint32_t local = group->node_ranks > 0 ? group->node_ranks : 1;
    uint32_t nodes = group->ranks / local + (group->ranks % local > 0);
    return nodes > 0 ? nodes : 1;
}
