/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The batch of the whole job beside that of a rank. */

#include "tools/job/globalbatch.h"
#include "graphs/training.h"
#include "policies/common/policy.h"
#include "tools/job/job.h"
#include "tools/job/lengths.h"
#include "tools/job/result.h"
#include "tools/terminal/quantity.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define WHERE "--global-batch"

/* Without a global batch there is nothing to divide. */
ms_err ms_globalbatch_ranks(const ms_job *job, uint32_t *ranks, ms_fault *fault)
{
    ms_shape shape = {.micro_batches = 1, .gpus = job->gpus, .data_ranks = 1};
    MS_TRY(ms_apply_shape(&job->spec, &shape, fault));
    *ranks = ms_shape_samples(&shape);
    return MS_OK;
}

static bool is_given(const ms_job *job, const char *field)
{
    for (uint32_t row = 0; row < ms_training_n_fields; row++)
        if (strcmp(ms_training_fields[row].name, field) == 0 &&
            ms_training_fields[row].group == NULL)
            return job->training.was_set >> row & 1;
    return false;
}

static ms_err fail_division(uint64_t samples, uint32_t ranks, ms_fault *fault)
{
    char hint[96];
    uint64_t below = samples / ranks * ranks;
    snprintf(hint, sizeof hint, "type --global-batch %" PRIu64, below + ranks);
    if (below > 0)
        snprintf(hint, sizeof hint,
                 "type --global-batch %" PRIu64 " or %" PRIu64, below,
                 below + ranks);
    return ms_fail(fault, MS_EUSAGE, WHERE, hint,
                   "%" PRIu64 " samples do not divide among %" PRIu32
                   " data-parallel ranks",
                   samples, ranks);
}

ms_err ms_globalbatch_divide(const ms_job *job, uint64_t *batch,
                             ms_fault *fault)
{
    uint32_t ranks;
    MS_TRY(ms_globalbatch_ranks(job, &ranks, fault));
    if (ms_lengths_says(job, "batch"))
        return ms_fail(fault, MS_EUSAGE, WHERE, "leave one of the two out",
                       "--lengths gives each step a batch of its own");
    if (is_given(job, "batch") &&
        (uint64_t)job->training.batch * ranks != job->global_batch)
        return ms_fail(fault, MS_EUSAGE, WHERE, "leave one of the two out",
                       "%" PRIu64 " samples are not --batch %" PRId64
                       " on each of %" PRIu32 " data-parallel ranks",
                       job->global_batch, job->training.batch, ranks);
    if (job->global_batch % ranks != 0)
        return fail_division(job->global_batch, ranks, fault);
    *batch = job->global_batch / ranks;
    return MS_OK;
}

ms_err ms_globalbatch_check(const ms_job *job, const ms_result *result,
                            ms_fault *fault)
{
    const ms_shape *shape = &result->shape;
    uint64_t own =
        shape->fixed != 0 ? shape->fixed * shape->micro_batches : shape->batch;
    if (job->global_batch == 0 ||
        own * ms_shape_samples(shape) == job->global_batch)
        return MS_OK;
    return ms_fail(fault, MS_EUSAGE, WHERE,
                   "accumulate, -p microbatch:N, or export it with another "
                   "batch",
                   "%s has a fixed batch: %" PRIu64 " samples a step on "
                   "%" PRIu32 " data-parallel rank%s, not %" PRIu64,
                   result->model.name, own * ms_shape_samples(shape),
                   ms_shape_samples(shape),
                   ms_shape_samples(shape) == 1 ? "" : "s", job->global_batch);
}

void ms_globalbatch_words(const ms_result *result, ms_text *text)
{
    uint64_t samples = (uint64_t)result->training.batch;
    uint32_t ranks = ms_shape_samples(&result->shape);
    bool sequences = result->model.sequence_input;
    uint32_t split = ms_shape_beside(&result->shape) / (ranks > 0 ? ranks : 1);
    if (ranks <= 1 && split > 1)
        ms_text_add(text, " on %u GPUs", split);
    if (ranks <= 1)
        return;
    if (split > 1)
        ms_text_add(text, " on each of %u groups of %u GPUs", ranks, split);
    else
        ms_text_add(text, " on each of %u GPUs", ranks);
    ms_text_add(text, " = %s %s", ms_quantity_count(samples * ranks).s,
                sequences ? "sequences" : "samples");
    if (sequences)
        ms_text_add(text, ", %s tokens",
                    ms_quantity_count(samples * ranks *
                                      (uint64_t)result->training.sequence)
                        .s);
    ms_text_add(text, " a step");
}
