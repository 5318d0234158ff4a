/* SPDX-License-Identifier: GPL-3.0-or-later */

#include "tools/plot.h"

#include <string.h>

/* ---- one run ------------------------------------------------------------- */

static ms_drawing drawing_of(const ms_plot *plot)
{
    ms_drawing drawing = plot->drawing;
    if (drawing.title == NULL)
        drawing.title = plot->runs[0].title;
    drawing.subtitle = plot->runs[0].subtitle;
    return drawing;
}

ms_err ms_plot_runs_timeline(ms_plot *plot, ms_fault *fault)
{
    ms_drawing drawing = drawing_of(plot);
    return ms_figure_timeline(&plot->runs[0], plot->runs[0].report.worst,
                              &drawing, fault);
}

ms_err ms_plot_runs_gantt(ms_plot *plot, ms_fault *fault)
{
    ms_drawing drawing = drawing_of(plot);
    return ms_figure_gantt(&plot->runs[0], plot->runs[0].report.worst, &drawing,
                           fault);
}

ms_err ms_plot_runs_layers(ms_plot *plot, ms_fault *fault)
{
    ms_drawing drawing = drawing_of(plot);
    return ms_figure_layers(plot->runs[0].layers, plot->runs[0].n_layers,
                            &drawing, fault);
}

ms_err ms_plot_runs_ranks(ms_plot *plot, ms_fault *fault)
{
    ms_drawing drawing = drawing_of(plot);
    return ms_figure_ranks(&plot->runs[0].report, 0, &drawing, fault);
}

/* ---- what runs share, and what tells them apart -------------------------- */

typedef struct shared {
    bool model, device, policy, capacity; /* the same in all runs */
} shared;

static shared find_shared(const ms_plot *plot)
{
    shared same = {true, true, true, true};
    const ms_record *first = &plot->runs[0];
    for (uint32_t i = 1; i < plot->n_runs; i++) {
        const ms_record *run = &plot->runs[i];
        same.model &= strcmp(run->model, first->model) == 0;
        same.device &= strcmp(run->device, first->device) == 0;
        same.policy &= strcmp(run->policy, first->policy) == 0;
        same.capacity &=
            run->report.capacity_bytes == first->report.capacity_bytes &&
            run->report.context_bytes == first->report.context_bytes;
    }
    return same;
}

static const char *base_of(const char *file)
{
    const char *slash = strrchr(file, '/');
    return slash != NULL ? slash + 1 : file;
}

/* Does another run have the same name so far? */
static bool is_double(const ms_plot *plot, uint32_t i, const shared *same)
{
    const ms_record *run = &plot->runs[i];
    for (uint32_t j = 0; j < plot->n_runs; j++)
        if (j != i &&
            (same->model || strcmp(plot->runs[j].model, run->model) == 0) &&
            (same->device || strcmp(plot->runs[j].device, run->device) == 0) &&
            strcmp(plot->runs[j].policy, run->policy) == 0)
            return true;
    return false;
}

/* Model, device and policy where they differ; the file where that is not
 * enough. */
static const char *name_of(const ms_plot *plot, uint32_t i, const shared *same)
{
    const ms_record *run = &plot->runs[i];
    bool twice = is_double(plot, i, same);
    ms_text name = {.arena = plot->arena};
    if (!same->model)
        ms_text_add(&name, "%s", run->model);
    if (!same->device)
        ms_text_add(&name, "%s%s", name.length > 0 ? ", " : "", run->device);
    if (!same->policy || (name.length == 0 && !twice))
        ms_text_add(&name, "%s%s", name.length > 0 ? ", " : "", run->policy);
    if (twice)
        ms_text_add(&name, "%s%s", name.length > 0 ? ", " : "",
                    base_of(plot->files[i]));
    return name.failed ? NULL : name.bytes;
}

/* "gpt3: ...", then what else the runs have in common. */
static ms_err put_headings(const ms_plot *plot, const shared *same,
                           const char *what, ms_drawing *drawing,
                           ms_fault *fault)
{
    ms_text title = {.arena = plot->arena}, subtitle = title;
    *drawing = plot->drawing;
    if (plot->n_runs > 0 && plot->rows.n == 0 && same->model)
        ms_text_add(&title, "%s: %s", plot->runs[0].model, what);
    else
        ms_text_add(&title, "%c%s", what[0] - 'a' + 'A', what + 1);
    if (plot->n_runs > 0 && plot->rows.n == 0 && same->policy)
        ms_text_add(&subtitle, "%s; ", plot->runs[0].policy);
    if (plot->n_runs > 0 && plot->rows.n == 0 && same->device)
        ms_text_add(&subtitle, "%s", plot->runs[0].device);
    if (title.failed || subtitle.failed)
        return ms_fail_nomem(fault);
    if (drawing->title == NULL)
        drawing->title = title.bytes;
    drawing->subtitle = subtitle.bytes;
    return MS_OK;
}

