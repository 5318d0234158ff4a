/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_GRAPHS_SDPA_H
#define MS_GRAPHS_SDPA_H

/* Private to graphs/: torch.nn.functional.scaled_dot_product_attention, which
 * takes the first kernel that can do what is asked for (aten/src/ATen/native/
 * transformers/cuda/sdp_utils.cpp):
 *
 *   flash      16 bits, no mask of its own, one head size for q, k and v, at
 *              most 256 channels, torch 2, Ampere or newer
 *   efficient  torch 2 on CUDA, rows of heads that are multiples of 16 bytes,
 *              as many heads of k and v as of q; bfloat16 from Ampere on
 *   math       op by op: q and k scaled apart, mask, softmax, dropout
 *
 * On the CPU torch 2 has a kernel that keeps what flash keeps but a random
 * state; with dropout it takes the math path.
 *
 *     ms_attended attended = {.causal = true, .dropout = 0.1};
 *     uint32_t y = ms_sdpa_run(trace, MS_ATTENTION_SDPA, qkv, attended); */

#include "graphs/kernels/kernels.h"
#include "graphs/ops/ops.h"

/* The kernel that runs where kind is SDPA, else kind itself; EAGER: math. */
ms_attention_kind ms_sdpa_choice(const ms_trace *trace, ms_attention_kind kind,
                                 const uint32_t qkv[3], ms_attended attended);
/* Attention of q, k, v [batch, heads, sequence, dim].  Heads of k and v may
 * divide q's: they are repeated for kernels that do not share them. */
uint32_t ms_sdpa_run(ms_trace *trace, ms_attention_kind kind,
                     const uint32_t qkv[3], ms_attended attended);

#endif
