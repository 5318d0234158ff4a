/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Keys of which versions differ.  Sources:
 *
 *     FSDP           accelerate 1.15, docs/source/concept_guides/
 *                    fsdp1_vs_fsdp2.md; utils/dataclasses.py,
 *                    FullyShardedDataParallelPlugin.  Its version is the key's
 *     DeepSpeed      deepspeed/runtime/zero/config.py, config_utils.py;
 *                    transformers PR 11418 for 0.3.16
 *     Transformers   MIGRATION_GUIDE_V5.md
 *     torchtitan     which had no releases before 0.1 (2025-06): months of PRs
 *                    158, 318, 391 and 1094 (no keys), 518
 * (data_parallel_degree), 823 (converters), 1073 (microbatch_size), 1238
 * (local_batch_size), 1701 (quantize); train.py and config_manager.py of 2024
 *     Megatron-LM    its releases 2.0 and 3.0, then core's: CHANGELOG.md of
 *                    0.14; megatron/training/arguments.py, "Deprecated
 *                    arguments"
 *     axolotl        src/axolotl/utils/schemas/deprecated.py, config.py;
 *                    PRs 2412, 2977
 *     LLaMA-Factory  src/llamafactory/hparams/ of 0.6 to 0.9
 *     llm-foundry    mosaicml/llm-foundry, scripts/train/benchmarking/
 *                    submit_benchmarks.py before its first release, 0.1
 *     Composer       composer/utils/parallelism.py of 0.24, FSDPConfig
 *
 * Months and versions of keys that the formats' own notes do not give are those
 * of the release that first has them, as far as it is known. */

#include "tools/from/keys/formatkeys.h"

#define FSDP "FSDP"
#define DEEPSPEED "DeepSpeed"
#define TITAN "torchtitan"
#define MEGATRON "Megatron-LM"
#define AXOLOTL "axolotl"
#define FACTORY "LLaMA-Factory"
#define FOUNDRY "llm-foundry"
#define COMPOSER "Composer"
#define MODEL_ATTN(k) "model.attn_config." k
#define ZERO(k) "zero_optimization." k
#define PAR(k) "parallelism." k
#define NO_EFFECT "it has no effect"

#define NEW(F, K, SINCE)                                                       \
    {                                                                          \
        .format = (F), .key = (K), .since = (SINCE)                            \
    }
#define OLD(F, K, UNTIL, NOW)                                                  \
    {                                                                          \
        .format = (F), .key = (K), .until = (UNTIL), .now = (NOW)              \
    }
#define OLD_AS(F, K, VALUES, UNTIL, NOW)                                       \
    {                                                                          \
        .format = (F), .key = (K), .values = (VALUES), .until = (UNTIL),       \
        .now = (NOW)                                                           \
    }

