/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_SIM_REPORT_H
#define MS_SIM_REPORT_H

/* The report: what a timeline says, as numbers: the peak and what it is made
 * of, the parts of the step's time, links, what each memory is asked for.
 *
 *     ms_report report;
 *     MS_TRY(ms_measure(&line, &machine, &trial, &report, fault));
 *     use(report.ranks[report.worst].peak.by_category[MS_ACTIVATIONS]); */

#include "sim/group.h"
#include "sim/measure/waits.h"
#include "sim/outside.h"
#include "sim/shape.h"

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
    /* Of 95 of 100 measured runs of this kind, how far such a peak was off at
     * most, and how many there were; 0: none, or they are not known. Whoever
     * knows the kind sets them. */
    uint64_t error_percent, measured_runs;
} ms_peak;

/* A partition of step_ns on the compute stream (a law).  exposed_comm_ns:
 * waits for collectives; stall_ns: for copies and the host's work, with the
 * copies that the compute stream makes itself. */
typedef struct ms_times {
    uint64_t step_ns, forward_ns, backward_ns, recompute_ns, optimizer_ns;
    uint64_t exposed_comm_ns, stall_ns, bubble_ns, host_bound_ns, idle_ns;
    uint64_t page_wait_ns;   /* for pages of unified memory */
    uint64_t memory_wait_ns; /* waits for memory, with a wall */
    /* Of 95 of 100 measured runs of this kind, how far such a step_ns was off
     * at most, and how many there were; 0: none, or they are not known. Whoever
     * knows the kind sets them. */
    uint64_t error_percent, measured_runs;
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
    uint16_t rank;
    uint32_t n_stages; /* of the model, on this rank; 0: it has all of it */
    uint32_t stage;    /* the first of them */
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
    uint64_t group_bytes[MS_GROUP_NAMES]; /* of comm_bytes, by group; the last
                                             is all rows of a program's own */
    /* Of memories outside the device, by ms_pool_kind: what the rank holds
     * there at most, and what that takes (ms_report.far). */
    struct ms_rank_far {
        uint64_t peak_bytes, reserved_bytes;
    } far[MS_N_POOLS];
    ms_overlap comm, copies; /* all collectives; all copies, the disk's too */
    uint64_t h2d_bytes, d2h_bytes, comm_bytes, nvme_bytes;
    /* Where the compute stream's first op begins and its last one ends, of
       those that take time; 0: none does.  Between them lies the rank's own
       span. */
    uint64_t first_ns, last_ns;
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
     * node do, where others hold as much beside each, and of nodes whose
     * stages differ the one that holds most; what the node has, 0: not known
     * (then it is none that anything could exceed).  Reserved is what they take
     * for it: PyTorch's blocks of pinned memory are powers of two and stay
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
    /* Where ranks have unequal shares of the work, and this is the one with the
     * largest: an average one; peak_bytes 0: they are alike. */
    struct ms_average_rank {
        uint64_t peak_bytes, step_ns;
    } average;
    /* Where ranks of a ring differ, and this is the last: what each of them
     * holds, works and waits, by a run of its own; NULL: they are not told. */
    struct ms_ring_rank {
        uint32_t rank;
        uint64_t peak_bytes, work_ns, wait_ns;
    } * ring;
    uint32_t n_ring;
    uint16_t n_ranks, worst; /* worst: the rank with the highest peak */
    uint16_t told; /* of which rank numbers are told: worst, unless a user asks
                      for another */
    ms_rank_report *ranks;
} ms_report;

/* Idle time, defined once: busy is what the compute stream computes (the parts
 * of the step but for its waits and copies).  A rank is idle for the rest of
 * step_ns, which is the makespan of all ranks or, where steps overlap
 * (ms_program.overlaps), the longest of their own spans; or for the rest of its
 * own span. */
typedef struct ms_idle_times {
    uint64_t busy_ns, idle_ns, span_ns, span_idle_ns;
} ms_idle_times;
ms_idle_times ms_times_idle(const ms_rank_report *rank);

/* times.c: times, stalls, links and FLOPs of the report's ranks, which are set
 * to 0 but for their number. */
ms_err ms_times_measure(const ms_timeline *line, ms_arena *arena,
                        ms_report *report, ms_fault *fault);
/* Of it the times and stalls alone, of all ranks of the plan. */
ms_err ms_times_parts(const ms_waits *waits, ms_arena *arena,
                      ms_rank_report *ranks, ms_fault *fault);
/* The same partition of the time from the end of the op before the first of
 * these n of one rank, which is on the compute stream, to the end of the last
 * on it. */
ms_times ms_times_of_ops(const ms_waits *waits, const uint32_t *ops,
                         uint32_t n);
/* tokens_per_second and mfu, which measure fills, too. */
void ms_measure_rates(const ms_timeline *line, const ms_machine *machine,
                      ms_report *report);
/* The bytes of the pool that libraries keep there (cuBLAS), and in how many
 * pieces. */
uint64_t ms_measure_libraries(const ms_graph *graph, uint32_t *n);
ms_err ms_measure(const ms_timeline *line, const ms_machine *machine,
                  ms_arena *arena, ms_report *report, ms_fault *fault);

/* hostmemory.c: the host's pinned and reserved bytes, once its peak is known.
 */
ms_err ms_hostmemory_measure(const ms_timeline *line, const ms_machine *machine,
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

/* What only the caller knows about a run. */
typedef struct ms_report_names {
    const char *model, *device, *policy;
    const char *settings_json;   /* an object, spliced in as it is, or NULL */
    const char *from_json;       /* the same, of settings of other programs */
    const ms_foreseen *foreseen; /* (optional) of a policy with a model */
} ms_report_names;

#endif
