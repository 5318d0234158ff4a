/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_SIM_GRAPH_H
#define MS_SIM_GRAPH_H

/* The graph: what one micro-batch of a model and the optimizer step do, before
 * any policy: ops, the storages that they make and read, and where the last
 * reference on each of these ends.  It is a template: a program (sim/program.h)
 * runs parts of it, some of them several times.
 *
 * Nouns.  A storage is memory that is allocated and freed as a whole; views
 * share one.  An op is a kernel; it allocates its out list, in order, and after
 * it the references of its drop list end.  A unit is the smallest run of layers
 * that can be scheduled by itself, a block what checkpoints count, such as a
 * transformer layer.  All of them are rows of columns, named by 32-bit ids.
 *
 * A worked example, one tensor.  The activation x of layer 3 is storage 71:
 * 8 MiB, made by op 40 (forward), read by op 41 and, in backward, by op 97.
 *
 *     storage_bytes[71] = 8 << 20, storage_maker[71] = 40
 *     drop list of op 41: MS_DROP(71, 0)   the Python variable is bound anew
 *     drop list of op 97: MS_DROP(71, 1)   its autograd node has run
 *
 * Where the program keeps all, it lives from op 40 to op 97. */

#include "sim/expand/hostplace.h"
#include "sim/group.h"
#include "sim/names.h"
#include "sim/nouns.h"
#include "sim/saves.h"

#include <string.h>

/* A reference that ends after an op.  A storage has at most one LOCAL
 * reference (the last Python variable, kept output or gradient buffer that
 * names it) and one SAVED reference (the last autograd node that saved it);
 * lowering folds the many into these two by taking the later end. */
#define MS_DROP_SAVED 1u
#define MS_DROP(storage, saved) ((uint32_t)(storage) << 1 | (uint32_t)(saved))
#define MS_DROP_STORAGE(drop) ((drop) >> 1)

/* Category of a storage that ends as .grad: gradients when .grad does not
 * exist yet, temporaries otherwise.  Only in ms_graph.storage_category. */
#define MS_BECOMES_GRAD ((uint8_t)MS_N_CATEGORIES)

enum {                    /* ms_graph.op_flags */
       MS_OP_CORE = 1u,   /* attention core: what checkpoint:selective redoes */
       MS_OP_CLONES = 2u, /* accumulate: .grad is a clone, not the buffer */
       MS_OP_HOST = 4u,   /* no kernel: takes no time and no launch */
       MS_OP_SHARES = 8u, /* accumulate: .grad views what later ops read */
       MS_OP_MATRIX = 16u,  /* multiply-adds: a product or a convolution */
       MS_OP_EMPTIES = 32u, /* a pool's cache is emptied before it allocates */
       MS_OP_GATHERS = 64u, /* of the step, on the ranks' queue: all-gathers
                               what it makes from the ranks' parts */
       MS_OP_SPARES = 128u  /* what it makes for backward alone, behind its
                               first output, it makes where a node saves it */
};

/* ms_graph.op_meets: a collective (ms_collective) among the ranks of a group
 * (ms_group_role), of the larger of what the op reads and writes. */
#define MS_MEETS(collective, group)                                            \
    ((uint8_t)((group) << 4 | ((collective) + 1)))
#define MS_MEETS_COLLECTIVE(meets) (((meets)&15u) - 1u)
#define MS_MEETS_GROUP(meets) ((uint8_t)((meets) >> 4))

/* Read-only after ms_graph_finish.  Storages [0, n_persistent) outlive the
 * micro-batch (parameters, buffers, optimizer state, .grad, inputs); the rest
 * exist once per frame.  Ops are in host order: forward units ascending,
 * loss, backward units descending, optimizer step.
 *
 * Invariants: unit u's forward ops are [forward_at[u], forward_at[u + 1]),
 * its backward ops [backward_at[u + 1], backward_at[u]) (so backward_at is
 * descending in u); a forward op reads only storages made before it; each
 * storage is in the out list of exactly one op (its maker), none for those
 * that exist at the start.  A workspace that lasts is in those of later ops,
 * too, where ranks have layers of their own: the first one that a rank runs
 * makes the rank's, and a rank that runs none has none. */
