/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_GRAPHS_OPS_H
#define MS_GRAPHS_OPS_H

/* Private to graphs/: the ops that layers are written in.  Each records its
 * kernels, what autograd saves and its backward rule as graphs/autograd.md has
 * them (CPU, torch 1.13; CUDA, torch 2.x).  Arguments and results are tensors;
 * an op does not drop its arguments. */

#include "graphs/device.h"
#include "graphs/trace/tensors.h"

/* The backward rules, also for ops that arrive by name (aten.c). */
extern const ms_rule ms_view_view_rule, ms_view_transpose_rule,
    ms_view_clone_rule, ms_view_split_rule, ms_view_slice_rule,
    ms_view_select_rule, ms_view_stack_rule, ms_view_diag_rule,
    ms_view_unbind_rule;
extern const ms_rule ms_pointwise_mul_scalar_rule, ms_pointwise_div_scalar_rule,
    ms_pointwise_add_scalar_rule, ms_pointwise_pow_rule, ms_pointwise_add_rule,
    ms_pointwise_mul_rule, ms_cast_rule, ms_pointwise_masked_fill_rule;
extern const ms_rule ms_matmul_addmm_rule, ms_matmul_mm_rule,
    ms_matmul_bmm_rule, ms_matmul_baddbmm_rule;
extern const ms_rule ms_attention_flash_rule;
extern const ms_rule ms_norm_layer_norm_rule, ms_norm_softmax_rule;
extern const ms_rule ms_lookup_embedding_rule;
extern const ms_rule ms_loss_log_softmax_rule, ms_loss_nll_loss_rule,
    ms_loss_mean_rule;
extern const ms_rule ms_pointwise_rsqrt_rule, ms_pointwise_sqrt_rule,
    ms_pointwise_div_rule, ms_view_permute_rule, ms_view_cat_rule,
    ms_norm_batch_norm_rule, ms_norm_group_norm_rule, ms_view_sum_rule,
    ms_conv_rule, ms_conv_max_pool_rule, ms_conv_avg_pool_rule;
extern const ms_rule ms_pointwise_sub_rule, ms_indexed_where_rule,
    ms_indexed_index_rule, ms_indexed_columns_rule, ms_assign_copy_rule;

/* The backward function that many rules share: a kernel of the gradient and
 * the first saved tensor. */
void ms_pointwise_one_kernel(ms_trace *trace, const ms_node *node,
                             const uint32_t *grads, uint32_t *out);

/* ---- formula.c ----------------------------------------------------------- */

/* A backward function as text: a section for each input, in the order in
 * which torch computes the gradients, left out where an input needs none:
 *
 *     "1: mul.g div.g!; 0: pass!"
 *
 * A word is a kernel and what it makes: a tensor shaped like the incoming
 * gradient (g; g1: that of output 1), input N (iN) or saved tensor N (sN) of
 * the node, of its dtype, 1 byte (b) or int64 (l).  ! marks the gradient of
 * the section's input (one per section; pass! is the incoming one itself), ~
 * scratch of one kernel (_to_copy.x~: on the CPU only); the rest are
 * temporaries to the end of the section. */
typedef struct ms_formula {
    ms_rule rule; /* backward: ms_formula_backward */
    const char *makes;
} ms_formula;
void ms_formula_backward(ms_trace *trace, const ms_node *node,
                         const uint32_t *grads, uint32_t *out);
bool ms_formula_is_sound(const char *makes);

/* ---- view.c: no kernels, shared storages --------------------------------- */

/* at::view where strides allow it (computeStride), else a contiguous copy. */
uint32_t ms_view_reshape(ms_trace *trace, uint32_t x, uint32_t n_dims,
                         const int64_t *dims);
/* x.view_as(like) */
uint32_t ms_view_as(ms_trace *trace, uint32_t x, uint32_t like);
/* The last dimension kept, the others folded into one. */
uint32_t ms_view_rows(ms_trace *trace, uint32_t x);
uint32_t ms_view_transpose(ms_trace *trace, uint32_t x, uint32_t a, uint32_t b);
uint32_t ms_view_contiguous(ms_trace *trace, uint32_t x);
/* A copy, whatever the layout of x. */
uint32_t ms_view_copy(ms_trace *trace, uint32_t x);
/* length elements of a dimension. */
uint32_t ms_view_slice(ms_trace *trace, uint32_t x, uint32_t dim,
                       int64_t length);
/* A dimension of size 1 seen n times. */
uint32_t ms_view_expand(ms_trace *trace, uint32_t x, uint32_t dim, int64_t n);
/* Dimension d of the result is order[d] of x. */
uint32_t ms_view_permute(ms_trace *trace, uint32_t x, const uint32_t *order);
/* n tensors end to end in a dimension: a copy. */
uint32_t ms_view_cat(ms_trace *trace, const uint32_t *x, uint32_t n,
                     uint32_t dim);
