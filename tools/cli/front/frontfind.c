/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "sim/graph.h"
#include "sim/names.h"
#include "sim/program.h"
#include "sim/report.h"
#include "sim/schedule/schedule.h"
#include "sim/shape.h"
#include "tools/cli/front/front.h"
#include "tools/job/jobprogram.h"
#include "tools/job/settings.h"
#include "tools/words/words.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Units into which a budget of the curve is cut, by the number of blocks: those
 * of a single plan, which is searched for longer, are finer. */
static const struct {
    uint32_t blocks, slots;
    uint32_t refined; /* how many points are added at most */
} grain[] = {{64, 600, 16}, {24, 1000, 16}, {0, 3000, 16}};
/* Peaks that are closer than this part of what lies between the least and the
 * highest are one budget: what no way changes (states, the loss) has no say. */
#define SAME_PART 400u

typedef struct finder {
    const ms_job *job;
    ms_points *points;
    ms_points_seat seat;
    ms_arena *arena; /* what lasts */
    ms_front *front;
    ms_fault *fault;
} finder;

/* ---- a row --------------------------------------------------------------- */

static ms_err join(const finder *f, const char *spec, ms_job *job)
{
    ms_spec more = {0};
    *job = *f->job;
    job->allocator = NULL;
    job->allocator_given = true;
    MS_TRY(ms_spec_parse(spec, f->arena, &more, f->fault));
    return ms_spec_join(&more, &job->spec, f->fault);
}

static ms_err set_head(finder *f, const ms_job *job, const ms_result *result)
{
    ms_front *front = f->front;
    const ms_report *report = result->report;
    ms_text setup = {.arena = f->arena}, device = setup;
    if (front->model != NULL)
        return MS_OK;
    ms_setupwords_put(result, "x", &setup);
    ms_devicewords_device(job, report, &device);
    ms_text model = {.arena = f->arena};
    ms_text_put(&model, result->model.name, strlen(result->model.name));
    front->model = model.bytes;
    front->device = job->device->name;
    front->setup = setup.bytes;
    front->device_words = device.bytes;
    front->parameters = result->graph->parameters;
    front->capacity_bytes = report->capacity_bytes;
    front->usable_bytes = ms_capacity_usable(report);
    front->gpus = ms_shape_ranks(&result->shape);
    front->work = (double)result->training.batch * result->shape.data_ranks;
    front->has_tokens = report->tokens_per_second >= 0.0;
    if (front->has_tokens)
        front->work *= (double)result->training.sequence;
    return setup.failed || device.failed || model.failed
               ? ms_fail_nomem(f->fault)
               : MS_OK;
}

static void set_numbers(const ms_result *result, ms_front_row *row)
{
    const ms_report *report = result->report;
    const ms_rank_report *rank = &report->ranks[report->told];
    row->status = ms_names_status[report->status];
    row->peak_bytes = rank->peak.allocated_bytes;
    row->step_ns = rank->time.step_ns;
    row->recompute_ns = rank->time.recompute_ns;
    if (result->program == NULL)
        return;
    row->foreseen_peak_bytes = result->program->foreseen.peak_bytes;
    row->foreseen_ns = result->program->foreseen.step_ns;
    if (result->program->foreseen.best != MS_BEST_NONE)
        row->best = ms_names_best[result->program->foreseen.best];
}

/* A refusal of the job is a row that says why. */
static ms_err run(finder *f, ms_front_row *row)
{
    ms_job job;
    ms_result result;
    ms_fault own = {.caret = -1};
    bool folded;
    MS_TRY(join(f, row->name, &job));
    row->policy = ms_spec_print(&job.spec, f->arena);
    if (row->policy == NULL)
        return ms_fail_nomem(f->fault);
    ms_err err =
        row->is_curve
            ? ms_points_step(f->points, &f->seat, &job, &result, &own)
            : ms_points_fold(f->points, &f->seat, &job, &result, &folded, &own);
    if (err == MS_OK) {
        set_numbers(&result, row);
        return set_head(f, &job, &result);
    }
    if (err != MS_EUSAGE && err != MS_EINPUT && err != MS_EINFEASIBLE) {
        *f->fault = own;
        return err;
    }
    row->status =
        err == MS_EINFEASIBLE ? ms_names_status[MS_INFEASIBLE] : "refused";
    row->message = ms_arena_format(f->arena, "%s", own.what);
    return row->message == NULL ? ms_fail_nomem(f->fault) : MS_OK;
}

/* ---- the ways ------------------------------------------------------------ */

/* As policies/checkpoint counts blocks. */
static uint32_t count_blocks(const ms_graph *graph)
{
    return graph->n_blocks > 0 ? graph->n_blocks : graph->loss_unit;
}

