/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_GRAPHS_EXPERTS_H
#define MS_GRAPHS_EXPERTS_H

/* Private to graphs/layers/experts: Megatron's kernels that route, permute and
 * multiply the tokens of all experts of a layer together. */

#include "graphs/trace/trace.h"

/* Tokens go to experts in rows: so many of all experts together. */
typedef struct ms_experts {
    int64_t rows, experts, chosen; /* chosen: experts of a token */
} ms_experts;
/* scores [tokens, experts]: the chosen ones' [tokens, chosen]; what backward
 * and the ways there and back need is saved by the ops that follow.  map: where
 * each row goes, or, not sorted, which experts a token has. */
uint32_t ms_experts_route(ms_trace *trace, uint32_t scores, int64_t chosen,
                          bool sorted, uint32_t *map);
/* x [tokens, width] as [rows, width], expert after expert. */
uint32_t ms_experts_permute(ms_trace *trace, uint32_t x, uint32_t map,
                            const ms_experts *experts);
/* x [rows, in] times weight [experts, out, in]: each expert's rows by its
 * own. */
uint32_t ms_experts_product(ms_trace *trace, uint32_t x, uint32_t weight);
/* silu(first half) * second half, or GELU; probabilities (or MS_NONE) are
 * multiplied in (Megatron's weighted SwiGLU). */
uint32_t ms_experts_gate(ms_trace *trace, uint32_t x, uint32_t probabilities);
/* The gate, or GELU and after it the probabilities, if any; y is used up. */
uint32_t ms_experts_activate(ms_trace *trace, bool gated, uint32_t y,
                             uint32_t probabilities);
/* Back to [tokens, width]: the sum of each token's rows, weighted by
 * probabilities [tokens, chosen] unless MS_NONE. */
uint32_t ms_experts_unpermute(ms_trace *trace, uint32_t y, uint32_t map,
                              uint32_t probabilities, int64_t tokens);

#endif
