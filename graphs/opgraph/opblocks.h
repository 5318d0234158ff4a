/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_GRAPHS_OPBLOCKS_H
#define MS_GRAPHS_OPBLOCKS_H

/* Private to graphs/: the blocks of an op graph, by the names of its modules.
 * A block is a numbered module: up to the first number that is a whole part of
 * a dotted name ("h.3" of "h.3.attn.c_attn") or ends one, where at least three
 * such modules stand side by side ("encoder.layer_0", not the "ln_1" and
 * "ln_2" of a block). */

#include "graphs/opgraph/opgraph.h"

/* Fills the graph's block names and, per module, its block or MS_NONE. */
ms_err ms_opblocks_find(ms_trace *trace, const ms_opgraph *ops,
                        uint32_t *block_of);

#endif
