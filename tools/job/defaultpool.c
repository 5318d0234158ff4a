/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The pool of a step where --allocator is not given. */

#include "policies/common/policy.h"
#include "sim/report.h"
#include "tools/job/allocator.h"
#include "tools/job/job.h"
#include "tools/job/result.h"

static const ms_allocator torch = {
    .spec = "torch", .conf = "", .version = -1, .policy = -1};

/* Is the step in unified memory? Other faults of the policies are left to the
 * pipeline, which asks them again. */
static bool is_paged(const ms_job *job)
{
    ms_fault unused = {.caret = -1};
    ms_shape shape = {.batch = (uint64_t)job->training.batch,
                      .micro_batches = 1,
                      .gpus = job->gpus,
                      .data_ranks = 1,
                      .fault_ns = job->device->fault_ns,
                      .one_memory = job->device->one_memory};
    return ms_apply_shape(&job->spec, &shape, &unused) == MS_OK &&
           shape.paging.page_bytes > 0;
}

static bool has_pool(const ms_job *job)
{
    return job->training.device != 1 && !job->book_device && !job->wall &&
           !is_paged(job);
}

void ms_defaultpool_pool(ms_job *job)
{
    if (job->allocator_given)
        return;
    job->usual = true;
    job->allocator = has_pool(job) ? &torch : NULL;
}

void ms_defaultpool_settle(const ms_result *result, ms_job *job)
{
    if (job->usual && result->report->pooled == NULL)
        job->allocator = NULL;
}

bool ms_defaultpool_is_told(const ms_job *job, const ms_report *report)
{
    return job->allocator_given || report->pooled != NULL ||
           report->repeats > 0 || !has_pool(job);
}
