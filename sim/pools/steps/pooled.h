/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_SIM_POOLED_H
#define MS_SIM_POOLED_H

/* Steps through a memory pool (sim/pools/pool.h): construction,
 * a first step if there is one, then the timeline's step again and again
 * through one pool.
 *
 * Each row of a plan on the device is a request of its bytes (or of the block
 * that it lies in: ms_active_asked) on its stream, in host issue order; what of
 * it the next step has at its start stays where it is, the rest is freed in
 * between (zero_grad, the loop's variables), when the streams have come to
 * rest.  A row that other streams used is recorded for them: it is freed when
 * the host, at a later request, sees them past what was issued to them before
 * the free (sim/pools/README.md 8).
 *
 * MS_POOL_ARENA is no pool: one step, steady or first, whose places are planned
 * ahead (planned.c); steps and early do not count. */

#include "sim/pools/pool.h"
#include "sim/pools/torch/addressmap.h"

struct ms_timeline;
struct ms_machine;

typedef struct ms_pooled_setup {
    ms_torch_setup torch; /* total_bytes, base_bytes: from the machine */
    ms_heap_options heap; /* of another pool than torch */
    double fraction;      /* of the device that the process may take; 0: all */
    uint32_t steps;       /* > 0; the first of several is of its own */
    bool addresses;       /* fill ms_pooled.maps */
    bool brief;           /* at_peak is not asked for */
} ms_pooled_setup;

/* What the steps are.  Step k, from 1, is of kind (k - 1) % n; the last one's
 * line is that which the report is of.  Storages that outlive a step have the
 * same ids in all graphs; where they have other bytes their blocks change
 * hands.
 *
 *     lengths 512, 1024, 768 in 5 steps: kinds 0 1 2 0 1, the last 1024's */
typedef struct ms_pooled_kind {
    const struct ms_timeline *line;
    uint64_t batch, sequence; /* for reports; 0: not known */
} ms_pooled_kind;
typedef struct ms_pooled_course {
    const struct ms_timeline *first; /* instead of kind 0 in step 1 of several;
                                        NULL: there is none */
    const ms_pooled_kind *kinds;
    uint32_t n; /* 0: every step is like the one reported */
} ms_pooled_course;

/* Where the pool is out of memory (torch: PyTorch raises
 * torch.cuda.OutOfMemoryError), and what its message says then. */
typedef struct ms_pooled_oom {
    uint32_t step; /* from 1; 0: in construction */
    uint16_t rank;
    uint32_t op; /* of the timeline's plan: the one that asks, or in the first
                    step the one that does the same */
    uint64_t requested_bytes, total_bytes, free_bytes, allocated_bytes,
        reserved_bytes;
    uint64_t allowed_bytes; /* by a fraction; UINT64_MAX: all */
} ms_pooled_oom;

/* Of one rank in one step; segments, allocated_bytes and reserved_bytes at its
 * end, the rest in it. */
typedef struct ms_pooled_step {
    uint64_t allocated_peak_bytes, reserved_peak_bytes, allocated_bytes,
        reserved_bytes, segments, device_allocs, device_frees, retries;
} ms_pooled_step;

/* Of one rank in the last step, in bytes of blocks; peaks as
 * reset_peak_memory_stats() at its start makes them.  at_peak: just after
 * allocated was highest.  idle: reserved and not active; usable: of it, blocks
 * that could serve the next request, which asks for next_bytes (0: there is
 * none). */
typedef struct ms_pooled_rank {
    uint64_t allocated_peak_bytes, active_peak_bytes, requested_peak_bytes,
        reserved_peak_bytes;
    uint64_t exact_bytes;     /* active at most where each row has its bytes */
    uint64_t allocated_bytes; /* at the end of a static plan */
    uint64_t segments, device_allocs, device_frees; /* held at the end; calls in
                                                       the step */
    uint64_t retries, requests;                     /* in all steps */
    uint64_t reserved_most_bytes; /* in any step; step most_step, from 1 */
    uint32_t most_step;
    ms_pool_stats told; /* at the end; copies in
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
    /* Per rank, of the last step; a box is of a row of the timeline's plan.
     * Instants are those of the timeline's events; where the step takes no
     * time, its rank's allocations and frees, counted.  NULL: not asked for. */
    ms_addressmap *maps;
    uint32_t n_ranks;
    ms_pooled_step *steps;       /* setup.steps * n_ranks, by step */
    const ms_pooled_kind *kinds; /* of the course */
    uint32_t n_kinds;            /* 0: every step is like the one reported */
} ms_pooled;

/* course: NULL: every step is like line's.  Writes the peaks and raises of
 * line, its lack where memory runs out, and line->pooled.  Books of both are in
 * host issue order. */
ms_err ms_pooled_run(const ms_pooled_setup *setup,
                     const ms_pooled_course *course,
                     const struct ms_machine *machine, ms_arena *arena,
                     struct ms_timeline *line, ms_fault *fault);

#endif
