/* SPDX-License-Identifier: GPL-3.0-or-later */
/* memsim explain: says which tensors are alive at an instant, why, and what
 * would remove them. */

#include "policies/common/policy.h"
#include "sim/graph.h"
#include "sim/names.h"
#include "sim/report.h"
#include "tools/advice/pooltries.h"
#include "tools/advice/remedy.h"
#include "tools/alive/alive.h"
#include "tools/cli/commands.h"
#include "tools/cli/explain/explain_keys.h"
#include "tools/cli/explain/idletimes.h"
#include "tools/cli/explain/schedulepicture.h"
#include "tools/job/job.h"
#include "tools/job/outputs.h"
#include "tools/job/result.h"
#include "tools/job/settings.h"
#include "tools/options/options.h"
#include "tools/results/sheet.h"
#include "tools/terminal/narrow.h"
#include "tools/terminal/quantity.h"
#include "tools/terminal/screen.h"
#include "tools/terminal/textlines.h"
#include "tools/words/untrained.h"
#include "tools/words/words.h"

#include <string.h>

typedef struct explain {
    const ms_hall *hall;
    const ms_style *style;
    ms_job job;
    ms_result result;
    const char *policy; /* in canonical spelling */
    const char *at;     /* --at as given; NULL: the peak */
    uint32_t top;       /* MS_NONE: all groups */
    ms_alive alive;
    ms_alike *groups;
    uint32_t *group_of; /* by row of the plan: its group */
    uint32_t n_groups;
    ms_remedy *remedies;
    uint32_t n_remedies;
    ms_pooltries tries;
    ms_idletimes saved;
    ms_schedulepicture schedule;
} explain;

/* ---- from the job to groups ---------------------------------------------- */

static ms_err look(explain *x, ms_fault *fault)
{
    ms_arena *arena = x->hall->trial;
    MS_TRY(ms_alive_find(&x->result, x->at, arena, &x->alive, fault));
    MS_TRY(ms_alive_groups(&x->alive, arena, &x->groups, &x->group_of,
                           &x->n_groups, fault));
    ms_remedy_task task = {.job = &x->job,
                           .alive = &x->alive,
                           .group_of = x->group_of,
                           .n_groups = x->n_groups,
                           .groups = x->groups};
    return ms_remedy_find(&task, arena, &x->remedies, &x->n_remedies, fault);
}

/* ---- text ---------------------------------------------------------------- */

static void model_lines(const explain *x, ms_text *text)
{
    ms_text model = {.arena = text->arena}, policy = {.arena = text->arena};
    ms_text_add(&model, "%s, %s parameters, ", x->result.model.name,
                ms_quantity_count(x->result.graph->parameters).s);
    ms_setupwords_put(&x->result, "x", &model);
    ms_text_add(text, "%s", x->style->strong);
    ms_textlines_put("model:", MS_TEXTLINES_INDENT, &model, text);
    ms_text_add(text, "%s", x->style->plain);
    ms_text_add(&policy, "%s on %s", x->policy, x->job.device->name);
    ms_textlines_put("policy:", MS_TEXTLINES_INDENT, &policy, text);
    ms_explain_text_unknown(x->result.graph, text);
}

static void at_line(const explain *x, ms_text *text)
{
    ms_text words = {.arena = text->arena};
    ms_explain_text_instant(&x->result, &x->alive.instant, &words);
    if (x->at == NULL)
        ms_text_add(&words, " (the peak)");
    ms_textlines_put("at:", MS_TEXTLINES_INDENT, &words, text);
}

static void sum_categories(const explain *x, uint64_t *bytes)
{
    memset(bytes, 0, MS_N_CATEGORIES * sizeof *bytes);
    for (uint32_t i = 0; i < x->n_groups; i++)
        bytes[x->groups[i].category] += x->groups[i].side[0].bytes;
}

