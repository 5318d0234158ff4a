/* SPDX-License-Identifier: GPL-3.0-or-later */

#include "sim/pools/torch/addressmap.h"

#define LEAST_SLOTS 64u

/* ---- boxes by address ---------------------------------------------------- */

/* A hash table with linear probing.  Addresses are multiples of 512 or more;
 * the factor is 2^64 by the golden ratio (Knuth, The Art of Computer
 * Programming, 6.4). */
static uint32_t slot_of(const ms_addressmap *map, uint64_t address)
{
    uint64_t mixed = (address >> 9) * UINT64_C(0x9E3779B97F4A7C15);
    uint32_t i = (uint32_t)(mixed >> 32) & (map->slots_capacity - 1);
    while (map->slots[i].box != MS_NONE && map->slots[i].address != address)
        i = (i + 1) & (map->slots_capacity - 1);
    return i;
}

static void put_slot(ms_addressmap *map, uint64_t address, uint32_t box)
{
    uint32_t i = slot_of(map, address);
    map->n_slots += map->slots[i].box == MS_NONE;
    map->slots[i] = (ms_address_slot){address, box};
}

static bool widen_slots(ms_addressmap *map)
{
    ms_address_slot *old = map->slots;
    uint32_t n = map->slots_capacity;
    if (n > 0 && map->n_slots < n / 2)
        return true;
    if (n > UINT32_MAX / 4)
        return false;
    map->slots_capacity = n > 0 ? 2 * n : LEAST_SLOTS;
    map->slots =
        ms_arena_take_raw(map->arena, map->slots_capacity, sizeof *map->slots);
    if (!map->slots)
        return false;
    for (uint32_t i = 0; i < map->slots_capacity; i++)
        map->slots[i].box = MS_NONE;
    map->n_slots = 0;
    for (uint32_t i = 0; i < n; i++)
        if (old[i].box != MS_NONE)
            put_slot(map, old[i].address, old[i].box);
    return true;
}

/* A search ends at an empty slot: whatever lies behind the gap without one
 * between is put in anew, so that it is still found. */
static void drop_slot(ms_addressmap *map, uint32_t gap)
{
    uint32_t last = map->slots_capacity - 1;
    map->n_slots--;
    map->slots[gap].box = MS_NONE;
    for (uint32_t i = (gap + 1) & last; map->slots[i].box != MS_NONE;
         i = (i + 1) & last) {
        ms_address_slot moved = map->slots[i];
        map->slots[i].box = MS_NONE;
        map->slots[slot_of(map, moved.address)] = moved;
    }
}

/* ---- boxes --------------------------------------------------------------- */

static ms_address_box *add_box(ms_addressmap *map)
{
    if (map->n_boxes == map->boxes_capacity) {
        ms_address_box *grown =
            ms_arena_grow(map->arena, map->boxes, &map->boxes_capacity,
                          map->n_boxes + 1, sizeof *grown);
        if (!grown) {
            map->failed = true;
            return NULL;
        }
        map->boxes = grown;
    }
    return &map->boxes[map->n_boxes++];
}

void ms_addressmap_take(ms_addressmap *map, uint64_t address, uint64_t bytes,
                        uint32_t of)
{
    ms_address_box *box = NULL;
    if (!map->is_on || map->failed)
        return;
    if (!widen_slots(map))
        map->failed = true;
    else
        box = add_box(map);
    if (!box)
        return;
    *box = (ms_address_box){.address = address,
                            .bytes = bytes,
                            .begin = map->now,
                            .end = UINT64_MAX,
                            .made = map->changes++,
                            .gone = UINT32_MAX,
                            .of = of};
    put_slot(map, address, map->n_boxes - 1);
    map->live_bytes += bytes;
    map->active_bytes += bytes;
    if (map->live_bytes > map->peak.live_bytes)
        map->peak =
            (struct ms_address_peak){map->live_bytes, map->active_bytes,
                                     map->reserved_bytes, map->now, box->made};
}

static void free_box(ms_addressmap *map, ms_address_box *box)
{
    if (box->end != UINT64_MAX)
        return;
    box->end = map->now;
    box->gone = map->changes++;
    map->live_bytes -= box->bytes;
}

/* The block waited from its free until now: a second box shows that. */
static void add_wait(ms_addressmap *map, uint32_t of, uint64_t end)
{
    ms_address_box from = map->boxes[of], *box;
    if (from.end >= end)
        return;
    box = add_box(map);
    if (!box)
        return;
    *box = from;
    box->begin = from.end;
    box->end = end;
    box->made = from.gone;
    box->gone = map->changes;
    box->waits = true;
}

static void complete_box(ms_addressmap *map, uint32_t slot)
{
    uint32_t at = map->slots[slot].box;
    free_box(map, &map->boxes[at]);
    map->active_bytes -= map->boxes[at].bytes;
    add_wait(map, at, map->now);
    drop_slot(map, slot);
}

/* A block of a pool that moves its blocks goes on elsewhere. */
static void move_box(ms_addressmap *map, const ms_torch_entry *entry)
{
    uint32_t slot = map->slots_capacity > 0 ? slot_of(map, entry->from) : 0;
    if (map->slots_capacity == 0 || map->slots[slot].box == MS_NONE)
        return;
    uint32_t at = map->slots[slot].box;
    ms_address_box from = map->boxes[at], *box = add_box(map);
    if (!box)
        return;
    *box = from;
    box->address = entry->address;
    box->begin = map->now;
    box->made = map->changes;
    map->boxes[at].end = map->now;
    map->boxes[at].gone = map->changes++;
    drop_slot(map, slot);
    put_slot(map, box->address, map->n_boxes - 1);
}

