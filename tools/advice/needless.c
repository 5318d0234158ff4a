/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Finds policies that change nothing: a replay without each gives the same
 * peaks, the same times and the same traffic. */

#include "tools/advice/needless.h"
#include "policies/common/policy.h"
#include "sim/plan.h"
#include "tools/job/job.h"

#include "tools/advice/leftout.h"
#include "tools/job/result.h"

#include <string.h>

#define MOST_OPS 1000000u /* above this a replay takes too long for a note */

/* Why a policy did nothing, where its parameters tell that. */
static const struct {
    const char *policy, *param, *why;
} reasons[] = {
    {"checkpoint", "selective",
     "attention keeps no scores that could be dropped"},
    {"microbatch", "count", "it is one micro-batch all the same"},
};

/* With the same rows, a pool gives the same addresses and bytes. */
static bool same_rows(const ms_plan *a, const ms_plan *b)
{
    if (a->n_ops != b->n_ops || a->n_rows != b->n_rows)
        return false;
    for (uint32_t i = 0; i < a->n_rows; i++)
        if (a->row[i].bytes != b->row[i].bytes ||
            a->row[i].op != b->row[i].op || a->row[i].pool != b->row[i].pool ||
            a->row[i].category != b->row[i].category)
            return false;
    uint32_t n_releases = a->op[a->n_ops].release_at;
    return n_releases == b->op[b->n_ops].release_at &&
           memcmp(a->release, b->release, n_releases * sizeof *a->release) == 0;
}

static bool same_times(const ms_report *a, const ms_report *b)
{
    if (a->n_ranks != b->n_ranks || a->page_faults != b->page_faults)
        return false;
    for (uint32_t r = 0; r < a->n_ranks; r++)
        if (memcmp(&a->ranks[r].time, &b->ranks[r].time,
                   sizeof a->ranks[r].time) != 0)
            return false;
    return true;
}

/* If the other policies are refused without this one, it is needed. */
static ms_err try_without(const ms_job *job, const ms_result *result,
                          uint32_t item, bool *same, ms_fault *fault)
{
    ms_arena scratch = {0};
    ms_spec left = job->spec;
    ms_result tried;
    bool possible;
    *same = false;
    left.n--;
    for (uint32_t i = item; i < left.n; i++)
        left.items[i] = left.items[i + 1];
    ms_err err = ms_leftout_step(job, &left, true, result, &scratch, &tried,
                                 &possible, fault);
    if (err == MS_OK && possible)
        *same = same_rows(tried.plan, result->plan) &&
                same_times(tried.report, result->report);
    ms_arena_free(&scratch);
    return err;
}

ms_err ms_needless_find(const ms_job *job, const ms_result *result,
                        uint32_t *needless, ms_fault *fault)
{
    *needless = 0;
    if (job->program != NULL || job->wall || result->plan->n_ops > MOST_OPS)
        return MS_OK;
    for (uint32_t i = 0; i < job->spec.n; i++) {
        bool same;
        if (strcmp(job->spec.items[i].policy->name, "none") == 0)
            /* the command's own message says that none does nothing */
            continue;
        MS_TRY(try_without(job, result, i, &same, fault));
        *needless |= (uint32_t)same << i;
    }
    return MS_OK;
}

static const char *why(const struct ms_spec_item *item)
{
    ms_spec one = {.n = 1, .items = {*item}};
    for (size_t i = 0; i < sizeof reasons / sizeof reasons[0]; i++)
        if (ms_policy_given(&one, reasons[i].policy, reasons[i].param) != NULL)
            return reasons[i].why;
    return NULL;
}

ms_err ms_needless_words(const ms_job *job, uint32_t needless, ms_arena *arena,
                         ms_text *words, ms_fault *fault)
{
    const char *between = "";
    for (uint32_t i = 0; i < job->spec.n; i++) {
        ms_spec one = {.n = 1, .items = {job->spec.items[i]}};
        if ((needless >> i & 1u) == 0)
            continue;
        const char *reason = why(&one.items[0]), *name;
        name = ms_spec_print(&one, arena);
        if (name == NULL)
            return ms_fail_nomem(fault);
        ms_text_add(words, "%s%s changes nothing here", between, name);
        between = "; ";
        if (reason != NULL)
            ms_text_add(words, ": %s", reason);
    }
    return MS_OK;
}
