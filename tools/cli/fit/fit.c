/* SPDX-License-Identifier: GPL-3.0-or-later */
/* memsim fit: finds the fastest way to train the model in a given memory. */

#include "tools/search/fit.h"
#include "graphs/training.h"
#include "tools/cli/commands.h"
#include "tools/cli/fit/fit_ask.h"
#include "tools/cli/fit/fit_keys.h"
#include "tools/job/job.h"
#include "tools/job/outputs.h"
#include "tools/job/settings.h"
#include "tools/options/options.h"
#include "tools/search/fitadvice.h"
#include "tools/terminal/narrow.h"
#include "tools/terminal/screen.h"

#include <string.h>

typedef struct outputs {
    const char *csv, *max; /* NULL: not asked for */
    ms_picture picture;
    bool json, quiet;
    const ms_style *style;
} outputs;

typedef struct run {
    const ms_hall *hall;
    const ms_arguments *arguments; /* with one number of GPUs */
    ms_job job;
    ms_points points;
    outputs out;
    uint32_t threads;
    ms_fit fit;
    ms_fit_max max;
    ms_fit_reply reply;
} run;

#define MOST_NUMBERS 32u /* a list of GPUs has at most so many numbers */

/* ---- options ------------------------------------------------------------- */

static ms_err check_outputs(run *r, ms_fault *fault)
{
    const char *files[] = {r->out.csv, r->out.picture.path,
                           r->out.picture.script};
    if (r->out.json + ms_outputs_is_stdout(files[0]) +
            ms_outputs_is_stdout(files[1]) >
        1)
        return ms_fail(fault, MS_EUSAGE, NULL,
                       "ask for one of --json and a file named -",
                       "standard output can carry one result only");
    return ms_outputs_check(&r->job, files, 3, fault);
}

static ms_err check_goal(const run *r, ms_fault *fault)
{
    const char *goal = ms_options_value(r->arguments, MS_OPTION_GOAL);
    if (goal != NULL && r->out.max != NULL)
        return ms_fail(fault, MS_EUSAGE, NULL, "leave one of the two out",
                       "--max has a goal of its own, not --goal %s", goal);
    return MS_OK;
}

static ms_err read_options(run *r, ms_fault *fault)
{
    const ms_arguments *arguments = r->arguments;
    const char *colour = ms_options_value(arguments, MS_OPTION_COLOR);
    r->out =
        (outputs){.csv = ms_options_value(arguments, MS_OPTION_CSV),
                  .max = ms_options_value(arguments, MS_OPTION_MAX),
                  .json = ms_options_value(arguments, MS_OPTION_JSON) != NULL,
                  .quiet = ms_options_value(arguments, MS_OPTION_QUIET) != NULL,
                  .style = ms_screen_style(1, colour)};
    if (r->out.max != NULL && strcmp(r->out.max, "seq") == 0)
        r->out.max = "sequence";
    r->fit =
        (ms_fit){.job = &r->job, .points = &r->points, .arena = r->hall->keep};
    MS_TRY(ms_fit_ask_read(arguments, &r->job, &r->fit, fault));
    MS_TRY(check_goal(r, fault));
    MS_TRY(ms_workers_read(ms_options_value(arguments, MS_OPTION_JOBS),
                           &r->fit.threads, fault));
    MS_TRY(
        ms_outputs_picture(arguments, r->hall->keep, &r->out.picture, fault));
    return check_outputs(r, fault);
}

static bool is_given(const run *r, const char *field)
{
    for (uint32_t row = 0; row < ms_training_n_fields; row++)
        if (ms_training_fields[row].group == NULL &&
            strcmp(ms_training_fields[row].name, field) == 0)
            return r->job.training.was_set >> row & 1;
    return false;
}

/* Refuses a setting that is both given and to be found. */
static ms_err check_contradictions(const run *r, ms_fault *fault)
{
    if (r->fit.vary_precision && is_given(r, "precision"))
        return ms_fail(fault, MS_EUSAGE, NULL, "leave one of the two out",
                       "--vary precision searches what is given");
    if (r->job.global_batch > 0 && r->out.max != NULL &&
        strcmp(r->out.max, "batch") == 0)
        return ms_fail(fault, MS_EUSAGE, NULL, "leave one of the two out",
                       "--max batch finds the batch that --global-batch "
                       "gives");
    return MS_OK;
}

