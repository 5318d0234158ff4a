/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/cli/calibrate/calibrate.h"
#include "tools/terminal/quantity.h"

#include <stdlib.h>
#include <string.h>

/* "2 x 4096 x 1024 by 1024 x 4096, 16 bits" */
static const char *shape_words(const ms_measured *row, ms_arena *arena)
{
    const ms_product_shape *s = &row->shape;
    if (row->kind <= MS_RATE_FP32_PRODUCT) {
        const char *format = row->kind == MS_RATE_FP32_PRODUCT ? "fp32"
                             : row->tf32                       ? "tf32"
                                                               : "16-bit";
        return s->batch > 1
                   ? ms_arena_format(arena, "%.0f of %.0f x %.0f by %.0f, %s",
                                     s->batch, s->m, s->k, s->n, format)
                   : ms_arena_format(arena, "%.0f x %.0f by %.0f, %s", s->m,
                                     s->k, s->n, format);
    }
    if (row->kind <= MS_RATE_EFFICIENT)
        return ms_arena_format(arena, "%.0f heads of %.0f, %.0f to %.6g keys%s",
                               s->batch, s->k, s->m, s->n,
                               row->backward ? ", backward" : "");
    if (row->kind == MS_RATE_ALL_REDUCE)
        return ms_arena_format(arena, "%s, %u ranks",
                               ms_quantity_size((uint64_t)row->bytes).s,
                               row->ranks);
    return ms_arena_format(arena, "%s",
                           ms_quantity_size((uint64_t)row->bytes).s);
}

static int compare_ops(const void *a, const void *b)
{
    const ms_calibrated_op *x = a, *y = b;
    int order =
        (y->recorded_ns > x->recorded_ns) - (y->recorded_ns < x->recorded_ns);
    if (order == 0)
        order = strcmp(x->op, y->op);
    return order != 0 ? order
                      : strcmp(x->shape != NULL ? x->shape : "",
                               y->shape != NULL ? y->shape : "");
}

/* A row of the measurements, without a step around it. */
static ms_err add_measured(ms_calibration *c, const ms_measured *row,
                           ms_arena *arena, ms_fault *fault)
{
    const char *shape = shape_words(row, arena);
    if (shape == NULL)
        return ms_fail_nomem(fault);
    c->ops[c->n_ops++] = (ms_calibrated_op){
        .op = row->op,
        .shape = shape,
        .kind = ms_measured_words[row->kind],
        .calls = row->count,
        .recorded_ns = row->total_ns,
        .predicted_ns = (double)row->count *
                        ms_measured_predict(&c->fit.device, row, false)};
    return MS_OK;
}

/* ---- of a trace ---------------------------------------------------------- */

static int compare_calls(const void *a, const void *b)
{
    const ms_traced_call *x = *(const ms_traced_call *const *)a,
                         *y = *(const ms_traced_call *const *)b;
    int order = (x->shape > y->shape) - (x->shape < y->shape);
    if (order == 0)
        order = x->phase - y->phase;
    return order != 0 ? order : strcmp(x->op, y->op);
}

/* What a call is predicted to take; less than 0: not known. */
static double predict(const ms_calibration *c, const ms_traced_call *call)
{
    if (call->shape == MS_NONE || c->traced.shapes[call->shape].why != NULL)
        return -1;
    return ms_measured_predict(&c->fit.device,
                               &c->traced.shapes[call->shape].row, true);
}

static ms_err add_calls(ms_calibration *c, const ms_traced_call **calls,
                        uint32_t n, ms_arena *arena, ms_fault *fault)
{
    double predicted_ns = predict(c, calls[0]);
    ms_calibrated_phase *phase = &c->phases[calls[0]->phase];
    ms_calibrated_op row = {.op = calls[0]->op,
                            .phase = ms_traced_phases[calls[0]->phase],
                            .calls = n,
                            .predicted_ns =
                                predicted_ns < 0 ? -1 : n * predicted_ns};
    for (uint32_t i = 0; i < n; i++)
        row.recorded_ns += calls[i]->ns;
    phase->calls += n;
    if (predicted_ns < 0) {
        phase->unknown_ns += row.recorded_ns;
    } else {
        const ms_measured *of = &c->traced.shapes[calls[0]->shape].row;
        phase->recorded_ns += row.recorded_ns;
        phase->predicted_ns += row.predicted_ns;
        row.kind = ms_measured_words[of->kind];
        row.shape = shape_words(of, arena);
        if (row.shape == NULL)
            return ms_fail_nomem(fault);
    }
    c->ops[c->n_ops++] = row;
    return MS_OK;
}

static ms_err add_trace(ms_calibration *c, ms_arena *arena, ms_fault *fault)
{
    uint32_t n = c->traced.n_calls;
    const ms_traced_call **calls =
        ms_arena_take(arena, n, sizeof(const ms_traced_call *));
    if (calls == NULL)
        return ms_fail_nomem(fault);
    for (uint32_t i = 0; i < MS_TRACED_N_PHASES; i++)
        c->phases[c->n_phases++].name = ms_traced_phases[i];
    for (uint32_t i = 0; i < n; i++)
        calls[i] = &c->traced.calls[i];
    qsort(calls, n, sizeof(void *), compare_calls);
    for (uint32_t from = 0, to; from < n; from = to) {
        for (to = from + 1;
             to < n && compare_calls(&calls[from], &calls[to]) == 0;)
            to++;
        MS_TRY(add_calls(c, calls + from, to - from, arena, fault));
    }
    return MS_OK;
}

ms_err ms_calibrate_ops(ms_calibration *c, ms_arena *arena, ms_fault *fault)
{
    uint32_t most = c->is_trace ? c->traced.n_calls : c->all.n;
    c->ops = ms_arena_take(arena, most, sizeof *c->ops);
    if (c->ops == NULL)
        return ms_fail_nomem(fault);
    if (c->is_trace)
        MS_TRY(add_trace(c, arena, fault));
    for (uint32_t i = 0; i < c->all.n && !c->is_trace; i++)
        MS_TRY(add_measured(c, &c->all.rows[i], arena, fault));
    qsort(c->ops, c->n_ops, sizeof *c->ops, compare_ops);
    return MS_OK;
}
