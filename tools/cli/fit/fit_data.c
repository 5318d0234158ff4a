/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Writes what fit found, for scripts. */

#include "graphs/training.h"
#include "plots/plots.h"
#include "sim/graph.h"
#include "sim/names.h"
#include "tools/cli/fit/fit_keys.h"
#include "tools/job/job.h"
#include "tools/job/settings.h"
#include "tools/results/rows.h"

#include <string.h>

/* ---- JSON ---------------------------------------------------------------- */

/* Lists the settings in the order of the summary, which begins with what is
 * tried first. */
static void show_settings(const ms_fit *fit, ms_fit_shown *shown, ms_text *text)
{
    for (uint32_t a = MS_FIT_N_AXES; a-- > 0;) {
        struct ms_fit_shown_setting *next = &shown->settings[shown->n_settings];
        next->key = ms_fitchoices_all[a].key;
        next->value = ms_fitsetup_value(fit, shown->point, (ms_fit_axis_id)a,
                                        text->arena);
        shown->n_settings += next->value != NULL;
    }
}

static void show(const ms_fit *fit, uint32_t i, ms_fit_shown *shown,
                 ms_text *text)
{
    const ms_fit_point *point = &fit->all[i];
    ms_text words = {.arena = text->arena};
    ms_fitsetup_words(fit, point, &words);
    *shown = (ms_fit_shown){.point = point,
                            .number = i + 1,
                            .batch = ms_fitsetup_batch(fit, point),
                            .policy = ms_fitreply_policy(fit, i, text->arena),
                            .words = words.length > 0 ? words.bytes : "",
                            .proven = point->proven || fit->proof == NULL};
    show_settings(fit, shown, text);
    text->failed |= shown->policy == NULL || words.failed;
}

/* NULL for MS_NONE, and for a setup that a policy refuses. */
static const ms_fit_shown *show_one(const ms_fit *fit, uint32_t i,
                                    ms_text *text)
{
    if (i == MS_NONE || fit->all[i].state != MS_FIT_REPLAYED)
        return NULL;
    ms_fit_shown *shown = ms_arena_take(text->arena, 1, sizeof *shown);
    if (shown == NULL)
        text->failed = true;
    else
        show(fit, i, shown, text);
    return shown;
}

static void show_rates(ms_fit_sheet *sheet, ms_text *text)
{
    const ms_fit_max *max = sheet->max;
    for (uint32_t k = 0; max != NULL && k < max->n_rungs; k++) {
        sheet->rates[k] = (ms_fit_shown_rate){
            ms_arena_format(text->arena, "%llu",
                            (unsigned long long)max->rungs[k].value),
            max->rungs[k].rate};
        text->failed |= sheet->rates[k].batch == NULL;
    }
}

static void show_set_ups(const ms_fit_reply *reply, ms_fit_sheet *sheet,
                         ms_text *text)
{
    const ms_fit *fit = reply->fit;
    sheet->best = show_one(fit, fit->best, text);
    if (!sheet->fits) {
        sheet->smallest = show_one(fit, fit->smallest, text);
        sheet->smallest_far = show_one(fit, fit->smallest_far, text);
    } else {
        sheet->fastest = show_one(fit, fit->fastest, text);
    }
    sheet->plain = show_one(fit, 0, text);
    sheet->on_device = show_one(fit, fit->on_device, text);
    sheet->n_without = reply->without_n;
    for (uint32_t k = 0; k < reply->without_n; k++)
        sheet->without[k] = (ms_fit_shown_without){
            ms_fitchoices_all[reply->without[k].axis].name,
            show_one(fit, reply->without[k].point, text)};
    sheet->rows = ms_arena_take(text->arena, fit->n_rows, sizeof *sheet->rows);
    text->failed |= sheet->rows == NULL;
    for (uint32_t k = 0; sheet->rows != NULL && k < fit->n_rows; k++)
        show(fit, fit->rows[k], &sheet->rows[k], text);
}

static void show_searched(const ms_fit *fit, ms_fit_sheet *sheet, ms_text *text)
{
    uint32_t n = 0;
    for (uint32_t a = 0; a < MS_FIT_N_AXES; a++)
        sheet->choices[a] = fit->axes[a].fixed ? MS_NO_LEVEL : fit->axes[a].n;
    while (ms_fitreply_not_searched(fit, n) != NULL)
        n++;
    sheet->not_searched =
        ms_arena_take(text->arena, n, sizeof *sheet->not_searched);
    text->failed |= sheet->not_searched == NULL;
    for (uint32_t i = 0; sheet->not_searched != NULL && i < n; i++)
        sheet->not_searched[i] = ms_fitreply_not_searched(fit, i);
    sheet->n_not_searched = n;
}

static void show_launch(const ms_fit_reply *reply, ms_fit_sheet *sheet,
                        ms_text *text)
{
    for (uint32_t k = 0; reply->launch != NULL && k < MS_FITLAUNCH_SYSTEMS;
         k++) {
        const ms_fitlaunch *on = &reply->launch[k];
        ms_fit_shown_launch *shown = &sheet->launch[sheet->n_launch++];
        *shown =
            (ms_fit_shown_launch){on->system, on->cannot, NULL, on->arguments};
        if (on->point != MS_NONE)
            shown->policy =
                ms_fitreply_policy(reply->fit, on->point, text->arena);
        text->failed |= on->point != MS_NONE && shown->policy == NULL;
    }
}

