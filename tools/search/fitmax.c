/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The largest batch or sequence for which some set-up fits: doubled until
 * nothing fits, then found by bisection. Each value is tried by replays; it is
 * assumed that what is too large stays so at larger values.
 *
 * A larger batch pays until it brings no more tokens per second: at each power
 * of two the fastest set-up that fits is found, and the least batch within
 * MS_FIT_PAYS percent of the highest rate is the one that set-ups are shown
 * for. */

#include "graphs/training.h"
#include "policies/common/policy.h"
#include "tools/job/job.h"
#include "tools/job/result.h"
#include "tools/search/fit.h"

#include <stdio.h>
#include <string.h>

#define MOST_BATCH (UINT64_C(1) << 20)
#define MOST_SEQUENCE (UINT64_C(1) << 24)

typedef struct ladder {
    ms_fit *fit;
    ms_fit_max *max;
    const char *field; /* "training.batch" */
    uint64_t unit;     /* values tried are multiples of it */
    bool weighs;       /* also finds the batch that pays */
    /* the set-up that fitted last, tried first at the next value */
    ms_fit_point hint;
    bool has_hint;
    ms_fault refusal; /* of the first value, where every set-up is refused */
} ladder;

/* Searches at one value. any: stop at the first set-up that fits, else find the
 * fastest. arena is freed after this value. */
static ms_err search_at(ladder *l, uint64_t value, bool any, ms_arena *arena,
                        ms_fit *at, ms_fault *fault)
{
    char number[24];
    ms_job job = *l->fit->job;
    snprintf(number, sizeof number, "%llu", (unsigned long long)value);
    MS_TRY(ms_training_set(&job.training, l->field, number, fault));
    *at = (ms_fit){.job = &job,
                   .points = l->fit->points,
                   .arena = arena,
                   .threads = l->fit->threads,
                   .goal = MS_FIT_STEP,
                   .vary_precision = l->fit->vary_precision,
                   .proof = l->fit->proof,
                   .proof_steps = l->fit->proof_steps,
                   .settled = l->fit,
                   .any = any,
                   .hint = l->has_hint ? &l->hint : NULL};
    memcpy(at->frozen, l->fit->frozen, sizeof at->frozen);
    ms_err err = ms_fitspace_open(at, fault);
    if (err == MS_OK)
        err = ms_fitsearch_run(at, fault);
    if (err == MS_OK)
        err = ms_fitproof_run(at, fault);
    ms_fitspace_close(at);
    at->job = NULL; /* job is a local variable: nobody may follow the pointer */
    return err;
}

static void note_rung(ladder *l, uint64_t value, const ms_fit *at)
{
    ms_fit_max *max = l->max;
    if (at->fastest == MS_NONE || max->n_rungs == MS_FIT_RUNGS)
        return;
    double step_ns = (double)at->all[at->fastest].step_ns;
    max->rungs[max->n_rungs].value = value;
    max->rungs[max->n_rungs++].rate = (double)value * 1e9 / step_ns;
}

static void note_search(ladder *l, const ms_fit *at)
{
    l->max->replays += at->count[MS_FIT_REPLAYED];
    l->has_hint |= at->best != MS_NONE;
    if (at->best != MS_NONE)
        l->hint = at->all[at->best];
    else if (l->max->searches == 1 && at->count[MS_FIT_REFUSED] == at->n_all)
        l->refusal = at->refusal;
}

/* A value that the model refuses (a product that is too large) counts as one
 * that does not fit; but the first value must be accepted, else the fault is
 * the user's. */
