/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_GRAPHS_RINGFLASH_H
#define MS_GRAPHS_RINGFLASH_H

/* Private to graphs/: attention over a ring of ranks as ring-flash-attention
 * has it (zhuzilin/ring-flash-attention@0fc25b46, ring_flash_attn.py,
 * zigzag_ring_flash_attn.py, utils.py, update_out_and_lse, RingComm).
 *
 * Nouns.  C ranks have s / C tokens of a sequence each.  In C steps keys and
 * values go round: in step i rank r has those of rank r - i.  A causal sequence
 * is dealt plain, where rank r has the r-th piece of C, or in zigzag, where it
 * has the r-th and the r-th from the end of 2 C.
 *
 *     causal, queries x keys of a rank's    plain             zigzag
 *     step 0                                1 x 1, causal     1 x 1, causal
 *     step i <= r                           1 x 1             1 x 1/2
 *     step i > r                            nothing           1/2 x 1
 *
 * So in zigzag all ranks work (C - 1) + 1 halves of a block, and plain rank r
 * works r + 1/2 blocks: the ring goes at the pace of the last one, for which
 * each other one waits in the steps in which it has no work.
 *
 * Forward sums results in fp32; of keys and values there are two at a time, the
 * step's and the next one's, plain a third (a step's dict of arguments names
 * them until the next one).  Saved are q, k, v, the result and its statistics.
 * Backward has the gradients of a block in 16 bits and their sums in fp32,
 * which travel: K bytes of keys and values go round C - 1 times each way, and
 * 2 K of gradients C times. */

#include "graphs/ops/ops.h"

/* Over [batch, heads, sequence, dim] of this rank's tokens (trace->context). */
uint32_t ms_ringflash_run(ms_trace *trace, uint32_t q, uint32_t k, uint32_t v,
                          bool causal);

#endif
