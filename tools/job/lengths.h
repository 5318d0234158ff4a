/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_TOOLS_LENGTHS_H
#define MS_TOOLS_LENGTHS_H

/* --lengths: steps of their own through one pool, as a data loader without
 * padding makes them.
 *
 *     512,1024,768      tokens per sample of steps 1, 2, 3; then again
 *     8x512,4x1024      samples too
 *     16x,32x           samples alone, as for images
 *
 * There are as many steps as items, unless --steps says how many; the last of
 * them is the one that is reported. */

#include "graphs/graphs.h"
#include "policies/common/policy.h"
#include "tools/cli/commands.h"
#include "tools/job/job.h"

typedef struct ms_length {
    int64_t batch, sequence; /* 0: as the settings say */
} ms_length;

typedef struct ms_lengths {
    const char *words; /* as given */
    ms_length *items;
    uint32_t n;
} ms_lengths;

/* Sets job->lengths.  Faults: MS_EUSAGE, what is no list. */
ms_err ms_lengths_read(const char *words, ms_arena *arena, ms_job *job,
                       ms_fault *fault);
/* Does the list say this field of the training, so that no default holds? */
bool ms_lengths_says(const ms_job *job, const char *field);
/* Once all settings are known: MS_EUSAGE where batch or sequence, which the
 * list says, is set too, or nothing goes through a pool. */
ms_err ms_lengths_check(const ms_job *job, ms_fault *fault);
/* How many steps there are; 0: as the pool has it. */
uint32_t ms_lengths_steps(const ms_job *job);
/* Batch and sequence of step k, from 0, or of the last one; the job's, where
 * there is no list. */
void ms_lengths_set(const ms_job *job, uint32_t k, ms_training *training);
void ms_lengths_set_last(const ms_job *job, ms_training *training);

#endif
