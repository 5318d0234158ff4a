/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_GRAPHS_MODELGRAPH_H
#define MS_GRAPHS_MODELGRAPH_H

/* From a model to its graph, and what is told of its layers:
 *
 *     ms_model model;
 *     ms_training training;                      (defaults, then --set)
 *     MS_TRY(ms_read_model("gpt3.json", NULL, 0, &keep, &model, fault));
 *     MS_TRY(ms_resolve_training(&training, &model, fault));
 *     MS_TRY(ms_dag_order(&model, &keep, fault));
 *     MS_TRY(ms_lower(&model, &training, device, &shape, &keep, &graph,
 *                     fault));
 */

#include "graphs/device.h"
#include "graphs/model.h"
#include "graphs/training.h"
#include "sim/nouns.h"

/* Lowers one micro-batch of training->batch / micro_batches samples and the
 * optimizer step of one rank.  Needs ms_dag_order.  Faults: shapes that
 * contradict a layer's rule (names both layers), products beyond 2^63. */
ms_err ms_lower(const ms_model *model, const ms_training *training,
                const ms_device *device, const ms_shape *shape, ms_arena *arena,
                ms_graph *graph, ms_fault *fault);

/* What inspect shows, one row per layer in topological order. */
typedef struct ms_layer_facts {
    const char *name, *type;
    uint32_t block;      /* row of ms_model.block_names, or MS_NONE */
    uint64_t parameters; /* tied ones counted at their first layer */
    uint64_t active;     /* of them, what a token meets: not all experts */
    double forward_flops, backward_flops;
    double forward_macs, backward_macs; /* of products and convolutions */
    uint64_t saved_bytes, output_bytes;
    uint64_t held_bytes; /* of its parameters, on this rank */
    const char *split;   /* how ranks split it, "": not; NULL: none do */
} ms_layer_facts;
ms_err ms_lower_facts(const ms_model *model, const ms_graph *graph,
                      ms_arena *arena, ms_layer_facts **facts, ms_fault *fault);

#endif