/* Refuses a value for the number that --max is to find. */
static ms_err check_max(const run *r, ms_fault *fault)
{
    const ms_arguments *arguments = r->arguments;
    bool batch = r->out.max != NULL && strcmp(r->out.max, "batch") == 0;
    const char *field = batch ? "training.batch" : "training.sequence";
    if (r->out.max != NULL && r->job.lengths != NULL)
        return ms_fail(fault, MS_EUSAGE, NULL, "leave one of the two out",
                       "--max %s finds a number that is the same in all "
                       "steps, --lengths gives each its own",
                       r->out.max);
    for (uint32_t i = 0; i < arguments->n_given && r->out.max != NULL; i++) {
        const ms_given *given = &arguments->given[i];
        const char *key = given->option->id == MS_OPTION_SETTING
                              ? given->option->setting
                              : given->value;
        size_t length = strlen(field);
        bool sets = given->option->id == MS_OPTION_SET &&
                    strncmp(key, field, length) == 0 && key[length] == '=';
        if (sets ||
            (given->option->id == MS_OPTION_SETTING && strcmp(key, field) == 0))
            return ms_fail(fault, MS_EUSAGE, NULL, "leave one of the two out",
                           "--max %s finds the %s that --%s gives", r->out.max,
                           field + strlen("training."),
                           sets ? "set" : given->option->name);
    }
    return check_contradictions(r, fault);
}

/* ---- searching ----------------------------------------------------------- */

/* Fixes the settings that the search for a largest batch or sequence leaves
 * alone. The largest batch is that of one micro-batch, since gradients can
 * be accumulated over any number of them. If the user gives policies, all
 * other settings stay as they are. */
static void freeze(run *r)
{
    bool given = ms_options_value(r->arguments, MS_OPTION_POLICY) != NULL;
    for (uint32_t a = 0; a < MS_FIT_N_AXES && given; a++)
        r->fit.frozen[a] = true;
    r->fit.frozen[MS_FIT_BATCH] = true;
    if (strcmp(r->out.max, "batch") == 0)
        r->fit.frozen[MS_FIT_MICROBATCH] = true;
}

static ms_err find_max(run *r, ms_fault *fault)
{
    const char *field = strcmp(r->out.max, "batch") == 0 ? "training.batch"
                                                         : "training.sequence";
    freeze(r);
    MS_TRY(ms_fitspace_open(&r->fit, fault));
    MS_TRY(ms_fitmax_find(&r->fit, r->out.max, &r->max, fault));
    const char *number = ms_arena_format(
        r->hall->keep, "%llu", (unsigned long long)ms_fitmax_told(&r->max));
    if (number == NULL)
        return ms_fail_nomem(fault);
    ms_fitspace_close(&r->fit);
    return ms_training_set(&r->job.training, field, number, fault);
}

static ms_err search(run *r, ms_fault *fault)
{
    const ms_fit_max *max = r->out.max != NULL ? &r->max : NULL;
    if (r->out.max != NULL)
        MS_TRY(find_max(r, fault));
    MS_TRY(ms_fitspace_open(&r->fit, fault));
    MS_TRY(ms_fitsearch_run(&r->fit, fault));
    MS_TRY(ms_fitproof_run(&r->fit, fault));
    return ms_fitreply_of(&r->fit, max, r->arguments, &r->reply, fault);
}

/* Draws the figure. It comes last, so that the data is written even where
 * gnuplot is missing. */
static ms_err draw(const run *r, ms_fault *fault)
{
    const ms_picture *picture = &r->out.picture;
    if (picture->path == NULL)
        return MS_OK;
    if (ms_outputs_is_stdout(picture->path))
        ms_screen_end_with_reader();
    MS_TRY(ms_fit_figure_draw(&r->reply, picture, r->hall->trial, fault));
    if (!r->out.quiet && !ms_outputs_is_stdout(picture->path))
        ms_complain_note("wrote", picture->path);
    return MS_OK;
}

/* ---- the command --------------------------------------------------------- */

/* Writes what is advised where nothing that was searched fits. */
static ms_err put_advice(const run *r, ms_text *text, ms_fault *fault)
{
    ms_points points = r->points;
    ms_fitadvice advice;
    if (r->fit.best != MS_NONE || r->reply.max != NULL)
        return MS_OK;
    MS_TRY(ms_fitadvice_find(&points, r->fit.job, r->arguments, r->hall->trial,
                             &advice, fault));
    if (advice.lines != NULL)
        ms_text_add(text, "%snext:     %s\n", advice.lines, advice.command);
    return MS_OK;
}

static ms_err print_result(const run *r, ms_fault *fault)
{
    ms_text text = {.arena = r->hall->trial}, csv = {.arena = r->hall->trial};
    if (r->out.csv != NULL)
        ms_fit_data_csv(&r->fit, &csv);
    if (ms_outputs_is_stdout(r->out.csv))
        return ms_screen_print(&csv, fault);
    if (r->out.json)
        ms_fit_data_json(&r->reply, &text);
    else if (!r->out.quiet && !ms_outputs_is_stdout(r->out.picture.path)) {
        ms_fit_text_write(&r->reply, r->out.style, &text);
        MS_TRY(put_advice(r, &text, fault));
        ms_narrow_lines(&text);
    }
    MS_TRY(ms_screen_print(&text, fault));
    return r->out.csv == NULL
               ? MS_OK
               : ms_outputs_write(r->out.csv, &csv, r->out.quiet, fault);
}

/* What can be refused without a search. */
static ms_err prepare(run *r, ms_fault *fault)
{
    MS_TRY(read_options(r, fault));
    return check_max(r, fault);
}

