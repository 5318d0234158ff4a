/* SPDX-License-Identifier: GPL-3.0-or-later */
/* memsim help: the table of topics. Help on commands walks the table of
 * options, all other help walks the tables of the rooms. */

#include "tools/cli/help/help.h"
#include "graphs/training.h"
#include "policies/common/policy.h"
#include "sim/names.h"
#include "tools/cli/commands.h"
#include "tools/cli/schema/documents.h"
#include "tools/options/options.h"
#include "tools/options/optionwords.h"
#include "tools/terminal/screen.h"

#include <string.h>

typedef struct topic {
    const char *name, *summary;
    void (*write)(ms_text *text);
} topic;

static const topic topics[] = {
    {"policies", "memory policies and their parameters",
     ms_help_tables_policies},
    {"models", "built-in models", ms_help_tables_models},
    {"devices", "devices and their rates", ms_help_tables_devices},
    {"layers", "layer types of a model file", ms_help_tables_layers},
    {"ops", "ops of an exported op graph", ms_help_tables_ops},
    {"families", "families of a model file", ms_help_tables_families},
    {"huggingface", "config.json of Hugging Face: types, keys, heads",
     ms_help_texts_huggingface},
    {"training", "training settings (--set)", ms_help_tables_training},
    {"frameworks", "what differs between versions of PyTorch",
     ms_help_tables_frameworks},
    {"precisions", "bytes per parameter of each precision",
     ms_help_tables_precisions},
    {"files", "how a model file is written", ms_help_texts_files},
    {"grid", "the points of a sweep: --grid, --filter, --shard",
     ms_help_texts_grid},
    {"units", "bytes, GiB and GB; FLOP, MAC, parameters", ms_help_texts_units},
    {"json", "the keys of what --json prints", ms_help_texts_json},
    {"traces", "allocation traces and allocator options", ms_help_traces_write},
    {"measurements", "what memsim calibrate reads", ms_help_traces_measured},
    {"checks", "the cases of memsim check", ms_help_checks_write},
    {"from", "settings of other programs: --from", ms_help_from_write},
    {"words", "words of other programs that are understood",
     ms_optionwords_help},
    {"advice", "what a step that does not fit is advised",
     ms_help_changes_write},
    {"exit", "exit statuses", ms_help_texts_exit},
};
#define N_TOPICS (sizeof topics / sizeof topics[0])
#define MAX_NAMES 256u
#define INDENT 28u

/* ---- commands ------------------------------------------------------------ */

static const char *field_words(const char *setting)
{
    const char *name = strchr(setting, '.') + 1;
    for (uint32_t i = 0; i < ms_training_n_fields; i++)
        if (strcmp(ms_training_fields[i].name, name) == 0)
            return ms_training_fields[i].words;
    return NULL;
}

void ms_help_option(const ms_option *option, const ms_option_use *use,
                    ms_text *words)
{
    const char *values = option->takes == MS_TAKES_VALUE ? use->words : NULL;
    if (option->setting != NULL)
        values = field_words(option->setting);
    ms_text_add(words, "%s", use->help);
    if (values != NULL)
        ms_text_add(words, ": ");
    if (values != NULL)
        ms_options_words(values, words);
}

static void put_option(const ms_option *option, const ms_option_use *use,
                       ms_text *text)
{
    ms_text label = {.arena = text->arena}, words = {.arena = text->arena};
    if (option->letter != 0)
        ms_text_add(&label, "  -%c, --%s", option->letter, option->name);
    else
        ms_text_add(&label, "      --%s", option->name);
    if (option->takes == MS_TAKES_VALUE)
        ms_text_add(&label, " %s", option->value);
    else if (option->takes == MS_TAKES_OPTIONAL)
        ms_text_add(&label, " [%s]", option->value);
    ms_help_option(option, use, &words);
    text->failed |= label.failed || words.failed;
    if (!text->failed)
        ms_screen_fill(text, INDENT, label.bytes, words.bytes);
}

static void put_examples(const ms_command *command, ms_text *text)
{
    ms_text_add(text, "Examples:\n");
    for (uint32_t i = 0; command->examples[i] != NULL; i++)
        ms_text_add(text, "  %s\n", command->examples[i]);
}

/* The values that the operands of a command can have. */
static void put_operands(const ms_command *command, ms_text *text)
{
    if (strstr(command->operands, "MODEL") != NULL)
        ms_text_add(text, "\nMODEL is a file, - (standard input) or a "
                          "built-in model (memsim help models).\n");
    if (strstr(command->operands, "TRACE") != NULL)
        ms_text_add(text,
                    "\nTRACE is a trace in text form, a memory snapshot of "
                    "PyTorch (a pickle), a recorded\nhistory as JSON, or - "
                    "(standard input); \"memsim help traces\" has the forms "
                    "and\nthe options of torch.\n");
    if (strstr(command->operands, "RESULT") != NULL)
        ms_text_add(text, "\nRESULT is what run --json, compare --json or "
                          "sweep wrote, or - (standard input);\nseveral are "
                          "drawn together.\n");
    if (strstr(command->operands, "CASES") != NULL)
        ms_text_add(text, "\nCASES is a file of yours: memsim help checks.\n");
    if (strstr(command->operands, "DOCUMENT") != NULL)
        ms_text_add(text, "\nDOCUMENT is one of\n\n");
    for (uint32_t i = 0; i < ms_documents_n; i++)
        if (strstr(command->operands, "DOCUMENT") != NULL)
            ms_text_add(text, "  %-10s %s\n", ms_documents[i].name,
                        ms_documents[i].what);
    if (strstr(command->operands, "SHELL") != NULL)
        ms_text_add(text,
                    "\nAn installed memsim brings them along.  For other "
                    "shells, \"completion words --\"\nand the words of a "
                    "command line print what could stand for the last one.\n");
}

