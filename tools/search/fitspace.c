/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The set-ups that the dimensions make of a job. */

#include "tools/job/globalbatch.h"
#include "tools/search/fit.h"

#include <stdio.h>
#include <string.h>

/* ---- the set-ups --------------------------------------------------------- */

static const ms_fit_option *
option_of(const ms_fit *fit, const ms_fit_point *point, ms_fit_axis_id axis)
{
    return &fit->axes[axis].options[point->option[axis]];
}

static bool is_plain(const ms_fit_point *point)
{
    for (uint32_t a = 0; a < MS_FIT_N_AXES; a++)
        if (point->option[a] != 0)
            return false;
    return true;
}

static bool is_legal(const ms_fit *fit, const ms_fit_point *point)
{
    for (uint32_t a = 0; a < MS_FIT_N_AXES; a++)
        if (fit->axes[a].dropped >> point->option[a] & 1)
            return is_plain(point);
    const char *beside = option_of(fit, point, MS_FIT_SWAP)->choice->beside;
    const char *label = option_of(fit, point, MS_FIT_CHECKPOINT)->choice->label;
    return beside == NULL || label == NULL || ms_options_one_of(beside, label);
}

/* Counts up, the last axis first; false behind the last set-up. */
static bool next_point(const ms_fit *fit, ms_fit_point *point)
{
    for (uint32_t a = MS_FIT_N_AXES; a-- > 0;) {
        if (++point->option[a] < fit->axes[a].n)
            return true;
        point->option[a] = 0;
    }
    return false;
}

/* Batches are powers of two, the largest comes last. */
static uint32_t weight_of(const ms_fit *fit, const ms_fit_point *point)
{
    const ms_fit_axis *batch = &fit->axes[MS_FIT_BATCH];
    uint32_t most = batch->options[batch->n - 1].value;
    uint32_t own = option_of(fit, point, MS_FIT_BATCH)->value;
    return most > 1 ? most / (own > 0 ? own : 1) : 1;
}

static ms_err list_points(ms_fit *fit, ms_fault *fault)
{
    ms_fit_point point = {0};
    uint32_t n = 0;
    do
        n += is_legal(fit, &point);
    while (next_point(fit, &point));
    fit->all = ms_arena_take(fit->arena, n, sizeof *fit->all);
    if (fit->all == NULL)
        return ms_fail_nomem(fault);
    fit->n_all = 0;
    do {
        point.weight = weight_of(fit, &point);
        if (is_legal(fit, &point))
            fit->all[fit->n_all++] = point;
    } while (next_point(fit, &point));
    return MS_OK;
}

/* As the checkpoint policy counts them: blocks, or units where there are
 * none. */
static uint32_t count_blocks(const ms_graph *graph)
{
    uint32_t n = 0;
    if (graph->n_blocks == 0)
        return graph->loss_unit < graph->n_units ? graph->loss_unit
                                                 : graph->n_units;
    for (uint32_t u = 0; u < graph->n_units; u++)
        n += graph->unit_block[u] != MS_NONE &&
             (u == 0 || graph->unit_block[u] != graph->unit_block[u - 1]);
    return n < graph->n_blocks ? n : graph->n_blocks;
}

static ms_err lower_alone(ms_fit *fit, uint64_t batch, ms_result *result,
                          ms_fault *fault)
{
    char number[24];
    ms_job job = *fit->job;
    job.gpus = 0;
    job.global_batch = 0;
    job.spec = (ms_spec){0};
    snprintf(number, sizeof number, "%llu", (unsigned long long)batch);
    if (batch > 0)
        MS_TRY(ms_training_set(&job.training, "training.batch", number, fault));
    return ms_points_lower(fit->points, &fit->seat, &job, result, fault);
}

ms_err ms_fitspace_alone(ms_fit *fit, uint32_t batch, uint64_t *step_ns,
                         ms_fault *fault)
{
    ms_points_seat seat = fit->seat;
    ms_result result;
    fit->seat = (ms_points_seat){0};
    ms_err err = lower_alone(fit, batch, &result, fault);
    if (err == MS_OK)
        *step_ns = ms_fitbounds_graph(&result.graph, &result.shape).step_ns;
    ms_points_leave(fit->points, &fit->seat);
    fit->seat = seat;
    return err;
}

/* A rank's part of the global batch: all GPUs share, or those of a policy. */
static ms_err find_batch(const ms_fit *fit, uint64_t *batch, ms_fault *fault)
{
    ms_job job = *fit->job;
    uint32_t ranks;
    *batch = 0;
    if (job.global_batch == 0)
        return MS_OK;
    MS_TRY(ms_globalbatch_ranks(&job, &ranks, fault));
    if (ranks == 1 && job.gpus > 1)
        MS_TRY(ms_spec_parse("ddp", fit->arena, &job.spec, fault));
    return ms_globalbatch_divide(&job, batch, fault);
}

/* The model by itself, whatever its policies. */
static ms_err look_at_model(ms_fit *fit, ms_fault *fault)
{
    uint64_t batch;
    MS_TRY(find_batch(fit, &batch, fault));
    MS_TRY(lower_alone(fit, batch, &fit->model, fault));
    fit->n_blocks = count_blocks(&fit->model.graph);
    return MS_OK;
}

/* What every set-up leaves to its pool at most: the ranks share as the given
 * policies say, else all of them; groups among them would have communicators
 * of their own, none has less than one of them all. */
