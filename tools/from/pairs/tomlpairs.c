/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A strict subset of TOML 1.0 (toml.io): tables, arrays of tables, dotted and
 * quoted keys, strings of all four kinds, numbers, booleans, arrays of scalars
 * over several lines, inline tables.  Dates and arrays of arrays are refused.
 */

#include "tools/from/pairs/pairs.h"

#include <stdio.h>
#include <string.h>

typedef struct reader {
    ms_pairs *pairs;
    ms_fault *fault;
    const char *bytes;
    size_t at, length;
    const char *table; /* the keys that stand before those of a line */
} reader;

#define BARE "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-"

static char look(const reader *r)
{
    return r->at < r->length ? r->bytes[r->at] : '\0';
}

static bool begins(const reader *r, const char *words)
{
    size_t n = strlen(words);
    return r->length - r->at >= n && memcmp(r->bytes + r->at, words, n) == 0;
}

static ms_err fail(const reader *r, const char *what)
{
    char next[24] = "the end of the file";
    if (r->at < r->length && look(r) != '\n')
        snprintf(next, sizeof next, "\"%c\"", look(r));
    else if (r->at < r->length)
        strcpy(next, "the end of the line");
    return ms_pairs_fail(r->pairs, r->at, r->fault,
                         "is the file whole, and TOML?", "%s, not %s", what,
                         next);
}

static void skip_blanks(reader *r)
{
    while (look(r) == ' ' || look(r) == '\t')
        r->at++;
    if (look(r) == '#')
        while (r->at < r->length && look(r) != '\n')
            r->at++;
    if (look(r) == '\r')
        r->at++;
}

static void skip_lines(reader *r)
{
    for (skip_blanks(r); look(r) == '\n'; skip_blanks(r))
        r->at++;
}

static ms_err end_line(reader *r)
{
    skip_blanks(r);
    if (r->at < r->length && look(r) != '\n')
        return fail(r, "a line ends behind its value");
    r->at += r->at < r->length;
    return MS_OK;
}

/* ---- strings ------------------------------------------------------------- */

/* The UTF-8 of a code point. */
static void put_point(ms_text *text, uint32_t point)
{
    char bytes[4];
    size_t n = point < 0x80 ? 1 : point < 0x800 ? 2 : point < 0x10000 ? 3 : 4;
    static const unsigned char first[] = {0, 0, 0xC0, 0xE0, 0xF0};
    for (size_t i = n; i-- > 1; point >>= 6)
        bytes[i] = (char)(0x80 | (point & 0x3F));
    bytes[0] = (char)(first[n] | point);
    ms_text_put(text, bytes, n);
}

static ms_err put_digits(reader *r, uint32_t n, ms_text *text)
{
    static const char digits[] = "0123456789abcdef0123456789ABCDEF";
    uint32_t point = 0;
    for (uint32_t i = 0; i < n; i++, r->at++) {
        const char *digit = look(r) != '\0' ? strchr(digits, look(r)) : NULL;
        if (digit == NULL)
            return fail(r, "here a code point has its digits");
        point = point << 4 | (uint32_t)(digit - digits) % 16u;
    }
    if (point == 0 || point > 0x10FFFF || (point >= 0xD800 && point < 0xE000))
        return fail(r, "this is no character");
    put_point(text, point);
    return MS_OK;
}

static ms_err put_escape(reader *r, ms_text *text)
{
    static const char from[] = "btnfr\"\\", to[] = "\b\t\n\f\r\"\\";
    char letter = look(r);
    const char *row = letter != '\0' ? strchr(from, letter) : NULL;
    r->at += r->at < r->length;
    if (row != NULL)
        ms_text_put(text, &to[row - from], 1);
    else if (letter == 'u' || letter == 'U')
        return put_digits(r, letter == 'u' ? 4 : 8, text);
    else
        return fail(r, "there is no such escape");
    return MS_OK;
}

/* In a string of several lines: a backslash at the end of a line. */
static bool skip_fold(reader *r)
{
    size_t at = r->at;
    while (at < r->length && strchr(" \t\r", r->bytes[at]) != NULL)
        at++;
    if (at == r->length || r->bytes[at] != '\n')
        return false;
    while (at < r->length && strchr(" \t\r\n", r->bytes[at]) != NULL)
        at++;
    r->at = at;
    return true;
}

static ms_err read_string(reader *r, ms_text *text)
{
    char quote = look(r);
    const char three[] = {quote, quote, quote, '\0'};
    bool lines = begins(r, three);
    size_t width = lines ? 3 : 1;
    ms_text_add(text, "%s", "");
    r->at += width;
    if (lines && look(r) == '\n')
        r->at++;
    for (;;) {
        char c = look(r);
        if (c == '\0' || (c == '\n' && !lines))
            return fail(r, "a string ends in its quote");
        if (lines ? begins(r, three) : c == quote)
            break;
        r->at++;
        if (c != '\\' || quote == '\'')
            ms_text_put(text, &c, 1);
        else if (!lines || !skip_fold(r))
            MS_TRY(put_escape(r, text));
    }
    r->at += width;
    return MS_OK;
}

/* ---- keys ---------------------------------------------------------------- */

