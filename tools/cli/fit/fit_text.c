/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Prints what fit found, for people. */

#include "graphs/training.h"
#include "sim/graph.h"
#include "sim/names.h"
#include "tools/alive/alive.h"
#include "tools/job/globalbatch.h"
#include "tools/job/job.h"
#include "tools/job/result.h"
#include "tools/job/settings.h"
#include "tools/search/fit.h"
#include "tools/search/fitlaunch.h"
#include "tools/terminal/quantity.h"
#include "tools/terminal/screen.h"
#include "tools/terminal/textlines.h"
#include "tools/words/words.h"

#include <stdio.h>
#include <string.h>

#define LABEL_INDENT MS_TEXTLINES_INDENT

static const ms_fit_point *point_of(const ms_fit_reply *reply, uint32_t point)
{
    return &reply->fit->all[point];
}

/* ---- numbers in words ---------------------------------------------------- */

static void put_time(const ms_fit_point *point, ms_text *words)
{
    ms_text_add(words, "%s a step", ms_quantity_time(point->step_ns).s);
    if (point->tokens_per_second > 0)
        ms_text_add(words, ", %s tokens/s",
                    ms_quantity_count((uint64_t)point->tokens_per_second).s);
}

static void put_far_short(const ms_fit_point *point, ms_text *words)
{
    const uint64_t short_bytes[MS_N_POOLS] = {
        [MS_HOST_POOL] = point->host_short_bytes,
        [MS_NVME_POOL] = point->nvme_short_bytes};
    const char *between = "needs";
    for (int pool = 0; pool < MS_N_POOLS; pool++) {
        if (short_bytes[pool] == 0)
            continue;
        ms_text_add(words, "%s %s more %s", between,
                    ms_quantity_size(short_bytes[pool]).s, ms_room_names[pool]);
        between = " and";
    }
    ms_text_add(words, " than a node has");
}

/* Writes "fits with 30.10 GiB to spare" or "is 5.57 GiB short". */
static void put_room(const ms_fit_point *point, ms_text *words)
{
    int64_t room = point->headroom_bytes;
    if (room < 0)
        ms_text_add(words, "is %s short",
                    ms_quantity_size(0 - (uint64_t)room).s);
    else if (point->far_full)
        put_far_short(point, words);
    else
        ms_text_add(words, "fits with %s to spare",
                    ms_quantity_size((uint64_t)room).s);
}

static void put_policy(const ms_fit_reply *reply, uint32_t point, ms_text *text)
{
    const char *policy = ms_fitreply_policy(reply->fit, point, text->arena);
    text->failed |= policy == NULL;
    ms_text_add(text, "%s", policy != NULL ? policy : "");
}

/* ---- heading ------------------------------------------------------------- */

static void device_line(const ms_fit_reply *reply, ms_text *text)
{
    const ms_fit *fit = reply->fit;
    const ms_report report = {.capacity_bytes = fit->capacity_bytes,
                              .context_bytes = fit->context_bytes,
                              .outside = fit->outside};
    ms_text words = {.arena = text->arena};
    if (fit->job->gpus > 1)
        ms_text_add(&words, "%u x ", fit->job->gpus);
    ms_devicewords_device(fit->job, &report, &words);
    ms_textlines_put("device:", LABEL_INDENT, &words, text);
}

static void fixed_line(const ms_fit_reply *reply, ms_text *text)
{
    ms_text words = {.arena = text->arena};
    if (reply->given == NULL)
        return;
    ms_text_add(&words, "%s", reply->given);
    if (reply->max != NULL)
        ms_text_add(&words, " is given: no other set-up is tried");
    else if (reply->fixed != NULL)
        ms_text_add(&words, " is given, so that %s %s not searched",
                    reply->fixed, strchr(reply->fixed, ',') ? "are" : "is");
    else
        ms_text_add(&words, " is in all of them");
    ms_textlines_put("fixed:", LABEL_INDENT, &words, text);
}

