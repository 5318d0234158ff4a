/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_ADDRESSTABLE_H
#define MS_ADDRESSTABLE_H

/* A hash table of segments or of blocks by their address, kept up to date while
 * a trace is undone. */

#include "sim/base/base.h"
#include "tools/cli/commands.h"

typedef struct ms_addresstable_slot {
    /* bytes is 0 for a block whose size is not known yet */
    uint64_t address, bytes;
    uint64_t requested_bytes, stream;
    /* used: the slot is taken; live: the memory exists at this point of the
     * trace */
    bool used, live, pending, small;
} ms_addresstable_slot;

typedef struct ms_addresstable {
    ms_addresstable_slot *slots;
    uint32_t capacity;
} ms_addresstable;

/* Makes room for n addresses. */
ms_err ms_addresstable_make(ms_addresstable *table, uint64_t n, ms_arena *arena,
                            ms_fault *fault);
/* The slot of the address, or the unused slot where it would go. */
ms_addresstable_slot *ms_addresstable_find(const ms_addresstable *table,
                                           uint64_t address);
/* Makes the address live, with all else zero, whatever its slot held. */
ms_addresstable_slot *ms_addresstable_put(ms_addresstable *table,
                                          uint64_t address);
/* Moves the live ones to the front of slots, in order of addresses, and returns
 * how many there are. ms_addresstable_find no longer works afterwards. */
uint32_t ms_addresstable_sort(ms_addresstable *table);

#endif
