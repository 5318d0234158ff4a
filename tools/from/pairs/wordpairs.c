/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The words of a command line, as a shell would have them: quotes, backslashes,
 * comments, NAME=value and NAME=(words), ${NAME}, ${NAME:-default}, $((A * B)),
 * branches of an if (wordbranches.h).  Nothing is run.  A word --name is a key;
 * its value is the words that follow, with commas between them, or true.
 * Options that stand in an array or in a variable count where they are written,
 * so that "${ARGS[@]}" adds nothing. */

#include "tools/from/pairs/pairs.h"
#include "tools/from/pairs/wordbranches.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

typedef struct reader {
    ms_pairs *pairs;
    ms_fault *fault;
    const char *bytes;
    size_t at, length;
    const char *option; /* whose values come; NULL: none */
    size_t option_at;
    ms_text values;
    uint32_t depth;  /* of texts in variables */
    uint32_t arrays; /* that are open: NAME=( */
    bool begins;     /* the next word begins a command */
    ms_wordbranches branches;
    bool word_maybe, option_maybe; /* made of variables that are maybe so */
} reader;

#define NAME "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_"
#define ENDS " \t\r\n;&|()<>"

/* ---- options and their values -------------------------------------------- */

static ms_err add(reader *r, const char *key, const char *value, size_t at,
                  bool maybe)
{
    MS_TRY(ms_pairs_add(r->pairs, key, value, at, true, r->fault));
    for (uint32_t i = 0; i < r->pairs->n; i++)
        if (strcmp(r->pairs->all[i].key, key) == 0)
            r->pairs->all[i].maybe =
                maybe ||
                ms_wordbranches_state(&r->branches) == MS_BRANCH_UNDECIDED;
    return MS_OK;
}

static ms_err finish_option(reader *r)
{
    const char *option = r->option;
    const char *value = r->values.length > 0 ? r->values.bytes : "true";
    r->option = NULL;
    if (option == NULL)
        return MS_OK;
    if (r->values.failed)
        return ms_fail_nomem(r->fault);
    return add(r, option, value, r->option_at, r->option_maybe);
}

static ms_err begin_option(reader *r, const char *word, size_t at)
{
    const char *equals = strchr(word, '=');
    size_t length = equals != NULL ? (size_t)(equals - word) : strlen(word);
    MS_TRY(finish_option(r));
    r->option = ms_arena_text(r->pairs->arena, word + 2, length - 2);
    r->option_at = at;
    r->option_maybe = r->word_maybe;
    r->values = (ms_text){.arena = r->pairs->arena};
    if (r->option == NULL)
        return ms_fail_nomem(r->fault);
    if (equals == NULL)
        return MS_OK;
    ms_text_add(&r->values, "%s", equals + 1);
    return finish_option(r);
}

static bool is_option(const char *word)
{
    return word[0] == '-' && word[1] == '-' && word[2] != '\0' &&
           word[2] != '=' && strchr(NAME, word[2]) != NULL;
}

static bool is_script(const char *word)
{
    size_t n = strlen(word);
    return n > 3 && strcmp(word + n - 3, ".py") == 0;
}

/* A script that pretrains is "$script"; options of torchrun are before it. */
static ms_err take_script(reader *r, const char *word, size_t at)
{
    const char *slash = strrchr(word, '/');
    const char *name = slash != NULL ? slash + 1 : word;
    MS_TRY(finish_option(r));
    return strncmp(name, "pretrain", 8) == 0
               ? add(r, "$script", name, at, false)
               : MS_OK;
}

/* ---- variables ----------------------------------------------------------- */

static const ms_pair *variable(const reader *r, const char *name, size_t length)
{
    for (uint32_t i = 0; i < r->pairs->n; i++) {
        const ms_pair *pair = &r->pairs->all[i];
        if (pair->key[0] == '$' && strncmp(pair->key + 1, name, length) == 0 &&
            pair->key[1 + length] == '\0')
            return pair;
    }
    return NULL;
}

/* A product or quotient of numbers and variables, left to right; anything else
 * stays as it is written. */
static void put_arithmetic(const reader *r, const char *from, const char *end,
                           ms_text *word)
{
    uint64_t value = 1;
    char verb = '*';
    for (const char *at = from; at < end;) {
        at += strspn(at, " ${}");
        size_t n = strspn(at, NAME);
        const ms_pair *pair = n > 0 && *at > '9' ? variable(r, at, n) : NULL;
        const char *text = pair != NULL ? pair->value : *at > '9' ? "" : at;
        uint64_t number = strtoull(text, NULL, 10);
        if (n == 0 || number == 0 || number > UINT32_MAX ||
            value > UINT32_MAX || (verb != '*' && verb != '/')) {
            ms_text_add(word, "$((%.*s))", (int)(end - from), from);
            return;
        }
        value = verb == '*' ? value * number : value / number;
        at += n;
        at += strspn(at, " }");
        verb = *at++;
    }
    ms_text_u64(word, value);
}

