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
#include "tools/terminal/narrow.h"
#include "tools/terminal/screen.h"
#include "tools/terminal/textlines.h"

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
#define QUESTION_INDENT 16u

/* ---- commands ------------------------------------------------------------ */

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
        ms_textlines_prose("\nMODEL is a file, - (standard input) or a "
                           "built-in model (memsim help models).\n",
                           text);
    if (strstr(command->operands, "TRACE") != NULL)
        ms_textlines_prose(
            "\nTRACE is a trace in text form, a memory snapshot of "
            "PyTorch (a pickle), a recorded\nhistory as JSON, or - "
            "(standard input); \"memsim help traces\" has the forms "
            "and\nthe options of torch.\n",
            text);
    if (strstr(command->operands, "RESULT") != NULL)
        ms_textlines_prose("\nRESULT is what run --json, compare --json or "
                           "sweep wrote, or - (standard input);\nseveral are "
                           "drawn together.\n",
                           text);
    if (strstr(command->operands, "CASES") != NULL)
        ms_textlines_prose("\nCASES is a file of yours: memsim help checks.\n",
                           text);
    if (strstr(command->operands, "DOCUMENT") != NULL)
        ms_text_add(text, "\nDOCUMENT is one of\n\n");
    for (uint32_t i = 0; i < ms_documents_n; i++)
        if (strstr(command->operands, "DOCUMENT") != NULL)
            ms_text_add(text, "  %-10s %s\n", ms_documents[i].name,
                        ms_documents[i].what);
    if (strstr(command->operands, "SHELL") != NULL)
        ms_textlines_prose(
            "\nAn installed memsim brings them along.  For other "
            "shells, \"completion words --\"\nand the words of a "
            "command line print what could stand for the last one.\n",
            text);
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
        ms_help_words_put(list[i], ms_optionuses_of(list[i], command->bit),
                          text);
    put_operands(command, text);
}

/* The width of the widest row, since tables grow. */
static uint32_t width_of(const ms_commands *commands, bool operands)
{
    size_t width = 8;
    for (uint32_t i = 0; i < commands->n; i++) {
        const ms_command *command = &commands->rows[i];
        size_t own = strlen(operands ? command->operands : command->name);
        width = own > width ? own : width;
    }
    return (uint32_t)width;
}

/* "  name   words", the words in their column. */
static void put_row(const char *name, const char *words, uint32_t indent,
                    ms_text *text)
{
    const char *label = ms_arena_format(text->arena, "  %s", name);
    text->failed |= label == NULL;
    if (label != NULL)
        ms_screen_fill(text, indent, label, words);
}

static void put_commands(const ms_commands *commands, uint32_t names,
                         uint32_t indent, ms_text *text)
{
    ms_text_add(text, "\nCommands:\n");
    for (uint32_t i = 0; i < commands->n; i++) {
        const ms_command *row = &commands->rows[i];
        const char *both = ms_arena_format(text->arena, "%-*s %s", (int)names,
                                           row->name, row->operands);
        text->failed |= both == NULL;
        put_row(both != NULL ? both : "", row->summary, indent, text);
    }
}

void ms_help_short(const ms_commands *commands, ms_text *text)
{
    const char *name, *words;
    uint32_t names = width_of(commands, false);
    uint32_t indent = names + width_of(commands, true) + 5;
    ms_textlines_prose(
        "memsim " MS_VERSION ": does this training step fit, what is alive at "
        "the peak, what does each memory policy buy, and what does it cost in "
        "time?\n\n",
        text);
    put_examples(&commands->rows[0], text);
    ms_text_add(text, "\nQuestions, answered with commands to copy "
                      "(memsim help oom):\n");
    for (uint32_t i = 0; (name = ms_help_questions_name(i, &words)) != NULL;
         i++)
        put_row(name, words, QUESTION_INDENT, text);
    put_commands(commands, names, indent, text);
    ms_text_add(text, "\nTopics of memsim help:\n");
    for (size_t i = 0; i < N_TOPICS; i++)
        put_row(topics[i].name, topics[i].summary, indent, text);
    ms_textlines_prose("\nAlso the name of a policy, layer type, family or "
                       "option, and words of other programs, e.g. memsim help "
                       "activation checkpointing.\n",
                       text);
    ms_narrow_lines(text);
}

