/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The whole way from a job to its result, one call per stage. Nothing is
 * printed, so that commands, benchmarks and tests call the same three parts. */

#include "graphs/machines/rankorder.h"
#include "graphs/model.h"
#include "graphs/modelgraph.h"
#include "graphs/training.h"
#include "policies/common/policy.h"
#include "sim/graph.h"
#include "sim/machine.h"
#include "sim/names.h"
#include "sim/plan.h"
#include "sim/pools/steps/pooled.h"
#include "sim/report.h"
#include "sim/timeline.h"
#include "tools/job/allocator.h"
#include "tools/job/globalbatch.h"
#include "tools/job/job.h"
#include "tools/job/jobprogram.h"
#include "tools/job/lengths.h"
#include "tools/job/result.h"
#include "tools/job/settings.h"

#include <stdio.h>
#include <string.h>

void ms_jobway_settings(const ms_job *job, ms_training *training)
{
    *training = job->training;
    ms_lengths_set_last(job, training);
    training->torch_pool = job->allocator != NULL && !job->allocator->exact &&
                           job->allocator->heap.kind == MS_POOL_TORCH;
}

ms_err ms_jobway_read(const ms_job *job, ms_arena *keep, ms_result *result,
                      ms_fault *fault)
{
    MS_TRY(ms_read_model(job->model, job->overrides, job->n_overrides, keep,
                         &result->model, fault));
    ms_jobway_settings(job, &result->training);
    MS_TRY(ms_resolve_training(&result->training, &result->model, fault));
    return ms_dag_order(&result->model, keep, fault);
}

/* Checks that the policies put every GPU of the job to work. */
static ms_err check_gpus(const ms_shape *shape, ms_fault *fault)
{
    char hint[64];
    uint64_t used = (uint64_t)ms_shape_model_ranks(shape) * shape->data_ranks;
    if (shape->gpus <= 1 || shape->gpus == used)
        return MS_OK;
    snprintf(hint, sizeof hint, "say how they share the work, e.g. -p zero:1");
    if (shape->is_shared)
        snprintf(hint, sizeof hint, "leave one of the two out");
    return ms_fail(fault, MS_EUSAGE, "--gpus", hint,
                   "the job has %u GPUs, its policies use %llu", shape->gpus,
                   (unsigned long long)used);
}

ms_err ms_jobway_shape(const ms_job *job, ms_result *result, ms_fault *fault)
{
    ms_shape *shape = &result->shape;
    MS_TRY(ms_settings_check(job, fault)); /* points of a grid come unchecked */
    /* padding, too: shapes are compared as bytes */
    memset(shape, 0, sizeof *shape);
    shape->batch = (uint64_t)result->training.batch;
    shape->micro_batches = 1;
    shape->gpus = job->gpus;
    shape->data_ranks = 1;
    shape->fixed = result->model.fixed_batch;
    shape->fault_ns = job->device->fault_ns;
    shape->one_memory = job->device->one_memory || result->training.device == 1;
    if (job->global_batch > 0)
        MS_TRY(ms_globalbatch_divide(job, &shape->batch, fault));
    MS_TRY(ms_apply_shape(&job->spec, shape, fault));
    MS_TRY(check_gpus(shape, fault));
    MS_TRY(ms_rankorder_check(shape, fault));
    MS_TRY(ms_globalbatch_check(job, result, fault));
    result->training.batch = (int64_t)shape->batch;
    return MS_OK;
}

ms_err ms_jobway_graph(const ms_job *job, ms_arena *arena, ms_result *result,
                       ms_fault *fault)
{
    ms_graph *graph = ms_arena_take(arena, 1, sizeof *graph);
    if (graph == NULL)
        return ms_fail_nomem(fault);
    result->graph = graph;
    return ms_lower(&result->model, &result->training, job->device,
                    &result->shape, arena, graph, fault);
}

ms_err ms_jobway_lower(const ms_job *job, ms_arena *keep, ms_result *result,
                       ms_fault *fault)
{
    MS_TRY(ms_jobway_shape(job, result, fault));
    return ms_jobway_graph(job, keep, result, fault);
}

