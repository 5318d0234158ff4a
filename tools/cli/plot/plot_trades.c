/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Rows of a sweep, with runs beside them, as trades of memory for time. */

#include "plots/plots.h"
#include "policies/common/policy.h"
#include "tools/cli/plot/plot.h"

#include <math.h>

static ms_err trade_of_row(const ms_plot *plot, const ms_sweep_row *row,
                           ms_trade *trade, ms_fault *fault)
{
    double tokens =
        /* rows have 6 digits */
        row->tokens_per_second * (double)row->step_ns / 1e9;
    *trade = (ms_trade){.name = ms_plot_sweep_name(plot, row),
                        .family = ms_figures_family(row->policy, plot->arena),
                        .peak_bytes = row->peak_allocated_bytes,
                        .step_ns = row->step_ns,
                        .fits = row->fits,
                        .work = (double)row->job_batch,
                        .has_tokens = row->tokens_per_second >= 0.0,
                        .limit = ms_plot_rows_limit(plot, row)};
    if (trade->has_tokens && row->job_batch > 0)
        trade->work *= round(tokens / (double)row->job_batch);
    return trade->name != NULL && trade->family != NULL ? MS_OK
                                                        : ms_fail_nomem(fault);
}

/* The headings: what all rows have in common, and how many have no result. */
static ms_err put_headings(const ms_plot *plot, uint32_t without,
                           ms_drawing *drawing, ms_fault *fault)
{
    ms_text subtitle = {.arena = plot->arena};
    if (plot->runs.n == 0)
        MS_TRY(ms_plot_rows_setup(plot, &subtitle, fault));
    if (without > 0)
        ms_text_add(&subtitle, "%s%u %s no result",
                    subtitle.length > 0 ? "; " : "", without,
                    without == 1 ? "point has" : "points have");
    drawing->subtitle = subtitle.length > 0 ? subtitle.bytes : "";
    if (drawing->title == NULL)
        drawing->title =
            plot->runs.n > 0
                ? "Memory\u2013time trade-off"
                : ms_plot_rows_title(plot, "Memory\u2013time trade-off");
    return subtitle.failed || drawing->title == NULL ? ms_fail_nomem(fault)
                                                     : MS_OK;
}

static ms_err collect(const ms_plot *plot, ms_trade *trades, uint32_t *n,
                      uint32_t *without, ms_fault *fault)
{
    const ms_comparison *runs = &plot->runs;
    *n = *without = 0;
    for (uint32_t i = 0; i < runs->n; i++) {
        const ms_variant *run = &runs->variants[i];
        if (run->refused == NULL)
            MS_TRY(ms_compare_figure_trade(run, plot->arena, &trades[(*n)++],
                                           fault));
        *without += run->refused != NULL;
    }
    for (uint32_t i = 0; i < plot->rows.n; i++) {
        const ms_sweep_row *row = &plot->rows.rows[i];
        if (row->has_numbers)
            MS_TRY(trade_of_row(plot, row, &trades[(*n)++], fault));
        *without += !row->has_numbers;
    }
    if (*n > 0)
        return MS_OK;
    return ms_fail(fault, MS_EINPUT, plot->rows.name,
                   "the column \"message\" says why", "no row has a result");
}

ms_err ms_plot_trades_draw(const ms_plot *plot, ms_fault *fault)
{
    ms_drawing drawing = plot->drawing;
    uint32_t n, without;
    ms_trade *trades =
        ms_arena_take(plot->arena, plot->runs.n + plot->rows.n, sizeof *trades);
    if (trades == NULL)
        return ms_fail_nomem(fault);
    MS_TRY(collect(plot, trades, &n, &without, fault));
    MS_TRY(put_headings(plot, without, &drawing, fault));
    drawing.per_gpu = ms_plot_rows_have_gpus(plot);
    return ms_figure_pareto(trades, n, &drawing, fault);
}
