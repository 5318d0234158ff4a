/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/search/fitpoint.h"
#include "sim/machine.h"
#include "sim/names.h"
#include "sim/report.h"
#include "tools/job/job.h"
#include "tools/job/jobprogram.h"
#include "tools/job/result.h"

static ms_err job_of(const ms_fit *fit, const ms_fit_point *point,
                     ms_fitpoint_seat *at, ms_job *job, ms_fault *fault)
{
    ms_arena_reset(&at->words);
    MS_TRY(ms_fitsetup_job(fit, point, &at->words, job, fault));
    job->brief = job->unmerged = true;
    return MS_OK;
}

static void note(const ms_report *report, ms_fit_point *point)
{
    const ms_rank_report *rank = &report->ranks[report->worst];
    point->state = MS_FIT_REPLAYED;
    point->host_short_bytes = ms_capacity_short(report, MS_HOST_POOL);
    point->nvme_short_bytes = ms_capacity_short(report, MS_NVME_POOL);
    point->far_full = point->host_short_bytes + point->nvme_short_bytes > 0;
    point->status = report->status;
    point->fits = report->fits;
    point->peak_bytes = rank->peak.allocated_bytes;
    point->reserved_bytes = rank->peak.reserved_bytes;
    point->step_ns = rank->time.step_ns;
    point->recompute_ns = rank->time.recompute_ns;
    point->stall_ns = rank->time.stall_ns;
    point->exposed_comm_ns = rank->time.exposed_comm_ns;
    point->host_peak_bytes = report->host_peak_bytes;
    point->host_reserved_peak_bytes = report->far[MS_HOST_POOL].reserved_bytes;
    point->used_bytes = ms_capacity_used(report);
    point->headroom_bytes = report->headroom_bytes;
    point->tokens_per_second = report->tokens_per_second;
    point->error_percent = rank->time.error_percent;
    point->measured_runs = rank->time.measured_runs;
}

/* Of what is told no more is known than its peaks and times. */
static ms_err tell(const ms_fit *fit, const ms_job *job, ms_fitpoint_seat *at,
                   ms_result *result, ms_fault *fault)
{
    bool told;
    at->seat.fold.tells_rounds = true;
    MS_TRY(ms_points_fold(fit->points, &at->seat, job, result, &told, fault));
    if (told)
        ms_stepaccuracy_find(job, result);
    return MS_OK;
}

ms_err ms_fitpoint_replay(const ms_fit *fit, ms_fit_point *point,
                          ms_fitpoint_seat *at, bool proof, ms_fault *fault)
{
    ms_result result;
    ms_job job;
    MS_TRY(job_of(fit, point, at, &job, fault));
    if (proof)
        job = ms_fitsetup_proof(fit, &job);
    if (point->option[MS_FIT_PIPELINE] > 0 && !proof)
        MS_TRY(tell(fit, &job, at, &result, fault));
    else
        MS_TRY(ms_points_step(fit->points, &at->seat, &job, &result, fault));
    note(result.report, point);
    point->proven = proof;
    if (!proof)
        point->fits_exact = point->fits;
    return MS_OK;
}

/* The graph alone comes first, because it is cheaper: where it rules the set-up
 * out, no program is made. */
ms_err ms_fitpoint_bound(const ms_fit *fit, ms_fit_point *point,
                         ms_fitpoint_seat *at, ms_fault *fault)
{
    ms_expand_opts opts;
    ms_result result;
    ms_job job;
    MS_TRY(job_of(fit, point, at, &job, fault));
    MS_TRY(ms_points_lower(fit->points, &at->seat, &job, &result, fault));
    if (result.shape.pipeline_ranks > 1)
        return ms_fitstages_bound(&at->stages, fit, point, &job,
                                  &at->seat.arena, &result, fault);
    point->bound = ms_fitbounds_graph(result.graph, &result.shape);
    if (ms_fitjudge_is_too_big(fit, point) ||
        ms_fitjudge_is_bound_far(fit, point))
        return MS_OK;
    MS_TRY(ms_jobprogram_make(&job, &at->seat.arena, &opts, &result, fault));
    return ms_fitbounds_program(result.graph, result.program, &opts,
                                &at->seat.arena, &point->bound, fault);
}

void ms_fitpoint_leave(const ms_fit *fit, ms_fitpoint_seat *at)
{
    ms_points_leave(fit->points, &at->seat);
    ms_arena_free(&at->words);
    ms_fitstages_close(&at->stages);
}