/* The blocks of a stage. */
static uint32_t count_own(const ms_graph *graph, const ms_stage *stage)
{
    uint32_t n = 0, before = MS_NONE;
    for (uint32_t u = stage->first; u <= stage->last; u++) {
        uint32_t block = graph->n_blocks > 0 ? graph->unit_block[u] : u;
        n += block != MS_NONE && block != before && u != graph->loss_unit;
        before = block;
    }
    return n;
}

/* The most that are cut together: those of the model, or of the longest stage
 * of its pipeline. */
static ms_err count_together(finder *f, ms_result *result, uint32_t *n)
{
    ms_expand_opts opts;
    ms_schedule schedule;
    *n = count_blocks(result->graph);
    if (result->shape.pipeline_ranks <= 1)
        return MS_OK;
    MS_TRY(
        ms_jobprogram_begin(f->job, &f->seat.arena, &opts, result, f->fault));
    MS_TRY(ms_jobprogram_schedule(f->job, &f->seat.arena, &opts, result,
                                  result->shape.micro_batches, &schedule,
                                  f->fault));
    *n = 0;
    for (uint32_t k = 0; k < schedule.n_stages; k++) {
        uint32_t own = count_own(result->graph, &schedule.stages[k]);
        *n = own > *n ? own : *n;
    }
    return MS_OK;
}

static ms_err run_list(finder *f, const ms_strategy *list, uint32_t n)
{
    f->seat.coming = n;
    for (uint32_t i = 0; i < n; i++) {
        ms_front_row *row = &f->front->rows[f->front->n++];
        *row = (ms_front_row){.name = list[i].spec, .family = list[i].family};
        MS_TRY(run(f, row));
    }
    return MS_OK;
}

/* As they were measured, and by DTR. */
static ms_err run_nodes(finder *f, ms_strategy *list)
{
    static const ms_strategy none = {"checkpoint:none", "none"};
    uint32_t n;
    MS_TRY(run_list(f, &none, 1));
    if (f->front->rows[0].message != NULL)
        return MS_OK;
    MS_TRY(ms_strategies_online(f->front->rows[0].peak_bytes, f->arena, list,
                                &n, f->fault));
    return run_list(f, list, n);
}

static ms_err run_ways(finder *f)
{
    ms_strategy list[MS_FRONT_MOST];
    ms_front *front = f->front;
    ms_result result;
    uint32_t n;
    MS_TRY(ms_points_lower(f->points, &f->seat, f->job, &result, f->fault));
    if (result.graph->nodes) {
        MS_TRY(run_nodes(f, list));
    } else {
        front->n_blocks = count_blocks(result.graph);
        MS_TRY(count_together(f, &result, &n));
        MS_TRY(ms_strategies_list(n, f->arena, list, MS_FRONT_MOST / 2, &n,
                                  f->fault));
        MS_TRY(run_list(f, list, n));
    }
    front->n_ways = front->n;
    f->seat.coming = 0;
    return MS_OK;
}

/* ---- the curve ----------------------------------------------------------- */

