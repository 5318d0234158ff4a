/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_KINDS_H
#define MS_KINDS_H

/* What kind of kernel an op is: what policies and the rates of a device ask,
 * so that nobody reads it from a name.  The rows of the op tables say it
 * (graphs/aten). */

#include <stdbool.h>
#include <stdint.h>

/* ms_graph.op_kind.  Products are told apart as far as code outside tells
 * them apart: torchtitan's selective checkpoints count aten::mm alone, and
 * an extension's product is none to who watches the dispatcher. */
typedef enum ms_op_kind {
    MS_KIND_OTHER,   /* not known: of no table, or of the user's own */
    MS_KIND_VIEW,    /* no kernel, or one that only moves nothing */
    MS_KIND_MM,      /* a product of two matrices */
    MS_KIND_ADDMM,   /* the same with a bias */
    MS_KIND_BMM,     /* a batch of products */
    MS_KIND_GEMM,    /* a product by a kernel of a library of its own: fp8 */
    MS_KIND_GROUPED, /* the products of all experts in one kernel */
    MS_KIND_PRODUCT, /* others: a matrix and a vector, two vectors */
    MS_KIND_CONVOLUTION,
    MS_KIND_FLASH,     /* attention in one kernel: flash */
    MS_KIND_EFFICIENT, /* memory-efficient */
    MS_KIND_ATTENTION, /* cuDNN's, the CPU's */
    MS_KIND_RECURRENT,
    MS_KIND_NORM,       /* by sample: layer, RMS and group norms */
    MS_KIND_BATCH_NORM, /* over the batch */
    MS_KIND_SOFTMAX,
    MS_KIND_LOSS,
    MS_KIND_POINTWISE, /* element by element, but for the next two */
    MS_KIND_ADD,       /* a sum of two tensors, or of one and a number */
    MS_KIND_DROPOUT,
    MS_KIND_ROTARY,
    MS_KIND_REDUCTION,
    MS_KIND_SORT,      /* orders, choices of the largest, counts */
    MS_KIND_POOLING,   /* windows, and resampling */
    MS_KIND_EMBEDDING, /* looks rows of a table up */
    MS_KIND_INDEX,     /* gathers or scatters by indices */
    MS_KIND_COPY,      /* the same elements elsewhere, or in another order */
    MS_KIND_CAT,       /* tensors end to end */
    MS_KIND_CAST,      /* to another format */
    MS_KIND_FILL,      /* made from nothing: constants, random numbers */
    MS_KIND_OPTIMIZER, /* of the step: fused, or over lists of tensors */
    MS_KIND_COLLECTIVE,
    MS_N_KINDS
} ms_op_kind;

/* Of two matrices, one of which may be a weight. */
bool ms_kinds_is_product(uint8_t kind);
/* Softmax and both of its products in one kernel. */
bool ms_kinds_is_attention(uint8_t kind);

#endif
