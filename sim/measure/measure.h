/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_SIM_MEASURE_H
#define MS_SIM_MEASURE_H

/* What a timeline says, as numbers.  Include sim/sim.h, the door, which
 * declares what these speak of. */

/* ---- timeline.c: folds over events --------------------------------------- */

/* How many events are booked no later than the mark: start, before_loss and
 * after_forward of the first micro-batch, after_backward and end of the last.
 * MS_NONE: the program has no such mark. */
uint32_t ms_timeline_until(const ms_timeline *line, uint8_t rank, ms_mark mark);

/* Rows of rank's device pool alive just after event index e, largest first;
 * *n of them. */
ms_err ms_timeline_alive(const ms_timeline *line, uint32_t event, uint8_t rank,
                         ms_arena *arena, uint32_t **rows, uint32_t *n,
                         ms_fault *fault);

/* The device level of one rank as a step function, thinned to at most
 * max_points points (at least 4; per pixel column: first, lowest, highest,
 * last of the total) that always include the exact peak.  bytes[c] is the
 * level of category c from t_ns on.  Where all events are at one instant t_ns
 * counts them instead, those of the rank's device from 0. */
typedef struct ms_point {
    uint64_t t_ns, total_bytes;
    uint64_t bytes[MS_N_CATEGORIES];
} ms_point;
ms_err ms_timeline_points(const ms_timeline *line, uint8_t rank,
                          uint32_t max_points, ms_arena *arena,
                          ms_point **points, uint32_t *n, ms_fault *fault);

/* ---- requests.c: what an allocator is asked for -------------------------- */

/* FREE_LATER: freed by the host while other streams still use it; COMPLETED
 * when they have passed it and an allocation is about to look (or never: the
 * step ends before). */
typedef enum ms_request_kind {
    MS_REQUEST_ALLOC,
    MS_REQUEST_FREE,
    MS_REQUEST_FREE_LATER,
    MS_REQUEST_COMPLETED
} ms_request_kind;
typedef struct ms_request {
    uint64_t t_ns;
    uint32_t row;
    uint8_t kind;
} ms_request;
/* Of the device pool of one rank, in booking order.  Rows of no bytes never
 * reach an allocator, nor what lies in the block of another (ms_active_asked).
 */
ms_err ms_requests_list(const ms_timeline *line, const ms_machine *machine,
                        uint8_t rank, ms_arena *arena, ms_request **list,
                        uint32_t *n, ms_fault *fault);
/* active.c: the streams that must pass a row before its memory is free, a bit
 * each; the stream whose own it is; and the handle, for PyTorch's pool, of the
 * stream whose memory it is (ms_block_home): above MS_N_STREAMS - 1, of one
 * that has no queue of its own here. */
uint8_t ms_active_foreign(const ms_plan *plan, const ms_row *row);
uint8_t ms_active_home(const ms_plan *plan, const ms_row *row);
uint64_t ms_active_memory(const ms_plan *plan, const ms_row *row);
/* The bytes that a real pool is asked for when a row is made; 0: it lies in the
 * block of another one. */
uint64_t ms_active_asked(const ms_plan *plan, const ms_row *row);

/* ---- bylayer.c: what each layer keeps and repeats ------------------------ */

/* A block, or a layer that is in none (of an op graph without names: a unit),
 * in the order of the forward pass, the loss included; of a rank only what it
 * runs.
 * saved_bytes: what its ops made and autograd or a checkpoint holds on the
 * device after the loss of the first micro-batch (storages of activations,
 * each once).  Where no checkpoint holds anything they sum to the report's
 * saved_for_backward_bytes, else they may exceed it by what closures hold.
 * 0 where the program does not mark that instant.
 * recompute_ns: how long its ops run again; forward_ns: the first time; both
 * of all micro-batches on the compute stream, so that they sum to the times'
 * recompute_ns and forward_ns. */
typedef struct ms_layer_use {
    const char *name;
    uint64_t saved_bytes, forward_ns, recompute_ns;
} ms_layer_use;
ms_err ms_bylayer_measure(const ms_timeline *line, uint8_t rank,
                          ms_arena *arena, ms_layer_use **layers, uint32_t *n,
                          ms_fault *fault);

/* ---- waits.c: why a compute stream stands still -------------------------- */

