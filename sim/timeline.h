/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_SIM_TIMELINE_H
#define MS_SIM_TIMELINE_H

/* What a plan comes to on a machine.  Included by sim/sim.h, after the plan.
 *
 * A rank is a process: it has a host that issues its ops in the order of the
 * plan, streams and pools of its own.  Hosts never wait for each other; ops of
 * one rank wait for another's only where the plan's wait list says so.  So what
 * a rank comes to does not depend on how the plan interleaves the ranks. */

/* ---- replay.c (clock, wall, speed, active): plan to timeline ------------- */

/* What ops that run side by side on a rank share. */
typedef enum ms_resource {
    MS_MULTIPROCESSORS,
    MS_LINK_IN,  /* PCIe from the host's side to the device */
    MS_LINK_OUT, /* and back: full duplex, a resource of its own */
    MS_HOST_DRAM,
    MS_N_RESOURCES
} ms_resource;

/* In thousandths of the resource, while an op of the stream runs.  held is
 * gone for the others and never slowed here (the multiprocessors on which a
 * collective's kernel sits); shared is what the op uses of the rest when it is
 * alone there.  An op is slowed by the largest, over what it shares, of (sum
 * of shared) / (1000 - what others hold), if that is above 1.  Galvatron's
 * overlap coefficient of 1.3 for both sides is shared = 650 for each. */
typedef struct ms_demand {
    uint16_t held, shared;
} ms_demand;

typedef struct ms_machine {
    uint64_t launch_ns;      /* host time to issue one op */
    uint64_t capacity_bytes; /* device memory the process can have */
    uint64_t context_bytes;  /* outside the pool, in all; its parts: */
    ms_outside outside;      /* 0: not told */
    double peak_flops;       /* for mfu; 0: unknown */
    uint32_t data_ranks;     /* side by side, on other samples; 0, 1: alone */
    bool book_device;        /* book by device time, not in host issue order */
    bool wall;           /* with book_device: ops wait where memory is full */
    uint32_t node_ranks; /* of data_ranks that share a node; 0: all */
    uint64_t host_memory_bytes, nvme_bytes; /* of a node; 0: not known */
    ms_host_pools host;
    ms_paging paging; /* with book_device; then these: */
    double h2d_bytes_per_s, d2h_bytes_per_s;
    /* All zero: nothing interferes. */
    ms_demand demand[MS_N_STREAMS][MS_N_RESOURCES];
} ms_machine;

/* 16 bytes; size, category and sign follow from the plan's row. */
typedef struct ms_event {
    uint64_t t_ns;
    uint32_t row;
    uint32_t op_act; /* plan op << 1 | 1 when it allocates */
} ms_event;

typedef struct ms_level {
    uint64_t now_bytes, peak_bytes;
    uint32_t peak_event; /* index into events, after which the level is peak */
} ms_level;

/* Active and requested bytes fall when a free is complete, which is when other
 * streams have passed the block, seen at the rank's next allocation by the
 * host's clock; with the exact pool reserved is the highest active so far. */
typedef struct ms_rank_levels {
    ms_level pool[MS_N_POOLS]; /* allocated */
    uint64_t active_peak_bytes, requested_peak_bytes, reserved_peak_bytes;
} ms_rank_levels;

/* Op could never start for want of so much memory, at this time; from then on
 * the step goes on as if there were enough.  0: that did not happen. */
typedef struct ms_lack {
    uint64_t missing_bytes, t_ns;
    uint32_t op;
} ms_lack;

/* Lossless: level by category, alive set at any instant, Gantt, pools are folds
 * over events and ops' times.  Events never go back; those of one rank are in
 * the order in which it books, those of several are merged by time.  Their
 * times are the device's, whatever the order: in host order an op of the
 * compute stream books as it starts and ends, another one no later than that
 * stream goes on with what the host issues behind it. */
typedef struct ms_timeline {
    const ms_plan *plan;
    const struct ms_pooled *pooled; /* NULL: the pool is exact */
    uint32_t n_events;
    ms_event *events;
    uint64_t *start_ns, *end_ns; /* per plan op, device times */
    uint64_t *until_ns; /* in host order, per op: when its rank's compute stream
                           goes on with what is issued behind it; NULL: there is
                           no other stream */
    uint8_t *gap_cause; /* per op: why its stream waited before it */
    uint64_t *passed_ns; /* when the host was past its first k syncs, k = 0
                            to plan's n_sync; NULL: there are none */
    uint64_t step_ns;
    bool by_device; /* events are booked by device time */
    ms_rank_levels *ranks;
    /* With a pool, or frees that wait: the ops that raise what is reserved. */
    uint32_t n_raises;
    struct ms_raise {
        uint32_t op;
        uint64_t reserved_bytes;
    } * raises;
    /* With a wall: prefetches revoked after their copy, or put off instead of
     * it (their ops' times are those of the first try), the copies that came
     * for their users, and what was missing when nothing helped. */
    uint32_t n_revoked;
    struct ms_revoked {
        uint32_t op;
        bool put_off, came;
        uint64_t start_ns, end_ns; /* if it came */
    } * revoked;
    ms_lack lack;
    ms_pages pages;
} ms_timeline;

/* Why a compute stream stood still before an op. */
typedef enum ms_gap {
    MS_GAP_NONE,
    MS_GAP_HOST,   /* the host had not issued it yet */
    MS_GAP_COMM,   /* a collective had not ended */
    MS_GAP_COPY,   /* a copy (swap, offload) had not ended */
    MS_GAP_BUBBLE, /* another rank's output had not arrived */
    MS_GAP_PAGES,  /* unified memory: pages had not come */
    MS_GAP_MEMORY, /* the device's memory was full (ms_machine.wall) */
    MS_GAP_IDLE,
    MS_N_GAPS
} ms_gap;

/* When a host books what op does at t_ns: then, but no later than its compute
 * stream goes on. */
uint64_t ms_timeline_booked(const ms_timeline *line, uint32_t op,
                            uint64_t t_ns);

/* At one instant all completions come first (stream order), then starts.
 * An op starts at max(stream free, waits ended, host issue time).  It takes its
 * ns, or longer while others that run on its rank slow it. */
ms_err ms_replay(const ms_plan *plan, const ms_machine *machine,
                 ms_arena *arena, ms_timeline *line, ms_fault *fault);

#endif
