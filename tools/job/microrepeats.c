/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Replays steps of many micro-batches as steps of a few. */

#include "sim/machine.h"
#include "sim/plan.h"
#include "sim/program.h"
#include "sim/repeat/repeat.h"
#include "sim/report.h"
#include "sim/timeline.h"
#include "tools/job/job.h"
#include "tools/job/jobprogram.h"
#include "tools/job/result.h"

/* Steps of at most so many ops are replayed whole: about 100 MB and a tenth of
 * a second. */
#define WHOLE_OPS (UINT64_C(1) << 20)
/* How many micro-batches are replayed: a policy may need some to reach a steady
 * state. */
#define FEWEST 8u
#define FEW_MOST 32u

/* The step with only `few` of its micro-batches. */
static ms_err run_few(const ms_job *job, uint32_t few, ms_arena *trial,
                      ms_result *result, ms_fault *fault)
{
    ms_expand_opts opts;
    ms_shape whole = result->shape;
    result->shape.batch = whole.batch / whole.micro_batches * few;
    result->shape.micro_batches = few;
    ms_err err = ms_jobprogram_make(job, trial, &opts, result, fault);
    result->shape = whole;
    MS_TRY(err);
    MS_TRY(ms_expand(result->graph, result->program, &opts, trial, result->plan,
                     fault));
    MS_TRY(
        ms_replay(result->plan, result->machine, trial, result->line, fault));
    return ms_measure(result->line, result->machine, trial, result->report,
                      fault);
}

/* Compares steps of `few` micro-batches and of one less: their difference is
 * the micro-batch that repeats. */
static ms_err try_few(const ms_job *job, uint32_t few, ms_arena *trial,
                      ms_result *result, bool *done, ms_fault *fault)
{
    ms_repeat repeat;
    ms_result fewer = *result;
    uint32_t times = result->shape.micro_batches - few;
    MS_TRY(run_few(job, few, trial, result, fault));
    if (result->program->online != NULL ||
        !ms_repeat_find(result->line, result->machine, &repeat))
        return MS_OK;
    MS_TRY(run_few(job, few - 1, trial, &fewer, fault));
    if (!ms_repeat_report(&repeat, fewer.report, times, result->report))
        return MS_OK;
    ms_repeat_move(&repeat, times, result->plan, result->line);
    ms_measure_rates(result->line, result->machine, result->report);
    *done = true;
    return MS_OK;
}

ms_err ms_microrepeats_step(const ms_job *job, ms_arena *trial,
                            ms_result *result, bool *done, ms_fault *fault)
{
    uint32_t n = result->shape.micro_batches;
    bool many = ms_jobprogram_ops(result) >
                (job->whole_ops > 0 ? job->whole_ops : WHOLE_OPS);
    bool may = job->program == NULL && (job->allocator == NULL || job->usual) &&
               !job->book_device && result->shape.paging.page_bytes == 0 &&
               result->shape.pipeline_ranks <= 1; /* which overlaps them */
    *done = false;
    for (uint32_t few = FEWEST; few <= FEW_MOST && few < n; few *= 2)
        if (many && may && !*done)
            MS_TRY(try_few(job, few, trial, result, done, fault));
    return MS_OK;
}
