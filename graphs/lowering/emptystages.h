/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_GRAPHS_EMPTYSTAGES_H
#define MS_GRAPHS_EMPTYSTAGES_H

/* Private to graphs/lowering: stages of a pipeline that have no layer.
 *
 * Such a stage receives what the layers behind it read and sends a copy of it,
 * so that its input and its output are two tensors (NVIDIA/Megatron-LM@
 * d98e8a64, megatron/core/transformer/transformer_block.py, forward: an empty
 * block clones its hidden states; backward hands the gradient on).  So it is a
 * layer more, "empty_stage.K", a copy that is a unit by itself:
 *
 *     embed  b0  b1  [empty_stage.0]  b2  head      behind = {2} */

#include "graphs/model.h"
#include "sim/shape.h"

/* The model with these layers, which come last in its table; none of its own
 * has another number.  Needs ms_dag_order.  Faults (MS_EUSAGE): the model has
 * no blocks. */
ms_err ms_emptystages_add(const ms_model *model, const ms_empty_stages *empty,
                          ms_arena *arena, ms_model *with, ms_fault *fault);

#endif
