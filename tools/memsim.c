/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The hall's door: main, signals, the exit status. */

#include "graphs/model.h"
#include "graphs/models/files/namewords.h"
#include "policies/common/policy.h"
#include "sim/names.h"
#include "tools/cli/commands.h"
#include "tools/cli/help/help.h"
#include "tools/from/from.h"
#include "tools/job/settings.h"
#include "tools/options/options.h"
#include "tools/options/optionwords.h"
#include "tools/terminal/screen.h"

#ifndef MS_COMMIT /* "commit 1234abcd, ", by CMake in a checkout */
#define MS_COMMIT ""
#endif

#include <assert.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

/* ---- signals ------------------------------------------------------------- */

static void interrupted(int number)
{
    static const char message[] = "\nmemsim: interrupted\n";
    ssize_t unused = write(STDERR_FILENO, message, sizeof message - 1);
    (void)unused;
    _exit(128 + number);
}

/* A signal that is ignored for us (nohup, a job in the background) stays so. */
static void catch_signal(int number)
{
    struct sigaction stop = {.sa_handler = interrupted}, inherited;
    sigemptyset(&stop.sa_mask);
    if (sigaction(number, NULL, &inherited) == 0 &&
        inherited.sa_handler != SIG_IGN)
        sigaction(number, &stop, NULL);
}

/* A closed pipe is seen as EPIPE: gnuplot may leave early too. */
static void catch_signals(void)
{
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    sigemptyset(&ignore.sa_mask);
    sigaction(SIGPIPE, &ignore, NULL);
    catch_signal(SIGINT);
    catch_signal(SIGTERM);
}

/* A file opened while 0, 1 or 2 is closed would take that number, and what is
 * printed would go into it.  Read-only, so that printing still fails. */
static bool hold_standard_files(void)
{
    for (int fd = 0; fd <= 2; fd++)
        if (fcntl(fd, F_GETFD) == -1 && open("/dev/null", O_RDONLY) != fd)
            return false;
    return true;
}

/* ---- settings of other programs ------------------------------------------ */

/* What was made of --from goes to standard error: result and data stay alone on
 * standard output.  Warnings are told whatever --quiet says. */
static ms_err expand(const ms_command *command, ms_hall *hall, ms_fault *fault)
{
    ms_from from;
    ms_text json = {.arena = hall->keep};
    bool quiet = ms_options_value(hall->arguments, MS_OPTION_QUIET) != NULL;
    MS_TRY(ms_from_expand(command->name, command->bit, hall->keep,
                          hall->arguments, &from, fault));
    if (from.n_files == 0)
        return MS_OK;
    for (uint32_t i = 0; i < from.n_files && !quiet; i++)
        ms_complain_line(from.files[i].path, ": settings of ",
                         from.files[i].format);
    for (uint32_t i = 0; i < from.n_told && !quiet; i++)
        ms_complain_line(from.told[i], "", "");
    for (uint32_t i = 0; i < from.n_warnings; i++)
        ms_complain_line("warning: ", from.warnings[i], "");
    if (!quiet)
        ms_complain_line("understood as: ", from.command, "");
    ms_from_json(&from, &json);
    hall->arguments->from_json = json.bytes;
    return json.failed ? ms_fail_nomem(fault) : MS_OK;
}

/* ---- dispatch ------------------------------------------------------------ */

#define MOST_COMMANDS 32u

static ms_err fail_command(const char *word, ms_fault *fault)
{
    const char *names[MOST_COMMANDS];
    char hint[128] = "\"memsim help\" lists the commands";
    assert(ms_commands_all.n <= MOST_COMMANDS);
    for (size_t i = 0; i < ms_commands_all.n; i++)
        names[i] = ms_commands_all.rows[i].name;
    const char *near = ms_names_nearest(word, names, ms_commands_all.n);
    const ms_word *row =
        ms_words_find(&ms_optionwords_commands, NULL, word, strlen(word));
    char unused[384];
    if (row != NULL) {
        ms_words_hint(row, hint, sizeof hint);
    } else if (strlen(word) < 64 &&
               ms_namewords_model(word, unused, sizeof unused) != NULL) {
        strcpy(hint, "write memsim run ");
        strcat(hint, word);
    } else if (near != NULL) {
        strcpy(hint, "did you mean \"");
        strcat(hint, near);
        strcat(hint, "\"?");
    }
    return ms_fail(fault, MS_EUSAGE, NULL, hint, "unknown command \"%s\"",
                   word);
}

