/* SPDX-License-Identifier: GPL-3.0-or-later */

#include "tools/cli/run/figures.h"
#include "plots/plots.h"
#include "plots/record/record.h"
#include "plots/record/tiles.h"
#include "sim/report.h"
#include "tools/job/job.h"

#include <string.h>

/* ---- of one run ---------------------------------------------------------- */

static ms_err draw_timeline(const ms_record *run, const ms_drawing *drawing,
                            ms_fault *fault)
{
    return ms_figure_timeline(run, run->report.told, drawing, fault);
}

static ms_err draw_gantt(const ms_record *run, const ms_drawing *drawing,
                         ms_fault *fault)
{
    return ms_figure_gantt(run, run->report.told, drawing, fault);
}

static ms_err draw_layers(const ms_record *run, const ms_drawing *drawing,
                          ms_fault *fault)
{
    MS_TRY(ms_record_check(run, fault));
    return ms_figure_layers(run->layers, run->n_layers, drawing, fault);
}

static ms_err draw_ranks(const ms_record *run, const ms_drawing *drawing,
                         ms_fault *fault)
{
    return ms_figure_ranks(&run->report, run->data_ranks, drawing, fault);
}

static ms_err draw_pipeline(const ms_record *run, const ms_drawing *drawing,
                            ms_fault *fault)
{
    return ms_figure_pipeline(&(ms_piped){run, run->policy}, 1, drawing, fault);
}

static ms_err draw_address(const ms_record *run, const ms_drawing *drawing,
                           ms_fault *fault)
{
    MS_TRY(ms_addresses_check(run, fault));
    const ms_tiles *map = run->addresses;
    return ms_figure_address(&map, NULL, 1, drawing, fault);
}

/* ---- as one of several --------------------------------------------------- */

static ms_limit limit_of(const ms_record *run)
{
    return (ms_limit){.device = run->device,
                      .capacity_bytes = run->report.capacity_bytes,
                      .usable_bytes = ms_capacity_usable(&run->report)};
}

ms_bar ms_figures_bar(const ms_record *run, const char *name)
{
    const ms_rank_report *rank = &run->report.ranks[run->report.told];
    ms_bar bar = {.name = name,
                  .allocated_bytes = rank->peak.allocated_bytes,
                  .reserved_bytes = rank->peak.reserved_bytes,
                  .step_ns = rank->time.step_ns,
                  .fits = run->report.fits,
                  .limit = limit_of(run)};
    memcpy(bar.by_category, rank->peak.by_category, sizeof bar.by_category);
    return bar;
}

static ms_err draw_bars(const ms_record *run, const ms_drawing *drawing,
                        ms_fault *fault)
{
    const ms_bar bar = ms_figures_bar(run, run->policy);
    return ms_figure_bars(&bar, 1, drawing, fault);
}

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
    const ms_rank_report *rank = &run->report.ranks[run->report.told];
    *trade = (ms_trade){.name = name,
                        .family = ms_figures_family(run->policy, arena),
                        .peak_bytes = rank->peak.allocated_bytes,
                        .step_ns = rank->time.step_ns,
                        .fits = run->report.fits,
                        .limit = limit_of(run)};
    return trade->family != NULL ? MS_OK : ms_fail_nomem(fault);
}

static ms_err draw_pareto(const ms_record *run, const ms_drawing *drawing,
                          ms_fault *fault)
{
    ms_trade trade;
    MS_TRY(ms_figures_trade(run, run->policy, drawing->arena, &trade, fault));
    return ms_figure_pareto(&trade, 1, drawing, fault);
}

/* ---- kinds --------------------------------------------------------------- */

const ms_figures_kind ms_figures_kinds[] = {
    {"timeline", false, draw_timeline}, {"gantt", true, draw_gantt},
    {"layers", true, draw_layers},      {"ranks", true, draw_ranks},
    {"pipeline", false, draw_pipeline}, {"bars", false, draw_bars},
    {"pareto", false, draw_pareto},     {"address", false, draw_address},
};
const uint32_t ms_figures_n_kinds =
    sizeof ms_figures_kinds / sizeof ms_figures_kinds[0];

bool ms_figures_is_address(const char *kind)
{
    return kind != NULL && strcmp(kind, "address") == 0;
}

bool ms_figures_is_timeline(const char *kind)
{
    return kind == NULL || strcmp(kind, "timeline") == 0;
}

ms_err ms_figures_check(const char *kind, const ms_job *job, ms_fault *fault)
{
    if (!ms_figures_is_address(kind) || job->allocator != NULL)
        return MS_OK;
    return ms_fail(fault, MS_EUSAGE, NULL, "add --allocator torch",
                   "figure address is of a memory pool; the exact one has no "
                   "addresses");
}

const ms_figures_kind *ms_figures_find(const char *name)
{
    uint32_t i = 0;
    while (name != NULL && strcmp(ms_figures_kinds[i].name, name) != 0)
        i++;
    return &ms_figures_kinds[i];
}

ms_err ms_figures_draw(const char *kind, const ms_record *run,
                       const ms_drawing *drawing, ms_fault *fault)
{
    ms_drawing own = *drawing;
    own.per_gpu = run->data_ranks > 1;
    return ms_figures_find(kind)->draw(run, &own, fault);
}
