/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/recordings/addressmap.h"
#include "graphs/graphs.h"
#include "policies/common/policy.h"
#include "tools/cli/commands.h"

#include <stdlib.h>

ms_err ms_addressmap_make(ms_addressmap *map, uint64_t n, ms_arena *arena,
                          ms_fault *fault)
{
    uint64_t capacity = 16;
    while (capacity < 2 * n)
        capacity *= 2;
    map->capacity = (uint32_t)capacity;
    map->slots = ms_arena_take(arena, (size_t)capacity, sizeof *map->slots);
    return capacity <= UINT32_MAX && map->slots != NULL ? MS_OK
                                                        : ms_fail_nomem(fault);
}

ms_addressmap_slot *ms_addressmap_find(const ms_addressmap *map,
                                       uint64_t address)
{
    uint64_t hash = (address >> 9) * UINT64_C(0x9e3779b97f4a7c15);
    uint32_t mask = map->capacity - 1, at = (uint32_t)(hash >> 32) & mask;
    while (map->slots[at].used && map->slots[at].address != address)
        at = (at + 1) & mask;
    return &map->slots[at];
}

ms_addressmap_slot *ms_addressmap_put(ms_addressmap *map, uint64_t address)
{
    ms_addressmap_slot *at = ms_addressmap_find(map, address);
    *at = (ms_addressmap_slot){.address = address, .used = true, .live = true};
    return at;
}

static int by_address(const void *a, const void *b)
{
    uint64_t x = ((const ms_addressmap_slot *)a)->address;
    uint64_t y = ((const ms_addressmap_slot *)b)->address;
    return (x > y) - (x < y);
}

uint32_t ms_addressmap_sort(ms_addressmap *map)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < map->capacity; i++)
        if (map->slots[i].used && map->slots[i].live)
            map->slots[n++] = map->slots[i];
    qsort(map->slots, n, sizeof *map->slots, by_address);
    return n;
}
