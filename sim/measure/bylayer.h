/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_SIM_BYLAYER_H
#define MS_SIM_BYLAYER_H

/* What each layer keeps for backward and runs again. */

#include "sim/base/base.h"
#include "sim/nouns.h"

/* A block, or a layer that is in none (of an op graph without names: a unit),
 * in the order of the forward pass, the loss included; of a rank only what it
 * runs.
 * saved_bytes: what its ops made and autograd or a checkpoint holds on the
 * device after the loss of the first micro-batch (storages of activations,
 * each once).  Where no checkpoint holds anything they sum to the report's
 * saved_for_backward_bytes, else they may exceed it by what closures hold.
 * 0 where the program does not mark that instant.
 * recompute_ns: how long its ops run again; forward_ns: the first time; both
 * of all micro-batches on the compute stream, so that they sum to the times'
 * recompute_ns and forward_ns. */
typedef struct ms_layer_use {
    const char *name;
    uint64_t saved_bytes, forward_ns, recompute_ns;
} ms_layer_use;
ms_err ms_bylayer_measure(const ms_timeline *line, uint16_t rank,
                          ms_arena *arena, ms_layer_use **layers, uint32_t *n,
                          ms_fault *fault);

#endif
