/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "graphs/json/index.h"

#include <assert.h>
#include <string.h>

/* FNV-1a with a final mix: the low bits pick the slot. */
static uint32_t hash_of(const char *name)
{
    uint64_t hash = UINT64_C(0xCBF29CE484222325);
    for (; *name != '\0'; name++)
        hash = (hash ^ (unsigned char)*name) * UINT64_C(0x100000001B3);
    return (uint32_t)(hash ^ hash >> 32);
}

ms_err ms_index_make(ms_index *index, uint32_t n, ms_arena *arena,
                     ms_fault *fault)
{
    uint32_t capacity = 16;
    while (capacity / 2 < n && capacity < UINT32_C(1) << 31)
        capacity *= 2;
    *index = (ms_index){.arena = arena, .capacity = capacity};
    index->slots = ms_arena_take(arena, capacity, sizeof *index->slots);
    return index->slots == NULL ? ms_fail_nomem(fault) : MS_OK;
}

/* The slot that holds name, or the free one where it belongs. */
static struct ms_index_slot *slot_of(const ms_index *index, const char *name,
                                     uint32_t hash)
{
    uint32_t mask = index->capacity - 1;
    for (uint32_t i = hash & mask;; i = (i + 1) & mask) {
        struct ms_index_slot *slot = &index->slots[i];
        if (slot->name == NULL ||
            (slot->hash == hash && strcmp(slot->name, name) == 0))
            return slot;
    }
}

uint32_t ms_index_find(const ms_index *index, const char *name)
{
    if (index->n == 0)
        return MS_NONE;
    const struct ms_index_slot *slot = slot_of(index, name, hash_of(name));
    return slot->name == NULL ? MS_NONE : slot->row;
}

uint32_t ms_index_add(ms_index *index, const char *name, uint32_t row)
{
    uint32_t hash = hash_of(name);
    struct ms_index_slot *slot = slot_of(index, name, hash);
    if (slot->name != NULL)
        return slot->row;
    assert(index->n < index->capacity / 2 + 1);
    *slot = (struct ms_index_slot){name, hash, row};
    index->n++;
    return row;
}
