/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_TOOLS_CALLSHAPES_H
#define MS_TOOLS_CALLSHAPES_H

/* The different calls of a trace: most of its events are as one of a few
 * hundred.  A call is told by the op's name and the shapes and types of its
 * inputs, and of attention their values; and, once its kernels are known, by
 * what their names say.
 *
 *     ms_callshapes_add(&shapes, &event, &call, fault);   as the host has it
 *     row = ms_callshapes_hint(&shapes, call, hint);      as the device did it
 *     shapes.rows[row].row, .why                          tracedops.h */

#include "tools/calibrate/tracedops.h"

typedef struct ms_callshape {
    const char *op;
    ms_measured row;
    const char *why; /* NULL: row is one */
    bool assumed;
    ms_traced_hint hint;
    uint32_t call, next; /* another of the same call, or MS_NONE */
} ms_callshape;

typedef struct ms_callshapes {
    ms_arena *arena;
    ms_callshape *rows;
    struct ms_callshapes_kernel {
        const char *name;
        ms_traced_hint hint; /* by the whole of its name */
    } * kernels;
    struct ms_callshapes_call *calls;
    uint32_t n, capacity, n_kernels, kernels_capacity, n_calls, calls_capacity;
    struct ms_callshapes_slot *slots;
    uint32_t n_slots, used; /* n_slots: 0 or a power of two */
} ms_callshapes;

ms_err ms_callshapes_add(ms_callshapes *shapes, const ms_kineto_event *op,
                         uint32_t *call, ms_fault *fault);
/* MS_NONE: out of memory. */
uint32_t ms_callshapes_hint(ms_callshapes *shapes, uint32_t call,
                            ms_traced_hint hint);
/* A shape that the kernel itself tells, or why it tells none: of what no op
 * has, such as a copy or a collective. */
ms_err ms_callshapes_own(ms_callshapes *shapes, ms_kineto_slice name,
                         const ms_measured *of, const char *why,
                         uint32_t *shape, ms_fault *fault);
/* The row of a kernel's name. */
ms_err ms_callshapes_kernel(ms_callshapes *shapes, ms_kineto_slice name,
                            uint32_t *kernel, ms_fault *fault);

#endif
