/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_GRAPHS_TRACE_H
#define MS_GRAPHS_TRACE_H

/* Private to graphs/: the graph under construction.
 *
 * A trace mimics one eager training step of PyTorch on shapes: tensors with
 * strides over storages with reference counts, ops that allocate, autograd
 * nodes that save.  Layers are written as their Python code is: call ops, drop
 * tensors where the variables end.
 *
 *     uint32_t h = ms_matmul_linear(t, x, weight, bias);   h = fc(x)
 *     uint32_t y = ms_pointwise_unary(t, &ms_pointwise_gelu, h);
 *     ms_trace_drop(t, h);                                 h is rebound
 *
 * Failure is sticky: after the first fault every call returns MS_NONE and does
 * nothing, so layer code needs no checks; trace->err tells at the end.
 *
 * References.  Each tensor (a TensorImpl) is counted; a storage's LOCAL
 * reference ends when its last tensor dies, its SAVED reference when the last
 * node that saved it has released it (graphs/autograd.md 1 and 4).  Both
 * ends are entered in the drop list of the op that ran last.
 *
 * Memory.  What the graph keeps grows in arena; tensors, nodes and counts die
 * with scratch.  A tensor stays where it is; its row is used again when
 * neither a reference nor a node names it any more: ask a tensor for its shape
 * before you drop it.
 *
 * Parts.  What the step is made of and for is said before it begins and never
 * changes (stepsettings.h); which code's kernels run is a set of them
 * (kernels/kernels.h); what parameters have in common in the step of the
 * optimizer is its own affair (optimizer/optimizer.h).  The rest is the
 * recorder. */

#include "graphs/formats/dtypes.h"
#include "graphs/json/index.h"
#include "graphs/kernels/kernels.h"
#include "graphs/model.h"
#include "graphs/trace/stepsettings.h"
#include "graphs/trace/tensors.h"
#include "sim/nouns.h"
#include "sim/shape.h"

#include <assert.h>

#define MS_CHUNK 256u
typedef struct ms_chunk {
    ms_tensor row[MS_CHUNK];
} ms_chunk;

/* What an op was when it ended, for the passes over the finished graph. */
typedef enum ms_op_work {
    MS_WORK_NONE, /* it was not ended here: it says its time itself */
    MS_WORK_PLAIN,
    MS_WORK_ROWS, /* over rows of k elements of m bytes, each as a whole */
    MS_WORK_ROWS_CENTRED, /* the same, less their mean: layer norm */
    MS_WORK_ROWS_LOG,     /* the same, their log_softmax */
    MS_WORK_SCATTERED,    /* plain, of a tensor that is not contiguous */
    MS_WORK_LISTS,        /* a kernel over lists of tensors */
    MS_WORK_CAST,         /* to fp8, of what was just written */
    MS_WORK_MATRIX,       /* of a shape that is not told */
    MS_WORK_PRODUCT,      /* of m x k by k x n */
    MS_WORK_FLASH, /* attention: k channels a head, of m queries to n keys
                      on average */
    MS_WORK_EFFICIENT,
    MS_WORK_CONVOLUTION,     /* as products of m x k by k x n, one a group */
    MS_WORK_CONVERTED,       /* the same, its tensors laid out anew */
    MS_WORK_CONVERTED_THREE, /* such a one of 3 x 3, one group, stride 1 */
    MS_WORK_DEPTHWISE,       /* a convolution of each channel by itself */
    MS_WORK_FP8,             /* a matrix product in fp8 */
    MS_WORK_GROUPED, /* products of rows in groups, each m x k by k x n */
    MS_WORK_AWAITED  /* attention of other ranks, which this one waits for: its
                        op_ns is what of that it has waited for already */
} ms_op_work;
typedef struct ms_op_end {
    uint32_t storages; /* there by then: what its library takes follows them */
    uint32_t m, n, k;  /* as work has them; of plain ones m: bytes of an
                          element that the op makes, n: how many tensors */
    uint8_t work;      /* ms_op_work */
    /* Of a convolution: of its filter; of an image that it makes; at most
     * 255. */
    uint8_t taps, stride, side;
} ms_op_end;
/* A storage that a pass adds: numbered as if it had been made when `after`
 * storages were there. */
typedef struct ms_added {
    uint32_t storage, after;
} ms_added;

typedef struct ms_storage_count {
    uint32_t saves; /* by nodes, and by those that hold what they saved */
    uint32_t tensors : 31;
    uint32_t persistent : 1;
} ms_storage_count;
/* ms_savedends_give: saves of a storage that end with the tensors made since
 * then, beside so many others. */
typedef struct ms_given {
    uint32_t storage, saves, others;
} ms_given;

/* Products that read what comes in pieces (rowpieces.h): the storage, a tensor
 * of it that is here, and, in columns times ranks, what waits for nothing and
 * what has not been multiplied yet.  ranks 0: there are none. */
typedef struct ms_rowpieces {
    uint32_t whole, part, ranks;
    uint64_t ahead, left;
} ms_rowpieces;

