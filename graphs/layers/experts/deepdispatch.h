/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_GRAPHS_DEEPDISPATCH_H
#define MS_GRAPHS_DEEPDISPATCH_H

/* Private to graphs/layers/experts: DeepEP instead of NCCL's all-to-alls
 * (deepseek-ai/DeepEP v1.2.1; Megatron-LM, core/transformer/moe/
 * token_dispatcher.py, _DeepepManager, and fused_a2a.py).  A token goes once to
 * each rank that has an expert of it, and is copied for them there.
 *
 * Of T tokens of width h on each of E ranks, with N experts, n = N / E of them
 * here, and k of a token, this rank receives on average, where routing is even,
 *
 *     U = T E (1 - C(N - n, k) / C(N, k))          (256, 8: 5.29 T on 8 ranks)
 *
 *     dispatch     2 h U, ids 8 k U, p 4 k U, and what it needs to come back
 *     multi-hot    p 4 n U, map n U, and for a moment 8 n U
 *     permute      2 h R, p 4 R
 *     experts
 *     unpermute    2 h U
 *     combine      2 h T */

#include "graphs/layers/experts/dispatch.h"

/* What a process has for it outside PyTorch's pool: one buffer for NVLink, one
 * for the network, and a workspace of 32 MiB (csrc/config.hpp,
 * get_nvl_buffer_size_hint, get_rdma_buffer_size_hint; deep_ep/buffer.py,
 * get_dispatch_config, get_combine_config).  0: it has no configuration for so
 * many ranks. */
uint64_t ms_deepdispatch_bytes(uint32_t ranks, uint64_t width);
/* MS_EINPUT where it cannot. */
ms_err ms_deepdispatch_check(ms_trace *trace, const ms_layer *layer);

/* What the way back needs: the node's handle, p by expert. */
typedef struct ms_deepdispatch {
    uint32_t handle, map, p; /* tensors */
    int64_t tokens, unique;
} ms_deepdispatch;

/* As ms_dispatch_there and back; which [tokens, chosen]: experts by token.  The
 * way back weights the rows by p unless the gate does, and ends what there
 * has made. */
uint32_t ms_deepdispatch_there(ms_trace *trace, const ms_dispatch *how,
                               uint32_t x, uint32_t which, uint32_t p,
                               ms_deepdispatch *way, uint32_t *own);
uint32_t ms_deepdispatch_back(ms_trace *trace, const ms_dispatch *how,
                              const ms_deepdispatch *way, uint32_t y);

#endif
