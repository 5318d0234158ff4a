/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/inlined.h"
#include "graphs/model.h"
#include "graphs/training.h"
#include "policies/common/policy.h"
#include "sim/graph.h"
#include "tests/tests.h"
#include "tools/cli/commands.h"
#include "tools/job/job.h"
#include "tools/job/result.h"
#include "tools/job/settings.h"

#include <string.h>

#define NAME "inlined"

void inlined_begin(ms_job *job, ms_arena *keep, ms_arena *trial,
                   ms_fault *fault)
{
    *fault = (ms_fault){0};
    ms_arena_reset(keep);
    ms_arena_reset(trial);
    ms_settings_init(job);
}

ms_err inlined_lower(const char *text, const char *policy, ms_job *job,
                     ms_arena *keep, ms_result *result, ms_fault *fault)
{
    *result = (ms_result){0};
    job->model = NAME;
    MS_TRY(ms_read_model_bytes(NAME, text, strlen(text), NULL, 0, keep,
                               &result->model, fault));
    result->training = job->training;
    MS_TRY(ms_resolve_training(&result->training, &result->model, fault));
    MS_TRY(ms_dag_order(&result->model, keep, fault));
    MS_TRY(ms_spec_parse(policy, keep, &job->spec, fault));
    return ms_jobway_lower(job, keep, result, fault);
}

ms_err inlined_step(const char *text, const char *policy, ms_job *job,
                    ms_arena *keep, ms_arena *trial, ms_result *result,
                    ms_fault *fault)
{
    MS_TRY(inlined_lower(text, policy, job, keep, result, fault));
    return ms_jobway_step(job, trial, result, fault);
}

ms_err inlined_run(const char *text, uint64_t batch, uint32_t kernels,
                   const char *policy, ms_arena *keep, ms_arena *trial,
                   ms_result *result, ms_fault *fault)
{
    ms_job job;
    inlined_begin(&job, keep, trial, fault);
    job.uses = true;
    job.training.batch = (int64_t)batch;
    job.training.kernels = (int64_t)kernels;
    return inlined_step(text, policy, &job, keep, trial, result, fault);
}

char *inlined_graph_text(const ms_result *result, ms_arena *trial)
{
    ms_text text = {.arena = trial};
    ms_dump_graph(result->graph, NULL, 0, &text);
    ck_assert(!text.failed);
    return strdup(text.bytes);
}
