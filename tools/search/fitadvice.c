/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/search/fitadvice.h"
#include "policies/common/policy.h"
#include "tools/job/job.h"
#include "tools/job/result.h"
#include "tools/options/options.h"

#define INDENT 10u /* column of the words beside fit's labels */
#define SHARED "fsdp"

static const ms_option *policy_option(void)
{
    const ms_option *row = ms_options_table;
    while (row->id != MS_OPTION_POLICY)
        row++;
    return row;
}

/* Adds FSDP to a job on several GPUs whose policies share no work among them:
 * without it the advice would be for one GPU. */
static ms_err share(const ms_job *job, const ms_arguments *arguments,
                    ms_arena *arena, ms_job *shared, ms_arguments *line,
                    ms_fault *fault)
{
    ms_shape shape = {.batch = (uint64_t)job->training.batch,
                      .micro_batches = 1,
                      .gpus = job->gpus,
                      .data_ranks = 1};
    *shared = *job;
    *line = *arguments;
    if (job->gpus <= 1)
        return MS_OK;
    MS_TRY(ms_apply_shape(&job->spec, &shape, fault));
    if (shape.data_ranks > 1)
        return MS_OK;
    line->given =
        ms_arena_take(arena, arguments->n_given + 1, sizeof *line->given);
    if (line->given == NULL)
        return ms_fail_nomem(fault);
    for (uint32_t i = 0; i < arguments->n_given; i++)
        line->given[i] = arguments->given[i];
    line->given[line->n_given++] = (ms_given){policy_option(), SHARED};
    return ms_spec_parse(SHARED, arena, &shared->spec, fault);
}

static ms_err find(const ms_job *job, const ms_arguments *line,
                   const ms_result *result, ms_arena *arena,
                   ms_fitadvice *advice, ms_fault *fault)
{
    ms_advice ways;
    ms_text text = {.arena = arena}, command = text;
    MS_TRY(ms_advice_find(job, result, &ways, fault));
    ways.n = ways.n_fitting;
    if (ways.n == 0)
        return MS_OK;
    MS_TRY(ms_advicewords_put(&ways, job, result, INDENT, &text, fault));
    MS_TRY(ms_changewords_command(&ways.ways[0].set, line, job, result,
                                  &command, fault));
    if (text.failed || command.failed)
        return ms_fail_nomem(fault);
    advice->lines = text.bytes;
    advice->command = command.bytes;
    return MS_OK;
}

ms_err ms_fitadvice_find(ms_points *points, const ms_job *job,
                         const ms_arguments *arguments, ms_arena *arena,
                         ms_fitadvice *advice, ms_fault *fault)
{
    ms_points_seat seat = {0};
    ms_fault refusal = {.caret = -1};
    ms_job shared;
    ms_arguments line;
    ms_result result;
    *advice = (ms_fitadvice){0};
    ms_err err = share(job, arguments, arena, &shared, &line, &refusal);
    if (err == MS_OK) {
        ms_defaultpool_pool(&shared);
        err = ms_points_step(points, &seat, &shared, &result, &refusal);
    }
    if (err == MS_OK) {
        ms_defaultpool_settle(&result, &shared);
        err = find(&shared, &line, &result, arena, advice, &refusal);
    }
    ms_points_leave(points, &seat);
    return ms_fail_but_refusal(err, &refusal, fault);
}