static void put_any_batch(const ms_result *result, const char *times,
                          ms_text *words)
{
    const ms_training *training = &result->training;
    ms_text_add(words, "any batch");
    if (result->model.sequence_input)
        ms_text_add(words, " %s %lld tokens", times,
                    (long long)training->sequence);
    if (result->shape.data_ranks > 1)
        ms_text_add(words, " on each of %u GPUs", result->shape.data_ranks);
    ms_text_add(words, ", %s, %s", ms_settings_value(training, "precision").s,
                ms_settings_value(training, "optimizer").s);
}

void ms_fit_text_batch(const ms_fit *fit, const char *times, ms_text *words)
{
    ms_result all = fit->model;
    ms_fault unused = {.caret = -1};
    uint32_t ranks = 1;
    if (ms_globalbatch_ranks(fit->job, &ranks, &unused) != MS_OK || ranks == 1)
        ranks = fit->job->gpus > 1 ? fit->job->gpus : 1;
    all.shape.data_ranks = ranks;
    if (fit->job->global_batch > 0 && all.shape.batch > 0 &&
        fit->job->global_batch / all.shape.batch < ranks) {
        all.shape.data_ranks =
            (uint32_t)(fit->job->global_batch / all.shape.batch);
        all.shape.tensor_ranks = ranks / all.shape.data_ranks;
    }
    if (fit->axes[MS_FIT_BATCH].fixed)
        ms_setupwords_put(&all, times, words);
    else
        put_any_batch(&all, times, words);
}

/* Writes the goal of the search, and the batches that were searched. */
static void goal_line(const ms_fit_reply *reply, ms_text *text)
{
    static const char *const goals[] = {
        "the most tokens a second", "the shortest step", "the least memory"};
    const ms_fit *fit = reply->fit;
    const ms_fit_axis *batch = &fit->axes[MS_FIT_BATCH];
    ms_text words = {.arena = text->arena};
    if (reply->max != NULL)
        return;
    ms_text_add(&words, "%s",
                fit->goal == MS_FIT_TOKENS && !fit->model.model.sequence_input
                    ? "the most samples a second"
                    : goals[fit->goal]);
    if (fit->job->global_batch > 0)
        ms_text_add(&words, " over a global batch of %s",
                    ms_quantity_count(fit->job->global_batch).s);
    else if (!batch->fixed)
        ms_text_add(&words,
                    ", with any batch per GPU up to %u (more gains less than "
                    "%u %% in the model's ops); --batch or --global-batch "
                    "fixes it",
                    batch->options[batch->n - 1].value > 0
                        ? batch->options[batch->n - 1].value
                        : 1,
                    MS_FIT_GAIN);
    ms_textlines_put("goal:", LABEL_INDENT, &words, text);
}

static void heading(const ms_fit_reply *reply, const ms_style *style,
                    ms_text *text)
{
    const ms_fit *fit = reply->fit;
    const ms_job job = ms_fitsetup_proof(fit, fit->job);
    ms_text model = {.arena = text->arena}, defaults = {.arena = text->arena};
    ms_text_add(&model, "%s, %s parameters, ", fit->model.model.name,
                ms_quantity_count(fit->model.graph->parameters).s);
    ms_fit_text_batch(fit, "x", &model);
    ms_text_add(text, "%s", style->strong);
    ms_textlines_put("model:", LABEL_INDENT, &model, text);
    ms_text_add(text, "%s", style->plain);
    device_line(reply, text);
    ms_settings_defaults(&job, &fit->model.training, &defaults);
    ms_settings_node_defaults(fit->job, 1u << MS_HOST_POOL | 1u << MS_NVME_POOL,
                              &defaults);
    ms_text_add(text, "%s", style->faint);
    ms_textlines_put("defaults:", LABEL_INDENT, &defaults, text);
    ms_text_add(text, "%s", style->plain);
    ms_explain_text_unknown(fit->model.graph, text);
    fixed_line(reply, text);
    goal_line(reply, text);
}

/* ---- the largest batch or sequence --------------------------------------- */

/* Writes the samples per second of a GPU by batch, which shows from where a
 * larger batch no longer pays. */