/* Where all runs have the same. */
static void set_capacity(ms_plot *plot, const shared *same)
{
    const ms_report *report = &plot->runs[0].report;
    if (plot->n_runs == 0 || plot->rows.n > 0 || !same->capacity)
        return;
    plot->capacity_bytes = report->capacity_bytes;
    if (report->capacity_bytes > report->context_bytes)
        plot->usable_bytes = report->capacity_bytes - report->context_bytes;
}

/* ---- bars ---------------------------------------------------------------- */

ms_err ms_plot_runs_bars(ms_plot *plot, ms_fault *fault)
{
    shared same = find_shared(plot);
    ms_drawing drawing;
    ms_bar *bars = ms_arena_take(plot->arena, plot->n_runs, sizeof *bars);
    if (bars == NULL)
        return ms_fail_nomem(fault);
    for (uint32_t i = 0; i < plot->n_runs; i++) {
        const ms_report *report = &plot->runs[i].report;
        const ms_rank_report *rank = &report->ranks[report->worst];
        bars[i] = (ms_bar){.name = name_of(plot, i, &same),
                           .allocated_bytes = rank->peak.allocated_bytes,
                           .reserved_bytes = rank->peak.reserved_bytes,
                           .step_ns = rank->time.step_ns,
                           .fits = report->fits};
        memcpy(bars[i].by_category, rank->peak.by_category,
               sizeof bars[i].by_category);
        if (bars[i].name == NULL)
            return ms_fail_nomem(fault);
    }
    set_capacity(plot, &same);
    MS_TRY(put_headings(plot, &same, "memory at the peak", &drawing, fault));
    return ms_figure_bars(bars, plot->n_runs, plot->capacity_bytes,
                          plot->usable_bytes, &drawing, fault);
}

/* ---- pareto -------------------------------------------------------------- */

/* "zero + checkpoint" of "zero:3,dp=8+checkpoint:full", each name once. */
static const char *family_of(const char *policy, ms_arena *arena)
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

static ms_err trade_of_run(const ms_plot *plot, uint32_t i, const shared *same,
                           ms_trade *trade, ms_fault *fault)
{
    const ms_report *report = &plot->runs[i].report;
    const ms_rank_report *rank = &report->ranks[report->worst];
    *trade = (ms_trade){.name = name_of(plot, i, same),
                        .family = family_of(plot->runs[i].policy, plot->arena),
                        .peak_bytes = rank->peak.allocated_bytes,
                        .step_ns = rank->time.step_ns,
                        .fits = report->fits};
    return trade->name != NULL && trade->family != NULL ? MS_OK
                                                        : ms_fail_nomem(fault);
}

static ms_err trade_of_row(const ms_plot *plot, const ms_sweep_row *row,
                           ms_trade *trade, ms_fault *fault)
{
    *trade = (ms_trade){.name = ms_plot_sweep_name(plot, row),
                        .family = family_of(row->policy, plot->arena),
                        .peak_bytes = row->peak_allocated_bytes,
                        .step_ns = row->step_ns,
                        .fits = row->fits};
    return trade->name != NULL && trade->family != NULL ? MS_OK
                                                        : ms_fail_nomem(fault);
}

static ms_err say_left_out(const ms_plot *plot, uint32_t n, ms_drawing *drawing,
                           ms_fault *fault)
{
    const char *before = drawing->subtitle != NULL ? drawing->subtitle : "";
    if (n == 0)
        return MS_OK;
    drawing->subtitle = ms_arena_format(
        plot->arena, "%s%s%u %s no result", before,
        before[0] != '\0' ? "; " : "", n, n == 1 ? "point has" : "points have");
    return drawing->subtitle != NULL ? MS_OK : ms_fail_nomem(fault);
}

ms_err ms_plot_runs_pareto(ms_plot *plot, ms_fault *fault)
{
    shared same = {0};
    ms_drawing drawing;
    uint32_t n = 0, without = 0;
    ms_trade *trades =
        ms_arena_take(plot->arena, plot->n_runs + plot->rows.n, sizeof *trades);
    if (trades == NULL)
        return ms_fail_nomem(fault);
    if (plot->n_runs > 0)
        same = find_shared(plot);
    for (uint32_t i = 0; i < plot->n_runs; i++)
        MS_TRY(trade_of_run(plot, i, &same, &trades[n++], fault));
    for (uint32_t i = 0; i < plot->rows.n; i++) {
        const ms_sweep_row *row = &plot->rows.rows[i];
        if (row->has_numbers)
            MS_TRY(trade_of_row(plot, row, &trades[n++], fault));
        without += !row->has_numbers;
    }
    if (n == 0)
        return ms_fail(fault, MS_EINPUT, plot->rows.name,
                       "the column \"message\" says why",
                       "no row has a result");
    if (plot->n_runs > 0)
        set_capacity(plot, &same);
    MS_TRY(
        put_headings(plot, &same, "memory against step time", &drawing, fault));
    MS_TRY(say_left_out(plot, without, &drawing, fault));
    return ms_figure_pareto(trades, n, plot->capacity_bytes, plot->usable_bytes,
                            &drawing, fault);
}
