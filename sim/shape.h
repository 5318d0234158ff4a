/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_SIM_SHAPE_H
#define MS_SIM_SHAPE_H

/* What a rank computes and holds: what policies decide before lowering. */

#include "sim/names.h"

#include <stdbool.h>
#include <stdint.h>

/* The ranks share the model's states up to this one, each rank holding its
 * part: per parameter the elements over the ranks, rounded up (ZeRO's stages).
 */
typedef enum ms_shared {
    MS_SHARED_NOTHING,
    MS_SHARED_OPTIMIZER, /* its state; the step updates this rank's part */
    MS_SHARED_GRADIENTS,
    MS_SHARED_PARAMETERS
} ms_shared;

/* What a storage with the category of parameters is; model buffers are reported
 * apart, quantized copies of weights with the weights. */
typedef enum ms_graph_buffer {
    MS_PARAMETER,
    MS_MODEL_BUFFER,
    MS_COPY_OF_WEIGHTS
} ms_graph_buffer;

/* How a parameter is divided among the ranks that share it. */
typedef enum ms_part_rule {
    MS_PART_ELEMENTS, /* its elements over the ranks, rounded up: the paper,
                         DeepSpeed's stage 3 */
    MS_PART_ROWS,     /* its rows (dimension 0) over the ranks: FSDP2 */
    MS_PART_FLAT,     /* all of them lie in one flat buffer, padded to
                         flat_multiple times the ranks: DeepSpeed's 1, 2 */
    MS_PART_BLOCKS    /* those of each block in one, and those of no block in
                         another: FSDP1's FlatParameter, of which this rank has
                         the first stretch */
} ms_part_rule;

/* The system whose code a policy follows, where several systems have a policy
 * of that name. */
typedef enum ms_engine {
    MS_ENGINE_ANY, /* none is said: as the papers have it, unless another policy
                      says one */
    MS_ENGINE_IDEAL,
    MS_ENGINE_DEEPSPEED,
    MS_ENGINE_MEGATRON,
    MS_ENGINE_TORCHAO
} ms_engine;

/* How an optimizer step on the host's cores goes (graphs/states.md 4). */
typedef enum ms_host_step {
    MS_HOST_TILES,      /* a tile's new weights travel while the next tile is
                           updated (ZeRO-Offload, section 4) */
    MS_HOST_WHOLE,      /* all fp32 weights travel after the update and are cast
                           on the device (DeepSpeed, stages 1 and 2) */
    MS_HOST_GROUPS,     /* tile by tile, each copy waited for (DeepSpeed, 3) */
    MS_HOST_PARAMETERS, /* gradients come, weights go, parameter by parameter
                           (Megatron's HybridDeviceOptimizer) */
    MS_HOST_TURNS,      /* all gradients come, all is updated, all weights go
                           (the same without overlap_cpu_optimizer_d2h_h2d) */
    MS_HOST_ARRIVALS    /* parameter by parameter, as backward makes gradients,
                           beside it; weights go behind it (torchao's
                           CPUOffloadOptimizer) */
} ms_host_step;

/* How ranks that divide the sequence attend over all of it. */
typedef enum ms_context_mode {
    MS_CONTEXT_AUTO,
    MS_CONTEXT_A2A,       /* heads are divided instead, for as long (Ulysses) */
    MS_CONTEXT_RING,      /* keys and values go round */
    MS_CONTEXT_ALL_GATHER /* each rank gathers all keys and values */
} ms_context_mode;

typedef enum ms_regather {
    MS_REGATHER_AUTO, /* as the kernels' code does */
    MS_REGATHER_NOT,  /* the whole is saved */
    MS_REGATHER_AGAIN
} ms_regather;

/* Ways to divide the work among ranks. */
typedef enum ms_rank_dim {
    MS_RANK_TENSOR = 1,
    MS_RANK_CONTEXT,
    MS_RANK_EXPERT,
    MS_RANK_DATA,
    MS_RANK_PIPELINE,
    MS_N_RANK_DIMS
} ms_rank_dim;

/* What of the model's states has its home elsewhere. */
typedef struct ms_offload {
    uint8_t optimizer, parameters, gradients; /* ms_pool_kind */
    uint8_t engine;                           /* ms_engine: never ANY */
    ms_host_step step;
    double host_share;       /* of the elements that the host updates, the first
                                ones; the device updates the others */
    uint64_t tile_elements;  /* of one update (DeepSpeed's sub-group) */
    uint32_t gradient_bytes; /* of an element of the part there; 0: as on the
                                device */
    uint32_t threads;        /* of a rank's host work; 0: all that it has */
    bool pageable;           /* the host's memory is not pinned */
    bool delayed;    /* the host updates with the gradients of the step before,
                        beside forward and backward; DeepSpeed in a process of
                        its own, whose memory is shared, not pinned (ZenFlow) */
    double selected; /* of each gradient's columns, those that the device
                        updates after every micro-batch (ZenFlow); 0: none */
    bool reads_ahead, writes_behind; /* disk: beside the update */
} ms_offload;

