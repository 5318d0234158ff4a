/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_GRAPHS_LAYERS_H
#define MS_GRAPHS_LAYERS_H

/* Private to graphs/: layer types that have a file of their own, and what all
 * of them ask for. */

#include "graphs/ops/ops.h"

/* Faults when x holds token ids. */
ms_err ms_layers_need_float(ms_trace *trace, const ms_layer *layer, uint32_t x);

#define MS_SELFATTENTION_FIELDS 4
extern const ms_field ms_selfattention_fields[MS_SELFATTENTION_FIELDS];
ms_err ms_selfattention_forward(ms_trace *trace, const ms_layer *layer,
                                const uint32_t *in, uint32_t *out);

#endif
