/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "sim/text/dumpwords.h"
#include "sim/names.h"

#include <stdio.h>
#include <string.h>

int ms_dumpwords_shown(const ms_dumpwords_word *word)
{
    return word->length < MS_DUMPWORDS_QUOTED ? (int)word->length
                                              : MS_DUMPWORDS_QUOTED;
}

const char *ms_dumpwords_start(const ms_dumpwords *r,
                               const ms_dumpwords_word *word)
{
    return r->text.bytes + word->at;
}

ms_quote ms_dumpwords_quote(const ms_dumpwords *r,
                            const ms_dumpwords_word *word)
{
    ms_quote at = r->text;
    at.offset = word->at;
    return at;
}

bool ms_dumpwords_is(const ms_dumpwords *r, const ms_dumpwords_word *word,
                     const char *name)
{
    size_t length = strlen(name);
    return word->length == length &&
           memcmp(ms_dumpwords_start(r, word), name, length) == 0;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

/* The next word of this line, empty at its end. */
ms_dumpwords_word ms_dumpwords_next(ms_dumpwords *r)
{
    const char *bytes = r->text.bytes;
    size_t at = r->text.offset, end = r->text.length;
    while (at < end && is_blank(bytes[at]))
        at++;
    if (at < end && bytes[at] == '#')
        while (at < end && bytes[at] != '\n')
            at++;
    ms_dumpwords_word word = {at, 0};
    while (at < end && !is_blank(bytes[at]) && bytes[at] != '\n' &&
           bytes[at] != '#')
        at++;
    word.length = at - word.at;
    r->text.offset = at;
    return word;
}

/* Goes to the next line that is not empty; false at the end. */
bool ms_dumpwords_next_line(ms_dumpwords *r)
{
    for (;;) {
        size_t before = r->text.offset;
        if (ms_dumpwords_next(r).length > 0) {
            r->text.offset = before;
            return true;
        }
        if (r->text.offset >= r->text.length)
            return false;
        r->text.offset++;
    }
}

ms_err ms_dumpwords_expected(ms_dumpwords *r, const ms_dumpwords_word *word,
                             const char *what)
{
    ms_quote at = ms_dumpwords_quote(r, word);
    if (word->length == 0)
        return ms_fail_at(r->fault, MS_EINPUT, &at, NULL,
                          "the line ends where %s should be", what);
    return ms_fail_at(r->fault, MS_EINPUT, &at, NULL,
                      "expected %s, not \"%.*s\"", what,
                      ms_dumpwords_shown(word), ms_dumpwords_start(r, word));
}

static ms_err fail_unknown(ms_dumpwords *r, const ms_dumpwords_word *word,
                           const char *what, const char *const *words,
                           uint32_t n)
{
    char spelled[MS_DUMPWORDS_QUOTED + 1], hint[128] = "";
    snprintf(spelled, sizeof spelled, "%.*s", ms_dumpwords_shown(word),
             ms_dumpwords_start(r, word));
    const char *nearest = ms_names_nearest(spelled, words, n);
    if (nearest != NULL)
        snprintf(hint, sizeof hint, "did you mean \"%s\"?", nearest);
    if (word->length == 0)
        return ms_dumpwords_expected(r, word, what);
    ms_quote at = ms_dumpwords_quote(r, word);
    return ms_fail_at(r->fault, MS_EINPUT, &at, hint, "unknown %s \"%s\"", what,
                      spelled);
}

ms_err ms_dumpwords_one_of(ms_dumpwords *r, const char *what,
                           const char *const *words, uint32_t n,
                           uint32_t *value)
{
    ms_dumpwords_word word = ms_dumpwords_next(r);
    for (*value = 0; *value < n; (*value)++)
        if (ms_dumpwords_is(r, &word, words[*value]))
            return MS_OK;
    return fail_unknown(r, &word, what, words, n);
}

ms_err ms_dumpwords_expect(ms_dumpwords *r, const char *name)
{
    char what[MS_DUMPWORDS_QUOTED];
    ms_dumpwords_word word = ms_dumpwords_next(r);
    if (ms_dumpwords_is(r, &word, name))
        return MS_OK;
    snprintf(what, sizeof what, "\"%s\"", name);
    return ms_dumpwords_expected(r, &word, what);
}

ms_err ms_dumpwords_end(ms_dumpwords *r)
{
    ms_dumpwords_word word = ms_dumpwords_next(r);
    return word.length == 0
               ? MS_OK
               : ms_dumpwords_expected(r, &word, "the end of the line");
}

/* ---- numbers ------------------------------------------------------------- */

ms_err ms_dumpwords_parse_number(ms_dumpwords *r, const ms_dumpwords_word *word,
                                 const char *what, uint32_t low, uint32_t high,
                                 uint32_t *value)
{
    uint64_t number = 0;
    ms_quote at = ms_dumpwords_quote(r, word);
    if (word->length == 0)
        return ms_dumpwords_expected(r, word, what);
    for (size_t i = 0; i < word->length; i++) {
        char c = ms_dumpwords_start(r, word)[i];
        if (c < '0' || c > '9')
            return ms_dumpwords_expected(r, word, what);
        if (number <= UINT32_MAX)
            number = 10 * number + (uint64_t)(c - '0');
    }
    *value = (uint32_t)number;
    if (number >= low && number <= high)
        return MS_OK;
    return ms_fail_at(
        r->fault, MS_EINPUT, &at, NULL, "%s %.*s is out of range: %u to %u",
        what, ms_dumpwords_shown(word), ms_dumpwords_start(r, word), low, high);
}

ms_err ms_dumpwords_number(ms_dumpwords *r, const char *what, uint32_t low,
                           uint32_t high, uint32_t *value)
{
    ms_dumpwords_word word = ms_dumpwords_next(r);
    return ms_dumpwords_parse_number(r, &word, what, low, high, value);
}

/* The highest index of a table of n rows; 0 if it has none. */
uint32_t ms_dumpwords_highest(uint32_t n)
{
    return n > 0 ? n - 1 : 0;
}
