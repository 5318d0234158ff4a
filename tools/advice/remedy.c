/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Finds what would make a group of tensors smaller. Each row of the table of
 * changes is tried by a replay, and what is alive at the same instant is
 * compared. */

#include "tools/advice/remedy.h"
#include "sim/names.h"
#include "sim/plan.h"
#include "sim/report.h"
#include "sim/timeline.h"
#include "tools/alive/alive.h"
#include "tools/job/job.h"
#include "tools/job/result.h"

#include <string.h>

/* Above this the tries would take longer than the run. */
#define MAX_OPS 1000000u

/* The least count of micro-batches beyond the present one that divides the
 * batch; 0: there is none, or the model fixes the samples of each. */
static uint32_t next_count(const ms_result *result)
{
    uint32_t count = result->shape.micro_batches;
    uint64_t micro = (uint64_t)result->training.batch / count;
    if (result->shape.fixed != 0)
        return 0;
    for (uint32_t p = 2; p <= micro && p < UINT16_MAX; p++)
        if (micro % p == 0)
            return count * p;
    return 0;
}

static ms_err run(const ms_remedy_task *task, ms_change_use use,
                  ms_arena *arena, ms_result *tried, ms_fault *fault)
{
    const ms_result *now = task->alive->result;
    ms_changes set = {0};
    ms_job job;
    ms_changes_add(&set, use);
    MS_TRY(ms_changes_job(&set, task->job, now, arena, &job, fault));
    job.uses = false;
    MS_TRY(ms_changes_step(&job, true, now, NULL, arena, tried, fault));
    if (now->report->told < tried->report->n_ranks)
        tried->report->told = now->report->told;
    return MS_OK;
}

/* ---- what is left of a tensor -------------------------------------------- */

static void raise_to(uint64_t *bytes, uint64_t value)
{
    if (value > *bytes)
        *bytes = value;
}

/* Where the op of the instant runs in both steps, what is alive there is
 * compared. */
static ms_err compare_instants(const ms_remedy_task *task,
                               const ms_result *tried,
                               const ms_instant *instant, ms_arena *arena,
                               const ms_matches *all, ms_fault *fault)
{
    uint32_t *rows, n;
    MS_TRY(ms_timeline_alive(tried->line, instant->event, tried->report->told,
                             arena, &rows, &n, fault));
    for (uint32_t i = 0; i < task->alive->n; i++) {
        uint32_t row = task->alive->rows[i];
        ms_match_find(all, task->alive->result->plan, row)->bytes[0] +=
            task->alive->result->plan->row[row].bytes;
    }
    for (uint32_t i = 0; i < n; i++) {
        ms_match *found = ms_match_find(all, tried->plan, rows[i]);
        if (found != NULL)
            found->bytes[1] += tried->plan->row[rows[i]].bytes;
    }
    return MS_OK;
}

/* Where the change removes that op, there is no same instant: then a tensor
 * counts as smaller only if no row of it in the whole step is as large. */
static void compare_steps(const ms_remedy_task *task, const ms_result *tried,
                          const ms_matches *all)
{
    for (uint32_t i = 0; i < task->alive->n; i++) {
        uint32_t row = task->alive->rows[i];
        raise_to(&ms_match_find(all, task->alive->result->plan, row)->bytes[0],
                 task->alive->result->plan->row[row].bytes);
    }
    for (uint32_t row = 0; row < tried->plan->n_rows; row++) {
        ms_match *found = tried->plan->row[row].pool == MS_DEVICE_POOL
                              ? ms_match_find(all, tried->plan, row)
                              : NULL;
        if (found != NULL)
            raise_to(&found->bytes[1], tried->plan->row[row].bytes);
    }
}

/* ---- one change ---------------------------------------------------------- */

