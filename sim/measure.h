/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_SIM_MEASURE_H
#define MS_SIM_MEASURE_H

/* What a timeline says, as numbers.  Include sim/sim.h, the door, which
 * declares what these speak of. */

/* ---- measure.c: timeline to report --------------------------------------- */

/* event, plan_op and micro_batch are MS_NONE where nothing was allocated (or,
 * micro_batch, outside all).  phase counts the loss as forward, a recompute
 * pass as backward.  op is the pass's name for pseudo-ops. */
typedef struct ms_peak {
    uint64_t allocated_bytes, active_bytes, requested_bytes, reserved_bytes;
    uint64_t t_ns;
    uint32_t event;
    uint32_t plan_op; /* the op that allocates at the peak */
    uint8_t phase, pass;
    const char *op, *layer; /* layer NULL: none */
    uint32_t micro_batch;
    uint64_t by_category[MS_N_CATEGORIES];
} ms_peak;

/* A partition of step_ns on the compute stream (a law). */
typedef struct ms_times {
    uint64_t step_ns, forward_ns, backward_ns, recompute_ns, optimizer_ns;
    uint64_t exposed_comm_ns, stall_ns, bubble_ns, host_bound_ns, idle_ns;
    uint64_t page_wait_ns;   /* for pages of unified memory */
    uint64_t memory_wait_ns; /* waits for memory, with a wall */
} ms_times;

/* A level of an instant that the program does not mark. */
#define MS_NO_LEVEL UINT64_MAX

/* levels are read where the program marks them (booked by device time: at the
 * end of the op before the mark): start, before_loss and after_forward in the
 * first micro-batch, after_backward and end in the last.  phase_peaks[p] is
 * the highest level just after an allocation by an op of phase p, or at the
 * start of one, in booking order (what a copy allocates counts for the phase
 * in which it is issued); 0 where no op is of phase p.  traffic: a copy moves
 * what it allocates at its far end, a collective what each rank sends. */
typedef struct ms_rank_report {
    uint8_t rank;
    ms_peak peak;
    uint64_t category_peaks[MS_N_CATEGORIES];
    uint64_t parameters_bytes; /* highest level without model buffers */
    uint64_t gradients_bytes, optimizer_state_bytes; /* highest levels */
    uint64_t levels[MS_N_MARKS];       /* workspace left out; or MS_NO_LEVEL */
    uint64_t phase_peaks[MS_N_PHASES]; /* workspace left out */
    uint64_t phase_peaks_with_workspace[MS_N_PHASES];
    uint64_t optimizer_scratch_bytes;  /* temporaries and workspace that pass
                                          MS_STEP makes */
    uint64_t saved_for_backward_bytes; /* activations that autograd nodes hold
                                          at after_forward; or MS_NO_LEVEL */
    ms_times time;
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
    int64_t headroom_bytes;
    uint64_t host_peak_bytes, nvme_peak_bytes;
    double forward_flops, backward_flops, recompute_flops, optimizer_flops;
    double tokens_per_second, mfu; /* negative: does not apply */
    uint32_t events;
    uint32_t recomputed_ops;
    bool paged; /* then: */
    uint64_t page_faults;
    bool wall; /* then: */
    uint32_t revoked_prefetches;
    ms_lack lack; /* with MS_OUT_OF_MEMORY, and the names of its op */
    const char *lack_op, *lack_layer;
    uint8_t n_ranks, worst; /* worst: the rank with the highest peak */
    ms_rank_report *ranks;
} ms_report;

ms_err ms_measure(const ms_timeline *line, const ms_machine *machine,
                  ms_arena *arena, ms_report *report, ms_fault *fault);

/* The JSON of design.md 6.  What only the caller knows comes in here. */
typedef struct ms_report_names {
    const char *model, *device, *policy;
    const char *settings_json; /* an object, spliced in as it is */
} ms_report_names;
void ms_report_json(const ms_report *report, const ms_graph *graph,
                    const ms_report_names *names, ms_text *text);

#endif
