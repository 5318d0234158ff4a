/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_GRAPHS_TRAINING_H
#define MS_GRAPHS_TRAINING_H

/* The settings of a step: training.KEY=VALUE. */

#include "graphs/field.h"

typedef struct ms_model ms_model;   /* model.h */
typedef struct ms_device ms_device; /* device.h */

typedef enum ms_precision {
    MS_FP32,
    MS_TF32,
    MS_FP16_MIXED,
    MS_BF16_MIXED,
    MS_BF16,
    MS_AUTOCAST_FP16,
    MS_AUTOCAST_BF16,
    MS_FP16,
    MS_BF16_REMAINDERS,
    MS_FP8,
    MS_FP8_PRIMARY,
    MS_MXFP8,
    MS_MXFP8_TORCHAO,
    MS_MSAMP_O1,
    MS_MSAMP_O2,
    MS_MSAMP_O3
} ms_precision;
typedef enum ms_gradient_format {
    MS_GRADIENTS_AUTO,
    MS_GRADIENTS_FP32,
    MS_GRADIENTS_MAIN,
    MS_GRADIENTS_WEIGHTS
} ms_gradient_format;
typedef enum ms_optimizer {
    MS_SGD,
    MS_MOMENTUM,
    MS_NESTEROV,
    MS_ADAGRAD,
    MS_RMSPROP,
    MS_RMSPROP_MOMENTUM,
    MS_RMSPROP_CENTERED,
    MS_RMSPROP_BOTH, /* centered, with momentum */
    MS_ADAM,
    MS_ADAMW,
    MS_ADAM_AMSGRAD,
    MS_ADAMW_AMSGRAD,
    MS_LAMB,
    MS_LION,
    MS_ADAFACTOR,
    MS_ADAFACTOR_HF,
    MS_ADAFACTOR_HF_MOMENTUM,
    MS_ADAM_8BIT,
    MS_ADAMW_8BIT,
    MS_LION_8BIT,
    MS_SOPHIA,
    MS_MUON,
    MS_SHAMPOO,
    MS_SOAP,
    MS_GALORE,
    MS_LOMO,
    MS_ADAMW_KAHAN,
    MS_NO_OPTIMIZER
} ms_optimizer;
typedef enum ms_optimstep_impl {
    MS_IMPL_AUTO,
    MS_IMPL_LOOP,
    MS_IMPL_FOREACH,
    MS_IMPL_FUSED
} ms_optimstep_impl;
/* By age: rules compare them.  TORCH_2 is the newest, TORCH_2_0 stands for 2.0
 * to 2.3. */
typedef enum ms_framework {
    MS_TORCH_1_13,
    MS_TORCH_2_0,
    MS_TORCH_2
} ms_framework;
#define MS_N_FRAMEWORKS 3u

/* A difference between frameworks, as help tells it. */
typedef struct ms_framework_row {
    const char *what;
    const char *rule[MS_N_FRAMEWORKS]; /* NULL: as the framework before */
    const char *source;
} ms_framework_row;
extern const ms_framework_row ms_frameworks_rows[];
extern const uint32_t ms_frameworks_n;

typedef enum ms_hold { MS_HOLD_BACKWARD, MS_HOLD_STEP, MS_HOLD_NONE } ms_hold;

/* training.weight_decay; auto is as the optimizer's own default. */
enum { MS_DECAY_AUTO, MS_DECAY_NO, MS_DECAY_YES };

/* training.cudnn; auto is as torch_pool has it. */
enum { MS_CUDNN_AUTO, MS_CUDNN_BENCHMARK, MS_CUDNN_NONE };

/* One field per row of ms_training_fields; was_set says which the user chose
 * (the rest are printed as defaults). */
