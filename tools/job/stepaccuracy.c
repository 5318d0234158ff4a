/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What measured steps say of the time that was told. */
#include "graphs/device.h"
#include "graphs/machines/accuracy.h"
#include "sim/graph.h"
#include "sim/plan.h"
#include "sim/report.h"
#include "tools/job/job.h"
#include "tools/job/result.h"

#include <math.h>

/* The measured runs were of whole models whose states and activations stayed on
 * the device; nothing is known of others. */
static bool is_such(const ms_result *result)
{
    const ms_report *report = result->report;
    bool moves = report->page_faults > 0;
    for (uint32_t r = 0; r < report->n_ranks; r++) {
        const ms_rank_report *rank = &report->ranks[r];
        moves |= rank->h2d_bytes + rank->d2h_bytes + rank->nvme_bytes > 0;
    }
    return !moves && result->plan->n_stages == 0 && result->training.mode == 0;
}

void ms_stepaccuracy_find(const ms_job *job, ms_result *result)
{
    uint64_t tokens =
        result->graph->tokens > 0 ? (uint64_t)result->training.sequence : 0;
    result->accuracy = NULL;
    if (is_such(result))
        result->accuracy = ms_accuracy_find(job->device->name,
                                            result->training.kernels, tokens);
    if (result->accuracy == NULL)
        return;
    for (uint32_t r = 0; r < result->report->n_ranks; r++) {
        ms_times *time = &result->report->ranks[r].time;
        time->error_percent = (uint64_t)ceil(result->accuracy->most_percent);
        time->measured_runs = result->accuracy->runs;
    }
}
