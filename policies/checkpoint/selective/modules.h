/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_POLICIES_MODULES_H
#define MS_POLICIES_MODULES_H

/* Private to policies/checkpoint: Megatron-LM's selective recomputation by
 * module (megatron/core/transformer/transformer_config.py, recompute_modules;
 * tensor_parallel/random.py, CheckpointWithoutOutput; core 0.12 to 0.14).
 *
 *     core_attn       from q, k, v to the output of attention, which stays
 *     mlp             of blocks without experts: up, gate, activation, down
 *     moe             router, experts and shared experts
 *     shared_experts  the MLP beside the experts
 *     layernorm       the norms before attention and before the MLP
 *     mla_up_proj     latent attention: norms and products from the compressed
 *                     to q, k, v, with rotation
 *     moe_act         the activation between the products of the experts
 *
 * Of the first four what others read stays; of the last three it goes, too, and
 * is made again just before the backward of its reader ("output-discarding").
 * What a backward needs is made again, no more: the last product of an MLP,
 * which Megatron's replay of the whole module runs too, is not.
 * Modules are found by what layers are for and what their ops do. */

#include "policies/common/policy.h"

/* What these modules (bits, in the order of words, those of modules=) make is
 * made again.  MS_EUSAGE: the model has none of one of them. */
ms_err ms_modules_drop(const ms_policy_context *context, const char *words,
                       uint64_t wanted, ms_keep *keep, ms_fault *fault);

#endif
