/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/points/foldstep.h"
#include "sim/graph.h"
#include "sim/plan.h"
#include "sim/program.h"
#include "sim/report.h"
#include "sim/timeline.h"
#include "tools/job/jobprogram.h"

#include <string.h>

/* Points of a family that are replayed before one is folded, where it is not
 * known how many come of a graph; where it is, so many pay for what the first
 * one costs: it is folded, with all that has to be learnt, and replayed. */
#define REPLAYED 2u
#define WORTH 6u

/* Why no fold tells of a step of the job; NULL: one may. */
static const char *bar_of_job(const ms_job *job, const ms_result *result)
{
    if (job->allocator != NULL)
        return "a pool hands out addresses";
    if (job->program != NULL)
        return "the program comes from a file";
    if (job->book_device || job->wall || result->shape.paging.page_bytes > 0)
        return ms_fold_sentence(MS_FOLD_MEMORY);
    return NULL;
}

static bool is_pipeline(const ms_result *result)
{
    return result->shape.pipeline_ranks > 1;
}

const char *ms_foldstep_bar(const ms_foldstep *of, const ms_job *job,
                            const ms_result *result)
{
    const char *bar = bar_of_job(job, result);
    if (bar != NULL)
        return bar;
    if (is_pipeline(result))
        return of->no_rounds ? "the micro-batches of the pipeline are too few, "
                               "or do not repeat in rounds"
                             : NULL;
    ms_fold_why why =
        ms_fold_bar(result->graph, result->machine, result->program);
    return why != MS_FOLD_WHOLE ? ms_fold_sentence(why) : NULL;
}

/* One point less is to come than before, but it is of another graph. */
static bool misleads(const ms_foldstep *of, uint32_t coming)
{
    return coming > 0 && of->coming == coming + 1;
}

static void close_family(ms_foldstep_family *it)
{
    if (it->fold != NULL)
        ms_fold_close(it->fold);
    ms_arena arena = it->arena;
    ms_arena_reset(&arena);
    *it = (ms_foldstep_family){.arena = arena};
}

/* Has it nothing that a graph to come could use? */
static bool is_idle(const ms_foldstep_family *it)
{
    return it->fold == NULL || !ms_fold_turns(it->fold);
}

/* The one to go: an idle one before others, the oldest of them. */
static ms_foldstep_family *find_oldest(ms_foldstep *of)
{
    ms_foldstep_family *oldest = &of->families[0];
    for (uint32_t i = 1; i < MS_FOLDSTEP_FAMILIES; i++) {
        ms_foldstep_family *it = &of->families[i];
        if (is_idle(it) != is_idle(oldest) ? is_idle(it)
                                           : it->used < oldest->used)
            oldest = it;
    }
    return oldest;
}

/* Is the graph of the family, which then has it? */
static bool takes(ms_foldstep_family *it, const ms_graph *graph)
{
    if (it->fold != NULL)
        return ms_fold_turn(it->fold, graph);
    return it->graph != NULL && ms_fold_alike(it->graph, graph);
}

static ms_foldstep_family *find_family(ms_foldstep *of, const ms_graph *graph)
{
    ms_foldstep_family *it = of->families, *end = it + MS_FOLDSTEP_FAMILIES;
    while (it < end && it->graph != graph)
        it++;
    if (it < end)
        return it;
    it = of->families;
    while (it < end && !takes(it, graph))
        it++;
    if (it == end) {
        it = find_oldest(of);
        close_family(it);
    }
    it->graph = graph;
    it->is_ready = it->is_proven = it->is_refused = false;
    return it;
}

uint32_t ms_foldstep_turn(ms_foldstep *of, const ms_graph *graph,
                          uint32_t coming)
{
    if (of->family != NULL && of->family->graph != graph)
        of->is_misled |= misleads(of, coming);
    ms_foldstep_family *it = find_family(of, graph);
    it->used = ++of->turns;
    of->family = it;
    of->coming = coming;
    return (uint32_t)(it - of->families);
}

/* Structs of other bytes in their padding count as others. */
static bool is_same_machine(const ms_foldstep_family *it,
                            const ms_expand_opts *opts,
                            const ms_machine *machine)
{
    const void *then = &it->machine, *now = machine;
    const void *before = &it->opts, *after = opts;
    return memcmp(then, now, sizeof *machine) == 0 &&
           memcmp(before, after, sizeof *opts) == 0;
}

/* Was as much folded of graphs before this one, and shown to be right, that no
 * point of it need be replayed? */
static bool is_known_well(uint32_t n_graphs)
{
    return (n_graphs & (n_graphs - 1)) != 0;
}

