/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_GRAPHS_AUTOCAST_H
#define MS_GRAPHS_AUTOCAST_H

/* Private to graphs/: torch.autocast on CUDA (ATen/autocast_mode.h), which
 * runs around the forward and the loss of each micro-batch.  trace->autocast
 * is the dtype it lowers to, MS_FLOAT32 where there is none.
 *
 *     uint32_t low = ms_autocast_lower(trace, x);   x itself or its cast
 *     ...                                           an op reads low
 *     ms_trace_drop(trace, low); */

#include "graphs/trace/tensors.h"

typedef enum ms_autocast_kind {
    MS_AUTOCAST_NONE,    /* runs in the widest dtype of its inputs */
    MS_AUTOCAST_LOWER,   /* its fp32 inputs are cast down */
    MS_AUTOCAST_FP32,    /* its 16-bit inputs are cast up */
    MS_AUTOCAST_FP32_OUT /* reads 16 bits, accumulates and writes fp32 */
} ms_autocast_kind;
/* By an aten op's name, without "aten::". */
ms_autocast_kind ms_autocast_of(const char *op);
/* "lower", "fp32", "fp32 out" or "". */
const char *ms_autocast_word(const char *op);

/* x as an op of the list reads it: a new reference to x or to its cast.  A
 * parameter is cast once and its cast kept until ms_autocast_leave. */
uint32_t ms_autocast_lower(ms_trace *trace, uint32_t x);
uint32_t ms_autocast_raise(ms_trace *trace, uint32_t x);
/* Which of the two, or x itself, by the op's name. */
uint32_t ms_autocast_input(ms_trace *trace, const char *op, uint32_t x);
/* The same for n inputs of an op, and the end of its reading them. */
void ms_autocast_enter(ms_trace *trace, const char *op, uint32_t n,
                       const uint32_t *x, uint32_t *read);
void ms_autocast_exit(ms_trace *trace, uint32_t n, const uint32_t *read);
/* What the op makes of x's dtype. */
uint8_t ms_autocast_dtype(const ms_trace *trace, const char *op, uint8_t dtype);
/* The region ends: the kept casts go. */
void ms_autocast_leave(ms_trace *trace);

#endif
