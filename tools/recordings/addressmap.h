/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_ADDRESSMAP_H
#define MS_ADDRESSMAP_H

/* A hash table of segments or of blocks by their address, kept up to date while
 * a trace is undone. */

#include "sim/base/base.h"
#include "tools/cli/commands.h"

typedef struct ms_addressmap_slot {
    /* bytes is 0 for a block whose size is not known yet */
    uint64_t address, bytes;
    uint64_t requested_bytes, stream;
    /* used: the slot is taken; live: the memory exists at this point of the
     * trace */
    bool used, live, pending, small;
} ms_addressmap_slot;

typedef struct ms_addressmap {
    ms_addressmap_slot *slots;
    uint32_t capacity;
} ms_addressmap;

/* Makes room for n addresses. */
ms_err ms_addressmap_make(ms_addressmap *map, uint64_t n, ms_arena *arena,
                          ms_fault *fault);
/* The slot of the address, or the unused slot where it would go. */
ms_addressmap_slot *ms_addressmap_find(const ms_addressmap *map,
                                       uint64_t address);
/* Makes the address live, with all else zero, whatever its slot held. */
ms_addressmap_slot *ms_addressmap_put(ms_addressmap *map, uint64_t address);
/* Moves the live ones to the front of slots, in order of addresses, and returns
 * how many there are. ms_addressmap_find no longer works afterwards. */
uint32_t ms_addressmap_sort(ms_addressmap *map);

#endif
