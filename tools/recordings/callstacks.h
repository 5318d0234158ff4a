/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_CALLSTACKS_H
#define MS_CALLSTACKS_H

/* Private to snapshot.c: the call stacks of a snapshot, each stored once. A
 * site is a stack from which memory is allocated. */

#include "policies/common/policy.h"
#include "sim/pools/history/alloctrace.h"
#include "tools/cli/commands.h"
#include "tools/recordings/pickle.h"

typedef struct ms_callstacks {
    const ms_pickle *pickle;
    ms_arena *arena;
    ms_recording *out;
    /* by node of the pickle: site plus 1; 0: not yet looked up */
    uint32_t *site_of;
    uint64_t *hash_of; /* by node: the hash of a frame; 0: not yet hashed */
    uint64_t *hashes;  /* by slot: the hash of the site in it */
    uint32_t *slots;   /* a hash table of sites: site plus 1; 0: empty */
    uint32_t capacity, sites_room;
} ms_callstacks;

ms_err ms_callstacks_open(ms_callstacks *frames, const ms_pickle *pickle,
                          ms_arena *arena, ms_recording *out, ms_fault *fault);
/* The site of the stack in an entry's "frames", or MS_NONE. */
ms_err ms_callstacks_find(ms_callstacks *frames, uint32_t entry, uint32_t *site,
                          ms_fault *fault);

#endif
