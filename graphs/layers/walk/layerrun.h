/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_GRAPHS_LAYERRUN_H
#define MS_GRAPHS_LAYERRUN_H

/* Private to graphs/layers/walk: one layer of a list runs on what others have
 * made.  A loss ends a model (layerroles.h): its ops are
 * of the pass of the loss. */

#include "graphs/trace/tensors.h"

typedef struct ms_layerrun {
    ms_trace *trace;
    uint32_t *value; /* per layer: its output tensor */
    uint32_t *in;    /* room for the inputs of any layer */
} ms_layerrun;

/* No layer has run.  MS_ENOMEM. */
ms_err ms_layerrun_open(ms_layerrun *run, ms_trace *trace);
/* Runs the layer, whose inputs have been made. */
ms_err ms_layerrun_layer(ms_layerrun *run, uint32_t layer);

#endif
