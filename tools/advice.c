/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What would lower the peak.  Each row of the table is tried by a replay, so
 * that nothing is promised that does not hold. */

#include "tools/tools.h"

#include <stdio.h>
#include <string.h>

/* Above this the tries would take longer than the run. */
#define MAX_OPS 1000000u

typedef struct change {
    const char *words;       /* to add to the command line; %lld: the batch */
    const char *policy;      /* NULL, or as words */
    const char *key, *value; /* of a training field, or NULL */
    bool last_resort; /* changes numerics: named only when it makes it fit */
} change;

/* From what costs least to what changes most. */
static const change changes[] = {
    {"--set training.optimizer_impl=fused", NULL, "training.optimizer_impl",
     "fused", false},
    {"--kernels flash", NULL, "training.kernels", "flash", false},
    {"-p microbatch:%lld", "microbatch:%lld", NULL, NULL, false},
    {"-p checkpoint:selective", "checkpoint:selective", NULL, NULL, false},
    {"-p checkpoint:sqrt", "checkpoint:sqrt", NULL, NULL, false},
    {"-p checkpoint:full", "checkpoint:full", NULL, NULL, false},
    {"-p checkpoint:full+microbatch:%lld", "checkpoint:full+microbatch:%lld",
     NULL, NULL, false},
    {"--precision bf16", NULL, "training.precision", "bf16", true},
};
#define N_CHANGES (sizeof changes / sizeof changes[0])

static bool names_a_policy_twice(const ms_spec *spec)
{
    for (uint32_t i = 0; i < spec->n; i++)
        for (uint32_t j = 0; j < i; j++)
            if (spec->items[i].policy == spec->items[j].policy)
                return true;
    return false;
}

/* Puts the batch where a pattern of the table says %lld. */
static char *with_batch(const char *pattern, int64_t batch, ms_arena *arena)
{
    const char *at = strstr(pattern, "%lld");
    if (at == NULL)
        return ms_arena_text(arena, pattern, strlen(pattern));
    return ms_arena_format(arena, "%.*s%lld%s", (int)(at - pattern), pattern,
                           (long long)batch, at + 4);
}

/* The job and the resolved training with the change in it. */
static ms_err apply(const change *row, ms_arena *arena, ms_job *job,
                    ms_result *result, ms_fault *fault)
{
    if (row->policy != NULL) {
        char *spec = with_batch(row->policy, result->training.batch, arena);
        if (spec == NULL)
            return ms_fail_nomem(fault);
        MS_TRY(ms_spec_parse(spec, arena, &job->spec, fault));
        if (names_a_policy_twice(&job->spec))
            return ms_fail(fault, MS_EUSAGE, NULL, NULL, "named twice");
    }
    if (row->key == NULL)
        return MS_OK;
    MS_TRY(ms_training_set(&result->training, row->key, row->value, fault));
    return ms_training_resolve(&result->training, &result->model, fault);
}

static ms_err try_change(const change *row, const ms_job *now,
                         ms_result *result, ms_arena *arena, ms_fault *fault)
{
    ms_job job = *now;
    if (strstr(row->words, "%lld") != NULL && result->training.batch < 2)
        return ms_fail(fault, MS_EUSAGE, NULL, NULL, "nothing to cut");
    MS_TRY(apply(row, arena, &job, result, fault));
    MS_TRY(ms_pipeline_lower(&job, arena, result, fault));
    return ms_pipeline_step(&job, arena, result, fault);
}

static uint64_t peak_of(const ms_result *result)
{
    return result->report.ranks[result->report.worst].peak.allocated_bytes;
}

/* Is what a row leads to better than the best so far? */
static bool is_better(const change *row, const ms_result *tried,
                      uint64_t now_bytes, const ms_advice *best)
{
    uint64_t peak_bytes = peak_of(tried);
    if (peak_bytes > now_bytes - now_bytes / 100)
        return false;
    if (tried->report.fits || row->last_resort)
        return tried->report.fits && !best->fits;
    return !best->fits &&
           (best->words == NULL || peak_bytes < best->peak_bytes);
}

static ms_err keep_advice(const change *row, const ms_result *tried,
                          ms_arena *arena, ms_advice *advice, ms_fault *fault)
{
    char *words = with_batch(row->words, tried->training.batch, arena);
    if (words == NULL)
        return ms_fail_nomem(fault);
    *advice = (ms_advice){.words = words,
                          .peak_bytes = peak_of(tried),
                          .fits = tried->report.fits};
    return MS_OK;
}

ms_err ms_advice_find(const ms_job *job, const ms_result *result,
                      ms_arena *arena, ms_advice *advice, ms_fault *fault)
{
    ms_err err = MS_OK;
    *advice = (ms_advice){0};
    if (job->program != NULL || result->graph.n_ops > MAX_OPS)
        return MS_OK;
    for (size_t i = 0; i < N_CHANGES && err == MS_OK && !advice->fits; i++) {
        ms_arena scratch = {0};
        ms_fault passed_over = {0};
        ms_result tried = *result;
        if (try_change(&changes[i], job, &tried, &scratch, &passed_over) ==
                MS_OK &&
            is_better(&changes[i], &tried, peak_of(result), advice))
            err = keep_advice(&changes[i], &tried, arena, advice, fault);
        ms_arena_free(&scratch);
    }
    return err;
}
