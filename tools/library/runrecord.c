/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/library/runrecord.h"
#include "graphs/device.h"
#include "plots/plots.h"
#include "plots/record/record.h"
#include "sim/graph.h"
#include "sim/machine.h"
#include "sim/program.h"
#include "sim/report.h"
#include "sim/timeline.h"
#include "tools/advice/leftout.h"
#include "tools/job/settings.h"
#include "tools/results/sheet.h"
#include "tools/terminal/quantity.h"
#include "tools/words/words.h"

#include <string.h>

ms_report_names ms_runrecord_names(const ms_job *job, const ms_result *result,
                                   const char *policy)
{
    return (ms_report_names){.model = result->model.name,
                             .device = job->device->name,
                             .policy = policy,
                             .foreseen = result->program != NULL
                                             ? &result->program->foreseen
                                             : NULL};
}

/* A figure's subtitle begins with what tells it from other figures of the
 * model: its policy and set-up. */
static void put_headings(const ms_job *job, const ms_result *result,
                         const char *policy, ms_text *title, ms_text *subtitle)
{
    bool none = strcmp(policy, "none") == 0;
    ms_text_add(title, "%s (%s parameters)", result->model.name,
                ms_quantity_short(result->graph->parameters).s);
    uint32_t gpus = ms_shape_ranks(&result->shape);
    ms_setupwords_gpus(gpus, title);
    ms_text_add(title, "%s %s", gpus > 1 ? ":" : ",",
                none ? "no policy" : policy);
    ms_setupwords_put(result, "\u00d7", subtitle);
    ms_text_add(subtitle, "; %s; ", job->device->name);
    if (result->line->step_ns > 0)
        ms_text_add(subtitle, "step %s; ",
                    ms_quantity_time(result->report->ranks[0].time.step_ns).s);
    ms_room_subtitle(result->report, subtitle);
}

ms_err ms_runrecord_of(const ms_job *job, const ms_result *result,
                       const char *policy, ms_arena *arena, ms_record *record,
                       ms_fault *fault)
{
    ms_report_names names = ms_runrecord_names(job, result, policy);
    ms_text title = {.arena = arena}, subtitle = title;
    put_headings(job, result, policy, &title, &subtitle);
    if (title.failed || subtitle.failed)
        return ms_fail_nomem(fault);
    MS_TRY(ms_record_of(result->line, result->report, &names, arena, record,
                        fault));
    MS_TRY(ms_record_add_turns(result->line, result->program, arena, record,
                               fault));
    record->title = title.bytes;
    record->subtitle = subtitle.bytes;
    record->data_ranks = ms_shape_beside(&result->shape);
    if (job->allocator == NULL)
        return MS_OK;
    return ms_addresses_of(result->line, job->allocator->spec, arena, record,
                           fault);
}

ms_err ms_runrecord_json(const ms_job *job, const ms_result *result,
                         const char *policy, ms_text *text, ms_fault *fault)
{
    ms_record record;
    ms_text settings = {.arena = text->arena};
    MS_TRY(ms_runrecord_of(job, result, policy, text->arena, &record, fault));
    MS_TRY(ms_leftout_record(job, result, text->arena, &record, fault));
    ms_settings_json(job, &result->training, &settings);
    if (settings.failed)
        return ms_fail_nomem(fault);
    ms_report_names names = ms_runrecord_names(job, result, policy);
    names.settings_json = settings.bytes;
    names.from_json = job->from_json;
    ms_sheet_json(result->report, result->graph, &names, &record, text);
    return MS_OK;
}
