/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What is reported of a search: the set-up to use, what each of its parts is
 * for, how the plain set-up does. */

#include "policies/common/policy.h"
#include "tools/job/job.h"
#include "tools/job/result.h"
#include "tools/job/settings.h"
#include "tools/options/options.h"
#include "tools/search/fit.h"
#include "tools/search/fitlaunch.h"
#include "tools/words/words.h"

#include <string.h>

static const char *const not_searched[] = {
    ("tensor, context, expert and pipelines beside segments, swap and offload, "
     "or with degrees that are no powers of two; context below 8,192 tokens"),
    ("pipelines beside zero:3 and fsdp, with gpipe, looped-bfs, dualpipe or "
     "schedules of files, with unequal stages (layers=), with checkpoints "
     "where backward is in halves; without --global-batch"),
    "other optimizers and kernels (--set), LoRA",
    "the buffers of DeepSpeed and Megatron (zero:N,impl=...), groups of ranks",
    "offload to the disk, budgets (swap:auto and its like), unified memory",
    ("segments of unequal length, more than 64 micro-batches but for one per "
     "sample"),
};
#define N_NOT_SEARCHED (sizeof not_searched / sizeof not_searched[0])

/* What an option of fit would add to the search. */
static const char *left_open(const ms_fit *fit)
{
    if (fit->vary_precision || fit->frozen[MS_FIT_PRECISION])
        return "other pools (memsim compare --allocators)";
    return "other precisions (--vary precision), other pools (memsim compare "
           "--allocators)";
}

const char *ms_fitreply_not_searched(const ms_fit *fit, uint32_t i)
{
    if (i < N_NOT_SEARCHED)
        return not_searched[i];
    if (i == N_NOT_SEARCHED)
        return left_open(fit);
    if (i == N_NOT_SEARCHED + 1 && fit->proof == NULL &&
        fit->job->allocator == NULL)
        return "fragmentation: what is reserved is what is active here";
    return NULL;
}

const char *ms_fitreply_policy(const ms_fit *fit, uint32_t point,
                               ms_arena *arena)
{
    ms_job job;
    ms_fault unused = {.caret = -1};
    if (ms_fitsetup_job(fit, &fit->all[point], arena, &job, &unused) != MS_OK)
        return NULL;
    return ms_spec_print(&job.spec, arena);
}

/* ---- what was fixed ------------------------------------------------------ */

/* The dimensions that the given policies fix, as words; NULL: none. */
static ms_err find_fixed(const ms_fit *fit, const char **fixed, ms_fault *fault)
{
    ms_text words = {.arena = fit->arena};
    for (uint32_t a = MS_FIT_N_AXES; a-- > 0;)
        if (fit->axes[a].given)
            ms_text_add(&words, "%s%s", words.length > 0 ? ", " : "",
                        ms_fitchoices_all[a].name);
    *fixed = words.length > 0 ? words.bytes : NULL;
    return words.failed ? ms_fail_nomem(fault) : MS_OK;
}

/* ---- the command line ---------------------------------------------------- */

static const ms_option *option_of(ms_option_id id, const char *setting)
{
    for (uint32_t i = 0; i < ms_options_table_n; i++) {
        const ms_option *row = &ms_options_table[i];
        if (row->id == id &&
            (setting == NULL || strcmp(row->setting, setting) == 0))
            return row;
    }
    return NULL;
}

/* Is the argument replaced by one of the set-up? */
static bool is_replaced(const ms_fit_reply *reply, const ms_given *given)
{
    bool is_batch = reply->max != NULL && strcmp(reply->max->key, "batch") == 0;
    const char *setting = is_batch ? "training.batch" : "training.sequence";
    if (given->option->id == MS_OPTION_POLICY)
        return true;
    return reply->max != NULL && given->option->id == MS_OPTION_SETTING &&
           strcmp(given->option->setting, setting) == 0;
}

/* Adds an option of the setting's own ("--kernels fused") where there is one,
 * else "--set training.loss_kernel=liger_linear". */
static bool add_setting(const char *key, const char *value, ms_arena *arena,
                        ms_arguments *line)
{
    const ms_option *option = option_of(MS_OPTION_SETTING, key);
    if (option == NULL) {
        option = option_of(MS_OPTION_SET, NULL);
        value = ms_arena_format(arena, "%s=%s", key, value);
    }
    line->given[line->n_given++] = (ms_given){option, value};
    return value != NULL;
}

/* Adds the settings of the point and the value that --max found. */
static bool add_settings(const ms_fit_reply *reply, uint32_t point,
                         ms_arguments *line)
{
    const ms_fit *fit = reply->fit;
    for (uint32_t a = MS_FIT_N_AXES; a-- > 0;) {
        const char *value = ms_fitsetup_value(fit, &fit->all[point],
                                              (ms_fit_axis_id)a, fit->arena);
        if (value != NULL &&
            !add_setting(ms_fitchoices_all[a].key, value, fit->arena, line))
            return false;
    }
    if (reply->max == NULL)
        return true;
    const char *number = ms_arena_format(
        fit->arena, "%llu", (unsigned long long)ms_fitmax_told(reply->max));
    return number != NULL && add_setting(strcmp(reply->max->key, "batch") == 0
                                             ? "training.batch"
                                             : "training.sequence",
                                         number, fit->arena, line);
}

