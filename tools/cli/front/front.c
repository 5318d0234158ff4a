/* SPDX-License-Identifier: GPL-3.0-or-later */
/* memsim compare MODEL --checkpoint-all. */
#include "tools/cli/front/front.h"
#include "sim/base/size.h"
#include "sim/shape.h"
#include "tools/job/outputs.h"
#include "tools/job/settings.h"
#include "tools/options/options.h"

#include <stdio.h>
#include <string.h>

typedef struct outputs {
    const char *csv; /* NULL: none is asked for */
    ms_picture figure;
    bool json, quiet;
} outputs;

/* ---- what was asked for -------------------------------------------------- */

/* What compare takes and this does not. */
static const struct {
    ms_option_id option;
    const char *why, *hint;
} refused[] = {
    {MS_OPTION_GRID, "all ways are of one step", "sweep has --grid"},
    {MS_OPTION_VARIANT, "all ways are of one step", "leave it out"},
    {MS_OPTION_FILTER, "all ways are of one step", "leave it out"},
    {MS_OPTION_ALLOCATOR, "peaks are what tensors take, without a pool",
     "compare the ways that matter with -p and --allocator"},
    {MS_OPTION_ALLOCATORS, "peaks are what tensors take, without a pool",
     "compare the ways that matter with -p and --allocators"},
    {MS_OPTION_EXPLAIN, "it is for two variants",
     "compare -p A -p B --explain"},
    {MS_OPTION_LABEL, "ways have their own names", "leave it out"},
    {MS_OPTION_CHECK, "most ways are not to fit", "use it with run or fit"},
};

static ms_err check_options(const ms_arguments *arguments, ms_fault *fault)
{
    const char *kind = ms_options_value(arguments, MS_OPTION_FIGURE);
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
        for (uint32_t k = 0; k < arguments->n_given; k++)
            if (arguments->given[k].option->id == refused[i].option)
                return ms_fail(fault, MS_EUSAGE, NULL, refused[i].hint,
                               "option \"--%s\" does not go with "
                               "\"--checkpoint-all\": %s",
                               arguments->given[k].option->name,
                               refused[i].why);
    if (kind != NULL && strcmp(kind, "front") != 0)
        return ms_fail(fault, MS_EUSAGE, NULL, "leave --figure out",
                       "the figure of \"--checkpoint-all\" is front");
    if (arguments->n_operands != 1)
        return ms_fail(fault, MS_EUSAGE, NULL, "name one model",
                       "\"--checkpoint-all\" is of one model; there are %u",
                       (unsigned)arguments->n_operands);
    return MS_OK;
}

static ms_err read_budgets(const ms_arguments *arguments, uint64_t *budgets,
                           uint32_t *n, ms_fault *fault)
{
    const char *list = ms_options_value(arguments, MS_OPTION_BUDGET);
    char one[64];
    *n = 0;
    for (bool more = list != NULL; more;) {
        size_t length = strcspn(list, ",");
        if (*n == MS_FRONT_MOST / 2)
            return ms_fail(fault, MS_EUSAGE, "--budget", "give fewer",
                           "there are more than %u budgets", MS_FRONT_MOST / 2);
        snprintf(one, sizeof one, "%.*s", (int)(length < 60 ? length : 60),
                 list);
        MS_TRY(ms_size_bytes(one, "--budget", &budgets[*n], fault));
        if (budgets[*n] == 0)
            return ms_fail(fault, MS_EUSAGE, "--budget", "write 40GiB,60GiB",
                           "a budget of 0 bytes holds nothing");
        ++*n;
        more = list[length] == ',';
        list += length + more;
    }
    return MS_OK;
}

static ms_err read_job(const ms_hall *hall, ms_job *job, ms_fault *fault)
{
    const ms_arguments *arguments = hall->arguments;
    MS_TRY(ms_settings_open(arguments, hall->keep, job, fault));
    job->model = arguments->operands[0];
    for (uint32_t i = 0; i < arguments->n_given; i++) {
        ms_spec more = {0};
        if (arguments->given[i].option->id != MS_OPTION_POLICY)
            continue;
        MS_TRY(
            ms_spec_parse(arguments->given[i].value, hall->keep, &more, fault));
        MS_TRY(ms_spec_join(&more, &job->spec, fault));
    }
    for (uint32_t i = 0; i < job->spec.n; i++)
        if (strcmp(job->spec.items[i].policy->name, "checkpoint") == 0)
            return ms_fail(fault, MS_EUSAGE, "--policy",
                           "leave it out, or leave --checkpoint-all out",
                           "all ways to checkpoint are compared, and this is "
                           "one");
    job->allocator = NULL;
    job->allocator_given = true;
    return MS_OK;
}

/* ---- who shares the work ------------------------------------------------- */

/* Those of fit, by what they take of the links. */
static const char *const shares[] = {"ddp", "zero:1", "zero:2", "zero:3"};
#define N_SHARES (sizeof shares / sizeof *shares)

static ms_err join(const char *spec, ms_arena *arena, ms_job *job,
                   ms_fault *fault)
{
    ms_spec more = {0};
    MS_TRY(ms_spec_parse(spec, arena, &more, fault));
    return ms_spec_join(&more, &job->spec, fault);
}

