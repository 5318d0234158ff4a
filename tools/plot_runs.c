/* SPDX-License-Identifier: GPL-3.0-or-later */

#include "tools/plot.h"

#include <string.h>

/* ---- what runs share, and what tells them apart -------------------------- */

typedef struct shared {
    bool model, device, policy; /* the same in all runs */
} shared;

static shared find_shared(const ms_plot *plot)
{
    shared same = {true, true, true};
    const ms_record *first = &plot->runs[0];
    for (uint32_t i = 1; i < plot->n_runs; i++) {
        const ms_record *run = &plot->runs[i];
        same.model &= strcmp(run->model, first->model) == 0;
        same.device &= strcmp(run->device, first->device) == 0;
        same.policy &= strcmp(run->policy, first->policy) == 0;
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

static ms_err name_all(const ms_plot *plot, const shared *same,
                       const char ***names, ms_fault *fault)
{
    *names = ms_arena_take(plot->arena, plot->n_runs + 1, sizeof **names);
    for (uint32_t i = 0; *names != NULL && i < plot->n_runs; i++) {
        (*names)[i] = name_of(plot, i, same);
        if ((*names)[i] == NULL)
            return ms_fail_nomem(fault);
    }
    return *names != NULL ? MS_OK : ms_fail_nomem(fault);
}

/* ---- headings ------------------------------------------------------------ */

/* The i-th part of a subtitle, between its semicolons; *length 0: none. */
static const char *part_of(const char *subtitle, uint32_t i, size_t *length)
{
    const char *at = subtitle != NULL ? subtitle : "";
    for (; i > 0 && *at != '\0'; i--) {
        at += strcspn(at, ";");
        at += strspn(at, "; ");
    }
    *length = strcspn(at, ";");
    return at;
}

/* What the subtitles of all runs say alike: "batch 8 x 1024 tokens, ...". */
static void put_common(const ms_plot *plot, ms_text *text)
{
    size_t length = 1, other;
    for (uint32_t i = 0; length > 0; i++) {
        const char *part = part_of(plot->runs[0].subtitle, i, &length);
        bool same = length > 0;
        for (uint32_t k = 1; k < plot->n_runs && same; k++) {
            const char *its = part_of(plot->runs[k].subtitle, i, &other);
            same = other == length && memcmp(its, part, length) == 0;
        }
        if (same)
            ms_text_add(text, "%s%.*s", text->length > 0 ? "; " : "",
                        (int)length, part);
    }
}

/* "gpt3: ...", then what else the runs have in common. */
static ms_err put_headings(const ms_plot *plot, const shared *same,
                           const char *what, ms_drawing *drawing,
                           ms_fault *fault)
{
    ms_text title = {.arena = plot->arena}, subtitle = title;
    if (same->model)
        ms_text_add(&title, "%s: %s", plot->runs[0].model, what);
    else
        ms_text_add(&title, "%c%s", what[0] - 'a' + 'A', what + 1);
    if (same->policy)
        ms_text_add(&subtitle, "%s", plot->runs[0].policy);
    put_common(plot, &subtitle);
    if (title.failed || subtitle.failed)
        return ms_fail_nomem(fault);
    if (drawing->title == NULL)
        drawing->title = title.bytes;
    drawing->subtitle = subtitle.bytes;
    return MS_OK;
}

/* ---- figures ------------------------------------------------------------- */

static const char *what_of(const char *kind)
{
    return strcmp(kind, "bars") == 0 ? "memory at the peak"
                                     : "memory against step time";
}

ms_err ms_plot_runs_draw(const ms_plot *plot, const char *kind, ms_fault *fault)
{
    shared same = find_shared(plot);
    ms_drawing drawing = plot->drawing;
    const char **names;
    MS_TRY(name_all(plot, &same, &names, fault));
    if (plot->n_runs > 1)
        MS_TRY(put_headings(plot, &same, what_of(kind), &drawing, fault));
    if (drawing.title == NULL)
        drawing.title = plot->runs[0].title;
    if (plot->n_runs == 1)
        drawing.subtitle = plot->runs[0].subtitle;
    return ms_figures_draw(kind, plot->runs, names, plot->n_runs, &drawing,
                           fault);
}

/* ---- with rows of a sweep ------------------------------------------------ */

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
    const char **names;
    shared none = {0}; /* rows say nothing of model and device */
    MS_TRY(name_all(plot, &none, &names, fault));
    *n = *without = 0;
    for (uint32_t i = 0; i < plot->n_runs; i++)
        MS_TRY(ms_figures_trade(&plot->runs[i], names[i], plot->arena,
                                &trades[(*n)++], fault));
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

ms_err ms_plot_runs_pareto(const ms_plot *plot, ms_fault *fault)
{
    ms_drawing drawing = plot->drawing;
    uint32_t n, without;
    ms_trade *trades =
        ms_arena_take(plot->arena, plot->n_runs + plot->rows.n, sizeof *trades);
    if (trades == NULL)
        return ms_fail_nomem(fault);
    MS_TRY(collect(plot, trades, &n, &without, fault));
    if (drawing.title == NULL)
        drawing.title = "Memory against step time";
    MS_TRY(say_left_out(plot, without, &drawing, fault));
    return ms_figure_pareto(trades, n, plot->capacity_bytes, plot->usable_bytes,
                            &drawing, fault);
}
