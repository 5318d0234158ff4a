/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "graphs/opgraph/oplayouts.h"

#include <string.h>

static uint32_t hash_of(const ms_oplayout *layout)
{
    uint64_t hash = 0;
    for (uint32_t d = 0; d < MS_MAX_DIMS; d++) {
        hash =
            (hash ^ (uint64_t)layout->size[d]) * UINT64_C(0x9E3779B97F4A7C15);
        hash ^= hash >> 29;
        hash += (uint64_t)layout->stride[d];
    }
    hash *= UINT64_C(0x9E3779B97F4A7C15);
    return (uint32_t)(hash >> 32);
}

/* The slot of an equal one, or the free one where it belongs. */
static struct ms_oplayouts_slot *slot_of(const ms_oplayouts *all,
                                         const ms_oplayout *layout)
{
    uint32_t mask = all->capacity - 1;
    for (uint32_t i = hash_of(layout) & mask;; i = (i + 1) & mask)
        if (all->slots[i].layout == NULL ||
            memcmp(all->slots[i].layout, layout, sizeof *layout) == 0)
            return &all->slots[i];
}

static bool make_room(ms_oplayouts *all)
{
    ms_oplayouts more = *all;
    if (all->n < all->capacity / 2)
        return true;
    more.capacity = all->capacity == 0 ? 64 : 2 * all->capacity;
    more.slots = ms_arena_take(all->scratch, more.capacity, sizeof *more.slots);
    if (more.slots == NULL)
        return false;
    for (uint32_t i = 0; i < all->capacity; i++)
        if (all->slots[i].layout != NULL)
            *slot_of(&more, all->slots[i].layout) = all->slots[i];
    *all = more;
    return true;
}

const ms_oplayout *ms_oplayouts_find(ms_oplayouts *all,
                                     const ms_oplayout *layout)
{
    if (!make_room(all))
        return NULL;
    struct ms_oplayouts_slot *slot = slot_of(all, layout);
    if (slot->layout != NULL)
        return slot->layout;
    ms_oplayout *kept = ms_arena_take_raw(all->keep, 1, sizeof *kept);
    if (kept == NULL)
        return NULL;
    *kept = *layout;
    slot->layout = kept;
    all->n++;
    return kept;
}
