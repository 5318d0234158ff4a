/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "graphs/json/scan.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_NUMBER 63  /* characters */
#define SAFE_DIGITS 18 /* of so many no integer is beyond 64 bits */

ms_err ms_scan_fail(const ms_scan *s, const unsigned char *byte,
                    const char *hint, const char *format, ...)
{
    char what[512]; /* as long as the fault's */
    ms_quote at = *s->source;
    va_list args;
    at.offset = (size_t)(byte - s->start);
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    return ms_fail_at(s->fault, MS_EINPUT, &at, hint, "%s", what);
}

void ms_scan_over_blanks(ms_scan *s)
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

static bool looks_at(const ms_scan *s, const char *word)
{
    size_t n = strlen(word);
    return (size_t)(s->end - s->at) >= n && memcmp(s->at, word, n) == 0;
}

/* A hint for text that is not JSON: what the writer probably meant. */
static const char *hint_for(const ms_scan *s)
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

ms_err ms_scan_unexpected(const ms_scan *s, const char *wanted)
{
    const char *hint = hint_for(s);
    if (s->at == s->end)
        return ms_scan_fail(s, s->at, "is the file complete?",
                            "the text ends where %s should be", wanted);
    if (*s->at < 0x20 || *s->at >= 0x7F)
        return ms_scan_fail(s, s->at, hint, "expected %s, found byte 0x%02x",
                            wanted, *s->at);
    return ms_scan_fail(s, s->at, hint, "expected %s, found '%c'", wanted,
                        *s->at);
}

/* Bytes of the UTF-8 character at s->at (RFC 3629), 0 when it is invalid. */
static uint32_t character_length(const ms_scan *s)
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
static int32_t hex4(const ms_scan *s, const unsigned char *c)
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

static ms_err scan_unicode_escape(ms_scan *s)
{
    const unsigned char *escape = s->at;
    int32_t value = hex4(s, escape + 2);
    if (value < 0)
        return ms_scan_fail(s, escape, NULL,
                            "\\u needs four hexadecimal digits");
    if (value == 0)
        return ms_scan_fail(s, escape, NULL, "\\u0000 in a string");
    s->at += 6;
    if (value < 0xD800 || value > 0xDFFF)
        return MS_OK;
    int32_t low = looks_at(s, "\\u") ? hex4(s, s->at + 2) : -1;
    if (value > 0xDBFF || low < 0xDC00 || low > 0xDFFF)
        return ms_scan_fail(s, escape, NULL, "half a surrogate pair");
    s->at += 6;
    return MS_OK;
}

static ms_err scan_escape(ms_scan *s)
{
    unsigned char kind = s->end - s->at > 1 ? s->at[1] : 0;
    if (kind == 'u')
        return scan_unicode_escape(s);
    if (kind == 0 || strchr("\"\\/bfnrt", kind) == NULL)
        return ms_scan_fail(s, s->at, "write \\\\ for a backslash",
                            "unknown escape in a string");
    s->at += 2;
    return MS_OK;
}

/* How much of the text is plain: neither the end of a string nor an escape,
 * a control character or a part of a longer one. */
static const unsigned char *skip_plain(const unsigned char *at,
                                       const unsigned char *end)
{
    while (at < end && *at >= 0x20 && *at < 0x80 && *at != '"' && *at != '\\')
        at++;
    return at;
}

static ms_err scan_special(ms_scan *s)
{
    if (*s->at == '\\')
        return scan_escape(s);
    if (*s->at < 0x20)
        return ms_scan_fail(s, s->at, "write \\n for a line break",
                            "control character 0x%02x in a string", *s->at);
    uint32_t n = character_length(s);
    if (n == 0)
        return ms_scan_fail(s, s->at, "save the file as UTF-8",
                            "byte 0x%02x is not UTF-8", *s->at);
    s->at += n;
    s->continuation += n - 1;
    return MS_OK;
}

