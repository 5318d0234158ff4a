/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_GRAPHS_PARTPRODUCT_H
#define MS_GRAPHS_PARTPRODUCT_H

/* Private to graphs/: products of layers that ranks split, as Megatron-Core and
 * Transformer Engine have them: one autograd node that exchanges and multiplies
 * (Megatron-LM@d98e8a64, core/tensor_parallel/layers.py,
 * LinearWithGradAccumulationAndAsyncCommunication; TransformerEngine@d0067d0d,
 * pytorch/module/linear.py, layernorm_linear.py).
 *
 * By columns, x whole: the gradient of the input is summed over the ranks while
 * the weight's is computed.  x a part of the sequence: forward gathers it and
 * lets go at once; what is saved is the part, which backward gathers again
 * while the gradient of the input is computed, which then is scattered beside
 * the weight's.
 *
 * Where nothing is gathered again (tensor:T,sp,regather=0: nanotron's
 * tp_recompute_allgather=false) the whole is saved instead.
 *
 *     forward   gather 2 n h | product | end of the gathered
 *     backward  gather 2 n h, product 2 n h | scatter 2 n h / t, product
 *
 * By rows, the result is summed in place, or scattered; then backward gathers
 * its gradient for both products.  The bias is added to the sum, by whoever
 * reads it (bias_dropout_add): it is no op here. */

#include "graphs/trace/tensors.h"

/* x [batch, sequence, in], weight [out, in], bias [out] or MS_NONE; ranks split
 * the layer.  in_buffer: x is gathered into Megatron's buffer. */
uint32_t ms_partproduct_columns(ms_trace *trace, uint32_t x, uint32_t weight,
                                uint32_t bias, bool in_buffer);
uint32_t ms_partproduct_rows(ms_trace *trace, uint32_t x, uint32_t weight,
                             uint32_t bias);

#endif
