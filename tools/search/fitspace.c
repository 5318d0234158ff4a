/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The set-ups that the dimensions make of a job. */

#include "graphs/machines/overheads.h"
#include "policies/common/policy.h"
#include "sim/graph.h"
#include "tools/job/globalbatch.h"
#include "tools/job/job.h"
#include "tools/job/result.h"
#include "tools/options/options.h"
#include "tools/search/fit.h"
#include "tools/terminal/quantity.h"

#include <stdio.h>
#include <string.h>

/* ---- the set-ups --------------------------------------------------------- */

static bool is_plain(const ms_fit_point *point)
{
    for (uint32_t a = 0; a < MS_FIT_N_AXES; a++)
        if (point->option[a] != 0)
            return false;
    return true;
}

/* Do the job's samples divide among the ranks, and those of a rank into its
 * micro-batches? */
static bool divides_samples(const ms_fit *fit, const ms_fit_point *point)
{
    uint32_t degree = ms_fitsetup_degree(fit, point);
    uint32_t k = ms_fitsetup_option(fit, point, MS_FIT_MICROBATCH)->value;
    uint32_t ranks = fit->ranks / degree;
    uint64_t samples = fit->job->global_batch;
    if (samples == 0)
        return true;
    if (fit->ranks % degree != 0 || samples % ranks != 0)
        return false;
    return k == 0 || samples / ranks % k == 0;
}

/* Layers divide among stages as evenly as they can. */
static bool divides_layers(const ms_fit *fit, const ms_fit_point *point)
{
    uint32_t stages = ms_fitsetup_stages(fit, point);
    bool counted, chunks = stages > ms_fitsetup_ranks(fit, point);
    if (point->option[MS_FIT_PIPELINE] == 0)
        return true;
    return stages <= fit->n_blocks &&
           (ms_fitchoices_even(fit->n_blocks, stages, &counted) || !chunks ||
            ms_fitsetup_option(fit, point, MS_FIT_SCHEDULE)->choice->pair);
}

/* Do the GPUs, and the samples of the job, divide among the ranks?  One rank
 * has nobody to share with: of the ways to share one stays.  A pipeline works
 * on samples of a size that is said. */
static bool divides(const ms_fit *fit, const ms_fit_point *point)
{
    uint32_t degree = ms_fitsetup_degree(fit, point), gpus = fit->job->gpus;
    uint32_t tensor = ms_fitsetup_option(fit, point, MS_FIT_TENSOR)->value;
    uint32_t split = (tensor > 0 ? tensor : 1) * ms_fitsetup_ranks(fit, point);
    bool piped = point->option[MS_FIT_PIPELINE] > 0;
    if (degree > 1 && gpus % degree != 0)
        return false;
    if (split == gpus && split > 1 && point->option[MS_FIT_SHARE] > 0)
        return false;
    if (piped && point->option[MS_FIT_MICROBATCH] == 0 &&
        !fit->axes[MS_FIT_MICROBATCH].fixed)
        return false;
    return divides_samples(fit, point) && divides_layers(fit, point);
}

/* The set-ups, like an odometer, the last axis first. */
typedef struct lister {
    const ms_fit *fit;
    ms_fit_point point; /* the options up to the axis at hand */
    /* per axis, option and way to checkpoint: may they stand together? */
    uint8_t *goes[MS_FIT_N_AXES];
    ms_fit_point *list; /* NULL: they are counted */
    uint32_t n;
} lister;

static ms_err find_goes(lister *at, ms_fault *fault)
{
    const ms_fit *fit = at->fit;
    const ms_fit_axis *ways = &fit->axes[MS_FIT_CHECKPOINT];
    for (uint32_t a = 0; a < MS_FIT_N_AXES; a++) {
        const ms_fit_axis *axis = &fit->axes[a];
        at->goes[a] = ms_arena_take(fit->arena, axis->n * ways->n + 1u, 1);
        if (at->goes[a] == NULL)
            return ms_fail_nomem(fault);
        for (uint32_t i = 0; i < axis->n * ways->n; i++) {
            const char *beside = axis->options[i / ways->n].choice->beside;
            const char *label = ways->options[i % ways->n].choice->label;
            at->goes[a][i] = beside == NULL || label == NULL ||
                             ms_options_one_of(beside, label);
        }
    }
    return MS_OK;
}

