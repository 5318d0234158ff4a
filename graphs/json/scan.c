/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "graphs/json/scan.h"

#include <string.h>

#define MAX_NUMBER 63 /* characters: the size of cJSON's buffer */

typedef struct scan {
    const ms_quote *source;
    const unsigned char *start, *at, *end;
    const unsigned char *line_start;
    uint32_t line;
    uint32_t continuation; /* bytes of this line that start no character */
    uint32_t depth;
    ms_arena *arena;
    ms_scan_value *values;
    uint32_t n_values, capacity;
    ms_fault *fault;
} scan;

/* The place of a byte, for errors. */
static ms_quote quote(const scan *s, const unsigned char *byte)
{
    ms_quote at = *s->source;
    at.offset = (size_t)(byte - s->start);
    return at;
}

#define FAIL_AT(s, byte, ...)                                                  \
    ms_fail_at((s)->fault, MS_EINPUT, (ms_quote[]){quote((s), (byte))},        \
               __VA_ARGS__)

static void skip_blanks(scan *s)
{
    for (; s->at < s->end; s->at++) {
        if (*s->at == '\n') {
            s->line++;
            s->line_start = s->at + 1;
            s->continuation = 0;
        } else if (*s->at != ' ' && *s->at != '\t' && *s->at != '\r') {
            return;
        }
    }
}

static bool looks_at(const scan *s, const char *word)
{
    size_t n = strlen(word);
    return (size_t)(s->end - s->at) >= n && memcmp(s->at, word, n) == 0;
}

