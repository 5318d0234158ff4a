/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The files of results. No input and no other output may be overwritten. */

#include "tools/job/outputs.h"
#include "plots/page/htmlpage.h"
#include "plots/plots.h"
#include "sim/report.h"
#include "tools/job/job.h"
#include "tools/job/settings.h"
#include "tools/options/options.h"
#include "tools/terminal/screen.h"

#include <string.h>
#include <sys/stat.h>

bool ms_outputs_is_stdout(const char *path)
{
    return path != NULL && strcmp(path, "-") == 0;
}

static ms_err fail_rank(const char *value, const ms_report *report,
                        ms_fault *fault)
{
    uint32_t last = report->ranks[report->n_ranks - 1].rank;
    if (last == 0)
        return ms_fail(fault, MS_EUSAGE, "--rank", "leave it out",
                       "\"%.40s\" is no rank of this step; there is one, 0, "
                       "and others do the same",
                       value);
    return ms_fail(fault, MS_EUSAGE, "--rank", NULL,
                   "\"%.40s\" is no rank of this step; they are 0 to %u", value,
                   last);
}

ms_err ms_outputs_rank(const ms_arguments *arguments, ms_report *report,
                       ms_fault *fault)
{
    const char *value = ms_options_value(arguments, MS_OPTION_RANK);
    uint64_t number = 0;
    if (value == NULL)
        return MS_OK;
    size_t digits = strspn(value, "0123456789");
    bool is_number = digits > 0 && digits < 6 && value[digits] == '\0';
    for (size_t i = 0; i < digits && is_number; i++)
        number = 10 * number + (uint64_t)(value[i] - '0');
    for (uint16_t r = 0; r < report->n_ranks && is_number; r++)
        if (report->ranks[r].rank == number) {
            report->told = r;
            return MS_OK;
        }
    return fail_rank(value, report, fault);
}

/* Are they one file, also through links? A device such as /dev/null counts as
 * different files, since it may be named twice. */
static bool same_file(const char *a, const char *b)
{
    struct stat of_a, of_b;
    if (a == NULL || b == NULL || strcmp(b, "-") == 0)
        return false;
    if (stat(a, &of_a) != 0 || stat(b, &of_b) != 0)
        return strcmp(a, b) == 0;
    return S_ISREG(of_a.st_mode) && of_a.st_dev == of_b.st_dev &&
           of_a.st_ino == of_b.st_ino;
}

/* Is the file an input of the job? A library, for example, would crash the
 * process when it is overwritten while loaded. */
static bool is_input(const ms_job *job, const char *file)
{
    for (uint32_t i = 0; i < job->n_plugins; i++)
        if (same_file(job->plugins[i], file))
            return true;
    return same_file(job->model, file) || same_file(job->program, file);
}

static ms_err fail_input(const char *file, ms_fault *fault)
{
    return ms_fail(fault, MS_EUSAGE, file, "name another file for the output",
                   "is an input and would be overwritten");
}

static ms_err check_twice(const char *const *files, uint32_t n, ms_fault *fault)
{
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t j = 0; j < i; j++)
            if (same_file(files[j], files[i]))
                return ms_fail(fault, MS_EUSAGE, files[i],
                               "name two different files",
                               "is named for two outputs");
    return MS_OK;
}

ms_err ms_outputs_check(const ms_job *job, const char *const *files, uint32_t n,
                        ms_fault *fault)
{
    for (uint32_t i = 0; i < n; i++)
        if (is_input(job, files[i]))
            return fail_input(files[i], fault);
    return check_twice(files, n, fault);
}

ms_err ms_outputs_keep(const char *const *inputs, uint32_t n_inputs,
                       const char *const *files, uint32_t n, ms_fault *fault)
{
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t j = 0; j < n_inputs; j++)
            if (files[i] != NULL && strcmp(files[i], "-") != 0 &&
                same_file(inputs[j], files[i]))
                return fail_input(files[i], fault);
    return check_twice(files, n, fault);
}

char *ms_outputs_script(const char *figure, ms_arena *arena)
{
    const char *dot = strrchr(figure, '.'), *slash = strrchr(figure, '/');
    size_t length = dot != NULL && (slash == NULL || dot > slash)
                        ? (size_t)(dot - figure)
                        : strlen(figure);
    return ms_arena_format(arena, "%.*s.gp", (int)length, figure);
}

ms_err ms_outputs_write(const char *path, const ms_text *text, bool quiet,
                        ms_fault *fault)
{
    if (text->failed)
        return ms_fail_nomem(fault);
    MS_TRY(ms_output_write(path, text->bytes, text->length, fault));
    if (!quiet)
        ms_complain_note("wrote", path);
    return MS_OK;
}

/* ---- pages and figures --------------------------------------------------- */

ms_err ms_outputs_page(const char *path, ms_fault *fault)
{
    if (ms_outputs_is_stdout(path) || ms_options_ends_in(".html|.htm", path))
        return MS_OK;
    return ms_fail(fault, MS_EUSAGE, path, "name it NAME.html",
                   "the page is HTML, and this does not end so");
}

ms_err ms_outputs_opening(const char *command, const ms_arguments *arguments,
                          ms_text *text, ms_fault *fault)
{
    ms_text made = {.arena = text->arena};
    ms_text_add(&made, "Made by memsim " MS_VERSION ": ");
    ms_settings_again(command, arguments, &made);
    if (made.failed)
        return ms_fail_nomem(fault);
    ms_text_add(text, "{\"made\":");
    ms_text_json(text, made.bytes);
    ms_text_add(text, ",");
    ms_htmlpage_put_colors(text);
    ms_text_add(text, ",");
    return text->failed ? ms_fail_nomem(fault) : MS_OK;
}

ms_err ms_outputs_picture(const ms_arguments *arguments, ms_arena *arena,
                          ms_picture *picture, ms_fault *fault)
{
    ms_format format;
    bool keeps = ms_options_value(arguments, MS_OPTION_KEEP_SCRIPT) != NULL;
    *picture =
        (ms_picture){.path = ms_options_value(arguments, MS_OPTION_PLOT),
                     .kind = ms_options_value(arguments, MS_OPTION_FIGURE),
                     .title = ms_options_value(arguments, MS_OPTION_TITLE)};
    bool is_titled = picture->title != NULL &&
                     ms_options_value(arguments, MS_OPTION_OUTPUT) == NULL;
    if (picture->path == NULL && (keeps || picture->kind != NULL || is_titled))
        return ms_fail(fault, MS_EUSAGE, NULL, "add --plot",
                       "option \"--%s\" needs a figure",
                       keeps                   ? "keep-script"
                       : picture->kind != NULL ? "figure"
                                               : "title");
    if (picture->path == NULL)
        return MS_OK;
    if (keeps)
        picture->script = ms_outputs_script(picture->path, arena);
    if (keeps && picture->script == NULL)
        return ms_fail_nomem(fault);
    return ms_gnuplot_format(picture->path, &format, fault);
}
