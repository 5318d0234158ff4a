/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_GRAPHS_PARTLOSS_H
#define MS_GRAPHS_PARTLOSS_H

/* Private to graphs/: cross entropy of logits whose classes ranks divide.  Of
 * each row the maximum, the sum of exponentials and the target's logit are
 * exchanged, four bytes each; the logits never are. */

#include "graphs/trace/tensors.h"

/* torch's loss parallelism, op by op (pytorch, torch/distributed/tensor/
 * parallel/loss.py): logits [..., classes], this rank's part; one target a row.
 * N rows of V / t classes in fp32: forward makes the shifted logits, their
 * exponentials, then the log-probabilities, which it saves; backward zeros, the
 * exponentials, their sum and its product: 16 bytes an element at most. */
uint32_t ms_partloss_cross_entropy(ms_trace *trace, uint32_t logits,
                                   uint32_t target);
/* What Megatron's kernels exchange before and after the one that follows:
 * maxima, sums, the targets' logits (core/tensor_parallel/cross_entropy.py). */
void ms_partloss_exchange(ms_trace *trace, uint32_t logits);

#endif
