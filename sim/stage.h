/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_SIM_STAGE_H
#define MS_SIM_STAGE_H

/* Stages: which part of the model is a rank's own.  A program's table of stages
 * has ranges of units, each of them of one rank; a rank may own several
 * (interleaved chunks), and a unit may be several ranks' (replicas).  Without a
 * table each rank has the whole model.
 *
 * A rank holds, of the storages that outlive a micro-batch,
 *
 *   - what the forward and backward ops of its units read or make, the .grad of
 *     these weights and the random states of these units: so each rank that
 *     reads a tied weight holds it;
 *   - what no unit touches (masters, moments) if it holds a weight above of
 *     the same layer; where such a storage has no layer, if an op of the step
 *     that the rank runs touches it, or none does.
 *
 * Nothing else is booked in its name.  The rank runs an op of the step where it
 * holds something of a unit or a layer that the op touches (an op that touches
 * nothing of the kind is every rank's that has run what it reads of the step),
 * and of it the share of the bytes that are touched: an op over lists of all
 * parameters takes that share of its ns, FLOPs and copied bytes, rounded up to
 * whole ns and bytes.
 *
 * A worked example: four units on two ranks, units 0 and 3 of 100 bytes of
 * weights, 1 and 2 of 50, interleaved.
 *
 *     frames 1 ranks 2 micro-batches 1
 *     stage 0 = rank 0 units 0-0
 *     stage 1 = rank 1 units 1-2
 *     stage 2 = rank 0 units 3-3
 *
 * Rank 0 starts with 200 bytes of weights, rank 1 with 100; a fused step of 300
 * ns takes 200 ns on rank 0 and 100 on rank 1. */

#include "sim/base/base.h"
#include "sim/nouns.h"

typedef struct ms_stage {
    uint16_t rank;
    uint32_t first, last; /* units [first, last] */
} ms_stage;

/* Per rank and storage, of what outlives a micro-batch and what the step
 * makes. */
enum {
    MS_STAGE_HELD = 1u, /* the rank holds it */
    MS_STAGE_OWNED = 2u /* a unit or a layer says whose it is */
};

/* Appends a range of units to the program's table.  MS_ENOMEM. */
ms_err ms_stage_add(ms_program *program, ms_stage stage, ms_arena *arena,
                    ms_fault *fault);
/* Is the unit the rank's?  Always, where the program has no table. */
bool ms_stage_has(const ms_program *program, uint16_t rank, uint32_t unit);
/* The same of all units: own[unit] is the rank's stage that has it + 1, or 0.
 */
void ms_stage_units(const ms_program *program, uint16_t rank, uint32_t n_units,
                    uint32_t *own);
/* Is there a unit that is several ranks'? */
bool ms_stage_copies(const ms_graph *graph, const ms_program *program);
/* MS_EINPUT: ranges out of the graph, of no rank, or a unit twice on a rank; a
 * rank without any. */
ms_err ms_stage_check(const ms_graph *graph, const ms_program *program,
                      ms_fault *fault);
/* MS_EINPUT: the call is about a unit that is not its rank's. */
ms_err ms_stage_check_call(const ms_graph *graph, const ms_program *program,
                           const ms_call *call, ms_fault *fault);
/* Fills program->holds, unless it is there: per rank and storage the bits
 * above; NULL without a table.  MS_ENOMEM. */
ms_err ms_stage_find(const ms_graph *graph, ms_program *program,
                     ms_arena *arena, ms_fault *fault);

/* Backward in two halves: second[op] is 1 of the products that are gradients of
 * weights, and of what is made of these (casts, accumulation), else 0; n_ops of
 * them.  So do zero-bubble pipelines, whose WeightGradStore keeps a linear
 * layer's input and the gradient of its output (sail-sg/
 * zero-bubble-pipeline-parallelism@39f2c186,
 * megatron/core/weight_grad_store.py; Qi et al. 2024, section 3). */
void ms_stage_halves(const ms_graph *graph, uint8_t *second);

/* An op of the step as a rank with these bits (n_storages) sees it: the bytes
 * that it touches, and of these the rank's; storages of no bytes count as one.
 * part 0: the rank does not run it. */
typedef struct ms_stage_share {
    uint64_t part, whole;
} ms_stage_share;

/* Of an op that it runs a part of: does the rank have to do with the storage?
 * What the step makes is there where it is held. */
bool ms_stage_comes(const ms_graph *graph, const uint8_t *held,
                    uint32_t storage);
ms_stage_share ms_stage_share_of(const ms_graph *graph, const uint8_t *held,
                                 uint32_t op);

#endif
