/* SPDX-License-Identifier: GPL-3.0-or-later */
/* memsim diff: what was recorded beside what was simulated. */

#include "tools/cli/diff/diff.h"
#include "sim/report.h"
#include "tools/alive/alive.h"
#include "tools/cli/commands.h"
#include "tools/cli/compare/compare.h"
#include "tools/job/settings.h"
#include "tools/options/options.h"
#include "tools/recordings/recordedfile.h"

#include <string.h>

/* ---- operands ------------------------------------------------------------ */

/* Recordings are read here, all else by compare's reader, in one go: options
 * shape what is simulated beside them. */
typedef struct asked {
    ms_hall hall; /* with those operands that are no recordings */
    ms_arguments others;
    uint8_t side_of[2]; /* by such a variant */
    uint8_t n_recorded;
    ms_points points;
    ms_comparison c;
    ms_points_seat seats[2]; /* of saved results that are simulated again */
} asked;

static ms_err fail_number(uint32_t n, ms_fault *fault)
{
    return ms_fail(fault, MS_EUSAGE, NULL,
                   "name two files or models, or one model with two of -p",
                   "\"memsim diff\" sets two side by side; there %s %u",
                   n == 1 ? "is" : "are", n);
}

/* Where nothing is simulated, no option can shape it. */
static ms_err check_options(const ms_arguments *arguments, ms_fault *fault)
{
    for (uint32_t i = 0; i < arguments->n_given; i++) {
        const ms_option *option = arguments->given[i].option;
        if (ms_settings_shapes(option->id) || option->id == MS_OPTION_RANK)
            return ms_fail(fault, MS_EUSAGE, NULL,
                           "leave it out, or name a model beside it",
                           "option \"--%s\" is for steps that are simulated, "
                           "and these are not",
                           option->name);
    }
    return MS_OK;
}

static ms_err read_recordings(asked *a, ms_diff *diff, ms_fault *fault)
{
    const ms_arguments *all = a->hall.arguments;
    uint8_t n_others = 0;
    a->others = *all;
    a->others.operands =
        ms_arena_take(a->hall.keep, 2, sizeof *a->others.operands);
    if (a->others.operands == NULL)
        return ms_fail_nomem(fault);
    for (uint8_t i = 0; i < all->n_operands; i++) {
        const char *operand = all->operands[i];
        if (ms_recordedfile_is(operand)) {
            MS_TRY(ms_recordedside_read(operand, a->hall.keep, &diff->sides[i],
                                        fault));
            a->n_recorded++;
        } else {
            a->side_of[n_others] = i;
            a->others.operands[n_others++] = operand;
        }
    }
    if (n_others == 1 && a->n_recorded == 0)
        a->side_of[1] = 1; /* one operand, two variants */
    a->others.n_operands = n_others;
    a->hall.arguments = &a->others;
    return MS_OK;
}

static ms_err fail_refused(const ms_variant *variant, ms_fault *fault)
{
    if (variant->fault.err == MS_OK)
        return ms_fail(fault, MS_EINPUT, variant->name, NULL,
                       "has no numbers: %.200s", variant->refused);
    *fault = variant->fault;
    return fault->err;
}

static ms_err read_variants(asked *a, ms_fault *fault)
{
    uint32_t needed = 2u - a->n_recorded;
    bool is_simulated = false;
    if (a->others.n_operands == 0) {
        MS_TRY(check_options(&a->others, fault));
        return a->n_recorded == 2 ? MS_OK : fail_number(a->n_recorded, fault);
    }
    MS_TRY(ms_variants_read(&a->hall, &a->points, &a->c, fault));
    if (a->c.n != needed)
        return fail_number(a->c.n + a->n_recorded, fault);
    MS_TRY(ms_variants_fill(&a->hall, &a->points,
                            MS_VARIANTS_TIMELINE | MS_VARIANTS_TENSORS, &a->c,
                            fault));
    for (uint32_t i = 0; i < a->c.n; i++) {
        const ms_variant *variant = &a->c.variants[i];
        if (variant->refused != NULL)
            return fail_refused(variant, fault);
        is_simulated |= variant->file == NULL;
    }
    return is_simulated ? MS_OK : check_options(&a->others, fault);
}