static void put_command(const ms_command *command, ms_text *text)
{
    const ms_option *list[MS_OPTIONS_MOST];
    uint32_t n = ms_optionuses_list(command->bit, list);
    ms_text_add(text, "memsim %s %s [OPTION]...: %s\n\n", command->name,
                command->operands, command->summary);
    put_examples(command, text);
    ms_text_add(text, "\nOptions, in any order:\n");
    for (uint32_t i = 0; i < n; i++)
        put_option(list[i], ms_optionuses_of(list[i], command->bit), text);
    put_operands(command, text);
}

/* The width of the widest row, since tables grow. */
static int width_of(const ms_commands *commands, bool operands)
{
    size_t width = 8;
    for (uint32_t i = 0; i < commands->n; i++) {
        const ms_command *command = &commands->rows[i];
        size_t own = strlen(operands ? command->operands : command->name);
        width = own > width ? own : width;
    }
    return (int)width;
}

void ms_help_short(const ms_commands *commands, ms_text *text)
{
    int names = width_of(commands, false), operands = width_of(commands, true);
    ms_text_add(text,
                "memsim %s: does this training step fit, what is alive at "
                "the peak,\nwhat does each memory policy buy, and what does "
                "it cost in time?\n\n",
                MS_VERSION);
    put_examples(&commands->rows[0], text);
    ms_text_add(text, "\nCommands:\n");
    for (uint32_t i = 0; i < commands->n; i++)
        ms_text_add(text, "  %-*s %-*s  %s\n", names, commands->rows[i].name,
                    operands, commands->rows[i].operands,
                    commands->rows[i].summary);
    ms_text_add(text, "\nTopics of memsim help:\n");
    for (size_t i = 0; i < N_TOPICS; i++)
        ms_text_add(text, "  %-*s  %s\n", names + operands + 1, topics[i].name,
                    topics[i].summary);
    ms_text_add(text, "\nAlso the name of a policy, layer type or family, "
                      "e.g. memsim help checkpoint.\n");
}

/* ---- topics -------------------------------------------------------------- */

uint32_t ms_help_names(const ms_commands *commands, const char **names,
                       uint32_t room)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < commands->n && n < room; i++)
        names[n++] = commands->rows[i].name;
    for (size_t i = 0; i < N_TOPICS && n < room; i++)
        names[n++] = topics[i].name;
    return n + ms_help_tables_names(names + n, room - n);
}

const char *ms_help_summary(uint32_t i, const char **summary)
{
    if (i >= N_TOPICS)
        return NULL;
    *summary = topics[i].summary;
    return topics[i].name;
}

static ms_err fail_topic(const ms_commands *commands, const char *word,
                         ms_fault *fault)
{
    const char *names[MAX_NAMES];
    char hint[128] = "\"memsim help\" lists the topics";
    uint32_t n = ms_help_names(commands, names, MAX_NAMES);
    const char *near = ms_names_nearest(word, names, n);
    if (near != NULL && strlen(near) < 64) {
        strcpy(hint, "did you mean \"");
        strcat(hint, near);
        strcat(hint, "\"?");
    }
    return ms_fail(fault, MS_EUSAGE, NULL, hint, "no help on \"%s\"", word);
}

ms_err ms_help_topic(const ms_commands *commands, const char *word,
                     ms_text *text, ms_fault *fault)
{
    for (uint32_t i = 0; i < commands->n; i++)
        if (strcmp(commands->rows[i].name, word) == 0) {
            put_command(&commands->rows[i], text);
            return MS_OK;
        }
    for (size_t i = 0; i < N_TOPICS; i++)
        if (strcmp(topics[i].name, word) == 0) {
            topics[i].write(text);
            return MS_OK;
        }
    return ms_help_tables_one(word, text) ? MS_OK
                                          : fail_topic(commands, word, fault);
}

ms_err ms_help_command(const ms_hall *hall, int *status, ms_fault *fault)
{
    ms_text text = {.arena = hall->keep};
    *status = 0;
    if (hall->arguments->n_operands == 0)
        ms_help_short(hall->commands, &text);
    else
        MS_TRY(ms_help_topic(hall->commands, hall->arguments->operands[0],
                             &text, fault));
    return ms_screen_print(&text, fault);
}
