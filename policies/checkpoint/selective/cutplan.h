/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_POLICIES_CUTPLAN_H
#define MS_POLICIES_CUTPLAN_H

/* Private to policies/checkpoint: which tensors of the whole forward (of each
 * stage of a pipeline, which is compiled by itself) are saved, as
 * torch.compile's partitioner chooses them (torch 2.5,
 * torch/_functorch/partitioners.py), in a run that is not compiled: what is not
 * saved is made again kernel by kernel where backward needs it.
 *
 * mincut (min_cut_rematerialization_partition).  Of each storage of forward:
 *
 *     banned    what a product, an attention or a random op makes, or one that
 *               is on none of its lists; a sum of less than a quarter of what
 *               it reads; what some op of backward reads that cannot be fused
 *     weight    bytes, twice those of what nobody has to write out (each reader
 *               could be fused with the maker); for each op between it and
 *               backward, behind the first, a tenth more
 *
 * and of the minimum cuts (solve/cut/mincut.h) that next to the inputs.
 *
 * knapsack (choose_saved_values_set).  share is torch's
 * activation_memory_budget, in percent, of what mincut saves.  Below 100 three
 * cuts are tried until one saves less than that: without the rules of fusion;
 * with nothing banned but products, attention and random ops; and with those of
 * these banned that the best choice in so many bytes, by the time to make them
 * again, has (solve/cut/knapsack.h).  budget: of all shares in steps of five,
 * that of the fastest step whose peak keeps to it; each rank of a pipeline has
 * its own.
 *
 * Left out: the rules on readers far apart and on chains of more than 100
 * fusible ops, which are about compiled kernels. */

#include "policies/common/policy.h"

ms_err ms_cutplan_place(const ms_policy_context *context, ms_program *program,
                        ms_fault *fault);

#endif
