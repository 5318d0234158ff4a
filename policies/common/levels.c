/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "policies/common/levels.h"

/* Of no call: no sum is less.  Half of the least number, that sums of it do not
 * overflow. */
static const ms_levels_node nothing = {0, INT64_MIN / 2};

/* Of calls and of those that come behind them. */
static ms_levels_node join(ms_levels_node before, ms_levels_node behind)
{
    int64_t most = before.most + behind.sum;
    return (ms_levels_node){before.sum + behind.sum,
                            most > behind.most ? most : behind.most};
}

ms_err ms_levels_open(ms_levels *levels, const uint64_t *level_bytes,
                      uint32_t n, ms_arena *arena, ms_fault *fault)
{
    uint32_t leaves = 1;
    while (leaves < n)
        leaves *= 2;
    ms_levels_node *nodes =
        ms_arena_take(arena, 2 * (size_t)leaves, sizeof *nodes);
    if (nodes == NULL)
        return ms_fail_nomem(fault);
    for (uint32_t i = 0; i < n; i++) {
        uint64_t behind = i + 1 < n ? level_bytes[i + 1] : 0;
        int64_t fall = (int64_t)(level_bytes[i] - behind);
        nodes[leaves + i] = (ms_levels_node){fall, fall};
    }
    for (uint32_t i = leaves; i-- > 1;)
        nodes[i] = join(nodes[2 * i], nodes[2 * i + 1]);
    *levels = (ms_levels){leaves, nodes};
    return MS_OK;
}

void ms_levels_add(ms_levels *levels, uint32_t end, int64_t bytes)
{
    if (end == 0)
        return;
    ms_levels_node *nodes = levels->nodes;
    uint32_t i = levels->leaves + end - 1;
    nodes[i].sum += bytes;
    nodes[i].most += bytes;
    for (i /= 2; i > 0; i /= 2)
        nodes[i] = join(nodes[2 * i], nodes[2 * i + 1]);
}

/* The calls from first to before end as one node. */
static ms_levels_node join_all(const ms_levels *levels, uint32_t first,
                               uint32_t end)
{
    ms_levels_node left = nothing, right = nothing;
    uint32_t low = levels->leaves + first, high = levels->leaves + end;
    for (; low < high; low /= 2, high /= 2) {
        if (low % 2 == 1)
            left = join(left, levels->nodes[low++]);
        if (high % 2 == 1)
            right = join(levels->nodes[--high], right);
    }
    return join(left, right);
}

int64_t ms_levels_most(const ms_levels *levels, uint32_t first, uint32_t end)
{
    return join_all(levels, first, end).most +
           join_all(levels, end, levels->leaves).sum;
}