/* ---- a real pool --------------------------------------------------------- */

#define DEFAULT_STEPS 3u
#define FIRST_STEP 1 /* of training.step */

/* The usual pool is of CUDA: what was measured has none. */
static bool has_pool(const ms_job *job, const ms_result *result)
{
    return job->allocator != NULL && !(job->usual && result->model.measured);
}

static uint32_t count_steps(const ms_job *job, const ms_result *result)
{
    uint32_t given = ms_lengths_steps(job);
    if (job->allocator->heap.kind == MS_POOL_ARENA)
        return 1;
    if (given > 0)
        return given;
    return result->training.step == FIRST_STEP ? 1 : DEFAULT_STEPS;
}

/* The version of PyTorch whose rules hold where the user does not give one. */
static ms_torch_version torch_version(const ms_training *training)
{
    switch (training->framework) {
    case MS_TORCH_1_13:
        return MS_TORCH_V1_13;
    case MS_TORCH_2_0:
        return MS_TORCH_V2_1;
    default:
        return MS_TORCH_V2_11;
    }
}

/* The options that bound what the process reserves: a fraction, a limit or a
 * size. The CUDA context lies outside of that bound. */
static void bound_pool(const ms_pooled_setup *setup, ms_machine *machine)
{
    uint64_t bytes = UINT64_MAX;
    if (setup->heap.limit_bytes > 0)
        bytes = setup->heap.limit_bytes;
    else if (setup->heap.size_bytes > 0)
        bytes = setup->heap.size_bytes;
    else if (setup->fraction > 0 && setup->fraction < 1)
        bytes = (uint64_t)(setup->fraction * (double)setup->torch.total_bytes);
    if (bytes != UINT64_MAX &&
        bytes + machine->context_bytes < machine->capacity_bytes)
        machine->capacity_bytes = bytes + machine->context_bytes;
}

/* Sets how much of the device the pool may take, which bounds the memory of
 * the process. */
static ms_err set_pool(const ms_job *job, ms_result *result,
                       ms_pooled_setup *setup, ms_fault *fault)
{
    ms_machine *machine = result->machine;
    ms_torch_setup *torch = &setup->torch;
    bool first = result->training.step == FIRST_STEP;
    if (machine->book_device || result->training.device == 1)
        return ms_fail(fault, MS_EUSAGE, "--allocator", "leave it out",
                       "allocators are those of CUDA%s",
                       machine->book_device ? ", uvm is without one" : "");
    if (first && ms_lengths_steps(job) > 1)
        return ms_fail(fault, MS_EUSAGE, "--steps", "leave one of the two out",
                       "training.step=first reports the first step, not the "
                       "last of %u",
                       ms_lengths_steps(job));
    MS_TRY(ms_allocator_setup(job->allocator, torch_version(&result->training),
                              setup, fault));
    if (setup->fraction <= 0)
        setup->fraction = torch->options.fraction;
    machine->host.pinned = torch->options.pinned;
    setup->addresses = job->addresses;
    setup->steps = count_steps(job, result);
    setup->brief = job->brief;
    if (setup->heap.kind == MS_POOL_ARENA && ms_lengths_steps(job) > 1)
        return ms_fail(fault, MS_EUSAGE, "--steps", "leave it out",
                       "a static plan is of one step");
    torch->total_bytes = machine->capacity_bytes;
    torch->base_bytes = machine->context_bytes;
    if (torch->total_bytes > MS_TORCH_MOST_BYTES)
        torch->total_bytes = MS_TORCH_MOST_BYTES;
    if (torch->base_bytes > torch->total_bytes)
        torch->base_bytes = torch->total_bytes;
    bound_pool(setup, machine);
    return MS_OK;
}

/* Simulates another step of the job: step k, counted from 0, or its first step.
 * The graph and the program lie in own. */
