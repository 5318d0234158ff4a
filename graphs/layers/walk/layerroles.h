/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_GRAPHS_LAYERROLES_H
#define MS_GRAPHS_LAYERROLES_H

/* Private to graphs/: what each layer of a model is for (ms_layer_role).  A
 * layer type's row says it; of a linear layer its readers do:
 *
 *     HEAD            a loss reads it, its cast or not; of classes, activations
 *                     between or not
 *     GATE            its activation is multiplied by another layer's output:
 *                     the first input of swiglu, or silu and mul
 *     PROJECTION_OUT  it goes into a residual sum, dropout or a norm between
 *                     (Gemma 2, OLMo 2) or not
 *     PROJECTION_IN   it is in a block, and none of these
 */

#include "graphs/trace/tensors.h"

/* A loss ends a model: by its type, or a mean or sum of everything. */
bool ms_layerroles_is_loss(const ms_layer *layer);
/* The columns layer_name, layer_type and layer_role of a layer list. */
ms_err ms_layerroles_fill(ms_trace *trace);
/* Those of an op graph's modules, whose names are there: of no known role. */
ms_err ms_layerroles_modules(ms_trace *trace);

#endif
