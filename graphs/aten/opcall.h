/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_GRAPHS_OPCALL_H
#define MS_GRAPHS_OPCALL_H

/* Private to graphs/: layer code calls an op of the aten table by name, so
 * that a rule exists once, for layers and for exported op graphs.
 *
 *     ms_opcall call = {.op = "aten::mish", .flops = 4};
 *     ms_opcall_like(trace, &call.made[0], x);          y is like x
 *     uint32_t y = ms_opcall_run(trace, &call, &x, 1);
 *
 * Ops that only make views are in view.c: a row knows no strides. */

#include "graphs/aten/aten.h"

#define MS_OPCALL_OUTPUTS 2u

/* An output to be: contiguous. */
typedef struct ms_opcall_made {
    uint8_t dtype, n_dims;
    int64_t size[MS_MAX_DIMS];
} ms_opcall_made;

typedef struct ms_opcall {
    const char *op;       /* "aten::" and a row of the table */
    const char *overload; /* NULL: "default", else the one with numbers */
    const ms_oparg
        *args; /* as an exporter writes them: tensors are there too */
    uint32_t n_args;
    uint32_t scratch; /* tensors like the first input, while the op runs */
    ms_opcall_made made[MS_OPCALL_OUTPUTS];
    double flops; /* per element of the first input */
} ms_opcall;

/* The shape and dtype of a tensor. */
void ms_opcall_like(const ms_trace *trace, ms_opcall_made *made,
                    uint32_t tensor);
/* The first output, laid out as the first input of its shape; a second one
 * (indices) is dropped, so it lives only where it is saved. */
uint32_t ms_opcall_run(ms_trace *trace, const ms_opcall *call,
                       const uint32_t *in, uint32_t n_in);
/* The commonest call: the output is like the first input. */
uint32_t ms_opcall_like_run(ms_trace *trace, const char *op, const uint32_t *in,
                            uint32_t n_in);
/* The op's in-place form, "aten::relu_" of "aten::relu": the result is the
 * first input's storage. */
uint32_t ms_opcall_in_place(ms_trace *trace, const ms_opcall *call,
                            const uint32_t *in, uint32_t n_in);
/* How many outputs the op's row speaks of. */
uint32_t ms_opcall_outputs(ms_trace *trace, const ms_opcall *call);
/* The op's backward. */
const ms_rule *ms_opcall_rule(ms_trace *trace, const char *op);

#endif
