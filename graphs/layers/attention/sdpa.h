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
 * A kernel of attention is an object; a set of kernels names one, or
 * training.attention_kernel:
 *
 *     ms_attended attended = {.causal = true, .dropout = 0.1};
 *     uint32_t y = ms_sdpa_run(trace, &ms_sdpa_first, qkv, attended); */

#include "graphs/kernels/kernels.h"
#include "graphs/ops/ops.h"

typedef struct ms_attention_kernel {
    const char *name;
    uint8_t path; /* ms_attention_path: layers.h */
    bool apart;   /* op by op, as the layer's own code has the ops */
    /* The kernel that runs; NULL: itself. */
    const struct ms_attention_kernel *(*choose)(const ms_trace *trace,
                                                const uint32_t qkv[3],
                                                ms_attended attended);
    /* Of q, k, v [batch, heads, sequence, dim]. */
    uint32_t (*run)(ms_trace *trace, const uint32_t qkv[3],
                    ms_attended attended);
    uint8_t since;        /* ms_framework that first calls it */
    bool shares_heads;    /* heads of k and v may divide q's, */
    uint8_t shares_since; /* where the caller passes them on: ms_framework */
    bool takes_slopes;    /* ALiBi's, one per head */
    bool masks_windows;   /* by a mask that the caller has made */
    bool pads_values;     /* transformers' code makes v as wide as q */
} ms_attention_kernel;
extern const ms_attention_kernel ms_sdpa_eager, ms_sdpa_flash, ms_sdpa_flash3,
    ms_sdpa_efficient, ms_sdpa_first; /* first: that can, as above */

/* The kernel that runs where this one is asked for; eager: math. */
const ms_attention_kernel *ms_sdpa_choice(const ms_trace *trace,
                                          const ms_attention_kernel *kernel,
                                          const uint32_t qkv[3],
                                          ms_attended attended);
/* Attention of q, k, v [batch, heads, sequence, dim].  Heads of k and v may
 * divide q's where the kernel that runs shares them. */
uint32_t ms_sdpa_run(ms_trace *trace, const ms_attention_kernel *kernel,
                     const uint32_t qkv[3], ms_attended attended);

#endif
