/* SPDX-License-Identifier: GPL-3.0-or-later */

#include "tools/figures.h"

#include <string.h>

static ms_err draw_timeline(const ms_record *runs, const char *const *names,
                            uint32_t n, const ms_drawing *drawing,
                            ms_fault *fault)
{
    (void)names, (void)n;
    return ms_figure_timeline(runs, runs->report.worst, drawing, fault);
}

static ms_err draw_gantt(const ms_record *runs, const char *const *names,
                         uint32_t n, const ms_drawing *drawing, ms_fault *fault)
{
    (void)names, (void)n;
    return ms_figure_gantt(runs, runs->report.worst, drawing, fault);
}

static ms_err draw_layers(const ms_record *runs, const char *const *names,
                          uint32_t n, const ms_drawing *drawing,
                          ms_fault *fault)
{
    (void)names, (void)n;
    MS_TRY(ms_record_check(runs, fault));
    return ms_figure_layers(runs->layers, runs->n_layers, drawing, fault);
}

static ms_err draw_ranks(const ms_record *runs, const char *const *names,
                         uint32_t n, const ms_drawing *drawing, ms_fault *fault)
{
    (void)names, (void)n;
    return ms_figure_ranks(&runs->report, runs->data_ranks, drawing, fault);
}

/* The capacity is drawn where all have the same. */
static ms_err draw_bars(const ms_record *runs, const char *const *names,
                        uint32_t n, const ms_drawing *drawing, ms_fault *fault)
{
    uint64_t capacity_bytes = runs[0].report.capacity_bytes;
    uint64_t context_bytes = runs[0].report.context_bytes;
    ms_bar *bars = ms_arena_take(drawing->arena, n, sizeof *bars);
    if (bars == NULL)
        return ms_fail_nomem(fault);
    for (uint32_t i = 0; i < n; i++) {
        const ms_report *report = &runs[i].report;
        const ms_rank_report *rank = &report->ranks[report->worst];
        bars[i] = (ms_bar){.name = names != NULL ? names[i] : runs[i].policy,
                           .allocated_bytes = rank->peak.allocated_bytes,
                           .reserved_bytes = rank->peak.reserved_bytes,
                           .step_ns = rank->time.step_ns,
                           .fits = report->fits};
        memcpy(bars[i].by_category, rank->peak.by_category,
               sizeof bars[i].by_category);
        if (report->capacity_bytes != capacity_bytes ||
            report->context_bytes != context_bytes)
            capacity_bytes = context_bytes = 0;
    }
    return ms_figure_bars(
        bars, n, capacity_bytes,
        capacity_bytes > context_bytes ? capacity_bytes - context_bytes : 0,
        drawing, fault);
}

const ms_figures_kind ms_figures_kinds[] = {
    {"timeline", true, draw_timeline}, {"gantt", true, draw_gantt},
    {"layers", true, draw_layers},     {"ranks", true, draw_ranks},
    {"bars", false, draw_bars},
};
const uint32_t ms_figures_n_kinds =
    sizeof ms_figures_kinds / sizeof ms_figures_kinds[0];

ms_err ms_figures_draw(const char *kind, const ms_record *runs,
                       const char *const *names, uint32_t n,
                       const ms_drawing *drawing, ms_fault *fault)
{
    uint32_t i = 0;
    while (kind != NULL && strcmp(ms_figures_kinds[i].name, kind) != 0)
        i++;
    if (ms_figures_kinds[i].of_one && n > 1)
        return ms_fail(fault, MS_EUSAGE, NULL,
                       "give it one, or draw --figure bars",
                       "figure %s is of one run; there are %u", kind, n);
    return ms_figures_kinds[i].draw(runs, names, n, drawing, fault);
}
