/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The parser of the command line. It is not getopt_long, which accepts
 * abbreviations: an option that is added later would make such a script
 * ambiguous. */

#include "tools/options/options.h"
#include "policies/common/policy.h"
#include "sim/names.h"
#include "tools/cli/commands.h"
#include "tools/options/optionwords.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

typedef struct cursor {
    uint16_t command;
    const char *const *words;
    uint32_t at, n;
    const char *word; /* the word of the option that is read; NULL: a letter */
    ms_arena *arena;
    ms_arguments *arguments;
    ms_fault *fault;
} cursor;

/* ---- words of the form "a|b|c" ------------------------------------------- */

/* The next word of "a|b|c", or NULL; *length gets its length. */
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

bool ms_options_ends_in(const char *words, const char *word)
{
    size_t length, total = strlen(word);
    for (const char *w; (w = next_word(&words, &length)) != NULL;)
        if (total > length && memcmp(word + total - length, w, length) == 0)
            return true;
    return false;
}

/* ---- rows ---------------------------------------------------------------- */

static const ms_option *find_name(uint16_t command, const char *name,
                                  size_t length)
{
    for (uint32_t i = 0; i < ms_options_table_n; i++) {
        const ms_option *row = &ms_options_table[i];
        if (ms_optionuses_of(row, command) != NULL &&
            strlen(row->name) == length && memcmp(row->name, name, length) == 0)
            return row;
    }
    return NULL;
}

static const ms_option *find_letter(uint16_t command, char letter)
{
    for (uint32_t i = 0; i < ms_options_table_n; i++)
        if (ms_optionuses_of(&ms_options_table[i], command) != NULL &&
            ms_options_table[i].letter == letter)
            return &ms_options_table[i];
    return NULL;
}

/* ---- faults -------------------------------------------------------------- */

static const struct {
    uint16_t bit;
    const char *name;
} commands[] = {{MS_FOR_RUN, "run"},         {MS_FOR_EXPLAIN, "explain"},
                {MS_FOR_COMPARE, "compare"}, {MS_FOR_SWEEP, "sweep"},
                {MS_FOR_FIT, "fit"},         {MS_FOR_PLOT, "plot"},
                {MS_FOR_REPORT, "report"},   {MS_FOR_DIFF, "diff"},
                {MS_FOR_CHECK, "check"},     {MS_FOR_INSPECT, "inspect"},
                {MS_FOR_ALLOC, "alloc"},     {MS_FOR_CALIBRATE, "calibrate"}};
enum { N_COMMANDS = sizeof commands / sizeof commands[0] };

#define HINT 256

/* Adds where the options of the command are listed. */
static void see_help(uint16_t command, char hint[HINT])
{
    size_t used = strlen(hint);
    for (int i = 0; i < N_COMMANDS; i++)
        if (commands[i].bit == command) {
            snprintf(hint + used, HINT - used,
                     "\"memsim help %s\" lists the options", commands[i].name);
            return;
        }
    snprintf(hint + used, HINT - used,
             "\"memsim help\" lists commands and topics");
}

/* Adds which other commands have an option of that name, if any has. */
static void put_owners(const char *name, char hint[HINT])
{
    uint16_t bits = 0;
    for (uint32_t i = 0; i < ms_options_table_n; i++)
        for (uint32_t k = 0; k < MS_OPTION_USES; k++)
            if (strcmp(ms_options_table[i].name, name) == 0)
                bits |= ms_options_table[i].uses[k].commands;
    for (int i = 0; i < N_COMMANDS; i++) {
        if ((bits & commands[i].bit) == 0)
            continue;
        size_t used = strlen(hint);
        snprintf(hint + used, HINT - used, "%s%s",
                 used > 0 ? ", " : "an option of ", commands[i].name);
    }
    if (*hint != '\0')
        strcat(hint, "; ");
}

static ms_err fail_answered(const cursor *c, const ms_word *row,
                            const char *word, int length)
{
    char hint[384];
    ms_words_hint(row, hint, sizeof hint);
    return ms_fail(c->fault, MS_EUSAGE, NULL, hint, "unknown option \"%.*s\"",
                   length, word);
}

static ms_err fail_unknown(const cursor *c, const char *word, size_t length)
{
    const ms_option *list[MS_OPTIONS_MOST];
    const char *names[MS_OPTIONS_MOST];
    char name[64], hint[HINT] = "";
    uint32_t n = ms_optionuses_list(c->command, list);
    for (uint32_t i = 0; i < n; i++)
        names[i] = list[i]->name;
    const char *near = NULL;
    if (length < sizeof name) {
        memcpy(name, word, length);
        name[length] = '\0';
        put_owners(name, hint);
        near = *hint == '\0' ? ms_names_nearest(name, names, n) : NULL;
    }
    if (near == NULL)
        see_help(c->command, hint);
    else
        snprintf(hint, sizeof hint, "did you mean \"--%s\"?", near);
    return ms_fail(c->fault, MS_EUSAGE, NULL, hint, "unknown option \"--%.*s\"",
                   (int)length, word);
}

/* ---- the parser ---------------------------------------------------------- */