static ms_err other_step(const ms_job *job, const ms_result *result, uint32_t k,
                         bool first, ms_arena *own, ms_arena *trial,
                         ms_result *other, ms_fault *fault)
{
    ms_expand_opts opts;
    *other = *result;
    if (first)
        other->training.step = FIRST_STEP;
    ms_lengths_set(job, k, &other->training);
    MS_TRY(ms_resolve_training(&other->training, &other->model, fault));
    /* else the policies have changed the batch, and it stays */
    if (ms_lengths_says(job, "batch"))
        MS_TRY(ms_jobway_shape(job, other, fault));
    MS_TRY(ms_jobway_graph(job, own, other, fault));
    MS_TRY(ms_jobprogram_make(job, own, &opts, other, fault));
    MS_TRY(ms_expand(other->graph, other->program, &opts, trial, other->plan,
                     fault));
    return ms_replay(other->plan, other->machine, trial, other->line, fault);
}

static void *copy_of(ms_arena *arena, const void *items, size_t n, size_t size)
{
    void *copy = items == NULL ? NULL : ms_arena_take_raw(arena, n, size);
    if (copy != NULL)
        memcpy(copy, items, n * size);
    return copy;
}

/* Of a step that only goes through the pool: what the pool asks of it.  The
 * rest of its graph is as large as the reported one's, and goes. */
static ms_err keep_for_pool(const ms_result *from, ms_arena *trial,
                            const ms_timeline **line, ms_fault *fault)
{
    const ms_graph *graph = from->graph;
    ms_graph *few = ms_arena_take(trial, 1, sizeof *few);
    ms_plan *plan = copy_of(trial, from->plan, 1, sizeof *plan);
    ms_timeline *kept = copy_of(trial, from->line, 1, sizeof *kept);
    if (few == NULL || plan == NULL || kept == NULL)
        return ms_fail_nomem(fault);
    *few =
        (ms_graph){.n_persistent = graph->n_persistent, .n_ops = graph->n_ops};
    few->op_flags = copy_of(trial, graph->op_flags, graph->n_ops, 1);
    few->storage_asked_bytes =
        copy_of(trial, graph->storage_asked_bytes, graph->n_persistent,
                sizeof *few->storage_asked_bytes);
    if (few->op_flags == NULL || (graph->storage_asked_bytes != NULL &&
                                  few->storage_asked_bytes == NULL))
        return ms_fail_nomem(fault);
    plan->graph = few;
    plan->stages = NULL; /* how many there are is all that it asks */
    plan->buffers = NULL;
    plan->saved_in = NULL;
    ms_arena_drop(trial, kept->events);
    ms_arena_drop(trial, kept->gap_cause);
    if (plan->wait_at == NULL) { /* one stream holds up no free */
        ms_arena_drop(trial, kept->start_ns);
        ms_arena_drop(trial, kept->end_ns);
        kept->start_ns = kept->end_ns = NULL;
    }
    kept->plan = plan;
    kept->events = NULL;
    kept->gap_cause = NULL;
    kept->n_events = 0;
    *line = kept;
    return MS_OK;
}

/* The first step, where it is of its own: states elsewhere are made before it
 * (DeepSpeed).  Its graph lies in own, and may go. */
static ms_err first_step(const ms_job *job, ms_arena *own, ms_arena *trial,
                         const ms_result *result, const ms_timeline **line,
                         ms_fault *fault)
{
    ms_result first;
    if (!has_pool(job, result) || job->levels ||
        count_steps(job, result) == 1 ||
        result->shape.offload.optimizer != MS_DEVICE_POOL)
        return MS_OK;
    MS_TRY(other_step(job, result, 0, true, own, trial, &first, fault));
    return keep_for_pool(&first, trial, line, fault);
}

/* Lists the kinds of steps: each length once. Without a list of lengths all
 * steps are of one kind. */
