/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A set-up as a job, as policies and in words. */

#include "graphs/training.h"
#include "policies/common/policy.h"
#include "tools/job/job.h"
#include "tools/search/fit.h"

#include <stdio.h>
#include <string.h>

/* ---- as a policy and in words -------------------------------------------- */

const ms_fit_option *ms_fitsetup_option(const ms_fit *fit,
                                        const ms_fit_point *point,
                                        ms_fit_axis_id axis)
{
    return &fit->axes[axis].options[point->option[axis]];
}

/* Adds the pattern, with the value in place of %u. */
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

/* The choice's text for -p or --set, with its value; NULL: out of memory. */
static const char *said(const ms_fit_option *option, ms_arena *arena)
{
    ms_text words = {.arena = arena};
    fill(option->choice->spec, option->value, &words);
    return words.failed ? NULL : words.bytes;
}

const char *ms_fitsetup_value(const ms_fit *fit, const ms_fit_point *point,
                              ms_fit_axis_id axis, ms_arena *arena)
{
    const ms_fit_option *option = ms_fitsetup_option(fit, point, axis);
    if (ms_fitchoices_all[axis].key == NULL || *option->choice->spec == '\0')
        return NULL;
    return said(option, arena);
}

uint64_t ms_fitsetup_batch(const ms_fit *fit, const ms_fit_point *point)
{
    uint32_t own = ms_fitsetup_option(fit, point, MS_FIT_BATCH)->value;
    return own > 0 ? own : (uint64_t)fit->model.training.batch;
}

uint32_t ms_fitsetup_degree(const ms_fit *fit, const ms_fit_point *point)
{
    uint32_t tensor = ms_fitsetup_option(fit, point, MS_FIT_TENSOR)->value;
    uint32_t context = ms_fitsetup_option(fit, point, MS_FIT_CONTEXT)->value;
    return (tensor > 0 ? tensor : 1) * (context > 0 ? context : 1) *
           ms_fitsetup_ranks(fit, point);
}

uint32_t ms_fitsetup_ranks(const ms_fit *fit, const ms_fit_point *point)
{
    uint32_t ranks = ms_fitsetup_option(fit, point, MS_FIT_PIPELINE)->value;
    return ranks > 0 ? ranks : 1;
}

/* Schedules with a name have a stage a rank, or two in a V. */
uint32_t ms_fitsetup_stages(const ms_fit *fit, const ms_fit_point *point)
{
    const ms_fit_option *of = ms_fitsetup_option(fit, point, MS_FIT_SCHEDULE);
    uint32_t chunks = of->value > 0 ? of->value : of->choice->pair ? 2 : 1;
    return chunks * ms_fitsetup_ranks(fit, point);
}

/* "pipeline:8,chunks=2", and what counts as a layer of its stages. */
static const char *pipeline(const ms_fit *fit, const ms_fit_point *point,
                            ms_arena *arena)
{
    ms_text words = {.arena = arena};
    const ms_fit_option *ranks =
        ms_fitsetup_option(fit, point, MS_FIT_PIPELINE);
    const ms_fit_option *order =
        ms_fitsetup_option(fit, point, MS_FIT_SCHEDULE);
    bool counted;
    fill(ranks->choice->spec, ranks->value, &words);
    fill(order->choice->spec, order->value, &words);
    ms_fitchoices_even(fit->n_blocks, ms_fitsetup_stages(fit, point), &counted);
    if (counted)
        ms_text_add(&words, ",account=embedding/loss");
    return words.failed ? NULL : words.bytes;
}

/* The choice's text for -p or --set; "": nothing is said; NULL: no memory. */
static const char *spec_of(const ms_fit *fit, const ms_fit_point *point,
                           ms_fit_axis_id axis, ms_arena *arena)
{
    const ms_fit_option *option = ms_fitsetup_option(fit, point, axis);
    if (*option->choice->spec == '\0' || axis == MS_FIT_SCHEDULE)
        return "";
    if (axis == MS_FIT_PIPELINE)
        return pipeline(fit, point, arena);
    if (option->choice->values == MS_FIT_SPARE)
        return ms_arena_format(arena, option->choice->spec,
                               point->first != NULL ? point->first : "0");
    return said(option, arena);
}

static ms_err take(const ms_fit *fit, const ms_fit_point *point,
                   ms_fit_axis_id axis, ms_arena *arena, ms_job *job,
                   ms_fault *fault)
{
    const char *key = ms_fitchoices_all[axis].key;
    const char *words = spec_of(fit, point, axis, arena);
    if (words == NULL)
        return ms_fail_nomem(fault);
    if (*words == '\0')
        return MS_OK;
    return key != NULL ? ms_training_set(&job->training, key, words, fault)
                       : ms_spec_parse(words, arena, &job->spec, fault);
}

ms_err ms_fitsetup_job(const ms_fit *fit, const ms_fit_point *point,
                       ms_arena *arena, ms_job *job, ms_fault *fault)
{
    *job = *fit->job;
    for (uint32_t a = MS_FIT_N_AXES; a-- > 0;)
        MS_TRY(take(fit, point, (ms_fit_axis_id)a, arena, job, fault));
    return MS_OK;
}

void ms_fitsetup_part(const ms_fit *fit, const ms_fit_point *point,
                      ms_fit_axis_id axis, ms_text *text)
{
    const ms_fit_option *option = ms_fitsetup_option(fit, point, axis);
    if (option->choice->words != NULL)
        fill(option->choice->words, option->value, text);
}

void ms_fitsetup_words(const ms_fit *fit, const ms_fit_point *point,
                       ms_text *text)
{
    bool more = false;
    for (uint32_t a = MS_FIT_N_AXES; a-- > 0;) {
        ms_fit_axis_id axis = (ms_fit_axis_id)a;
        if (ms_fitsetup_option(fit, point, axis)->choice->words == NULL)
            continue;
        ms_text_add(text, "%s", more ? ", " : "");
        ms_fitsetup_part(fit, point, axis, text);
        more = true;
    }
}

uint32_t ms_fitsetup_other(const ms_fit *fit, uint32_t point,
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

ms_job ms_fitsetup_proof(const ms_fit *fit, const ms_job *job)
{
    ms_job proven = *job;
    if (fit->proof == NULL)
        return proven;
    proven.allocator = fit->proof;
    proven.steps = fit->proof_steps;
    return proven;
}