static void pays_line(const ms_fit_reply *reply, ms_text *text)
{
    const ms_fit_max *max = reply->max;
    const ms_result *model = &reply->fit->model;
    ms_text words = {.arena = text->arena};
    double unit =
        model->model.sequence_input ? (double)model->training.sequence : 1;
    if (max->n_rungs == 0)
        return;
    ms_text_add(&words, "batch %s; %s a second on each GPU with ",
                ms_quantity_count(max->pays).s,
                model->model.sequence_input ? "tokens" : "samples");
    for (uint32_t k = 0; k < max->n_rungs; k++)
        ms_text_add(&words, "%s%s: %s", k > 0 ? ", " : "",
                    ms_quantity_count(max->rungs[k].value).s,
                    ms_quantity_count((uint64_t)(max->rungs[k].rate * unit)).s);
    ms_text_add(&words,
                "; it is the least batch with all but %u %% of the most",
                MS_FIT_PAYS);
    ms_textlines_put("pays:", LABEL_INDENT, &words, text);
}

static void max_line(const ms_fit_reply *reply, ms_text *text)
{
    const ms_fit_max *max = reply->max;
    ms_text words = {.arena = text->arena};
    if (max->value == 0)
        ms_text_add(&words, "not even a %s of 1 fits", max->key);
    else if (max->over == 0)
        ms_text_add(
            &words, "%s %s fits; %s", max->key, ms_quantity_count(max->value).s,
            max->model_cap ? "the model takes no more" : "no more is tried");
    else
        ms_text_add(&words, "%s %s fits, %s does not", max->key,
                    ms_quantity_count(max->value).s,
                    ms_quantity_count(max->over).s);
    ms_text_add(&words,
                " (%u value%s tried, %s replays; that a larger %s needs "
                "no less memory is assumed)",
                max->searches, max->searches == 1 ? "" : "s",
                ms_quantity_count(max->replays).s, max->key);
    ms_textlines_put("largest:", LABEL_INDENT, &words, text);
    pays_line(reply, text);
}

/* ---- the answer ---------------------------------------------------------- */

static void plain_line(const ms_fit_reply *reply, ms_text *text)
{
    const ms_fit_point *point = point_of(reply, 0);
    ms_text words = {.arena = text->arena};
    if (reply->chosen == 0)
        return;
    put_policy(reply, 0, &words);
    if (point->state != MS_FIT_REPLAYED) {
        ms_text_add(&words, " is refused: %s", reply->fit->refusal.what);
    } else {
        ms_text_add(&words, ": %s, which ",
                    ms_quantity_size(point->reserved_bytes).s);
        put_room(point, &words);
        ms_text_add(&words, "; %s a step", ms_quantity_time(point->step_ns).s);
    }
    ms_textlines_put("plain:", LABEL_INDENT, &words, text);
}

/* Writes what the setup costs or saves against the plain one. */
static void put_cost(const ms_fit_reply *reply, uint32_t i, ms_text *words)
{
    const ms_fit_point *plain = point_of(reply, 0), *point = point_of(reply, i);
    if (i == 0 || plain->state != MS_FIT_REPLAYED)
        return;
    ms_label cost =
        ms_fit_table_percent(ms_fitjudge_cost(point), ms_fitjudge_cost(plain));
    if (strcmp(cost.s, "-") == 0)
        ms_text_add(words, " (as plain)");
    else
        ms_text_add(words, " (%s time %sagainst plain)", cost.s,
                    point->weight != plain->weight ? "a sample " : "");
}

static void put_set_up(const ms_fit_reply *reply, uint32_t i, ms_text *words)
{
    const ms_fit_point *point = point_of(reply, i);
    size_t before = words->length;
    ms_fitsetup_words(reply->fit, point, words);
    if (words->length == before)
        ms_text_add(words, "%s",
                    reply->given == NULL ? "nothing is needed" : "as given");
    ms_text_add(words, ": %s reserved, which ",
                ms_quantity_size(point->reserved_bytes).s);
    put_room(point, words);
    ms_text_add(words, "; ");
    put_time(point, words);
    put_cost(reply, i, words);
}

/* Writes "without ZeRO stage 3 it is 12.20 GiB short". */
static void put_without(const ms_fit_reply *reply, uint32_t k, ms_text *words)
{
    const struct ms_fit_without *without = &reply->without[k];
    const ms_fit_point *point = point_of(reply, without->point);
    const ms_fit_point *chosen = point_of(reply, reply->chosen);
    ms_text_add(words, "without ");
    ms_fitsetup_part(reply->fit, chosen, without->axis, words);
    ms_text_add(words, " it ");
    put_room(point, words);
    if (point->fits)
        ms_text_add(words, " and takes %s",
                    ms_fit_table_percent(ms_fitjudge_cost(point),
                                         ms_fitjudge_cost(chosen))
                        .s);
}

