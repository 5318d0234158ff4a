/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_POLICIES_EVICTOR_H
#define MS_POLICIES_EVICTOR_H

/* Dynamic tensor rematerialization of nodes that were measured, as its public
 * simulator does it (Kirisame et al., ICLR 2021; uwsampl/dtr-prototype,
 * simrd/runtime/v2.py, RuntimeV2EagerOptimized), act by act:
 *
 *     an op runs     what it reads is locked; of that what is gone is made
 *                    first, one after the other, the same way
 *     what comes     enters the pool in the order of the op's results, that one
 *                    last for whose sake it ran: the first, of a first run
 *     it must fit    all that it makes, also of what is still there; as long as
 *                    it does not, the cheapest of what is here, not locked and
 *                    not pinned, goes: of equals the last in the pool, which
 *                    has them in the order in which they came or were unlocked
 *     a release      the last reference of the run ends: what is here goes at
 *                    once, and may be made again for others
 *     views          go with their storage, and their ops run again for who
 *                    reads them
 *     constants, and what is there at the end, are pinned
 *
 * Costs of storage s, c of which is the time of all ops that make it or a view
 * of it, are as in policies/checkpoint/dtr.c; stale is the time since it was
 * last read or made.  h=eq: e* is the classes that s touches, a class being
 * storages that went next to each other; what comes back takes its own time out
 * of its class and leaves it whole. */

#include "policies/solve/nodedag.h"

typedef enum ms_evictor_heuristic {
    MS_EVICTOR_DTR,
    MS_EVICTOR_LOCAL,
    MS_EVICTOR_MSPS,
    MS_EVICTOR_LRU,
    MS_EVICTOR_SIZE,
    MS_EVICTOR_RANDOM,
    MS_EVICTOR_EQ,
    MS_EVICTOR_ESIZE
} ms_evictor_heuristic;

typedef struct ms_evictor_setup {
    ms_evictor_heuristic heuristic;
    uint64_t seed; /* of random */
    uint64_t budget_bytes;
    uint64_t most_again_ns; /* of what runs again; more is thrashing */
} ms_evictor_setup;

typedef enum ms_evictor_status {
    MS_EVICTOR_OK,
    MS_EVICTOR_OOM,     /* an op does not fit, and nothing may go */
    MS_EVICTOR_THRASHES /* it was given up */
} ms_evictor_status;

typedef struct ms_evictor_run {
    ms_evictor_status status;
    ms_nodeplan plan;
    uint64_t time_ns, again_ns, peak_bytes;
    uint32_t n_runs, n_evictions;
    uint32_t op;           /* where it ended, if it is not OK */
    uint64_t needed_bytes; /* OOM: what was there, and what the op takes */
} ms_evictor_run;

/* Two bits per pair of storages, four times: more of them than that fits in
 * MS_EVICTOR_TABLE are refused for dtr, msps and esize (MS_EUSAGE). */
#define MS_EVICTOR_TABLE (UINT64_C(1) << 30)
ms_err ms_evictor_find(const ms_graph *graph, const ms_evictor_setup *setup,
                       ms_arena *arena, ms_evictor_run *run, ms_fault *fault);

#endif