/* What is learnt is of the machine of the first point. */
static ms_err open_fold(ms_foldstep_family *it, const ms_expand_opts *opts,
                        const ms_machine *machine, ms_fault *fault)
{
    const void *before = &it->opts, *after = opts;
    if (it->is_ready)
        return MS_OK;
    it->is_ready = true;
    it->machine = *machine;
    if (it->fold != NULL && memcmp(before, after, sizeof *opts) == 0) {
        it->is_proven = is_known_well(++it->n_graphs);
        return MS_OK;
    }
    if (it->fold != NULL)
        ms_fold_close(it->fold);
    it->fold = NULL;
    it->n_graphs = 1;
    ms_arena_reset(&it->arena);
    it->opts = *opts;
    return ms_fold_open(it->graph, &it->opts, &it->machine, &it->arena,
                        &it->fold, fault);
}

/* ---- a report of a fold -------------------------------------------------- */

static ms_times times_of(const ms_folded *folded)
{
    return folded->streamed ? folded->time
                            : (ms_times){.step_ns = folded->step_ns,
                                         .recompute_ns = folded->recompute_ns};
}

/* Of these ranks peaks and times are told. */
static void write_report(ms_rank_report *ranks, uint16_t n,
                         const struct ms_far_memory *far, ms_result *result)
{
    static const ms_pages pages;
    ms_report *report = result->report;
    *report = (ms_report){.n_ranks = n, .ranks = ranks};
    if (far != NULL)
        memcpy(report->far, far, sizeof report->far);
    result->plan->graph = result->graph;
    result->plan->n_ranks = n;
    result->plan->n_micro_batches = result->shape.micro_batches;
    *result->line =
        (ms_timeline){.plan = result->plan, .step_ns = ranks[0].time.step_ns};
    ms_measure_rates(result->line, result->machine, report);
    ms_capacity_judge(&pages, result->machine, report);
}

static ms_err write_folded(const ms_folded *folded, const uint64_t *by_category,
                           ms_arena *trial, ms_result *result, ms_fault *fault)
{
    ms_rank_report *rank = ms_arena_take(trial, 1, sizeof *rank);
    if (rank == NULL)
        return ms_fail_nomem(fault);
    *rank = (ms_rank_report){.peak = {.allocated_bytes = folded->peak_bytes,
                                      .active_bytes = folded->active_bytes,
                                      .requested_bytes = folded->active_bytes,
                                      .reserved_bytes = folded->active_bytes},
                             .time = times_of(folded)};
    memcpy(rank->peak.by_category, by_category, sizeof rank->peak.by_category);
    /* A choice has no program: of the default one nothing bars a fold. */
    result->program->n_ranks = result->program->n_frames = 1;
    *result->plan = (ms_plan){0};
    write_report(rank, 1, folded->far, result);
    return MS_OK;
}

static bool same_rank(const ms_rank_report *a, const ms_rank_report *b)
{
    return a->peak.allocated_bytes == b->peak.allocated_bytes &&
           a->peak.reserved_bytes == b->peak.reserved_bytes &&
           a->time.step_ns == b->time.step_ns &&
           a->time.recompute_ns == b->time.recompute_ns &&
           a->time.bubble_ns == b->time.bubble_ns &&
           a->time.stall_ns == b->time.stall_ns &&
           a->time.exposed_comm_ns == b->time.exposed_comm_ns;
}

static bool same_categories(const ms_rank_report *a, const ms_rank_report *b)
{
    for (int c = 0; c < MS_N_CATEGORIES; c++)
        if (a->peak.by_category[c] != b->peak.by_category[c])
            return false;
    return true;
}

static bool same_far(const ms_report *a, const ms_report *b)
{
    const struct ms_far_memory *x = a->far, *y = b->far;
    return x[MS_HOST_POOL].peak_bytes == y[MS_HOST_POOL].peak_bytes &&
           x[MS_HOST_POOL].reserved_bytes == y[MS_HOST_POOL].reserved_bytes &&
           x[MS_NVME_POOL].peak_bytes == y[MS_NVME_POOL].peak_bytes;
}

/* Does a replay say what the fold has said, and nothing that it leaves out? */
static bool says_same(const ms_report *folded, const ms_report *replayed,
                      bool by_category)
{
    if (replayed->n_ranks != folded->n_ranks)
        return false;
    for (uint16_t r = 0; r < folded->n_ranks; r++)
        if (!same_rank(&folded->ranks[r], &replayed->ranks[r]) ||
            (by_category &&
             !same_categories(&folded->ranks[r], &replayed->ranks[r])))
            return false;
    return same_far(folded, replayed) && folded->status == replayed->status;
}