static ms_err judge(const ms_remedy_task *task, const ms_matches *all,
                    ms_remedy *remedy, bool *any, ms_arena *arena,
                    ms_fault *fault)
{
    const ms_plan *plan = task->alive->result->plan;
    uint64_t *gone = ms_arena_take(arena, task->n_groups + 1, sizeof *gone);
    if (gone == NULL)
        return ms_fail_nomem(fault);
    for (uint32_t i = 0; i < task->alive->n; i++) {
        const ms_match *it = ms_match_find(all, plan, task->alive->rows[i]);
        if (it->bytes[1] <= it->bytes[0] / 2)
            gone[task->group_of[i]] += plan->row[task->alive->rows[i]].bytes;
    }
    *any = false;
    for (uint32_t g = 0; g < task->n_groups; g++) {
        uint64_t bytes = task->groups[g].side[0].bytes;
        remedy->helps[g] = bytes > 0 && gone[g] >= bytes - bytes / 2;
        *any = *any || remedy->helps[g];
    }
    return MS_OK;
}

/* A change that the job refuses is left out. */
static ms_err try_change(const ms_remedy_task *task, ms_change_use use,
                         ms_remedy *remedy, bool *any, ms_arena *scratch,
                         ms_fault *fault)
{
    ms_fault own = {.caret = -1};
    ms_result tried;
    ms_instant instant;
    ms_matches all;
    bool is_there;
    *any = false;
    ms_err err = run(task, use, scratch, &tried, &own);
    if (err != MS_OK)
        return ms_fail_but_refusal(err, &own, fault);
    MS_TRY(ms_match_tensors(task->alive, NULL, scratch, &all, fault));
    MS_TRY(ms_instant_like(&tried, task->alive->result->plan,
                           task->alive->instant.op, scratch, &is_there,
                           &instant, fault));
    if (is_there)
        MS_TRY(compare_instants(task, &tried, &instant, scratch, &all, fault));
    else
        compare_steps(task, &tried, &all);
    return judge(task, &all, remedy, any, scratch, fault);
}

/* The row's use in this job; false: it changes nothing. */
static bool use_of(const ms_remedy_task *task, const ms_change *row,
                   ms_change_use *use)
{
    const ms_result *now = task->alive->result;
    *use = (ms_change_use){row, ms_changes_counts(row) ? next_count(now) : 0};
    return ms_changes_apply_to(row, task->job, now) &&
           (use->count > 0 || !ms_changes_counts(row));
}

ms_err ms_remedy_find(const ms_remedy_task *task, ms_arena *arena,
                      ms_remedy **remedies, uint32_t *n, ms_fault *fault)
{
    const ms_result *now = task->alive->result;
    *n = 0;
    *remedies = ms_arena_take(arena, ms_changes_table_n, sizeof **remedies);
    if (*remedies == NULL)
        return ms_fail_nomem(fault);
    if (task->job->program != NULL || now->plan->n_ops > MAX_OPS)
        return MS_OK;
    for (uint32_t i = 0; i < ms_changes_table_n; i++) {
        ms_arena scratch = {0};
        ms_remedy *remedy = &(*remedies)[*n];
        ms_change_use use;
        bool any;
        if (!use_of(task, &ms_changes_table[i], &use))
            continue;
        remedy->use = use;
        remedy->slot = use.row->slot;
        remedy->costs = use.row->costs;
        remedy->words = ms_changewords_name(use, task->job, now, arena);
        remedy->helps = ms_arena_take(arena, task->n_groups + 1, sizeof(bool));
        if (remedy->helps == NULL || remedy->words == NULL)
            return ms_fail_nomem(fault);
        ms_err err = try_change(task, use, remedy, &any, &scratch, fault);
        ms_arena_free(&scratch);
        MS_TRY(err);
        *n += any;
    }
    return MS_OK;
}

bool ms_remedy_is_told(const ms_remedy *remedies, uint32_t i, uint32_t group)
{
    for (uint32_t k = 0; k < i; k++)
        if (remedies[k].helps[group] &&
            remedies[k].costs == remedies[i].costs &&
            strcmp(remedies[k].slot, remedies[i].slot) == 0)
            return true;
    return false;
}
