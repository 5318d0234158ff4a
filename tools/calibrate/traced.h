/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_TOOLS_TRACED_H
#define MS_TOOLS_TRACED_H

/* A profiler's trace as measurements, and as a step on a line of time.
 *
 * A kernel belongs to the op that launched it, by "External id", or by the call
 * of CUDA with its "correlation".  The kernels of one call of an op are one
 * sample: aten::mm's product and the sum of its parts together.
 *
 * Of each op with shapes 24 bytes are kept, of each kernel 48, of each call of
 * CUDA 20; names and shapes once. */

#include "tools/calibrate/callshapes.h"

typedef enum ms_traced_phase {
    MS_TRACED_FORWARD,
    MS_TRACED_BACKWARD,  /* within the engine's "evaluate_function" */
    MS_TRACED_OPTIMIZER, /* within "Optimizer.step" */
    MS_TRACED_APART,     /* of no op: copies, collectives, what nothing names */
    MS_TRACED_N_PHASES
} ms_traced_phase;
extern const char *const ms_traced_phases[MS_TRACED_N_PHASES];

/* A call of an op on the device. */
typedef struct ms_traced_call {
    int64_t t_ns;    /* when its first kernel begins */
    int64_t host_ns; /* when its op begins on the host */
    double ns;       /* of its kernels */
    const char *op;  /* or of the kernel, where no op launched it */
    uint32_t shape;  /* of the trace's; MS_NONE: no op launched it */
    uint16_t stream; /* in the order of their numbers */
    uint8_t phase;   /* ms_traced_phase */
} ms_traced_call;

typedef struct ms_traced {
    ms_traced_call *calls; /* in the order of their beginnings */
    uint32_t n_calls;
    const ms_callshape *shapes;
    const char *device; /* where it was recorded; NULL: not told */
    uint32_t n_steps;   /* "ProfilerStep#" and a number; 0: not told */
    uint64_t n_events, n_kernels, n_unlinked; /* unlinked: of no op */
    double kernels_ns;
    int64_t from_ns, to_ns; /* of the kernels */
    int64_t step_ns;        /* when the last step begins; 0: not told */
    bool assumed_causal;    /* of some attention */
    bool has_waits;         /* collectives, which wait for other ranks */
} ms_traced;

/* Reads the events to their end.  Faults: MS_EINPUT where there are no kernels,
 * or nothing of them is in a device's file. */
ms_err ms_traced_read(ms_kineto *trace, ms_measurements *all, ms_traced *traced,
                      ms_fault *fault);

#endif