/* What stands behind :-, without its quotes. */
static void put_default(const char *from, const char *end, ms_text *word)
{
    bool quoted =
        end - from >= 2 && (*from == '"' || *from == '\'') && end[-1] == *from;
    ms_text_put(word, from + quoted, (size_t)(end - from) - 2u * quoted);
}

/* $NAME and its like, behind the $. */
static void put_variable(reader *r, ms_text *word)
{
    const char *at = r->bytes + r->at, *close;
    if (strncmp(at, "((", 2) == 0 && (close = strstr(at, "))")) != NULL) {
        put_arithmetic(r, at + 2, close, word);
        r->at += (size_t)(close + 2 - at);
        return;
    }
    bool braces = *at == '{';
    size_t n = strspn(at + braces, NAME);
    const ms_pair *pair = variable(r, at + braces, n);
    const char *value = pair != NULL ? pair->value : NULL;
    const char *end = braces ? strchr(at, '}') : at + n;
    if (n == 0 || end == NULL) {
        ms_text_add(word, "$");
        return;
    }
    const char *rest = at + braces + n;
    r->word_maybe = r->word_maybe || (pair != NULL && pair->maybe);
    r->at += (size_t)(end + braces - at);
    if (value == NULL && braces && strncmp(rest, ":-", 2) == 0)
        put_default(rest + 2, end, word);
    else if (braces && *rest == '[')
        return; /* an array, whose words counted where they stand */
    else if (value == NULL)
        ms_text_add(word, "$%.*s", (int)n, at + braces);
    else if (!is_option(value))
        ms_text_add(word, "%s", value);
}

/* ---- words --------------------------------------------------------------- */

static ms_err put_quoted(reader *r, char quote, ms_text *word)
{
    size_t start = r->at - 1;
    while (r->at < r->length && r->bytes[r->at] != quote) {
        char c = r->bytes[r->at++];
        if (quote == '"' && c == '$')
            put_variable(r, word);
        else if (quote == '"' && c == '\\' && r->at < r->length &&
                 r->bytes[r->at] == '\n')
            r->at++;
        else
            ms_text_put(word, &c, 1);
    }
    if (r->at == r->length)
        return ms_pairs_fail(r->pairs, start, r->fault, "is the file whole?",
                             "this quote does not end");
    r->at++;
    return MS_OK;
}

static ms_err read_word(reader *r, ms_text *word)
{
    ms_text_add(word, "%s", "");
    while (r->at < r->length && strchr(ENDS, r->bytes[r->at]) == NULL) {
        char c = r->bytes[r->at++];
        if (c == '"' || c == '\'')
            MS_TRY(put_quoted(r, c, word));
        else if (c == '$')
            put_variable(r, word);
        else if (c == '\\' && r->at < r->length)
            r->at += r->bytes[r->at] == '\n';
        else
            ms_text_put(word, &c, 1);
    }
    return word->failed ? ms_fail_nomem(r->fault) : MS_OK;
}

static ms_err take_text(reader *r, const char *text, size_t at);

/* NAME=value: a variable, and the options that its text has. */
static ms_err take_assignment(reader *r, const char *word, size_t name,
                              size_t at)
{
    const char *value = word + name + 1;
    const char *key =
        ms_arena_format(r->pairs->arena, "$%.*s", (int)name, word);
    const char *copy = ms_arena_text(r->pairs->arena, value, strlen(value));
    MS_TRY(finish_option(r));
    if (key == NULL || copy == NULL)
        return ms_fail_nomem(r->fault);
    MS_TRY(add(r, key, copy, at, r->word_maybe));
    if (strstr(value, "--") == NULL || r->depth > 0)
        return MS_OK;
    return take_text(r, copy, at);
}

static ms_err take_word(reader *r, const char *word, size_t at)
{
    size_t name = strspn(word, NAME);
    size_t blank = strcspn(word, " \t\n");
    if (is_option(word) && r->depth == 0 && word[blank] != '\0' &&
        memchr(word, '=', blank) == NULL)
        return take_text(r, word, at);
    if (is_option(word))
        return begin_option(r, word, at);
    if (name > 0 && word[name] == '=')
        return take_assignment(r, word, name, at);
    if (is_script(word))
        return take_script(r, word, at);
    if (r->option == NULL || *word == '\0')
        return MS_OK;
    r->option_maybe = r->option_maybe || r->word_maybe;
    ms_text_add(&r->values, "%s%s", r->values.length > 0 ? "," : "", word);
    return MS_OK;
}

