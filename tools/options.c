/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The table of options and its parser.  getopt_long is no help: it takes
 * abbreviations, which a later option would break in somebody's script. */

#include "tools/tools.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#define RUN MS_FOR_RUN
#define COMPARE MS_FOR_COMPARE
#define STEP (MS_FOR_RUN | MS_FOR_EXPLAIN) /* what simulates one step */
#define STEPS (STEP | COMPARE)
#define MODEL (STEPS | MS_FOR_INSPECT)
#define EVERY (MS_FOR_TOP | MODEL | MS_FOR_HELP)

const ms_option ms_options_table[] = {
    {.id = MS_OPTION_POLICY,
     .name = "policy",
     .letter = 'p',
     .commands = STEP,
     .takes = MS_TAKES_VALUE,
     .value = "SPEC",
     .help = "memory policy, e.g. checkpoint:sqrt; repeat or join with +"},
    {.id = MS_OPTION_POLICY,
     .name = "policy",
     .letter = 'p',
     .commands = COMPARE,
     .takes = MS_TAKES_VALUE,
     .value = "SPEC",
     .help = "policies of one variant, joined with +; repeat it for each "
             "variant"},
    {.id = MS_OPTION_PLUGIN,
     .name = "plugin",
     .commands = STEPS | MS_FOR_HELP,
     .takes = MS_TAKES_VALUE,
     .value = "FILE",
     .help = "load a policy from a shared library, e.g. ./mine.so; may be "
             "repeated"},
    {.id = MS_OPTION_DEVICE,
     .name = "device",
     .commands = MODEL,
     .takes = MS_TAKES_VALUE,
     .value = "NAME|FILE",
     .help = "device, e.g. a100, or a file (default " MS_DEFAULT_DEVICE ")"},
    {.id = MS_OPTION_SETTING,
     .name = "batch",
     .commands = MODEL,
     .takes = MS_TAKES_VALUE,
     .value = "N",
     .setting = "training.batch",
     .help = "samples per step"},
    {.id = MS_OPTION_SETTING,
     .name = "sequence",
     .commands = MODEL,
     .takes = MS_TAKES_VALUE,
     .value = "N",
     .setting = "training.sequence",
     .help = "tokens per sample"},
    {.id = MS_OPTION_SETTING,
     .name = "precision",
     .commands = MODEL,
     .takes = MS_TAKES_VALUE,
     .value = "NAME",
     .setting = "training.precision",
     .help = "number formats of weights, gradients, activations"},
    {.id = MS_OPTION_SETTING,
     .name = "optimizer",
     .commands = MODEL,
     .takes = MS_TAKES_VALUE,
     .value = "NAME",
     .setting = "training.optimizer",
     .help = "optimizer"},
    {.id = MS_OPTION_SETTING,
     .name = "kernels",
     .commands = MODEL,
     .takes = MS_TAKES_VALUE,
     .value = "NAME",
     .setting = "training.kernels",
     .help = "what layers run and save"},
    {.id = MS_OPTION_SETTING,
     .name = "framework",
     .commands = MODEL,
     .takes = MS_TAKES_VALUE,
     .value = "NAME",
     .setting = "training.framework",
     .help = "framework whose rules and defaults hold"},
    {.id = MS_OPTION_SET,
     .name = "set",
     .commands = MODEL,
     .takes = MS_TAKES_VALUE,
     .value = "KEY=VALUE",
     .help = "any training.FIELD, graph.FIELD or model.FIELD; may be repeated"},
    {.id = MS_OPTION_MEMORY,
     .name = "memory",
     .commands = STEPS,
     .takes = MS_TAKES_VALUE,
     .value = "SIZE",
     .help = "capacity instead of the device's, e.g. 80GiB"},
    {.id = MS_OPTION_GPUS,
     .name = "gpus",
     .commands = STEPS,
     .takes = MS_TAKES_VALUE,
     .value = "N",
     .help = "GPUs of the job, each a rank of the policies"},
    {.id = MS_OPTION_CHECK,
     .name = "check",
     .commands = STEP,
     .help = "exit with status 1 when the step does not fit"},
    {.id = MS_OPTION_CHECK,
     .name = "check",
     .commands = COMPARE,
     .help = "exit with status 1 when a variant does not fit"},
    {.id = MS_OPTION_JSON,
     .name = "json",
     .commands = MODEL,
     .help = "print one JSON object instead of the text"},
    {.id = MS_OPTION_CSV,
     .name = "csv",
     .commands = RUN,
     .takes = MS_TAKES_VALUE,
     .value = "FILE",
     .help = "write the timeline as CSV; - is standard output"},
    {.id = MS_OPTION_CSV,
     .name = "csv",
     .commands = COMPARE,
     .takes = MS_TAKES_VALUE,
     .value = "FILE",
     .help = "write one row per variant as CSV; - is standard output"},
    {.id = MS_OPTION_TRACE,
     .name = "trace",
     .commands = RUN,
     .takes = MS_TAKES_VALUE,
     .value = "FILE",
     .help = "write streams and memory as a Chrome trace, for Perfetto; - is "
             "standard output"},
    {.id = MS_OPTION_PLOT,
     .name = "plot",
     .commands = RUN,
     .takes = MS_TAKES_OPTIONAL,
     .value = "FILE",
     .words = ".svg|.png|.pdf",
     .fallback = "memsim.svg",
     .help = "draw a figure as .svg, .png or .pdf (default memsim.svg)"},
    {.id = MS_OPTION_FIGURE,
     .name = "figure",
     .commands = RUN,
     .takes = MS_TAKES_VALUE,
     .value = "KIND",
     .words = "timeline|gantt",
     .help = "what --plot draws, memory by category (default) or the streams "
             "under the memory"},
    {.id = MS_OPTION_KEEP_SCRIPT,
     .name = "keep-script",
     .commands = RUN,
     .help = "keep the gnuplot script beside the figure"},
    {.id = MS_OPTION_DUMP,
     .name = "dump",
     .commands = RUN,
     .takes = MS_TAKES_VALUE,
     .value = "WHAT",
     .words = "graph|policy|program|plan|events",
     .help = "print a stage instead of the summary"},
    {.id = MS_OPTION_DUMP,
     .name = "dump",
     .commands = MS_FOR_INSPECT,
     .takes = MS_TAKES_VALUE,
     .value = "WHAT",
     .words = "model",
     .help = "print the model's file, to edit"},
    {.id = MS_OPTION_PROGRAM,
     .name = "program",
     .commands = STEP,
     .takes = MS_TAKES_VALUE,
     .value = "FILE",
     .help = "run a program in text form (see --dump program)"},
    {.id = MS_OPTION_BOOK,
     .name = "book",
     .commands = STEPS,
     .takes = MS_TAKES_VALUE,
     .value = "ORDER",
     .words = "host|device",
     .help = "book memory in host issue order (default) or device time"},
    {.id = MS_OPTION_ALL,
     .name = "all",
     .commands = MS_FOR_INSPECT,
     .help = "list every layer, also blocks that repeat"},
    {.id = MS_OPTION_DOT,
     .name = "dot",
     .commands = MS_FOR_INSPECT,
     .help = "print the layer graph as DOT instead of the table"},
    {.id = MS_OPTION_EXPLAIN,
     .name = "explain",
     .commands = COMPARE,
     .help = "what two variants hold differently at their peaks, why it is "
             "alive in the one and where it has gone in the other"},
    {.id = MS_OPTION_AT,
     .name = "at",
     .commands = MS_FOR_EXPLAIN | COMPARE,
     .takes = MS_TAKES_VALUE,
     .value = "WHEN",
     .help = "a time (12.5ms), a phase (forward, loss, backward or optimizer: "
             "its peak) or an op (aten::mm: where it stands highest) instead "
             "of the peak"},
    {.id = MS_OPTION_TOP,
     .name = "top",
     .commands = MS_FOR_EXPLAIN | COMPARE,
     .takes = MS_TAKES_VALUE,
     .value = "N",
     .help = "how many groups; 0: all (default 12, with --json all)"},
    {.id = MS_OPTION_COLOR,
     .name = "color",
     .commands = MODEL,
     .takes = MS_TAKES_VALUE,
     .value = "WHEN",
     .words = "auto|always|never",
     .help = "colours (default auto: on a terminal)"},
    {.id = MS_OPTION_QUIET,
     .name = "quiet",
     .letter = 'q',
     .commands = RUN | COMPARE,
     .help = "no summary and no notes, only what was asked for"},
    {.id = MS_OPTION_HELP,
     .name = "help",
     .letter = 'h',
     .commands = EVERY,
     .help = "print help"},
    {.id = MS_OPTION_VERSION,
     .name = "version",
     .commands = MS_FOR_TOP,
     .help = "print the version"},
};

