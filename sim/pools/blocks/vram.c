/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The device under the pool: how many bytes are left, and which addresses it
 * answers with.  Granules are 2 MiB.  cudaMalloc answers from 0x7f0000000000
 * up (bump, firstfit) or down; address ranges start at 0x300000000, each at the
 * next multiple of 1 GiB: the reference cases' device.  A policy that runs out
 * of fresh addresses takes the lowest gap from then on. */
#include "sim/pools/torch/torchpool.h"

#include <assert.h>
#include <string.h>

#define TOP UINT64_C(0x7f0000000000)
#define RANGES_FLOOR UINT64_C(0x300000000)
#define RANGES_CEILING UINT64_C(0x600000000000)
#define RANGES_QUANTUM (UINT64_C(1) << 30)
#define CEILING (UINT64_C(1) << 56)

static uint64_t round_up(uint64_t bytes, uint64_t quantum)
{
    return (bytes + quantum - 1) / quantum * quantum;
}

void ms_vram_init(torch_vram *vram, const ms_torch_setup *setup)
{
    bool down = setup->policy == MS_TORCH_DOWN;
    *vram = (torch_vram){.total_bytes = setup->total_bytes,
                         .base_bytes = setup->base_bytes,
                         .given = setup->policy == MS_TORCH_GIVEN};
    vram->segments = (vram_space){.floor = down ? RANGES_CEILING : TOP,
                                  .ceiling = down ? TOP : CEILING,
                                  .next = TOP,
                                  .quantum = TORCH_ROUND_SEGMENT,
                                  .policy = setup->policy,
                                  .descends = down};
    vram->ranges = (vram_space){.floor = RANGES_FLOOR,
                                .ceiling = RANGES_CEILING,
                                .next = RANGES_FLOOR,
                                .quantum = RANGES_QUANTUM,
                                .policy = MS_TORCH_BUMP};
}

/* ---- addresses ----------------------------------------------------------- */

/* The place of the span that has so many below it. */
static uint32_t place_of(const vram_space *space, uint32_t below)
{
    return space->descends ? space->n - 1 - below : below;
}