typedef enum ms_cause {
    MS_CAUSE_HOST,   /* the host had not issued it yet */
    MS_CAUSE_GATHER, /* collectives: of parameters */
    MS_CAUSE_REDUCE, /* of gradients */
    MS_CAUSE_TO_DEVICE,
    MS_CAUSE_TO_HOST,
    MS_CAUSE_DISK,
    MS_CAUSE_HOST_WORK, /* of the host's cores, as an optimizer step there */
    MS_CAUSE_PACK,      /* copies within the device, into buffers and back */
    MS_CAUSE_RANK,      /* another rank's output had not arrived */
    MS_CAUSE_PAGES,     /* of unified memory */
    MS_CAUSE_MEMORY,    /* it was full (ms_machine.wall) */
    MS_CAUSE_IDLE,
    MS_N_CAUSES
} ms_cause;
extern const char *const ms_waits_names[MS_N_CAUSES]; /* "gather" */

/* What works beside the compute streams. */
typedef enum ms_link {
    MS_LINK_COMM,  /* collectives of the ranks that share states */
    MS_LINK_OUTER, /* of the groups that hold the same part (HSDP) */
    MS_LINK_H2D,
    MS_LINK_D2H,
    MS_LINK_NVME_READ,
    MS_LINK_NVME_WRITE,
    MS_LINK_HOST, /* no link: the host's cores */
    MS_N_LINKS
} ms_link;
extern const char *const ms_waits_links[MS_N_LINKS]; /* "h2d", "nvme_read" */

/* A wait is told by the chain of ops that led to its end: while the op that
 * ended it was under way it is that op's; before, that of the op whose end
 * let that one start, and so on back to where the stream became free.  Thus
 * a copy that could start only when the disk had been read leaves the time of
 * the reading to the disk, and a host that waited for a copy before it issued
 * an op leaves its wait to the copy; a collective that ran before the stream
 * stood still has none of it. */
typedef struct ms_waits {
    const ms_timeline *line;
    uint32_t *before; /* per op: the one before it on its stream, or MS_NONE;
                         NULL where every op is on one stream */
    uint32_t *held;   /* per sync of the plan: the op that held the host there,
                         or MS_NONE; NULL: there are none */
    uint8_t *kind;    /* per op: ms_transfer_kind or MS_N_TRANSFERS; NULL: no
                         op moves anything */
} ms_waits;

/* A part of a wait, [from_ns, to_ns), and where the walk through it is. */
typedef struct ms_wait {
    uint64_t from_ns, to_ns;
    uint32_t by; /* the op that was under way, or MS_NONE */
    uint8_t cause;
    uint64_t free_ns; /* since when the stream waits */
    uint32_t last, next;
} ms_wait;

ms_err ms_waits_open(ms_waits *waits, const ms_timeline *line, ms_arena *arena,
                     ms_fault *fault);
/* The wait before an op on a stream that is free from free_ns on, and the one
 * at the end of a rank's step for the op that ends last.  Then next gives its
 * parts, the latest first, as long as there are any:
 *
 *     ms_wait wait = ms_waits_before(&waits, op, free_ns);
 *     while (ms_waits_next(&waits, &wait))
 *         sum[wait.cause] += wait.to_ns - wait.from_ns;
 */
ms_wait ms_waits_before(const ms_waits *waits, uint32_t op, uint64_t free_ns);
ms_wait ms_waits_after(const ms_waits *waits, uint32_t last, uint64_t free_ns);
bool ms_waits_next(const ms_waits *waits, ms_wait *wait);
/* Of op and last (or MS_NONE) the one that works until later: for
 * ms_waits_after.  Ops that take no time end with others. */
uint32_t ms_waits_later(const ms_timeline *line, uint32_t op, uint32_t last);
/* Of an op (MS_NONE: none): ms_transfer_kind or MS_N_TRANSFERS, ms_link or
 * MS_N_LINKS, and what a wait for it is. */
uint8_t ms_waits_kind(const ms_waits *waits, uint32_t op);
ms_link ms_waits_link(const ms_waits *waits, uint32_t op);
/* Is it an update behind a reduction, on its queue, and no collective of the
 * step?  Who waits for one waits
 * for the optimizer. */
