/* SPDX-License-Identifier: GPL-3.0-or-later */
/* memsim report: steps as one page to hand on. */

#include "tools/cli/report/report.h"
#include "plots/page/htmlpage.h"
#include "tools/cli/commands.h"
#include "tools/job/outputs.h"
#include "tools/job/settings.h"
#include "tools/options/options.h"
#include "tools/terminal/screen.h"

#include <string.h>

/* ---- what was asked for -------------------------------------------------- */

static ms_err check_number(const ms_comparison *c, ms_fault *fault)
{
    if (c->n <= MS_REPORT_MOST)
        return MS_OK;
    return ms_fail(fault, MS_EUSAGE, NULL,
                   "leave some out; \"memsim compare\" puts more side by side",
                   "a page is of up to %u variants; there are %u",
                   MS_REPORT_MOST, c->n);
}

/* Refuses an output that would overwrite an operand. */
static ms_err check_path(const ms_hall *hall, const ms_comparison *c,
                         const char *path, ms_fault *fault)
{
    const ms_arguments *arguments = hall->arguments;
    const char *const files[] = {path};
    if (!ms_outputs_is_stdout(path) && !ms_options_ends_in(".html|.htm", path))
        return ms_fail(fault, MS_EUSAGE, path, "name it NAME.html",
                       "the page is HTML, and this does not end so");
    MS_TRY(ms_outputs_check(&c->variants[0].job, files, 1, fault));
    return ms_outputs_keep((const char *const *)arguments->operands,
                           arguments->n_operands, files, 1, fault);
}

/* A variant that was simulated is told of the rank that was asked for; one that
 * was read back, too. */
static ms_err turn_to_rank(const ms_hall *hall, ms_variant *variant,
                           ms_fault *fault)
{
    if (variant->refused != NULL)
        return MS_OK;
    if (variant->result.report != NULL)
        MS_TRY(ms_outputs_rank(hall->arguments, variant->result.report, fault));
    return ms_outputs_rank(hall->arguments, &variant->record.report, fault);
}

/* ---- the command of a variant -------------------------------------------- */

/* What of the command line shapes a step, with this variant's model and
 * policies. */
static ms_err find_arguments(const ms_hall *hall, const ms_variant *variant,
                             ms_arguments *own, ms_fault *fault)
{
    const ms_arguments *all = hall->arguments;
    ms_arena *arena = hall->keep;
    bool is_plain = variant->job.spec.n == 0;
    *own = (ms_arguments){.n_operands = 1};
    own->operands = ms_arena_take(arena, 1, sizeof *own->operands);
    own->given = ms_arena_take(arena, all->n_given + 1, sizeof *own->given);
    if (own->operands == NULL || own->given == NULL)
        return ms_fail_nomem(fault);
    own->operands[0] = variant->job.model;
    for (uint32_t i = 0; i < all->n_given; i++) {
        const ms_given *given = &all->given[i];
        if (given->option->id != MS_OPTION_POLICY) {
            own->given[own->n_given++] = *given;
        } else if (!is_plain) {
            own->given[own->n_given++] =
                (ms_given){given->option, variant->policy};
            is_plain = true;
        }
    }
    return MS_OK;
}

/* ---- the page ------------------------------------------------------------ */

static ms_err put_variant(const ms_hall *hall, const ms_comparison *c,
                          uint32_t i, ms_text *text, ms_fault *fault)
{
    ms_arguments own;
    ms_report_page page = {
        .variant = &c->variants[i], .arena = hall->trial, .n_variants = c->n};
    if (page.variant->file == NULL) {
        MS_TRY(find_arguments(hall, page.variant, &own, fault));
        page.arguments = &own;
    }
    ms_text_add(text, "%s", i > 0 ? ",\n" : "");
    return ms_report_variant_put(&page, text, fault);
}

static ms_err put_data(const ms_hall *hall, const ms_comparison *c,
                       ms_text *text, ms_fault *fault)
{
    ms_text made = {.arena = hall->trial};
    ms_text_add(&made, "Made by memsim " MS_VERSION ": ");
    ms_settings_again("report", hall->arguments, &made);
    if (made.failed)
        return ms_fail_nomem(fault);
    ms_text_add(text, "{\"made\":");
    ms_text_json(text, made.bytes);
    ms_text_add(text, ",");
    ms_htmlpage_put_colors(text);
    ms_text_add(text, ",\"variants\":[\n");
    for (uint32_t i = 0; i < c->n; i++)
        MS_TRY(put_variant(hall, c, i, text, fault));
    ms_text_add(text, "]}");
    return MS_OK;
}

static ms_err report(const ms_hall *hall, ms_points *points, ms_comparison *c,
                     ms_fault *fault)
{
    const ms_arguments *arguments = hall->arguments;
    const char *path = ms_options_value(arguments, MS_OPTION_OUTPUT);
    const char *title = ms_options_value(arguments, MS_OPTION_TITLE);
    ms_text data = {.arena = hall->trial};
    if (path == NULL)
        path = "memsim.html";
    MS_TRY(ms_variants_read(hall, points, c, fault));
    MS_TRY(check_number(c, fault));
    MS_TRY(check_path(hall, c, path, fault));
    MS_TRY(ms_variants_fill(
        hall, points, MS_VARIANTS_TIMELINE | MS_VARIANTS_TENSORS, c, fault));
    for (uint32_t i = 0; i < c->n; i++)
        MS_TRY(turn_to_rank(hall, &c->variants[i], fault));
    MS_TRY(put_data(hall, c, &data, fault));
    if (title == NULL)
        title = c->variants[c->base].record.title;
    if (ms_outputs_is_stdout(path))
        ms_screen_end_with_reader();
    MS_TRY(ms_htmlpage_write(title, &data, path, hall->trial, fault));
    if (ms_options_value(arguments, MS_OPTION_QUIET) == NULL &&
        !ms_outputs_is_stdout(path))
        ms_complain_note("wrote", path);
    return MS_OK;
}

ms_err ms_report_command(const ms_hall *hall, int *status, ms_fault *fault)
{
    ms_points points;
    ms_comparison c = {0};
    *status = 0;
    MS_TRY(ms_points_open(&points, fault));
    ms_err err = report(hall, &points, &c, fault);
    ms_variants_close(&points, &c);
    ms_points_close(&points);
    return err;
}