/* x[:, ..., index]: a full slice of each dimension before dim, then select. */
uint32_t ms_view_select(ms_trace *trace, uint32_t x, uint32_t dim);
/* Made by the open op like tensor in shape and dtype, laid out like layout
 * where that is dense and of the same shape, else contiguous. */
uint32_t ms_view_make(ms_trace *trace, const char *role, uint32_t tensor,
                      uint32_t layout);
/* Gives a tensor that was just made that layout, where it is dense and of the
 * same shape. */
void ms_view_lay_out(ms_trace *trace, uint32_t tensor, uint32_t layout);
/* A view is seen without a dimension, at any one position of it. */
void ms_view_drop_dim(ms_tensor *view, uint32_t dim);
bool ms_view_is_contiguous(const ms_tensor *tensor);
bool ms_view_is_dense(const ms_tensor *tensor);

/* ---- split.c ------------------------------------------------------------- */

/* n pieces of these sizes of a dimension (one SplitBackward0). */
void ms_split_sizes(ms_trace *trace, uint32_t x, uint32_t dim, uint32_t n,
                    const int64_t *sizes, uint32_t *pieces);
/* The rows of the first dimension, as many as it has. */
void ms_split_unbind(ms_trace *trace, uint32_t x, uint32_t *rows);
/* n tensors of one shape along a new first dimension: a copy. */
uint32_t ms_split_stack(ms_trace *trace, uint32_t n, const uint32_t *rows);
/* Drops the references to the pieces. */
void ms_split_drop(ms_trace *trace, uint32_t n, const uint32_t *pieces);

/* ---- pointwise.c --------------------------------------------------------- */

typedef struct ms_unary {
    const char *op;
    ms_rule rule;
    bool saves_output; /* else its input */
    double flops;      /* per element */
} ms_unary;
extern const ms_unary ms_pointwise_relu, ms_pointwise_gelu, ms_pointwise_silu,
    ms_pointwise_sigmoid, ms_pointwise_tanh, ms_pointwise_exp, ms_pointwise_log,
    ms_pointwise_neg, ms_pointwise_leaky_relu;
/* The number that a node saved, where it is a tensor: see pointwise.c. */
void ms_pointwise_save_scalar(ms_trace *trace, uint32_t node);

uint32_t ms_pointwise_unary(ms_trace *trace, const ms_unary *unary, uint32_t x);
/* f_(x): the result is x's storage, which is what is saved. */
uint32_t ms_pointwise_unary_in_place(ms_trace *trace, const ms_unary *unary,
                                     uint32_t x);
uint32_t ms_pointwise_rsqrt(ms_trace *trace, uint32_t x);
uint32_t ms_pointwise_negative(ms_trace *trace, uint32_t x);
uint32_t ms_pointwise_add(ms_trace *trace, uint32_t a, uint32_t b);
uint32_t ms_pointwise_add_in_place(ms_trace *trace, uint32_t a, uint32_t b);
uint32_t ms_pointwise_sub(ms_trace *trace, uint32_t a, uint32_t b);
uint32_t ms_pointwise_mul(ms_trace *trace, uint32_t a, uint32_t b);
uint32_t ms_pointwise_add_scalar(ms_trace *trace, uint32_t x);
uint32_t ms_pointwise_mul_scalar(ms_trace *trace, uint32_t x);
uint32_t ms_pointwise_div_scalar(ms_trace *trace, uint32_t x);
uint32_t ms_pointwise_pow(ms_trace *trace, uint32_t x);
/* x in that format: x itself where it has it. */
uint32_t ms_cast_to(ms_trace *trace, uint32_t x, uint8_t dtype);
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
/* For nodes of other files: rows [n, in] weight [out, in], [n, out]; the
 * gradients of rows and weight by that of the product, [n, out], and by x, the
 * rows. */
uint32_t ms_matmul_rows(ms_trace *trace, uint32_t rows, uint32_t weight);
uint32_t ms_matmul_grad_rows(ms_trace *trace, uint32_t grad, uint32_t weight,
                             double flops);
uint32_t ms_matmul_grad_weight(ms_trace *trace, uint32_t grad, uint32_t x,
                               uint32_t weight, double flops);
/* torch.matmul of two 4-D tensors: expand, reshape (may copy), bmm, view. */
uint32_t ms_matmul_batched(ms_trace *trace, uint32_t a, uint32_t b);
/* bias + a b by one torch.baddbmm; bias broadcasts over rows. */
uint32_t ms_matmul_batched_onto(ms_trace *trace, uint32_t bias, uint32_t a,
                                uint32_t b);

/* ---- norm.c -------------------------------------------------------------- */

uint32_t ms_norm_layer(ms_trace *trace, uint32_t x, uint32_t weight,
                       uint32_t bias);
