/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The table of changes, by price; within a price what people try first. */

#include "tools/advice/changes.h"

#define ONE(key, value)                                                        \
    {                                                                          \
        {                                                                      \
            key, value                                                         \
        }                                                                      \
    }

const ms_change ms_changes_table[] = {
    /* The same numbers, no slower. */
    {MS_COSTS_NOTHING, "optimizer_impl", NULL,
     ONE("training.optimizer_impl", "fused"), NULL, NULL, NULL},
    {MS_COSTS_NOTHING, "allocator", NULL,
     ONE("allocator", "expandable_segments:True"), NULL, NULL, NULL},
    {MS_COSTS_NOTHING, "kernels", NULL, ONE("training.kernels", "flash"),
     "training.kernels", "eager", NULL},
    {MS_COSTS_NOTHING, "loss", NULL,
     ONE("training.loss_kernel", "liger_linear"), "training.kernels",
     "eager|flash|efficient|sdpa|fused", NULL},
    {MS_COSTS_NOTHING, "loss", NULL, ONE("training.loss_kernel", "liger"),
     "training.kernels", "eager|flash|efficient|sdpa|fused", NULL},
    {MS_COSTS_NOTHING, "loss", NULL, ONE("megatron.loss", "te"),
     "training.kernels", "megatron", NULL},
    {MS_COSTS_NOTHING, "kernels", NULL, ONE("training.kernels", "fused"),
     "training.kernels", "eager|flash|efficient|sdpa", NULL},
    {MS_COSTS_NOTHING, "zero_grad", NULL, ONE("training.zero_grad", "none"),
     NULL, NULL, NULL},
    {MS_COSTS_NOTHING, "hold_output", NULL, ONE("training.hold_output", "none"),
     NULL, NULL, NULL},
    {MS_COSTS_NOTHING, "share", "zero:1", {{0}}, NULL, NULL, NULL},
    {MS_COSTS_NOTHING, "share", "zero:2", {{0}}, NULL, NULL, NULL},
    /* The same numbers. */
    {MS_COSTS_TIME,
     "checkpoint",
     "checkpoint:selective",
     {{0}},
     NULL,
     NULL,
     NULL},
    {MS_COSTS_TIME, "microbatch", "microbatch:%lld", {{0}}, NULL, NULL, NULL},
    {MS_COSTS_TIME, "checkpoint", "checkpoint:sac", {{0}}, NULL, NULL, NULL},
    {MS_COSTS_TIME, "checkpoint", "checkpoint:sqrt", {{0}}, NULL, NULL, NULL},
    {MS_COSTS_TIME, "checkpoint", "checkpoint:full", {{0}}, NULL, NULL, NULL},
    {MS_COSTS_TIME, "share", "zero:3", {{0}}, NULL, NULL, NULL},
    {MS_COSTS_TIME, "share", "fsdp", {{0}}, NULL, NULL, NULL},
    {MS_COSTS_TIME, "swap", "swap:torchtune", {{0}}, NULL, NULL, NULL},
    {MS_COSTS_TIME, "swap", "swap:checkpoints", {{0}}, NULL, NULL, NULL},
    {MS_COSTS_TIME, "offload", "offload:optimizer", {{0}}, NULL, NULL, NULL},
    {MS_COSTS_TIME,
     "offload",
     "offload:optimizer/gradients",
     {{0}},
     NULL,
     NULL,
     NULL},
    {MS_COSTS_TIME,
     "offload",
     "offload:optimizer/params/gradients",
     {{0}},
     NULL,
     NULL,
     NULL},
    /* Other numbers. */
    {MS_COSTS_NUMERICS, "gradients", NULL, ONE("training.gradients", "auto"),
     "training.gradients", "fp32|main", "gradients in 16 bits"},
    {MS_COSTS_NUMERICS, "precision", NULL,
     ONE("training.precision", "bf16-mixed"), "training.precision", "fp32|tf32",
     "products in bf16"},
    {MS_COSTS_NUMERICS, "optimizer", NULL,
     ONE("training.optimizer", "adamw-8bit"), "training.optimizer", "adamw",
     "moments in 8 bits"},
    {MS_COSTS_NUMERICS, "optimizer", NULL,
     ONE("training.optimizer", "adam-8bit"), "training.optimizer", "adam",
     "moments in 8 bits"},
    {MS_COSTS_NUMERICS, "optimizer", NULL,
     ONE("training.optimizer", "lion-8bit"), "training.optimizer", "lion",
     "moments in 8 bits"},
    {MS_COSTS_NUMERICS, "in_backward", NULL,
     ONE("training.optimizer_in_backward", "yes"), NULL, NULL,
     "no clipping, no accumulation of gradients"},
    {MS_COSTS_NUMERICS, "precision", NULL, ONE("training.precision", "fp8"),
     "training.precision", "bf16-mixed", "products in fp8"},
    {MS_COSTS_NUMERICS, "precision", NULL, ONE("training.precision", "bf16"),
     "training.precision",
     "fp32|tf32|bf16-mixed|fp16-mixed|autocast-bf16|autocast-fp16|"
     "bf16-remainders|fp8",
     "no fp32 weights, moments in bf16"},
    {MS_COSTS_NUMERICS, "base", NULL, ONE("lora.base", "nf4"), "lora.rank",
     "!0", "frozen weights in 4 bits"},
    /* Another training. */
    {MS_COSTS_TRAINING, "lora", NULL, ONE("lora.rank", "16"), "lora.rank", "0",
     "it trains adapters, not the model"},
    {MS_COSTS_TRAINING,
     "lora",
     NULL,
     {{"lora.rank", "16"}, {"lora.base", "nf4"}},
     "lora.rank",
     "0",
     "it trains adapters beside a model in 4 bits"},
};
const uint32_t ms_changes_table_n =
    sizeof ms_changes_table / sizeof *ms_changes_table;
