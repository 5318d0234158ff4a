/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_GRAPHS_LOWER_H
#define MS_GRAPHS_LOWER_H

/* Private to graphs/lowering: what lower.c does with a recorded forward, in
 * this order: backward, and passes over the ops.  Where equal blocks are
 * stamped the passes see those of forward and backward before, and then the
 * step's. */

#include "graphs/trace/tensors.h"

/* ---- autograd.c ---------------------------------------------------------- */

/* What the loss does not depend on gets no gradients: parameters that nothing
 * else reads have no uses then.  To be called before run. */
void ms_autograd_forget(ms_trace *trace, uint32_t loss);
/* Records the backward pass from loss. */
void ms_autograd_run(ms_trace *trace, uint32_t loss);
/* Of a graph inside of a node (trace/inner.h): its nodes from first on. */
void ms_autograd_inside(ms_trace *trace, uint32_t first);

/* ---- libraryworkspace.c
 * ----------------------------------------------------------- */

/* What libraries of matrix products have allocated so far. */
typedef struct ms_libraryworkspaces {
    bool cublas[2];   /* for the forward's and for autograd's thread */
    bool cublaslt[2]; /* likewise */
    bool te;          /* Transformer Engine's */
    bool te_streams;  /* its, for products in groups */
} ms_libraryworkspaces;

/* A pass over the ops from `first` on: what these libraries allocate for them.
 */
void ms_libraryworkspace_add(ms_trace *trace, uint32_t first,
                             ms_libraryworkspaces *held);

/* ---- cost.c -------------------------------------------------------------- */

/* A pass: the time of every op from `first` on.  Roofline with size-dependent
 * rates: see cost.c for the sources. */
void ms_cost_ops(ms_trace *trace, uint32_t first);

#endif
