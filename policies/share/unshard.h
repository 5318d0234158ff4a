/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_POLICIES_UNSHARD_H
#define MS_POLICIES_UNSHARD_H

/* Private to policies: the calls of torch's fully sharded data parallelism.
 *
 * The weights of a unit (a block; what is in no block is the root's) are made
 * whole by one all-gather before its forward and once more before its
 * backward, and its gradients are summed by one reduce-scatter after it:
 *
 *     run forward 3            take AG3, gather P3 to AG3
 *                              give AG2, move P3 here   (copy-out)
 *                      -->     run forward 3
 *                              move P3 to shard
 *     run backward 3           move P3 here, give AG3
 *                              take AG2, gather P2      (prefetch)
 *                              run backward 3
 *                              move P3 to shard, wait RS4, give RS4
 *                              take RS3, move G3 to RS3, reduce G3
 *
 * FSDP2: torch/distributed/fsdp/_fully_shard/_fsdp_param_group.py (unshard,
 * wait_for_unshard, pre_backward, post_backward), _fsdp_collectives.py,
 * _fsdp_state.py (_root_post_backward_final_callback).  FSDP1:
 * torch/distributed/fsdp/_runtime_utils.py, _flat_param.py.  All-gathers and
 * reductions take memory on streams of their own (ms_block_home), and FSDP1
 * casts a reduction's input on the second, as FSDP2 did until PR 129721 of June
 * 2024 (pytorch/pytorch): copies_apart.  The root stays
 * whole from the start of a forward to the end of its backward in both.
 *
 * A replay (activation checkpointing) is written in parts and served like
 * forward: the unit whose backward follows is whole before it and stays so; of
 * FSDP2 its pre-backward has prefetched the one before, too.  The others are
 * gathered when they run again, once each.  FSDP2 keeps them whole until their
 * own backward has run: since PR 164009 of October 2025 (torch 2.10)
 * post_forward neither reshards nor records an order in backward (is_bw).
 * FSDP1 lets them go one by one, and the next backward's all-gather starts
 * behind the last of them.  (Where one checkpoint spans several units, torch
 * makes each of them the root of its replay, and a root's all-gather waits for
 * the compute stream: that is not modelled.)
 *
 * Beside a pipeline each stage is a root of its own.  Its gradients accumulate
 * whole and its weights stay as backward leaves them; behind the stage's last
 * backward every group is let go and reduced, one after the other:
 *
 *     run backward 0           run backward 0
 *     (of the last     -->     move P0 to shard
 *     micro-batch)             take RS0, move G0 to RS0, reduce G0
 *                              move P1 to shard, wait RS0, give RS0 ...
 *
 * torch/distributed/pipelining/stage.py, backward_maybe_with_nosync
 * (run_post_backward; since 2.10 schedules.py, REDUCE_GRAD). */

#include "policies/common/policy.h"

typedef enum ms_unshard_units {
    MS_UNSHARD_BLOCKS, /* each block, and the root */
    MS_UNSHARD_SPLIT,  /* and what is before and behind the blocks */
    MS_UNSHARD_WHOLE   /* the model is one unit */
} ms_unshard_units;

typedef enum ms_unshard_keep {
    MS_UNSHARD_RESHARD,  /* after forward */
    MS_UNSHARD_STAY,     /* whole until backward has run */
    MS_UNSHARD_BUT_LAST, /* the last one stays: torchtitan */
} ms_unshard_keep;

typedef enum ms_unshard_prefetch {
    MS_UNSHARD_PRE,  /* the next all-gather starts before a unit's backward */
    MS_UNSHARD_POST, /* after it */
    MS_UNSHARD_NONE
} ms_unshard_prefetch;

typedef struct ms_unshard {
    bool flat; /* FSDP1: weights are views of what is gathered, gradients are
                  joined in one flat tensor */
    ms_unshard_units units;
    ms_unshard_keep keep;
    ms_unshard_prefetch prefetch;
    bool forward_prefetch, limit; /* FSDP1 */
    uint32_t reshard_ranks;       /* FSDP2: see ms_shape */
    bool last_only;        /* gradients are summed after the last micro-batch */
    bool stays;            /* FSDP2: a unit that a replay gathers is whole until
                              its backward has run */
    bool staged;           /* each stage of a pipeline is a module of its own */
    bool copies_apart;     /* FSDP2: the reductions' stream copies and takes a
                              reduce-scatter's input, and lets it go at once */
    bool again;            /* the root is whole when the step begins, and again
                              behind the update */
    uint8_t reduced_bytes; /* of an element that is summed; 0: as a part */
} ms_unshard;

/* Inserts the calls into program. */
ms_err ms_unshard_write(const ms_policy_context *context,
                        const ms_unshard *options, ms_program *program,
                        ms_fault *fault);

#endif
