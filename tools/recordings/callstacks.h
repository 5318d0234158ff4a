/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_CALLSTACKS_H
#define MS_CALLSTACKS_H

/* Private to snapshot.c: stacks of frames, each counted once. */

#include "graphs/graphs.h"
#include "policies/common/policy.h"
#include "sim/pools/history/alloctrace.h"
#include "tools/cli/commands.h"
#include "tools/recordings/pickle.h"

typedef struct ms_callstacks {
    const ms_pickle *pickle;
    ms_arena *arena;
    ms_recording *out;
    uint32_t *site_of; /* per node, plus 1; 0: not yet seen */
    uint64_t *hash_of; /* per node; 0: not yet */
    uint64_t *hashes;  /* of the sites, in the order of slots */
    uint32_t *slots;   /* site plus 1; 0: empty */
    uint32_t capacity, sites_room;
} ms_callstacks;

ms_err ms_callstacks_open(ms_callstacks *frames, const ms_pickle *pickle,
                          ms_arena *arena, ms_recording *out, ms_fault *fault);
/* The site of an entry's "frames", MS_NONE where it has none. */
ms_err ms_callstacks_find(ms_callstacks *frames, uint32_t entry, uint32_t *site,
                          ms_fault *fault);

#endif
