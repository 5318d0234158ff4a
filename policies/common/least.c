/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "policies/common/least.h"

#include <string.h>

ms_err ms_least_open(ms_least *least, uint32_t n, ms_arena *arena,
                     ms_fault *fault)
{
    uint32_t leaves = 1;
    while (leaves < n)
        leaves *= 2;
    size_t nodes = 2 * (size_t)leaves;
    least->leaves = leaves;
    least->key = ms_arena_take_raw(arena, nodes, sizeof *least->key);
    if (least->key == NULL)
        return ms_fail_nomem(fault);
    memset(least->key, 0xff, nodes * sizeof *least->key);
    return MS_OK;
}

void ms_least_set(ms_least *least, uint32_t slot, uint32_t key)
{
    uint32_t *keys = least->key, i = least->leaves + slot;
    keys[i] = key;
    for (i /= 2; i > 0; i /= 2) {
        uint32_t left = keys[2 * i], right = keys[2 * i + 1];
        keys[i] = left < right ? left : right;
    }
}

uint32_t ms_least_slot(const ms_least *least)
{
    const uint32_t *keys = least->key;
    uint32_t i = 1;
    if (keys[1] == MS_NONE)
        return MS_NONE;
    while (i < least->leaves)
        i = keys[2 * i] == keys[i] ? 2 * i : 2 * i + 1;
    return i - least->leaves;
}