/* A buffer that several layers read: the causal mask, cosines and sines. */
typedef struct ms_shared_buffer {
    const char *role;
    uint32_t tensor;
    struct ms_shared_buffer *next;
} ms_shared_buffer;

/* The linear layer whose product the loss takes part in (headloss.h). */
#define MS_HEAD_CHUNKS 8
typedef struct ms_fused_head {
    uint32_t layer;       /* MS_NONE: none */
    const ms_layer *loss; /* that takes part */
    const struct ms_loss_kernel *kernel;
    uint32_t weight;
    uint32_t n_chunks, chunk[MS_HEAD_CHUNKS]; /* logits in pieces */
} ms_fused_head;

struct ms_trace {
    const ms_step_settings *settings;
    ms_arena *arena;   /* of the graph */
    ms_arena *scratch; /* dies when the graph is there */
    ms_fault *fault;
    ms_err err;

    /* What is made now. */
    ms_kernel_set kernels;
    uint8_t weight_dtype, grad_dtype;
    uint8_t trained_dtype; /* of the parameters that are not frozen */
    bool frozen;           /* those made now have no gradient */
    uint32_t n_formatted;  /* weights of linear layers, where these differ */
    uint32_t n_adapters;   /* weights of adapters so far */
    uint8_t autocast; /* dtype of its list; MS_FLOAT32: outside its region */

    /* Where we are. */
    uint8_t pass;
    uint32_t layer, unit, node_now;
    uint8_t op_flags;
    uint64_t *searched; /* convolutions that cuDNN has tried: cudnn.c */
    uint32_t n_searched, searched_capacity;
    uint32_t input;           /* tensor: the model's input */
    uint32_t positions;       /* tensor: an input beside it, or MS_NONE */
    ms_shared_buffer *shared; /* newest first */
    uint32_t *reader; /* per layer, once a kernel set asks: the one that reads
                         it; MS_NONE and the one before: none, several */
    uint32_t *layer_weight; /* per layer: weight tensor that others may tie */
    bool *is_head; /* per layer: a loss reads it, or it is the loss and has
                      the head in it; NULL for an op graph */
    ms_fused_head head;
    struct ms_shards *shards; /* graphs/parallel/shards.h; NULL: one rank has
                                 all of each layer */
    struct ms_group
        *context; /* of ranks that divide the sequence; NULL: none */
    struct ms_expert_ranks *experts; /* graphs/parallel/expertops.h; NULL: one
                                        rank has all of all experts */
    /* A product that gives what another layer does, too: see kernels.h. */
    uint32_t joined_layer, joined; /* the layer; its output, a reference */
    ms_rowpieces pieces;
    uint32_t parts; /* how many ranks divide the parameters made now; 0: 1 */
    ms_index layer_rows; /* by name, once a layer is tied */
    ms_index op_rows;    /* of the op tables, once a layer calls one */

    /* The graph's columns as they grow (storages not yet renumbered). */
    ms_graph *graph;
    uint32_t storages_capacity, ops_capacity;
    uint32_t in_capacity, out_capacity, drop_capacity;
    uint32_t n_in, n_out, n_drop;
    ms_storage_count *counts;
    ms_given *given; /* those that have not ended: few at a time */
    uint32_t n_given, given_capacity;
    ms_op_end *ends; /* per op */
    ms_added *added; /* by rising `after`; their storages follow each other */
    uint32_t n_added, added_capacity;
    uint32_t n_numbered; /* storages whose order is the graph's already */
    uint64_t all_bytes;  /* of all storages */

    uint32_t n_tensors, n_chunks, chunks_capacity, free_tensor;
    ms_chunk **chunks;
    uint32_t n_nodes, nodes_capacity, most_inputs;
    uint32_t saves_capacity;
    ms_node *nodes;
    bool nodes_stay;     /* somebody asks for nodes that have run */
    const bool *reached; /* per node: does the loss depend on it? */
    uint32_t untrained_capacity;
    uint32_t n_parameters, parameters_capacity;
    ms_parameter *parameters;
    struct ms_optimizer_state *optimizer; /* graphs/optimizer/optimizer.h */

    /* Functions that run layers piece by piece: the graph inside of the node
     * under way (inner.h), what layers that run again have made (lasting.h),
     * and the engine, which runs the nodes from first on, last to first. */
    struct ms_inner_graph *inner;
    struct ms_lasting *lasting;
    struct ms_mlptiles *tiles; /* layers/walk/mlptiles.h */
    void (*run_inside)(ms_trace *trace, uint32_t first);
    bool keeps_no_graph; /* torch.no_grad() */
};

/* ---- trace.c ------------------------------------------------------------- */