const ms_keyversion ms_keyversions[] = {
    {.format = FSDP,
     .key = "version",
     .since = MS_KEYVERSION_DECLARED,
     .absent = "1"},
    {.format = FSDP,
     .key = "sharding_strategy",
     .until = "2",
     .note = NO_EFFECT ": fsdp_reshard_after_forward is FSDP 2's key"},
    {.format = FSDP,
     .key = "reshard_after_forward",
     .values = "FULL_SHARD|SHARD_GRAD_OP|NO_SHARD|HYBRID_SHARD",
     .until = "2",
     .now = "sharding_strategy",
     .note = "FSDP 2 takes true or false"},
    {.format = FSDP,
     .key = "reshard_after_forward",
     .values = "true|false",
     .since = "2",
     .note = NO_EFFECT ": fsdp_sharding_strategy is FSDP 1's key"},
    {.format = FSDP,
     .key = "backward_prefetch_policy",
     .until = "2",
     .now = "backward_prefetch",
     .note = NO_EFFECT},
    {.format = FSDP,
     .key = "backward_prefetch",
     .until = "2",
     .note = NO_EFFECT},
    {.format = FSDP,
     .key = "forward_prefetch",
     .until = "2",
     .note = NO_EFFECT},
    {.format = FSDP,
     .key = "limit_all_gathers",
     .until = "2",
     .note = NO_EFFECT},
    {.format = FSDP, .key = "use_orig_params", .until = "2", .note = NO_EFFECT},
    {.format = FSDP,
     .key = "sync_module_states",
     .until = "2",
     .note = NO_EFFECT},

    OLD_AS("Accelerate", "fp16", "true=fp16|false=no", "0.6",
           "mixed_precision"),
    OLD("Accelerate", "dynamo_backend", "0.15", "dynamo_config.dynamo_backend"),
    NEW("Accelerate", "parallelism_config.*", "1.10"),

    OLD_AS(DEEPSPEED, "zero_optimization", "true=1|false=0", "0.2",
           ZERO("stage")),
    OLD(DEEPSPEED, "allgather_size", "0.2", ZERO("allgather_bucket_size")),
    OLD_AS(DEEPSPEED, "fp32_allreduce", "true=fp32|false=null", "0.5",
           "communication_data_type"),
    OLD_AS(DEEPSPEED, ZERO("cpu_offload"), "true=cpu|false=none", "0.3.16",
           ZERO("offload_optimizer.device")),
    OLD_AS(DEEPSPEED, ZERO("cpu_offload_params"), "true=cpu|false=none",
           "0.3.16", ZERO("offload_param.device")),
    OLD_AS(DEEPSPEED, ZERO("cpu_offload_param"), "true=cpu|false=none",
           "0.3.16", ZERO("offload_param.device")),
    OLD(DEEPSPEED, ZERO("cpu_offload_use_pin_memory"), "0.3.16",
        ZERO("offload_optimizer.pin_memory")),
    NEW(DEEPSPEED, ZERO("offload_*"), "0.3.16"),
    OLD(DEEPSPEED, "bfloat16.enabled", "0.6", "bf16.enabled"),
    NEW(DEEPSPEED, ZERO("zero_quantized_*"), "0.10"),
    NEW(DEEPSPEED, ZERO("zero_hpz_*"), "0.10"),
    NEW(DEEPSPEED, "tensor_parallel.*", "0.16"),
    NEW(DEEPSPEED, "torch_autocast.*", "0.17"),
    NEW(DEEPSPEED, ZERO("zenflow.*"), "0.17"),

    OLD("Transformers", "per_gpu_train_batch_size", "5.0",
        "per_device_train_batch_size"),
    OLD("Transformers", "no_cuda", "5.0", "use_cpu"),
    OLD("Transformers", "fsdp_min_num_params", "5.0",
        "fsdp_config.min_num_params"),
    NEW("Transformers", "use_cache", "5.0"),

    OLD(TITAN, "training.sequence_parallel_degree", "2024-03",
        PAR("tensor_parallel_degree")),
    OLD(TITAN, "training.pipeline_parallel_degree", "2024-06",
        PAR("pipeline_parallel_degree")),
    OLD(TITAN, "training.data_parallel_degree", "2024-10",
        PAR("data_parallel_shard_degree")),
    {.format = TITAN, .key = "training.data_parallel_type", .until = "2024-10"},
    {.format = TITAN,
     .key = "training.data_parallel_*",
     .since = "2024-10",
     .until = "2025-03",
     .now = PAR("data_parallel_*")},
    {.format = TITAN,
     .key = "training.tensor_parallel_degree",
     .since = "2024-03",
     .until = "2025-03",
     .now = PAR("tensor_parallel_degree")},
    OLD_AS(TITAN, "training.enable_loss_parallel", "true=false|false=true",
           "2025-03", PAR("disable_loss_parallel")),
    OLD(TITAN, "training.disable_loss_parallel", "2025-03",
        PAR("disable_loss_parallel")),
    OLD(TITAN, "experimental.enable_*", "2025-03", PAR("enable_*")),
    {.format = TITAN,
     .key = "experimental.context_parallel_*",
     .since = "2024-10",
     .until = "2025-03",
     .now = PAR("context_parallel_*")},
    {.format = TITAN,
     .key = "experimental.pipeline_parallel_schedule",
     .values = "interleaved_1f1b=Interleaved1F1B|*=@",
     .since = "2024-06",
     .until = "2025-03",
     .now = PAR("pipeline_parallel_schedule")},
    {.format = TITAN,
     .key = "experimental.pipeline_parallel_*",
     .since = "2024-06",
     .until = "2025-03",
     .now = PAR("pipeline_parallel_*")},
    {.format = TITAN,
     .key = PAR("pipeline_parallel_microbatches"),
     .until = "2025-04"},
    {.format = TITAN,
     .key = PAR("pipeline_parallel_microbatches"),
     .until = "2025-04",
     .absent = "stages",
     .beside = PAR("pipeline_parallel_degree")},
    NEW(TITAN, PAR("pipeline_parallel_microbatch_size"), "2025-04"),
    NEW(TITAN, PAR("*"), "2025-03"),
    OLD(TITAN, "training.batch_size", "2025-06", "training.local_batch_size"),
    NEW(TITAN, "training.local_batch_size", "2025-06"),
    NEW(TITAN, "training.global_batch_size", "2025-06"),
    OLD_AS(TITAN, "optimizer.fused", "true=fused|false=foreach", "2025-03",
           "optimizer.implementation"),
    {.format = TITAN,
     .key = "optimizer.implementation",
     .until = "2025-03",
     .absent = "foreach"},
    NEW(TITAN, "optimizer.implementation", "2025-03"),
    {.format = TITAN,
     .key = "",
     .until = "2024-06",
     .now = "training.hold_output",
     .absent = "backward",
     .note = "holds the model's output through backward"},
    {.format = TITAN,
     .key = "",
     .until = "2025-06", /* PR 1094 is of July: no key tells these two apart */
     .now = "policy.fsdp.units",
     .absent = "blocks",
     .note = "shards what is in no block with the root"},
    OLD_AS(TITAN, "training.fp8_linear", "dynamic=true|=false", "2024-08",
           "float8.enable_float8_linear"),
    OLD(TITAN, "training.enable_fp8_linear", "2024-08",
        "float8.enable_float8_linear"),
    {.format = TITAN,
     .key = "float8.enable_float8_linear",
     .until = "2025-03",
     .note = "model.converters is its successor"},
    NEW(TITAN, "model.converters", "2025-02"),
    {.format = TITAN,
     .key = "float8.*",
     .until = "2025-10",
     .note = "it is not read"},
    {.format = TITAN,
     .key = "mx.*",
     .until = "2025-10",
     .note = "it is not read"},
    NEW(TITAN, "quantize.*", "2025-09"),
    OLD(TITAN, "training.compile", "2025-09", "compile.enable"),
    NEW(TITAN, "compile.enable", "2025-09"),

    OLD(MEGATRON, "batch-size", "2.0", "micro-batch-size"),
    OLD(MEGATRON, "model-parallel-size", "2.0", "tensor-model-parallel-size"),
    OLD_AS(MEGATRON, "checkpoint-activations", "true=full", "3.0",
           "recompute-granularity"),
    OLD(MEGATRON, "checkpoint-num-layers", "3.0", "recompute-num-layers"),
    {.format = MEGATRON,
     .key = "activations-checkpoint-method",
     .until = "3.0",
     .note =
         "recompute-granularity full with recompute-method is its successor"},
    OLD(MEGATRON, "activations-checkpoint-num-layers", "3.0",
        "recompute-num-layers"),
    OLD(MEGATRON, "distribute-checkpointed-activations", "3.0",
        "distribute-saved-activations"),
    NEW(MEGATRON, "recompute-modules", "core 0.13"),
    NEW(MEGATRON, "recompute-*", "3.0"),
    NEW(MEGATRON, "use-distributed-optimizer", "3.0"),
    NEW(MEGATRON, "sequence-parallel", "3.0"),
    NEW(MEGATRON, "overlap-grad-reduce", "core 0.4"),
    NEW(MEGATRON, "context-parallel-size", "core 0.4"),
    NEW(MEGATRON, "cpu-offloading-num-layers", "core 0.5"),
    OLD_AS(MEGATRON, "fp8-hybrid", "true=hybrid", "core 0.5", "fp8-format"),
    OLD_AS(MEGATRON, "fp8-e4m3", "true=e4m3", "core 0.5", "fp8-format"),
    NEW(MEGATRON, "fp8-format", "core 0.4"),
    NEW(MEGATRON, "fp8-recipe", "core 0.12"),
    NEW(MEGATRON, "decoder-first-pipeline-num-layers", "core 0.9"),
    NEW(MEGATRON, "decoder-last-pipeline-num-layers", "core 0.9"),
    {.format = MEGATRON,
     .key = "moe-extended-tp",
     .until = "core 0.10",
     .note = "expert-tensor-parallel-size is its successor"},
    NEW(MEGATRON, "expert-tensor-parallel-size", "core 0.10"),
    NEW(MEGATRON, "optimizer-cpu-offload", "core 0.11"),
    NEW(MEGATRON, "mtp-num-layers", "core 0.12"),
    NEW(MEGATRON, "pipeline-model-parallel-layout", "core 0.13"),
    OLD(MEGATRON, "use-custom-fsdp", "core 0.14", "use-megatron-fsdp"),
    NEW(MEGATRON, "use-megatron-fsdp", "core 0.14"),
    OLD_AS(MEGATRON, "enable-cuda-graph", "true=local", "core 0.15",
           "cuda-graph-impl"),
    OLD_AS(MEGATRON, "external-cuda-graph", "true=transformer_engine",
           "core 0.15", "cuda-graph-impl"),
    NEW(MEGATRON, "cuda-graph-impl", "core 0.15"),

    OLD(AXOLOTL, "noisy_embedding_alpha", "0.4", "neftune_noise_alpha"),
    {.format = AXOLOTL,
     .key = "sequence_parallel_degree",
     .since = "0.8",
     .until = "0.12",
     .now = "context_parallel_size"},
    NEW(AXOLOTL, "context_parallel_size", "0.12"),
    NEW(AXOLOTL, "tensor_parallel_size", "0.12"),
    NEW(AXOLOTL, "dp_*_size", "0.12"),

    OLD_AS(FACTORY, "flash_attn", "true=fa2|false=auto", "0.7", "flash_attn"),
    {.format = FACTORY,
     .key = "flash_attn",
     .values = "off=disabled",
     .since = "0.7",
     .until = "0.9",
     .now = "flash_attn"},
    OLD(FACTORY, "num_layer_trainable", "0.8", "freeze_trainable_layers"),
    OLD(FACTORY, "name_module_trainable", "0.8", "freeze_trainable_modules"),
    OLD(FACTORY, "sft_packing", "0.8", "packing"),
    {.format = FACTORY,
     .key = "max_source_length",
     .until = "0.3",
     .note = "cutoff_len is the two lengths together"},
    {.format = FACTORY,
     .key = "max_target_length",
     .until = "0.3",
     .note = "cutoff_len is the two lengths together"},
    NEW(FACTORY, "cutoff_len", "0.3"),
    NEW(FACTORY, "enable_liger_kernel", "0.9"),

    OLD_AS(FOUNDRY, "model.name", "mosaic_gpt=mpt_causal_lm", "0.1",
           "model.name"),
    OLD(FOUNDRY, "model.mlp_ratio", "0.1", "model.expansion_ratio"),
    OLD(FOUNDRY, "model.attn_impl", "0.1", MODEL_ATTN("attn_impl")),
    OLD(FOUNDRY, "model.attn_pdrop", "0.1", MODEL_ATTN("attn_pdrop")),
    OLD(FOUNDRY, "model.attn_qk_ln", "0.1", MODEL_ATTN("qk_ln")),
    OLD(FOUNDRY, "model.attn_clip_qkv", "0.1", MODEL_ATTN("clip_qkv")),
    OLD(FOUNDRY, "model.alibi", "0.1", MODEL_ATTN("alibi")),
    OLD_AS(FOUNDRY, "model.low_precision_layernorm",
           "true=low_precision_layernorm|false=layernorm", "0.1",
           "model.norm_type"),
    {.format = COMPOSER,
     .key = "device_mesh",
     .until = "0.24",
     .note = "its numbers are those of data_parallel_replicate_degree and "
             "data_parallel_shard_degree"},
    NEW(COMPOSER, "data_parallel_*_degree", "0.24"),
};
const uint32_t ms_keyversions_n =
    sizeof ms_keyversions / sizeof ms_keyversions[0];
