/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "policies/common/levels.h"

/* Of no call: no sum is less, or more.  Half of these numbers, that sums of
 * them do not overflow. */
static const ms_levels_node nothing = {0, INT64_MIN / 2, INT64_MAX / 2};

/* Of calls and of those that come behind them. */
static ms_levels_node join(ms_levels_node before, ms_levels_node behind)
{
    int64_t most = before.most + behind.sum, least = before.least + behind.sum;
    return (ms_levels_node){before.sum + behind.sum,
                            most > behind.most ? most : behind.most,
                            least < behind.least ? least : behind.least};
}

static void pull(ms_levels_node *nodes, uint32_t i)
{
    nodes[i] = join(nodes[2 * i], nodes[2 * i + 1]);
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
    *levels = (ms_levels){leaves, nodes};
    ms_levels_set(levels, level_bytes, n);
    return MS_OK;
}

void ms_levels_set(ms_levels *levels, const uint64_t *level_bytes, uint32_t n)
{
    ms_levels_node *nodes = levels->nodes;
    for (uint32_t i = 0; i < n; i++) {
        uint64_t behind = i + 1 < n ? level_bytes[i + 1] : 0;
        int64_t fall = (int64_t)(level_bytes[i] - behind);
        nodes[levels->leaves + i] = (ms_levels_node){fall, fall, fall};
    }
    for (uint32_t i = levels->leaves; i-- > 1;)
        pull(nodes, i);
}

static void add(ms_levels_node *leaf, int64_t bytes)
{
    leaf->sum += bytes;
    leaf->most += bytes;
    leaf->least += bytes;
}

void ms_levels_add(ms_levels *levels, uint32_t first, uint32_t end,
                   int64_t bytes)
{
    ms_levels_node *nodes = levels->nodes;
    if (first >= end)
        return;
    uint32_t i = levels->leaves + end - 1, before = i;
    add(&nodes[i], bytes);
    if (first > 0) {
        before = levels->leaves + first - 1;
        add(&nodes[before], -bytes);
    }
    while (i > 1) {
        pull(nodes, i /= 2);
        if ((before /= 2) != i)
            pull(nodes, before);
    }
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

/* The level of a call; 0: it is behind the last. */
static int64_t level_of(const ms_levels *levels, uint32_t call)
{
    uint32_t i = levels->leaves + call;
    if (call >= levels->leaves)
        return 0;
    int64_t sum = levels->nodes[i].sum;
    for (; i > 1; i /= 2)
        sum += i % 2 == 0 ? levels->nodes[i + 1].sum : 0;
    return sum;
}

int64_t ms_levels_most(const ms_levels *levels, uint32_t first, uint32_t end)
{
    return join_all(levels, first, end).most + level_of(levels, end);
}

/* ---- hidden ones --------------------------------------------------------- */

/* That of a hidden call is about twice as much. */
#define HIDDEN (INT64_MAX / 4)

void ms_levels_hide(ms_levels *levels, uint32_t call)
{
    ms_levels_node *nodes = levels->nodes;
    uint32_t i = levels->leaves + call;
    nodes[i].least = nothing.least;
    while ((i /= 2) > 0)
        pull(nodes, i);
}

bool ms_levels_is_hidden(const ms_levels *levels, uint32_t call)
{
    return levels->nodes[levels->leaves + call].least > HIDDEN;
}

/* ---- where it is high ---------------------------------------------------- */

/* A node, and the level at which the call behind it begins. */
typedef struct place {
    uint32_t node;
    int64_t behind;
} place;

static int64_t most_of(const ms_levels *levels, place at)
{
    return levels->nodes[at.node].most + at.behind;
}

static place right_of(place at)
{
    return (place){2 * at.node + 1, at.behind};
}

static place left_of(const ms_levels *levels, place at)
{
    int64_t right = levels->nodes[2 * at.node + 1].sum;
    return (place){2 * at.node, at.behind + right};
}

uint32_t ms_levels_highest(const ms_levels *levels, int64_t *bytes)
{
    place at = {1, 0};
    *bytes = levels->nodes[1].most;
    while (at.node < levels->leaves) {
        place left = left_of(levels, at);
        at = most_of(levels, left) >= *bytes ? left : right_of(at);
    }
    return at.node - levels->leaves;
}

/* Is a call of it above so many bytes, or not above and not hidden? */
static bool has(const ms_levels *levels, place at, int64_t bytes, bool above)
{
    return above ? most_of(levels, at) > bytes
                 : levels->nodes[at.node].least + at.behind <= bytes;
}

static uint32_t first_of(const ms_levels *levels, uint32_t first, uint32_t end,
                         int64_t bytes, bool above)
{
    place at = {levels->leaves + first, level_of(levels, first + 1)};
    if (first >= end)
        return end;
    while (!has(levels, at, bytes, above)) {
        while (at.node % 2 == 1)
            if ((at.node /= 2) <= 1)
                return end; /* it was the last of all */
        at.node++;
        at.behind -= levels->nodes[at.node].sum;
    }
    while (at.node < levels->leaves) {
        place left = left_of(levels, at);
        at = has(levels, left, bytes, above) ? left : right_of(at);
    }
    uint32_t call = at.node - levels->leaves;
    return call < end ? call : end;
}

uint32_t ms_levels_above(const ms_levels *levels, uint32_t first, uint32_t end,
                         int64_t bytes)
{
    return first_of(levels, first, end, bytes, true);
}

uint32_t ms_levels_below(const ms_levels *levels, uint32_t first, uint32_t end,
                         int64_t bytes)
{
    return first_of(levels, first, end, bytes, false);
}

uint32_t ms_levels_behind(const ms_levels *levels, uint32_t first, uint32_t end,
                          int64_t bytes)
{
    place at = {levels->leaves + end - 1, level_of(levels, end)};
    if (first >= end)
        return first;
    while (most_of(levels, at) <= bytes) {
        at.behind += levels->nodes[at.node].sum;
        while (at.node % 2 == 0)
            if ((at.node /= 2) <= 1)
                return first;
        if (at.node <= 1)
            return first;
        at.node--;
    }
    while (at.node < levels->leaves) {
        place right = right_of(at);
        at = most_of(levels, right) > bytes ? right : left_of(levels, at);
    }
    uint32_t call = at.node - levels->leaves;
    return call + 1 > first ? call + 1 : first;
}
