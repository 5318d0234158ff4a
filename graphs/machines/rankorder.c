/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "graphs/machines/rankorder.h"

#include <stdio.h>
#include <string.h>

static const uint8_t megatrons[MS_N_RANK_DIMS] = {
    MS_RANK_TENSOR, MS_RANK_CONTEXT, MS_RANK_EXPERT, MS_RANK_DATA,
    MS_RANK_PIPELINE};

static const uint8_t *order_of(const ms_shape *shape)
{
    return shape->rank_order[0] != 0 ? shape->rank_order : megatrons;
}

static uint32_t stages_of(const ms_shape *shape)
{
    return shape->pipeline_ranks > 1 ? shape->pipeline_ranks : 1;
}

/* Per dimension its ranks; of layers, or of experts. */
static void find_sizes(const ms_shape *shape, bool experts, uint32_t *size)
{
    uint32_t apart = ms_shape_expert_tensor(shape);
    uint32_t split = ms_shape_experts(shape);
    size[MS_RANK_TENSOR] = experts ? apart : ms_shape_tensor(shape);
    size[MS_RANK_CONTEXT] = experts ? 1 : ms_shape_context(shape);
    size[MS_RANK_EXPERT] = experts ? split : 1;
    size[MS_RANK_DATA] = experts ? ms_shape_beside(shape) / (apart * split)
                                 : ms_shape_samples(shape);
    size[MS_RANK_PIPELINE] = stages_of(shape);
}

static void find_strides(const uint8_t *order, const uint32_t *size,
                         uint32_t *stride)
{
    uint32_t before = 1;
    for (uint32_t i = 0; i < MS_N_RANK_DIMS && order[i] != 0; i++) {
        stride[order[i]] = before;
        before *= size[order[i]];
    }
}

/* Where in the order a dimension is named; what is not comes last. */
static uint32_t place_of(const uint8_t *order, ms_rank_dim dim)
{
    const uint8_t *at = memchr(order, (int)dim, MS_N_RANK_DIMS);
    return at != NULL ? (uint32_t)(at - order) : MS_N_RANK_DIMS;
}

void ms_rankorder_find(const ms_shape *shape, ms_rankorder *found)
{
    const uint8_t *order = order_of(shape);
    uint32_t size[MS_N_RANK_DIMS], apart[MS_N_RANK_DIMS];
    *found = (ms_rankorder){0};
    for (uint32_t d = 0; d < MS_N_RANK_DIMS; d++)
        found->stride[d] = apart[d] = 1;
    find_sizes(shape, true, size);
    find_strides(order, size, apart);
    found->expert_tensor = apart[MS_RANK_TENSOR];
    found->expert = apart[MS_RANK_EXPERT];
    found->expert_data = apart[MS_RANK_DATA];
    find_sizes(shape, false, size);
    find_strides(order, size, found->stride);
    bool data_first =
        place_of(order, MS_RANK_DATA) < place_of(order, MS_RANK_CONTEXT);
    ms_rank_dim first = data_first ? MS_RANK_DATA : MS_RANK_CONTEXT;
    ms_rank_dim second = data_first ? MS_RANK_CONTEXT : MS_RANK_DATA;
    if (size[first] == 1) { /* its place says nothing */
        found->stride[first] = found->stride[second];
        first = second;
    }
    found->first = size[first];
    found->first_stride = found->stride[first];
    found->second = size[second];
    found->second_stride = found->stride[second];
    if (first == second)
        found->second = 1;
    found->even = found->second == 1 ||
                  found->second_stride == found->first * found->first_stride;
}

uint64_t ms_rankorder_rank(const ms_rankorder *order, uint64_t index)
{
    if (order->even)
        return index * order->first_stride;
    return index % order->first * order->first_stride +
           index / order->first * order->second_stride;
}

ms_err ms_rankorder_check(const ms_shape *shape, ms_fault *fault)
{
    static const char *const missing[MS_N_RANK_DIMS] = {
        [MS_RANK_TENSOR] = "tp (tensor)",
        [MS_RANK_CONTEXT] = "cp (context)",
        [MS_RANK_EXPERT] = "ep (expert)",
        [MS_RANK_DATA] = "dp (data)",
        [MS_RANK_PIPELINE] = "pp (pipeline)"};
    const uint8_t *order = order_of(shape);
    uint32_t size[MS_N_RANK_DIMS], apart[MS_N_RANK_DIMS];
    find_sizes(shape, false, size);
    find_sizes(shape, true, apart);
    size[MS_RANK_EXPERT] = apart[MS_RANK_EXPERT];
    for (uint32_t d = 1; d < MS_N_RANK_DIMS; d++)
        if (size[d] > 1 && place_of(order, (ms_rank_dim)d) == MS_N_RANK_DIMS)
            return ms_fail(fault, MS_EUSAGE, "order", "name all that there are",
                           "the order of the ranks does not name %s, of which "
                           "there are %u",
                           missing[d], size[d]);
    uint32_t last = 0;
    while (last + 1 < MS_N_RANK_DIMS && order[last + 1] != 0)
        last++;
    if (shape->expert_split == 0 || size[MS_RANK_PIPELINE] == 1 ||
        order[last] == MS_RANK_PIPELINE ||
        apart[MS_RANK_DATA] == size[MS_RANK_DATA])
        return MS_OK;
    return ms_fail(fault, MS_EUSAGE, "order", "let pp be the last one",
                   "where pp is not last, experts have as many data ranks as "
                   "the rest: %u and %u",
                   apart[MS_RANK_DATA], size[MS_RANK_DATA]);
}
