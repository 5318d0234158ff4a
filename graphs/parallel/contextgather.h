/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_GRAPHS_CONTEXTGATHER_H
#define MS_GRAPHS_CONTEXTGATHER_H

/* Private to graphs/: attention of ranks that divide a sequence, where each
 * gathers all keys and values (TransformerEngine@d0067d0d, pytorch/attention/
 * dot_product_attention/context_parallel.py, AttnFuncWithCPAndKVAllGather).
 *
 * Tokens are dealt in 2C pieces, a rank has the r-th and the r-th from the end.
 * Keys, then values, come into one buffer and are copied in the order of the
 * sequence; the two pieces of queries go through the kernel one after the
 * other, each with the keys up to its own, and their results are copied into
 * one.  The ranks differ by which keys that is: the first, as here, has the
 * least and the most.  Saved are its own q, k and v, both results and their
 * statistics; backward gathers again, adds each piece's gradients of keys and
 * values to those of all, and scatters their sums.
 *
 * With b samples of s tokens, h wide, in 16 bits, K = 2 b s h / C bytes of a
 * rank's keys: forward C K each for keys and values, for a moment 2 C K of one;
 * backward C K four times, and a copy in the order of the ranks. */

#include "graphs/ops/ops.h"

/* Over [batch, heads, sequence, dim] of this rank's tokens. */
uint32_t ms_contextgather_run(ms_trace *trace, uint32_t q, uint32_t k,
                              uint32_t v, bool causal);

#endif
