/* SPDX-License-Identifier: GPL-3.0-or-later */
/* memsim plot: figures from saved results. */

#include "tools/cli/plot/plot.h"
#include "graphs/json/json.h"
#include "graphs/model.h"
#include "plots/plots.h"
#include "plots/record/record.h"
#include "sim/base/files.h"
#include "tools/cli/commands.h"
#include "tools/job/job.h"
#include "tools/job/outputs.h"
#include "tools/job/settings.h"
#include "tools/options/options.h"
#include "tools/terminal/screen.h"

#include <string.h>

/* ---- files --------------------------------------------------------------- */

static ms_err read_front(ms_plot *plot, const ms_quote *text, ms_fault *fault)
{
    plot->front = ms_arena_take(plot->arena, 1, sizeof *plot->front);
    return plot->front == NULL
               ? ms_fail_nomem(fault)
               : ms_front_keys_read(text, plot->arena, plot->front, fault);
}

static ms_err read_file(ms_plot *plot, const char *path, ms_fault *fault)
{
    char *bytes;
    size_t length;
    const char *name = strcmp(path, "-") == 0 ? "standard input" : path;
    MS_TRY(ms_files_read(path, MS_JSON_MAX_BYTES, plot->arena, &bytes, &length,
                         fault));
    ms_quote text = {name, bytes, length, 0};
    bool are_rows, is_front;
    MS_TRY(ms_rows_are(&text, plot->arena, &are_rows, fault));
    if (are_rows)
        return ms_rows_read(&text, plot->arena, &plot->rows, fault);
    MS_TRY(ms_front_keys_are(&text, plot->arena, &is_front, fault));
    if (is_front && plot->arguments->n_operands == 1)
        return read_front(plot, &text, fault);
    return ms_variants_read_text(&text, plot->arena, &plot->runs, fault);
}

/* In a figure with rows of a sweep, which name no model, a run is named by its
 * file. */
static ms_err name_runs(ms_plot *plot, ms_fault *fault)
{
    ms_comparison *runs = &plot->runs;
    if (runs->n == 0)
        return MS_OK;
    MS_TRY(ms_variants_base(runs, fault));
    if (plot->rows.n == 0)
        MS_TRY(ms_variants_read_names(plot->arena, runs, fault));
    for (uint32_t i = 0; i < runs->n && plot->rows.n > 0; i++)
        runs->variants[i].name = runs->variants[i].file;
    if (runs->n == 1 && ms_options_value(plot->arguments, MS_OPTION_LABEL))
        runs->variants[0].record.policy =
            ms_options_value(plot->arguments, MS_OPTION_LABEL);
    return ms_variants_named_label(plot->arguments, runs, fault);
}

static ms_err read_files(ms_plot *plot, ms_fault *fault)
{
    const ms_arguments *arguments = plot->arguments;
    for (uint32_t i = 0; i < arguments->n_operands; i++) {
        for (uint32_t j = 0; j < i; j++)
            if (strcmp(arguments->operands[i], arguments->operands[j]) == 0)
                return ms_fail(fault, MS_EUSAGE, arguments->operands[i],
                               "name each file once", "is named twice");
        MS_TRY(read_file(plot, arguments->operands[i], fault));
    }
    if (plot->front != NULL)
        return MS_OK;
    MS_TRY(ms_plot_rows_part(plot, fault));
    if (plot->runs.n > 0 || plot->rows.n > 0)
        return name_runs(plot, fault);
    const char *first = arguments->operands[0];
    return ms_fail(fault, MS_EINPUT,
                   strcmp(first, "-") == 0 ? "standard input" : first,
                   "did memsim sweep get as far as its first point?",
                   "there are no results, only a header");
}

/* ---- the figure
 * -------------------------------------------------------------- */

/* An option that only curves take asks for a curve. */
static const char *default_kind(const ms_plot *plot)
{
    if (ms_options_value(plot->arguments, MS_OPTION_AXIS) != NULL ||
        ms_options_value(plot->arguments, MS_OPTION_VALUE) != NULL ||
        ms_options_value(plot->arguments, MS_OPTION_SERIES) != NULL)
        return "curve";
    if (plot->front != NULL)
        return "front";
    if (plot->rows.n == 0)
        return plot->runs.n == 1 ? "timeline" : "bars";
    return plot->runs.n == 0 && ms_plot_sweep_has_curve(plot) ? "curve"
                                                              : "pareto";
}

