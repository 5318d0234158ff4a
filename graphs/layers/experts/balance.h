/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_GRAPHS_BALANCE_H
#define MS_GRAPHS_BALANCE_H

/* Private to graphs/layers/experts: losses of the router, which do not go to
 * the model's loss: a tensor on the way there takes their gradient along
 * (Megatron-LM, core/transformer/moe/moe_utils.py, MoEAuxLossAutoScaler).
 *
 * aux_loss: n_e tokens choose expert e, whose probabilities sum to P_e; the sum
 * of n_e P_e is least where all have as many (Fedus et al. 2021, Switch
 * Transformers, equation 4).  Its softmax of T tokens and E experts is saved: 4
 * T E bytes.
 * z_loss: the mean of log(sum(exp(logits)))^2 (Zoph et al. 2022, ST-MoE,
 * equation 5).  It saves the logits, 4 T E bytes where nothing else does, and 8
 * T for the sums. */

#include "graphs/trace/trace.h"

/* p [tokens, chosen], used up, with the gradient of the loss of logits [tokens,
 * experts]. */
uint32_t ms_balance_aux_loss(ms_trace *trace, uint32_t logits, uint32_t p,
                             int64_t chosen);
/* logits, used up, with the gradient of their loss. */
uint32_t ms_balance_z_loss(ms_trace *trace, uint32_t logits);

#endif
