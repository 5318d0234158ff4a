/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/recordings/addresstable.h"

#include <stdlib.h>

ms_err ms_addresstable_make(ms_addresstable *table, uint64_t n, ms_arena *arena,
                            ms_fault *fault)
{
    uint64_t capacity = 16;
    while (capacity < 2 * n)
        capacity *= 2;
    table->capacity = (uint32_t)capacity;
    table->slots = ms_arena_take(arena, (size_t)capacity, sizeof *table->slots);
    return capacity <= UINT32_MAX && table->slots != NULL
               ? MS_OK
               : ms_fail_nomem(fault);
}

ms_addresstable_slot *ms_addresstable_find(const ms_addresstable *table,
                                           uint64_t address)
{
    uint64_t hash = (address >> 9) * UINT64_C(0x9e3779b97f4a7c15);
    uint32_t mask = table->capacity - 1, at = (uint32_t)(hash >> 32) & mask;
    while (table->slots[at].used && table->slots[at].address != address)
        at = (at + 1) & mask;
    return &table->slots[at];
}

ms_addresstable_slot *ms_addresstable_put(ms_addresstable *table,
                                          uint64_t address)
{
    ms_addresstable_slot *at = ms_addresstable_find(table, address);
    *at =
        (ms_addresstable_slot){.address = address, .used = true, .live = true};
    return at;
}

static int by_address(const void *a, const void *b)
{
    uint64_t x = ((const ms_addresstable_slot *)a)->address;
    uint64_t y = ((const ms_addresstable_slot *)b)->address;
    return (x > y) - (x < y);
}

uint32_t ms_addresstable_sort(ms_addresstable *table)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < table->capacity; i++)
        if (table->slots[i].used && table->slots[i].live)
            table->slots[n++] = table->slots[i];
    qsort(table->slots, n, sizeof *table->slots, by_address);
    return n;
}