bool ms_waits_is_update(const ms_waits *waits, uint32_t op);
ms_cause ms_waits_cause(const ms_waits *waits, uint32_t op);

/* ---- measure.c, times.c: timeline to report ------------------------------ */

/* event, number, plan_op and micro_batch are MS_NONE where nothing was
 * allocated (or, micro_batch, outside all).  phase counts the loss as forward,
 * a recompute pass as backward.  op is the pass's name for pseudo-ops. */
typedef struct ms_peak {
    uint64_t allocated_bytes, active_bytes, requested_bytes, reserved_bytes;
    uint64_t t_ns;
    uint32_t event;   /* of the timeline */
    uint32_t number;  /* of the rank's own events, which it is */
    uint32_t plan_op; /* the op that allocates at the peak */
    uint8_t phase, pass;
    const char *op, *layer; /* layer NULL: none */
    uint32_t micro_batch;
    uint64_t by_category[MS_N_CATEGORIES];
} ms_peak;

/* A partition of step_ns on the compute stream (a law).  exposed_comm_ns:
 * waits for collectives; stall_ns: for copies and the host's work, with the
 * copies that the compute stream makes itself. */
typedef struct ms_times {
    uint64_t step_ns, forward_ns, backward_ns, recompute_ns, optimizer_ns;
    uint64_t exposed_comm_ns, stall_ns, bubble_ns, host_bound_ns, idle_ns;
    uint64_t page_wait_ns;   /* for pages of unified memory */
    uint64_t memory_wait_ns; /* waits for memory, with a wall */
} ms_times;

/* How long something worked (the union where several ops did at once), and of
 * that what the compute stream stood still for; it never exceeds busy_ns, as
 * parts of waits are times in which their op is under way (a law).  The rest
 * is hidden: the compute stream worked, or waited for something else. */
typedef struct ms_overlap {
    uint64_t busy_ns, exposed_ns;
} ms_overlap;

/* bytes: what this rank moves, of a collective what it sends, of that
 * network_bytes between nodes.  A copy moves what it allocates at its far end.
 * The host's cores move nothing. */
typedef struct ms_link_use {
    uint64_t bytes, network_bytes;
    ms_overlap time;
} ms_link_use;

/* A level of an instant that the program does not mark. */
#define MS_NO_LEVEL UINT64_MAX

/* levels are read where the program marks them (booked by device time: at the
 * end of the op before the mark): start, before_loss and after_forward in the
 * first micro-batch, after_backward and end in the last.  phase_peaks[p] is
 * the highest level just after an allocation by an op of phase p, or at the
 * start of one, in booking order (what a copy allocates counts for the phase
 * in which it is issued); 0 where no op is of phase p. */
typedef struct ms_rank_report {
    uint8_t rank;
    ms_peak peak;
    uint64_t category_peaks[MS_N_CATEGORIES];
    uint64_t parameters_bytes; /* highest level without model buffers */
    uint64_t gradients_bytes, optimizer_state_bytes; /* highest levels */
    uint64_t levels[MS_N_MARKS];       /* workspace left out; or MS_NO_LEVEL */
    uint64_t phase_peaks[MS_N_PHASES]; /* workspace left out */
    uint64_t phase_peaks_with_workspace[MS_N_PHASES];
    uint64_t phase_by_category[MS_N_PHASES][MS_N_CATEGORIES]; /* what makes
                                                                 these */
    uint64_t optimizer_scratch_bytes;  /* temporaries and workspace that pass
                                          MS_STEP makes */
    uint64_t saved_for_backward_bytes; /* activations that autograd nodes hold
                                          at after_forward; or MS_NO_LEVEL */
    ms_times time;
    uint64_t stalls_ns[MS_N_CAUSES]; /* the waits and in-line copies of time */
    ms_link_use links[MS_N_LINKS];
    ms_overlap comm, copies; /* all collectives; all copies, the disk's too */
    uint64_t h2d_bytes, d2h_bytes, comm_bytes, nvme_bytes;
    uint32_t in_flight_micro_batches; /* most at once between their first
                                         forward and their last backward */
} ms_rank_report;

typedef enum ms_status {
    MS_FITS,
    MS_OVER,
    MS_OUT_OF_MEMORY,
    MS_INFEASIBLE
} ms_status;

