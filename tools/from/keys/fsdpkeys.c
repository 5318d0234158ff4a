/* SPDX-License-Identifier: GPL-3.0-or-later */
/* fsdp_config of Accelerate, Transformers and axolotl, with or without "fsdp_"
 * before each key: accelerate/utils/dataclasses.py, FullyShardedData-
 * ParallelPlugin, of 1.0 to 1.10 (fsdp_version is 1 unless it is given). */

#include "tools/from/keys/formatkeys.h"

#define FSDP(k) "policy.fsdp." k
#define ONE "version=1"
#define TWO "version=2"

static const ms_formatkey keys[] = {
    {.key = "version", .to = FSDP("impl"), .values = "1|2", .fallback = "1"},
    {.key = "sharding_strategy",
     .to = FSDP("strategy"),
     .values = "FULL_SHARD=full_shard|1=full_shard|SHARD_GRAD_OP=shard_grad_op|"
               "2=shard_grad_op|NO_SHARD=no_shard|3=no_shard|HYBRID_SHARD="
               "hybrid_shard|"
               "4=hybrid_shard",
     .when = ONE},
    {.key = "reshard_after_forward",
     .to = FSDP("reshard"),
     .values = "true=yes|false=no|FULL_SHARD=yes|SHARD_GRAD_OP=no",
     .when = TWO},
    {.key = "backward_prefetch",
     .to = FSDP("prefetch"),
     .values =
         "BACKWARD_PRE=pre|BACKWARD_POST=post|NO_PREFETCH=none|1=pre|2=post|"
         "null=none",
     .when = ONE},
    {.key = "forward_prefetch",
     .to = FSDP("forward_prefetch"),
     .values = "true=1|false=0",
     .when = ONE},
    {.key = "limit_all_gathers",
     .to = FSDP("limit"),
     .values = "true=1|false=0",
     .when = ONE},
    {.key = "offload_params",
     .to = "fsdp.offload",
     .values = "true=cpu|false="},
    {.key = "cpu_offload", .to = "fsdp.offload", .values = "true=cpu|false="},
    {.key = "activation_checkpointing",
     .to = "policy.checkpoint",
     .values = "true=full|false="},
    {.key = "auto_wrap_policy",
     .to = FSDP("units"),
     .values = "TRANSFORMER_BASED_WRAP=|NO_WRAP=whole"},
    {.key = "min_num_params",
     .harmless = "0",
     .warns = "units by size: memsim's are blocks (fsdp:units=)"},
    {.key = "mixed_precision_policy*", .warns = "formats by hand: --precision"},
};

static const char *const passed[] = {"state_dict_type",
                                     "sync_module_states",
                                     "cpu_ram_efficient_loading",
                                     "use_orig_params",
                                     "transformer_layer_cls_to_wrap",
                                     "ignored_modules",
                                     "param_init_fn",
                                     "xla*",
                                     "final_state_dict_type",
                                     NULL};

const ms_format ms_fsdpkeys_format = {.name = "FSDP",
                                      .file = "fsdp_config",
                                      .marks = "",
                                      .keys = keys,
                                      .n_keys = sizeof keys / sizeof keys[0],
                                      .passed = passed,
                                      .strips = "fsdp_"};