/* Does the step fetch the gradients, which stay on the device? */
static inline bool ms_offload_fetches(const ms_offload *offload)
{
    return offload->step == MS_HOST_PARAMETERS ||
           offload->step == MS_HOST_TURNS ||
           (offload->step == MS_HOST_ARRIVALS &&
            offload->gradients == MS_DEVICE_POOL);
}

/* Does another process of DeepSpeed's update beside the step? */
static inline bool ms_offload_is_apart(const ms_offload *offload)
{
    return offload->delayed && offload->engine == MS_ENGINE_DEEPSPEED;
}

/* Unified memory (sim/replay/paging.h). */
typedef struct ms_paging {
    uint64_t page_bytes, fault_ns; /* page_bytes 0: memory is not unified */
    uint32_t fault_percent; /* of the link that pages brought by faults get */
    bool hints;             /* the next op's pages come beside the one before */
    uint32_t managed; /* a bit per ms_category of what is in unified memory, the
                         rest is the device's for as long as it lives; 0: all
                         is managed */
} ms_paging;

/* What it moved, and what of it the host held at most. */
typedef struct ms_pages {
    uint64_t h2d_bytes, d2h_bytes, faults;
    uint64_t host_peak_bytes, host_by_category[MS_N_CATEGORIES];
} ms_pages;

/* Op could never start for want of so much memory, at this time; from then on
 * the step goes on as if there were enough.  0: that did not happen. */
typedef struct ms_lack {
    uint64_t missing_bytes, t_ns;
    uint32_t op;
} ms_lack;

/* The optimizer's step over flat tiles of this rank's part (DeepSpeed,
 * runtime/zero/stage_1_and_2.py and stage3.py, step): the gradients of a tile
 * are flattened, cast to fp32, updated by a fused kernel, and the 16-bit
 * weights are cast from the master. */
typedef struct ms_flat_step {
    bool used;
    uint64_t tile_elements; /* 0: all in one */
    bool frees_gradients;   /* .grad ends when it has been cast */
    bool whole;   /* nothing is shared: each gradient is cast, then flattened
                     (runtime/fp16/fused_optimizer.py) */
    bool has_sum; /* where bf16 gradients are summed up in fp32: a sum of all of
                     them lasts, to which each backward adds its .grad
                     (runtime/bf16_optimizer.py) */
    bool scatters; /* gradients go to their owners alone (reduce_scatter) */
    const char *bucket_key; /* setting of the bucket, given, or NULL */
    bool is_named; /* it was typed as deepspeed:2, not zero:2,impl=deepspeed:
                      what hints speak of */
} ms_flat_step;

/* Stages of a pipeline without a layer: behind how many blocks each stands, in
 * the model's order.  They hand on a copy of what they are handed. */
#define MS_EMPTY_STAGES 64u
#define MS_EMPTY_STAGE "empty_stage." /* and its number: its unit's name */
typedef struct ms_empty_stages {
    uint32_t n, behind[MS_EMPTY_STAGES];
} ms_empty_stages;