/* May the option of the axis stand beside the checkpoints, swap and offload? */
static bool stands(const lister *at, uint32_t axis)
{
    const ms_fit_point *point = &at->point;
    uint32_t i = point->option[axis], n = at->fit->axes[MS_FIT_CHECKPOINT].n;
    if (at->fit->axes[axis].options[i].choice->on_device &&
        (point->option[MS_FIT_SWAP] > 0 || point->option[MS_FIT_OFFLOAD] > 0))
        return false;
    return at->goes[axis][i * n + point->option[MS_FIT_CHECKPOINT]];
}

/* May the options up to this axis stand together?  Those before the checkpoints
 * are asked with them. */
static bool stand(const lister *at, uint32_t axis)
{
    if (axis > MS_FIT_CHECKPOINT)
        return stands(at, axis);
    for (uint32_t a = 0; axis == MS_FIT_CHECKPOINT && a <= axis; a++)
        if (!stands(at, a))
            return false;
    return true;
}

#define UNPIPED 1u
#define PIPELINED 2u

/* Where the option of the axis may be: without a pipeline alone, or in one. */
static uint32_t where_of(const lister *at, uint32_t axis)
{
    uint32_t i = at->point.option[axis];
    ms_fit_where where = at->fit->axes[axis].options[i].choice->where;
    uint32_t bits = where == MS_FIT_UNPIPED     ? UNPIPED
                    : where == MS_FIT_PIPELINED ? PIPELINED
                                                : 0;
    if (axis == MS_FIT_PIPELINE)
        bits |= i > 0 ? PIPELINED : UNPIPED;
    return bits;
}

static bool is_legal(const ms_fit *fit, const ms_fit_point *point)
{
    /* Only axes of 32 options at most drop any. */
    for (uint32_t a = 0; a < MS_FIT_N_AXES; a++)
        if (fit->axes[a].dropped != 0 &&
            (fit->axes[a].dropped >> point->option[a] & 1) != 0)
            return is_plain(point);
    return is_plain(point) || divides(fit, point);
}

/* Lists what follows the options of the axes before `axis`, which stand
 * together where they say. */
static void list_from(lister *at, uint32_t axis, uint32_t where)
{
    ms_fit_point *point = &at->point;
    if (axis == MS_FIT_N_AXES) {
        if (!is_legal(at->fit, point))
            return;
        if (at->list != NULL)
            at->list[at->n] = *point;
        at->n++;
        return;
    }
    for (uint32_t i = 0; i < at->fit->axes[axis].n; i++) {
        point->option[axis] = (uint16_t)i;
        uint32_t also = where | where_of(at, axis);
        if (also != (UNPIPED | PIPELINED) && stand(at, axis))
            list_from(at, axis + 1, also);
    }
    point->option[axis] = 0;
}

/* How many of this set-up's steps train as many samples as one step of the
 * largest batch on ranks of which each has samples of its own. Batches are
 * powers of two, the largest is last. */
static uint32_t weight_of(const ms_fit *fit, const ms_fit_point *point)
{
    const ms_fit_axis *batch = &fit->axes[MS_FIT_BATCH];
    uint32_t most = batch->options[batch->n - 1].value;
    uint32_t own = ms_fitsetup_option(fit, point, MS_FIT_BATCH)->value;
    uint32_t degree =
        fit->job->global_batch > 0 ? 1 : ms_fitsetup_degree(fit, point);
    return degree * (most > 1 ? most / (own > 0 ? own : 1) : 1);
}

static ms_err list_points(ms_fit *fit, ms_fault *fault)
{
    lister at = {.fit = fit};
    MS_TRY(find_goes(&at, fault));
    list_from(&at, 0, 0);
    fit->n_all = at.n;
    fit->all = at.list = ms_arena_take(fit->arena, at.n, sizeof *fit->all);
    if (fit->all == NULL)
        return ms_fail_nomem(fault);
    at.n = 0;
    list_from(&at, 0, 0);
    for (uint32_t i = 0; i < fit->n_all; i++)
        fit->all[i].weight = weight_of(fit, &fit->all[i]);
    return MS_OK;
}

/* The blocks as the checkpoint policies count them, or units where the model
 * has no blocks. */