/* Does the step fit where each block is a checkpoint? */
static ms_err try_share(const ms_hall *hall, ms_points *points, ms_job job,
                        bool *fits, ms_fault *fault)
{
    ms_points_seat seat = {0};
    ms_result result;
    ms_fault own = {.caret = -1};
    bool folded;
    MS_TRY(join("checkpoint:full", hall->keep, &job, fault));
    ms_err err = ms_points_fold(points, &seat, &job, &result, &folded, &own);
    *fits = err == MS_OK && result.report->status == MS_FITS;
    ms_points_leave(points, &seat);
    return err == MS_ENOMEM ? ms_fail_nomem(fault) : MS_OK;
}

/* Where no policy says how several GPUs share the work: the first way that fits
 * with checkpoints, or that which takes the least memory. */
static ms_err share(const ms_hall *hall, ms_points *points, ms_job *job,
                    ms_front *front, ms_fault *fault)
{
    ms_shape shape = {.micro_batches = 1, .gpus = job->gpus, .data_ranks = 1};
    const ms_job given = *job;
    bool fits = false;
    MS_TRY(ms_apply_shape(&job->spec, &shape, fault));
    bool alone = job->gpus > 1 && ms_shape_ranks(&shape) == 1;
    for (size_t i = 0; i < N_SHARES && alone && !fits; i++) {
        *job = given;
        MS_TRY(join(shares[i], hall->keep, job, fault));
        MS_TRY(try_share(hall, points, *job, &fits, fault));
    }
    front->policy = ms_spec_print(&job->spec, hall->keep);
    return front->policy == NULL ? ms_fail_nomem(fault) : MS_OK;
}

static ms_err read_outputs(const ms_hall *hall, const ms_job *job, outputs *out,
                           ms_fault *fault)
{
    const ms_arguments *arguments = hall->arguments;
    *out = (outputs){
        .csv = ms_options_value(arguments, MS_OPTION_CSV),
        .json = ms_options_value(arguments, MS_OPTION_JSON) != NULL,
        .quiet = ms_options_value(arguments, MS_OPTION_QUIET) != NULL};
    MS_TRY(ms_outputs_picture(arguments, hall->keep, &out->figure, fault));
    const char *files[] = {out->csv, out->figure.path, out->figure.script};
    if (out->json + ms_outputs_is_stdout(out->csv) +
            ms_outputs_is_stdout(out->figure.path) >
        1)
        return ms_fail(fault, MS_EUSAGE, NULL,
                       "ask for one of --json and a file named -",
                       "standard output can carry one result only");
    return ms_outputs_check(job, files, 3, fault);
}

/* ---- what comes out ------------------------------------------------------ */

static ms_err print(const ms_hall *hall, const ms_front *front,
                    const outputs *out, ms_fault *fault)
{
    ms_text text = {.arena = hall->trial}, csv = text;
    const char *colour = ms_options_value(hall->arguments, MS_OPTION_COLOR);
    if (out->csv != NULL)
        ms_front_keys_csv(front, &csv);
    if (ms_outputs_is_stdout(out->csv))
        return ms_screen_print(&csv, fault);
    if (out->json)
        ms_front_keys_json(front, &text);
    else if (!out->quiet && !ms_outputs_is_stdout(out->figure.path))
        ms_front_text_write(front, ms_screen_style(1, colour), &text);
    MS_TRY(ms_screen_print(&text, fault));
    return out->csv == NULL
               ? MS_OK
               : ms_outputs_write(out->csv, &csv, out->quiet, fault);
}

static ms_err draw(const ms_hall *hall, const ms_front *front,
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
    MS_TRY(ms_front_figure_draw(front, &drawing, fault));
    if (!out->quiet && !ms_outputs_is_stdout(drawing.path))
        ms_complain_note("wrote", drawing.path);
    return MS_OK;
}

static ms_err make(const ms_hall *hall, ms_points *points, ms_front *front,
                   ms_fault *fault)
{
    uint64_t budgets[MS_FRONT_MOST];
    uint32_t n;
    ms_job job;
    outputs out;
    MS_TRY(check_options(hall->arguments, fault));
    MS_TRY(read_budgets(hall->arguments, budgets, &n, fault));
    MS_TRY(read_job(hall, &job, fault));
    MS_TRY(share(hall, points, &job, front, fault));
    MS_TRY(read_outputs(hall, &job, &out, fault));
    MS_TRY(
        ms_frontfind_rows(&job, points, budgets, n, hall->keep, front, fault));
    if (front->model == NULL) /* no way has numbers */
        return ms_fail(fault, MS_EUSAGE, NULL, NULL, "%s",
                       front->rows[0].message);
    MS_TRY(print(hall, front, &out, fault));
    return draw(hall, front, &out, fault);
}

ms_err ms_front_command(const ms_hall *hall, int *status, ms_fault *fault)
{
    ms_points points;
    ms_front *front = ms_arena_take(hall->keep, 1, sizeof *front);
    *status = 0;
    if (front == NULL)
        return ms_fail_nomem(fault);
    front->memsim = MS_VERSION;
    MS_TRY(ms_points_open(&points, fault));
    ms_err err = make(hall, &points, front, fault);
    ms_points_close(&points);
    return err;
}
