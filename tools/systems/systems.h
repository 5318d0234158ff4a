/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_TOOLS_SYSTEMS_H
#define MS_TOOLS_SYSTEMS_H

/* memsim run --dump checkpoints --as SYSTEM: the choice of checkpoints as code
 * or settings that another system runs.
 *
 *     sweeps.c         the plan as it runs, block by block
 *     plantree.c       as checkpoints within checkpoints
 *     checkpointas.c   what was chosen, and which system
 *     astorch.c        Python for torch.utils.checkpoint
 *     astorchtitan.c   a section of its TOML
 *     asmegatron.c     recompute arguments
 *
 * What a system cannot say is an error that says what, and the nearest that it
 * can. */

#include "policies/common/policy.h"
#include "tools/job/job.h"
#include "tools/job/result.h"
#include "tools/systems/plantree.h"

typedef struct ms_checkpointas {
    const char *model, *policy; /* "gpt2", "checkpoint:every=4" */
    ms_sweeps sweeps;
    ms_plantree tree;
    /* Parts of blocks: at most one of them. */
    const char *save, *redo; /* lists of ops, NULL: none */
    const char *modules;     /* "core_attn mlp" */
    bool sac, selective;
    bool reentrant, to_the_end; /* early_stop=0 */
    /* Blocks, in order: how many there are; whether checkpointed by themselves;
     * whether all checkpointed ones are single blocks. */
    uint32_t n_blocks;
    const uint8_t *is_single;
    bool all_single;
} ms_checkpointas;

ms_err ms_checkpointas_write(const ms_job *job, const ms_result *result,
                             const char *system, ms_arena *arena, ms_text *text,
                             ms_fault *fault);

ms_err ms_astorch_write(const ms_checkpointas *choice, ms_text *text,
                        ms_fault *fault);
ms_err ms_astorchtitan_write(const ms_checkpointas *choice, ms_text *text,
                             ms_fault *fault);
ms_err ms_asmegatron_write(const ms_checkpointas *choice, ms_text *text,
                           ms_fault *fault);

#endif