#define MS_UNSHARED UINT64_MAX

/* What the ranks of a group divide among them. */
typedef struct ms_share {
    uint32_t parts;  /* how many; 0: nothing */
    uint32_t copies; /* groups of ranks that have all of them */
    uint8_t again;   /* the group in which these copies are summed */
    uint8_t whole_bytes, part_bytes; /* of an element of a weight */
} ms_share;

typedef struct ms_graph {
    const char *name;

    uint32_t n_storages, n_persistent;
    uint64_t *storage_bytes;
    uint8_t *storage_category;
    uint8_t *storage_at_start;   /* 1: exists when a steady step starts */
    uint32_t *storage_maker;     /* op, or MS_NONE */
    uint32_t *storage_local_end; /* op whose drop list ends LOCAL, or NONE */
    uint32_t *storage_saved_end; /* op whose drop list ends SAVED, or NONE */
    uint32_t *storage_grad;      /* BECOMES_GRAD: the .grad storage it ends as;
                                    parameters: their .grad; else NONE */
    uint8_t *storage_buffer;     /* no parameter: ms_graph_buffer; else 0 */
    uint64_t *storage_shard_bytes; /* (optional) of persistent storages: this
                                      rank's part where the ranks share it;
                                      MS_UNSHARED: each holds all of it */
    uint64_t *storage_asked_bytes; /* (optional) of persistent storages that lie
                                      in one block with others: what a real
                                      pool is asked for, all of it or 0.  A rank
                                      with a part of the model asks for each by
                                      itself, whose sum is the same */
    bool grads_whole; /* .grad is whole until it is reduced for the step, though
                         the ranks share it then (DeepSpeed's stage 1) */
    uint8_t *storage_pool; /* (optional) ms_pool_kind in which a storage has its
                              home: a persistent one lies there at the start,
                              whole copies on the device come and go; what the
                              step makes is made there.  NULL: the device */
    uint64_t *storage_far_bytes; /* (optional) what a persistent storage takes
                                    in another memory than the device's, where
                                    its format differs there; 0: the same */
    ms_hostplace hosted;         /* whose memory that is, of the host's */
    uint8_t *storage_whole;      /* (optional) 1: shared, and at the start whole
                                    besides the part */
    uint32_t *storage_width;     /* (optional) of shared weights: the longer of
                                    the first two dimensions; 0: it has one */
    uint8_t *storage_shard_group; /* (optional) of persistent storages: the row
                                     of the groups whose ranks have a part each;
                                     NULL: MS_GROUP_DATA */
    ms_share share[MS_N_GROUP_ROLES]; /* what each of these groups divides */
    uint32_t *storage_copy_of; /* (optional) of persistent storages: the weight
                                  whose copy for another stage it is, or
                                  MS_NONE: their gradients are summed */
    uint8_t *storage_partial;  /* (optional) of persistent storages: 1: a weight
                                  of whose gradient ranks that split layers have
                                  sums of their own until it is reduced */
    uint32_t *storage_ranks;   /* (optional) of persistent storages: how many
                                  ranks have as large a part each (tensor); 1:
                                  each has all of it */
    uint32_t *storage_layer;   /* row of layer_name, or MS_NONE; (optional) */
    const char **storage_name; /* in its layer: "weight", "grad" */

    uint32_t n_ops;
    const char **op_name; /* e.g. "aten::addmm" */
    uint8_t *op_kind;     /* ms_op_kind: what policies ask instead */
    uint8_t *op_pass;
    uint8_t *op_flags;
    uint8_t *op_stream;
    uint8_t *op_group;  /* (optional) of those that gather: in which group;
                           NULL: MS_GROUP_DATA */
    uint8_t *op_meets;  /* (optional) which ops of forward and backward are
                           collectives: MS_MEETS, or 0 */
    uint32_t *op_unit;  /* MS_NONE for step ops */
    uint32_t *op_layer; /* row of layer_name, or MS_NONE */
    uint32_t *op_node;  /* autograd node, or MS_NONE */
    double *op_flops;
    uint64_t *op_read_bytes, *op_write_bytes;
    uint64_t *op_ns;
    uint32_t *in_at, *in;     /* storages read */
    uint32_t *in_via;         /* (optional) per entry of in: the op whose view
                                 of the storage is read, or its maker */
    uint32_t *view_at, *view; /* (optional) with in_via: per op the storages of
                                 which it makes views */
    uint32_t *out_at, *out;   /* storages allocated, in order */
    uint32_t *drop_at, *drop; /* MS_DROP entries ended after the op, in order */

    bool nodes; /* units are nodes that were measured, an op each, all of them
                   forwards, gradients too, so that each can run again: those
                   behind loss_unit may have the pass MS_GRAD_INPUT */
    uint32_t n_units;
    uint32_t *forward_at, *backward_at; /* n_units + 1 each */
    uint32_t *unit_block;               /* MS_NONE: in no block */
    uint32_t *unit_in_at, *unit_in;     /* frame storages a unit's forward reads
                                           from earlier units: what a checkpoint
                                           that starts here must hold */
    const char **unit_name;
    uint32_t *unit_state; /* (optional) per unit: a persistent storage for the
                             random state that a checkpoint which begins there
                             sets aside (in the device's memory: a CPU) */
    double *unit_cost;    /* (optional) what a unit counts where stages of a
                             pipeline cost as much each: of its forward's
                             products, multiply-adds of a token.  NULL: stages
                             have as many layers each */
    uint32_t n_saves;     /* what the nodes of forward save, as they do */
    struct ms_save *saves;
    uint32_t n_kept, *kept; /* storages that the training loop's own variables
                               hold (output, loss): made with one HOLD
                               reference, which the program drops after
                               backward, or after the step if keep_to_step */
    bool keep_to_step;
    /* A stage's module names what it was handed, and so its gradient, until it
     * is handed the next one; ..._FIRST: there was none before this step. */
    uint8_t stage_inputs; /* ms_stage_inputs */

    uint32_t loss_unit;  /* first unit of the loss */
    uint32_t step_first; /* first op of the optimizer step */
    /* (optional) Ops [due_first[s], due_end[s]) of the step are due as soon as
     * the .grad s is reduced (a STEP_SET of a set that has it); all of them lie
     * in [step_first, step_all), what is due with the step of ALL behind it.
     * Without them NULL, and step_all is step_first. */
    uint32_t *due_first, *due_end; /* n_persistent */
    uint32_t step_all;
    uint32_t step_norm; /* ops [step_all, step_norm) find the norm of all
                           gradients that the ops behind them read; step_all, or
                           0: none do */

    uint32_t n_layers, n_blocks;
    const char **layer_name;
    const char **layer_type;  /* "linear"; of an op graph "module" */
    uint8_t *layer_role;      /* ms_layer_role */
    uint64_t *layer_bytes;    /* of a layer's output; (optional) */
    const char **layer_split; /* (optional) how ranks split a layer: "heads";
                                 "whole": each has all of it */
    const char **block_name;

    /* (optional) Derived by ms_prepare_graph so that a sweep need not; NULL:
     * expand derives them for itself.  storage_refs: references of a storage
     * just made and saved (sim/expand/books.h); n_start: how many exist at the
     * start; n_weights: how many are weights; step: the optimizer step, booked;
     * back_in: the frame storages that a unit's backward reads and does not
     * make; step_in: the storages that the step reads and the start does not
     * hold (.grad). */
    uint8_t *storage_refs;
    uint32_t n_start, n_weights;
    const struct ms_plan *step;
    uint32_t *back_in_at, *back_in, *step_in, n_step_in;

    /* What the summary says of the model. */
    uint64_t parameters;       /* elements, tied ones once */
    uint64_t *weight_elements; /* (optional) where weights' formats differ */
    uint64_t library_bytes;    /* of the device's, that a library of its ops has
                                  outside the framework's pool (DeepEP) */
    uint64_t userbuffer_bytes; /* the same, that exchanges go through beside
                                  products (graphs/parallel/userbuffers.h) */
    const char *exchanged_through; /* "userbuffers", "symmetric memory" */
    uint64_t tokens;    /* per micro-batch; 0 where tokens mean nothing */
    double model_flops; /* forward + backward of one micro-batch, no redo */
    uint32_t n_unknown; /* ops whose rule is a guess, by name; how many each */
    const char **unknown_name;
    uint32_t *unknown_count;
    uint32_t n_untrained, *untrained; /* weights, not frozen, to which no
                                         gradient comes */
} ms_graph;