static ms_err list_kinds(const ms_job *job, uint32_t steps, ms_arena *trial,
                         ms_result *result, ms_pooled_course *course,
                         ms_fault *fault)
{
    uint32_t n = job->lengths == NULL ? 1 : job->lengths->n;
    n = n < steps ? n : steps;
    ms_pooled_kind *kinds = ms_arena_take(trial, n, sizeof *kinds);
    if (kinds == NULL)
        return ms_fail_nomem(fault);
    course->kinds = kinds;
    course->n = n;
    for (uint32_t i = 0; i < n; i++) {
        ms_training training = result->training;
        ms_lengths_set(job, i, &training);
        kinds[i] = (ms_pooled_kind){.batch = (uint64_t)training.batch,
                                    .sequence = (uint64_t)training.sequence};
    }
    kinds[(steps - 1) % n].line = result->line;
    for (uint32_t i = 0; i < n; i++) {
        ms_result other;
        for (uint32_t j = 0; j < n; j++)
            if (kinds[j].line != NULL && kinds[j].batch == kinds[i].batch &&
                kinds[j].sequence == kinds[i].sequence)
                kinds[i].line = kinds[j].line;
        if (kinds[i].line != NULL)
            continue;
        MS_TRY(other_step(job, result, i, false, trial, trial, &other, fault));
        kinds[i].line = other.line;
    }
    return MS_OK;
}

static ms_err pool_steps(const ms_job *job, ms_arena *trial, ms_result *result,
                         ms_pooled_course *course, ms_fault *fault)
{
    ms_pooled_setup setup;
    MS_TRY(set_pool(job, result, &setup, fault));
    MS_TRY(list_kinds(job, setup.steps, trial, result, course, fault));
    return ms_pooled_run(&setup, course, result->machine, trial, result->line,
                         fault);
}

/* first: the first step, NULL where it is not there yet; it comes before the
 * plan of the one reported, so that the two are not there at once.  keep: where
 * the graph lies, if it may be spent; else NULL. */
static ms_err run_all(const ms_job *job, ms_arena *keep, ms_arena *trial,
                      const ms_timeline *first, ms_result *result,
                      ms_fault *fault)
{
    ms_expand_opts opts;
    ms_pooled_course course = {.first = first};
    ms_arena own = {.limit_bytes = trial->limit_bytes};
    ms_err err = MS_OK;
    MS_TRY(ms_jobprogram_make(job, trial, &opts, result, fault));
    if (first == NULL)
        err = first_step(job, &own, trial, result, &course.first, fault);
    ms_arena_free(&own);
    MS_TRY(err);
    bool spends = keep != NULL && ms_spend_pays(job, result);
    if (spends)
        MS_TRY(ms_spend_early(job, keep, trial, result, fault));
    MS_TRY(ms_expand(result->graph, result->program, &opts, trial, result->plan,
                     fault));
    if (spends)
        MS_TRY(ms_spend_late(keep, trial, result, fault));
    MS_TRY(
        ms_replay(result->plan, result->machine, trial, result->line, fault));
    if (job->levels) {
        result->report = NULL;
        return MS_OK;
    }
    if (has_pool(job, result))
        MS_TRY(pool_steps(job, trial, result, &course, fault));
    return ms_measure(result->line, result->machine, trial, result->report,
                      fault);
}

static ms_err step_behind(const ms_job *job, ms_arena *keep, ms_arena *trial,
                          const ms_timeline *first, ms_result *result,
                          ms_fault *fault)
{
    bool done;
    MS_TRY(ms_microrepeats_step(job, trial, result, &done, fault));
    if (!done)
        MS_TRY(run_all(job, keep, trial, first, result, fault));
    if (result->report != NULL)
        ms_stepaccuracy_find(job, result);
    return MS_OK;
}

ms_err ms_jobway_step(const ms_job *job, ms_arena *trial, ms_result *result,
                      ms_fault *fault)
{
    return step_behind(job, NULL, trial, NULL, result, fault);
}

/* The rank whose experts have most rows is the one reported; an average one
 * waits for it, so that of its time only the work is told. */
static ms_err average_rank(const ms_job *job, ms_arena *trial,
                           ms_result *result, ms_fault *fault)
{
    ms_arena own = {.limit_bytes = trial->limit_bytes};
    ms_result other = *result;
    ms_expand_opts opts;
    ms_report report;
    if (result->report == NULL || result->shape.expert_split == 0 ||
        result->shape.expert_imbalance <= 1)
        return MS_OK;
    other.shape.expert_imbalance = 1;
    ms_err err = ms_jobway_graph(job, &own, &other, fault);
    if (err == MS_OK)
        err = ms_jobprogram_make(job, &own, &opts, &other, fault);
    if (err == MS_OK)
        err = ms_expand(other.graph, other.program, &opts, &own, other.plan,
                        fault);
    if (err == MS_OK)
        err = ms_replay(other.plan, other.machine, &own, other.line, fault);
    if (err == MS_OK)
        err = ms_measure(other.line, other.machine, &own, &report, fault);
    if (err == MS_OK)
        result->report->average = (struct ms_average_rank){
            .peak_bytes = report.ranks[report.worst].peak.allocated_bytes,
            .step_ns = report.ranks[0].time.step_ns};
    ms_arena_free(&own);
    return err;
}