/* ---- a step -------------------------------------------------------------- */

/* A choice of checkpoints alone needs no program. */
static ms_err choose(ms_foldstep_family *of, const ms_job *job, ms_arena *trial,
                     const ms_result *result, ms_folded *told, ms_fault *fault)
{
    ms_keep keep;
    bool alone;
    ms_fold_choice choice = {.micro_batches = result->shape.micro_batches};
    ms_fold_stretch *stretches =
        ms_arena_take_raw(trial, of->graph->n_units, sizeof *stretches);
    if (stretches == NULL)
        return ms_fail_nomem(fault);
    MS_TRY(ms_jobprogram_keep(job, trial, &of->opts, result, &keep, &alone,
                              fault));
    return alone && ms_fold_read(of->fold, &keep, stretches, &choice)
               ? ms_fold_choose(of->fold, &choice, told, fault)
               : MS_OK;
}

static ms_err fold_it(ms_foldstep *of, const ms_job *job, ms_arena *trial,
                      ms_result *result, bool *folded, ms_fault *fault)
{
    ms_foldstep_family *it = of->family;
    ms_expand_opts opts;
    ms_folded told = {.why = MS_FOLD_MEMORY};
    uint64_t by_category[MS_N_CATEGORIES] = {0};
    memset(&opts, 0, sizeof opts);
    MS_TRY(ms_jobprogram_begin(job, trial, &opts, result, fault));
    MS_TRY(open_fold(it, &opts, result->machine, fault));
    if (!is_same_machine(it, &opts, result->machine))
        return MS_OK;
    MS_TRY(choose(it, job, trial, result, &told, fault));
    if (told.why != MS_FOLD_WHOLE && !of->by_category) {
        MS_TRY(ms_jobprogram_write(job, trial, &opts, result, fault));
        MS_TRY(ms_fold_program(it->fold, result->program, &told, fault));
    }
    *folded = told.why == MS_FOLD_WHOLE &&
              (!of->by_category || ms_fold_categories(it->fold, by_category));
    return *folded ? write_folded(&told, by_category, trial, result, fault)
                   : MS_OK;
}

/* A pipeline's rounds are of one step: nothing is learnt for others. */
static ms_err fold_pipeline(ms_foldstep *of, const ms_job *job, ms_arena *trial,
                            ms_result *result, bool *folded, ms_fault *fault)
{
    ms_rank_report *ranks;
    of->no_rounds = false;
    MS_TRY(ms_pipelinerounds_step(job, trial, result, &ranks, fault));
    *folded = ranks != NULL;
    of->no_rounds = !*folded;
    if (*folded)
        write_report(ranks, result->plan->n_ranks, NULL, result);
    return MS_OK;
}

static bool pays(ms_foldstep *of)
{
    const ms_foldstep_family *it = of->family;
    uint32_t before = of->family->n_points++;
    if (it->fold != NULL)
        return true;
    return of->coming > 0 && !of->is_misled ? of->coming + before >= WORTH
                                            : before >= REPLAYED;
}

static ms_err try_fold(ms_foldstep *of, const ms_job *job, ms_arena *trial,
                       ms_result *result, bool *folded, ms_fault *fault)
{
    ms_foldstep_family *it = of->family;
    if (!job->brief || bar_of_job(job, result) != NULL || it->is_refused)
        return MS_OK;
    if (is_pipeline(result))
        return of->by_category
                   ? MS_OK
                   : fold_pipeline(of, job, trial, result, folded, fault);
    return pays(of) ? fold_it(of, job, trial, result, folded, fault) : MS_OK;
}

ms_err ms_foldstep_run(ms_foldstep *of, const ms_job *job, ms_arena *trial,
                       ms_result *result, bool *folded, ms_fault *fault)
{
    ms_foldstep_family *it = of->family;
    ms_report told = {0};
    *folded = false;
    MS_TRY(try_fold(of, job, trial, result, folded, fault));
    if (*folded && (it->is_proven || (of->tells_rounds && is_pipeline(result))))
        return MS_OK;
    if (*folded)
        told = *result->report;
    MS_TRY(ms_jobway_step(job, trial, result, fault));
    if (*folded) {
        it->is_proven = says_same(&told, result->report, of->by_category);
        it->is_refused = !it->is_proven;
    }
    *folded = false;
    return MS_OK;
}

void ms_foldstep_leave(ms_foldstep *of)
{
    for (uint32_t i = 0; i < MS_FOLDSTEP_FAMILIES; i++) {
        close_family(&of->families[i]);
        ms_arena arena = of->families[i].arena;
        ms_arena_free(&arena);
    }
    *of = (ms_foldstep){0};
}
