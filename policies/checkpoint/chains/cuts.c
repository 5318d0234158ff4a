/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "policies/checkpoint/chains/cuts.h"

void ms_cuts_every(uint32_t n, uint32_t size, uint32_t *segment)
{
    for (uint32_t b = 0; b < n; b++)
        segment[b] = b / size;
}

void ms_cuts_each(uint32_t n, uint32_t size, uint32_t *segment)
{
    for (uint32_t b = 0; b < n; b++)
        segment[b] = (b + 1) % size == 0 ? b : MS_NONE;
}

void ms_cuts_even(uint32_t n, uint32_t count, uint32_t *segment)
{
    uint32_t size = n / count, longer = n % count;
    uint32_t in_longer = longer * (size + 1);
    for (uint32_t b = 0; b < n; b++)
        segment[b] =
            b < in_longer ? b / (size + 1) : longer + (b - in_longer) / size;
}

void ms_cuts_sequential(uint32_t n, uint32_t count, uint32_t *segment)
{
    uint32_t size = n / count;
    for (uint32_t b = 0; b < n; b++)
        segment[b] = b / size < count ? b / size : count - 1;
}

void ms_cuts_open_last(uint32_t n, uint32_t *segment)
{
    if (n == 0)
        return;
    uint32_t last = segment[n - 1];
    for (uint32_t b = n; b > 0 && segment[b - 1] == last; b--)
        segment[b - 1] = MS_NONE;
}

uint32_t ms_cuts_root(uint32_t n)
{
    uint64_t root = 0;
    while ((root + 1) * (root + 1) <= n)
        root++;
    /* Rounds up above root + 1/2, whose square is root * root + root + 1/4. */
    return (uint32_t)(n > root * root + root ? root + 1 : root);
}

/* need[b]: the fewest segments of at most limit bytes that hold the blocks
 * from b on.  False where a single block is heavier. */
static bool count_needed(uint32_t n, const uint64_t *weight, uint64_t limit,
                         uint32_t *need)
{
    uint64_t sum = 0;
    uint32_t end = n; /* a segment that begins at b ends before end */
    need[n] = 0;
    for (uint32_t b = n; b-- > 0;) {
        if (weight[b] > limit)
            return false;
        while (sum > limit - weight[b])
            sum -= weight[--end];
        sum += weight[b];
        need[b] = 1 + need[end];
    }
    return true;
}

/* The least limit under which count segments are enough. */
static uint64_t least_limit(uint32_t n, uint32_t count, uint64_t total,
                            const uint64_t *weight, uint32_t *need)
{
    uint64_t low = 0, high = total;
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        if (count_needed(n, weight, middle, need) && need[0] <= count)
            high = middle;
        else
            low = middle + 1;
    }
    count_needed(n, weight, high, need);
    return high;
}

/* Fills segment after segment up to its share of what is left, further where
 * the rest would not fit otherwise, never beyond the limit. */
ms_err ms_cuts_weighted(uint32_t n, uint32_t count, const uint64_t *weight,
                        ms_arena *arena, uint32_t *segment, ms_fault *fault)
{
    uint64_t left = 0;
    for (uint32_t b = 0; b < n; b++)
        if (__builtin_add_overflow(left, weight[b], &left))
            return ms_fail(fault, MS_EINPUT, "--policy", NULL,
                           "the saved bytes exceed 2^64");
    uint32_t *need = ms_arena_take_raw(arena, (size_t)n + 1, sizeof *need);
    if (need == NULL)
        return ms_fail_nomem(fault);
    uint64_t limit = least_limit(n, count, left, weight, need);
    uint32_t b = 0;
    for (uint32_t id = 0; id < count; id++) {
        uint32_t after = count - id - 1; /* each takes one block at least */
        uint64_t share = left / (after + 1) + (left % (after + 1) != 0);
        uint64_t sum = 0;
        uint32_t first = b;
        while (b < n - after &&
               (b == first || after == 0 || sum < share || need[b] > after) &&
               sum + weight[b] <= limit) {
            sum += weight[b];
            segment[b++] = id;
        }
        left -= sum;
    }
    return MS_OK;
}

ms_err ms_cuts_fail_none(ms_fault *fault)
{
    return ms_fail(fault, MS_EUSAGE, "checkpoint", "leave it out",
                   "the model has no blocks to checkpoint");
}
