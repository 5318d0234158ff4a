/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_GRAPHS_SCORES_H
#define MS_GRAPHS_SCORES_H

/* Private to graphs/: attention op by op, as the code of each model family
 * writes it.  q, k, v are [batch, heads, sequence, dim], heads of k and v
 * already repeated:
 *
 *     ms_scores how = {.code = MS_CODE_AUTO, .causal = true,
 *                      .sinks = MS_NONE, .bias = MS_NONE};
 *     uint32_t y = ms_scores_attend(trace, &how, qkv);
 *
 * What happens between q k^T and the weights is data of the code
 * (ms_modelcode), but for a layer's own bias and where a set of kernels fuses
 * it.
 *
 * Masks and ALiBi's distances are buffers here, one for the whole model, where
 * transformers makes them anew in each forward: as many bytes, but they stay
 * over the optimizer's step. */

#include "graphs/trace/tensors.h"

typedef struct ms_scores {
    int64_t code; /* row of ms_modelcodes */
    bool causal;
    bool rotates; /* q and k have been rotated */
    bool alibi, softcap;
    bool repeats;      /* keys and values, for their queries, whatever runs */
    bool always_fuses; /* a fused kernel runs it whatever its code is */
    int64_t window;    /* keys that a query sees: its mask is another; 0: all */
    uint32_t sinks;    /* a parameter [heads], or MS_NONE */
    uint32_t bias;     /* a tensor that is added to the scores as they are, in
                          place (T5: no scale), or MS_NONE */
    double dropout;
} ms_scores;

uint32_t ms_scores_attend(ms_trace *trace, const ms_scores *how,
                          const uint32_t *qkv);
/* Has transformers a path of the code that calls a fused kernel? */
bool ms_scores_has_kernel(const ms_trace *trace, const ms_scores *how);

#endif