ms_err ms_scan_string(ms_scan *s, ms_scan_text *text)
{
    const unsigned char *opening = s->at++;
    *text = (ms_scan_text){.first = s->at};
    for (;;) {
        s->at = skip_plain(s->at, s->end);
        if (s->at == s->end)
            return ms_scan_fail(s, opening, "is the file complete?",
                                "the string is not closed");
        if (*s->at == '"')
            break;
        text->escapes |= *s->at == '\\';
        MS_TRY(scan_special(s));
    }
    text->length = (size_t)(s->at++ - text->first);
    return MS_OK;
}

static bool skip_digits(ms_scan *s)
{
    const unsigned char *first = s->at;
    while (s->at < s->end && *s->at >= '0' && *s->at <= '9')
        s->at++;
    return s->at > first;
}

static ms_err read_integer(const ms_scan *s, const unsigned char *first,
                           int64_t *integer)
{
    bool negative = *first == '-';
    uint64_t value = 0, limit = (uint64_t)INT64_MAX + negative;
    if (s->at - first <= SAFE_DIGITS) {
        for (const unsigned char *c = first + negative; c < s->at; c++)
            value = value * 10 + (uint64_t)(*c - '0');
        *integer = negative ? -(int64_t)value : (int64_t)value;
        return MS_OK;
    }
    for (const unsigned char *c = first + negative; c < s->at; c++)
        if (__builtin_mul_overflow(value, 10u, &value) ||
            __builtin_add_overflow(value, (uint64_t)(*c - '0'), &value) ||
            value > limit)
            return ms_scan_fail(s, first, NULL,
                                "the integer is beyond 64 bits");
    *integer = negative ? (int64_t)(0 - value) : (int64_t)value;
    return MS_OK;
}

/* The source need not end with a NUL. */
static double read_double(const unsigned char *first, size_t length)
{
    char text[MAX_NUMBER + 1];
    memcpy(text, first, length);
    text[length] = '\0';
    return strtod(text, NULL);
}

static ms_err scan_fraction(ms_scan *s)
{
    if (s->at < s->end && *s->at == '.') {
        s->at++;
        if (!skip_digits(s))
            return ms_scan_unexpected(s, "a digit after the decimal point");
    }
    if (s->at < s->end && (*s->at == 'e' || *s->at == 'E')) {
        s->at++;
        s->at += s->at < s->end && (*s->at == '+' || *s->at == '-');
        if (!skip_digits(s))
            return ms_scan_unexpected(s, "a digit of the exponent");
    }
    return MS_OK;
}

ms_err ms_scan_digits(ms_scan *s, ms_scan_number *number)
{
    const unsigned char *first = s->at, *digits;
    s->at += *s->at == '-';
    if (s->end - s->at > 1 && s->at[0] == '0' && s->at[1] >= '0' &&
        s->at[1] <= '9')
        return ms_scan_fail(s, first, "write it without leading zeros",
                            "a number with a leading zero");
    if (!skip_digits(s))
        return ms_scan_unexpected(s, "a digit");
    digits = s->at;
    MS_TRY(scan_fraction(s));
    number->integer = s->at == digits;
    if (number->integer)
        MS_TRY(read_integer(s, first, &number->value.i));
    if (s->at - first > MAX_NUMBER)
        return ms_scan_fail(s, first, NULL,
                            "a number of more than %d characters", MAX_NUMBER);
    if (!number->integer)
        number->value.f = read_double(first, (size_t)(s->at - first));
    return MS_OK;
}

ms_err ms_scan_word(ms_scan *s, unsigned char *first)
{
    static const char *const words[] = {"true", "false", "null"};
    *first = s->at < s->end ? *s->at : 0;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (looks_at(s, words[i])) {
            s->at += strlen(words[i]);
            return MS_OK;
        }
    }
    return ms_scan_unexpected(s, "a value");
}

void ms_scan_open(ms_scan *s, const ms_quote *source, uint32_t line,
                  ms_fault *fault)
{
    const unsigned char *bytes = (const unsigned char *)source->bytes;
    *s = (ms_scan){.source = source,
                   .start = bytes,
                   .at = bytes + source->offset,
                   .end = bytes + source->length,
                   .line_start = bytes + source->offset,
                   .line = line,
                   .fault = fault};
    while (s->line_start > bytes && s->line_start[-1] != '\n')
        s->line_start--;
}
