/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_GRAPHS_UNITCOSTS_H
#define MS_GRAPHS_UNITCOSTS_H

/* Private to graphs/: what units count where a framework's stages of a pipeline
 * have as much to do each (ms_kernel_hooks.stage_cost, ms_graph.unit_cost).
 *
 * A layer of nanotron's 1B, of width 2048 with an MLP of 4096, counts 4 x
 * 2048 x 2048 + 3 x 4096 x 2048, its head of 50257 words 2.45 times as much;
 * embedding and norms count nothing. */

#include "graphs/trace/tensors.h"

/* Fills the column, where the kernels have the hook and the model has blocks.
 * The units' ranges of ops are there.  MS_ENOMEM. */
ms_err ms_unitcosts_fill(ms_trace *trace);

#endif
