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

typedef enum ms_library_workspace {
    MS_CUBLAS_FORWARD,  /* of the forward's thread */
    MS_CUBLAS_BACKWARD, /* of autograd's */
    MS_CUBLASLT_FORWARD,
    MS_CUBLASLT_BACKWARD,
    MS_TE_WORKSPACE,   /* Transformer Engine's */
    MS_TE_USERBUFFERS, /* for products beside exchanges */
    MS_TE_STREAMS,     /* for products in groups */
    MS_N_LIBRARY_WORKSPACES
} ms_library_workspace;

/* What libraries of matrix products have allocated so far. */
typedef struct ms_libraryworkspaces {
    bool is[MS_N_LIBRARY_WORKSPACES];
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