uint32_t ms_norm_softmax(ms_trace *trace, uint32_t x);
/* One kernel that saves x, the weight and one fp32 per row. */
uint32_t ms_norm_rms(ms_trace *trace, uint32_t x, uint32_t weight);
/* x [batch, channels, ...]; weight and bias or MS_NONE; running: mean and
 * variance or NULL. */
uint32_t ms_norm_batch(ms_trace *trace, uint32_t x, uint32_t weight,
                       uint32_t bias, const uint32_t *running);
uint32_t ms_norm_group(ms_trace *trace, uint32_t x, uint32_t weight,
                       uint32_t bias, int64_t groups);

/* ---- reduce.c ------------------------------------------------------------ */

/* The mean over the last n dimensions, which stay with size 1. */
uint32_t ms_reduce_mean(ms_trace *trace, uint32_t x, uint32_t n);

/* ---- scratch.c ----------------------------------------------------------- */

/* A reduction as its CUDA kernel sees it. */
typedef struct ms_reduction {
    uint64_t outputs, values; /* values of each output */
    uint32_t accumulator;     /* bytes: 4 a sum in fp32, 16 a maximum with its
                                 index, 1 any */
    uint32_t vector; /* outputs that a thread writes at once: 1, 2, 4 */
    bool contiguous; /* the values of an output lie side by side */
    bool one_dim;    /* one run of values, one output */
} ms_reduction;
typedef struct ms_scratch {
    uint64_t buffer, semaphores; /* bytes; 0: none */
} ms_scratch;
ms_scratch ms_scratch_of(const ms_device *device, const ms_reduction *shape);
/* Scratch of the open op, which reduces these dimensions (a bit each) of x and
 * has made its outputs. */
#define MS_ALL_DIMS UINT32_MAX
void ms_scratch_reduce(ms_trace *trace, uint32_t x, uint32_t reduced,
                       uint32_t accumulator);
/* The dimensions that x lost on the way to y, aligned at the end. */
uint32_t ms_scratch_changed(const ms_tensor *x, const ms_tensor *y);

/* ---- assign.c ------------------------------------------------------------ */

/* An op in place on a view rebases the history of the whole that it looks at
 * (CopySlices).  before: the whole as it was, first input of the op's node,
 * whose output is the whole and whose last input the view; once its saves are
 * there, part makes it a CopySlices and written a view of the whole. */
uint32_t ms_assign_before(ms_trace *trace, uint32_t whole);
void ms_assign_part(ms_trace *trace, uint32_t node, uint32_t whole,
                    uint32_t written);

/* Writes source into slice, a view of whole; the result is whole. */
uint32_t ms_assign_slice(ms_trace *trace, uint32_t whole, uint32_t slice,
                         uint32_t source);

/* ---- conv.c -------------------------------------------------------------- */

typedef struct ms_conv {
    const int64_t *dims; /* of the output; as many as of x */
    bool transposed;
    double flops;
} ms_conv;
/* Are the strides of a tensor of 4 or 5 dimensions those of channels_last
 * (suggest_memory_format)?  Where dimensions of size 1 leave it open they are
 * not (c10/core/MemoryFormat.h, PyTorch 2.11). */
bool ms_conv_is_channels_last(const ms_tensor *tensor);
uint32_t ms_conv_convolution(ms_trace *trace, uint32_t x, uint32_t weight,
                             uint32_t bias, const ms_conv *conv);

/* ---- fusednorm.c --------------------------------------------------------- */

/* Liger's: RMS norm saves x, the weight and an fp32 value per row, its backward
 * overwrites dy; layer norm saves x, weight, bias and two values per row in the
 * dtype of x. */
uint32_t ms_fusednorm_rms(ms_trace *trace, uint32_t x, uint32_t weight);
uint32_t ms_fusednorm_layer(ms_trace *trace, uint32_t x, uint32_t weight,
                            uint32_t bias);

/* ---- gated.c ------------------------------------------------------------- */

/* activation(gate) * up in one kernel that saves both; in_place: backward
 * writes their gradients over them. */
uint32_t ms_gated_product(ms_trace *trace, const char *op, bool in_place,
                          uint32_t gate, uint32_t up);
/* The same of the halves of x, whose gradient is one tensor. */
uint32_t ms_gated_halves(ms_trace *trace, const char *op, uint32_t x);

/* ---- rotary.c ------------------------------------------------------------ */

/* x [batch, heads, sequence, dim], tables [sequence, dim]:
 * x cos + cat(-x2, x1) sin, op by op. */
uint32_t ms_rotary_eager(ms_trace *trace, uint32_t x, uint32_t cos,
                         uint32_t sin);
