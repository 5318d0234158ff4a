/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_PLOTS_LANES_H
#define MS_PLOTS_LANES_H

/* What a stream does when.  Private to plots/. */

#include "plots/record/record.h"
#include "sim/measure/waits.h"
#include "sim/timeline.h"

typedef struct ms_span {
    uint64_t from_ns, to_ns;
    uint8_t work; /* ms_work */
} ms_span;

/* Cuts a lane into slices that are wide enough to be seen: spans of at least
 * least_ns stay; neighbours that are shorter become one slice as soon as they
 * are as long together; what is short and alone is widened into the longer one
 * behind it (or before it, at the end). */
typedef struct ms_slicer {
    ms_arena *arena;
    uint64_t least_ns;
    ms_slice *slices;
    uint32_t n, capacity;
    uint64_t work_ns[MS_N_WORKS]; /* of all slices */
    bool is_open;                 /* the last one is too short yet */
    bool failed;                  /* out of memory */
} ms_slicer;
void ms_lanes_cut(ms_slicer *slicer, const ms_span *span); /* the next one */
void ms_lanes_close(ms_slicer *slicer);

/* The streams of a rank; busy_ns: how long the ops of each take, and the copies
 * that came again for their users. */
typedef struct ms_lanes {
    ms_waits waits;
    ms_wait *parts; /* of one wait */
    uint32_t parts_capacity, n_again;
    const struct ms_revoked **again; /* of all ranks, by their start */
    uint16_t rank;
    uint64_t busy_ns[MS_N_STREAMS];
} ms_lanes;

ms_err ms_lanes_open(ms_lanes *lanes, const ms_timeline *line, uint16_t rank,
                     ms_arena *arena, ms_fault *fault);
/* What a stream of the rank does from 0 to step_ns, without gaps: spans whose
 * neighbours differ, cut.  The times of a compute stream's works are the
 * report's: in-line copies and waits for copies, disk and the host's cores
 * make its stall_ns. */
ms_err ms_lanes_slices(ms_lanes *lanes, ms_stream_kind stream,
                       ms_slicer *slicer, ms_fault *fault);

#endif
