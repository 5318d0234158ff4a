/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_KINDS_H
#define MS_KINDS_H

/* What kind of kernel an op is, and what a layer is for: policies and the
 * device's rates ask for it, so that no code has to guess it from a name.  The
 * rows of the op tables and of the layer types say it (graphs/aten,
 * graphs/layers). */

#include <stdbool.h>
#include <stdint.h>

/* ms_graph.op_kind.  Products are distinguished as far as other systems
 * distinguish them: torchtitan's selective checkpoints count aten::mm alone,
 * and a product in an extension's kernel is invisible to a policy that watches
 * the dispatcher. */
typedef enum ms_op_kind {
    MS_KIND_OTHER,   /* not known: of no table, or of the user's own */
    MS_KIND_VIEW,    /* another look at the same storage */
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

/* ms_graph.layer_role: what a layer is for.  That of most types is theirs;
 * what a linear layer is for its readers say (graphs/layers/walk/layerroles.h).
 */
typedef enum ms_layer_role {
    MS_ROLE_OTHER, /* a module of an op graph, an op of the user's own */
    MS_ROLE_EMBEDDING,
    MS_ROLE_NORM,
    MS_ROLE_ATTENTION,      /* with its projections, or the core alone */
    MS_ROLE_PROJECTION,     /* a linear layer that is none of the next four */
    MS_ROLE_PROJECTION_IN,  /* of a block: from its input, as up */
    MS_ROLE_PROJECTION_OUT, /* of a block: into the residual sum, as down */
    MS_ROLE_GATE,           /* of a block: its activation multiplies another */
    MS_ROLE_HEAD,           /* what a loss reads */
    MS_ROLE_ACTIVATION,     /* element by element */
    MS_ROLE_GATED, /* the product of a gate and another layer's output */
    MS_ROLE_SUM,   /* of several inputs: residual sums */
    MS_ROLE_DROPOUT,
    MS_ROLE_EXPERTS,
    MS_ROLE_CONVOLUTION,
    MS_ROLE_RECURRENT,
    MS_ROLE_POOLING,
    MS_ROLE_PRODUCT, /* of two activations */
    MS_ROLE_REDUCTION,
    MS_ROLE_ARRANGEMENT, /* views, copies, choices of elements */
    MS_ROLE_LOSS,
    MS_ROLE_STATE, /* parameters and inputs of no layer */
    MS_N_ROLES
} ms_layer_role;

#endif
