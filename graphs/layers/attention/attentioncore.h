/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_GRAPHS_ATTENTIONCORE_H
#define MS_GRAPHS_ATTENTIONCORE_H

/* Private to graphs/: the one attention of all layers that project queries,
 * keys and values.  By the kernels of the trace and by whose code the layer has
 * it is a fused kernel (sdpa.h) or the ops of that code (scores.h).
 *
 *     const ms_scores how = {.code = MS_CODE_AUTO, .causal = true,
 *                            .sinks = MS_NONE, .bias = MS_NONE};
 *     uint32_t y = ms_attentioncore_run(trace, &how, qkv); */

#include "graphs/layers/attention/scores.h"

/* q, k, v are [batch, heads, sequence, dim].  Heads of k and v may divide q's:
 * where what runs does not share them, they are repeated, and qkv names the
 * repeated ones. */
uint32_t ms_attentioncore_run(ms_trace *trace, const ms_scores *how,
                              uint32_t qkv[3]);

#endif