/* A dotted key, behind outer. */
static ms_err read_key(reader *r, const char *outer, const char **key)
{
    ms_text text = {.arena = r->pairs->arena};
    ms_text_add(&text, "%s", outer);
    for (;;) {
        size_t n = strspn(r->bytes + r->at, BARE);
        if (text.length > 0)
            ms_text_add(&text, ".");
        if (look(r) == '"' || look(r) == '\'')
            MS_TRY(read_string(r, &text));
        else if (n == 0)
            return fail(r, "here a key begins");
        else
            ms_text_put(&text, r->bytes + r->at, n);
        r->at += n;
        skip_blanks(r);
        if (look(r) != '.')
            break;
        r->at++;
        skip_blanks(r);
    }
    *key = text.bytes;
    return text.failed ? ms_fail_nomem(r->fault) : MS_OK;
}

/* "[table]", or "[[table]]", whose elements are counted. */
static ms_err read_table(reader *r)
{
    bool many = begins(r, "[[");
    size_t start = r->at;
    r->at += many ? 2 : 1;
    skip_blanks(r);
    MS_TRY(read_key(r, "", &r->table));
    if (!begins(r, many ? "]]" : "]"))
        return fail(r, "a table's name ends in ]");
    r->at += many ? 2 : 1;
    if (many) {
        r->table = ms_arena_format(r->pairs->arena, "%s.%u", r->table,
                                   ms_pairs_line(r->pairs, start));
        if (r->table == NULL)
            return ms_fail_nomem(r->fault);
    }
    return end_line(r);
}

/* ---- values -------------------------------------------------------------- */

/* true, false, or a number: checked, and without its underscores. */
static ms_err read_bare(reader *r, ms_text *text)
{
    static const char letters[] = BARE "+.:";
    const char *word = r->bytes + r->at;
    size_t n = strspn(word, letters);
    bool boolean = (n == 4 && memcmp(word, "true", 4) == 0) ||
                   (n == 5 && memcmp(word, "false", 5) == 0);
    size_t sign = n > 0 && (*word == '+' || *word == '-');
    bool named = n - sign == 3 && (memcmp(word + sign, "inf", 3) == 0 ||
                                   memcmp(word + sign, "nan", 3) == 0);
    if (!boolean && !named &&
        (n == sign || word[sign] < '0' || word[sign] > '9'))
        return fail(r, "here a value stands: a string in quotes, a number, "
                       "true, false, [ or {");
    for (size_t i = 0; i < n; i++) {
        bool digit = strchr("0123456789abcdefABCDEFxob_+-.eE", word[i]) != NULL;
        if (!boolean && !named && !digit)
            return ms_pairs_fail(r->pairs, r->at + i, r->fault,
                                 "write it in quotes", "\"%.*s\" is no number",
                                 n < 40 ? (int)n : 40, word);
        if (word[i] != '_')
            ms_text_put(text, word + i, 1);
    }
    r->at += n;
    return MS_OK;
}

static ms_err read_scalar(reader *r, ms_text *text)
{
    return look(r) == '"' || look(r) == '\'' ? read_string(r, text)
                                             : read_bare(r, text);
}

/* An array of scalars, as one value. */
static ms_err read_array(reader *r, ms_text *text)
{
    ms_text_add(text, "%s", "");
    r->at++;
    for (const char *comma = "";; comma = ",") {
        skip_lines(r);
        if (look(r) == ']')
            break;
        if (look(r) == '[' || look(r) == '{')
            return fail(r, "an array here has strings and numbers");
        ms_text_add(text, "%s", comma);
        MS_TRY(read_scalar(r, text));
        skip_lines(r);
        if (look(r) == ',')
            r->at++;
        else if (look(r) != ']')
            return fail(r, "between elements there is a comma");
    }
    r->at++;
    return MS_OK;
}

static ms_err read_pair(reader *r, const char *outer, uint32_t depth);

static ms_err read_inline(reader *r, const char *key, uint32_t depth)
{
    r->at++;
    skip_blanks(r);
    while (look(r) != '}') {
        MS_TRY(read_pair(r, key, depth + 1));
        skip_blanks(r);
        if (look(r) == ',')
            r->at++;
        else if (look(r) != '}')
            return fail(r, "between members there is a comma");
        skip_blanks(r);
    }
    r->at++;
    return MS_OK;
}

static ms_err read_pair(reader *r, const char *outer, uint32_t depth)
{
    const char *key;
    size_t at = r->at;
    ms_text text = {.arena = r->pairs->arena};
    if (depth > MS_PAIRS_DEPTH)
        return fail(r, "it is nested too deep");
    MS_TRY(read_key(r, outer, &key));
    if (look(r) != '=')
        return fail(r, "behind a key there is =");
    r->at++;
    skip_blanks(r);
    if (look(r) == '{')
        return read_inline(r, key, depth);
    MS_TRY(look(r) == '[' ? read_array(r, &text) : read_scalar(r, &text));
    if (text.failed)
        return ms_fail_nomem(r->fault);
    return ms_pairs_add(r->pairs, key, text.bytes, at, false, r->fault);
}

ms_err ms_tomlpairs_read(ms_pairs *pairs, ms_fault *fault)
{
    reader r = {.pairs = pairs,
                .fault = fault,
                .bytes = pairs->source.bytes,
                .length = pairs->source.length,
                .table = ""};
    for (skip_lines(&r); r.at < r.length; skip_lines(&r)) {
        if (look(&r) == '[') {
            MS_TRY(read_table(&r));
            continue;
        }
        MS_TRY(read_pair(&r, r.table, 0));
        MS_TRY(end_line(&r));
    }
    return MS_OK;
}