static bool is(const char *kind, const char *name)
{
    return strcmp(kind, name) == 0;
}

/* The number of runs. */
static uint32_t count_runs(const ms_plot *plot)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < plot->runs.n; i++)
        n += plot->runs.variants[i].refused == NULL;
    return n;
}

/* Says what is missing for a kind that rows of a sweep cannot give, or that
 * only they can. */
static ms_err check_kind(const ms_plot *plot, const char *kind, ms_fault *fault)
{
    if (is(kind, "front") != (plot->front != NULL))
        return ms_fail(
            fault, MS_EUSAGE, NULL,
            plot->front == NULL ? "save them with: memsim compare MODEL "
                                  "--checkpoint-all --json >FILE"
                                : "leave --figure out",
            plot->front == NULL
                ? "figure front is of every way to checkpoint"
                : "figure %s cannot be drawn from ways to checkpoint",
            kind);
    if (is(kind, "front"))
        return MS_OK;
    if (is(kind, "curve") && (plot->rows.n == 0 || plot->runs.n > 0))
        return ms_fail(fault, MS_EUSAGE, NULL,
                       "make them, e.g.: memsim sweep MODEL --grid "
                       "'batch=1..64*2' -o rows.csv",
                       "figure %s is of the rows of a sweep alone", kind);
    if (is(kind, "curve") || is(kind, "pareto"))
        return MS_OK;
    if (plot->rows.n == 0 && ms_figures_find(kind)->alone &&
        count_runs(plot) > 1)
        return ms_fail(fault, MS_EUSAGE, NULL,
                       "give it one, or draw --figure bars, pareto or timeline",
                       "figure %s is of one run; there are %u", kind,
                       count_runs(plot));
    if (plot->rows.n == 0)
        return MS_OK;
    return ms_fail(fault, MS_EUSAGE, NULL,
                   "draw --figure curve or pareto, or save a run: memsim run "
                   "MODEL --json >run.json",
                   "figure %s cannot be drawn from rows of a sweep", kind);
}

/* Refuses options that the kind of figure does not take. */
static ms_err check_options(const ms_plot *plot, const char *kind,
                            ms_fault *fault)
{
    static const ms_option_id of_curve[] = {MS_OPTION_AXIS, MS_OPTION_VALUE,
                                            MS_OPTION_SERIES};
    for (uint32_t i = 0; i < plot->arguments->n_given; i++) {
        const ms_option *option = plot->arguments->given[i].option;
        for (size_t k = 0; k < sizeof of_curve / sizeof *of_curve; k++)
            if (option->id == of_curve[k] && strcmp(kind, "curve") != 0)
                return ms_fail(fault, MS_EUSAGE, NULL, "add --figure curve",
                               "option \"--%s\" is for curves; this is a %s",
                               option->name, kind);
        if (option->id == MS_OPTION_RANK &&
            (plot->runs.n != 1 || plot->rows.n > 0))
            return ms_fail(fault, MS_EUSAGE, NULL,
                           "leave it out, or draw one run",
                           "option \"--rank\" is for a figure of one run");
        if (option->id == MS_OPTION_LABEL && plot->runs.n == 0 &&
            strcmp(kind, "curve") != 0)
            return ms_fail(fault, MS_EUSAGE, NULL,
                           "draw --figure curve, or leave it out",
                           "option \"--label\" names runs or lines; points of "
                           "a sweep have names of their own");
        if ((option->id == MS_OPTION_MEMORY ||
             option->id == MS_OPTION_DEVICE) &&
            (plot->runs.n > 0 || plot->front != NULL))
            return ms_fail(fault, MS_EUSAGE, NULL, "leave it out",
                           "option \"--%s\" is for rows of a sweep; a result "
                           "knows its capacity",
                           option->name);
    }
    return MS_OK;
}

/* Of ranks that a result was not told of, layers and addresses are not kept,
 * nor the step without policies. */
static ms_err turn_to_rank(const ms_plot *plot, const char *kind,
                           ms_record *run, ms_fault *fault)
{
    uint16_t before = run->report.told;
    MS_TRY(ms_outputs_rank(plot->arguments, &run->report, fault));
    if (run->report.told == before)
        return MS_OK;
    run->without = NULL;
    if (!is(kind, "layers") && !is(kind, "address"))
        return MS_OK;
    return ms_fail(fault, MS_EUSAGE, "--rank",
                   "save it of that rank: memsim run MODEL --rank R --json",
                   "the result has %s of rank %u only",
                   is(kind, "layers") ? "layers" : "addresses",
                   run->report.ranks[before].rank);
}

