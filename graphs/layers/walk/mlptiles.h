/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_GRAPHS_MLPTILES_H
#define MS_GRAPHS_MLPTILES_H

/* Private to graphs/layers/walk: MLPs that run in pieces of the sequence
 * (training.mlp_tiles), as DeepSpeed's TiledMLP does (deepspeed/runtime/
 * sequence_parallel/ulysses_sp.py; Arctic Long Sequence Training, arXiv
 * 2506.13996, 3.2).
 *
 *     forward   without a graph, piece by piece: the layers; then the results
 *               are joined.  The input alone is saved.
 *     backward  zeros for the input's gradient; then piece by piece: the layers
 *               again, with a graph (trace/inner.h), and back through it
 *
 * So what an MLP saves lives for one piece, and its forward runs twice.  In
 * backward the pieces are of all rows: those of all samples, one behind the
 * other.
 *
 * An MLP is a stretch of layers of a block, one behind the other, from products
 * of one tensor [batch, sequence, width] to the first product of what those
 * gave, with activations, gates and halves of channels between; of all that the
 * last is read outside.  A dropout that alone reads it belongs to it.
 *
 * A worked example, llama's: n tokens, h wide, f inside, in 4 pieces, 16 bits.
 * Whole, it saves 2 n h + 3 x 2 n f; in pieces 2 n h.  Alive at once in
 * backward: 4 n h (gradients of its input and output) and, of n / 4 tokens,
 * 3 x 2 f and as many gradients, and one gradient of each weight that is added
 * to the sum. */

#include "graphs/layers/walk/layerrun.h"

typedef struct ms_mlptiles ms_mlptiles;

/* Finds the MLPs: trace->tiles, or NULL where they run whole.  MS_EUSAGE where
 * there are none, or for what is not known beside it. */
ms_err ms_mlptiles_open(ms_trace *trace);
/* How many layers the MLP that begins at this place of the model's order has;
 * 0: none begins there. */
uint32_t ms_mlptiles_at(const ms_trace *trace, uint32_t place);
/* Runs the layers of the MLP that begins there. */
ms_err ms_mlptiles_run(ms_layerrun *run, uint32_t place);

#endif
