/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Peak and time of a pipeline's step of many micro-batches, from few. */

#include "sim/machine.h"
#include "sim/plan.h"
#include "sim/program.h"
#include "sim/repeat/rounds.h"
#include "sim/timeline.h"
#include "tools/job/job.h"
#include "tools/job/jobprogram.h"
#include "tools/job/result.h"

/* Of few: so many rounds more than have to lie before the cut, and a
 * micro-batch for each rank, which fill the pipeline; where the times have not
 * settled then, twice as many, and so on, but no more than this part of all
 * micro-batches together. */
#define MORE_ROUNDS 3u
#define MOST_TRIED 2u

typedef struct search {
    const ms_job *job;
    ms_arena *trial;
    ms_result *result;
    uint32_t n;            /* the step's micro-batches */
    uint64_t left;         /* so many may still be tried */
    ms_roundcut cut;       /* round and before are given */
    ms_schedule many;      /* of n */
    ms_rank_report *ranks; /* what is told; NULL: nothing yet */
    ms_fault *fault;
} search;

/* The step with only `few` of its micro-batches, as far as its clock; its
 * schedule says where rounds can be put. */
static ms_err run_few(search *it, uint32_t few, bool *found)
{
    ms_expand_opts opts;
    ms_schedule schedule;
    ms_fault refused = {0}; /* so few, for this order */
    ms_result *result = it->result;
    *found = false;
    MS_TRY(ms_jobprogram_begin(it->job, it->trial, &opts, result, it->fault));
    ms_err err = ms_jobprogram_schedule(it->job, it->trial, &opts, result, few,
                                        &schedule, &refused);
    if (err != MS_OK)
        return err == MS_ENOMEM ? ms_fail_nomem(it->fault) : MS_OK;
    MS_TRY(ms_roundcut_find(&schedule, &it->many, it->trial, &it->cut, found,
                            it->fault));
    if (!*found)
        return MS_OK;
    it->left -= few;
    MS_TRY(ms_jobprogram_write(it->job, it->trial, &opts, result, it->fault));
    *found = !result->program->overlaps; /* spans of ranks are replayed */
    if (!*found)
        return MS_OK;
    MS_TRY(ms_expand(result->graph, result->program, &opts, it->trial,
                     result->plan, it->fault));
    return ms_replay_clock(result->plan, result->machine, it->trial,
                           result->line, it->fault);
}

static ms_err try_few(search *it, uint32_t few)
{
    ms_rounds rounds;
    bool found;
    ms_result *result = it->result;
    ms_shape whole = result->shape;
    result->shape.batch = whole.batch / whole.micro_batches * few;
    result->shape.micro_batches = few;
    ms_err err = run_few(it, few, &found);
    result->shape = whole;
    if (err != MS_OK || !found)
        return err;
    MS_TRY(ms_rounds_find(result->line, result->machine, &it->cut, it->trial,
                          &rounds, &found, it->fault));
    if (!found)
        return MS_OK;
    ms_rank_report *ranks =
        ms_arena_take(it->trial, result->plan->n_ranks, sizeof *ranks);
    if (ranks == NULL)
        return ms_fail_nomem(it->fault);
    MS_TRY(ms_roundsums_ranks(result->line, result->machine, &it->cut, &rounds,
                              it->trial, ranks, it->fault));
    it->ranks = ranks;
    return MS_OK;
}

/* Few micro-batches leave over what no whole round takes. */
static ms_err try_rounds(search *it, uint32_t round)
{
    uint32_t before = ms_roundcut_before(&it->many, round);
    uint64_t rounds = (uint64_t)before + MORE_ROUNDS;
    uint64_t least = it->many.n_ranks + rounds * round;
    it->cut = (ms_roundcut){.round = round, .before = before};
    for (; least < it->n && it->ranks == NULL; least *= 2) {
        uint64_t few = least + (it->n - least) % round;
        if (few > it->left)
            return MS_OK;
        MS_TRY(try_few(it, (uint32_t)few));
    }
    return MS_OK;
}

ms_err ms_pipelinerounds_step(const ms_job *job, ms_arena *trial,
                              ms_result *result, ms_rank_report **ranks,
                              ms_fault *fault)
{
    ms_expand_opts opts;
    search it = {.job = job,
                 .trial = trial,
                 .result = result,
                 .n = result->shape.micro_batches,
                 .left = result->shape.micro_batches / MOST_TRIED,
                 .fault = fault};
    *ranks = NULL;
    MS_TRY(ms_jobprogram_begin(job, trial, &opts, result, fault));
    MS_TRY(ms_jobprogram_schedule(job, trial, &opts, result, it.n, &it.many,
                                  fault));
    if (it.many.keeps.messages)
        return MS_OK; /* whose bytes grow with each micro-batch */
    MS_TRY(try_rounds(&it, 1));
    if (it.ranks == NULL)
        MS_TRY(try_rounds(&it, it.many.n_ranks));
    *ranks = it.ranks;
    return MS_OK;
}