static ms_err fail_word(const cursor *c, const ms_option *option,
                        const char *all, const char *value)
{
    char words[96], hint[96];
    const char *names[16];
    size_t n = 0;
    assert(strlen(all) < sizeof words);
    strcpy(words, all);
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
                   value, all);
}

/* The one of "a|b|c" that means the same option as the value does, or NULL:
 * "--max seq-len" means --max seq. */
static const char *own_word(const cursor *c, const char *words,
                            const char *value)
{
    const char *meant = ms_optionwords_key(value);
    size_t length;
    for (const char *w; (w = next_word(&words, &length)) != NULL;) {
        char *word = ms_arena_text(c->arena, w, length);
        if (word != NULL && strcmp(ms_optionwords_key(word), meant) == 0)
            return word;
    }
    return NULL;
}

static ms_err give(cursor *c, const ms_option *option, const char *value)
{
    const char *words = ms_optionuses_of(option, c->command)->words;
    if (option->takes == MS_TAKES_VALUE && words != NULL &&
        !ms_options_one_of(words, value)) {
        const char *own = own_word(c, words, value);
        if (own == NULL)
            return fail_word(c, option, words, value);
        value = own;
    }
    if (option->takes != MS_TAKES_NOTHING && *value == '\0')
        return ms_fail(c->fault, MS_EUSAGE, NULL, NULL,
                       "option \"--%s\" has an empty value", option->name);
    ms_arguments *all = c->arguments;
    all->words[all->n_given] = c->word;
    all->given[all->n_given++] = (ms_given){.option = option, .value = value};
    return MS_OK;
}

/* In "--memory --check" a value was forgotten; but "-" (standard input) and
 * "-1" are values. */
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
            !ms_options_ends_in(ms_optionuses_of(option, c->command)->words,
                                next))
            return give(c, option, option->fallback);
    } else if (next == NULL || looks_like_option(next)) {
        char hint[HINT] = "";
        see_help(c->command, hint);
        return ms_fail(c->fault, MS_EUSAGE, NULL, hint,
                       "option \"--%s\" needs a value: --%s %s", option->name,
                       option->name, option->value);
    }
    c->at++;
    return give(c, option, next);
}

static ms_err parse_long(cursor *c, const char *word)
{
    size_t length = strcspn(word, "=");
    const ms_word *answered = NULL;
    const ms_option *option = find_name(c->command, word, length);
    if (option == NULL)
        option = ms_optionwords_find(c->command, word, length, &answered);
    if (option == NULL && answered != NULL)
        return fail_answered(c, answered, word - 2, (int)length + 2);
    if (option == NULL)
        return fail_unknown(c, word, length);
    c->word = word;
    if (word[length] == '\0')
        return give_next(c, option);
    if (option->takes == MS_TAKES_NOTHING)
        return ms_fail(c->fault, MS_EUSAGE, NULL, NULL,
                       "option \"--%s\" takes no value", option->name);
    return give(c, option, word + length + 1);
}

/* Reports "-batch 4" (an option's name behind one dash), or a letter that only
 * other programs have. */
static ms_err fail_letters(const cursor *c, const char *letters, bool first)
{
    const ms_word *answered;
    char hint[HINT] = "";
    size_t length = strcspn(letters, "=");
    const ms_option *option =
        ms_optionwords_find(c->command, letters, length, &answered);
    const ms_word *letter =
        ms_words_find(&ms_optionwords_letters, NULL, letters, 1);
    if (first && length > 1 && option != NULL) {
        snprintf(hint, sizeof hint, "did you mean \"--%s\"?", option->name);
        return ms_fail(c->fault, MS_EUSAGE, NULL, hint,
                       "unknown option \"-%s\"", letters);
    }
    if (first && length > 1 && answered != NULL)
        return fail_answered(c, answered, letters - 1, (int)length + 1);
    if (first && letter != NULL)
        return fail_answered(c, letter, letters - 1, (int)length + 1);
    see_help(c->command, hint);
    return ms_fail(c->fault, MS_EUSAGE, NULL, hint, "unknown option \"-%s\"",
                   letters);
}

static ms_err parse_short(cursor *c, const char *letters)
{
    const char *first = letters;
    c->word = NULL;
    for (; *letters != '\0'; letters++) {
        const ms_option *option = find_letter(c->command, *letters);
        if (option == NULL)
            return fail_letters(c, letters, letters == first);
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

ms_err ms_options_parse(uint16_t command, const char *const *words,
                        uint32_t n_words, ms_arena *arena,
                        ms_arguments *arguments, ms_fault *fault)
{
    size_t room = 0; /* a word holds at most as many options as letters */
    for (uint32_t i = 0; i < n_words; i++)
        room += strlen(words[i]);
    *arguments = (ms_arguments){
        .given = ms_arena_take(arena, room + 1, sizeof(ms_given)),
        .operands = ms_arena_take(arena, n_words + 1, sizeof(char *)),
        .words = ms_arena_take(arena, room + 1, sizeof(char *))};
    if (arguments->given == NULL || arguments->operands == NULL ||
        arguments->words == NULL)
        return ms_fail_nomem(fault);
    cursor c = {.command = command,
                .words = words,
                .n = n_words,
                .arena = arena,
                .arguments = arguments,
                .fault = fault};
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
