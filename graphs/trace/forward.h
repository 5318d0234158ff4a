/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_GRAPHS_FORWARD_H
#define MS_GRAPHS_FORWARD_H

/* Private to graphs/: what a recorded forward hands to backward and step. */

#include "graphs/trace/tensors.h"

/* Units in order; loss_unit MS_NONE and loss MS_NONE: no loss.  outputs
 * are what the training loop's variable `out` names. */
typedef struct ms_forward {
    uint32_t n_units, loss_unit;
    uint32_t *unit_block;
    const char **unit_name;
    uint32_t n_outputs, *outputs, loss;
} ms_forward;

/* walk.c: a layer list */
ms_err ms_walk_layers(ms_trace *trace, ms_forward *forward);
/* oprun.c: an exported op graph */
ms_err ms_oprun_forward(ms_trace *trace, ms_forward *forward);

#endif
