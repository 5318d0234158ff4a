/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_TOOLS_KINETO_H
#define MS_TOOLS_KINETO_H

/* Traces of PyTorch's profiler (Kineto's Chrome traces; pytorch/kineto,
 * libkineto/src/output_json.cpp), as a stream: events one by one, of which only
 * the current one is in memory.
 *
 *     ms_kineto trace;
 *     MS_TRY(ms_kineto_open(path, arena, &trace, fault));
 *     for (;;) {
 *         MS_TRY(ms_kineto_next(&trace, &event, &more, fault));
 *         if (!more)
 *             break;
 *         ...
 *     }
 *     ms_kineto_close(&trace);
 *
 * A worked example.  Of
 *
 *     {"ph": "X", "cat": "kernel", "name": "ampere_bf16_s16816gemm...",
 *      "pid": 0, "tid": 7, "ts": 1000.500, "dur": 182.125,
 *      "args": {"External id": 41, "correlation": 9003, "stream": 7}}
 *
 * the event is MS_KINETO_KERNEL, t_ns 1000500, ns 182125, external 41,
 * correlation 9003, stream 7.  Older versions write "Kernel" and "Operator",
 * "external id" and "Input dims": both are known.
 *
 * Faults: MS_EINPUT with the byte and the number of the event; what is missing
 * at the end of a trace that was cut off is said as such. */

#include "graphs/models/files/inflate.h"

typedef enum ms_kineto_kind {
    MS_KINETO_OTHER,
    MS_KINETO_OP,      /* of the host, with shapes */
    MS_KINETO_RUNTIME, /* a call of CUDA */
    MS_KINETO_KERNEL,
    MS_KINETO_COPY, /* gpu_memcpy */
    MS_KINETO_FILL, /* gpu_memset */
    MS_KINETO_NOTE  /* user_annotation: ProfilerStep#3 */
} ms_kineto_kind;

/* Bytes of the trace; they stay until the next event is asked for. */
typedef struct ms_kineto_slice {
    const char *bytes;
    uint32_t length;
} ms_kineto_slice;

typedef struct ms_kineto_event {
    ms_kineto_kind kind;
    ms_kineto_slice name, dims, types, concrete; /* arrays as they stand */
    ms_kineto_slice collective, dtype;
    int64_t t_ns;
    uint64_t ns;
    uint64_t external, correlation; /* 0: none */
    uint64_t thread, stream, bytes, n_elements, ranks;
} ms_kineto_event;

typedef struct ms_kineto {
    const char *name;
    ms_inflate *in;
    ms_arena *arena;
    char *bytes;
    uint32_t capacity;
    size_t at, end;     /* of bytes: not read yet */
    uint64_t before;    /* bytes of the trace before `bytes` */
    uint64_t n;         /* events so far */
    bool is_over;       /* the file has no more */
    bool is_in_list;    /* of events */
    bool is_simulated;  /* memsim wrote it */
    const char *device; /* the name of the first; NULL: not told */
} ms_kineto;

/* Says what the beginning of an open file has: events, or something else. */
bool ms_kineto_has_events(const ms_kineto *trace);
ms_err ms_kineto_open(const char *path, ms_arena *arena, ms_kineto *trace,
                      ms_fault *fault);
/* *more: false behind the last event.  Events without a duration are left out.
 */
ms_err ms_kineto_next(ms_kineto *trace, ms_kineto_event *event, bool *more,
                      ms_fault *fault);
/* What is left of the file, all of it and a NUL, for files of other forms. */
ms_err ms_kineto_rest(ms_kineto *trace, uint32_t most_bytes, ms_fault *fault);
void ms_kineto_close(ms_kineto *trace);

#endif
