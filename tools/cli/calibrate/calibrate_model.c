/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Products are told apart by their multiply-adds: those of a model's layers are
 * each other's only where their shapes are, and what is fused around them, or
 * recomputed, changes none. */
#include "sim/graph.h"
#include "tools/cli/calibrate/calibrate.h"
#include "tools/job/job.h"
#include "tools/job/result.h"
#include "tools/job/settings.h"

#include <stdlib.h>
#include <string.h>

#define SAME 1e-3       /* of two FLOPs, relatively */
#define LEAST_PART 0.5  /* of the products' time, for a trace of the model */
#define SCALED_PART 0.9 /* for one of the model, but of other tokens */

/* ---- the model ----------------------------------------------------------- */

/* The FLOPs of products, ascending: but for those of attention, which a kernel
 * may have fused. */
typedef struct products {
    double *flops;
    uint32_t n;
} products;

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static ms_err list_products(const ms_graph *graph, ms_arena *arena,
                            products *all, ms_fault *fault)
{
    *all =
        (products){ms_arena_take(arena, graph->n_ops + 1, sizeof(double)), 0};
    if (all->flops == NULL)
        return ms_fail_nomem(fault);
    for (uint32_t op = 0; op < graph->n_ops; op++)
        if ((graph->op_flags[op] & MS_OP_MATRIX) != 0 &&
            (graph->op_flags[op] & MS_OP_CORE) == 0 &&
            strstr(graph->op_name[op], "attention") == NULL)
            all->flops[all->n++] = graph->op_flops[op];
    qsort(all->flops, all->n, sizeof *all->flops, ascending);
    return MS_OK;
}

static ms_err lower(const ms_arguments *arguments, ms_arena *arena,
                    ms_result *result, ms_fault *fault)
{
    const ms_arguments of = {.given = arguments->given,
                             .n_given = arguments->n_given,
                             .operands = arguments->operands + 1,
                             .n_operands = 1};
    ms_job job;
    MS_TRY(ms_settings_open(&of, arena, &job, fault));
    MS_TRY(ms_jobway_read(&job, arena, result, fault));
    return ms_jobway_lower(&job, arena, result, fault);
}

/* ---- the trace ----------------------------------------------------------- */

static bool is_product(const ms_measured *row)
{
    return row->kind <= MS_RATE_FP32_PRODUCT && row->shape.batch <= 1;
}

static bool has(const products *all, double flops)
{
    uint32_t low = 0, high = all->n;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (all->flops[middle] < flops * (1 - SAME))
            low = middle + 1;
        else
            high = middle;
    }
    return low < all->n && all->flops[low] <= flops * (1 + SAME);
}

/* The part of the time of the trace's products that the model has, if the trace
 * had so many times its tokens; *lacks is the longest that it has not. */
static double match(const ms_calibration *c, const products *all, double times,
                    const ms_measured **lacks)
{
    double whole_ns = 0, matched_ns = 0, longest_ns = 0;
    *lacks = NULL;
    for (uint32_t i = 0; i < c->all.n; i++) {
        const ms_measured *row = &c->all.rows[i];
        if (!is_product(row))
            continue;
        bool found = has(all, row->flops / times);
        whole_ns += row->total_ns;
        matched_ns += found ? row->total_ns : 0;
        if (!found && row->total_ns > longest_ns) {
            *lacks = row;
            longest_ns = row->total_ns;
        }
    }
    return whole_ns > 0 ? matched_ns / whole_ns : -1;
}

/* How many times the model's tokens the trace may have; 0: it is none's. */
static double find_scale(const ms_calibration *c, const products *all,
                         const ms_measured *of)
{
    const ms_measured *lacks;
    for (uint32_t i = 0; i < all->n; i++) {
        double times = of->flops / all->flops[i];
        if ((i == 0 || all->flops[i] > all->flops[i - 1]) &&
            match(c, all, times, &lacks) >= SCALED_PART)
            return times;
    }
    return 0;
}

static ms_err fail_other(const ms_calibration *c, const products *all,
                         const ms_measured *lacks, ms_fault *fault)
{
    const ms_product_shape *s = &lacks->shape;
    double times = find_scale(c, all, lacks);
    if (times > 0)
        return ms_fail(fault, MS_EINPUT, c->file,
                       "say --batch and --sequence as they were recorded",
                       "its products are those of %s with %.6g times the "
                       "tokens of %s",
                       c->model.name, times, c->model.setup);
    return ms_fail(fault, MS_EINPUT, c->file,
                   "name the model that was recorded, with its --batch and "
                   "--sequence; or none",
                   "it was recorded of another model: %.0f %% of its products' "
                   "time is of shapes that %s, %s, does not have, such as %s "
                   "of %.0f x %.0f by %.0f",
                   100 * (1 - c->model.matched), c->model.name, c->model.setup,
                   lacks->op, s->m, s->k, s->n);
}

static double recorded_products(const ms_calibration *c)
{
    double n = 0;
    for (uint32_t i = 0; i < c->all.n; i++)
        n += is_product(&c->all.rows[i]) ? (double)c->all.rows[i].count : 0;
    return c->traced.n_steps > 0 ? n / c->traced.n_steps : 0;
}

/* ---- the command's ------------------------------------------------------- */

/* Settings of a model need one. */
static ms_err check_alone(const ms_arguments *arguments, ms_fault *fault)
{
    for (uint32_t i = 0; i < arguments->n_given; i++) {
        const ms_option *option = arguments->given[i].option;
        if (option->id == MS_OPTION_SETTING || option->id == MS_OPTION_SET)
            return ms_fail(fault, MS_EUSAGE, NULL,
                           "memsim calibrate TRACE MODEL, and its settings",
                           "--%s is of a model, and none is named",
                           option->name);
    }
    return MS_OK;
}

ms_err ms_calibrate_model(const ms_arguments *arguments, ms_arena *arena,
                          ms_calibration *c, ms_fault *fault)
{
    ms_result result = {0};
    products all;
    const ms_measured *lacks;
    if (arguments->n_operands < 2)
        return check_alone(arguments, fault);
    if (!c->is_trace)
        return ms_fail(fault, MS_EUSAGE, c->file, "leave the model out",
                       "shapes and times are of no model");
    MS_TRY(lower(arguments, arena, &result, fault));
    c->model.name = result.model.name;
    c->model.setup = ms_arena_format(arena, "batch %lld x %lld tokens",
                                     (long long)result.training.batch,
                                     (long long)result.training.sequence);
    if (result.graph->tokens <= 0)
        c->model.setup = ms_arena_format(arena, "batch %lld",
                                         (long long)result.training.batch);
    if (c->model.setup == NULL)
        return ms_fail_nomem(fault);
    MS_TRY(list_products(result.graph, arena, &all, fault));
    c->model.products = (uint64_t)all.n * result.shape.micro_batches;
    c->model.recorded = recorded_products(c);
    c->model.matched = match(c, &all, 1, &lacks);
    if (c->model.matched < 0)
        return ms_fail(fault, MS_EINPUT, c->file,
                       "record with record_shapes=True, or name no model",
                       "it has no products whose shapes are told, by which it "
                       "could be held against %s",
                       c->model.name);
    return c->model.matched >= LEAST_PART ? MS_OK
                                          : fail_other(c, &all, lacks, fault);
}