static ms_err answer(run *r, ms_fault *fault)
{
    MS_TRY(ms_points_open(&r->points, fault));
    return search(r, fault);
}

static void leave(run *r)
{
    if (r->fit.points != NULL && r->points.cache != NULL)
        ms_fitspace_close(&r->fit);
    ms_points_close(&r->points);
}

static ms_err answer_one(const ms_hall *hall, int *status, ms_fault *fault)
{
    run r = {.hall = hall, .arguments = hall->arguments};
    ms_err err = prepare(&r, fault);
    if (err == MS_OK)
        err = answer(&r, fault);
    if (err == MS_OK)
        err = print_result(&r, fault);
    if (err == MS_OK)
        err = draw(&r, fault);
    leave(&r);
    *status = r.fit.best != MS_NONE ? 0 : ms_complain_status(MS_EINFEASIBLE);
    return err;
}

/* ---- several numbers of GPUs --------------------------------------------- */

/* Makes the arguments for the number of GPUs that ends before `end`. */
static ms_err arguments_of(const ms_hall *hall, const char *number,
                           size_t length, const ms_arguments **arguments,
                           ms_fault *fault)
{
    const ms_arguments *all = hall->arguments;
    ms_arguments *one = ms_arena_take(hall->keep, 1, sizeof *one);
    const char *value = ms_arena_text(hall->keep, number, length);
    ms_given *given =
        ms_arena_take(hall->keep, all->n_given + 1, sizeof *given);
    if (one == NULL || value == NULL || given == NULL)
        return ms_fail_nomem(fault);
    *one = *all;
    one->given = given;
    for (uint32_t i = 0; i < all->n_given; i++) {
        given[i] = all->given[i];
        if (given[i].option->id == MS_OPTION_GPUS)
            given[i].value = value;
    }
    *arguments = one;
    return MS_OK;
}

static ms_err split(const ms_hall *hall, const char *numbers, run *all,
                    uint32_t *n, ms_fault *fault)
{
    for (*n = 0; *numbers != '\0'; ++*n) {
        size_t length = strcspn(numbers, ",");
        if (*n == MOST_NUMBERS)
            return ms_fail(fault, MS_EUSAGE, "--gpus", "leave some out",
                           "more than %u numbers", MOST_NUMBERS);
        all[*n] = (run){.hall = hall};
        MS_TRY(arguments_of(hall, numbers, length, &all[*n].arguments, fault));
        numbers += length;
        numbers += *numbers == ',';
    }
    return MS_OK;
}

static ms_err print_all(run *all, uint32_t n, ms_fault *fault)
{
    ms_text text = {.arena = all->hall->trial};
    ms_fit_reply *replies = ms_arena_take(all->hall->trial, n, sizeof *replies);
    if (replies == NULL)
        return ms_fail_nomem(fault);
    for (uint32_t i = 0; i < n; i++) {
        replies[i] = all[i].reply;
        if (all->out.json)
            ms_fit_data_json(&all[i].reply, &text);
    }
    if (!all->out.json && !all->out.quiet) {
        ms_fit_text_gpus(replies, n, all->out.style, &text);
        ms_narrow_lines(&text);
    }
    return ms_screen_print(&text, fault);
}

static ms_err prepare_each(run *all, uint32_t n, ms_fault *fault)
{
    for (uint32_t i = 0; i < n; i++) {
        MS_TRY(prepare(&all[i], fault));
        if (all[i].out.csv != NULL || all[i].out.picture.path != NULL)
            return ms_fail(fault, MS_EUSAGE, "--gpus",
                           "give one number, or take --json",
                           "a file is of one number of GPUs");
    }
    return MS_OK;
}

static ms_err answer_each(const ms_hall *hall, const char *numbers, int *status,
                          ms_fault *fault)
{
    run *all = ms_arena_take(hall->keep, MOST_NUMBERS, sizeof *all);
    uint32_t n = 0;
    if (all == NULL)
        return ms_fail_nomem(fault);
    MS_TRY(split(hall, numbers, all, &n, fault));
    ms_err err = prepare_each(all, n, fault);
    *status = ms_complain_status(MS_EINFEASIBLE);
    for (uint32_t i = 0; i < n && err == MS_OK; i++) {
        err = answer(&all[i], fault);
        if (err == MS_OK && all[i].fit.best != MS_NONE)
            *status = 0;
    }
    if (err == MS_OK)
        err = print_all(all, n, fault);
    for (uint32_t i = 0; i < n; i++)
        leave(&all[i]);
    return err;
}

ms_err ms_fit_command(const ms_hall *hall, int *status, ms_fault *fault)
{
    const char *numbers = ms_options_value(hall->arguments, MS_OPTION_GPUS);
    if (numbers != NULL && strchr(numbers, ',') != NULL)
        return answer_each(hall, numbers, status, fault);
    return answer_one(hall, status, fault);
}
