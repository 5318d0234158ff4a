/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_COSTSPLIT_H
#define MS_COSTSPLIT_H

/* Stages that have as much to do each, where the kernels' framework makes them
 * so (ms_graph.unit_cost): nanotron (huggingface/nanotron@2411b022,
 * src/nanotron/models/base.py, build_model).  Stage k of n ends with the layer
 * by which all so far cost more than (k + 1) / n of the model.
 *
 * 24 layers and a head that costs as much as 2.45 of them are 26.45: two stages
 * share them as 14 (the first beyond 13.23) and 10, eight as
 * 4/3/3/4/3/3/4/0, the last one with the final norm and the head alone. */

#include "sim/base/base.h"
#include "sim/nouns.h"

/* Adds to layers, of n stages.  Layer i ends before unit layer_end[i].  Faults
 * (MS_EUSAGE): a stage would have neither a layer nor the head.  Nanotron
 * refuses stages behind the head, too (check_model_has_grad); one with the
 * final norm alone, of two stages more than layers, it makes. */
ms_err ms_costsplit_take(const ms_graph *graph, const uint32_t *layer_end,
                         uint32_t n_layers, uint32_t n, uint32_t *layers,
                         ms_fault *fault);

#endif