static uint32_t count_blocks(const ms_graph *graph)
{
    uint32_t n = 0;
    if (graph->n_blocks == 0)
        return graph->loss_unit < graph->n_units ? graph->loss_unit
                                                 : graph->n_units;
    for (uint32_t u = 0; u < graph->n_units; u++)
        n += graph->unit_block[u] != MS_NONE &&
             (u == 0 || graph->unit_block[u] != graph->unit_block[u - 1]);
    return n < graph->n_blocks ? n : graph->n_blocks;
}

/* The batch of a rank, where --global-batch gives the job's. Without a policy
 * that shares, all GPUs are taken to share as DDP; where the samples do not
 * divide among so many, groups of them that split the model have them. */
static ms_err find_batch(ms_fit *fit, uint64_t *batch, ms_fault *fault)
{
    ms_job job = *fit->job;
    uint32_t split = 1;
    *batch = 0;
    if (job.global_batch == 0)
        return MS_OK;
    MS_TRY(ms_globalbatch_ranks(&job, &fit->ranks, fault));
    bool alone = fit->ranks == 1 && job.gpus > 1;
    if (alone)
        MS_TRY(ms_spec_parse("ddp", fit->arena, &job.spec, fault));
    MS_TRY(ms_globalbatch_ranks(&job, &fit->ranks, fault));
    while (fit->ranks % (2 * split) == 0 &&
           job.global_batch % (fit->ranks / split) != 0)
        split *= 2;
    if (!alone || split == 1 || job.global_batch % (fit->ranks / split) != 0)
        return ms_globalbatch_divide(&job, batch, fault);
    *batch = job.global_batch / (fit->ranks / split);
    return MS_OK;
}

/* Lowers the model alone: fit needs its sizes before it knows any policy. */
static ms_err look_at_model(ms_fit *fit, ms_fault *fault)
{
    uint64_t batch;
    MS_TRY(find_batch(fit, &batch, fault));
    MS_TRY(ms_fitalone_lower(fit, batch, &fit->model, fault));
    fit->n_blocks = count_blocks(fit->model.graph);
    return MS_OK;
}

/* What the CUDA context and NCCL take at least, in any set-up. The ranks share
 * as the given policies say, else all of them together; a set-up that makes
 * groups has more communicators, and none has fewer than this. */
static ms_err look_outside(ms_fit *fit, ms_fault *fault)
{
    ms_result given = fit->model;
    ms_fault own = {.caret = -1};
    ms_err err = ms_jobway_shape(fit->job, &given, &own);
    MS_TRY(ms_fail_but_refusal(err, &own, fault));
    if (err != MS_OK)
        given.shape = (ms_shape){.data_ranks = fit->job->gpus};
    MS_TRY(ms_overheads_find(fit->job->device, &fit->job->training,
                             &given.shape, given.graph, &fit->outside, fault));
    bool nccl = fit->outside.nccl_bytes > 0;
    fit->context_bytes = fit->outside.kernels_bytes + fit->outside.nccl_bytes +
                         fit->outside.deepep_bytes +
                         fit->outside.userbuffers_bytes;
    if (fit->capacity_bytes > fit->context_bytes)
        return MS_OK;
    return ms_fail(fault, MS_EUSAGE, "--memory", "give more than that",
                   "the CUDA context%s alone take%s %s",
                   nccl ? " and NCCL" : "", nccl ? "" : "s",
                   ms_quantity_size(fit->context_bytes).s);
}

ms_err ms_fitspace_open(ms_fit *fit, ms_fault *fault)
{
    MS_TRY(look_at_model(fit, fault));
    for (uint32_t a = MS_FIT_N_AXES; a-- > 0;) /* ranks before what they do */
        MS_TRY(ms_fitchoices_open(fit, (ms_fit_axis_id)a, fault));
    fit->capacity_bytes = fit->job->memory_bytes > 0
                              ? fit->job->memory_bytes
                              : fit->job->device->memory_bytes;
    MS_TRY(look_outside(fit, fault));
    if (!fit->exhaustive)
        MS_TRY(ms_fitprobe_run(fit, fault));
    return list_points(fit, fault);
}

void ms_fitspace_close(ms_fit *fit)
{
    ms_points_leave(fit->points, &fit->seat);
    fit->model.graph = NULL; /* it was lent */
}
