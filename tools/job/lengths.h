/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_TOOLS_LENGTHS_H
#define MS_TOOLS_LENGTHS_H

/* --lengths: steps of different lengths through one pool, as a data loader
 * without padding makes them.
 *
 *     512,1024,768      tokens per sample of steps 1, 2, 3; then again
 *     8x512,4x1024      with samples
 *     16x,32x           samples alone, as for images
 *
 * There are as many steps as items, unless --steps gives their number; the last
 * step is the one that is reported. */

#include "graphs/training.h"
#include "policies/common/policy.h"
#include "tools/cli/commands.h"
#include "tools/job/job.h"

typedef struct ms_length {
    int64_t batch, sequence; /* 0: as in the settings */
} ms_length;

typedef struct ms_lengths {
    const char *words; /* as the user wrote the list */
    ms_length *items;
    uint32_t n;
} ms_lengths;

/* Sets job->lengths. Faults: MS_EUSAGE for a text that is not such a list. */
ms_err ms_lengths_read(const char *words, ms_arena *arena, ms_job *job,
                       ms_fault *fault);
/* Says whether the list sets this field of the training, so that no default
 * is reported for it. */
bool ms_lengths_says(const ms_job *job, const char *field);
/* Checks the list against the other settings, once all of them are known.
 * MS_EUSAGE where batch or sequence is given beside a list that sets it, or
 * where no memory pool is simulated. */
ms_err ms_lengths_check(const ms_job *job, ms_fault *fault);
/* The number of steps; 0: as many as the pool takes by default. */
uint32_t ms_lengths_steps(const ms_job *job);
/* Sets batch and sequence of step k (from 0), or of the last step. Without a
 * list they stay the job's. */
void ms_lengths_set(const ms_job *job, uint32_t k, ms_training *training);
void ms_lengths_set_last(const ms_job *job, ms_training *training);

#endif
