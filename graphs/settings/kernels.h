/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_GRAPHS_KERNELS_H
#define MS_GRAPHS_KERNELS_H

/* Private to graphs/: which kernels the ops of a model are.
 *
 * training.kernels names a row of the table in kernels.c, a kernel for each
 * kind of op; training.attention_kernel, .norm_kernel, .activation_kernel,
 * .rotary_kernel and .loss_kernel replace single ones of it.  A layer that says
 * whose code it is ("upcast", "complex") keeps the ops of that code apart, but
 * where a kernel is firm: the user named it, or the set replaces modules
 * whatever their code was (fused, as Liger patches models).
 *
 *     if (ms_kernels_apart(trace->kernels.norm, upcasts))
 *         by ops
 *     else if (trace->kernels.norm.kind == MS_KERNEL_LIGER)
 *         Liger's kernel, else one of PyTorch's own */

#include "graphs/graphs.h"

typedef enum ms_kernel_kind {
    MS_KERNEL_EAGER, /* op by op */
    MS_KERNEL_TORCH, /* one kernel, as PyTorch or Apex has it */
    MS_KERNEL_LIGER  /* one kernel of Liger's, that overwrites what it can */
} ms_kernel_kind;

typedef enum ms_attention_kind {
    MS_ATTENTION_EAGER,
    MS_ATTENTION_FLASH,
    MS_ATTENTION_EFFICIENT,
    MS_ATTENTION_SDPA /* as scaled_dot_product_attention chooses: sdpa.h */
} ms_attention_kind;

typedef struct ms_kernel {
    uint8_t kind;
    bool firm;
} ms_kernel;

typedef struct ms_kernel_set {
    const char *name;
    uint8_t attention; /* ms_attention_kind */
    uint8_t loss;      /* ms_loss_kernel */
    ms_kernel norm, activation, rotary;
} ms_kernel_set;

/* In the order of ms_kernels. */
extern const ms_kernel_set ms_kernels_sets[];
/* The set that the settings mean. */
ms_kernel_set ms_kernels_of(const ms_training *training);
/* Does the op stay apart?  own: the layer says whose code it is. */
static inline bool ms_kernels_apart(ms_kernel kernel, bool own)
{
    return kernel.kind == MS_KERNEL_EAGER || (own && !kernel.firm);
}

/* Of the settings of single kernels; each begins with auto. */
#define MS_KERNELS_ATTENTION "auto|eager|flash|efficient|sdpa"
#define MS_KERNELS_NORM "auto|eager|torch|liger"
#define MS_KERNELS_PLAIN "auto|eager|fused"

#endif