#define N_ROWS (sizeof ms_options_table / sizeof ms_options_table[0])
const uint32_t ms_options_n = N_ROWS;

typedef struct cursor {
    uint8_t command;
    const char *const *words;
    uint32_t at, n;
    ms_arguments *arguments;
    ms_fault *fault;
} cursor;

/* ---- words of the form "a|b|c" ------------------------------------------- */

/* The next word of a list, or NULL; *length gets its length. */
static const char *next_word(const char **words, size_t *length)
{
    const char *word = *words;
    if (word == NULL || *word == '\0')
        return NULL;
    *length = strcspn(word, "|");
    *words = word + *length + (word[*length] == '|');
    return word;
}

bool ms_options_one_of(const char *words, const char *word)
{
    size_t length;
    for (const char *w; (w = next_word(&words, &length)) != NULL;)
        if (strlen(word) == length && memcmp(w, word, length) == 0)
            return true;
    return false;
}

void ms_options_words(const char *words, ms_text *text)
{
    size_t length;
    const char *between = "";
    for (const char *w; (w = next_word(&words, &length)) != NULL;) {
        ms_text_add(text, "%s%.*s", between, (int)length, w);
        between = strchr(words, '|') == NULL ? " or " : ", ";
    }
}

static bool ends_in_one_of(const char *words, const char *word)
{
    size_t length, total = strlen(word);
    for (const char *w; (w = next_word(&words, &length)) != NULL;)
        if (total > length && memcmp(word + total - length, w, length) == 0)
            return true;
    return false;
}