static void without_line(const ms_fit_reply *reply, ms_text *text)
{
    ms_text words = {.arena = text->arena};
    for (uint32_t k = 0; k < reply->without_n; k++) {
        ms_text_add(&words, "%s", k > 0 ? "; " : "");
        put_without(reply, k, &words);
    }
    if (words.length > 0)
        ms_textlines_put("", LABEL_INDENT, &words, text);
}

/* Writes a line on another setup that a user may prefer. */
static void other_line(const ms_fit_reply *reply, const char *label,
                       const char *why, uint32_t i, ms_text *text)
{
    ms_text words = {.arena = text->arena};
    if (i == MS_NONE || i == reply->chosen)
        return;
    ms_text_add(&words, "%s", why);
    ms_fitsetup_words(reply->fit, point_of(reply, i), &words);
    ms_text_add(&words, ": %s reserved, which ",
                ms_quantity_size(point_of(reply, i)->reserved_bytes).s);
    put_room(point_of(reply, i), &words);
    ms_text_add(&words, "; ");
    put_time(point_of(reply, i), &words);
    ms_label cost =
        ms_fit_table_percent(ms_fitjudge_cost(point_of(reply, i)),
                             ms_fitjudge_cost(point_of(reply, reply->chosen)));
    ms_text_add(&words, " (%s)", strcmp(cost.s, "-") == 0 ? "as fast" : cost.s);
    ms_textlines_put(label, LABEL_INDENT, &words, text);
}

static void pool_line(const ms_fit_reply *reply, ms_text *text)
{
    ms_text words = {.arena = text->arena};
    if (reply->pool == NULL)
        return;
    ms_text_add(&words, "%s", reply->pool);
    ms_textlines_put("pool:", LABEL_INDENT, &words, text);
}

static void best_lines(const ms_fit_reply *reply, const ms_style *style,
                       ms_text *text)
{
    const ms_fit *fit = reply->fit;
    ms_text words = {.arena = text->arena};
    put_set_up(reply, reply->chosen, &words);
    ms_text_add(text, "%s", style->strong);
    ms_textlines_put("best:", LABEL_INDENT, &words, text);
    ms_text_add(text, "%s", style->plain);
    without_line(reply, text);
    if (fit->goal != MS_FIT_MEMORY)
        other_line(reply, "fastest:", "", fit->fastest, text);
    if (fit->on_device != fit->fastest)
        other_line(reply, "or:", "leaving the host's memory alone, ",
                   fit->on_device, text);
    pool_line(reply, text);
}

/* Writes "least:    SPEC: 12.24 GiB, which is 4.30 GiB short; 7.38 s a
 * step". */
static void least_line(const ms_fit_reply *reply, const char *label, uint32_t i,
                       ms_text *text)
{
    ms_text words = {.arena = text->arena};
    if (i == MS_NONE)
        return;
    const ms_fit_point *point = point_of(reply, i);
    put_policy(reply, i, &words);
    ms_text_add(&words, ": %s, which ",
                ms_quantity_size(point->reserved_bytes).s);
    put_room(point, &words);
    if (point->far_full)
        ms_text_add(&words, " (%s of host memory a GPU)",
                    ms_quantity_size(point->host_reserved_peak_bytes).s);
    ms_text_add(&words, "; ");
    put_time(point, &words);
    ms_textlines_put(label, LABEL_INDENT, &words, text);
}

static void helps_line(const ms_fit_reply *reply, ms_text *text)
{
    const ms_fit *fit = reply->fit;
    const ms_fit_point *point = point_of(reply, reply->chosen);
    ms_text words = {.arena = text->arena};
    if (!point->far_full)
        ms_text_add(&words, "%s or more of memory per GPU; ",
                    ms_quantity_size(fit->capacity_bytes -
                                     (uint64_t)point->headroom_bytes)
                        .s);
    ms_text_add(&words, "%s",
                fit->job->gpus > 1
                    ? "more GPUs"
                    : "several GPUs (--gpus N), which share model states");
    if (fit->job->gpus > 1 && fit->axes[MS_FIT_PIPELINE].n == 1)
        ms_text_add(&words, "; --global-batch, with which pipelines are "
                            "searched");
    ms_textlines_put("helps:", LABEL_INDENT, &words, text);
}

