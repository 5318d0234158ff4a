/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What measured steps say of the time and the peak that were told. */
#include "graphs/device.h"
#include "graphs/machines/accuracy.h"
#include "graphs/machines/hostcode.h"
#include "policies/common/policy.h"
#include "sim/graph.h"
#include "sim/plan.h"
#include "sim/report.h"
#include "tools/job/allocator.h"
#include "tools/job/job.h"
#include "tools/job/result.h"

#include <math.h>
#include <string.h>

static bool is_split(const ms_result *result)
{
    const ms_shape *shape = &result->shape;
    return shape->tensor_ranks > 1 || shape->context_ranks > 1 ||
           shape->pipeline_ranks > 1 || shape->expert_split > 0 ||
           result->plan->n_stages > 0;
}

/* The measured runs were of ranks whose states and activations stayed on the
 * device, and whose ops were launched one by one, MLPs as wholes; nothing is
 * known of others. */
static bool is_such(const ms_result *result)
{
    const ms_report *report = result->report;
    bool moves = report->page_faults > 0;
    for (uint32_t r = 0; r < report->n_ranks; r++) {
        const ms_rank_report *rank = &report->ranks[r];
        moves |= rank->h2d_bytes + rank->d2h_bytes + rank->nvme_bytes > 0;
    }
    return !moves && result->training.mode == 0 &&
           result->training.mlp_tiles == 0 &&
           result->training.launch == MS_LAUNCH_EAGER;
}

/* Where hooks were, kernels took longer: what was measured says nothing of a
 * step that waits for its host, which hooks keep. */
static bool waits_for_hooks(const ms_result *result)
{
    const ms_report *report = result->report;
    const ms_times *time = &report->ranks[report->worst].time;
    return ms_hostcode_has_hooks(&result->shape) &&
           2 * time->host_bound_ns > time->step_ns;
}

/* Their memory was that of GPUs, as PyTorch counts it, and of tokens. */
static bool is_such_memory(const ms_job *job, const ms_result *result)
{
    const ms_allocator *pool = job->allocator;
    return result->training.device == 0 && result->graph->tokens > 0 &&
           (pool == NULL || pool->exact || pool->heap.kind == MS_POOL_TORCH);
}

#define ZERO_MEGATRON 1 /* of the words of zero's impl */

static ms_accuracy_library divided_by(const ms_spec *spec)
{
    const ms_policy_value *impl = ms_policy_given(spec, "zero", "impl");
    for (uint32_t i = 0; i < spec->n; i++) {
        const char *name = spec->items[i].policy->name;
        if (strcmp(name, "fsdp") == 0)
            return MS_ACCURACY_FSDP;
        if (strcmp(name, "deepspeed") == 0)
            return MS_ACCURACY_DEEPSPEED;
        if (strcmp(name, "zero") == 0 && impl != NULL &&
            impl->number == ZERO_MEGATRON)
            return MS_ACCURACY_MEGATRON;
        if (strcmp(name, "zero") == 0 || strcmp(name, "ddp") == 0)
            return MS_ACCURACY_OTHER;
    }
    return MS_ACCURACY_ALONE;
}

/* nanotron's runs were of tensor ranks and stages, which had a part of the
 * optimizer's state at most. */
static bool is_nanotrons(const ms_shape *shape)
{
    return shape->context_ranks <= 1 && shape->expert_split == 0 &&
           shape->shared <= MS_SHARED_OPTIMIZER;
}

bool ms_stepaccuracy_kind(const ms_job *job, const ms_result *result,
                          ms_accuracy_peaks *kind)
{
    ms_accuracy_library divided = divided_by(&job->spec);
    bool split = is_split(result);
    *kind = (ms_accuracy_peaks){
        .library = ms_accuracy_whose(result->training.kernels, divided, split),
        .again = result->report->recomputed_ops > 0};
    bool of_kind = kind->library == MS_ACCURACY_NANOTRON
                       ? is_nanotrons(&result->shape)
                   : kind->library == MS_ACCURACY_MEGATRON_SPLIT
                       ? result->shape.shared <= MS_SHARED_OPTIMIZER
                       : !split;
    return of_kind && is_such(result) && is_such_memory(job, result);
}

/* At least 1, as 0 stands for none. */
static uint64_t percent_of(const ms_accuracy *of)
{
    double most = of != NULL ? of->most_percent : 0;
    return of == NULL ? 0 : most < 1 ? 1 : (uint64_t)ceil(most);
}

static void put(ms_result *result)
{
    const ms_accuracy *time = result->accuracy, *peak = result->peak_accuracy;
    for (uint32_t r = 0; r < result->report->n_ranks; r++) {
        ms_rank_report *rank = &result->report->ranks[r];
        rank->time.error_percent = percent_of(time);
        rank->time.measured_runs = time != NULL ? time->runs : 0;
        rank->peak.error_percent = percent_of(peak);
        rank->peak.measured_runs = peak != NULL ? peak->runs : 0;
    }
}

/* Models of images were timed whole alone; a measured chain has times of its
 * own. */
static const ms_accuracy *time_of(const ms_job *job, const ms_result *result)
{
    bool split = is_split(result), has_tokens = result->graph->tokens > 0;
    uint64_t tokens = has_tokens ? (uint64_t)result->training.sequence : 0;
    if (!is_such(result) || waits_for_hooks(result) || (split && !has_tokens) ||
        result->model.measured)
        return NULL;
    return ms_accuracy_time(job->device->name, result->training.kernels,
                            split ? MS_ACCURACY_SPLIT : tokens);
}

void ms_stepaccuracy_find(const ms_job *job, ms_result *result)
{
    ms_accuracy_peaks kind;
    result->accuracy = time_of(job, result);
    result->peak_accuracy = NULL;
    if (ms_stepaccuracy_kind(job, result, &kind))
        result->peak_accuracy = ms_accuracy_peak(kind.library, kind.again != 0);
    put(result);
}
