/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What fit found, for programs. */

#include "graphs/graphs.h"
#include "plots/plots.h"
#include "sim/names.h"
#include "tools/job/job.h"
#include "tools/job/settings.h"
#include "tools/results/rows.h"
#include "tools/search/fit.h"

#include <string.h>

const char *const ms_fit_data_goals[MS_FIT_N_GOALS] = {"tokens", "step",
                                                       "memory"};

/* ---- JSON ---------------------------------------------------------------- */

static void put_number(const char *key, uint64_t value, ms_text *text)
{
    ms_text_add(text, ", \"%s\": ", key);
    ms_text_u64(text, value);
}

static void put_string(const char *key, const char *value, ms_text *text)
{
    ms_text_add(text, ", \"%s\": ", key);
    if (value != NULL)
        ms_text_json(text, value);
    else
        ms_text_add(text, "null");
}

static void put_rate(const char *key, double rate, ms_text *text)
{
    ms_text_add(text, ", \"%s\": ", key);
    if (rate < 0)
        ms_text_add(text, "null");
    else
        ms_text_double(text, rate);
}

/* The settings of the set-up: {"training.kernels": "fused"}. */
static void put_settings(const ms_fit *fit, const ms_fit_point *point,
                         ms_text *text)
{
    const char *between = "";
    ms_text_add(text, ", \"settings\": {");
    for (uint32_t a = MS_FIT_N_AXES; a-- > 0;) {
        const char *value =
            ms_fitsetup_value(fit, point, (ms_fit_axis_id)a, text->arena);
        if (value == NULL)
            continue;
        ms_text_add(text, "%s\"%s\": ", between, ms_fitchoices_all[a].key);
        ms_text_json(text, value);
        between = ", ";
    }
    ms_text_add(text, "}");
}

/* A set-up; MS_NONE, or one that a policy refuses: null. */
static void put_point(const ms_fit *fit, uint32_t i, ms_text *text)
{
    const char *policy;
    if (i == MS_NONE || fit->all[i].state != MS_FIT_REPLAYED) {
        ms_text_add(text, "null");
        return;
    }
    const ms_fit_point *point = &fit->all[i];
    ms_text words = {.arena = text->arena};
    ms_fitsetup_words(fit, point, &words);
    policy = ms_fitreply_policy(fit, i, text->arena);
    text->failed |= policy == NULL || words.failed;
    ms_text_add(text, "{\"point\": %u", i + 1);
    put_string("policy", policy, text);
    put_string("words", words.length > 0 ? words.bytes : "", text);
    put_number("batch", ms_fitsetup_batch(fit, point), text);
    put_settings(fit, point, text);
    put_number("peak_allocated_bytes", point->peak_bytes, text);
    put_number("peak_reserved_bytes", point->reserved_bytes, text);
    put_number("used_bytes", point->used_bytes, text);
    ms_text_add(text, ", \"fits\": %s, \"proven\": %s, \"headroom_bytes\": ",
                point->fits ? "true" : "false",
                point->proven || fit->proof == NULL ? "true" : "false");
    ms_text_i64(text, point->headroom_bytes);
    put_number("host_peak_bytes", point->host_peak_bytes, text);
    put_number("host_reserved_peak_bytes", point->host_reserved_peak_bytes,
               text);
    put_number("step_ns", point->step_ns, text);
    put_number("recompute_ns", point->recompute_ns, text);
    put_number("stall_ns", point->stall_ns, text);
    put_number("exposed_comm_ns", point->exposed_comm_ns, text);
    put_rate("tokens_per_second", point->tokens_per_second, text);
    ms_text_add(text, "}");
}

static void put_max(const ms_fit_max *max, ms_text *text)
{
    if (max == NULL) {
        ms_text_add(text, ", \"max\": null");
        return;
    }
    ms_text_add(text, ", \"max\": {\"key\": \"%s\"", max->key);
    put_number("value", max->value, text);
    ms_text_add(text, ", \"over\": ");
    if (max->over > 0)
        ms_text_u64(text, max->over);
    else
        ms_text_add(text, "null");
    put_number("cap", max->cap, text);
    put_number("pays", max->pays, text);
    ms_text_add(text, ", \"samples_per_second\": {");
    for (uint32_t k = 0; k < max->n_rungs; k++) {
        ms_text_add(text, "%s\"%llu\": ", k > 0 ? ", " : "",
                    (unsigned long long)max->rungs[k].value);
        ms_text_double(text, max->rungs[k].rate);
    }
    ms_text_add(text, "}");
    put_number("values_tried", max->searches, text);
    put_number("replayed", max->replays, text);
    ms_text_add(text, "}");
}