/* Writes the categories, the largest first. */
static void alive_line(const explain *x, ms_text *text)
{
    ms_text words = {.arena = text->arena};
    uint64_t bytes[MS_N_CATEGORIES];
    const char *between = ": ";
    sum_categories(x, bytes);
    ms_text_add(&words, "%s", ms_quantity_size(x->alive.instant.bytes).s);
    for (;;) {
        uint32_t top = 0;
        for (uint32_t c = 1; c < MS_N_CATEGORIES; c++)
            if (bytes[c] > bytes[top])
                top = c;
        if (bytes[top] == 0)
            break;
        ms_text_add(&words, "%s", between);
        ms_textlines_category((uint8_t)top, &words);
        ms_text_add(&words, " %s",
                    ms_quantity_size_as(bytes[top], x->alive.instant.bytes).s);
        bytes[top] = 0;
        between = ", ";
    }
    ms_text_add(text, "%s", x->style->strong);
    ms_textlines_put("alive:", MS_TEXTLINES_INDENT, &words, text);
    ms_text_add(text, "%s", x->style->plain);
}

static void pool_line(const explain *x, ms_text *text)
{
    ms_text words = {.arena = text->arena};
    if (x->result.report->pooled == NULL)
        return;
    ms_pooltries_put(&x->tries, x->result.report, &words);
    ms_textlines_put("pool:", MS_TEXTLINES_INDENT, &words, text);
}

/* Writes the memory that is no tensor, but is there during the whole step. */
static void device_line(const explain *x, ms_text *text)
{
    ms_text words = {.arena = text->arena};
    if (x->result.training.device == 1)
        return;
    ms_devicewords_put(&x->job, &x->result, &words);
    ms_textlines_put("device:", MS_TEXTLINES_INDENT, &words, text);
}

/* Where a node has too little host memory or disk, the tensors on the device
 * cannot explain it, so that a line says so. */
static void node_line(const explain *x, ms_text *text)
{
    const ms_report *report = x->result.report;
    ms_text words = {.arena = text->arena};
    if (ms_capacity_short(report, MS_HOST_POOL) == 0 &&
        ms_capacity_short(report, MS_NVME_POOL) == 0)
        return;
    ms_room_verdict(report, &words);
    ms_text_add(text, "%s", x->style->bad);
    ms_textlines_put("node:", MS_TEXTLINES_INDENT, &words, text);
    ms_text_add(text, "%s", x->style->plain);
}

static void put_remedies(const explain *x, uint32_t g, ms_text *words)
{
    const char *before = "; less with ";
    for (uint32_t i = 0; i < x->n_remedies; i++) {
        if (!x->remedies[i].helps[g] || ms_remedy_is_told(x->remedies, i, g))
            continue;
        ms_text_add(words, "%s%s", before, x->remedies[i].words);
        before = ", ";
    }
}

static void put_group(const explain *x, uint32_t g, ms_text *text)
{
    const ms_alike *group = &x->groups[g];
    const ms_group_side *side = &group->side[0];
    ms_text words = {.arena = text->arena};
    ms_explain_text_name(group, ms_quantity_size(side->bytes).s, text);
    if (!ms_why_lasts(side->why)) {
        ms_explain_text_maker(group, &words);
        ms_text_add(&words, "; ");
    }
    ms_explain_text_why(&x->result, side, &words);
    put_remedies(x, g, &words);
    ms_text_add(text, "%s", x->style->faint);
    ms_textlines_put("", MS_TEXTLINES_GROUP_INDENT, &words, text);
    ms_text_add(text, "%s", x->style->plain);
}

static void rest_line(const explain *x, ms_text *text)
{
    uint64_t bytes = 0;
    if (x->top >= x->n_groups)
        return;
    for (uint32_t g = x->top; g < x->n_groups; g++)
        bytes += x->groups[g].side[0].bytes;
    ms_text_add(text, "%11s  in %u more groups (--top 0 lists all)\n",
                ms_quantity_size(bytes).s, x->n_groups - x->top);
}