/* The user's arguments with the policies and settings of the point in place of
 * theirs. */
const char *ms_fitreply_command(const ms_fit_reply *reply, uint32_t point)
{
    ms_arena *arena = reply->fit->arena;
    ms_arguments line = *reply->arguments;
    ms_text words = {.arena = arena};
    const char *policy = ms_fitreply_policy(reply->fit, point, arena);
    line.given = ms_arena_take(arena, line.n_given + MS_FIT_N_AXES + 2,
                               sizeof *line.given);
    if (policy == NULL || line.given == NULL)
        return NULL;
    line.n_given = 0;
    for (uint32_t i = 0; i < reply->arguments->n_given; i++)
        if (!is_replaced(reply, &reply->arguments->given[i]))
            line.given[line.n_given++] = reply->arguments->given[i];
    if (!add_settings(reply, point, &line))
        return NULL;
    if (strcmp(policy, "none") != 0)
        line.given[line.n_given++] =
            (ms_given){option_of(MS_OPTION_POLICY, NULL), policy};
    ms_settings_command(&line, "", &words);
    while (words.length > 0 && words.bytes[words.length - 1] == ' ')
        words.bytes[--words.length] = '\0';
    return words.failed ? NULL : words.bytes;
}

/* ---- what is replayed besides -------------------------------------------- */

static ms_err find_without(ms_fit_reply *reply, ms_fault *fault)
{
    ms_fit *fit = reply->fit;
    for (uint32_t a = MS_FIT_N_AXES; a-- > 0;) {
        ms_fit_axis_id axis = (ms_fit_axis_id)a;
        if (fit->all[reply->chosen].option[a] == 0 ||
            ms_fitchoices_all[a].key != NULL)
            continue;
        uint32_t point = ms_fitsetup_other(fit, reply->chosen, axis, 0);
        if (point == MS_NONE || point == 0)
            continue; /* the plain set-up is reported anyway */
        MS_TRY(ms_fitproof_one(fit, point, fault));
        if (fit->all[point].state == MS_FIT_REPLAYED)
            reply->without[reply->without_n++] =
                (struct ms_fit_without){axis, point};
    }
    return MS_OK;
}

/* Describes what the allocator reserves for the chosen set-up. */
static ms_err describe_pool(ms_fit_reply *reply, ms_fault *fault)
{
    ms_fit *fit = reply->fit;
    ms_points_seat seat = {0};
    ms_arena scratch = {0};
    ms_fault refusal = {.caret = -1};
    ms_job job = *fit->job;
    ms_text words = {.arena = fit->arena};
    ms_result result;
    if (job.allocator == NULL && fit->proof == NULL)
        return MS_OK;
    ms_err err = ms_fitsetup_job(fit, &fit->all[reply->chosen], &scratch, &job,
                                 &refusal);
    job = ms_fitsetup_proof(fit, &job);
    if (err == MS_OK)
        err = ms_points_step(fit->points, &seat, &job, &result, &refusal);
    if (err == MS_OK)
        ms_poolwords_put(result.report, &words);
    ms_points_leave(fit->points, &seat);
    ms_arena_free(&scratch);
    MS_TRY(ms_fail_but_refusal(err, &refusal, fault));
    if (words.failed)
        return ms_fail_nomem(fault);
    reply->pool = words.length > 0 ? words.bytes : NULL;
    return MS_OK;
}

static ms_err find_launch(ms_fit_reply *reply, ms_fault *fault)
{
    ms_fit *fit = reply->fit;
    ms_fitlaunch *launch =
        ms_arena_take(fit->arena, MS_FITLAUNCH_SYSTEMS, sizeof *launch);
    if (launch == NULL)
        return ms_fail_nomem(fault);
    reply->launch = launch;
    return ms_fitlaunch_of(fit, reply->chosen, fit->arena, launch, fault);
}

ms_err ms_fitreply_of(ms_fit *fit, const ms_fit_max *max,
                      const ms_arguments *arguments, ms_fit_reply *reply,
                      ms_fault *fault)
{
    *reply = (ms_fit_reply){.fit = fit, .max = max, .arguments = arguments};
    MS_TRY(find_fixed(fit, &reply->fixed, fault));
    reply->chosen = fit->best != MS_NONE ? fit->best : fit->smallest;
    if (reply->chosen == MS_NONE)
        reply->chosen = fit->smallest_far;
    if (reply->chosen == MS_NONE) { /* every set-up was refused */
        *fault = fit->refusal;
        return fault->err;
    }
    if (fit->job->spec.n > 0) {
        reply->given = ms_spec_print(&fit->job->spec, fit->arena);
        if (reply->given == NULL)
            return ms_fail_nomem(fault);
    }
    MS_TRY(ms_fitproof_one(fit, 0, fault));
    MS_TRY(find_without(reply, fault));
    MS_TRY(describe_pool(reply, fault));
    reply->command = ms_fitreply_command(reply, reply->chosen);
    if (reply->command == NULL)
        return ms_fail_nomem(fault);
    return fit->job->gpus > 1 ? find_launch(reply, fault) : MS_OK;
}
