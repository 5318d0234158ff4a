/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What would make a group smaller.  Each row of the table is tried by a
 * replay, and what is alive at the same instant is compared: nothing is named
 * that does not hold. */

#include "tools/explain.h"

#include <string.h>

/* Above this the tries would take longer than the run. */
#define MAX_OPS 1000000u

/* A policy, or a training field and its value. */
static const struct change {
    const char *policy, *key, *value;
} changes[] = {
    {"checkpoint:selective", NULL, NULL},
    {"checkpoint:sqrt", NULL, NULL},
    {"checkpoint:full", NULL, NULL},
    {"microbatch", NULL, NULL}, /* the count is set by the batch */
    {NULL, "kernels", "flash"},
    {NULL, "optimizer_impl", "fused"},
    {NULL, "hold_output", "none"},
    {NULL, "zero_grad", "none"},
    {NULL, "gradients", "auto"},
    {NULL, "precision", "bf16-mixed"},
    {NULL, "precision", "bf16"},
};
#define N_CHANGES (sizeof changes / sizeof changes[0])

/* The next count of micro-batches that divides the batch; 0: none, or the
 * model fixes the samples of each. */
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

/* The change as the user would write it; "": there is none. */
static ms_err words_of(const struct change *change, const ms_result *result,
                       ms_arena *arena, const char **words, ms_fault *fault)
{
    *words = change->policy;
    if (change->policy == NULL) {
        *words = ms_arena_format(arena, "%s=%s", change->key, change->value);
    } else if (strcmp(change->policy, "microbatch") == 0) {
        uint32_t count = next_count(result);
        *words =
            count == 0 ? "" : ms_arena_format(arena, "microbatch:%u", count);
    }
    return *words != NULL ? MS_OK : ms_fail_nomem(fault);
}

/* The spec with the policy in the place of one of the same name. */
static ms_err replace_policy(const char *words, ms_arena *arena, ms_spec *spec,
                             ms_fault *fault)
{
    ms_spec more = {0}, kept = {0};
    MS_TRY(ms_spec_parse(words, arena, &more, fault));
    for (uint32_t i = 0; i < spec->n; i++)
        if (spec->items[i].policy != more.items[0].policy)
            kept.items[kept.n++] = spec->items[i];
    *spec = kept;
    return ms_spec_parse(words, arena, spec, fault);
}

static ms_err run(const ms_remedy_task *task, const struct change *change,
                  const char *words, ms_arena *arena, ms_result *tried,
                  ms_fault *fault)
{
    ms_job job = *task->job;
    *tried = *task->alive->result;
    job.uses = false;
    if (change->policy != NULL) {
        MS_TRY(replace_policy(words, arena, &job.spec, fault));
    } else {
        MS_TRY(ms_training_set(&tried->training, change->key, change->value,
                               fault));
        MS_TRY(ms_resolve_training(&tried->training, &tried->model, fault));
    }
    MS_TRY(ms_pipeline_lower(&job, arena, tried, fault));
    return ms_pipeline_step(&job, arena, tried, fault);
}

/* ---- what is left of a tensor -------------------------------------------- */

static void raise_to(uint64_t *bytes, uint64_t value)
{
    if (value > *bytes)
        *bytes = value;
}

/* Where the same op runs in both, what is alive there counts. */
static ms_err compare_instants(const ms_remedy_task *task,
                               const ms_result *tried,
                               const ms_instant *instant, ms_arena *arena,
                               const ms_matches *all, ms_fault *fault)
{
    uint32_t *rows, n;
    MS_TRY(ms_timeline_alive(&tried->line, instant->event, tried->report.worst,
                             arena, &rows, &n, fault));
    for (uint32_t i = 0; i < task->alive->n; i++) {
        uint32_t row = task->alive->rows[i];
        ms_match_find(all, &task->alive->result->plan, row)->bytes[0] +=
            task->alive->result->plan.row[row].bytes;
    }
    for (uint32_t i = 0; i < n; i++) {
        ms_match *found = ms_match_find(all, &tried->plan, rows[i]);
        if (found != NULL)
            found->bytes[1] += tried->plan.row[rows[i]].bytes;
    }
    return MS_OK;
}

/* The op at work is gone: only what is nowhere as large as before counts. */
static void compare_steps(const ms_remedy_task *task, const ms_result *tried,
                          const ms_matches *all)
{
    for (uint32_t i = 0; i < task->alive->n; i++) {
        uint32_t row = task->alive->rows[i];
        raise_to(&ms_match_find(all, &task->alive->result->plan, row)->bytes[0],
                 task->alive->result->plan.row[row].bytes);
    }
    for (uint32_t row = 0; row < tried->plan.n_rows; row++) {
        ms_match *found = tried->plan.row[row].pool == MS_DEVICE_POOL
                              ? ms_match_find(all, &tried->plan, row)
                              : NULL;
        if (found != NULL)
            raise_to(&found->bytes[1], tried->plan.row[row].bytes);
    }
}

/* ---- one change ---------------------------------------------------------- */

static ms_err judge(const ms_remedy_task *task, const ms_matches *all,
                    ms_remedy *remedy, bool *any, ms_arena *arena,
                    ms_fault *fault)
{
    const ms_plan *plan = &task->alive->result->plan;
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

/* A change that is itself at fault is passed over. */
static ms_err try_change(const ms_remedy_task *task,
                         const struct change *change, ms_remedy *remedy,
                         bool *any, ms_arena *scratch, ms_fault *fault)
{
    ms_fault own = {.caret = -1};
    ms_result tried;
    ms_instant instant;
    ms_matches all;
    bool is_there;
    *any = false;
    ms_err err = run(task, change, remedy->words, scratch, &tried, &own);
    if (err != MS_OK)
        return ms_fail_but_refusal(err, &own, fault);
    MS_TRY(ms_match_tensors(task->alive, NULL, scratch, &all, fault));
    MS_TRY(ms_instant_like(&tried, &task->alive->result->plan,
                           task->alive->instant.op, scratch, &is_there,
                           &instant, fault));
    if (is_there)
        MS_TRY(compare_instants(task, &tried, &instant, scratch, &all, fault));
    else
        compare_steps(task, &tried, &all);
    return judge(task, &all, remedy, any, scratch, fault);
}

ms_err ms_remedy_find(const ms_remedy_task *task, ms_arena *arena,
                      ms_remedy **remedies, uint32_t *n, ms_fault *fault)
{
    *n = 0;
    *remedies = ms_arena_take(arena, N_CHANGES, sizeof **remedies);
    if (*remedies == NULL)
        return ms_fail_nomem(fault);
    if (task->job->program != NULL || task->alive->result->plan.n_ops > MAX_OPS)
        return MS_OK;
    for (size_t i = 0; i < N_CHANGES; i++) {
        ms_arena scratch = {0};
        ms_remedy *remedy = &(*remedies)[*n];
        bool any;
        MS_TRY(words_of(&changes[i], task->alive->result, arena, &remedy->words,
                        fault));
        remedy->helps = ms_arena_take(arena, task->n_groups + 1, sizeof(bool));
        if (remedy->helps == NULL)
            return ms_fail_nomem(fault);
        if (remedy->words[0] == '\0')
            continue;
        ms_err err =
            try_change(task, &changes[i], remedy, &any, &scratch, fault);
        ms_arena_free(&scratch);
        MS_TRY(err);
        *n += any;
    }
    return MS_OK;
}
