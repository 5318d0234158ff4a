/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_GRAPHS_OPS_H
#define MS_GRAPHS_OPS_H

/* Private to graphs/: the ops that layers are written in.  Each records its
 * kernels, what autograd saves and its backward rule as measured in
 * specs/autograd.md (CPU, torch 1.13) and specs/autograd-cuda.md (CUDA, 2.x).
 * Arguments and results are tensors; nobody drops an argument. */

#include "graphs/trace.h"

/* The backward rules, also for ops that arrive by name (aten.c). */
extern const ms_rule ms_view_view_rule, ms_view_transpose_rule, ms_view_clone_rule, ms_view_split_rule, ms_view_slice_rule, ms_view_select_rule;
extern const ms_rule ms_pointwise_mul_scalar_rule, ms_pointwise_div_scalar_rule, ms_pointwise_add_scalar_rule, ms_pointwise_pow_rule, ms_pointwise_add_rule, ms_pointwise_mul_rule, ms_pointwise_cast_rule, ms_pointwise_masked_fill_rule;
extern const ms_rule ms_matmul_addmm_rule, ms_matmul_mm_rule, ms_matmul_bmm_rule;
extern const ms_rule ms_norm_layer_norm_rule, ms_norm_softmax_rule;
extern const ms_rule ms_lookup_embedding_rule;
extern const ms_rule ms_loss_log_softmax_rule, ms_loss_nll_loss_rule, ms_loss_mse_rule, ms_loss_mean_rule;
extern const ms_rule ms_pointwise_rsqrt_rule, ms_pointwise_sqrt_rule,
    ms_pointwise_div_rule, ms_view_permute_rule, ms_view_cat_rule,
    ms_norm_batch_norm_rule, ms_norm_group_norm_rule, ms_view_sum_rule, ms_conv_rule, ms_conv_max_pool_rule,
    ms_conv_avg_pool_rule;

/* Backward functions that many rules share: a kernel of the gradient and the
 * first saved tensor; the same after one or two temporaries; one kernel for
 * each input. */
void ms_pointwise_one_kernel(ms_trace *trace, const ms_node *node,
                             const uint32_t *grads, uint32_t *out);
void ms_pointwise_one_temporary(ms_trace *trace, const ms_node *node,
                                const uint32_t *grads, uint32_t *out);
void ms_pointwise_two_temporaries(ms_trace *trace, const ms_node *node,
                                  const uint32_t *grads, uint32_t *out);
void ms_pointwise_both(ms_trace *trace, const ms_node *node,
                       const uint32_t *grads, uint32_t *out);

/* ---- view.c: no kernels, shared storages --------------------------------- */

/* at::view where strides allow it (computeStride), else a contiguous copy. */
uint32_t ms_view_reshape(ms_trace *trace, uint32_t x, uint32_t n_dims,
                         const int64_t *dims);
/* The last dimension kept, the others folded into one. */
uint32_t ms_view_rows(ms_trace *trace, uint32_t x);
uint32_t ms_view_transpose(ms_trace *trace, uint32_t x, uint32_t a, uint32_t b);
uint32_t ms_view_contiguous(ms_trace *trace, uint32_t x);
/* n equal pieces of the last dimension (one SplitBackward0). */
void ms_view_split(ms_trace *trace, uint32_t x, uint32_t n, uint32_t *pieces);
/* x[:, index]: an alias for the full slice, then select on dimension 1. */
uint32_t ms_view_select(ms_trace *trace, uint32_t x, int64_t index);
/* Made by the open op like tensor in shape and dtype, laid out like layout
 * where that is dense and of the same shape, else contiguous. */
uint32_t ms_view_make(ms_trace *trace, const char *role, uint32_t tensor,
                      uint32_t layout);
bool ms_view_is_contiguous(const ms_tensor *tensor);
bool ms_view_is_dense(const ms_tensor *tensor);

/* ---- pointwise.c --------------------------------------------------------- */

typedef struct ms_unary {
    const char *op;
    ms_rule rule;
    bool saves_output; /* else its input */
    double flops;      /* per element */
} ms_unary;
extern const ms_unary ms_pointwise_relu, ms_pointwise_gelu, ms_pointwise_silu,
    ms_pointwise_sigmoid, ms_pointwise_tanh, ms_pointwise_exp,
    ms_pointwise_log, ms_pointwise_neg;
