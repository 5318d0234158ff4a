/* SPDX-License-Identifier: GPL-3.0-or-later */
/* memsim report: steps as one page to hand on. */

#include "tools/cli/report/report.h"
#include "plots/page/htmlpage.h"
#include "plots/plots.h"
#include "tools/cli/commands.h"
#include "tools/job/outputs.h"
#include "tools/job/settings.h"
#include "tools/options/options.h"
#include "tools/recordings/recordedfile.h"
#include "tools/terminal/screen.h"

#include <string.h>

/* ---- what was asked for -------------------------------------------------- */

/* The operands that are recorded snapshots, and the command line without
 * them. */
typedef struct asked {
    ms_hall hall;
    ms_arguments others;
    const char **recorded;
    uint32_t n_recorded;
} asked;

static ms_err split(const ms_hall *hall, asked *a, ms_fault *fault)
{
    const ms_arguments *all = hall->arguments;
    uint32_t n = all->n_operands;
    a->hall = *hall;
    a->others = *all;
    a->others.n_operands = 0;
    a->others.operands =
        ms_arena_take(hall->keep, n, sizeof *a->others.operands);
    a->recorded = ms_arena_take(hall->keep, n, sizeof *a->recorded);
    if (a->others.operands == NULL || a->recorded == NULL)
        return ms_fail_nomem(fault);
    for (uint32_t i = 0; i < n; i++) {
        if (ms_recordedfile_is(all->operands[i]))
            a->recorded[a->n_recorded++] = all->operands[i];
        else
            a->others.operands[a->others.n_operands++] = all->operands[i];
    }
    a->hall.arguments = &a->others;
    return MS_OK;
}

static ms_err check_number(uint32_t n, ms_fault *fault)
{
    if (n <= MS_PAGE_STEPS)
        return MS_OK;
    return ms_fail(fault, MS_EUSAGE, NULL,
                   "leave some out; \"memsim compare\" puts more side by side",
                   "a page is of up to %u variants; there are %u",
                   MS_PAGE_STEPS, n);
}

/* Refuses an output that would overwrite an input. */
static ms_err check_path(const ms_hall *hall, const ms_comparison *c,
                         const char *path, ms_fault *fault)
{
    const ms_arguments *arguments = hall->arguments;
    const char *const files[] = {path};
    MS_TRY(ms_outputs_page(path, fault));
    if (c->n > 0)
        MS_TRY(ms_outputs_check(&c->variants[0].job, files, 1, fault));
    return ms_outputs_keep((const char *const *)arguments->operands,
                           arguments->n_operands, files, 1, fault);
}

