/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "graphs/opgraph/opcopies.h"

#include <assert.h>
#include <string.h>

static uint32_t hash_of(const void *items, size_t bytes)
{
    uint64_t hash = bytes, word;
    for (size_t i = 0; i < bytes; i += sizeof word) {
        memcpy(&word, (const char *)items + i, sizeof word);
        hash = (hash ^ word) * UINT64_C(0x9E3779B97F4A7C15);
        hash ^= hash >> 29;
    }
    hash *= UINT64_C(0x9E3779B97F4A7C15);
    return (uint32_t)(hash >> 32);
}

/* The slot of an equal one, or the free one where it belongs. */
static struct ms_opcopies_slot *slot_of(const ms_opcopies *all,
                                        const struct ms_opcopies_slot *like)
{
    uint32_t mask = all->capacity - 1;
    for (uint32_t i = like->hash & mask;; i = (i + 1) & mask) {
        struct ms_opcopies_slot *slot = &all->slots[i];
        if (slot->copy == NULL ||
            (slot->hash == like->hash && slot->bytes == like->bytes &&
             memcmp(slot->copy, like->copy, like->bytes) == 0))
            return slot;
    }
}

static bool make_room(ms_opcopies *all)
{
    ms_opcopies more = *all;
    if (all->n < all->capacity / 2)
        return true;
    more.capacity = all->capacity == 0 ? 64 : 2 * all->capacity;
    more.slots = ms_arena_take(all->scratch, more.capacity, sizeof *more.slots);
    if (more.slots == NULL)
        return false;
    for (uint32_t i = 0; i < all->capacity; i++)
        if (all->slots[i].copy != NULL)
            *slot_of(&more, &all->slots[i]) = all->slots[i];
    ms_arena_drop(all->scratch, all->slots);
    *all = more;
    return true;
}

const void *ms_opcopies_of(ms_opcopies *all, const void *items, size_t bytes)
{
    assert(bytes % sizeof(uint64_t) == 0 && bytes <= UINT32_MAX);
    struct ms_opcopies_slot like = {items, hash_of(items, bytes),
                                    (uint32_t)bytes};
    if (!make_room(all))
        return NULL;
    struct ms_opcopies_slot *slot = slot_of(all, &like);
    if (slot->copy != NULL)
        return slot->copy;
    void *copy = ms_arena_take_raw(all->keep, 1, bytes);
    if (copy == NULL)
        return NULL;
    if (bytes > 0)
        memcpy(copy, items, bytes);
    like.copy = copy;
    *slot = like;
    all->n++;
    return copy;
}
