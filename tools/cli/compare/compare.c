/* SPDX-License-Identifier: GPL-3.0-or-later */
/* memsim compare: variants of one step side by side. The first is the base
 * that the others are compared with. */

#include "tools/cli/compare/compare.h"
#include "plots/plots.h"
#include "tools/alive/alive.h"
#include "tools/cli/commands.h"
#include "tools/cli/front/front.h"
#include "tools/cli/run/figures.h"
#include "tools/job/outputs.h"
#include "tools/options/options.h"
#include "tools/terminal/narrow.h"
#include "tools/terminal/screen.h"

#include <string.h>

/* ---- what was asked for -------------------------------------------------- */

typedef struct outputs {
    const char *csv; /* NULL: no CSV is asked for */
    ms_picture figure;
    bool json, quiet;
} outputs;

static ms_err check_explain(const ms_arguments *arguments, ms_comparison *c,
                            ms_fault *fault)
{
    c->explain = ms_options_value(arguments, MS_OPTION_EXPLAIN) != NULL;
    c->at = ms_options_value(arguments, MS_OPTION_AT);
    MS_TRY(ms_explain_text_top(arguments, &c->top, fault));
    if (c->explain && c->n != 2)
        return ms_fail(fault, MS_EUSAGE, NULL, "leave all but two out",
                       "option \"--explain\" is for two variants; there are %u",
                       c->n);
    for (uint32_t i = 0; i < c->n && c->explain; i++)
        if (c->variants[i].file != NULL)
            return ms_fail(fault, MS_EUSAGE, c->variants[i].file,
                           "name models and policies, which are simulated",
                           "option \"--explain\" looks at tensors, which a "
                           "saved result does not list");
    if (!c->explain && c->at != NULL)
        return ms_fail(fault, MS_EUSAGE, NULL, "add --explain",
                       "option \"--at\" says what --explain looks at");
    if (!c->explain && ms_options_value(arguments, MS_OPTION_TOP) != NULL)
        return ms_fail(fault, MS_EUSAGE, NULL, "add --explain",
                       "option \"--top\" says how much --explain tells");
    return MS_OK;
}

/* How many variants a figure over time holds; 0: it is none. */
static uint32_t most_over_time(const outputs *out)
{
    const char *kind = out->figure.kind;
    if (kind == NULL)
        return 0;
    return strcmp(kind, "timeline") == 0   ? MS_TOTALS_MOST
           : strcmp(kind, "pipeline") == 0 ? MS_PIPED_MOST
           : ms_figures_is_address(kind)   ? MS_ADDRESS_MOST
                                           : 0;
}

static bool is_address(const outputs *out)
{
    return ms_figures_is_address(out->figure.kind);
}

static ms_err check_figure(const ms_comparison *c, const outputs *out,
                           ms_fault *fault)
{
    uint32_t most = most_over_time(out);
    if (most > 0 && c->n > most)
        return ms_fail(fault, MS_EUSAGE, NULL,
                       "leave some out, or draw --figure bars",
                       "figure %s is of up to %u variants; there are %u",
                       out->figure.kind, most, c->n);
    for (uint32_t i = 0; i < c->n; i++)
        if (c->variants[i].file == NULL)
            MS_TRY(
                ms_figures_check(out->figure.kind, &c->variants[i].job, fault));
    return MS_OK;
}

static ms_err read_outputs(const ms_hall *hall, const ms_comparison *c,
                           outputs *out, ms_fault *fault)
{
    const ms_arguments *arguments = hall->arguments;
    *out = (outputs){
        .csv = ms_options_value(arguments, MS_OPTION_CSV),
        .json = ms_options_value(arguments, MS_OPTION_JSON) != NULL,
        .quiet = ms_options_value(arguments, MS_OPTION_QUIET) != NULL};
    MS_TRY(ms_outputs_picture(arguments, hall->keep, &out->figure, fault));
    if (out->json + ms_outputs_is_stdout(out->csv) +
            ms_outputs_is_stdout(out->figure.path) >
        1)
        return ms_fail(fault, MS_EUSAGE, NULL,
                       "ask for one of --json and a file named -",
                       "standard output can carry one result only");
    return check_figure(c, out, fault);
}

/* Refuses an output that would overwrite an operand, be it a model or a
 * result. */
static ms_err check_files(const ms_hall *hall, const ms_comparison *c,
                          const outputs *out, ms_fault *fault)
{
    const char *files[] = {out->csv, out->figure.path, out->figure.script};
    const ms_arguments *arguments = hall->arguments;
    MS_TRY(ms_outputs_check(&c->variants[0].job, files, 3, fault));
    return ms_outputs_keep((const char *const *)arguments->operands,
                           arguments->n_operands, files, 3, fault);
}

static ms_err look(ms_comparison *c, ms_arena *arena, ms_fault *fault)
{
    if (!c->explain)
        return MS_OK;
    for (uint32_t i = 0; i < c->n; i++)
        if (c->variants[i].refused != NULL) {
            *fault = c->variants[i].fault;
            return fault->err;
        }
    for (int s = 0; s < 2; s++)
        MS_TRY(ms_alive_find(&c->variants[s].result, c->at, arena, &c->alive[s],
                             fault));
    return ms_differ_find(c->alive, arena, &c->groups, &c->n_groups, fault);
}

