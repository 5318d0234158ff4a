/* SPDX-License-Identifier: GPL-3.0-or-later */
/* memsim calibrate: a device's file from what was measured of it. */

#include "tools/cli/calibrate/calibrate.h"
#include "plots/plots.h"
#include "tools/calibrate/measuredfiles.h"
#include "tools/calibrate/ratefile.h"
#include "tools/cli/calibrate/calibrate_keys.h"
#include "tools/job/settings.h"

#include <string.h>

#define MOST_BYTES (1u << 30) /* of a table */

/* What the command line asks for. */
typedef struct asked {
    const char *file, *device, *output;
    bool json, quiet;
    const ms_style *style;
    ms_picture figure;
} asked;

/* ---- the command line ---------------------------------------------------- */

static ms_err check_outputs(const asked *a, bool checks, ms_fault *fault)
{
    bool writes = ms_outputs_is_stdout(a->output);
    const char *const inputs[] = {a->file, a->device};
    const char *const files[] = {a->output, a->figure.path, a->figure.script};
    if (a->output != NULL && checks)
        return ms_fail(fault, MS_EUSAGE, NULL, "leave one of them out",
                       "--check fits nothing that -o could write");
    if (a->json + writes + ms_outputs_is_stdout(a->figure.path) > 1)
        return ms_fail(fault, MS_EUSAGE, NULL,
                       "ask for one of --json and a file named -",
                       "standard output can carry one result only");
    return ms_outputs_keep(inputs, 2, files, 3, fault);
}

static ms_err read_options(const ms_hall *hall, asked *a, ms_calibration *c,
                           ms_fault *fault)
{
    const ms_arguments *arguments = hall->arguments;
    const char *device = ms_options_value(arguments, MS_OPTION_DEVICE);
    *a = (asked){.file = arguments->operands[0],
                 .device = device != NULL ? device : MS_DEFAULT_DEVICE,
                 .output = ms_options_value(arguments, MS_OPTION_OUTPUT),
                 .json = ms_options_value(arguments, MS_OPTION_JSON) != NULL,
                 .quiet = ms_options_value(arguments, MS_OPTION_QUIET) != NULL,
                 .style = ms_screen_style(
                     1, ms_options_value(arguments, MS_OPTION_COLOR))};
    c->checks = ms_options_value(arguments, MS_OPTION_CHECK) != NULL;
    MS_TRY(ms_outputs_picture(arguments, hall->keep, &a->figure, fault));
    return check_outputs(a, c->checks, fault);
}

/* ---- the file ------------------------------------------------------------ */

/* A table of SimuMax begins with a brace, a CSV does not. */
static ms_err read_table(ms_kineto *file, ms_measurements *all, ms_fault *fault)
{
    MS_TRY(ms_kineto_rest(file, MOST_BYTES, fault));
    char *bytes = file->bytes + file->at;
    size_t length = file->end - file->at;
    if (bytes[strspn(bytes, " \t\r\n")] == '{')
        return ms_simumax_read(file->name, bytes, length, all, fault);
    return ms_csvrows_read(file->name, bytes, length, all, fault);
}

static ms_err read_file(const asked *a, ms_calibration *c, ms_fault *fault)
{
    ms_kineto file;
    ms_err err = ms_kineto_open(a->file, c->all.arena, &file, fault);
    c->file = c->all.source = file.name;
    if (err == MS_OK) {
        c->is_trace = ms_kineto_has_events(&file);
        err = c->is_trace ? ms_traced_read(&file, &c->all, &c->traced, fault)
                          : read_table(&file, &c->all, fault);
    }
    ms_kineto_close(&file);
    return err;
}

/* ---- the whole ----------------------------------------------------------- */

static ms_err write_file(const asked *a, const ms_calibration *c,
                         ms_arena *arena, ms_fault *fault)
{
    ms_text text = {.arena = arena};
    if (a->output == NULL)
        return MS_OK;
    const char *slash = strrchr(c->file, '/');
    MS_TRY(ms_ratefile_write(
        &c->fit, a->device, slash != NULL ? slash + 1 : c->file, &text, fault));
    return ms_outputs_write(a->output, &text,
                            a->quiet || ms_outputs_is_stdout(a->output), fault);
}

static ms_err print(const asked *a, const ms_calibration *c, ms_arena *arena,
                    ms_fault *fault)
{
    ms_text text = {.arena = arena};
    if (a->json) {
        ms_keys_write(&ms_calibrate_keys, c, &text);
        ms_text_add(&text, "\n");
    } else if (!a->quiet && !ms_outputs_is_stdout(a->output) &&
               !ms_outputs_is_stdout(a->figure.path)) {
        ms_calibrate_text(c, a->style, &text);
    }
    return text.bytes != NULL || text.failed ? ms_screen_print(&text, fault)
                                             : MS_OK;
}

static ms_err draw(const asked *a, const ms_calibration *c, ms_arena *arena,
                   ms_fault *fault)
{
    if (a->figure.path == NULL)
        return MS_OK;
    if (!c->is_trace)
        return ms_fail(fault, MS_EINPUT, c->file,
                       "a trace of torch.profiler has one",
                       "shapes and times have no line of time to draw");
    if (ms_outputs_is_stdout(a->figure.path))
        ms_screen_end_with_reader();
    MS_TRY(ms_calibrate_figure(c, &a->figure, arena, fault));
    if (!a->quiet && !ms_outputs_is_stdout(a->figure.path))
        ms_complain_note("wrote", a->figure.path);
    return MS_OK;
}

ms_err ms_calibrate_command(const ms_hall *hall, int *status, ms_fault *fault)
{
    asked a;
    ms_calibration c = {.memsim = MS_VERSION, .all = {.arena = hall->keep}};
    *status = 0;
    MS_TRY(read_options(hall, &a, &c, fault));
    MS_TRY(ms_device_read(a.device, hall->keep, &c.like, fault));
    c.device = c.like->name;
    MS_TRY(read_file(&a, &c, fault));
    MS_TRY(ms_measured_check(&c.all, c.like, fault));
    MS_TRY(ms_calibrate_model(hall->arguments, hall->keep, &c, fault));
    if (c.checks)
        c.fit = (ms_ratefit){.like = c.like, .device = *c.like};
    else
        MS_TRY(ms_ratefit_run(&c.all, c.like, &c.fit, fault));
    MS_TRY(ms_calibrate_errors(&c, fault));
    if (c.checks)
        MS_TRY(ms_calibrate_ops(&c, hall->keep, fault));
    MS_TRY(print(&a, &c, hall->trial, fault));
    MS_TRY(write_file(&a, &c, hall->trial, fault));
    return draw(&a, &c, hall->trial, fault);
}