static const char *settings_json(const ms_fit *fit, ms_text *text)
{
    const ms_job job = ms_fitsetup_proof(fit, fit->job);
    ms_text json = {.arena = text->arena};
    ms_settings_json(&job, &fit->model.training, &json);
    text->failed |= json.failed;
    return json.bytes;
}

void ms_fit_data_json(const ms_fit_reply *reply, ms_text *text)
{
    const ms_fit *fit = reply->fit;
    const ms_allocator *pool =
        fit->proof != NULL ? fit->proof : fit->job->allocator;
    ms_fit_sheet sheet = {.memsim = MS_VERSION,
                          .fits = fit->best != MS_NONE,
                          .status = fit->best != MS_NONE ? "ok" : "infeasible",
                          .model = fit->model.model.name,
                          .parameters = fit->model.graph->parameters,
                          .device = fit->job->device->name,
                          .settings_json = settings_json(fit, text),
                          .from_json = fit->job->from_json,
                          .allocator = pool != NULL ? pool->spec : "exact",
                          .given = reply->given,
                          .command = reply->command,
                          .fit = fit,
                          .max = reply->max};
    if (fit->goal != MS_FIT_MEMORY)
        sheet.n_equal = fit->n_equal;
    if (fit->goal != MS_FIT_MEMORY && fit->n_rows > 0)
        sheet.equal_percent = ms_fitjudge_band(&fit->all[fit->fastest]);
    show_rates(&sheet, text);
    show_set_ups(reply, &sheet, text);
    show_launch(reply, &sheet, text);
    show_searched(fit, &sheet, text);
    if (text->failed)
        return;
    ms_keys_write(&ms_fit_keys, &sheet, text);
    ms_text_add(text, "\n");
}

/* ---- CSV ----------------------------------------------------------------- */

/* Says whether the setting is a column, as a varied key of a sweep is. */
static bool is_varied(const ms_fit *fit, uint32_t axis)
{
    return ms_fitchoices_all[axis].key != NULL && !fit->axes[axis].fixed;
}

static void put_varied(const ms_fit *fit, uint32_t i, ms_fit_axis_id axis,
                       ms_text *text)
{
    const ms_training *training = &fit->model.training;
    const char *key = ms_fitchoices_all[axis].key;
    const char *value = ms_fitsetup_value(fit, &fit->all[i], axis, text->arena);
    ms_text_add(text, ",");
    ms_table_field(text,
                   value != NULL
                       ? value
                       : ms_settings_value(training, strchr(key, '.') + 1).s);
}

/* The columns of a sweep, without those that are equal in all rows. */
#define FIRST "policy"
#define LAST "host_reserved_peak_bytes"
#define EXACT "fits_exact"

static void put_row(const ms_fit *fit, uint32_t i, ms_text *text)
{
    const ms_fit_point *point = &fit->all[i];
    const ms_sweep_row row = {
        .policy = ms_fitreply_policy(fit, i, text->arena),
        .status = ms_names_status[point->status],
        .message = point->far_full
                       ? "host memory or disk of a node are too small"
                       : NULL,
        .has_numbers = true,
        .fits_known = point->proven || fit->proof == NULL,
        .fits = point->fits,
        .fits_exact = point->fits_exact,
        .peak_allocated_bytes = point->peak_bytes,
        .peak_reserved_bytes = point->reserved_bytes,
        .step_ns = point->step_ns,
        .recompute_ns = point->recompute_ns,
        .stall_ns = point->stall_ns,
        .exposed_comm_ns = point->exposed_comm_ns,
        .tokens_per_second = point->tokens_per_second,
        .host_peak_bytes = point->host_peak_bytes,
        .host_reserved_peak_bytes = point->host_reserved_peak_bytes};
    text->failed |= row.policy == NULL;
    ms_text_add(text, "%u", i + 1);
    for (uint32_t a = MS_FIT_N_AXES; a-- > 0;)
        if (is_varied(fit, a))
            put_varied(fit, i, (ms_fit_axis_id)a, text);
    ms_keys_write_cells(&ms_keys_row, FIRST, LAST, &row, text);
    ms_keys_write_cells(&ms_keys_row, EXACT, EXACT, &row, text);
    ms_text_add(text, "\n");
}

void ms_fit_data_csv(const ms_fit *fit, ms_text *text)
{
    ms_text_add(text, "point");
    for (uint32_t a = MS_FIT_N_AXES; a-- > 0;)
        if (is_varied(fit, a))
            ms_text_add(text, ",%s", ms_fitchoices_all[a].key);
    ms_keys_write_names(&ms_keys_row, FIRST, LAST, text);
    ms_keys_write_names(&ms_keys_row, EXACT, EXACT, text);
    ms_text_add(text, "\n");
    for (uint32_t i = 0; i < fit->n_all; i++)
        if (fit->all[i].state == MS_FIT_REPLAYED)
            put_row(fit, i, text);
}
