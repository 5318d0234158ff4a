/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Finds what is large enough where one GPU is too small and no setting helps.
 */

#include "tools/advice/setup.h"
#include "graphs/training.h"
#include "policies/common/policy.h"
#include "sim/plan.h"
#include "sim/report.h"
#include "sim/timeline.h"
#include "tools/job/job.h"
#include "tools/job/result.h"

#include <string.h>

#define MAX_OPS 1000000u /* above this the tries take longer than the run */
#define MOST_GPUS 16384u
/* Of the least number of GPUs that can hold the states. */
#define DOUBLINGS 5u

/* How the job's policies are replaced. */
typedef struct way {
    bool checkpoints; /* the job's checkpoint policies stay */
    /* its other policies stay, but for those that share or offload */
    bool others;
    const char *add; /* with %lld for the batch, %u for the GPUs */
} way;

/* From what changes least to what saves most. */
static const way shared[] = {
    {true, true, "zero:3"},
    {false, true, "zero:3+checkpoint:full"},
    {false, false, "zero:3+checkpoint:full"},
    {false, false, "zero:3+checkpoint:full+microbatch:%lld"},
    {false, false, "zero:3+checkpoint:full+context:%u"},
};
#define N_SHARED (sizeof shared / sizeof shared[0])
static const way alone[] = {
    {true, true, "offload:optimizer"},
    {false, true, "checkpoint:full+offload:optimizer"},
    {false, true, "checkpoint:full+offload:optimizer/params/gradients"},
    {false, true, "checkpoint:full+offload:optimizer/params/gradients,to=nvme"},
};
#define N_ALONE (sizeof alone / sizeof alone[0])

typedef struct search {
    const ms_job *job;
    const ms_result *now;
    ms_arena *arena;
    ms_setup *best;
    ms_fault *fault;
} search;

/* ---- policies ------------------------------------------------------------ */

static bool is_kept(const way *by, const char *name)
{
    static const char *const replaced[] = {"zero", "fsdp", "ddp", "offload"};
    for (size_t i = 0; i < sizeof replaced / sizeof replaced[0]; i++)
        if (strcmp(name, replaced[i]) == 0)
            return false;
    if (strcmp(name, "checkpoint") == 0)
        return by->checkpoints;
    return by->others;
}

static bool has(const ms_spec *spec, const char *name)
{
    for (uint32_t i = 0; i < spec->n; i++)
        if (strcmp(ms_policy_family(spec->items[i].policy), name) == 0)
            return true;
    return false;
}

static void put_item(const struct ms_spec_item *item, ms_text *text)
{
    const ms_spec one = {.n = 1, .items = {*item}};
    const char *words = ms_spec_print(&one, text->arena);
    ms_text_add(text, "%s%s", text->length > 0 ? "+" : "",
                words != NULL ? words : "");
    text->failed |= words == NULL;
}

/* In a job that uses fsdp, fsdp takes the place of zero:3. */
static void put_added(const search *s, const char *add, uint32_t gpus,
                      ms_text *text)
{
    static const char share[] = "zero:3";
    const char *count = strchr(add, '%');
    ms_text_add(text, "%s", text->length > 0 ? "+" : "");
    if (has(&s->job->spec, "fsdp") && strncmp(add, share, 6) == 0) {
        ms_text_add(text, "fsdp");
        add += strlen(share);
    }
    if (count == NULL) {
        ms_text_add(text, "%s", add);
        return;
    }
    ms_text_put(text, add, (size_t)(count - add));
    ms_text_u64(text,
                count[1] == 'u' ? gpus : (uint64_t)s->now->training.batch);
}

/* *words is NULL where the batch cannot be cut, or where nothing would differ
 * from the row before. */
static ms_err policy_of(const search *s, const way *by, uint32_t gpus,
                        const char **words)
{
    const ms_spec *spec = &s->job->spec;
    ms_text text = {.arena = s->arena};
    bool drops = false;
    for (uint32_t i = 0; i < spec->n; i++) {
        const char *name = ms_policy_family(spec->items[i].policy);
        if (is_kept(by, name))
            put_item(&spec->items[i], &text);
        else
            drops = true;
    }
    put_added(s, by->add, gpus, &text);
    if (text.failed)
        return ms_fail_nomem(s->fault);
    bool counts = strstr(by->add, "%lld") != NULL;
    bool same = !by->others && strchr(by->add, '%') == NULL && !drops;
    *words = same || (counts && s->now->training.batch < 2) ? NULL : text.bytes;
    return MS_OK;
}

/* ---- one candidate ------------------------------------------------------- */