static int by_size(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* The peaks of the ways, each once, as far apart as there is room for. */
static uint32_t list_peaks(const ms_front *front, uint64_t *budgets)
{
    uint64_t peaks[MS_FRONT_MOST];
    uint32_t n = 0, kept = 0;
    for (uint32_t i = 0; i < front->n_ways; i++)
        if (front->rows[i].message == NULL)
            peaks[n++] = front->rows[i].peak_bytes;
    qsort(peaks, n, sizeof *peaks, by_size);
    uint64_t span = n > 0 ? peaks[n - 1] - peaks[0] : 0;
    uint64_t least = span / (2 * MS_FRONT_CURVE);
    for (uint32_t i = 0; i < n; i++) {
        bool far =
            kept == 0 || (peaks[i] - budgets[kept - 1] > span / SAME_PART &&
                          peaks[i] - budgets[kept - 1] >= least);
        if (far && kept < MS_FRONT_CURVE)
            budgets[kept++] = peaks[i];
    }
    if (n > 0 && kept > 1)
        budgets[kept - 1] = peaks[n - 1]; /* where all is saved */
    return kept;
}

static int by_peak(const void *a, const void *b)
{
    const ms_front_row *x = a, *y = b;
    if ((x->message == NULL) != (y->message == NULL))
        return x->message == NULL ? -1 : 1;
    if (x->peak_bytes != y->peak_bytes)
        return x->peak_bytes < y->peak_bytes ? -1 : 1;
    if (x->step_ns != y->step_ns)
        return x->step_ns < y->step_ns ? -1 : 1;
    return (x->budget_bytes > y->budget_bytes) -
           (x->budget_bytes < y->budget_bytes);
}

static size_t grain_of(const ms_front *front)
{
    size_t g = 0;
    while (front->n_blocks < grain[g].blocks)
        g++;
    return g;
}

static ms_err run_curve(finder *f, const uint64_t *budgets, uint32_t n)
{
    ms_front *front = f->front;
    uint32_t slots = grain[grain_of(front)].slots;
    for (uint32_t i = 0; i < n && front->n < MS_FRONT_MOST; i++) {
        ms_front_row *row = &front->rows[front->n++];
        *row = (ms_front_row){
            .family = "optimal", .is_curve = true, .budget_bytes = budgets[i]};
        row->name = ms_arena_format(
            f->arena, "checkpoint:optimal,slots=%u,budget=%" PRIu64, slots,
            budgets[i]);
        if (row->name == NULL)
            return ms_fail_nomem(f->fault);
        MS_TRY(run(f, row));
    }
    front->n_curve = front->n - front->n_ways;
    qsort(front->rows + front->n_ways, front->n_curve, sizeof *front->rows,
          by_peak);
    return MS_OK;
}

/* ---- distances ----------------------------------------------------------- */

static void measure(ms_front *front, ms_front_row *row)
{
    const ms_front_row *best = NULL;
    for (uint32_t i = front->n_ways; i < front->n; i++) {
        const ms_front_row *at = &front->rows[i];
        if (at->message != NULL || at->peak_bytes > row->peak_bytes ||
            (best != NULL && at->step_ns >= best->step_ns))
            continue;
        best = at;
        row->against = i + 1;
    }
    if (best == NULL || best->step_ns == 0)
        return;
    row->is_above = true;
    row->more_ns = (int64_t)(row->step_ns - best->step_ns);
    row->more_percent = 100 * (double)row->more_ns / (double)best->step_ns;
}

static void measure_all(ms_front *front)
{
    for (uint32_t i = 0; i < front->n_ways; i++) {
        front->rows[i].against = 0;
        front->rows[i].is_above = false;
        if (front->rows[i].message == NULL)
            measure(front, &front->rows[i]);
    }
}

/* From the least peak of a way to the highest. */
static uint64_t span_of(const ms_front *front)
{
    uint64_t low = UINT64_MAX, high = 0;
    for (uint32_t i = 0; i < front->n_ways; i++) {
        uint64_t peak_bytes = front->rows[i].peak_bytes;
        if (front->rows[i].message != NULL)
            continue;
        low = peak_bytes < low ? peak_bytes : low;
        high = peak_bytes > high ? peak_bytes : high;
    }
    return high > low ? high - low : 0;
}

/* Is there no point of the curve near the row's peak? */
static bool is_far(const ms_front *front, const ms_front_row *row)
{
    uint64_t near = span_of(front) / (8 * SAME_PART);
    for (uint32_t i = front->n_ways; i < front->n; i++) {
        uint64_t budget = front->rows[i].budget_bytes;
        if (budget <= row->peak_bytes && row->peak_bytes - budget <= near)
            return false;
    }
    return true;
}

/* Of a way that beats all points below its peak, none of which is near, the
 * curve says nothing. */
static void leave_out_far(ms_front *front)
{
    for (uint32_t i = 0; i < front->n_ways; i++) {
        ms_front_row *row = &front->rows[i];
        if (!row->is_above || row->more_ns >= 0 || !is_far(front, row))
            continue;
        row->is_above = false;
        row->against = 0;
    }
}

/* Points at the peaks of those ways that beat the curve because it has none
 * there, the farthest first. */
static ms_err refine(finder *f)
{
    ms_front *front = f->front;
    uint32_t most = grain[grain_of(front)].refined;
    for (uint32_t n = 0; n < most; n++) {
        const ms_front_row *worst = NULL;
        measure_all(front);
        for (uint32_t i = 0; i < front->n_ways; i++) {
            const ms_front_row *row = &front->rows[i];
            if (row->message == NULL && row->more_ns < 0 &&
                is_far(front, row) &&
                (worst == NULL || row->more_ns < worst->more_ns))
                worst = row;
        }
        if (worst == NULL)
            break;
        MS_TRY(run_curve(f, &worst->peak_bytes, 1));
    }
    return MS_OK;
}

ms_err ms_frontfind_rows(const ms_job *job, ms_points *points,
                         const uint64_t *budgets, uint32_t n_budgets,
                         ms_arena *arena, ms_front *front, ms_fault *fault)
{
    uint64_t peaks[MS_FRONT_MOST];
    finder f = {.job = job,
                .points = points,
                .arena = arena,
                .front = front,
                .fault = fault};
    ms_err err = run_ways(&f);
    if (err == MS_OK && n_budgets == 0) {
        err = run_curve(&f, peaks, list_peaks(front, peaks));
        if (err == MS_OK)
            err = refine(&f);
    } else if (err == MS_OK)
        err = run_curve(&f, budgets, n_budgets);
    ms_points_leave(points, &f.seat);
    measure_all(front);
    leave_out_far(front);
    return err;
}