/* Is it an op of forward, which can run again? */
static inline bool ms_graph_is_forward(const ms_graph *graph, uint32_t op)
{
    return op < graph->forward_at[graph->n_units];
}
/* The full name of a storage: "layer:name" or, where it has no layer, its
 * name; cut where the buffer ends. */
const char *ms_graph_storage_name(const ms_graph *graph, uint32_t storage,
                                  char buffer[MS_STORAGE_NAME]);
/* The group whose ranks share a persistent storage. */
/* Where those end that find the norm of all gradients. */
static inline uint32_t ms_graph_norm_end(const ms_graph *graph)
{
    return graph->step_norm > graph->step_all ? graph->step_norm
                                              : graph->step_all;
}

/* Does the op hand tokens to the ranks that divide the experts, or back? */
static inline bool ms_graph_exchanges(const ms_graph *graph, uint32_t op)
{
    return graph->op_meets != NULL &&
           graph->op_meets[op] == MS_MEETS(MS_ALL_TO_ALL, MS_GROUP_EXPERT);
}
static inline uint8_t ms_graph_group(const ms_graph *graph, uint32_t storage)
{
    return graph->storage_shard_group ? graph->storage_shard_group[storage]
                                      : (uint8_t)MS_GROUP_DATA;
}
/* Is the block a layer of multi-token prediction?  So are those of a repeat
 * that is named "mtp"; a pipeline does not count them among the model's layers.
 */
