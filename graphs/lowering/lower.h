/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_GRAPHS_LOWER_H
#define MS_GRAPHS_LOWER_H

/* Private to graphs/lowering: what lower.c does with a recorded forward, in
 * this order: backward, and passes over the ops of the whole step. */

#include "graphs/trace/tensors.h"

/* ---- autograd.c ---------------------------------------------------------- */

/* What the loss does not depend on gets no gradients: parameters that nothing
 * else reads have no uses then.  To be called before run. */
void ms_autograd_forget(ms_trace *trace, uint32_t loss);
/* Records the backward pass from loss. */
void ms_autograd_run(ms_trace *trace, uint32_t loss);

/* ---- libraryworkspace.c
 * ----------------------------------------------------------- */

/* A pass: what the libraries of matrix products allocate for them. */
void ms_libraryworkspace_add(ms_trace *trace);

/* ---- cost.c -------------------------------------------------------------- */

/* A pass: the time of every op.  Roofline with size-dependent rates: see cost.c
 * for the sources. */
void ms_cost_ops(ms_trace *trace);

#endif
