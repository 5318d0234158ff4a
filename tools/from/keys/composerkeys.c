/* SPDX-License-Identifier: GPL-3.0-or-later */
/* fsdp_config of llm-foundry: mosaicml/composer, composer/utils/parallelism.py
 * (FSDPConfig), distributed/dist_strategy.py and mosaic_parallelism.py of 2023
 * to 2025: FSDP 1, whose defaults are not torch's.  PURE reduces in the compute
 * format, DEFAULT in fp32, FULL leaves all to autocast; fp16 has bf16's bytes
 * where it is reduced.  CPU offload is refused there. */

#include "tools/from/keys/formatkeys.h"

#define FSDP(k) "policy.fsdp." k
#define LOW "precision=|amp_bf16|amp_fp16|amp_fp8"

static const ms_formatkey keys[] = {
    {.key = "", .to = "policy.fsdp", .fallback = "+"},
    {.key = "", .to = FSDP("impl"), .fallback = "1"},
    {.key = "sharding_strategy",
     .to = FSDP("strategy"),
     .values = "FULL_SHARD=full_shard|SHARD_GRAD_OP=shard_grad_op|"
               "NO_SHARD=no_shard|HYBRID_SHARD=hybrid_shard|"
               "_HYBRID_SHARD_ZERO2=hybrid_shard",
     .fallback = "FULL_SHARD"},
    {.key = "sharding_strategy",
     .harmless = "FULL_SHARD|SHARD_GRAD_OP|NO_SHARD|HYBRID_SHARD",
     .warns = "weights stay from forward to backward there; memsim's "
              "hybrid_shard gathers them again"},
    {.key = "backward_prefetch",
     .to = FSDP("prefetch"),
     .values = "BACKWARD_PRE=pre|BACKWARD_POST=post|NONE=none",
     .fallback = "BACKWARD_POST"},
    {.key = "forward_prefetch",
     .to = FSDP("forward_prefetch"),
     .values = "true=1|false="},
    {.key = "limit_all_gathers",
     .to = FSDP("limit"),
     .values = "true=|false=0"},
    {.key = "mixed_precision",
     .to = FSDP("reduce"),
     .values = "PURE=bf16|DEFAULT=|FULL=",
     .fallback = "DEFAULT",
     .when = LOW},
    {.key = "mixed_precision",
     .to = "autocast",
     .values = "FULL=true|*=",
     .when = LOW},
    {.key = "mixed_precision.reduce_dtype",
     .to = FSDP("reduce"),
     .values = "fp32|float32=fp32|bf16|bfloat16=bf16|amp_bf16=bf16|fp16=bf16|"
               "float16=bf16|amp_fp16=bf16"},
    {.key = "mixed_precision.param_dtype",
     .harmless = "bf16|bfloat16|amp_bf16|fp16|float16|amp_fp16",
     .warns = "the format in which units are gathered: --precision"},
    {.key = "activation_checkpointing",
     .to = "policy.checkpoint",
     .values = "true=full|false="},
    {.key = "activation_checkpointing_reentrant",
     .to = "policy.checkpoint.variant",
     .values = "true=reentrant|false=nonreentrant",
     .fallback = "true",
     .when = "activation_checkpointing=true"},
    {.key = "activation_checkpointing_target*",
     .warns = "parts of blocks run again: -p checkpoint:modules="},
    {.key = "activation_cpu_offload",
     .to = "policy.swap",
     .values = "true=save_on_cpu|false="},
    {.key = "activation_cpu_offload",
     .harmless = "false",
     .warns = "memsim's save_on_cpu takes what lies outside of the blocks, "
              "too"},
    {.key = "cpu_offload",
     .harmless = "false",
     .warns = "Composer refuses it; -p offload:params has it"},
    {.key = "auto_wrap", .to = FSDP("units"), .values = "true=|false=whole"},
    {.key = "data_parallel_shard_degree",
     .to = "fsdp.shards",
     .values = "-1=|*=@"},
    {.key = "data_parallel_replicate_degree",
     .to = "fsdp.replicas",
     .values = "1=|*=@"},
    {.key = "device_mesh", .to = "fsdp.mesh"},
    {.key = "process_group", .warns = "groups of ranks: -p fsdp:shard=N"},
    {.key = "min_params",
     .warns = "units by size: memsim's are blocks (fsdp:units=)"},
    {.key = "keep_low_precision_grads",
     .harmless = "false",
     .warns = "gradients stay in 16 bits"},
    {.key = "backward_prefetch_limit",
     .harmless = "1",
     .warns = "memsim gathers one unit ahead"},
    {.key = "forward_prefetch_limit",
     .harmless = "1",
     .warns = "memsim gathers one unit ahead"},
    {.key = "te_*",
     .harmless = "false",
     .warns = "TransformerEngine's way with weights and checkpoints"},
    {.key = "ignored_modules", .warns = "modules outside of FSDP"},
};

static const char *const passed[] = {"state_dict_type",
                                     "sync_module_states",
                                     "use_orig_params",
                                     "load_*",
                                     "save_planner*",
                                     "sharded_ckpt_prefix_dir",
                                     "mixed_precision.buffer_dtype",
                                     "flatten_parameters",
                                     "verbose",
                                     NULL};

const ms_format ms_composerkeys_format = {.name = "Composer",
                                          .file = "fsdp_config",
                                          .marks = "",
                                          .keys = keys,
                                          .n_keys =
                                              sizeof keys / sizeof keys[0],
                                          .passed = passed};