typedef struct ms_report {
    ms_status status;
    bool fits;
    uint64_t capacity_bytes, context_bytes;
    ms_outside outside; /* context_bytes by what it is of; 0: not told */
    int64_t headroom_bytes;
    uint64_t host_peak_bytes, nvme_peak_bytes; /* far's peak_bytes */
    /* Of memories outside the device, by ms_pool_kind: what the ranks of the
     * plan hold there at most (and of that, by category); what all ranks of a
     * node do, where each holds as much; what the node has, 0: not known (then
     * it is none that anything could exceed).  Reserved is what they take for
     * it: PyTorch's blocks of pinned memory are powers of two and stay
     * (pools/hostpool.h); elsewhere it is what they hold. */
    struct ms_far_memory {
        uint64_t peak_bytes, by_category[MS_N_CATEGORIES];
        uint64_t pinned_bytes;   /* blocks of PyTorch's pinned allocator */
        uint64_t reserved_bytes; /* with them, at most; never less than peak */
        uint64_t node_bytes, node_reserved_bytes, capacity_bytes;
    } far[MS_N_POOLS];
    double forward_flops, backward_flops, recompute_flops, optimizer_flops;
    double tokens_per_second, mfu; /* negative: does not apply */
    uint32_t events;               /* of the timeline */
    uint32_t repeats; /* micro-batches that are not on it (ms_plan.repeats) */
    uint64_t recomputed_ops;
    bool paged; /* then: */
    uint64_t page_faults;
    bool wall; /* then: */
    uint32_t revoked_prefetches;
    const struct ms_pooled *pooled; /* NULL: the pool is exact */
    ms_lack lack; /* with MS_OUT_OF_MEMORY, and the names of its op */
    const char *lack_op, *lack_layer;
    uint8_t n_ranks, worst; /* worst: the rank with the highest peak */
    ms_rank_report *ranks;
} ms_report;

/* times.c: times, stalls, links and FLOPs of the report's ranks, which are set
 * to 0 but for their number. */
ms_err ms_times_measure(const ms_timeline *line, ms_arena *arena,
                        ms_report *report, ms_fault *fault);
/* tokens_per_second and mfu, which measure fills, too. */
void ms_measure_rates(const ms_timeline *line, const ms_machine *machine,
                      ms_report *report);
/* Of the pool, what libraries keep there (cuBLAS), and in how many pieces. */
uint64_t ms_measure_libraries(const ms_graph *graph, uint32_t *n);
ms_err ms_measure(const ms_timeline *line, const ms_machine *machine,
                  ms_arena *arena, ms_report *report, ms_fault *fault);

/* hostplace.c: the host's pinned and reserved bytes, once its peak is known. */
ms_err ms_hostplace_measure(const ms_timeline *line, const ms_machine *machine,
                            ms_arena *arena, ms_report *report,
                            ms_fault *fault);

/* ---- capacity.c: what a step needs against what there is ----------------- */

/* A step fits where none of three memories is too small: the device for what a
 * rank reserves beside the context, the node's host memory and its disk for
 * what the ranks of the node keep there together.
 *
 *     for (ms_pool_kind pool = 0; pool < MS_N_POOLS; pool++)
 *         fits &= ms_capacity_short(report, pool) == 0;
 */
void ms_capacity_judge(const ms_pages *pages, const ms_machine *machine,
                       ms_report *report);
/* How many bytes the memory is too small; 0: none, or what there is is not
 * known. */
uint64_t ms_capacity_short(const ms_report *report, ms_pool_kind pool);
/* What the pool may reach: capacity less context, or 0. */
uint64_t ms_capacity_usable(const ms_report *report);
/* Would it fit if each row took its bytes and no more, as without a pool? */
bool ms_capacity_fits_exact(const ms_report *report);
/* What nvidia-smi would show: the most reserved, and context. */
uint64_t ms_capacity_used(const ms_report *report);

/* What only the caller knows of a run. */
typedef struct ms_report_names {
    const char *model, *device, *policy;
    const char *settings_json; /* objects, spliced in as they are, or NULL: */
    const char *timeline_json; /* the run's, and the record's of plots/ */
} ms_report_names;

#include "sim/expand/repeat.h"
#include "sim/measure/idle.h"
#include "sim/measure/recomputed.h"
#include "sim/pools/steps/pooled.h"

#endif