/* ---- spans --------------------------------------------------------------- */

static void add_span(ms_addressmap *map, const ms_address_span *span)
{
    if (map->n_spans == map->spans_capacity) {
        ms_address_span *grown =
            ms_arena_grow(map->arena, map->spans, &map->spans_capacity,
                          map->n_spans + 1, sizeof *grown);
        if (!grown) {
            map->failed = true;
            return;
        }
        map->spans = grown;
    }
    map->spans[map->n_spans++] = *span;
}

static void hold(ms_addressmap *map, uint64_t address, uint64_t bytes,
                 bool is_paged)
{
    ms_address_span *last =
        map->n_spans > 0 ? &map->spans[map->n_spans - 1] : NULL;
    map->reserved_bytes += bytes;
    if (map->reserved_bytes > map->reserved_peak_bytes)
        map->reserved_peak_bytes = map->reserved_bytes;
    /* Pages that are mapped behind one another in one instant are one span. */
    if (last && is_paged && last->is_paged && last->end == UINT64_MAX &&
        last->begin == map->now && last->address + last->bytes == address)
        last->bytes += bytes;
    else
        add_span(map, &(ms_address_span){address, bytes, map->now, UINT64_MAX,
                                         is_paged});
}

/* The part of the span within [address, end) ends now; the parts outside stay
 * as spans of their own. */
static void cut_span(ms_addressmap *map, uint32_t at, uint64_t address,
                     uint64_t end)
{
    ms_address_span below = map->spans[at], above = below;
    uint64_t top = below.address + below.bytes;
    ms_address_span *cut = &map->spans[at];
    cut->end = map->now;
    if (below.address < address) {
        cut->bytes -= address - cut->address;
        cut->address = address;
        below.bytes = address - below.address;
        add_span(map, &below);
    }
    cut = &map->spans[at];
    if (top > end) {
        cut->bytes -= top - end;
        above.address = end;
        above.bytes = top - end;
        add_span(map, &above);
    }
}

static void release(ms_addressmap *map, uint64_t address, uint64_t bytes)
{
    uint64_t end = address + bytes;
    map->reserved_bytes -= bytes;
    for (uint32_t i = map->n_spans; i-- > map->oldest && !map->failed;) {
        const ms_address_span *span = &map->spans[i];
        if (span->end == UINT64_MAX && span->address < end &&
            address < span->address + span->bytes)
            cut_span(map, i, address, end);
    }
    while (map->oldest < map->n_spans &&
           map->spans[map->oldest].end != UINT64_MAX)
        map->oldest++;
}

/* ---- the recorder -------------------------------------------------------- */

static void note_way(ms_addressmap *map, uint64_t address)
{
    if (map->last_segment > 0) {
        map->n_up += address > map->last_segment;
        map->n_down += address < map->last_segment;
    }
    map->last_segment = address;
}

void ms_addressmap_log(void *of, const ms_torch_entry *entry)
{
    ms_addressmap *map = of;
    uint64_t address = entry->address;
    if (entry->action == MS_TORCH_SEGMENT_ALLOC)
        note_way(map, address);
    if (!map->is_on || map->failed)
        return;
    switch (entry->action) {
    case MS_TORCH_SEGMENT_ALLOC:
    case MS_TORCH_SEGMENT_MAP:
        hold(map, address, entry->bytes, entry->action == MS_TORCH_SEGMENT_MAP);
        break;
    case MS_TORCH_SEGMENT_FREE:
    case MS_TORCH_SEGMENT_UNMAP:
        release(map, address, entry->bytes);
        break;
    case MS_TORCH_MOVE:
        move_box(map, entry);
        break;
    case MS_TORCH_FREE_REQUESTED:
    case MS_TORCH_FREE_COMPLETED: {
        uint32_t slot = map->slots_capacity > 0 ? slot_of(map, address) : 0;
        if (map->slots_capacity == 0 || map->slots[slot].box == MS_NONE)
            break;
        if (entry->action == MS_TORCH_FREE_REQUESTED)
            free_box(map, &map->boxes[map->slots[slot].box]);
        else
            complete_box(map, slot);
        break;
    }
    default:
        break;
    }
}

ms_err ms_addressmap_start(ms_addressmap *map,
                           const ms_torch_snapshot *snapshot, ms_arena *arena,
                           ms_fault *fault)
{
    ms_addressmap from = *map;
    *map = (ms_addressmap){.arena = arena,
                           .last_segment = from.last_segment,
                           .n_up = from.n_up,
                           .n_down = from.n_down,
                           .is_on = true};
    for (uint32_t i = 0; snapshot && i < snapshot->n_segments; i++)
        hold(map, snapshot->segments[i].address, snapshot->segments[i].bytes,
             snapshot->segments[i].expandable);
    return map->failed ? ms_fail_nomem(fault) : MS_OK;
}

/* Boxes without a duration go. */
static void sweep(ms_addressmap *map)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < map->n_boxes; i++)
        if (map->boxes[i].begin < map->boxes[i].end)
            map->boxes[kept++] = map->boxes[i];
    map->n_boxes = kept;
}

ms_err ms_addressmap_close(ms_addressmap *map, ms_fault *fault)
{
    for (uint32_t i = 0; i < map->slots_capacity && !map->failed; i++)
        if (map->slots[i].box != MS_NONE)
            add_wait(map, map->slots[i].box, UINT64_MAX);
    sweep(map);
    map->is_on = false;
    map->descends = map->n_down > map->n_up;
    return map->failed ? ms_fail_nomem(fault) : MS_OK;
}