/* ---- rows ---------------------------------------------------------------- */

static const ms_option *find_name(uint8_t command, const char *name,
                                  size_t length)
{
    for (size_t i = 0; i < N_ROWS; i++) {
        const ms_option *row = &ms_options_table[i];
        if ((row->commands & command) != 0 && strlen(row->name) == length &&
            memcmp(row->name, name, length) == 0)
            return row;
    }
    return NULL;
}

static const ms_option *find_letter(uint8_t command, char letter)
{
    for (size_t i = 0; i < N_ROWS; i++)
        if ((ms_options_table[i].commands & command) != 0 &&
            ms_options_table[i].letter == letter)
            return &ms_options_table[i];
    return NULL;
}

/* ---- faults -------------------------------------------------------------- */

static const char *see_help(uint8_t command)
{
    switch (command) {
    case MS_FOR_RUN:
        return "\"memsim help run\" lists the options";
    case MS_FOR_EXPLAIN:
        return "\"memsim help explain\" lists the options";
    case MS_FOR_COMPARE:
        return "\"memsim help compare\" lists the options";
    case MS_FOR_INSPECT:
        return "\"memsim help inspect\" lists the options";
    default:
        return "\"memsim help\" lists commands and topics";
    }
}

static ms_err fail_unknown(const cursor *c, const char *word, size_t length)
{
    const char *names[N_ROWS];
    char name[64], hint[128];
    size_t n = 0;
    for (size_t i = 0; i < N_ROWS; i++)
        if ((ms_options_table[i].commands & c->command) != 0)
            names[n++] = ms_options_table[i].name;
    const char *near = NULL;
    if (length < sizeof name) {
        memcpy(name, word, length);
        name[length] = '\0';
        near = ms_names_nearest(name, names, n);
    }
    if (near == NULL)
        return ms_fail(c->fault, MS_EUSAGE, NULL, see_help(c->command),
                       "unknown option \"--%.*s\"", (int)length, word);
    strcpy(hint, "did you mean \"--");
    strcat(hint, near);
    strcat(hint, "\"?");
    return ms_fail(c->fault, MS_EUSAGE, NULL, hint, "unknown option \"--%.*s\"",
                   (int)length, word);
}

/* ---- the parser ---------------------------------------------------------- */

static ms_err fail_word(const cursor *c, const ms_option *option,
                        const char *value)
{
    char words[64], hint[96];
    const char *names[16];
    size_t n = 0;
    assert(strlen(option->words) < sizeof words);
    strcpy(words, option->words);
    for (char *word = words; word != NULL && n < 16; n++) {
        names[n] = word;
        word = strchr(word, '|');
        if (word != NULL)
            *word++ = '\0';
    }
    const char *near = ms_names_nearest(value, names, n);
    if (near != NULL)
        snprintf(hint, sizeof hint, "did you mean \"%s\"?", near);
    return ms_fail(c->fault, MS_EUSAGE, NULL, near != NULL ? hint : NULL,
                   "option \"--%s\": \"%s\" is not one of %s", option->name,
                   value, option->words);
}

