/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_COMPOSE_H
#define MS_COMPOSE_H

/* Facts as options of a command line, before those that the user has typed:
 *
 *     batch.micro = 2, batch.accumulate = 4, batch.global = 64
 *         --gpus 8 --batch 8 -p microbatch:4
 *     policy.deepspeed = 3, offload.optimizer = cpu
 *         -p deepspeed:3+offload:optimizer/gradients
 *     bf16 = true
 *         --precision bf16-mixed beside DeepSpeed, FSDP or Megatron's kernels,
 *         which have fp32 masters; autocast-bf16 elsewhere, as torch's
 *
 * What the user has typed stands over the files, which is told.  A policy that
 * is typed takes the place of the files' one of its kind; beside other policies
 * theirs stay.
 *
 *     compose.c          settings, the order of all
 *     composemodel.c     the model and its numbers
 *     composebatch.c     GPUs, batches, micro-batches
 *     composepolicies.c  policies */

#include "tools/from/facts.h"
#include "tools/options/options.h"

typedef struct ms_compose {
    ms_facts *facts;
    uint16_t command; /* MS_FOR_... */
    const ms_arguments *typed;
    ms_arguments *out;
    ms_arena *arena;
    uint64_t gpus, ranks;      /* data-parallel ranks; 0: not told */
    const char *micro_batches; /* of the files' microbatch:N; NULL: none */
} ms_compose;

/* Fills out, whose options are those of the files, then those typed but
 * --from. */
ms_err ms_compose_arguments(ms_facts *facts, uint16_t command,
                            const ms_arguments *typed, ms_arena *arena,
                            ms_arguments *out, ms_fault *fault);

/* ---- composemodel.c, composebatch.c, composepolicies.c: private ---------- */

/* Puts MODEL, unless it is typed, and what the files say of it. */
ms_err ms_composemodel_put(ms_compose *c, ms_fault *fault);

/* Finds gpus and ranks, and puts --gpus and --batch. */
ms_err ms_composebatch_put(ms_compose *c, ms_fault *fault);
/* The policies of the files but those of a kind that typed has, joined with +;
 * *spec is NULL where there are none.  typed: "none" for none. */
ms_err ms_composepolicies_of(ms_compose *c, const char *typed,
                             const char **spec, ms_fault *fault);
/* Whose states are divided: "deepspeed", "fsdp", "zero", "ddp", or "". */
const char *ms_composepolicies_share(const ms_compose *c);
/* The size that the typed policies, or else the files, give to tensor, context
 * or pipeline; 1: none. */
ms_err ms_composepolicies_degree(const ms_compose *c, const char *name,
                                 uint64_t *degree, ms_fault *fault);

/* ---- composeput.c -------------------------------------------------------- */

/* Puts an option by its name where the command has it. */
ms_err ms_composeput_option(ms_compose *c, const char *name, const char *value,
                            ms_fault *fault);
/* Puts a setting, by its own option or --set, unless the user has typed it. */
ms_err ms_composeput_setting(ms_compose *c, const char *key, const char *value,
                             ms_fault *fault);
/* Has the user typed the setting? NULL: no; else the value. */
const char *ms_composeput_typed(const ms_compose *c, const char *key);
/* Says that what is typed stands over the fact. */
ms_err ms_composeput_wins(ms_compose *c, const char *option, const char *typed,
                          const ms_fact *fact, ms_fault *fault);

#endif
