/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_POLICIES_STAGES_H
#define MS_POLICIES_STAGES_H

/* A graph, or the part of it that a stage of a pipeline has, as a chain
 * (chain.h): its blocks, and its units that are in none, are the stages; the
 * units of the loss are the last one.
 *
 *     ms_stages stages;
 *     MS_TRY(ms_stages_find(graph, &part, arena, &stages, fault));
 *     MS_TRY(ms_optimum_find(&stages.chain, budget, MS_OPTIMUM_SLOTS, arena,
 *                            &optimum, fault));
 *
 * GPT-2: the embeddings, 12 blocks, the last norm, the head, the loss.  On a
 * pipeline of two the first part is the embeddings, 6 blocks, and what stands
 * for the loss.
 *
 * What one stage hands to the next is its output; what later ones read besides
 * (a skip over a stage, a mask that all of them read) is kept where it is made,
 * and is in no stage's bytes.  Of a lowered graph the numbers are close, not
 * exact.  Of a measured chain they are those of its file. */

#include "policies/common/policy.h"
#include "policies/solve/chain.h"
#include "sim/stage.h"

typedef struct ms_stages {
    ms_chain chain;
    /* Units of stage l, [1 .. n]: none of the last one (first is behind last)
     * where the part ends before the loss.  That one takes no time and saves
     * nothing: other micro-batches run between its forward and its backward. */
    uint32_t *first, *last;
    /* Storages that stage l makes: those that the next one reads, CSR [1 .. n +
     * 1], of the last with units those that other parts do; a flag per storage
     * for what is kept whatever the plan, and the first stage that reads it (0:
     * none does, or the training loop holds it). */
    uint32_t *out_at, *out;
    uint8_t *is_kept;
    uint32_t *first_reader;
} ms_stages;

/* part: units of the graph; where it is all of them, without a stage before the
 * loss MS_EUSAGE.  MS_ENOMEM. */
ms_err ms_stages_find(const ms_graph *graph, const ms_stage *part,
                      ms_arena *arena, ms_stages *stages, ms_fault *fault);

#endif
