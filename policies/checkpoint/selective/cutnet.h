/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_POLICIES_CUTNET_H
#define MS_POLICIES_CUTNET_H

/* Private to policies/checkpoint: the forward of a part of the model (a stage
 * of a pipeline, or all of it) as a network, and the cuts of it that cutplan.h
 * is about.
 *
 *     ms_cutnet net = {.graph = graph, .part = stages[k], .arena = arena};
 *     MS_TRY(ms_cutnet_open(&net, fault));
 *     MS_TRY(ms_cutnet_choose(&net, 50, fault));
 *     ... net.is_saved[v] says whether storage net.storage[v] is saved
 *
 * Its nodes are the storages that the part's forward makes, and those that
 * other parts hand to it: inputs, which it cannot make again. */

#include "policies/solve/cut/mincut.h"
#include "sim/stage.h"

typedef struct ms_cutnet {
    const ms_graph *graph;
    ms_stage part; /* units [first, last] */
    ms_arena *arena;
    uint32_t n;
    uint32_t *storage; /* per node, in the order of the graph */
    uint32_t *node_of; /* per storage, or MS_NONE */
    /* Per node. */
    uint64_t *weight, *time_ns;
    uint8_t *is_given; /* by another part */
    uint8_t *is_fixed; /* a gradient of a fused loss, or made beside one */
    uint8_t *is_dear, *is_listed, *is_read, *is_small, *needed;
    uint8_t *banned, *is_saved;
    uint32_t *saved_until; /* the last unit to go back whose nodes save it */
    uint32_t *until; /* the unit behind whose backward it is needed no more */
    uint8_t *makes;  /* backward makes others of it again */
    ms_mincut_net net;
    uint64_t all_bytes; /* that mincut saves */
} ms_cutnet;

ms_err ms_cutnet_open(ms_cutnet *net, ms_fault *fault);
/* The choice in so many percent of what mincut saves: is_saved, until, makes.
 */
ms_err ms_cutnet_choose(ms_cutnet *net, uint64_t percent, ms_fault *fault);

#endif
