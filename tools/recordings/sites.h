/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_SITES_H
#define MS_SITES_H

/* Segments or blocks by their address, while a trace is undone. */

#include "sim/base/base.h"
#include "tools/cli/commands.h"

typedef struct ms_site {
    uint64_t address, bytes; /* of a block 0: not known */
    uint64_t requested_bytes, stream;
    bool used, live, pending, small; /* used: the slot; live: it is there now */
} ms_site;

typedef struct ms_sites {
    ms_site *slots;
    uint32_t capacity;
} ms_sites;

/* Room for n addresses. */
ms_err ms_sites_make(ms_sites *sites, uint64_t n, ms_arena *arena,
                     ms_fault *fault);
/* Its slot, or an unused one. */
ms_site *ms_sites_find(const ms_sites *sites, uint64_t address);
/* A new live one, whatever was there. */
ms_site *ms_sites_put(ms_sites *sites, uint64_t address);
/* The live ones to the front of slots, by address; how many.  Nothing can be
 * found any more. */
uint32_t ms_sites_sort(ms_sites *sites);

#endif
