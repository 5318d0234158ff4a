/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_GRAPHS_MCORE_H
#define MS_GRAPHS_MCORE_H

/* Private to graphs/: training.kernels=megatron, Megatron-Core on one rank of
 * no model parallelism (NVIDIA/Megatron-LM@d98e8a64, megatron/core;
 * NVIDIA/TransformerEngine@d0067d0d), as its arguments (settings megatron.*)
 * have it.
 *
 * Gradients.  DistributedDataParallel holds main_grad, one fp32 buffer (with
 * fp16 weights one of fp16, which the step casts), all through the run.  The
 * product that makes a weight's gradient adds it there itself (wgrad=fused);
 * the empty 16-bit tensor that stands for it until autograd's hook has run is
 * made all the same (core/tensor_parallel/layers.py, "dummy grad_weight");
 * since core 0.14 and Transformer Engine 2.4 there is one for each shape of a
 * weight, which is never let go (get_dummy_wgrad; wgrad=cached).
 *
 * A layer.  Norm and product save x, the normed x and the statistics
 * (TELayerNormColumnParallelLinear saves what both would apart).  One product
 * makes q, k and v; they are views of its result where the kernel takes them
 * so, that is where they are neither rotated nor normed nor shared by several
 * heads; else the result ends and each is a tensor of its own.  A dropout that
 * an addition alone reads is one kernel with it (bias_dropout_add_fused); the
 * activation saves its input (bias_gelu, bias_swiglu).  Saved bytes of a layer
 * with biases, dropout, as many heads everywhere and GELU, n = s b h:
 *
 *   unfused   34 n + 5 a s s b       fused   34 n + 4 a s b (log-sum-exp)
 *   flash     36 n + 4 a s b: the kernel keeps [b, s, h] and a copy as
 *             [s, b, h] goes on (TE, dot_product_attention/backends.py)
 *
 * and besides 16 bytes of statistics a token.
 *
 * The step's inputs.  tokens and target as ever, positions, a loss mask of
 * fp32 and a mask of s x s bytes a sample; of one micro-batch at a time.
 *
 * Logits.  The loss is within the model, so nothing else holds them.  Forward
 * casts them to fp32 and works in place, which is saved: 2 + 4 bytes; backward
 * makes the 16-bit gradient beside it.  loss=native is compiled, so that the
 * exponentials are a tensor of their own: 10 bytes.  loss=te leaves the
 * gradient in place of the logits: 2 bytes.
 *
 * What stays: Transformer Engine's workspace (cpp_extensions/gemm.py,
 * get_cublas_workspace_size_bytes), 4 MiB, from Hopper on 32 MiB and 1 KiB;
 * spec=local instead the scores' buffer, "mpu" of core/utils.py
 * GlobalMemoryBuffer; cuBLAS workspaces as ever, for products of torch;
 * positions to rotate by, fp32 [s, dim].
 *
 * Twelve layers of 512 with 8 heads, 4 x 1024 tokens, dropout, 50304 words,
 * unfused: 12 x 228 MiB + 6 x 4096 x 50304 + 15 MiB for the ends and masks =
 * 3930 MiB, as Megatron's CI has measured (tests/truth/megatron.tsv). */

#include "graphs/kernels/kernels.h"
#include "graphs/trace/stepsettings.h"

typedef struct ms_trace ms_trace; /* trace.h */

/* In the order of the settings' words. */
enum { MS_MCORE_TE, MS_MCORE_LOCAL };
enum { MS_MCORE_AUTO, MS_MCORE_FUSED, MS_MCORE_FLASH, MS_MCORE_UNFUSED };
enum { MS_MCORE_LOSS_UNFUSED, MS_MCORE_LOSS_NATIVE, MS_MCORE_LOSS_TE };
enum { MS_MCORE_WGRAD_FUSED, MS_MCORE_WGRAD_APART, MS_MCORE_WGRAD_CACHED };
enum { MS_MCORE_MASK, MS_MCORE_NO_MASK };

/* ---- mcoresettings.c ----------------------------------------------------- */

/* Settings that contradict each other, or the kernels.  MS_EUSAGE. */
ms_err ms_mcoresettings_check(const ms_training *training, ms_fault *fault);
/* Settings megatron.* where other kernels are chosen.  MS_EUSAGE. */
ms_err ms_mcoresettings_check_idle(const ms_training *training,
                                   ms_fault *fault);
/* Fills what these kernels decide where the user has not. */
void ms_mcoresettings_settle(ms_training *training);
/* The backend where the setting says auto. */
int64_t ms_mcoresettings_backend(const ms_step_settings *settings);
/* Attention and loss, where megatron.* chooses them. */
void ms_mcoresettings_choose(const ms_step_settings *settings,
                             ms_kernel_set *set);

/* ---- mcoregrads.c -------------------------------------------------------- */

/* Does .grad exist all through the step?  Is it fp32? */
bool ms_mcoregrads_hold(const ms_step_settings *settings);
bool ms_mcoregrads_are_fp32(const ms_step_settings *settings);
/* Does the step cast gradients to fp32 before a fused update? */
bool ms_mcoregrads_are_cast(const ms_trace *trace);
/* Of wgrad=cached: what all weights of this shape share. */
uint32_t ms_mcoregrads_stand_in(ms_trace *trace, uint32_t weight);
/* The open op makes this weight's gradient: it adds it to main_grad. */
void ms_mcoregrads_add(ms_trace *trace, uint32_t weight);

/* ---- mcorelayers.c ------------------------------------------------------- */

/* The other of two products of one input whose outputs a gate joins, for which
 * Megatron has one (linear_fc1); or MS_NONE. */
uint32_t ms_mcorelayers_joined_with(ms_trace *trace, uint32_t layer);
/* The step's further inputs. */
void ms_mcorelayers_batch(ms_trace *trace);
/* Is op, a product, one of a layer's by Transformer Engine? */
bool ms_mcorelayers_is_te_product(const ms_trace *trace, uint32_t op);
/* Bytes of a cuBLAS workspace. */
uint64_t ms_mcorelayers_cublas_bytes(const ms_step_settings *settings);
/* Is the layer a dropout that the addition behind it does with its own? */
bool ms_mcorelayers_defers_dropout(ms_trace *trace, const ms_layer *layer);
/* Is input i of the addition such a dropout? */
bool ms_mcorelayers_is_deferred(ms_trace *trace, const ms_layer *add,
                                uint32_t i);
/* residual + dropout(x), one kernel that saves the mask. */
uint32_t ms_mcorelayers_dropout_add(ms_trace *trace, uint32_t x,
                                    uint32_t residual);

/* ---- mcoreloss.c --------------------------------------------------------- */

uint32_t ms_mcoreloss_temporaries(ms_trace *trace, const int64_t *dims,
                                  uint32_t *made);

/* ---- mcoreattention.c ---------------------------------------------------- */

/* The layer "attention".  Faults: MS_EINPUT for what Megatron does not know. */
ms_err ms_mcoreattention_forward(ms_trace *trace, const ms_layer *layer,
                                 const ms_attention_sizes *sizes,
                                 const uint32_t *in, uint32_t *out);

#endif