/* The number that a node saved, where it is a tensor: see pointwise.c. */
void ms_pointwise_save_scalar(ms_trace *trace, uint32_t node);

uint32_t ms_pointwise_unary(ms_trace *trace, const ms_unary *unary, uint32_t x);
uint32_t ms_pointwise_add(ms_trace *trace, uint32_t a, uint32_t b);
uint32_t ms_pointwise_mul(ms_trace *trace, uint32_t a, uint32_t b);
uint32_t ms_pointwise_add_scalar(ms_trace *trace, uint32_t x);
uint32_t ms_pointwise_mul_scalar(ms_trace *trace, uint32_t x);
uint32_t ms_pointwise_div_scalar(ms_trace *trace, uint32_t x);
uint32_t ms_pointwise_pow(ms_trace *trace, uint32_t x);
uint32_t ms_pointwise_cast(ms_trace *trace, uint32_t x, uint8_t dtype);
uint32_t ms_pointwise_masked_fill(ms_trace *trace, uint32_t x, uint32_t mask);
/* buffer[..., :sequence, :sequence] == 0 */
uint32_t ms_pointwise_is_zero(ms_trace *trace, uint32_t buffer, uint32_t n_dims,
                              const int64_t *dims);
uint32_t ms_pointwise_dropout(ms_trace *trace, uint32_t x, double p);
/* 0.5 x (1 + tanh(c (x + 0.044715 x^3))), op by op as in GPT-2's code. */
uint32_t ms_pointwise_gelu_new(ms_trace *trace, uint32_t x);

/* ---- matmul.c ------------------------------------------------------------ */

/* x [..., in] weight [out, in] bias [out] or MS_NONE. */
uint32_t ms_matmul_linear(ms_trace *trace, uint32_t x, uint32_t weight,
                          uint32_t bias);
/* torch.matmul of two 4-D tensors: expand, reshape (may copy), bmm, view. */
uint32_t ms_matmul_batched(ms_trace *trace, uint32_t a, uint32_t b);

/* ---- norm.c -------------------------------------------------------------- */

uint32_t ms_norm_layer(ms_trace *trace, uint32_t x, uint32_t weight,
                       uint32_t bias);
uint32_t ms_norm_softmax(ms_trace *trace, uint32_t x);

/* ---- lookup.c ------------------------------------------------------------ */

uint32_t ms_lookup_embedding(ms_trace *trace, uint32_t weight,
                             uint32_t indices);
uint32_t ms_lookup_arange(ms_trace *trace, int64_t n);

/* ---- attention.c --------------------------------------------------------- */

/* Fused attention: q, k, v are [batch, heads, sequence, dim] views. */
uint32_t ms_attention_flash(ms_trace *trace, uint32_t q, uint32_t k, uint32_t v,
                            bool causal);

/* ---- loss.c -------------------------------------------------------------- */

uint32_t ms_loss_cross_entropy(ms_trace *trace, uint32_t logits,
                               uint32_t target);
/* Megatron's vocabulary-parallel cross entropy on one rank: fp32 softmax in
 * place of the cast logits, gradient in place of the softmax. */
uint32_t ms_loss_fused_cross_entropy(ms_trace *trace, uint32_t logits,
                                     uint32_t target);
uint32_t ms_loss_mse(ms_trace *trace, uint32_t x, uint32_t target);
uint32_t ms_loss_mean(ms_trace *trace, uint32_t x);

/* ---- raw.c --------------------------------------------------------------- */

typedef struct ms_raw {
    const int64_t *dims; /* of the output, batch first */
    uint32_t n_dims;
    bool saves_input, saves_output;
    double flops;
    uint64_t workspace_bytes;
} ms_raw;
/* An op of the user's own: one output, backward makes the input's gradient. */
uint32_t ms_raw_op(ms_trace *trace, uint32_t x, const ms_raw *raw);
/* States only: a parameter whose gradient backward makes from nothing. */
void ms_raw_states(ms_trace *trace, uint32_t parameter);

#endif
