/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_GRAPHS_TENSORS_H
#define MS_GRAPHS_TENSORS_H

/* Private to graphs/: what a trace records, for files that describe it and do
 * not record: tensors, autograd nodes and their rules, parameters.  Rows are
 * the trace's; numbers of tensors, nodes and parameters are rows. */

#include "graphs/model.h"

typedef struct ms_trace ms_trace; /* trace.h */

typedef struct ms_tensor {
    uint32_t storage;
    uint8_t dtype, n_dims;
    bool requires_grad;
    bool view; /* shares its storage with the tensor it was made from */
    uint32_t refs;
    uint32_t pins;         /* inputs and saves of nodes that have not run */
    uint32_t node, output; /* grad_fn and which of its outputs */
    uint32_t parameter;    /* row of parameters, or MS_NONE */
    int64_t size[MS_MAX_DIMS], stride[MS_MAX_DIMS];
} ms_tensor;

struct ms_node;
/* One row per autograd node type.  backward gets one gradient per output
 * (MS_NONE: undefined) and fills one per input that needs it; what it does not
 * fill stays MS_NONE.  Gradients are tensors with one reference each that the
 * engine owns afterwards; passing the incoming tensor on takes a reference
 * (ms_trace_ref). */
typedef struct ms_rule {
    const char *name; /* "AddmmBackward0" */
    const char *op;   /* its kernel, where it is one: "aten::gelu_backward" */
    void (*backward)(ms_trace *trace, const struct ms_node *node,
                     const uint32_t *grads, uint32_t *out);
} ms_rule;

typedef struct ms_node {
    const ms_rule *rule;
    const ms_rule *inner; /* CopySlices: the rule of the op in place */
    uint32_t layer, unit;
    uint32_t n_inputs, n_outputs, n_saved, saved_capacity;
    bool holds; /* each saved tensor twice: ms_savedends_hold */
    /* Tensors: their shapes stay readable, and where the gradient of an input
     * goes (a node's output or a parameter) is what made the input. */
    uint32_t *input, *saved;
    uint32_t *grad;   /* per output: input buffer of the engine */
    uint32_t *output; /* for their shapes, where there are several */
    bool *needs;      /* does input i need a gradient? */
    int64_t i[2];     /* whatever the rule wants to remember */
    double flops;     /* of the forward op */
    uint32_t first_save, n_saves; /* of the graph's saves those of the node,
                                     from the first on */
} ms_node;

#define MS_MOST_STATES 6u
struct ms_read_update;

/* What DeepSpeed has besides for a parameter, which no op of the graph touches.
 */
typedef enum ms_kept {
    MS_KEPT_TWICE,   /* of a process that updates beside the step: weights and
                        moments a second time */
    MS_KEPT_COLUMNS, /* moments of the columns that the device updates */
    MS_KEPT_SUM,     /* the sum of micro-batches, on the host */
    MS_N_KEPT
} ms_kept;

typedef struct ms_parameter {
    uint32_t tensor, storage;
    uint32_t grad_storage; /* .grad */
    /* Storages of its state, or MS_NONE: master copy, and what the update
     * keeps (optimtable.h; NULL: no optimizer). */
    uint32_t master, state[MS_MOST_STATES];
    const struct ms_read_update *update;
    uint32_t layer;
    uint32_t cast;       /* autocast: tensor of its 16-bit cast, or MS_NONE */
    uint32_t uses, grad; /* engine: gradients still to come; their sum */
    uint64_t elements;
    uint32_t ranks;     /* that have as many elements, other ones (tensor) */
    uint64_t part;      /* elements that this rank updates: see parts.c */
    uint8_t group;      /* ms_group_role: whose ranks divide it */
    uint64_t owned;     /* of one tensor, at most, on one rank */
    bool far;           /* the host updates it: see hoststep.c */
    uint32_t host_grad; /* where its gradient goes then, or MS_NONE */
    uint32_t kept[MS_N_KEPT]; /* storages, or MS_NONE */
    uint32_t next;     /* a delayed update's new weight, until the step ends,
                          or MS_NONE: what lies elsewhere is read meanwhile */
    uint32_t sum;      /* fp32 sum of its gradients, or MS_NONE */
    bool linear;       /* has the format of linear layers: precisions.h */
    uint32_t copy[2];  /* storages of quantized copies that last, or MS_NONE:
                          rows, columns (fp8.h) */
    uint32_t original; /* storage of the weight whose copy for another
                          pipeline stage it is, or MS_NONE */
    bool partial;      /* each of the ranks that split layers has all of it,
                          and a part of its gradient's sum */
    bool added;        /* its products have added to it: see mcore.h */
    /* Ops of the step that are due as soon as .grad is reduced; or 0, 0. */
    uint32_t due_first, due_end;
} ms_parameter;

#endif