ms_err ms_trace_fail(ms_trace *trace, const ms_layer *layer, const char *hint,
                     const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* A pointer that stays valid until the tensor is dropped. */
static inline ms_tensor *ms_trace_at(const ms_trace *trace, uint32_t tensor)
{
    ms_tensor *at = &trace->chunks[tensor / MS_CHUNK]->row[tensor % MS_CHUNK];
    assert(tensor < trace->n_tensors && at->refs + at->pins > 0);
    return at;
}
static inline uint64_t ms_trace_elements(const ms_tensor *tensor)
{
    uint64_t n = 1;
    for (uint32_t d = 0; d < tensor->n_dims; d++)
        n *= (uint64_t)tensor->size[d];
    return n;
}
/* The elements of a tensor as a factor of FLOPs.  After a failure tensors are
 * MS_NONE, and a rule still runs to its end: it is 0 then. */
static inline double ms_trace_count(const ms_trace *trace, uint32_t tensor)
{
    return trace->err ? 0
                      : (double)ms_trace_elements(ms_trace_at(trace, tensor));
}
static inline uint64_t ms_trace_bytes(const ms_tensor *tensor)
{
    return ms_trace_elements(tensor) * ms_dtypes_bytes[tensor->dtype];
}

/* Room for so many from the start; more is possible. */
ms_err ms_trace_reserve(ms_trace *trace, uint32_t storages, uint32_t ops);
/* Storages and what exists before the step.  A storage's full name is
 * "layer:role" with the layer that runs now. */
uint32_t ms_trace_storage(ms_trace *trace, const char *role, uint64_t bytes,
                          uint8_t category, bool persistent);
uint32_t ms_trace_parameter(ms_trace *trace, const char *role, uint32_t n_dims,
                            const int64_t *dims);
/* An input of the step: exists at its start, once per micro-batch. */
uint32_t ms_trace_input(ms_trace *trace, const char *role, uint8_t dtype,
                        uint32_t n_dims, const int64_t *dims);
uint32_t ms_trace_buffer(ms_trace *trace, const char *role, uint8_t dtype,
                         uint32_t n_dims, const int64_t *dims);

/* One op: begin, reads, makes, end (or the shorthand below). */
void ms_trace_begin(ms_trace *trace, const char *name);
void ms_trace_read(ms_trace *trace, uint32_t tensor);
void ms_trace_read_storage(ms_trace *trace, uint32_t storage, uint64_t bytes);
/* Begins the op of node's rule, which reads grad and all that node saved. */
void ms_trace_begin_backward(ms_trace *trace, const ms_node *node,
                             uint32_t grad);
/* The open op makes an existing storage (a .grad, optimizer state). */
void ms_trace_out(ms_trace *trace, uint32_t storage);
/* A new contiguous tensor made by the open op. */
uint32_t ms_trace_make(ms_trace *trace, const char *role, uint8_t dtype,
                       uint32_t n_dims, const int64_t *dims);
uint32_t ms_trace_make_like(ms_trace *trace, const char *role, uint32_t tensor);
/* A storage that the open op makes; no tensor, dropped by drop_storage. */
uint32_t ms_trace_make_storage(ms_trace *trace, const char *role,
                               uint64_t bytes);
/* Bytes that live only during the open op. */
void ms_trace_workspace(ms_trace *trace, uint64_t bytes);
void ms_trace_end(ms_trace *trace, double flops, bool matrix);
/* A tensor over the storage of another, with own sizes and strides. */
uint32_t ms_trace_alias(ms_trace *trace, uint32_t tensor);

void ms_trace_ref(ms_trace *trace, uint32_t tensor);
void ms_trace_drop(ms_trace *trace, uint32_t tensor);
/* A variable that named old names by: x = f(x). */
uint32_t ms_trace_rebind(ms_trace *trace, uint32_t old, uint32_t by);
void ms_trace_drop_storage(ms_trace *trace, uint32_t storage);
/* The last op ends the one reference on what outlives the micro-batch. */
void ms_trace_end_storage(ms_trace *trace, uint32_t storage);

/* The autograd node of the op just recorded.  MS_NONE when no input needs a
 * gradient: then nothing is saved either. */
uint32_t ms_trace_node(ms_trace *trace, const ms_rule *rule,
                       const uint32_t *inputs, uint32_t n_inputs,
                       const uint32_t *outputs, uint32_t n_outputs);
/* The same even where no input needs a gradient. */
uint32_t ms_trace_node_always(ms_trace *trace, const ms_rule *rule,
                              const uint32_t *inputs, uint32_t n_inputs,
                              const uint32_t *outputs, uint32_t n_outputs);
void ms_trace_save(ms_trace *trace, uint32_t node, uint32_t tensor);
/* n saves of storage end (savedends.h). */
void ms_trace_end_saves(ms_trace *trace, uint32_t storage, uint32_t n);
/* What of the storage is given away and has not ended, or NULL. */
ms_given *ms_trace_given(const ms_trace *trace, uint32_t storage);
bool ms_trace_needs(const ms_trace *trace, uint32_t tensor);
/* Is the layer what a loss reads, or has a loss the head in it? */
static inline bool ms_trace_is_head(const ms_trace *trace,
                                    const ms_layer *layer)
{
    return trace->is_head[layer - trace->settings->model->layers];
}
/* Nobody asks for the node's tensors any more. */
void ms_trace_unpin(ms_trace *trace, const ms_node *node);

#endif