/* A word of the script itself, which may be the shell's or in a branch that is
 * not taken. */
static ms_err take_own(reader *r, const char *word, size_t at)
{
    bool begins = r->begins, asked = r->branches.asks;
    r->begins = false;
    if (r->arrays == 0 && ms_wordbranches_take(&r->branches, word, begins)) {
        r->begins = !asked || !r->branches.asks;
        return finish_option(r);
    }
    return ms_wordbranches_state(&r->branches) == MS_BRANCH_SKIPPED
               ? MS_OK
               : take_word(r, word, at);
}

/* Words apart by blanks, which a variable holds. */
static ms_err take_text(reader *r, const char *text, size_t at)
{
    r->depth++;
    for (text += strspn(text, " \t\r\n\\"); *text != '\0';) {
        size_t n = strcspn(text, " \t\r\n");
        const char *word = ms_arena_text(r->pairs->arena, text, n);
        if (word == NULL)
            return ms_fail_nomem(r->fault);
        MS_TRY(take_word(r, word, at));
        text += n;
        text += strspn(text, " \t\r\n\\");
    }
    r->depth--;
    return finish_option(r);
}

/* Behind a backslash: the length of what is left of its line, with the line's
 * end; 0: the line goes on. */
static size_t fold(const reader *r)
{
    size_t n = 1 + strspn(r->bytes + r->at + 1, " \t\r");
    return r->bytes[r->at + n] == '\n' ? n + 1 : 0;
}

/* Where the command ends, the option's values do, too: at an operator, and at
 * the end of a line outside of an array, unless a number begins the next. */
static bool ends_command(reader *r, char c)
{
    if (c == '(' || c == ')')
        r->arrays = c == '(' ? r->arrays + 1 : r->arrays - (r->arrays > 0);
    if (c != '\n')
        return strchr(";&|<>()", c) != NULL;
    const char *next = r->bytes + r->at + strspn(r->bytes + r->at, " \t\r\n");
    return r->arrays == 0 && !(*next >= '0' && *next <= '9');
}

/* At <<WORD: goes to the line that ends the text, which no command line is. */
static void skip_document(reader *r)
{
    const char *at = r->bytes + r->at + 2, *end = r->bytes + r->length;
    at += strspn(at, "- \t\"'\\");
    size_t n = strspn(at, NAME);
    const char *word = at;
    while (n > 0 && (at = strchr(at, '\n')) != NULL) {
        at++;
        const char *line = at + strspn(at, "\t");
        if (strncmp(line, word, n) == 0 && strchr("\r\n", line[n]) != NULL) {
            r->at = (size_t)(line + n - r->bytes);
            return;
        }
    }
    r->at = n > 0 ? (size_t)(end - r->bytes) : r->at + 2;
}

/* Blanks, comments, what separates commands. */
static ms_err skip(reader *r)
{
    while (r->at < r->length && strchr(ENDS "#\\", r->bytes[r->at]) != NULL) {
        char c = r->bytes[r->at];
        size_t folded = c == '\\' ? fold(r) : 0;
        if (c == '\\' && folded == 0)
            break;
        if (strncmp(r->bytes + r->at, "<<", 2) == 0 &&
            r->bytes[r->at + 2] != '<')
            skip_document(r);
        else if (c == '#')
            r->at += strcspn(r->bytes + r->at, "\n");
        else
            r->at += c == '\\' ? folded : 1;
        if (c != '\\' && c != '#' && ends_command(r, c))
            MS_TRY(finish_option(r));
        r->begins = r->begins || strchr("\n;&|()", c) != NULL;
    }
    return MS_OK;
}

ms_err ms_wordpairs_read(ms_pairs *pairs, ms_fault *fault)
{
    reader r = {.pairs = pairs,
                .fault = fault,
                .bytes = pairs->source.bytes,
                .length = pairs->source.length,
                .begins = true,
                .values = {.arena = pairs->arena}};
    MS_TRY(skip(&r));
    while (r.at < r.length) {
        ms_text word = {.arena = pairs->arena};
        size_t at = r.at;
        r.word_maybe = false;
        MS_TRY(read_word(&r, &word));
        MS_TRY(take_own(&r, word.bytes, at));
        MS_TRY(skip(&r));
    }
    if (r.branches.asks)
        return ms_pairs_fail(pairs, r.length, fault, "is the file whole?",
                             "an if has no then");
    return finish_option(&r);
}
