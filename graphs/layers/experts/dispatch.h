/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_GRAPHS_DISPATCH_H
#define MS_GRAPHS_DISPATCH_H

/* Private to graphs/layers/experts: the way of tokens to experts on other
 * ranks, and back (Megatron-LM, core/transformer/moe/token_dispatcher.py,
 * MoEAlltoAllTokenDispatcher).  Autograd keeps the maps alone, so that each
 * buffer ends when the next one is there.
 *
 * T tokens of width h on each of E ranks, k experts of each, El of them here,
 * in 16 bits, routing even, p where the gate multiplies them in:
 *
 *     permute      2 h k T, and p, 4 k T; map 4 k T    rows by expert
 *     all-to-all   2 h R, and p: R = k T               rows by rank
 *     all-gather   of the ranks that split an expert
 *     sort         2 h R, map 4 R; where El > 1        rows by expert
 *     experts
 *     sort back    2 h R, map 4 R
 *     scatter      of the ranks that split an expert
 *     all-to-all   2 h k T
 *     unpermute    2 h T */

#include "graphs/layers/experts/experts.h"

/* Rows of this rank.  experts, chosen: as of the whole layer. */
typedef struct ms_dispatch {
    ms_experts sent;     /* by this rank's tokens */
    int64_t received;    /* from all ranks, before those that split an expert
                            give theirs */
    int64_t own_experts; /* this rank's */
    bool weights_gate;   /* p goes along with the rows */
} ms_dispatch;

/* The rows to be sent, [rows, width], and *own [rows], their p, where the gate
 * needs it; else MS_NONE. */
uint32_t ms_dispatch_permute(ms_trace *trace, const ms_dispatch *how,
                             uint32_t x, uint32_t map, uint32_t p,
                             uint32_t *own);
/* x [tokens, width] as [rows, width] of this rank's experts, sorted by them; p
 * [tokens, chosen] as *own [rows], or MS_NONE where it stays here. */
uint32_t ms_dispatch_there(ms_trace *trace, const ms_dispatch *how, uint32_t x,
                           uint32_t map, uint32_t p, uint32_t *own);
/* Rows [rows, width], used up, as those that this rank has sent; wide: they are
 * added in fp32 by ranks that split an expert. */
uint32_t ms_dispatch_back(ms_trace *trace, const ms_dispatch *how, uint32_t y,
                          bool wide);

#endif
