/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_GRAPHS_CONTEXTOPS_H
#define MS_GRAPHS_CONTEXTOPS_H

/* Private to graphs/: attention of ranks that divide a sequence (context:C).
 * Everything else of a layer works on a rank's tokens alone; here each query
 * meets the keys of all of them.
 *
 * a2a (Jacobs et al. 2023, DeepSpeed Ulysses): before and after the kernel, q,
 * k, v and the result change from a part of the tokens and all heads to all
 * tokens and a part of the heads: a copy in the order of the ranks, the
 * all-to-all into a buffer, a copy in the order of the kernel.  What is saved
 * is what the kernel reads; the result that goes on is another tensor.  Heads
 * of keys and values fewer than ranks are repeated first, so that each rank has
 * a copy of one (deepspeed/runtime/sequence_parallel/ulysses_sp.py,
 * UlyssesSPAttentionHF); Transformer Engine refuses them.
 *
 * ring (TransformerEngine@d0067d0d, pytorch/attention/dot_product_attention/
 * context_parallel.py, AttnFuncWithCPAndKVP2P): keys and values in one buffer,
 * which goes round in C - 1 steps, each into a new one; all of them, and the
 * partial results, end with the function.  Tokens are dealt in 2C pieces, a
 * rank has the r-th and the r-th from the end, so that causal work is the same;
 * the partial results are not: rank r's are whole in steps up to r, then halves
 * (of context_rank, which is the last unless one is asked for).  It saves q,
 * the buffer that came last, the result and its statistics.  Another ring, and
 * plain splits: ringflash.h.
 *
 * allgather: contextgather.h.
 *
 * With b samples of s tokens, h wide, K = 4 b s h / C bytes of keys and values
 * of 16 bits:  a2a  each way 4 tensors of 2 b s h / C, twice each for a moment;
 * ring  C K for keys and values, (C + 1) b s h / C for partial results. */

#include "graphs/ops/ops.h"

/* Opens trace->context.  MS_EINPUT where the sequence or the heads do not
 * divide, MS_EUSAGE for what is not known beside it. */
ms_err ms_contextops_open(ms_trace *trace);
/* Do a rank's queries meet the others' keys inside of one function (ring,
 * allgather)?  Else heads are exchanged around the kernel. */
bool ms_contextops_is_joint(const ms_trace *trace);

/* x [batch, sequence, heads, dim]: to all tokens of a part of the heads, or
 * back.  Without ranks that divide the sequence a reference to x. */
uint32_t ms_contextops_to_heads(ms_trace *trace, uint32_t x);
uint32_t ms_contextops_to_tokens(ms_trace *trace, uint32_t x);

/* The same of [batch, heads, sequence, dim], which is used up, where ranks
 * divide the sequence.  may_repeat: keys and values, see above. */
uint32_t ms_contextops_forth(ms_trace *trace, uint32_t x, bool may_repeat);
uint32_t ms_contextops_back(ms_trace *trace, uint32_t x);

/* Such a function over [batch, heads, sequence, dim] of this rank's tokens. */
uint32_t ms_contextops_joint(ms_trace *trace, uint32_t q, uint32_t k,
                             uint32_t v, bool causal);

#endif
