/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "graphs/layers/experts/experteach.h"
#include "graphs/layers/experts/experts.h"
#include "graphs/layers/layers.h"
#include "graphs/parallel/expertops.h"
#include "graphs/trace/columns.h"
#include "graphs/trace/trace.h"

static uint32_t parameter(ms_trace *trace, int64_t expert, const char *role,
                          uint32_t n_dims, const int64_t *dims)
{
    const char *name = ms_arena_format(trace->arena, "experts.%lld.%s",
                                       (long long)expert, role);
    if (name == NULL && !trace->err)
        trace->err = ms_fail_nomem(trace->fault);
    ms_expertops_make_parts(trace, true);
    uint32_t t =
        trace->err ? MS_NONE : ms_trace_parameter(trace, name, n_dims, dims);
    ms_expertops_make_parts(trace, false);
    return t;
}

static uint32_t product(ms_trace *trace, const ms_experteach *how,
                        int64_t expert, bool second, uint32_t x, int64_t out)
{
    const int64_t dims[2] = {out, ms_layers_last_dim(trace, x)};
    uint32_t weight =
        parameter(trace, expert, second ? "weight2" : "weight1", 2, dims);
    uint32_t bias = how->biased ? parameter(trace, expert,
                                            second ? "bias2" : "bias1", 1, dims)
                                : MS_NONE;
    return ms_matmul_linear(trace, x, weight, bias);
}

static uint32_t run_expert(ms_trace *trace, const ms_experteach *how,
                           int64_t expert, uint32_t x, uint32_t probabilities)
{
    if (trace->err)
        return MS_NONE;
    int64_t width = ms_layers_last_dim(trace, x);
    uint32_t y = product(trace, how, expert, false, x,
                         how->hidden * (how->gated ? 2 : 1));
    y = ms_experts_activate(trace, how->gated, y, probabilities);
    if (trace->err)
        return MS_NONE;
    return ms_trace_rebind(trace, y,
                           product(trace, how, expert, true, y, width));
}

static void split_rows(ms_trace *trace, uint32_t x, uint32_t n,
                       uint32_t *pieces)
{
    if (trace->err)
        return;
    int64_t rows = ms_trace_at(trace, x)->size[0];
    int64_t *sizes = ms_columns_take(trace, n, sizeof *sizes);
    if (sizes == NULL)
        return;
    for (uint32_t e = 0; e < n; e++)
        sizes[e] = rows / n + (e < rows % n ? 1 : 0);
    ms_split_sizes(trace, x, 0, n, sizes, pieces);
}

/* The list of outputs ends with the function, when they have been joined. */
uint32_t ms_experteach_run(ms_trace *trace, const ms_experteach *how,
                           uint32_t x, uint32_t probabilities)
{
    uint32_t n = (uint32_t)how->experts;
    bool weighted = probabilities != MS_NONE;
    if (n == 1)
        return run_expert(trace, how, 0, x, probabilities);
    uint32_t *rows = ms_columns_take(trace, n, sizeof *rows);
    uint32_t *shares = ms_columns_take(trace, n, sizeof *shares);
    uint32_t *outputs = ms_columns_take(trace, n, sizeof *outputs);
    if (rows == NULL || shares == NULL || outputs == NULL)
        return MS_NONE;
    split_rows(trace, x, n, rows);
    if (weighted)
        split_rows(trace, probabilities, n, shares);
    for (uint32_t e = 0; e < n; e++)
        outputs[e] =
            run_expert(trace, how, e, rows[e], weighted ? shares[e] : MS_NONE);
    uint32_t y = ms_view_cat(trace, outputs, n, 0);
    ms_split_drop(trace, n, outputs);
    ms_split_drop(trace, n, rows);
    if (weighted)
        ms_split_drop(trace, n, shares);
    return y;
}