static ms_err look_outside(ms_fit *fit, ms_fault *fault)
{
    ms_result given = fit->model;
    ms_fault own = {.caret = -1};
    ms_err err = ms_pipeline_shape(fit->job, &given, &own);
    MS_TRY(ms_fail_but_refusal(err, &own, fault));
    if (err != MS_OK)
        given.shape = (ms_shape){.data_ranks = fit->job->gpus};
    MS_TRY(ms_overheads_find(fit->job->device, &fit->job->training,
                             &given.shape, &given.graph, &fit->outside, fault));
    bool nccl = fit->outside.nccl_bytes > 0;
    fit->context_bytes = fit->outside.kernels_bytes + fit->outside.nccl_bytes;
    if (fit->capacity_bytes > fit->context_bytes)
        return MS_OK;
    return ms_fail(fault, MS_EUSAGE, "--memory", "give more than that",
                   "the CUDA context%s alone take%s %s",
                   nccl ? " and NCCL" : "", nccl ? "" : "s",
                   ms_quantity_size(fit->context_bytes).s);
}

ms_err ms_fitspace_open(ms_fit *fit, ms_fault *fault)
{
    MS_TRY(look_at_model(fit, fault));
    for (uint32_t a = 0; a < MS_FIT_N_AXES; a++)
        MS_TRY(ms_fitchoices_open(fit, (ms_fit_axis_id)a, fault));
    fit->capacity_bytes = fit->job->memory_bytes > 0
                              ? fit->job->memory_bytes
                              : fit->job->device->memory_bytes;
    MS_TRY(look_outside(fit, fault));
    if (!fit->exhaustive)
        MS_TRY(ms_fitprobe_run(fit, fault));
    return list_points(fit, fault);
}

/* ---- a set-up as a policy and in words ----------------------------------- */

/* Puts the value where the pattern says %u. */
static void fill(const char *pattern, uint32_t value, ms_text *text)
{
    const char *at = strstr(pattern, "%u");
    if (at == NULL) {
        ms_text_add(text, "%s", pattern);
        return;
    }
    ms_text_put(text, pattern, (size_t)(at - pattern));
    ms_text_u64(text, value);
    ms_text_add(text, "%s", at + 2);
}

/* What the choice says with its value in it; NULL: no memory. */
static const char *said(const ms_fit_option *option, ms_arena *arena)
{
    ms_text words = {.arena = arena};
    fill(option->choice->spec, option->value, &words);
    return words.failed ? NULL : words.bytes;
}

const char *ms_fitspace_value(const ms_fit *fit, const ms_fit_point *point,
                              ms_fit_axis_id axis, ms_arena *arena)
{
    const ms_fit_option *option = option_of(fit, point, axis);
    if (ms_fitchoices_all[axis].key == NULL || *option->choice->spec == '\0')
        return NULL;
    return said(option, arena);
}

uint64_t ms_fitspace_batch(const ms_fit *fit, const ms_fit_point *point)
{
    uint32_t own = option_of(fit, point, MS_FIT_BATCH)->value;
    return own > 0 ? own : (uint64_t)fit->model.training.batch;
}

static ms_err take(const ms_fit *fit, const ms_fit_point *point,
                   ms_fit_axis_id axis, ms_arena *arena, ms_job *job,
                   ms_fault *fault)
{
    const ms_fit_option *option = option_of(fit, point, axis);
    const char *key = ms_fitchoices_all[axis].key;
    if (*option->choice->spec == '\0')
        return MS_OK;
    const char *words = said(option, arena);
    if (words == NULL)
        return ms_fail_nomem(fault);
    return key != NULL ? ms_training_set(&job->training, key, words, fault)
                       : ms_spec_parse(words, arena, &job->spec, fault);
}

ms_err ms_fitspace_job(const ms_fit *fit, const ms_fit_point *point,
                       ms_arena *arena, ms_job *job, ms_fault *fault)
{
    *job = *fit->job;
    for (uint32_t a = MS_FIT_N_AXES; a-- > 0;)
        MS_TRY(take(fit, point, (ms_fit_axis_id)a, arena, job, fault));
    return MS_OK;
}

void ms_fitspace_part(const ms_fit *fit, const ms_fit_point *point,
                      ms_fit_axis_id axis, ms_text *text)
{
    const ms_fit_option *option = option_of(fit, point, axis);
    if (option->choice->words != NULL)
        fill(option->choice->words, option->value, text);
}

void ms_fitspace_words(const ms_fit *fit, const ms_fit_point *point,
                       ms_text *text)
{
    bool more = false;
    for (uint32_t a = MS_FIT_N_AXES; a-- > 0;) {
        ms_fit_axis_id axis = (ms_fit_axis_id)a;
        if (option_of(fit, point, axis)->choice->words == NULL)
            continue;
        ms_text_add(text, "%s", more ? ", " : "");
        ms_fitspace_part(fit, point, axis, text);
        more = true;
    }
}

uint32_t ms_fitspace_other(const ms_fit *fit, uint32_t point,
                           ms_fit_axis_id axis, uint16_t to)
{
    ms_fit_point wanted = fit->all[point];
    wanted.option[axis] = to;
    for (uint32_t i = 0; i < fit->n_all; i++)
        if (memcmp(fit->all[i].option, wanted.option, sizeof wanted.option) ==
            0)
            return i;
    return MS_NONE;
}

void ms_fitspace_close(ms_fit *fit)
{
    ms_points_leave(fit->points, &fit->seat);
}
