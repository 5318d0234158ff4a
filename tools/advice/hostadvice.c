/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Finds what would leave a node enough host memory and disk. Each row of the
 * table is tried by a replay, so what is advised fits. */

#include "tools/advice/hostadvice.h"
#include "policies/common/policy.h"
#include "sim/graph.h"
#include "sim/names.h"
#include "sim/timeline.h"
#include "tools/job/job.h"
#include "tools/job/result.h"
#include "tools/terminal/quantity.h"
#include "tools/words/words.h"

#include <string.h>

/* A word that is added to a policy's parameter, or taken out of it. */
typedef struct change {
    const char *policy, *param, *word;
    bool out;
} change;

/* In the order of the time that they cost; the two changes of a line are tried
 * together. */
static const change changes[][2] = {
    {{"offload", "what", "params", true}},
    {{"offload", "what", "gradients", true}},
    {{"offload", "what", "params", true},
     {"offload", "what", "gradients", true}},
    {{"offload", "to", "cpu", false}},
    {{"swap", "to", "nvme", false}},
    {{"offload", "to", "nvme", false}},
    {{"offload", "to", "nvme", false}, {"swap", "to", "nvme", false}},
};
#define N_CHANGES (sizeof changes / sizeof changes[0])
#define MOST_OPS 1000000u /* above this the tries take longer than the run */

/* The index of word in "a|b|c", or -1. */
static int64_t find_word(const char *words, const char *word)
{
    size_t length = strlen(word);
    for (int64_t i = 0; words != NULL; i++) {
        if (strncmp(words, word, length) == 0 &&
            (words[length] == '|' || words[length] == '\0'))
            return i;
        words = strchr(words, '|');
        words += words != NULL;
    }
    return -1;
}

static bool change_value(const change *row, const ms_param *param,
                         ms_policy_value *value)
{
    int64_t word = find_word(param->words, row->word), before = value->number;
    if (word < 0)
        return false;
    value->given = true;
    if (param->type == MS_PARAM_WORD)
        value->number = word;
    else if (row->out)
        value->number &= ~(INT64_C(1) << word);
    else
        value->number |= INT64_C(1) << word;
    return value->number != before;
}

/* Does the parameter go with the choice that is given to the policy? */
static bool goes_with(const ms_param *param, const struct ms_spec_item *item)
{
    for (uint32_t p = 0; param->with != NULL && p < item->policy->n_params; p++)
        if (item->policy->params[p].choice && item->values[p].given)
            return find_word(param->with, item->policy->params[p].name) >= 0;
    return param->with == NULL;
}

/* Puts the row into the policy; false: that changes nothing. */
static bool change_item(const change *row, struct ms_spec_item *item)
{
    for (uint32_t p = 0; p < item->policy->n_params; p++)
        if (strcmp(item->policy->params[p].name, row->param) == 0)
            return goes_with(&item->policy->params[p], item) &&
                   change_value(row, &item->policy->params[p],
                                &item->values[p]);
    return false;
}

/* Puts the row into all policies of its name. */
static bool change_row(const change *row, ms_spec *spec)
{
    bool changed = false;
    for (uint32_t i = 0; i < spec->n; i++)
        if (strcmp(ms_policy_family(spec->items[i].policy), row->policy) == 0)
            changed |= change_item(row, &spec->items[i]);
    return changed;
}

static bool change_spec(const change *rows, ms_spec *spec)
{
    bool changed = true;
    for (size_t k = 0; k < 2 && rows[k].param != NULL; k++)
        changed &= change_row(&rows[k], spec);
    return changed;
}

static ms_err try_spec(const ms_job *job, const ms_result *now,
                       ms_arena *scratch, ms_result *tried, ms_fault *fault)
{
    *tried = *now;
    MS_TRY(ms_jobway_lower(job, scratch, tried, fault));
    return ms_jobway_step(job, scratch, tried, fault);
}

static ms_err consider(const ms_job *job, const ms_result *now, ms_arena *arena,
                       ms_hostadvice *advice, ms_fault *fault)
{
    ms_arena scratch = {0};
    ms_fault own = {.caret = -1};
    ms_result tried;
    ms_err err = try_spec(job, now, &scratch, &tried, &own);
    if (err != MS_OK) {
        err = ms_fail_but_refusal(err, &own, fault);
    } else if (tried.report->fits) {
        advice->policy = ms_spec_print(&job->spec, arena);
        memcpy(advice->far, tried.report->far, sizeof advice->far);
        advice->step_ns = tried.report->ranks[0].time.step_ns;
        if (advice->policy == NULL)
            err = ms_fail_nomem(fault);
    }
    ms_arena_free(&scratch);
    return err;
}

ms_err ms_hostadvice_find(const ms_job *job, const ms_result *result,
                          ms_arena *arena, ms_hostadvice *advice,
                          ms_fault *fault)
{
    *advice = (ms_hostadvice){0};
    if (job->program != NULL || result->graph->n_ops > MOST_OPS)
        return MS_OK;
    for (size_t i = 0; i < N_CHANGES && advice->policy == NULL; i++) {
        ms_job changed = *job;
        if (change_spec(changes[i], &changed.spec))
            MS_TRY(consider(&changed, result, arena, advice, fault));
    }
    return MS_OK;
}

/* ", 24.03 GiB of host memory". */
static void put_need(const ms_hostadvice *advice, ms_pool_kind pool,
                     ms_text *text)
{
    if (advice->far[pool].node_reserved_bytes > 0)
        ms_text_add(text, ", %s of %s",
                    ms_quantity_size(advice->far[pool].node_reserved_bytes).s,
                    ms_room_names[pool]);
}

void ms_hostadvice_put(const ms_hostadvice *advice, ms_text *text)
{
    if (advice->policy == NULL) {
        ms_text_add(text, "fewer ranks on a node, or less held there: no "
                          "change of what is offloaded fits");
        return;
    }
    ms_text_add(text, "-p %s instead fits", advice->policy);
    put_need(advice, MS_HOST_POOL, text);
    put_need(advice, MS_NVME_POOL, text);
    ms_text_add(text, ", step %s", ms_quantity_time(advice->step_ns).s);
}