static inline bool ms_graph_is_predicting(const char *block)
{
    return strncmp(block, "mtp.", 4) == 0;
}
static inline bool ms_graph_predicts(const ms_graph *graph, uint32_t block)
{
    return block < graph->n_blocks &&
           ms_graph_is_predicting(graph->block_name[block]);
}
/* Is it a parameter, not a buffer of the model? */
static inline bool ms_graph_is_weight(const ms_graph *graph, uint32_t storage)
{
    return storage < graph->n_persistent &&
           graph->storage_category[storage] == MS_PARAMETERS &&
           !graph->storage_buffer[storage];
}
/* The invariants above.  Faults: MS_EINPUT names the row, MS_ENOMEM. */
ms_err ms_graph_check(const ms_graph *graph, ms_fault *fault);
/* Fills the derived columns; the last thing to do with a graph. */
ms_err ms_prepare_graph(ms_graph *graph, ms_arena *arena, ms_fault *fault);

/* text/dump.c: the graph as text, with those of the program's groups that have
 * more ranks than one (a line as in the program's text, and on how many nodes
 * they are, the rates of their links, what they divide).  An op that gathers
 * and a storage that ranks share say in which:
 *
 *     group 0 = data ranks 16 stride 1 node 8 comm fastest nodes 2 nvlink ...
 *     storage 7 bytes 4096 parameters at-start part 256 group 0  # proj:weight
 */
void ms_dump_graph(const ms_graph *graph, const ms_group *groups,
                   uint32_t n_groups, ms_text *text);

#endif