/* How many spans begin below the address. */
static uint32_t count_below(const vram_space *space, uint64_t address)
{
    uint32_t low = 0, high = space->n;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (space->spans[place_of(space, middle)].address < address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static uint64_t lowest_gap(const vram_space *space, uint64_t bytes)
{
    uint64_t at = space->floor;
    for (uint32_t i = 0; i < space->n; i++) {
        const vram_span *span = &space->spans[place_of(space, i)];
        if (span->address >= at && span->address - at >= bytes)
            break;
        if (span->address + span->bytes > at)
            at = round_up(span->address + span->bytes, space->quantum);
    }
    return at <= space->ceiling && space->ceiling - at >= bytes ? at : 0;
}

/* The span that begins last below `end`, if it reaches over `begin`. */
static const vram_span *overlap(const vram_space *space, uint64_t begin,
                                uint64_t end)
{
    uint32_t n = count_below(space, end);
    const vram_span *last =
        n > 0 ? &space->spans[place_of(space, n - 1)] : NULL;
    return last != NULL && last->address + last->bytes > begin ? last : NULL;
}

/* Only segments that were there from the start are ever in the way. */
static uint64_t fresh_address(vram_space *space, uint64_t bytes)
{
    const vram_span *taken;
    while (space->policy == MS_TORCH_DOWN &&
           space->next - space->floor >= bytes) {
        taken = overlap(space, space->next - bytes, space->next);
        if (taken == NULL)
            return space->next -= bytes;
        space->next =
            taken->address > space->floor ? taken->address : space->floor;
    }
    while (space->policy == MS_TORCH_BUMP &&
           space->ceiling - space->next >= bytes) {
        uint64_t address = space->next;
        taken = overlap(space, address, address + bytes);
        space->next = round_up(taken == NULL ? address + bytes
                                             : taken->address + taken->bytes,
                               space->quantum);
        if (taken == NULL)
            return address;
    }
    space->policy = MS_TORCH_FIRSTFIT;
    return lowest_gap(space, bytes);
}

static ms_err hold(vram_space *space, ms_arena *arena, vram_span span,
                   ms_fault *fault)
{
    space->spans = ms_arena_grow(arena, space->spans, &space->capacity,
                                 space->n + 1, sizeof *space->spans);
    if (space->spans == NULL)
        return ms_fail_nomem(fault);
    uint32_t below = count_below(space, span.address);
    space->n++;
    uint32_t at = place_of(space, below);
    memmove(space->spans + at + 1, space->spans + at,
            (space->n - 1 - at) * sizeof *space->spans);
    space->spans[at] = span;
    return MS_OK;
}

static void let_go(vram_space *space, uint64_t address)
{
    uint32_t at = place_of(space, count_below(space, address));
    assert(at < space->n && space->spans[at].address == address);
    space->n--;
    memmove(space->spans + at, space->spans + at + 1,
            (space->n - at) * sizeof *space->spans);
}

/* ---- answers of a list --------------------------------------------------- */

/* The next answer, if it is of that kind. */
static const ms_torch_entry *next_answer(torch_vram *vram,
                                         ms_torch_action action)
{
    if (vram->at_answer == vram->n_answers ||
        vram->answers[vram->at_answer].action != action)
        return NULL;
    return &vram->answers[vram->at_answer];
}

static bool take_answer(torch_vram *vram, ms_torch_action action)
{
    bool found = next_answer(vram, action) != NULL;
    vram->at_answer += found;
    return found;
}

/* ---- the device ---------------------------------------------------------- */

static bool has_room(const torch_vram *vram, uint64_t bytes)
{
    return bytes <= ms_vram_left(vram);
}

uint64_t ms_vram_left(const torch_vram *vram)
{
    uint64_t taken = vram->base_bytes + vram->used_bytes;
    return taken < vram->total_bytes ? vram->total_bytes - taken : 0;
}

ms_err ms_vram_malloc(torch_vram *vram, ms_arena *arena, uint64_t bytes,
                      uint64_t *address, ms_fault *fault)
{
    const ms_torch_entry *answer;
    uint64_t rounded = round_up(bytes, TORCH_ROUND_SEGMENT);
    *address = 0;
    if (vram->given) {
        answer = next_answer(vram, MS_TORCH_SEGMENT_ALLOC);
        if (answer == NULL || answer->bytes != bytes)
            return MS_OK;
        *address = answer->address;
        vram->at_answer++;
    } else {
        if (!has_room(vram, rounded))
            return MS_OK;
        *address = fresh_address(&vram->segments, rounded);
        if (*address == 0)
            return MS_OK;
        MS_TRY(hold(&vram->segments, arena, (vram_span){*address, rounded},
                    fault));
    }
    vram->used_bytes += rounded;
    return MS_OK;
}

void ms_vram_free(torch_vram *vram, uint64_t address, uint64_t bytes)
{
    vram->used_bytes -= round_up(bytes, TORCH_ROUND_SEGMENT);
    if (vram->given)
        take_answer(vram, MS_TORCH_SEGMENT_FREE);
    else
        let_go(&vram->segments, address);
}

ms_err ms_vram_reserve(torch_vram *vram, ms_arena *arena, uint64_t bytes,
                       uint64_t *address, ms_fault *fault)
{
    if (vram->given) { /* the first page will lie there */
        const ms_torch_entry *answer = next_answer(vram, MS_TORCH_SEGMENT_MAP);
        *address = answer != NULL ? answer->address : 0;
        return MS_OK;
    }
    *address = fresh_address(&vram->ranges, bytes);
    if (*address == 0)
        return MS_OK;
    return hold(&vram->ranges, arena, (vram_span){*address, bytes}, fault);
}

void ms_vram_release(torch_vram *vram, uint64_t address)
{
    if (!vram->given)
        let_go(&vram->ranges, address);
}

bool ms_vram_map(torch_vram *vram, uint64_t address, uint64_t bytes)
{
    if (vram->given) {
        const ms_torch_entry *answer = next_answer(vram, MS_TORCH_SEGMENT_MAP);
        if (answer == NULL || answer->address != address ||
            answer->bytes != bytes)
            return false;
        vram->at_answer++;
    } else if (!has_room(vram, bytes)) {
        return false;
    }
    vram->used_bytes += bytes;
    return true;
}

void ms_vram_unmap(torch_vram *vram, uint64_t bytes)
{
    vram->used_bytes -= bytes;
    if (vram->given)
        take_answer(vram, MS_TORCH_SEGMENT_UNMAP);
}

ms_err ms_vram_seed(torch_vram *vram, ms_arena *arena, uint64_t address,
                    uint64_t bytes, ms_fault *fault)
{
    uint64_t rounded = round_up(bytes, TORCH_ROUND_SEGMENT);
    vram->used_bytes += rounded;
    if (vram->given)
        return MS_OK;
    return hold(&vram->segments, arena, (vram_span){address, rounded}, fault);
}
