/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The job without its policies: the model alone on one GPU. */

#include "graphs/training.h"
#include "policies/common/policy.h"
#include "tools/job/job.h"
#include "tools/job/result.h"
#include "tools/search/fit.h"

#include <stdio.h>

ms_err ms_fitalone_lower(ms_fit *fit, uint64_t batch, ms_result *result,
                         ms_fault *fault)
{
    char number[24];
    ms_job job = *fit->job;
    job.gpus = 0;
    job.global_batch = 0;
    job.spec = (ms_spec){0};
    snprintf(number, sizeof number, "%llu", (unsigned long long)batch);
    if (batch > 0)
        MS_TRY(ms_training_set(&job.training, "training.batch", number, fault));
    return ms_points_lower(fit->points, &fit->seat, &job, result, fault);
}

ms_err ms_fitalone_step(ms_fit *fit, uint32_t batch, uint64_t *step_ns,
                        ms_fault *fault)
{
    ms_points_seat seat = fit->seat;
    ms_result result;
    fit->seat = (ms_points_seat){0};
    ms_err err = ms_fitalone_lower(fit, batch, &result, fault);
    if (err == MS_OK)
        *step_ns = ms_fitbounds_graph(result.graph, &result.shape).step_ns;
    ms_points_leave(fit->points, &fit->seat);
    fit->seat = seat;
    return err;
}