static ms_err check_operands(const ms_command *command,
                             const ms_arguments *arguments, ms_fault *fault)
{
    const char *const *operands = (const char *const *)arguments->operands;
    if (arguments->n_operands < command->min_operands)
        return ms_fail(fault, MS_EUSAGE, NULL, command->examples[0],
                       "\"memsim %s\" needs a %.*s, for example", command->name,
                       (int)strcspn(command->operands, "."), command->operands);
    const char *hint = NULL;
    char other[384] = "";
    if (arguments->n_operands > command->max_operands)
        ms_optionwords_operand(command->bit, operands[command->max_operands],
                               other, sizeof other);
    if (arguments->n_operands > 1 && command->max_operands == 1)
        hint = "give one, and run the command again for each of the others";
    if (*other != '\0')
        hint = other;
    else if (ms_options_value(arguments, MS_OPTION_PLOT) != NULL)
        hint = "the name of a figure ends in .svg, .png or .pdf";
    if (arguments->n_operands > command->max_operands &&
        command->max_operands > 1)
        return ms_fail(fault, MS_EUSAGE, NULL, hint,
                       "\"memsim %s\" takes at most %u of %s", command->name,
                       command->max_operands, command->operands);
    if (arguments->n_operands > command->max_operands)
        return ms_fail(fault, MS_EUSAGE, NULL, hint,
                       "\"memsim %s\" takes one %s; \"%s\" is one too many",
                       command->name, command->operands,
                       operands[command->max_operands]);
    return MS_OK;
}

static ms_err print_help(const char *topic, ms_hall *hall, ms_fault *fault)
{
    ms_text text = {.arena = hall->keep};
    if (topic == NULL)
        ms_help_short(hall->commands, &text);
    else
        MS_TRY(ms_help_topic(hall->commands, topic, &text, fault));
    return ms_screen_print(&text, fault);
}

/* Options before a command: only what needs none. */
static ms_err call_top(const char *const *words, uint32_t n, ms_hall *hall,
                       ms_fault *fault)
{
    const ms_arguments *arguments = hall->arguments;
    MS_TRY(ms_options_parse(MS_FOR_TOP, words, n, hall->keep, hall->arguments,
                            fault));
    if (ms_options_value(arguments, MS_OPTION_VERSION) != NULL) {
        ms_text text = {.arena = hall->keep};
        ms_text_add(&text, "memsim %s\n%sigraph %s\n", MS_VERSION, MS_COMMIT,
                    ms_dag_library());
        return ms_screen_print(&text, fault);
    }
    return print_help(arguments->n_operands > 0 ? arguments->operands[0] : NULL,
                      hall, fault);
}

static ms_err call(const char *const *words, uint32_t n, ms_hall *hall,
                   int *status, ms_fault *fault)
{
    if (n == 0 || words[0][0] == '-')
        return call_top(words, n, hall, fault);
    for (size_t i = 0; i < hall->commands->n; i++) {
        const ms_command *command = &hall->commands->rows[i];
        if (strcmp(command->name, words[0]) != 0)
            continue;
        MS_TRY(ms_options_parse(command->bit, words + 1, n - 1, hall->keep,
                                hall->arguments, fault));
        MS_TRY(ms_pluginfile_load(hall->arguments, hall->keep, fault));
        if (ms_options_value(hall->arguments, MS_OPTION_HELP) != NULL)
            return print_help(command->name, hall, fault);
        MS_TRY(expand(command, hall, fault));
        MS_TRY(check_operands(command, hall->arguments, fault));
        return command->call(hall, status, fault);
    }
    return fail_command(words[0], fault);
}

int main(int argc, char **argv)
{
    ms_arena keep = {0}, trial = {0};
    ms_arguments arguments = {0};
    ms_hall hall = {.arguments = &arguments,
                    .keep = &keep,
                    .trial = &trial,
                    .commands = &ms_commands_all};
    ms_fault fault = {.caret = -1};
    int status = 0;
    if (!hold_standard_files())
        return ms_complain_status(MS_ESYSTEM);
    catch_signals();
    ms_err err =
        call((const char *const *)argv + (argc > 0),
             argc > 0 ? (uint32_t)argc - 1 : 0, &hall, &status, &fault);
    if (err != MS_OK) {
        ms_complain(&fault, ms_options_value(&arguments, MS_OPTION_COLOR));
        status = ms_complain_status(err);
    }
    ms_arena_free(&trial);
    ms_arena_free(&keep);
    return status;
}