typedef struct ms_shape {
    uint64_t batch; /* samples per step on this rank */
    uint32_t micro_batches;
    uint64_t fixed; /* samples of a micro-batch that the model fixes, or
                       0: more micro-batches then make a larger batch */
    uint32_t gpus;  /* of the job, where said; else 0 */
    uint32_t pipeline_ranks; /* that share the layers of one model; 0: one */
    ms_empty_stages empty_stages;
    bool splits_backward;   /* the products that are gradients of weights run
                               later, in a half of their own (sim/stage.h) */
    uint32_t tensor_ranks;  /* that split each layer of one model; 0: one */
    bool by_sequence;       /* they divide the sequence where layers are whole
                               (sequence parallelism) */
    uint8_t regather;       /* ms_regather: does backward gather again what
                               products by columns have read */
    bool overlaps;          /* what they exchange goes in pieces beside those
                               of products (userbuffers) */
    uint32_t context_ranks; /* of data_ranks, those next to each other that
                               have the same samples, each a part of the
                               sequence; 0: one */
    uint8_t context_mode;   /* ms_context_mode */
    bool context_flash; /* the ring is ring-flash-attention's, else Transformer
                           Engine's */
    bool context_plain; /* each has one piece of the sequence, else one from its
                           begin and one from its end (zigzag) */
    uint32_t context_rank;              /* this one, where they differ */
    bool context_asked;                 /* a user asks for it alone */
    uint8_t rank_order[MS_N_RANK_DIMS]; /* ms_rank_dim: who are next to each
                                           other, first; 0 ends it; none:
                                           tp-cp-ep-dp-pp */
    bool is_shared;          /* a policy says what data ranks share, if only
                                of one */
    uint32_t data_ranks;     /* ranks with the same model and other tokens */
    ms_shared shared;        /* among the data ranks */
    uint8_t engine;          /* ms_engine: whose code shares them */
    bool holds_gradients;    /* .grad exists all through the step */
    bool fp32_gradients;     /* whatever the weights are */
    bool sums_late;          /* what ranks that split layers have of gradients
                                of whole parameters is summed by who reduces
                                them, behind the last micro-batch (FSDP2) */
    bool copies_gradients;   /* to buckets of their own, as large as they */
    uint32_t shard_ranks;    /* of data_ranks, those that divide the states; the
                                groups hold copies (HSDP); 0: all */
    uint32_t expert_ranks;   /* of data_ranks, those that divide the states of
                                experts: every so-many-th one; 0: as the rest.
                                Where experts are divided, of all ranks beside
                                each other those that have the same ones */
    uint32_t expert_split;   /* ranks next to each other, that have a part of
                                each layer's experts each (expert); 0: one */
    uint32_t expert_tensor;  /* that split each expert; 0: as tensor_ranks */
    double expert_capacity;  /* rows of an expert over the average, padded; 0:
                                as layers say */
    double expert_imbalance; /* rows of the fullest of these ranks over those of
                                an average one; 0: as layers say */
    uint32_t expert_loads;   /* experts from whose loads that follows, or 0 */
    bool whole_ends;         /* tensor_ranks have the whole embedding each, and
                                gather the logits (Hugging Face's plans) */
    bool expert_deep;        /* tokens go through DeepEP's buffers */
    bool expert_policy;      /* the policy is there: the model has experts */
    ms_part_rule part;
    uint32_t flat_multiple;
    bool part_is_master;    /* the fp32 part is the master copy of itself; whole
                               copies have the format of the weights (FSDP) */
    uint32_t reshard_ranks; /* after forward the weights are divided among so
                               many neighbours only; 0: let go (FSDP2) */
    bool exchanges;    /* gradients are exchanged in each node, then between
                          nodes (ZeRO++) */
    bool copies_parts; /* whole copies come and go even where one rank has all
                          (FSDP) */
    bool root_stays;   /* what is in no block is whole when the step begins and
                          ends (Megatron-FSDP) */
    uint64_t whole_elements; /* shared parameters of at most so many elements
                                are whole at all times */
    uint64_t whole_in_all;   /* and all of these have no more; 0: whatever */
    ms_flat_step flat_step;
    ms_offload offload;
    uint8_t saves; /* ms_host_memory of what is saved for backward there */
    ms_paging paging;
    uint64_t fault_ns; /* what one costs on the device */
    bool one_memory;   /* the device's and the host's are one */
} ms_shape;

/* The ranks that split each layer. */
static inline uint32_t ms_shape_tensor(const ms_shape *shape)
{
    return shape->tensor_ranks > 1 ? shape->tensor_ranks : 1;
}

/* The ranks that have one model between them. */
static inline uint32_t ms_shape_model_ranks(const ms_shape *shape)
{
    uint32_t stages = shape->pipeline_ranks > 1 ? shape->pipeline_ranks : 1;
    return stages * ms_shape_tensor(shape);
}

/* GPUs with other samples: of the job's, one of each model. */
static inline uint32_t ms_shape_side_by_side(const ms_shape *shape)
{
    return shape->gpus / ms_shape_model_ranks(shape);
}

/* The ranks of the job. */
static inline uint32_t ms_shape_ranks(const ms_shape *shape)
{
    return shape->data_ranks * ms_shape_model_ranks(shape);
}

/* The ranks of the job, but for the other stages of a pipeline. */
static inline uint32_t ms_shape_beside(const ms_shape *shape)
{
    return shape->data_ranks * ms_shape_tensor(shape);
}

/* Ranks that divide the experts of a layer, and those that split each one. */
static inline uint32_t ms_shape_experts(const ms_shape *shape)
{
    return shape->expert_split > 1 ? shape->expert_split : 1;
}
static inline uint32_t ms_shape_expert_tensor(const ms_shape *shape)
{
    return shape->expert_tensor > 0 ? shape->expert_tensor
                                    : ms_shape_tensor(shape);
}

/* Ranks that divide a sequence, and how many have other samples. */
static inline uint32_t ms_shape_context(const ms_shape *shape)
{
    return shape->context_ranks > 1 ? shape->context_ranks : 1;
}
static inline uint32_t ms_shape_samples(const ms_shape *shape)
{
    return shape->data_ranks / ms_shape_context(shape);
}

/* The ranks that divide the states: all of them, or those of a group. */
static inline uint32_t ms_shape_parts(const ms_shape *shape)
{
    return shape->shard_ranks > 0 ? shape->shard_ranks : shape->data_ranks;
}

#endif
