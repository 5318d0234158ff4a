/* SPDX-License-Identifier: GPL-3.0-or-later */

#include "tools/cli/fit/fit_ask.h"
#include "tools/cli/fit/fit_keys.h"
#include "tools/job/job.h"
#include "tools/job/settings.h"
#include "tools/options/options.h"

#include <string.h>

/* Makes the allocator the one that proves what is shown, over so many steps;
 * the search itself goes without. Steps of several lengths need it in the
 * search as well, since only a pool tells them apart. */
static void take_proof(ms_job *job, ms_fit *fit)
{
    if (job->lengths != NULL)
        return;
    fit->proof = job->allocator;
    fit->proof_steps = job->steps;
    job->allocator = NULL;
    job->steps = 0;
}

ms_err ms_fit_ask_read(const ms_arguments *arguments, ms_job *job, ms_fit *fit,
                       ms_fault *fault)
{
    const char *goal = ms_options_value(arguments, MS_OPTION_GOAL);
    MS_TRY(ms_settings_usual(arguments, fit->arena, job, fault));
    fit->job = job;
    for (size_t i = 0; i < MS_FIT_N_GOALS && goal != NULL; i++)
        if (strcmp(goal, ms_fit_keys_goals[i]) == 0)
            fit->goal = (ms_fit_goal)i;
    fit->vary_precision = ms_options_value(arguments, MS_OPTION_VARY) != NULL;
    take_proof(job, fit);
    return MS_OK;
}