static ms_err give(cursor *c, const ms_option *option, const char *value)
{
    if (option->takes == MS_TAKES_VALUE && option->words != NULL &&
        !ms_options_one_of(option->words, value))
        return fail_word(c, option, value);
    if (option->takes != MS_TAKES_NOTHING && *value == '\0')
        return ms_fail(c->fault, MS_EUSAGE, NULL, NULL,
                       "option \"--%s\" has an empty value", option->name);
    c->arguments->given[c->arguments->n_given++] =
        (ms_given){.option = option, .value = value};
    return MS_OK;
}

/* "--check" after "--memory" is a forgotten value; "-" and "-1" are values. */
static bool looks_like_option(const char *word)
{
    return word[0] == '-' && word[1] != '\0' &&
           !(word[1] >= '0' && word[1] <= '9');
}

static ms_err give_next(cursor *c, const ms_option *option)
{
    const char *next = c->at < c->n ? c->words[c->at] : NULL;
    if (option->takes == MS_TAKES_NOTHING)
        return give(c, option, "");
    if (option->takes == MS_TAKES_OPTIONAL) {
        if (next == NULL || looks_like_option(next) ||
            !ends_in_one_of(option->words, next))
            return give(c, option, option->fallback);
    } else if (next == NULL || looks_like_option(next)) {
        return ms_fail(c->fault, MS_EUSAGE, NULL, see_help(c->command),
                       "option \"--%s\" needs a value: --%s %s", option->name,
                       option->name, option->value);
    }
    c->at++;
    return give(c, option, next);
}

static ms_err parse_long(cursor *c, const char *word)
{
    size_t length = strcspn(word, "=");
    const ms_option *option = find_name(c->command, word, length);
    if (option == NULL)
        return fail_unknown(c, word, length);
    if (word[length] == '\0')
        return give_next(c, option);
    if (option->takes == MS_TAKES_NOTHING)
        return ms_fail(c->fault, MS_EUSAGE, NULL, NULL,
                       "option \"--%s\" takes no value", option->name);
    return give(c, option, word + length + 1);
}

static ms_err parse_short(cursor *c, const char *letters)
{
    for (; *letters != '\0'; letters++) {
        const ms_option *option = find_letter(c->command, *letters);
        if (option == NULL)
            return ms_fail(c->fault, MS_EUSAGE, NULL, see_help(c->command),
                           "unknown option \"-%s\"", letters);
        if (option->takes == MS_TAKES_NOTHING) {
            MS_TRY(give(c, option, ""));
            continue;
        }
        if (letters[1] == '\0')
            return give_next(c, option);
        return give(c, option, letters + 1 + (letters[1] == '='));
    }
    return MS_OK;
}

ms_err ms_options_parse(uint8_t command, const char *const *words,
                        uint32_t n_words, ms_arena *arena,
                        ms_arguments *arguments, ms_fault *fault)
{
    size_t room = 0; /* a word holds at most as many options as letters */
    for (uint32_t i = 0; i < n_words; i++)
        room += strlen(words[i]);
    *arguments = (ms_arguments){
        .given = ms_arena_take(arena, room + 1, sizeof(ms_given)),
        .operands = ms_arena_take(arena, n_words + 1, sizeof(char *))};
    if (arguments->given == NULL || arguments->operands == NULL)
        return ms_fail_nomem(fault);
    cursor c = {command, words, 0, n_words, arguments, fault};
    bool open = true;
    while (c.at < n_words) {
        const char *word = words[c.at++];
        if (open && strcmp(word, "--") == 0)
            open = false;
        else if (!open || word[0] != '-' || word[1] == '\0')
            arguments->operands[arguments->n_operands++] = word;
        else if (word[1] == '-')
            MS_TRY(parse_long(&c, word + 2));
        else
            MS_TRY(parse_short(&c, word + 1));
    }
    return MS_OK;
}

const char *ms_options_value(const ms_arguments *arguments, ms_option_id id)
{
    for (uint32_t i = arguments->n_given; i-- > 0;)
        if (arguments->given[i].option->id == id)
            return arguments->given[i].value;
    return NULL;
}
