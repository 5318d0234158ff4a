/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/job/jobprogram.h"
#include "graphs/model.h"
#include "graphs/training.h"
#include "policies/common/policy.h"
#include "sim/graph.h"
#include "sim/machine.h"
#include "sim/plan.h"
#include "sim/program.h"
#include "sim/report.h"
#include "sim/schedule/schedule.h"
#include "sim/timeline.h"
#include "tools/job/job.h"
#include "tools/job/result.h"
#include "tools/terminal/quantity.h"

#include <stdio.h>

/* The most ops of a step that does not repeat: its plan takes some 6 GB of
 * host memory. */
#define MOST_OPS (UINT64_C(1) << 24)
/* about what a plan, its events, times and a pool take for each op */
#define OP_BYTES 400u

static ms_err read_program(const ms_job *job, ms_arena *trial,
                           ms_result *result, ms_fault *fault)
{
    MS_TRY(ms_dumpread_program(result->graph, job->program, job->program_text,
                               job->program_length, trial, result->program,
                               fault));
    uint32_t n = result->program->n_micro_batches;
    char hint[96];
    if (n == result->shape.micro_batches)
        return MS_OK;
    snprintf(hint, sizeof hint,
             "give the policy that it was made with: -p microbatch:%u", n);
    return ms_fail(fault, MS_EINPUT, job->program, hint,
                   "the program has %u micro-batches, the step has %u", n,
                   result->shape.micro_batches);
}

/* What the simulation of a step fills, allocated as one piece. */
typedef struct step_nouns {
    ms_program program;
    ms_plan plan;
    ms_machine machine;
    ms_timeline line;
    ms_report report;
} step_nouns;

static ms_err take_nouns(ms_arena *trial, ms_result *result, ms_fault *fault)
{
    step_nouns *nouns = ms_arena_take(trial, 1, sizeof *nouns);
    if (nouns == NULL)
        return ms_fail_nomem(fault);
    result->program = &nouns->program;
    result->plan = &nouns->plan;
    result->machine = &nouns->machine;
    result->line = &nouns->line;
    result->report = &nouns->report;
    return MS_OK;
}

uint64_t ms_jobprogram_ops(const ms_result *result)
{
    return (uint64_t)result->shape.micro_batches * result->graph->step_first;
}

static ms_err check_ops(const ms_result *result, ms_fault *fault)
{
    uint64_t ops = ms_jobprogram_ops(result);
    if (result->shape.micro_batches == 1 || ops <= MOST_OPS)
        return MS_OK;
    return ms_fail(fault, MS_EUSAGE, NULL,
                   "give fewer micro-batches; where they repeat they take no "
                   "memory: without --allocator, --wall, --book device and "
                   "policies that treat each differently",
                   "%u micro-batches of %u ops take some %s of this host's "
                   "memory",
                   result->shape.micro_batches, result->graph->step_first,
                   ms_quantity_size(ops * OP_BYTES).s);
}

ms_err ms_jobprogram_begin(const ms_job *job, ms_arena *trial,
                           ms_expand_opts *opts, ms_result *result,
                           ms_fault *fault)
{
    if (result->model.refusal != NULL)
        return ms_fail(fault, MS_EINPUT, result->model.path,
                       "memsim inspect counts its parameters", "%s",
                       result->model.refusal);
    MS_TRY(check_ops(result, fault));
    MS_TRY(take_nouns(trial, result, fault));
    return ms_stepmachine_find(job, opts, result, fault);
}

/* Policies see the step as it is without a wall: measured is the machine so. */
static ms_policy_context context_of(const ms_result *result, ms_arena *trial,
                                    const ms_expand_opts *opts,
                                    ms_machine *measured)
{
    *measured = *result->machine;
    measured->paging = (ms_paging){0};
    measured->wall = false;
    return (ms_policy_context){.graph = result->graph,
                               .torch_1 =
                                   result->training.framework == MS_TORCH_1_13,
                               .arena = trial,
                               .shape = &result->shape,
                               .opts = opts,
                               .machine = measured};
}

ms_err ms_jobprogram_schedule(const ms_job *job, ms_arena *trial,
                              const ms_expand_opts *opts,
                              const ms_result *result, uint32_t micro_batches,
                              ms_schedule *schedule, ms_fault *fault)
{
    ms_machine measured;
    ms_policy_context context = context_of(result, trial, opts, &measured);
    return ms_apply_schedule(&job->spec, &context, micro_batches, schedule,
                             fault);
}

ms_err ms_jobprogram_keep(const ms_job *job, ms_arena *trial,
                          const ms_expand_opts *opts, const ms_result *result,
                          ms_keep *keep, bool *alone, ms_fault *fault)
{
    ms_machine measured;
    ms_policy_context context = context_of(result, trial, opts, &measured);
    *alone = false;
    return job->program != NULL
               ? MS_OK
               : ms_apply_keep(&job->spec, &context,
                               result->shape.micro_batches, keep, alone, fault);
}

ms_err ms_jobprogram_write(const ms_job *job, ms_arena *trial,
                           const ms_expand_opts *opts, ms_result *result,
                           ms_fault *fault)
{
    ms_machine measured;
    ms_policy_context context = context_of(result, trial, opts, &measured);
    if (job->program != NULL)
        MS_TRY(read_program(job, trial, result, fault));
    else
        MS_TRY(ms_apply_program(&job->spec, &context,
                                result->shape.micro_batches, result->program,
                                fault));
    return ms_program_add_groups(result->program, opts->groups,
                                 MS_N_GROUP_ROLES, trial, fault);
}

ms_err ms_jobprogram_make(const ms_job *job, ms_arena *trial,
                          ms_expand_opts *opts, ms_result *result,
                          ms_fault *fault)
{
    MS_TRY(ms_jobprogram_begin(job, trial, opts, result, fault));
    return ms_jobprogram_write(job, trial, opts, result, fault);
}
