/* SPDX-License-Identifier: GPL-3.0-or-later */
/* memsim fit: under a memory budget, the fastest way to train the model. */

#include "tools/fit.h"

#include <string.h>

typedef struct outputs {
    const char *csv, *max; /* or NULL */
    ms_picture picture;
    bool json, quiet;
    const ms_style *style;
} outputs;

typedef struct run {
    const ms_hall *hall;
    ms_job job;
    ms_points points;
    outputs out;
    uint32_t threads;
    ms_fit fit;
    ms_fit_max max;
    ms_fit_reply reply;
} run;

/* ---- options ------------------------------------------------------------- */

static ms_err read_options(run *r, ms_fault *fault)
{
    const ms_arguments *arguments = r->hall->arguments;
    const char *colour = ms_options_value(arguments, MS_OPTION_COLOR);
    r->out =
        (outputs){.csv = ms_options_value(arguments, MS_OPTION_CSV),
                  .max = ms_options_value(arguments, MS_OPTION_MAX),
                  .json = ms_options_value(arguments, MS_OPTION_JSON) != NULL,
                  .quiet = ms_options_value(arguments, MS_OPTION_QUIET) != NULL,
                  .style = ms_screen_style(1, colour)};
    MS_TRY(ms_settings_read(arguments, r->hall->keep, &r->job, fault));
    MS_TRY(ms_workers_read(ms_options_value(arguments, MS_OPTION_JOBS),
                           &r->threads, fault));
    MS_TRY(
        ms_outputs_picture(arguments, r->hall->keep, &r->out.picture, fault));
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

/* Is a number given that --max is to find? */
static ms_err check_max(const run *r, ms_fault *fault)
{
    const ms_arguments *arguments = r->hall->arguments;
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
    return MS_OK;
}

/* ---- searching ----------------------------------------------------------- */

/* The largest batch is that of one micro-batch: there is no largest one that
 * can be accumulated.  With policies given it is theirs alone. */
static void freeze(run *r)
{
    bool given = ms_options_value(r->hall->arguments, MS_OPTION_POLICY) != NULL;
    for (uint32_t a = 0; a < MS_FIT_N_AXES && given; a++)
        r->fit.frozen[a] = true;
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
    r->fit = (ms_fit){.job = &r->job,
                      .points = &r->points,
                      .arena = r->hall->keep,
                      .threads = r->threads};
    if (r->out.max != NULL)
        MS_TRY(find_max(r, fault));
    MS_TRY(ms_fitspace_open(&r->fit, fault));
    MS_TRY(ms_fitsearch_run(&r->fit, fault));
    return ms_fitreply_of(&r->fit, max, r->hall->arguments, &r->reply, fault);
}

/* The figure comes last: data outputs are written even without gnuplot. */
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

static ms_err print_result(const run *r, ms_fault *fault)
{
    ms_text text = {.arena = r->hall->trial}, csv = {.arena = r->hall->trial};
    if (r->out.csv != NULL)
        ms_fit_data_csv(&r->fit, &csv);
    if (ms_outputs_is_stdout(r->out.csv))
        return ms_screen_print(&csv, fault);
    if (r->out.json)
        ms_fit_data_json(&r->reply, &text);
    else if (!r->out.quiet && !ms_outputs_is_stdout(r->out.picture.path))
        ms_fit_text_write(&r->reply, r->out.style, &text);
    MS_TRY(ms_screen_print(&text, fault));
    return r->out.csv == NULL
               ? MS_OK
               : ms_outputs_write(r->out.csv, &csv, r->out.quiet, fault);
}

ms_err ms_fit_command(const ms_hall *hall, int *status, ms_fault *fault)
{
    run r = {.hall = hall};
    MS_TRY(read_options(&r, fault));
    MS_TRY(check_max(&r, fault));
    MS_TRY(ms_points_open(&r.points, fault));
    ms_err err = search(&r, fault);
    if (err == MS_OK)
        err = print_result(&r, fault);
    if (err == MS_OK)
        err = draw(&r, fault);
    ms_fitspace_close(&r.fit);
    ms_points_close(&r.points);
    *status = r.fit.best != MS_NONE ? 0 : ms_complain_status(MS_EINFEASIBLE);
    return err;
}
