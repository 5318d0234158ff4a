/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_POLICIES_CHEN_H
#define MS_POLICIES_CHEN_H

/* Private to policies/checkpoint: Chen et al. 2016 (arXiv 1604.06174),
 * algorithm 3.  A segment ends with the block at which the bytes that its
 * blocks save are more than b, and the last one stays open:
 *
 *     saved 18 9 27 9, b = 20    18 9 | 27 | 9
 *
 * The paper tries six sizes around sqrt(x y) of an estimate.  Here all that cut
 * differently are tried: behind the plan of b the next one is that of the
 * smallest segment of it, so that there are no more than pairs of blocks.  Each
 * is scored by a replay of the final program; beyond MS_CHEN_REPLAYS plans
 * those are that no other one beats in both time and peak on the chain.
 *
 * Each rank of a pipeline has one b for all of its stages, and chooses by its
 * own peak and work: a replay tries the next plan of all ranks at once.  The
 * last segment is open in the stage of the loss alone: elsewhere other
 * micro-batches run before its backward. */

#include "policies/common/policy.h"

#define MS_CHEN_REPLAYS 256u

/* MS_EINFEASIBLE: no plan keeps to budget=; the least of them is named. */
ms_err ms_chen_place(const ms_policy_context *context, bool early_stop,
                     ms_program *program, ms_fault *fault);

#endif