static void write_text(const explain *x, ms_text *text)
{
    model_lines(x, text);
    ms_untrained_positions(&x->result, text);
    at_line(x, text);
    alive_line(x, text);
    pool_line(x, text);
    device_line(x, text);
    node_line(x, text);
    ms_idletimes_put(&x->saved, text);
    ms_schedulepicture_put(&x->schedule, text);
    ms_text_add(text, "\n");
    for (uint32_t g = 0; g < x->n_groups && g < x->top; g++)
        put_group(x, g, text);
    rest_line(x, text);
    ms_narrow_lines(text);
}

/* ---- JSON ---------------------------------------------------------------- */

static void show_group(const explain *x, uint32_t g, ms_group_shown *shown,
                       ms_text *text)
{
    const ms_result *const results[2] = {&x->result, NULL};
    ms_side_shown *side = &shown->side[0];
    ms_alive_keys_group_show(results, &x->groups[g], shown, text);
    const char **words =
        ms_arena_take(text->arena, x->n_remedies, sizeof *words);
    text->failed |= words == NULL;
    side->remove = words;
    for (uint32_t i = 0; words != NULL && i < x->n_remedies; i++)
        if (x->remedies[i].helps[g])
            words[side->n_remove++] = x->remedies[i].words;
}

static void write_json(const explain *x, ms_text *text)
{
    ms_sheet run;
    ms_explain_sheet sheet = {
        .memsim = MS_VERSION,
        .model = x->result.model.name,
        .policy = x->policy,
        .from_json = x->job.from_json,
        .run = &run,
        .n_groups = x->top < x->n_groups ? x->top : x->n_groups,
        .saved = &x->saved,
        .schedule = &x->schedule,
        .tries = x->result.report->pooled != NULL ? &x->tries : NULL};
    ms_sheet_open(&run, x->result.report, x->result.graph,
                  &(ms_report_names){.model = NULL}, text);
    ms_alive_keys_instant_show(&x->result, &x->alive.instant, &sheet.at);
    sheet.groups =
        ms_arena_take(text->arena, sheet.n_groups, sizeof *sheet.groups);
    text->failed |= sheet.groups == NULL;
    for (uint32_t g = 0; !text->failed && g < sheet.n_groups; g++)
        show_group(x, g, &sheet.groups[g], text);
    if (text->failed)
        return;
    ms_keys_write(&ms_explain_keys, &sheet, text);
    ms_text_add(text, "\n");
}

/* ---- the command --------------------------------------------------------- */

ms_err ms_explain_command(const ms_hall *hall, int *status, ms_fault *fault)
{
    const ms_arguments *arguments = hall->arguments;
    ms_text text = {.arena = hall->trial};
    explain x = {.hall = hall,
                 .at = ms_options_value(arguments, MS_OPTION_AT),
                 .style = ms_screen_style(
                     1, ms_options_value(arguments, MS_OPTION_COLOR))};
    MS_TRY(ms_explain_text_top(arguments, &x.top, fault));
    MS_TRY(ms_settings_usual(arguments, hall->keep, &x.job, fault));
    x.job.uses = true;
    x.policy = ms_settings_policy(&x.job, hall->keep);
    if (x.policy == NULL)
        return ms_fail_nomem(fault);
    MS_TRY(ms_jobway_run(&x.job, hall->keep, hall->trial, &x.result, fault));
    ms_defaultpool_settle(&x.result, &x.job);
    MS_TRY(ms_outputs_rank(arguments, x.result.report, fault));
    MS_TRY(look(&x, fault));
    MS_TRY(ms_pooltries_find(&(ms_pooltries_task){&x.job, &x.result},
                             hall->keep, &x.tries, fault));
    MS_TRY(ms_idletimes_find(&x.job, &x.result, hall->keep, &x.saved, fault));
    MS_TRY(ms_schedulepicture_find(&x.result, hall->keep, &x.schedule, fault));
    (ms_options_value(arguments, MS_OPTION_JSON) != NULL
         ? write_json
         : write_text)(&x, &text);
    MS_TRY(ms_screen_print(&text, fault));
    bool check = ms_options_value(arguments, MS_OPTION_CHECK) != NULL;
    *status = check && !x.result.report->fits ? 1 : 0;
    return MS_OK;
}
