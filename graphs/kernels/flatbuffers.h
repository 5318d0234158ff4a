/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_GRAPHS_FLATBUFFERS_H
#define MS_GRAPHS_FLATBUFFERS_H

/* Private to graphs/: what Megatron-LM asks PyTorch's allocator for
 * (core/distributed/param_and_grad_buffer.py, core/optimizer/
 * distrib_optimizer.py).  The gradients of all parameters are one tensor, with
 * the distributed optimizer the weights another.  A rank's master copies and
 * moments are those of its stretch of these, one tensor for each parameter
 * that reaches into it.  The buffers hold the parameters from the last to the
 * first: the stretch of the last rank, which is the one that logs and this
 * one, begins with the first parameters.  On 4 ranks, of 12 layers of 512:
 *
 *     weights 128219136, gradients 256438272, master 64109568 and nothing
 *     else: the stretch lies in the embedding of tokens
 *
 * The levels know nothing of this: their bytes are the same in sum.  A real
 * pool hands out other blocks: 31 x 2 MiB for that master copy. */

#include "graphs/trace/tensors.h"

/* Fills ms_graph.storage_asked_bytes once ids are final. */
ms_err ms_flatbuffers_column(ms_trace *trace);

#endif
