/* SPDX-License-Identifier: GPL-3.0-or-later */

#include "tools/advice/leftout.h"
#include "policies/common/policy.h"
#include "sim/plan.h"
#include "sim/timeline.h"
#include "tools/job/job.h"

#include "plots/record/record.h"
#include "tools/advice/changes.h"
#include "tools/job/result.h"

static ms_err step(const ms_job *other, bool exact, const ms_result *result,
                   ms_arena *arena, ms_result *without, bool *possible,
                   ms_fault *fault)
{
    ms_fault own = {.caret = -1};
    ms_err err =
        ms_changes_step(other, exact, result, NULL, arena, without, &own);
    *possible = err == MS_OK;
    return ms_fail_but_refusal(err, &own, fault);
}

ms_err ms_leftout_step(const ms_job *job, const ms_spec *left, bool exact,
                       const ms_result *result, ms_arena *arena,
                       ms_result *without, bool *possible, ms_fault *fault)
{
    ms_job other = *job;
    other.spec = *left;
    return step(&other, exact, result, arena, without, possible, fault);
}

/* Parts the policies into those that decide what waits for the backward and the
 * others. */
static void part(const ms_spec *spec, ms_spec *saving, ms_spec *left)
{
    *saving = *left = (ms_spec){0};
    for (uint32_t i = 0; i < spec->n; i++) {
        const ms_policy *policy = spec->items[i].policy;
        ms_spec *to = policy->saves || policy->keep != NULL ? saving : left;
        to->items[to->n++] = spec->items[i];
    }
}

/* Can the two timelines share a time axis, and do they differ? If repeated
 * micro-batches are left out of one of them, they must be left out of both. */
static bool is_other(const ms_result *with, const ms_result *without)
{
    const ms_timeline *a = with->line, *b = without->line;
    uint32_t rank = with->report->told;
    if (b->step_ns == 0 || rank >= without->plan->n_ranks ||
        with->plan->repeats != without->plan->repeats)
        return false;
    return a->step_ns != b->step_ns ||
           with->plan->n_rows != without->plan->n_rows ||
           a->ranks[rank].pool[MS_DEVICE_POOL].peak_bytes !=
               b->ranks[rank].pool[MS_DEVICE_POOL].peak_bytes;
}

static ms_err load(const ms_job *job, const ms_spec *left,
                   const ms_result *result, ms_arena *scratch, ms_arena *arena,
                   ms_record *record, ms_fault *fault)
{
    ms_result without;
    ms_job other = *job;
    bool possible;
    other.spec = *left;
    other.levels = true;
    MS_TRY(step(&other, false, result, scratch, &without, &possible, fault));
    if (!possible || !is_other(result, &without))
        return MS_OK;
    return ms_recordwithoutpolicies_of(without.line,
                                       (uint16_t)result->report->told, arena,
                                       &record->without, fault);
}

ms_err ms_leftout_record(const ms_job *job, const ms_result *result,
                         ms_arena *arena, ms_record *record, ms_fault *fault)
{
    ms_arena scratch = {.limit_bytes = arena->limit_bytes};
    ms_spec saving, left;
    part(&job->spec, &saving, &left);
    if (job->program != NULL || saving.n == 0 || result->line->step_ns == 0)
        return MS_OK;
    ms_err err = load(job, &left, result, &scratch, arena, record, fault);
    ms_arena_free(&scratch);
    if (err != MS_OK || record->without == NULL)
        return err;
    record->without->policy = ms_spec_print(&saving, arena);
    return record->without->policy != NULL ? MS_OK : ms_fail_nomem(fault);
}
