/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_GRAPHS_OPCAST_H
#define MS_GRAPHS_OPCAST_H

/* Private to graphs/: an op graph that was exported in fp32, run under
 * autocast.  The dtypes of its activations then follow from the ops.
 *
 * Two notes of the exporter name a tensor once more: autocast.lower, an
 * argument of a function on the lower-precision list that is several ops
 * (linear, matmul, einsum), which autocast casts before the first of them; and
 * autocast.to, x.to(dtype) where x had that dtype.  Outside autocast they do
 * nothing. */

#include "graphs/aten/aten.h"

bool ms_opcast_is_note(const char *op);
/* The tensor that the note makes of x: x or a cast, with a reference. */
uint32_t ms_opcast_note(ms_trace *trace, const char *op, uint32_t x,
                        uint8_t dtype);
/* read: the inputs as the call's op reads them, call->in or casts, until
 * drop, when call->in is read. */
void ms_opcast_inputs(ms_trace *trace, const ms_aten_call *call,
                      uint32_t *read);
void ms_opcast_drop(ms_trace *trace, const ms_aten_call *call);
/* The dtype of output k, a view of `from` or (MS_NONE) new. */
uint8_t ms_opcast_output(const ms_trace *trace, const ms_aten_call *call,
                         uint32_t k, uint32_t from);

#endif