static ms_err replay(const search *s, const ms_job *job, ms_arena *scratch,
                     ms_result *tried, ms_fault *fault)
{
    *tried = (ms_result){.model = s->now->model};
    ms_jobway_settings(job, &tried->training);
    MS_TRY(ms_resolve_training(&tried->training, &tried->model, fault));
    MS_TRY(ms_jobway_lower(job, scratch, tried, fault));
    return ms_jobway_step(job, scratch, tried, fault);
}

static void note_best(const search *s, const char *policy, uint32_t gpus,
                      const ms_result *tried)
{
    *s->best =
        (ms_setup){.policy = policy,
                   .gpus = gpus,
                   .used_bytes = ms_capacity_used(tried->report),
                   .capacity_bytes = tried->report->capacity_bytes,
                   .step_ns = tried->report->ranks[0].time.step_ns,
                   .tokens_per_second = tried->report->tokens_per_second};
    memcpy(s->best->far, tried->report->far, sizeof s->best->far);
}

/* Replays without the pool first: what does not fit there fits in no pool, and
 * such a replay is several times faster. */
static ms_err attempt(const search *s, const char *policy, uint32_t gpus,
                      ms_arena *scratch, ms_fault *fault)
{
    ms_job job = *s->job;
    ms_result tried;
    job.spec = (ms_spec){0};
    job.gpus = gpus > 1 ? gpus : 0;
    job.brief = job.unmerged = true;
    job.uses = job.addresses = false;
    MS_TRY(ms_spec_parse(policy, scratch, &job.spec, fault));
    if (job.allocator != NULL && job.lengths == NULL && job.steps < 2) {
        ms_job bare = job;
        bare.allocator = NULL;
        MS_TRY(replay(s, &bare, scratch, &tried, fault));
        if (!tried.report->fits)
            return MS_OK;
    }
    MS_TRY(replay(s, &job, scratch, &tried, fault));
    if (tried.report->fits)
        note_best(s, policy, gpus, &tried);
    return MS_OK;
}

/* A set-up whose policies contradict each other is left out. */
static ms_err consider(const search *s, const way *by, uint32_t gpus)
{
    ms_arena scratch = {0};
    ms_fault own = {.caret = -1};
    const char *policy = NULL;
    MS_TRY(policy_of(s, by, gpus, &policy));
    if (policy == NULL)
        return MS_OK;
    ms_err err = attempt(s, policy, gpus, &scratch, &own);
    ms_arena_free(&scratch);
    return ms_fail_but_refusal(err, &own, s->fault);
}

static bool can_try(const ms_job *job, const ms_result *result)
{
    return job->program == NULL && result->training.device != 1 &&
           !job->book_device && result->plan->n_ops <= MAX_OPS &&
           result->model.refusal == NULL;
}

/* ---- more GPUs ----------------------------------------------------------- */

/* The least power of two of GPUs whose memory holds the states: with fewer, a
 * replay could not fit. */
static uint64_t fewest_gpus(const ms_result *result)
{
    const ms_rank_report *rank = &result->report->ranks[result->report->worst];
    uint64_t usable_bytes = ms_capacity_usable(result->report);
    uint64_t bytes = rank->parameters_bytes + rank->gradients_bytes +
                     rank->optimizer_state_bytes;
    uint64_t gpus = result->shape.data_ranks > 1
                        ? 2 * (uint64_t)result->shape.data_ranks
                        : 2;
    if (result->shape.data_ranks > 1 || usable_bytes == 0)
        return usable_bytes == 0 ? UINT64_MAX : gpus;
    while (gpus < MOST_GPUS && bytes / gpus > usable_bytes)
        gpus *= 2;
    return gpus;
}

ms_err ms_setup_shared(const ms_job *job, const ms_result *result,
                       ms_arena *arena, ms_setup *setup, ms_fault *fault)
{
    const search s = {job, result, arena, setup, fault};
    uint64_t gpus = fewest_gpus(result);
    *setup = (ms_setup){0};
    if (!can_try(job, result))
        return MS_OK;
    for (uint32_t n = 0; n < DOUBLINGS && gpus <= MOST_GPUS; n++, gpus *= 2)
        for (size_t i = 0; i < N_SHARED && setup->policy == NULL; i++)
            MS_TRY(consider(&s, &shared[i], (uint32_t)gpus));
    return MS_OK;
}

/* ---- one GPU with its host ----------------------------------------------- */

ms_err ms_setup_alone(const ms_job *job, const ms_result *result,
                      ms_arena *arena, ms_setup *setup, ms_fault *fault)
{
    const search s = {job, result, arena, setup, fault};
    *setup = (ms_setup){0};
    if (!can_try(job, result) || result->shape.data_ranks > 1)
        return MS_OK;
    for (size_t i = 0; i < N_ALONE && setup->policy == NULL; i++)
        MS_TRY(consider(&s, &alone[i], 1));
    return MS_OK;
}