/* ---- the command --------------------------------------------------------- */

static ms_err print_result(const ms_hall *hall, const ms_comparison *c,
                           const outputs *out, const ms_text *csv,
                           ms_fault *fault)
{
    ms_text text = {.arena = hall->trial};
    const char *colour = ms_options_value(hall->arguments, MS_OPTION_COLOR);
    if (ms_outputs_is_stdout(out->csv))
        return ms_screen_print(csv, fault);
    if (out->json)
        ms_compare_data_json(c, &text);
    else if (!out->quiet && !ms_outputs_is_stdout(out->figure.path)) {
        ms_compare_text_write(c, ms_screen_style(1, colour), &text);
        MS_TRY(ms_compare_needless_write(c, &text, fault));
        ms_narrow_lines(&text);
    }
    MS_TRY(ms_screen_print(&text, fault));
    return out->csv == NULL
               ? MS_OK
               : ms_outputs_write(out->csv, csv, out->quiet, fault);
}

/* Draws the figure. It comes last, so that the data is written even where
 * gnuplot is missing. */
static ms_err write_figure(const ms_hall *hall, const ms_comparison *c,
                           const outputs *out, ms_fault *fault)
{
    const ms_drawing drawing = {.title = out->figure.title,
                                .path = out->figure.path,
                                .script_path = out->figure.script,
                                .arena = hall->trial};
    if (drawing.path == NULL)
        return MS_OK;
    if (ms_outputs_is_stdout(drawing.path))
        ms_screen_end_with_reader();
    MS_TRY(ms_compare_figure_draw(c, out->figure.kind, &drawing, fault));
    if (!out->quiet && !ms_outputs_is_stdout(drawing.path))
        ms_complain_note("wrote", drawing.path);
    return MS_OK;
}

static uint32_t needs_of(const ms_comparison *c, const outputs *out)
{
    return (c->explain ? MS_VARIANTS_TENSORS : 0u) |
           (out->json ? MS_VARIANTS_JSON : 0u) |
           (most_over_time(out) > 0 ? MS_VARIANTS_TIMELINE : 0u) |
           (is_address(out) ? MS_VARIANTS_ADDRESSES : 0u);
}

static ms_err compare(const ms_hall *hall, ms_points *points, ms_comparison *c,
                      ms_fault *fault)
{
    outputs out;
    ms_text csv = {.arena = hall->trial};
    MS_TRY(ms_variants_read(hall, points, c, fault));
    if (c->n < 2)
        return ms_fail(fault, MS_EUSAGE, NULL,
                       "give each variant, e.g. -p none -p checkpoint:sqrt, "
                       "or --grid batch=1,8",
                       "\"memsim compare\" needs two variants or more");
    MS_TRY(check_explain(hall->arguments, c, fault));
    MS_TRY(read_outputs(hall, c, &out, fault));
    MS_TRY(check_files(hall, c, &out, fault));
    MS_TRY(ms_variants_fill(hall, points, needs_of(c, &out), c, fault));
    MS_TRY(look(c, hall->trial, fault));
    ms_compare_data_csv(c, &csv);
    MS_TRY(print_result(hall, c, &out, &csv, fault));
    return write_figure(hall, c, &out, fault);
}

/* What goes with --checkpoint-all only. */
static ms_err check_alone(const ms_arguments *arguments, ms_fault *fault)
{
    const char *kind = ms_options_value(arguments, MS_OPTION_FIGURE);
    if (ms_options_value(arguments, MS_OPTION_BUDGET) != NULL)
        return ms_fail(fault, MS_EUSAGE, NULL, "add --checkpoint-all",
                       "option \"--budget\" says where the best plans to "
                       "checkpoint are found");
    if (kind != NULL && strcmp(kind, "front") == 0)
        return ms_fail(fault, MS_EUSAGE, NULL, "add --checkpoint-all",
                       "figure front is of every way to checkpoint");
    return MS_OK;
}

ms_err ms_compare_command(const ms_hall *hall, int *status, ms_fault *fault)
{
    ms_points points;
    ms_comparison c = {0};
    const ms_arguments *arguments = hall->arguments;
    if (ms_options_value(arguments, MS_OPTION_CHECKPOINT_ALL) != NULL)
        return ms_front_command(hall, status, fault);
    MS_TRY(check_alone(arguments, fault));
    MS_TRY(ms_points_open(&points, fault));
    ms_err err = compare(hall, &points, &c, fault);
    *status = 0;
    for (uint32_t i = 0; err == MS_OK && i < c.n; i++)
        if (ms_options_value(hall->arguments, MS_OPTION_CHECK) != NULL &&
            (c.variants[i].refused != NULL ||
             !c.variants[i].record.report.fits))
            *status = 1;
    ms_variants_close(&points, &c);
    ms_points_close(&points);
    return err;
}