/* ---- sides --------------------------------------------------------------- */

/* Is the step that was simulated again the one that was saved? */
static bool is_that(const ms_record *record, const ms_result *result)
{
    const ms_report *saved = &record->report, *again = result->report;
    return again->n_ranks == saved->n_ranks && again->worst == saved->worst &&
           again->ranks[again->worst].peak.allocated_bytes ==
               saved->ranks[saved->worst].peak.allocated_bytes;
}

/* The step of a saved result again, for its allocations; without them where it
 * cannot be made, or became another. */
static ms_err simulate_again(asked *a, uint32_t i, ms_side *side,
                             ms_fault *fault)
{
    const ms_record *record = &a->c.variants[i].record;
    ms_arena *keep = a->hall.keep;
    ms_fault own = {.caret = -1};
    ms_job *job = ms_arena_take(keep, 1, sizeof *job);
    ms_result result;
    if (job == NULL)
        return ms_fail_nomem(fault);
    MS_TRY(ms_savedside_job(record, keep, job, &side->without, fault));
    if (side->without != NULL)
        return ms_savedside_of(record, keep, side, fault);
    job->uses = true;
    ms_err err = ms_points_step(&a->points, &a->seats[i], job, &result, &own);
    MS_TRY(ms_fail_but_refusal(err, &own, fault));
    if (err == MS_OK && is_that(record, &result)) {
        MS_TRY(ms_simulatedside_of(&result, keep, side, fault));
        side->kind = MS_SIDE_SAVED;
        return MS_OK;
    }
    side->without = err == MS_OK
                        ? "its step comes out otherwise now"
                        : ms_arena_text(keep, own.what, strlen(own.what));
    return side->without == NULL ? ms_fail_nomem(fault)
                                 : ms_savedside_of(record, keep, side, fault);
}

static ms_err make_side(asked *a, uint32_t i, ms_side *side, ms_fault *fault)
{
    ms_variant *variant = &a->c.variants[i];
    side->name = variant->file != NULL ? variant->file
                 : a->others.n_operands == 1 && a->c.n == 2
                     ? variant->name
                     : variant->job.model;
    if (variant->file != NULL)
        return simulate_again(a, i, side, fault);
    MS_TRY(ms_outputs_rank(&a->others, variant->result.report, fault));
    return ms_simulatedside_of(&variant->result, a->hall.keep, side, fault);
}

static ms_err find(asked *a, ms_diff *diff, ms_fault *fault)
{
    ms_arena *keep = a->hall.keep;
    for (uint32_t i = 0; i < a->c.n; i++)
        MS_TRY(make_side(a, i, &diff->sides[a->side_of[i]], fault));
    diff->has_pairs = true;
    for (int s = 0; s < 2; s++) {
        ms_side *side = &diff->sides[s];
        if (side->lives != NULL)
            MS_TRY(ms_side_measure(side, keep, fault));
        else
            diff->has_pairs = false;
        if (side->without != NULL)
            diff->why_not = side->without;
    }
    if (diff->has_pairs)
        MS_TRY(ms_pairings_find(diff->sides, keep, &diff->pairs, fault));
    for (int s = 0; s < 2; s++) {
        if (!diff->has_pairs)
            ms_side_guess(&diff->sides[s]);
        ms_side_categorize(&diff->sides[s]);
    }
    diff->gap =
        (int64_t)(diff->sides[1].peak_bytes - diff->sides[0].peak_bytes);
    MS_TRY(ms_side_align(diff->sides, diff->edges, keep, fault));
    diff->cause = ms_diff_text_cause(diff, keep);
    return diff->cause == NULL ? ms_fail_nomem(fault) : MS_OK;
}

/* ---- the command --------------------------------------------------------- */