static void smallest_lines(const ms_fit_reply *reply, const ms_style *style,
                           ms_text *text)
{
    const ms_fit *fit = reply->fit;
    ms_text words = {.arena = text->arena};
    ms_text_add(&words, "nothing of what was searched");
    ms_text_add(text, "%s", style->bad);
    ms_textlines_put("fits:", LABEL_INDENT, &words, text);
    ms_text_add(text, "%s", style->plain);
    least_line(reply, "least:", fit->smallest, text);
    if (fit->smallest == MS_NONE ||
        (fit->smallest_far != MS_NONE &&
         point_of(reply, fit->smallest_far)->reserved_bytes <
             point_of(reply, fit->smallest)->reserved_bytes))
        least_line(reply, "or:", fit->smallest_far, text);
    helps_line(reply, text);
}

/* One line a system, as it is typed; or why it is not. */
static void launch_lines(const ms_fit_reply *reply, ms_text *text)
{
    for (uint32_t k = 0; reply->launch != NULL && k < MS_FITLAUNCH_SYSTEMS;
         k++) {
        const ms_fitlaunch *on = &reply->launch[k];
        ms_text words = {.arena = text->arena};
        if (on->cannot != NULL)
            ms_text_add(&words, "%s has no %s", on->system, on->cannot);
        if (on->cannot != NULL && on->arguments == NULL)
            ms_text_add(&words,
                        ", nor what other rows have; -p %s searches "
                        "what it has",
                        on->hint);
        if (on->cannot != NULL && on->arguments != NULL) {
            ms_text_add(&words, "; the first row that it has is ");
            put_policy(reply, on->point, &words);
        }
        if (words.length > 0)
            ms_textlines_put(on->label, LABEL_INDENT, &words, text);
        if (on->arguments != NULL)
            ms_text_add(text, "%-10s%s\n", words.length > 0 ? "" : on->label,
                        on->arguments);
    }
}

void ms_fit_text_write(const ms_fit_reply *reply, const ms_style *style,
                       ms_text *text)
{
    const ms_fit *fit = reply->fit;
    heading(reply, style, text);
    if (reply->max != NULL)
        max_line(reply, text);
    plain_line(reply, text);
    if (fit->best != MS_NONE) {
        best_lines(reply, style, text);
        ms_fit_table_write(reply, style, text);
    } else {
        smallest_lines(reply, style, text);
    }
    ms_fit_table_searched(reply, style, text);
    launch_lines(reply, text);
    ms_text_add(text, "run:      %s\n", reply->command);
}

void ms_fit_text_gpus(const ms_fit_reply *replies, uint32_t n,
                      const ms_style *style, ms_text *text)
{
    const ms_fit *fit = replies->fit;
    const ms_job job = ms_fitsetup_proof(fit, fit->job);
    ms_text model = {.arena = text->arena}, defaults = {.arena = text->arena};
    ms_text_add(&model, "%s, %s parameters, ", fit->model.model.name,
                ms_quantity_count(fit->model.graph->parameters).s);
    if (fit->axes[MS_FIT_BATCH].fixed)
        ms_setupwords_put(&fit->model, "x", &model);
    else
        put_any_batch(&fit->model, "x", &model);
    ms_text_add(text, "%s", style->strong);
    ms_textlines_put("model:", LABEL_INDENT, &model, text);
    ms_text_add(text, "%s", style->plain);
    ms_settings_defaults(&job, &fit->model.training, &defaults);
    ms_text_add(text, "%s", style->faint);
    ms_textlines_put("defaults:", LABEL_INDENT, &defaults, text);
    ms_text_add(text, "%s", style->plain);
    fixed_line(replies, text);
    goal_line(replies, text);
    ms_text_add(text, "\n");
    ms_fit_table_gpus(replies, n, style, text);
}