/* Where all is recorded, there is no step that an option could shape. */
static ms_err check_options(const ms_arguments *arguments, ms_fault *fault)
{
    for (uint32_t i = 0; i < arguments->n_given; i++) {
        const ms_option *option = arguments->given[i].option;
        if (ms_settings_shapes(option->id) || option->id == MS_OPTION_RANK ||
            option->id == MS_OPTION_LABEL || option->id == MS_OPTION_GOAL)
            return ms_fail(fault, MS_EUSAGE, NULL,
                           "leave it out, or name a model beside it",
                           "option \"--%s\" is for steps that are simulated, "
                           "and this is a recording",
                           option->name);
    }
    return MS_OK;
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

static ms_err read_page(const asked *a, const ms_comparison *c, uint32_t i,
                        ms_report_page *page, ms_fault *fault)
{
    ms_arguments *own;
    *page = (ms_report_page){.arena = a->hall.trial,
                             .head = {.arena = a->hall.trial}};
    if (i >= c->n)
        return ms_report_recorded_read(a->recorded[i - c->n], page, fault);
    page->variant = &c->variants[i];
    if (page->variant->file == NULL) {
        own = ms_arena_take(page->arena, 1, sizeof *own);
        if (own == NULL)
            return ms_fail_nomem(fault);
        MS_TRY(find_arguments(&a->hall, page->variant, own, fault));
        page->arguments = own;
    }
    return ms_report_variant_read(page, fault);
}

static ms_err read_variants(const asked *a, ms_points *points, ms_comparison *c,
                            ms_fault *fault)
{
    return a->others.n_operands > 0
               ? ms_variants_read(&a->hall, points, c, fault)
               : check_options(&a->others, fault);
}

static ms_err fill_variants(const asked *a, ms_points *points, ms_comparison *c,
                            ms_fault *fault)
{
    if (c->n == 0)
        return MS_OK;
    MS_TRY(ms_variants_fill(&a->hall, points,
                            MS_VARIANTS_TIMELINE | MS_VARIANTS_TENSORS, c,
                            fault));
    for (uint32_t i = 0; i < c->n; i++)
        MS_TRY(turn_to_rank(&a->hall, &c->variants[i], fault));
    return MS_OK;
}

/* The title of the window: that of the first variant. */
static const char *title_of(const asked *a, const ms_comparison *c)
{
    const char *title = ms_options_value(&a->others, MS_OPTION_TITLE);
    if (title != NULL)
        return title;
    if (c->n == 0)
        return a->recorded[0];
    title = c->variants[c->base].record.title;
    return title != NULL ? title : c->variants[c->base].name;
}

/* Each model is searched once: policies do not shape the search. */
static ms_err add_front(ms_report_pages *pages, uint32_t i, ms_points *points,
                        ms_fault *fault)
{
    ms_report_page *page = &pages->all[i];
    ms_text front = {.arena = page->arena};
    if (page->arguments == NULL || page->variant->refused != NULL)
        return MS_OK;
    for (uint32_t j = 0; j < i && page->front == NULL; j++)
        if (pages->all[j].front != NULL &&
            strcmp(pages->all[j].variant->job.model,
                   page->variant->job.model) == 0)
            page->front = pages->all[j].front;
    if (page->front == NULL) {
        MS_TRY(ms_report_front_find(page->arguments, points, &front, fault));
        page->front = front.bytes;
    }
    ms_text_add(&page->head, ",\"front\":");
    ms_text_put(&page->head, page->front, strlen(page->front));
    return MS_OK;
}

static ms_err add_fronts(const asked *a, ms_report_pages *pages,
                         ms_points *points, ms_fault *fault)
{
    uint32_t n = 0;
    if (ms_options_value(&a->others, MS_OPTION_GOAL) == NULL)
        return MS_OK;
    for (uint32_t i = 0; i < pages->n; i++) {
        MS_TRY(add_front(pages, i, points, fault));
        n += pages->all[i].front != NULL;
    }
    return n > 0 ? MS_OK
                 : ms_fail(fault, MS_EUSAGE, NULL,
                           "leave it out, or name a model that can be trained",
                           "option \"--goal\" searches set-ups of a model, and "
                           "nothing here is simulated");
}

static ms_err make_file(const ms_hall *hall, const asked *a,
                        const ms_comparison *c, ms_points *points,
                        ms_text *file, ms_fault *fault)
{
    ms_report_pages pages = {.opening = {.arena = hall->trial},
                             .n = c->n + a->n_recorded};
    pages.all = ms_arena_take(hall->trial, pages.n, sizeof *pages.all);
    if (pages.all == NULL)
        return ms_fail_nomem(fault);
    for (uint32_t i = 0; i < pages.n; i++)
        MS_TRY(read_page(a, c, i, &pages.all[i], fault));
    MS_TRY(add_fronts(a, &pages, points, fault));
    MS_TRY(
        ms_outputs_opening("report", hall->arguments, &pages.opening, fault));
    return ms_report_share_make(title_of(a, c), &pages, file, fault);
}

static ms_err report(const ms_hall *hall, ms_points *points, ms_comparison *c,
                     ms_fault *fault)
{
    const ms_arguments *arguments = hall->arguments;
    const char *path = ms_options_value(arguments, MS_OPTION_OUTPUT);
    ms_text file = {.arena = hall->trial};
    asked a = {0};
    if (path == NULL)
        path = "memsim.html";
    MS_TRY(split(hall, &a, fault));
    MS_TRY(read_variants(&a, points, c, fault));
    MS_TRY(check_number(c->n + a.n_recorded, fault));
    MS_TRY(check_path(hall, c, path, fault));
    MS_TRY(fill_variants(&a, points, c, fault));
    MS_TRY(make_file(hall, &a, c, points, &file, fault));
    if (ms_outputs_is_stdout(path))
        ms_screen_end_with_reader();
    MS_TRY(ms_output_write(path, file.bytes, file.length, fault));
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
