/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What would lower the peak.  Each row of the table is tried by a replay, so
 * that nothing is promised that does not hold. */

#include "tools/tools.h"

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

/* Puts the count where a pattern of the table says %lld. */
static char *with_count(const char *pattern, int64_t count, ms_arena *arena)
{
    const char *at = strstr(pattern, "%lld");
    if (at == NULL)
        return ms_arena_text(arena, pattern, strlen(pattern));
    return ms_arena_format(arena, "%.*s%lld%s", (int)(at - pattern), pattern,
                           (long long)count, at + 4);
}

/* The job and the resolved training with the change in it. */
static ms_err apply(const change *row, int64_t count, ms_arena *arena,
                    ms_job *job, ms_result *result, ms_fault *fault)
{
    if (row->policy != NULL) {
        char *spec = with_count(row->policy, count, arena);
        if (spec == NULL)
            return ms_fail_nomem(fault);
        MS_TRY(ms_spec_parse(spec, arena, &job->spec, fault));
        if (names_a_policy_twice(&job->spec))
            return ms_fail(fault, MS_EUSAGE, NULL, NULL, "named twice");
    }
    if (row->key == NULL)
        return MS_OK;
    MS_TRY(ms_training_set(&result->training, row->key, row->value, fault));
    return ms_resolve_training(&result->training, &result->model, fault);
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

typedef struct search {
    const ms_job *job;
    const ms_result *now;
    ms_arena *arena;
    ms_advice *best;
    ms_fault *fault;
} search;

static ms_err try_change(const search *s, const change *row, int64_t count,
                         ms_arena *scratch, ms_result *tried, ms_fault *fault)
{
    ms_job job = *s->job;
    *tried = *s->now;
    MS_TRY(apply(row, count, scratch, &job, tried, fault));
    MS_TRY(ms_pipeline_lower(&job, scratch, tried, fault));
    return ms_pipeline_step(&job, scratch, tried, fault);
}

static ms_err consider(const search *s, const change *row, int64_t count)
{
    ms_arena scratch = {0};
    ms_fault own = {.caret = -1};
    ms_result tried;
    ms_err err = try_change(s, row, count, &scratch, &tried, &own);
    if (err != MS_OK) {
        err = ms_fail_but_refusal(err, &own, s->fault);
    } else if (is_better(row, &tried, peak_of(s->now), s->best)) {
        char *words = with_count(row->words, count, s->arena);
        *s->best = (ms_advice){.words = words,
                               .peak_bytes = peak_of(&tried),
                               .step_ns = tried.line.step_ns,
                               .fits = tried.report.fits};
        if (words == NULL)
            err = ms_fail_nomem(s->fault);
    }
    ms_arena_free(&scratch);
    return err;
}

/* The fewest micro-batches that fit cost the least time. */
static ms_err consider_counts(const search *s, const change *row)
{
    int64_t batch = s->now->training.batch;
    for (int64_t count = 2; count <= batch && !s->best->fits; count *= 2)
        if (batch % count == 0)
            MS_TRY(consider(s, row, count));
    return MS_OK;
}

ms_err ms_advice_find(const ms_job *job, const ms_result *result,
                      ms_arena *arena, ms_advice *advice, ms_fault *fault)
{
    search s = {job, result, arena, advice, fault};
    *advice = (ms_advice){0};
    if (job->program != NULL || result->graph.n_ops > MAX_OPS)
        return MS_OK;
    for (size_t i = 0; i < N_CHANGES && !advice->fits; i++) {
        if (strstr(changes[i].words, "%lld") != NULL)
            MS_TRY(consider_counts(&s, &changes[i]));
        else
            MS_TRY(consider(&s, &changes[i], 0));
    }
    return MS_OK;
}