/* ---- topics -------------------------------------------------------------- */

static bool is_among(const char *name, const char *const *names, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (strcmp(names[i], name) == 0)
            return true;
    return false;
}

uint32_t ms_help_names(const ms_commands *commands, const char **names,
                       uint32_t room)
{
    const char *name, *asks;
    uint32_t n = 0;
    for (uint32_t i = 0; i < commands->n && n < room; i++)
        names[n++] = commands->rows[i].name;
    for (size_t i = 0; i < N_TOPICS && n < room; i++)
        names[n++] = topics[i].name;
    n += ms_help_tables_names(names + n, room - n);
    for (uint32_t i = 0; (name = ms_help_questions_name(i, &asks)) != NULL; i++)
        if (n < room && !is_among(name, names, n))
            names[n++] = name;
    return n;
}

const char *ms_help_summary(uint32_t i, const char **summary)
{
    uint32_t n = 0;
    while (n < i && ms_help_questions_name(n, summary) != NULL)
        n++;
    const char *name = ms_help_questions_name(n, summary);
    if (name != NULL || i - n >= N_TOPICS)
        return name;
    *summary = topics[i - n].summary;
    return topics[i - n].name;
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

/* A command, a topic, a policy, a layer type or a family. */
static bool put_exact(const ms_commands *commands, const char *word,
                      ms_text *text)
{
    for (uint32_t i = 0; i < commands->n; i++)
        if (strcmp(commands->rows[i].name, word) == 0) {
            put_command(&commands->rows[i], text);
            return true;
        }
    for (size_t i = 0; i < N_TOPICS; i++)
        if (strcmp(topics[i].name, word) == 0) {
            topics[i].write(text);
            return true;
        }
    return ms_help_tables_one(word, text);
}

/* A question comes first; what has its name stands below it. */
ms_err ms_help_topic(const ms_commands *commands, const char *word,
                     ms_text *text, ms_fault *fault)
{
    ms_text page = {.arena = text->arena}, exact = page, words = page;
    const char *question = ms_help_questions_put(word, &page);
    bool is_exact = put_exact(commands, word, &exact);
    bool is_asked =
        question != NULL && (!is_exact || strcmp(question, word) == 0);
    bool is_word = !is_exact && ms_help_words_one(word, !is_asked, &words);
    text->failed |= page.failed || exact.failed || words.failed;
    if (!is_asked && !is_exact && !is_word)
        return fail_topic(commands, word, fault);
    if (text->failed)
        return ms_fail_nomem(fault);
    ms_text_add(text, "%s%s%s%s", is_asked ? page.bytes : "",
                is_asked && (is_exact || is_word) ? "\n" : "",
                is_exact ? exact.bytes : "", is_word ? words.bytes : "");
    ms_narrow_lines(text);
    return MS_OK;
}

/* The words of the command line as one: "activation checkpointing". */
static const char *joined(const ms_arguments *arguments, ms_arena *arena)
{
    ms_text word = {.arena = arena};
    for (uint32_t i = 0; i < arguments->n_operands; i++)
        ms_text_add(&word, "%s%s", i > 0 ? " " : "", arguments->operands[i]);
    return word.failed ? NULL : word.bytes;
}

ms_err ms_help_command(const ms_hall *hall, int *status, ms_fault *fault)
{
    ms_text text = {.arena = hall->keep};
    *status = 0;
    if (hall->arguments->n_operands == 0) {
        ms_help_short(hall->commands, &text);
        return ms_screen_print(&text, fault);
    }
    const char *word = joined(hall->arguments, hall->keep);
    if (word == NULL)
        return ms_fail_nomem(fault);
    MS_TRY(ms_help_topic(hall->commands, word, &text, fault));
    return ms_screen_print(&text, fault);
}