static ms_err try_value(ladder *l, uint64_t value, bool any, bool *fits,
                        ms_fault *fault)
{
    ms_arena arena = {0};
    ms_fault refusal = {.caret = -1};
    ms_fit at;
    ms_err err = search_at(l, value, any, &arena, &at, &refusal);
    /* the model refuses a size */
    bool impossible = err == MS_EINPUT || err == MS_EUSAGE;
    l->max->searches++;
    *fits = err == MS_OK && at.best != MS_NONE;
    if (err == MS_OK)
        note_search(l, &at);
    if (err == MS_OK && !any)
        note_rung(l, value, &at);
    ms_arena_free(&arena);
    if (*fits)
        l->max->value = value;
    else if (l->max->over == 0 || value < l->max->over)
        l->max->over = value;
    if (err == MS_OK || (impossible && l->max->searches > 1))
        return MS_OK;
    *fault = refusal;
    return err;
}

static ms_err climb(ladder *l, ms_fault *fault)
{
    uint64_t most = l->max->cap / l->unit, low = 0, high = 0;
    bool fits = true;
    for (uint64_t k = 1; high == 0; k = 2 * k < most ? 2 * k : most) {
        MS_TRY(try_value(l, k * l->unit, !l->weighs, &fits, fault));
        if (!fits)
            high = k;
        else if ((low = k) == most)
            return MS_OK;
    }
    while (high - low > 1 && low > 0) {
        uint64_t middle = low + (high - low) / 2;
        MS_TRY(try_value(l, middle * l->unit, true, &fits, fault));
        if (fits)
            low = middle;
        else
            high = middle;
    }
    return MS_OK;
}

static ms_err open_batch(ladder *l, ms_fault *fault)
{
    const ms_spec *spec = &l->fit->job->spec;
    const ms_policy_value *count = ms_policy_given(spec, "microbatch", "count");
    const ms_policy_value *size = ms_policy_given(spec, "microbatch", "size");
    if (l->fit->model.model.fixed_batch != 0)
        return ms_fail(fault, MS_EUSAGE, "--max batch",
                       "export the graph with another batch to compare",
                       "the op graph has a fixed batch of %llu",
                       (unsigned long long)l->fit->model.model.fixed_batch);
    l->field = "training.batch";
    l->max->key = "batch";
    l->max->cap = MOST_BATCH;
    l->weighs = true;
    l->unit = count != NULL && count->given ? (uint64_t)count->number : 1;
    if (size != NULL && size->given)
        l->unit = (uint64_t)size->number;
    return MS_OK;
}

static ms_err open_sequence(ladder *l, ms_fault *fault)
{
    const ms_result *model = &l->fit->model;
    if (model->training.sequence == 0)
        return ms_fail(fault, MS_EUSAGE, "--max sequence", "try --max batch",
                       "%s has no sequence", model->model.name);
    l->field = "training.sequence";
    l->max->key = "sequence";
    l->max->cap = MOST_SEQUENCE;
    l->max->model_cap = model->model.max_sequence != 0;
    if (l->max->model_cap)
        l->max->cap = model->model.max_sequence;
    l->unit = 1;
    return MS_OK;
}

/* max->pays: the least batch with nearly the highest rate, or the largest value
 * where none was timed. */
static void find_pays(ms_fit_max *max)
{
    double most = 0;
    max->pays = max->value;
    for (uint32_t k = 0; k < max->n_rungs; k++)
        most = max->rungs[k].rate > most ? max->rungs[k].rate : most;
    for (uint32_t k = max->n_rungs; k-- > 0;)
        if (max->rungs[k].rate * 100 >= most * (100 - MS_FIT_PAYS))
            max->pays = max->rungs[k].value;
}

ms_err ms_fitmax_find(ms_fit *fit, const char *what, ms_fit_max *max,
                      ms_fault *fault)
{
    ladder l = {.fit = fit, .max = max};
    *max = (ms_fit_max){0};
    MS_TRY(strcmp(what, "batch") == 0 ? open_batch(&l, fault)
                                      : open_sequence(&l, fault));
    MS_TRY(climb(&l, fault));
    find_pays(max);
    if (max->value == 0 && l.refusal.err != MS_OK) {
        *fault = l.refusal;
        return fault->err;
    }
    return MS_OK;
}

uint64_t ms_fitmax_told(const ms_fit_max *max)
{
    return max->value > 0 ? max->pays : max->over;
}
