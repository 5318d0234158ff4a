/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_SIM_POOLED_H
#define MS_SIM_POOLED_H

/* Steps through a memory pool (sim/pools/pool.h): construction,
 * a first step if there is one, then the timeline's step again and again
 * through one pool.  Include sim/sim.h, the door.
 *
 * Each row of a plan on the device is a request of its bytes on its stream, in
 * host issue order; what of it the next step has at its start stays where it
 * is, the rest is freed in between (zero_grad, the loop's variables), when the
 * streams have come to rest.  A row that other streams used is recorded for
 * them: it is freed when the host, at a later request, sees them past what was
 * issued to them before the free (specs/allocator.md 8).
 *
 * MS_POOL_ARENA is no pool: one step, steady or first, whose places are planned
 * ahead (planned.c); steps and early do not count. */

#include "sim/base.h"
#include "sim/pools/pool.h"

struct ms_timeline;
struct ms_machine;

typedef struct ms_pooled_setup {
    ms_torch_setup torch; /* total_bytes, base_bytes: from the machine */
    ms_heap_options heap; /* of another pool than torch */
    double fraction;      /* of the device that the process may take; 0: all */
    uint32_t steps;       /* > 0; the first of several is of its own */
} ms_pooled_setup;

/* Where the pool is out of memory (torch: PyTorch raises
 * torch.cuda.OutOfMemoryError), and what its message says then. */
typedef struct ms_pooled_oom {
    uint32_t step; /* from 1; 0: in construction */
    uint8_t rank;
    uint32_t op; /* of the timeline's plan: the one that asks, or in the first
                    step the one that does the same */
    uint64_t requested_bytes, total_bytes, free_bytes, allocated_bytes,
        reserved_bytes;
    uint64_t allowed_bytes; /* by a fraction; UINT64_MAX: all */
} ms_pooled_oom;

/* Of one rank in the last step, in bytes of blocks; peaks as
 * reset_peak_memory_stats() at its start makes them.  at_peak: just after
 * allocated was highest.  idle: reserved and not active; usable: of it, blocks
 * that could serve the next request, which asks for next_bytes (0: there is
 * none). */
typedef struct ms_pooled_rank {
    uint64_t allocated_peak_bytes, active_peak_bytes, requested_peak_bytes,
        reserved_peak_bytes;
    uint64_t segments, device_allocs, device_frees; /* held at the end; calls in
                                                       the step */
    uint64_t retries, requests;                     /* in all steps */
    ms_pool_stats told;                             /* at the end; copies in
                                                       the step */
    struct ms_pooled_moment {
        uint32_t op; /* MS_NONE: nothing was allocated */
        uint64_t reserved_bytes, allocated_bytes, idle_bytes,
            largest_idle_bytes, usable_bytes, next_bytes;
    } at_peak;
} ms_pooled_rank;

typedef struct ms_pooled {
    ms_pooled_setup setup;
    bool oom;
    ms_pooled_oom lack; /* with oom; then ranks tells of a device that has
                           memory enough and sets no limit */
    ms_pooled_rank *ranks;
} ms_pooled;

/* early: the timeline of the first step, or NULL: every step is like line's.
 * Writes the peaks and raises of line, its lack where memory runs out, and
 * line->pooled.  Books of both are in host issue order. */
ms_err ms_pooled_run(const ms_pooled_setup *setup,
                     const struct ms_timeline *early,
                     const struct ms_machine *machine, ms_arena *arena,
                     struct ms_timeline *line, ms_fault *fault);

#endif