static struct ms_ring_rank ring_row(uint32_t rank, const ms_report *report)
{
    const ms_rank_report *it = &report->ranks[report->worst];
    return (struct ms_ring_rank){
        .rank = rank,
        .peak_bytes = it->peak.allocated_bytes,
        .work_ns = it->time.forward_ns + it->time.backward_ns +
                   it->time.recompute_ns + it->time.optimizer_ns,
        .wait_ns = it->time.exposed_comm_ns};
}

/* The ranks of a ring that deals causal work plain, each lowered and run on its
 * own: a unit has other ops on each, which one plan of all of them would have
 * to tell apart.  Each waits for the last one, which is the one reported, and
 * as long as it: steps are as long. */
#define MOST_RING_RANKS 64u
static ms_err ring_ranks(const ms_job *job, ms_arena *trial, ms_result *result,
                         ms_fault *fault)
{
    const ms_shape *shape = &result->shape;
    uint32_t n = shape->context_ranks;
    if (result->report == NULL || !shape->context_plain ||
        shape->context_asked || job->program != NULL || n < 2 ||
        n > MOST_RING_RANKS)
        return MS_OK;
    struct ms_ring_rank *ring = ms_arena_take(trial, n, sizeof *ring);
    if (ring == NULL)
        return ms_fail_nomem(fault);
    ring[n - 1] = ring_row(n - 1, result->report);
    for (uint32_t r = 0; r < n - 1; r++) {
        ms_arena own = {.limit_bytes = trial->limit_bytes};
        ms_result other = *result;
        other.shape.context_rank = r;
        ms_err err = ms_jobway_graph(job, &own, &other, fault);
        if (err == MS_OK)
            err = step_behind(job, NULL, &own, NULL, &other, fault);
        if (err == MS_OK)
            ring[r] = ring_row(r, other.report);
        ms_arena_free(&own);
        MS_TRY(err);
    }
    result->report->ring = ring;
    result->report->n_ring = n;
    return MS_OK;
}

/* The first step before there is a graph of the one reported, which is as
 * large; NULL: there is none, or it is refused, which is told of the step
 * reported.  Micro-batches that repeat would make it needless. */
static const ms_timeline *first_of_all(const ms_job *job, ms_arena *own,
                                       ms_arena *trial, const ms_result *result)
{
    ms_fault fault = {0};
    const ms_timeline *first = NULL;
    if (result->shape.micro_batches > 1 ||
        first_step(job, own, trial, result, &first, &fault) != MS_OK)
        return NULL;
    return first;
}

ms_err ms_jobway_run(const ms_job *job, ms_arena *keep, ms_arena *trial,
                     ms_result *result, ms_fault *fault)
{
    ms_arena own = {.limit_bytes = trial->limit_bytes};
    *result = (ms_result){0};
    MS_TRY(ms_jobway_read(job, keep, result, fault));
    ms_read_forget_source(&result->model, keep);
    MS_TRY(ms_jobway_shape(job, result, fault));
    const ms_timeline *first = first_of_all(job, &own, trial, result);
    if (result->model.ops == NULL &&
        result->model.nodes == NULL) /* whose columns grow: they do not fit */
        ms_arena_hand_over(&own, keep);
    ms_arena_free(&own);
    MS_TRY(ms_jobway_graph(job, keep, result, fault));
    ms_arena_trim(keep);
    MS_TRY(step_behind(job, keep, trial, first, result, fault));
    MS_TRY(average_rank(job, trial, result, fault));
    return ring_ranks(job, trial, result, fault);
}