typedef struct ms_training {
    int64_t batch, sequence; /* sequence 0: min(2048, model's maximum) */
    int64_t precision, optimizer, optimizer_impl, kernels, framework;
    int64_t device;        /* 0 cuda, 1 cpu */
    int64_t gradients;     /* ms_gradient_format */
    int64_t hold_output;   /* ms_hold */
    int64_t memory_format; /* 0 contiguous, or */
#define MS_CHANNELS_LAST 1
    int64_t zero_grad;                       /* 0 set_to_none, 1 keep */
    int64_t step;                            /* 0 steady, 1 first */
    int64_t mode;                            /* 0 train, 1 inference */
    int64_t optimizer_in_backward;           /* 0 no, 1 yes */
    double clip_norm;                        /* 0: gradients are not clipped */
    int64_t weight_decay;                    /* MS_DECAY_AUTO.. */
    int64_t optimizer_rank, optimizer_block; /* optimtable.h */
    int64_t optimizer_refresh;               /* 0 no, 1 yes: optimtable.h */
    /* Of single kinds of ops, 0: as kernels says; kernels.h, headloss.h. */
    int64_t attention_kernel, norm_kernel, activation_kernel, rotary_kernel;
    int64_t loss_kernel;
    int64_t mlp_tiles;                    /* 0: none; -1: layers/walk */
    int64_t launch;                       /* hostcode.h */
    int64_t retain_graph;                 /* 0 no, 1 yes */
    int64_t cublas_workspace;             /* bytes; -1: the device's */
    int64_t cudnn;                        /* MS_CUDNN_AUTO... */
    int64_t cuda_loading;                 /* 0 lazy, 1 eager */
    int64_t cuda;                         /* overheads.h */
    int64_t nccl_channels, nccl_buffsize; /* 0: device's; 4 MiB */
    int64_t lora_rank;                    /* 0: no adapters; lora.h */
    int64_t lora_targets; /* 0 qv, 1 qkv, 2 attention, 3 mlp, 4 all */
    double lora_dropout;
    int64_t lora_dtype;              /* 0 as the weights, 1 fp32 */
    int64_t lora_base;               /* 0 as the weights, else packed.c's + 1 */
    int64_t lora_trains;             /* 0 both, 1 A, 2 B */
    int64_t unknown_op;              /* op graphs: 0 refuse, 1 conservative */
    int64_t fp8_recipe, fp8_weights; /* fp8.h */
    int64_t frozen_blocks, frozen_base; /* packed.h */
    /* mcore.h, in the order of its enums */
    int64_t mcore_spec, mcore_attention, mcore_loss, mcore_wgrad;
    int64_t mcore_mask;          /* 0 yes, 1 no */
    int64_t mcore_deterministic; /* 0 no, 1 yes */
    uint64_t was_set;            /* bit per row */
    uint64_t torch_pool;         /* steps go through PyTorch's allocator */
} ms_training;
extern const ms_field ms_training_fields[];
extern const uint32_t ms_training_n_fields;
void ms_training_init(ms_training *training);
/* What stands before the dot of a row's key: "training", "graph". */
const char *ms_training_group(uint32_t row);
/* The row of a key, in which "training." is optional; what others call it is
 * understood (settingwords.h).  MS_NONE: no such setting. */
uint32_t ms_training_row(const char *key);
ms_err ms_training_set(ms_training *training, const char *key,
                       const char *value, ms_fault *fault);
/* Fills what depends on the model and checks the whole. */
ms_err ms_resolve_training(ms_training *training, const ms_model *model,
                           ms_fault *fault);
/* The value of row as the user would write it. */
void ms_training_value(const ms_training *training, uint32_t row, char *buffer,
                       size_t size);

/* ---- precisions.c, statebytes.c ------------------------------------------ */

/* The device's dense peak of the products that a precision is
 * about: those of linear layers. */
double ms_precisions_peak_flops(const ms_training *training,
                                const ms_device *device);
/* The table of precisions as help shows it; what is to say of each. */
void ms_statebytes_describe(ms_text *text);
const char *ms_precisions_help(uint32_t precision);

#endif