/* What is asked for, and where it goes. */
typedef struct outputs {
    ms_picture figure;
    const char *page, *colour;
    bool json, quiet;
} outputs;

static ms_err read_outputs(const ms_hall *hall, outputs *out, ms_fault *fault)
{
    const ms_arguments *arguments = hall->arguments;
    MS_TRY(ms_outputs_picture(arguments, hall->keep, &out->figure, fault));
    out->page = ms_options_value(arguments, MS_OPTION_OUTPUT);
    out->json = ms_options_value(arguments, MS_OPTION_JSON) != NULL;
    out->quiet = ms_options_value(arguments, MS_OPTION_QUIET) != NULL;
    out->colour = ms_options_value(arguments, MS_OPTION_COLOR);
    if (out->page != NULL)
        MS_TRY(ms_outputs_page(out->page, fault));
    const char *const files[] = {out->figure.path, out->figure.script,
                                 out->page};
    MS_TRY(ms_outputs_keep((const char *const *)arguments->operands,
                           arguments->n_operands, files, 3, fault));
    int n = out->json + ms_outputs_is_stdout(out->figure.path) +
            ms_outputs_is_stdout(out->page);
    if (n > 1)
        return ms_fail(fault, MS_EUSAGE, NULL,
                       ms_outputs_is_stdout(out->page)
                           ? "name a file for -o"
                           : "name a file for --plot",
                       "standard output can carry one result only");
    return MS_OK;
}

static ms_err write_page(const ms_hall *hall, const ms_diff *diff,
                         const outputs *out, ms_fault *fault)
{
    ms_text file = {.arena = hall->trial};
    bool is_stdout = ms_outputs_is_stdout(out->page);
    MS_TRY(ms_diff_page_make(diff, hall->arguments, out->figure.title, &file,
                             fault));
    if (is_stdout)
        ms_screen_end_with_reader();
    return ms_outputs_write(out->page, &file, out->quiet || is_stdout, fault);
}

static ms_err write_figure(const ms_hall *hall, const ms_diff *diff,
                           const outputs *out, ms_fault *fault)
{
    bool is_stdout = ms_outputs_is_stdout(out->figure.path);
    if (is_stdout)
        ms_screen_end_with_reader();
    MS_TRY(ms_diff_figure_draw(diff, &out->figure, hall->trial, fault));
    if (!out->quiet && !is_stdout)
        ms_complain_note("wrote", out->figure.path);
    return MS_OK;
}

static ms_err diff_all(asked *a, const ms_hall *hall, ms_diff *diff,
                       ms_fault *fault)
{
    outputs out = {.page = NULL};
    ms_text text = {.arena = hall->trial};
    MS_TRY(read_outputs(hall, &out, fault));
    MS_TRY(ms_explain_text_top(hall->arguments, &diff->top, fault));
    MS_TRY(read_recordings(a, diff, fault));
    MS_TRY(read_variants(a, fault));
    MS_TRY(find(a, diff, fault));
    if (out.json)
        ms_diff_keys_write(diff, &text);
    else if (!out.quiet && !ms_outputs_is_stdout(out.figure.path) &&
             !ms_outputs_is_stdout(out.page))
        ms_diff_text_write(diff, ms_screen_style(1, out.colour), &text);
    MS_TRY(ms_screen_print(&text, fault));
    if (out.page != NULL)
        MS_TRY(write_page(hall, diff, &out, fault));
    return out.figure.path != NULL ? write_figure(hall, diff, &out, fault)
                                   : MS_OK;
}

ms_err ms_diff_command(const ms_hall *hall, int *status, ms_fault *fault)
{
    asked a = {.hall = *hall};
    ms_diff diff = {0};
    *status = 0;
    MS_TRY(ms_points_open(&a.points, fault));
    ms_err err = diff_all(&a, hall, &diff, fault);
    for (int i = 0; i < 2; i++)
        ms_points_leave(&a.points, &a.seats[i]);
    ms_variants_close(&a.points, &a.c);
    ms_points_close(&a.points);
    return err;
}