/* A hint for text that is not JSON: what the writer probably meant. */
static const char *hint_for(const scan *s)
{
    static const struct {
        const char *text, *hint;
    } rows[] = {
        {"//", "JSON has no comments"},
        {"/*", "JSON has no comments"},
        {"#", "JSON has no comments"},
        {"'", "write strings in double quotes"},
        {"NaN", "JSON has no NaN"},
        {"nan", "JSON has no NaN"},
        {"Infinity", "JSON has no infinity"},
        {"inf", "JSON has no infinity"},
        {"True", "write true"},
        {"False", "write false"},
        {"None", "write null"},
        {"+", "write numbers without a plus sign"},
        {".", "write a digit before the decimal point"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (looks_at(s, rows[i].text))
            return rows[i].hint;
    return NULL;
}

static ms_err unexpected(scan *s, const char *wanted)
{
    const char *hint = hint_for(s);
    if (s->at == s->end)
        return FAIL_AT(s, s->at, "is the file complete?",
                       "the text ends where %s should be", wanted);
    if (*s->at < 0x20 || *s->at >= 0x7F)
        return FAIL_AT(s, s->at, hint, "expected %s, found byte 0x%02x", wanted,
                       *s->at);
    return FAIL_AT(s, s->at, hint, "expected %s, found '%c'", wanted, *s->at);
}

/* Bytes of the UTF-8 character at s->at (RFC 3629), 0 when it is invalid. */
static uint32_t character_length(const scan *s)
{
    const unsigned char *c = s->at;
    ptrdiff_t left = s->end - c;
    uint32_t n = c[0] < 0xC2   ? 0
                 : c[0] < 0xE0 ? 2
                 : c[0] < 0xF0 ? 3
                 : c[0] < 0xF5 ? 4
                               : 0;
    if (n == 0 || left < (ptrdiff_t)n)
        return 0;
    for (uint32_t i = 1; i < n; i++)
        if ((c[i] & 0xC0) != 0x80)
            return 0;
    if ((c[0] == 0xE0 && c[1] < 0xA0) || (c[0] == 0xED && c[1] > 0x9F) ||
        (c[0] == 0xF0 && c[1] < 0x90) || (c[0] == 0xF4 && c[1] > 0x8F))
        return 0; /* overlong, surrogate, beyond U+10FFFF */
    return n;
}

/* Reads the four digits of \uXXXX at c; -1 when they are none. */
static int32_t hex4(const scan *s, const unsigned char *c)
{
    int32_t value = 0;
    if (s->end - c < 4)
        return -1;
    for (int i = 0; i < 4; i++) {
        int digit = c[i] >= '0' && c[i] <= '9'   ? c[i] - '0'
                    : c[i] >= 'a' && c[i] <= 'f' ? c[i] - 'a' + 10
                    : c[i] >= 'A' && c[i] <= 'F' ? c[i] - 'A' + 10
                                                 : -1;
        if (digit < 0)
            return -1;
        value = value * 16 + digit;
    }
    return value;
}

static ms_err scan_unicode_escape(scan *s)
{
    const unsigned char *escape = s->at;
    int32_t value = hex4(s, escape + 2);
    if (value < 0)
        return FAIL_AT(s, escape, NULL, "\\u needs four hexadecimal digits");
    if (value == 0)
        return FAIL_AT(s, escape, NULL, "\\u0000 in a string");
    s->at += 6;
    if (value < 0xD800 || value > 0xDFFF)
        return MS_OK;
    int32_t low = looks_at(s, "\\u") ? hex4(s, s->at + 2) : -1;
    if (value > 0xDBFF || low < 0xDC00 || low > 0xDFFF)
        return FAIL_AT(s, escape, NULL, "half a surrogate pair");
    s->at += 6;
    return MS_OK;
}

static ms_err scan_escape(scan *s)
{
    unsigned char kind = s->end - s->at > 1 ? s->at[1] : 0;
    if (kind == 'u')
        return scan_unicode_escape(s);
    if (kind == 0 || strchr("\"\\/bfnrt", kind) == NULL)
        return FAIL_AT(s, s->at, "write \\\\ for a backslash",
                       "unknown escape in a string");
    s->at += 2;
    return MS_OK;
}

static ms_err scan_string(scan *s)
{
    const unsigned char *opening = s->at++;
    for (;;) {
        while (s->at < s->end && *s->at >= 0x20 && *s->at < 0x80 &&
               *s->at != '"' && *s->at != '\\')
            s->at++;
        if (s->at == s->end)
            return FAIL_AT(s, opening, "is the file complete?",
                           "the string is not closed");
        if (*s->at == '"') {
            s->at++;
            return MS_OK;
        }
        if (*s->at == '\\') {
            MS_TRY(scan_escape(s));
        } else if (*s->at < 0x20) {
            return FAIL_AT(s, s->at, "write \\n for a line break",
                           "control character 0x%02x in a string", *s->at);
        } else {
            uint32_t n = character_length(s);
            if (n == 0)
                return FAIL_AT(s, s->at, "save the file as UTF-8",
                               "byte 0x%02x is not UTF-8", *s->at);
            s->at += n;
            s->continuation += n - 1;
        }
    }
}

static bool scan_digits(scan *s)
{
    const unsigned char *first = s->at;
    while (s->at < s->end && *s->at >= '0' && *s->at <= '9')
        s->at++;
    return s->at > first;
}

static ms_err scan_integer_range(scan *s, const unsigned char *first)
{
    uint64_t value = 0, limit = (uint64_t)INT64_MAX + (*first == '-');
    for (const unsigned char *c = first + (*first == '-'); c < s->at; c++)
        if (__builtin_mul_overflow(value, 10u, &value) ||
            __builtin_add_overflow(value, (uint64_t)(*c - '0'), &value) ||
            value > limit)
            return FAIL_AT(s, first, NULL, "the integer is beyond 64 bits");
    return MS_OK;
}

static ms_err scan_number(scan *s)
{
    const unsigned char *first = s->at;
    bool integer = true;
    s->at += *s->at == '-';
    if (s->end - s->at > 1 && s->at[0] == '0' && s->at[1] >= '0' &&
        s->at[1] <= '9')
        return FAIL_AT(s, first, "write it without leading zeros",
                       "a number with a leading zero");
    if (!scan_digits(s))
        return unexpected(s, "a digit");
    if (s->at < s->end && *s->at == '.') {
        integer = false;
        s->at++;
        if (!scan_digits(s))
            return unexpected(s, "a digit after the decimal point");
    }
    if (s->at < s->end && (*s->at == 'e' || *s->at == 'E')) {
        integer = false;
        s->at++;
        s->at += s->at < s->end && (*s->at == '+' || *s->at == '-');
        if (!scan_digits(s))
            return unexpected(s, "a digit of the exponent");
    }
    if (integer)
        MS_TRY(scan_integer_range(s, first));
    if (s->at - first > MAX_NUMBER)
        return FAIL_AT(s, first, NULL, "a number of more than %d characters",
                       MAX_NUMBER);
    return MS_OK;
}

static ms_err scan_value(scan *s, uint32_t key_at);

static ms_err scan_key(scan *s, uint32_t *key_at)
{
    if (s->at == s->end || *s->at != '"')
        return unexpected(s, "a key in double quotes");
    *key_at = (uint32_t)(s->at - s->start);
    MS_TRY(scan_string(s));
    skip_blanks(s);
    if (s->at == s->end || *s->at != ':')
        return unexpected(s, "':' after the key");
    s->at++;
    skip_blanks(s);
    return MS_OK;
}

/* An array or object: members between commas, up to close. */
static ms_err scan_members(scan *s, bool object, unsigned char close)
{
    const unsigned char *comma = NULL;
    s->at++;
    for (;;) {
        uint32_t key_at = MS_NONE;
        skip_blanks(s);
        if (s->at < s->end && *s->at == close) {
            if (comma != NULL)
                return FAIL_AT(s, comma, "remove it",
                               "a comma before the closing '%c'", close);
            s->at++;
            return MS_OK;
        }
        if (object)
            MS_TRY(scan_key(s, &key_at));
        MS_TRY(scan_value(s, key_at));
        skip_blanks(s);
        if (s->at < s->end && *s->at == close) {
            s->at++;
            return MS_OK;
        }
        if (s->at == s->end || *s->at != ',')
            return unexpected(s, object ? "',' or '}'" : "',' or ']'");
        comma = s->at++;
    }
}

static ms_err scan_word(scan *s)
{
    static const char *const words[] = {"true", "false", "null"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (looks_at(s, words[i])) {
            s->at += strlen(words[i]);
            return MS_OK;
        }
    }
    return unexpected(s, "a value");
}

static ms_err note(scan *s, uint32_t key_at)
{
    ptrdiff_t column = s->at - s->line_start - (ptrdiff_t)s->continuation + 1;
    if (s->n_values == s->capacity)
        s->values = ms_arena_grow(s->arena, s->values, &s->capacity,
                                  s->n_values + 1, sizeof *s->values);
    if (s->values == NULL)
        return ms_fail_nomem(s->fault);
    s->values[s->n_values++] = (ms_scan_value){
        (uint32_t)(s->at - s->start), key_at, s->line, (uint32_t)column};
    return MS_OK;
}

static ms_err scan_value(scan *s, uint32_t key_at)
{
    if (s->at == s->end)
        return unexpected(s, "a value");
    MS_TRY(note(s, key_at));
    unsigned char c = *s->at;
    if (c == '"')
        return scan_string(s);
    if (c == '-' || (c >= '0' && c <= '9'))
        return scan_number(s);
    if (c != '{' && c != '[')
        return scan_word(s);
    if (s->depth == MS_SCAN_DEPTH)
        return FAIL_AT(s, s->at, NULL, "nested deeper than %u levels",
                       MS_SCAN_DEPTH);
    s->depth++;
    MS_TRY(scan_members(s, c == '{', c == '{' ? '}' : ']'));
    s->depth--;
    return MS_OK;
}

ms_err ms_scan_next(ms_quote *source, uint32_t *line, ms_arena *arena,
                    ms_scan_value **values, uint32_t *n, ms_fault *fault)
{
    const unsigned char *bytes = (const unsigned char *)source->bytes;
    scan s = {.source = source,
              .start = bytes,
              .at = bytes + source->offset,
              .end = bytes + source->length,
              .line_start = bytes + source->offset,
              .line = *line,
              .arena = arena,
              .fault = fault};
    while (s.line_start > bytes && s.line_start[-1] != '\n')
        s.line_start--;
    if (s.at == bytes && looks_at(&s, "\xEF\xBB\xBF"))
        return FAIL_AT(&s, s.at, "save the file as UTF-8 without it",
                       "the file begins with a byte order mark");
    skip_blanks(&s);
    if (s.at == s.end)
        return FAIL_AT(&s, bytes, NULL, "the file is empty");
    MS_TRY(scan_value(&s, MS_NONE));
    skip_blanks(&s);
    *values = s.values;
    *n = s.n_values;
    *line = s.line;
    source->offset = (size_t)(s.at - bytes);
    return MS_OK;
}

ms_err ms_scan_values(const ms_quote *source, ms_arena *arena,
                      ms_scan_value **values, uint32_t *n, ms_fault *fault)
{
    ms_quote rest = *source;
    uint32_t line = 1;
    rest.offset = 0;
    MS_TRY(ms_scan_next(&rest, &line, arena, values, n, fault));
    if (rest.offset < rest.length)
        return ms_fail_at(fault, MS_EINPUT, &rest,
                          "a file holds one JSON value",
                          "text after the end of the value");
    return MS_OK;
}