/* Draws the one run, or all of them. */
static ms_err draw_runs(const ms_plot *plot, const char *kind, ms_fault *fault)
{
    const ms_comparison *runs = &plot->runs;
    const ms_record *run = &runs->variants[runs->base].record;
    ms_drawing drawing = plot->drawing;
    if (runs->n > 1 && !ms_figures_find(kind)->alone)
        return ms_compare_figure_draw(runs, kind, &drawing, fault);
    ms_record other = *run;
    MS_TRY(turn_to_rank(plot, kind, &other, fault));
    run = &other;
    if (drawing.title == NULL)
        drawing.title = run->title;
    drawing.subtitle = run->subtitle;
    return ms_figures_draw(kind, run, &drawing, fault);
}

static ms_err draw(const ms_plot *plot, ms_fault *fault)
{
    const char *kind = ms_options_value(plot->arguments, MS_OPTION_FIGURE);
    if (kind == NULL)
        kind = default_kind(plot);
    MS_TRY(check_kind(plot, kind, fault));
    MS_TRY(check_options(plot, kind, fault));
    if (ms_outputs_is_stdout(plot->drawing.path))
        ms_screen_end_with_reader();
    if (plot->front != NULL)
        return ms_front_figure_draw(plot->front, &plot->drawing, fault);
    if (is(kind, "curve"))
        return ms_plot_sweep_curve(plot, fault);
    return plot->rows.n > 0 ? ms_plot_trades_draw(plot, fault)
                            : draw_runs(plot, kind, fault);
}

/* ---- where it goes ------------------------------------------------------- */

static ms_err read_outputs(ms_plot *plot, ms_fault *fault)
{
    const ms_arguments *arguments = plot->arguments;
    ms_format format;
    const char *path = ms_options_value(arguments, MS_OPTION_OUTPUT);
    plot->drawing =
        (ms_drawing){.title = ms_options_value(arguments, MS_OPTION_TITLE),
                     .path = path != NULL ? path : "memsim.svg",
                     .arena = plot->arena};
    MS_TRY(ms_gnuplot_format(plot->drawing.path, &format, fault));
    if (ms_options_value(arguments, MS_OPTION_KEEP_SCRIPT) != NULL) {
        if (ms_outputs_is_stdout(plot->drawing.path))
            return ms_fail(fault, MS_EUSAGE, NULL, "name a file with -o",
                           "--keep-script puts the script beside the figure, "
                           "which goes to standard output");
        plot->drawing.script_path =
            ms_outputs_script(plot->drawing.path, plot->arena);
        if (plot->drawing.script_path == NULL)
            return ms_fail_nomem(fault);
    }
    const char *const files[] = {plot->drawing.path, plot->drawing.script_path};
    return ms_outputs_keep((const char *const *)arguments->operands,
                           arguments->n_operands, files, 2, fault);
}

static ms_err read_capacity(ms_plot *plot, ms_fault *fault)
{
    const ms_arguments *arguments = plot->arguments;
    ms_job job;
    if (ms_options_value(arguments, MS_OPTION_MEMORY) == NULL &&
        ms_options_value(arguments, MS_OPTION_DEVICE) == NULL)
        return MS_OK;
    MS_TRY(ms_settings_shared(arguments, plot->arena, &job, fault));
    plot->capacity_bytes =
        job.memory_bytes > 0 ? job.memory_bytes : job.device->memory_bytes;
    if (plot->capacity_bytes > job.device->context_bytes)
        plot->usable_bytes = plot->capacity_bytes - job.device->context_bytes;
    return MS_OK;
}

ms_err ms_plot_command(const ms_hall *hall, int *status, ms_fault *fault)
{
    ms_plot plot = {.arguments = hall->arguments, .arena = hall->keep};
    *status = 0;
    MS_TRY(read_outputs(&plot, fault));
    MS_TRY(read_capacity(&plot, fault));
    MS_TRY(read_files(&plot, fault));
    MS_TRY(draw(&plot, fault));
    if (ms_options_value(hall->arguments, MS_OPTION_QUIET) == NULL &&
        !ms_outputs_is_stdout(plot.drawing.path))
        ms_complain_note("wrote", plot.drawing.path);
    return MS_OK;
}