static void put_recommendation(const ms_fit_reply *reply, ms_text *text)
{
    const ms_fit *fit = reply->fit;
    ms_text_add(text, ", \"recommendation\": ");
    put_point(fit, fit->best, text);
    ms_text_add(text, ", \"smallest\": ");
    put_point(fit, fit->best == MS_NONE ? fit->smallest : MS_NONE, text);
    ms_text_add(text, ", \"smallest_beyond_node\": ");
    put_point(fit, fit->best == MS_NONE ? fit->smallest_far : MS_NONE, text);
    put_string("command", reply->command, text);
    ms_text_add(text, ", \"without\": [");
    for (uint32_t k = 0; k < reply->without_n; k++) {
        ms_text_add(text, "%s{\"lacks\": ", k > 0 ? ", " : "");
        ms_text_json(text, ms_fitchoices_all[reply->without[k].axis].name);
        ms_text_add(text, ", \"set_up\": ");
        put_point(fit, reply->without[k].point, text);
        ms_text_add(text, "}");
    }
    ms_text_add(text, "], \"plain\": ");
    put_point(fit, 0, text);
    ms_text_add(text, ", \"on_device\": ");
    put_point(fit, fit->on_device, text);
    ms_text_add(text, ", \"fastest\": ");
    put_point(fit, fit->best == MS_NONE ? MS_NONE : fit->fastest, text);
    ms_text_add(text, ", \"rows\": [");
    for (uint32_t k = 0; k < fit->n_rows; k++) {
        ms_text_add(text, "%s", k > 0 ? ", " : "");
        put_point(fit, fit->rows[k], text);
    }
    ms_text_add(text, "]");
    put_number("equals", fit->goal == MS_FIT_MEMORY ? 0 : fit->n_equal, text);
}

static void put_searched(const ms_fit *fit, ms_text *text)
{
    ms_text_add(text, ", \"searched\": {\"set_ups\": %u", fit->n_all);
    put_number("replayed", fit->count[MS_FIT_REPLAYED], text);
    put_number("refused", fit->count[MS_FIT_REFUSED], text);
    put_number("too_big", fit->count[MS_FIT_TOO_BIG], text);
    put_number("beaten", fit->count[MS_FIT_BEATEN], text);
    put_number("too_slow", fit->count[MS_FIT_TOO_SLOW], text);
    put_number("decided", fit->n_decided, text);
    put_number("unproven", fit->n_failed, text);
    ms_text_add(text, ", \"dimensions\": {");
    for (uint32_t a = 0; a < MS_FIT_N_AXES; a++) {
        ms_text_add(text, "%s", a > 0 ? ", " : "");
        ms_text_json(text, ms_fitchoices_all[a].name);
        if (fit->axes[a].fixed)
            ms_text_add(text, ": null");
        else
            ms_text_add(text, ": %u", fit->axes[a].n);
    }
    ms_text_add(text, "}}, \"not_searched\": [");
    const char *what;
    for (uint32_t i = 0; (what = ms_fitreply_not_searched(fit, i)) != NULL;
         i++) {
        ms_text_add(text, "%s", i > 0 ? ", " : "");
        ms_text_json(text, what);
    }
    ms_text_add(text, "]");
}

void ms_fit_data_json(const ms_fit_reply *reply, ms_text *text)
{
    const ms_fit *fit = reply->fit;
    ms_text_add(text, "{\"schema_version\": 1, \"memsim\": \"%s\"", MS_VERSION);
    put_string("status", fit->best != MS_NONE ? "ok" : "infeasible", text);
    put_string("model", fit->model.model.name, text);
    put_string("device", fit->job->device->name, text);
    ms_text_add(text, ", \"settings\": ");
    const ms_job job = ms_fitsetup_proof(fit, fit->job);
    ms_settings_json(&job, &fit->model.training, text);
    put_number("parameters", fit->model.graph.parameters, text);
    put_number("capacity_bytes", fit->capacity_bytes, text);
    put_number("context_bytes", fit->context_bytes, text);
    ms_text_add(text, ", \"fits\": %s",
                fit->best != MS_NONE ? "true" : "false");
    ms_text_add(text, ", \"goal\": \"%s\"", ms_fit_data_goals[fit->goal]);
    put_string("allocator",
               fit->proof != NULL            ? fit->proof->spec
               : fit->job->allocator != NULL ? fit->job->allocator->spec
                                             : "exact",
               text);
    put_string("given", reply->given, text);
    put_max(reply->max, text);
    put_recommendation(reply, text);
    put_searched(fit, text);
    ms_text_add(text, "}\n");
}

/* ---- CSV ----------------------------------------------------------------- */

/* Is the setting a column, as the varied keys of a sweep are? */
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

/* The columns of a sweep but those that are the same in all rows. */
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