/* cat(x1 cos - x2 sin, x2 cos + x1 sin), tables [sequence, dim / 2]. */
uint32_t ms_rotary_halves(ms_trace *trace, uint32_t x, uint32_t cos,
                          uint32_t sin);
/* One kernel in place, which saves the tables only. */
uint32_t ms_rotary_fused(ms_trace *trace, uint32_t x, uint32_t cos,
                         uint32_t sin);

/* ---- lookup.c ------------------------------------------------------------ */

uint32_t ms_lookup_embedding(ms_trace *trace, uint32_t weight,
                             uint32_t indices);
uint32_t ms_lookup_arange(ms_trace *trace, int64_t n);

/* ---- attention.c --------------------------------------------------------- */

typedef struct ms_attended {
    bool causal;
    int64_t window; /* keys that a query sees; 0: all */
    double dropout; /* of the weights */
} ms_attended;
/* Fused attention: q, k, v are [batch, heads, sequence, dim] views; k and v
 * may have fewer heads, each for a group of q's, and v other channels. */
uint32_t ms_attention_flash(ms_trace *trace, uint32_t q, uint32_t k, uint32_t v,
                            ms_attended attended);

/* What its backward over so many of q's queries has while it runs, made by the
 * open op: softmax_d, dq_accum. */
void ms_attention_sums(ms_trace *trace, uint32_t q, int64_t queries,
                       uint32_t sums[2]);

/* The same of q, k, v with as many heads each, by xFormers' kernel. */
uint32_t ms_attention_efficient(ms_trace *trace, uint32_t q, uint32_t k,
                                uint32_t v, ms_attended attended);

/* ---- recurrent.c --------------------------------------------------------- */

typedef struct ms_recurrent_cell {
    uint32_t weight_ih, weight_hh; /* [gates hidden, features or hidden] */
    uint32_t bias_ih, bias_hh;     /* or MS_NONE */
} ms_recurrent_cell;
/* One direction over x [sequence, batch, features], step by step: the hidden
 * states [sequence, batch, hidden].  h and c, the state, are rebound; c NULL:
 * a GRU. */
uint32_t ms_recurrent_steps(ms_trace *trace, uint32_t x,
                            const ms_recurrent_cell *cell, bool backwards,
                            uint32_t *h, uint32_t *c);
/* All layers and directions in one op of cuDNN.  inputs: x and the weights;
 * width: of the output; states: width times layers. */
uint32_t ms_recurrent_cudnn(ms_trace *trace, const uint32_t *inputs,
                            uint32_t n_inputs, int64_t width, int64_t states,
                            bool lstm);

/* ---- chunkedloss.c ------------------------------------------------------- */

/* Liger's cross entropy: forward overwrites the logits with their gradient,
 * which backward passes on. */
uint32_t ms_chunkedloss_in_place(ms_trace *trace, uint32_t logits,
                                 uint32_t target);
/* Liger's fused linear cross entropy: chunk by chunk of the rows of x, logits,
 * loss and gradients at once; the gradients of x and weight are held until
 * backward. */
uint32_t ms_chunkedloss_linear(ms_trace *trace, uint32_t x, uint32_t weight,
                               uint32_t target);
/* compiledloss.c: of logits.float(), in kernels of torch.compile's; saves the
 * logits as they are. */
uint32_t ms_compiledloss_cross_entropy(ms_trace *trace, uint32_t logits,
                                       uint32_t target);

/* ---- loss.c -------------------------------------------------------------- */

/* Logits [batch, classes, height, width]; others have their classes last. */
bool ms_loss_is_image(const ms_tensor *logits);
uint32_t ms_loss_cross_entropy(ms_trace *trace, uint32_t logits,
                               uint32_t target);
/* Megatron's vocabulary-parallel cross entropy on one rank: fp32 softmax in
 * place of the cast logits, gradient in place of the softmax. */
uint32_t ms_loss_fused_cross_entropy(ms_trace *trace, uint32_t logits,
                                     uint32_t target);
/* With label smoothing, op by op (ATen/native/LossNLL.cpp). */
uint32_t ms_loss_smoothed_cross_entropy(ms_trace *trace, uint32_t logits,
                                        uint32_t target);
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
/* A stage that was measured: what it makes and keeps is bytes, its times are
 * given.  saved_bytes: all that backward needs of what it makes, the output
 * included; the backward's workspace comes beside the input's gradient. */
typedef struct ms_raw_stage {
    uint64_t output_bytes, saved_bytes;
    uint64_t forward_workspace_bytes, backward_workspace_bytes;
    uint64_t forward_ns, backward_ns;
} ms_raw_stage;
uint32_t ms_raw_measured(ms_trace *trace, uint32_t x,
                         const ms_raw_stage *stage);
/* States only: a parameter whose gradient backward makes from nothing. */
void ms_raw_states(ms_trace *trace, uint32_t parameter);

#endif
