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

/* The capacity is drawn where all have the same; 0: it is not. */
static void find_capacity(const ms_record *runs, uint32_t n,
                          uint64_t *capacity_bytes, uint64_t *usable_bytes)
{
    uint64_t context_bytes = runs[0].report.context_bytes;
    *capacity_bytes = runs[0].report.capacity_bytes;
    for (uint32_t i = 1; i < n; i++)
        if (runs[i].report.capacity_bytes != *capacity_bytes ||
            runs[i].report.context_bytes != context_bytes)
            *capacity_bytes = context_bytes = 0;
    *usable_bytes =
        *capacity_bytes > context_bytes ? *capacity_bytes - context_bytes : 0;
}

static ms_err draw_bars(const ms_record *runs, const char *const *names,
                        uint32_t n, const ms_drawing *drawing, ms_fault *fault)
{
    uint64_t capacity_bytes, usable_bytes;
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
    }
    find_capacity(runs, n, &capacity_bytes, &usable_bytes);
    return ms_figure_bars(bars, n, capacity_bytes, usable_bytes, drawing,
                          fault);
}

/* ---- trades -------------------------------------------------------------- */

const char *ms_figures_family(const char *policy, ms_arena *arena)
{
    ms_text family = {.arena = arena};
    const char *names[8];
    size_t lengths[8];
    uint32_t n = 0;
    if (strcmp(policy, "none") == 0)
        return "no policy";
    for (const char *at = policy; *at != '\0';) {
        size_t length = strcspn(at, ":+"), whole = strcspn(at, "+");
        bool known = n == 8;
        for (uint32_t i = 0; i < n; i++)
            known |= lengths[i] == length && memcmp(names[i], at, length) == 0;
        if (!known) {
            ms_text_add(&family, "%s%.*s", n > 0 ? " + " : "", (int)length, at);
            names[n] = at;
            lengths[n++] = length;
        }
        at += whole + (at[whole] == '+');
    }
    return family.failed ? NULL : family.bytes != NULL ? family.bytes : policy;
}

ms_err ms_figures_trade(const ms_record *run, const char *name, ms_arena *arena,
                        ms_trade *trade, ms_fault *fault)
{
    const ms_rank_report *rank = &run->report.ranks[run->report.worst];
    *trade = (ms_trade){.name = name,
                        .family = ms_figures_family(run->policy, arena),
                        .peak_bytes = rank->peak.allocated_bytes,
                        .step_ns = rank->time.step_ns,
                        .fits = run->report.fits};
    return trade->family != NULL ? MS_OK : ms_fail_nomem(fault);
}

static ms_err draw_pareto(const ms_record *runs, const char *const *names,
                          uint32_t n, const ms_drawing *drawing,
                          ms_fault *fault)
{
    uint64_t capacity_bytes, usable_bytes;
    ms_trade *trades = ms_arena_take(drawing->arena, n, sizeof *trades);
    if (trades == NULL)
        return ms_fail_nomem(fault);
    for (uint32_t i = 0; i < n; i++)
        MS_TRY(ms_figures_trade(&runs[i],
                                names != NULL ? names[i] : runs[i].policy,
                                drawing->arena, &trades[i], fault));
    find_capacity(runs, n, &capacity_bytes, &usable_bytes);
    return ms_figure_pareto(trades, n, capacity_bytes, usable_bytes, drawing,
                            fault);
}

/* ---- kinds --------------------------------------------------------------- */

const ms_figures_kind ms_figures_kinds[] = {
    {"timeline", true, draw_timeline}, {"gantt", true, draw_gantt},
    {"layers", true, draw_layers},     {"ranks", true, draw_ranks},
    {"bars", false, draw_bars},        {"pareto", false, draw_pareto},
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
                       "give it one, or draw --figure bars or pareto",
                       "figure %s is of one run; there are %u", kind, n);
    return ms_figures_kinds[i].draw(runs, names, n, drawing, fault);
}
