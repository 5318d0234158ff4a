/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_POLICIES_SAC_H
#define MS_POLICIES_SAC_H

/* Private to policies: torchtitan's selective activation checkpointing by op.
 * In each checkpointed block the outputs of attention, of reduce-scatter and
 * of the 1st, 3rd, 5th ... aten::mm are cached; the rest is computed again,
 * the cached ops are not.
 *
 *     wq 1 kept, wk 2 again, wv 3 kept, attention kept, wo 4 again,
 *     w1 5 kept, w3 6 again, w2 7 kept
 *
 * A cached output stays whether or not an autograd node saves it (w2's, which
 * is only added, is not): torch's cache holds it until the replay pops it, or
 * goes with the block's graph where the replay ends before.
 *
 * Source: pytorch/torchtitan parallelize_llama.py (no_recompute_list, mm_count)
 * from PR 97 (February 2024) to 2024's end; PR 165, commit 02923f02f, too.
 * aten::addmm (a linear layer with a bias) is not in its list.  all: every
 * aten::mm is cached, and nothing that nobody reads, as in the step that its
 * experiments/graph_trainer traces (passes.py, _make_default_memory_policy). */

#include "policies/common/policy.h"

/* A rule of the user's own, instead (torch's create_selective_checkpoint_
 * contexts): per op of forward, 1: its outputs are cached.  NULL: torchtitan's.
 * all: every aten::mm is cached. */
typedef struct ms_sac_rule {
    const uint8_t *cached;
    bool all;
} ms_sac_rule;

/* The ops of a list (oplists.h) are cached, or all others. */
ms_err ms_sac_read(const ms_policy_context *context, const char *list,
                   const char *where, bool others, ms_sac_rule *rule,
                   ms_fault *fault);
/* Of what segments make: what the rule caches stays. */
void ms_sac_keep(const ms_graph *graph, const ms_sac_rule *rule, ms_keep *keep);
/* The cache's own references, on what no autograd node saves. */
ms_err ms_sac_place(const ms_policy_context *context, const ms_sac_rule *rule,
                    ms_program *program, ms_fault *fault);

#endif
