/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/recordings/sites.h"
#include "graphs/graphs.h"
#include "policies/common/policy.h"
#include "tools/cli/commands.h"

#include <stdlib.h>

ms_err ms_sites_make(ms_sites *sites, uint64_t n, ms_arena *arena,
                     ms_fault *fault)
{
    uint64_t capacity = 16;
    while (capacity < 2 * n)
        capacity *= 2;
    sites->capacity = (uint32_t)capacity;
    sites->slots = ms_arena_take(arena, (size_t)capacity, sizeof *sites->slots);
    return capacity <= UINT32_MAX && sites->slots != NULL
               ? MS_OK
               : ms_fail_nomem(fault);
}

ms_site *ms_sites_find(const ms_sites *sites, uint64_t address)
{
    uint64_t hash = (address >> 9) * UINT64_C(0x9e3779b97f4a7c15);
    uint32_t mask = sites->capacity - 1, at = (uint32_t)(hash >> 32) & mask;
    while (sites->slots[at].used && sites->slots[at].address != address)
        at = (at + 1) & mask;
    return &sites->slots[at];
}

ms_site *ms_sites_put(ms_sites *sites, uint64_t address)
{
    ms_site *at = ms_sites_find(sites, address);
    *at = (ms_site){.address = address, .used = true, .live = true};
    return at;
}

static int by_address(const void *a, const void *b)
{
    uint64_t x = ((const ms_site *)a)->address;
    uint64_t y = ((const ms_site *)b)->address;
    return (x > y) - (x < y);
}

uint32_t ms_sites_sort(ms_sites *sites)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < sites->capacity; i++)
        if (sites->slots[i].used && sites->slots[i].live)
            sites->slots[n++] = sites->slots[i];
    qsort(sites->slots, n, sizeof *sites->slots, by_address);
    return n;
}
