/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Rows of a sweep, and runs beside them, as trades of memory for time. */

#include "tools/plot.h"

static ms_err trade_of_row(const ms_plot *plot, const ms_sweep_row *row,
                           ms_trade *trade, ms_fault *fault)
{
    *trade = (ms_trade){.name = ms_plot_sweep_name(plot, row),
                        .family = ms_figures_family(row->policy, plot->arena),
                        .peak_bytes = row->peak_allocated_bytes,
                        .step_ns = row->step_ns,
                        .fits = row->fits};
    return trade->name != NULL && trade->family != NULL ? MS_OK
                                                        : ms_fail_nomem(fault);
}

static ms_err say_left_out(const ms_plot *plot, uint32_t n, ms_drawing *drawing,
                           ms_fault *fault)
{
    if (n == 0)
        return MS_OK;
    drawing->subtitle = ms_arena_format(plot->arena, "%u %s no result", n,
                                        n == 1 ? "point has" : "points have");
    return drawing->subtitle != NULL ? MS_OK : ms_fail_nomem(fault);
}

static ms_err collect(const ms_plot *plot, ms_trade *trades, uint32_t *n,
                      uint32_t *without, ms_fault *fault)
{
    const ms_comparison *runs = &plot->runs;
    *n = *without = 0;
    for (uint32_t i = 0; i < runs->n; i++) {
        const ms_variant *run = &runs->variants[i];
        if (run->refused == NULL)
            MS_TRY(ms_figures_trade(&run->record, run->name, plot->arena,
                                    &trades[(*n)++], fault));
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
    if (drawing.title == NULL)
        drawing.title = "Memory\u2013time trade-off";
    MS_TRY(say_left_out(plot, without, &drawing, fault));
    return ms_figure_pareto(trades, n, plot->capacity_bytes, plot->usable_bytes,
                            &drawing, fault);
}
