/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "sim/base/base.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool grow(ms_text *text, size_t length)
{
    if (text->failed || length >= UINT32_MAX - text->length) {
        text->failed = true;
        return false;
    }
    uint32_t need = text->length + (uint32_t)length + 1;
    char *grown =
        ms_arena_grow(text->arena, text->bytes, &text->capacity, need, 1);
    if (grown == NULL) {
        text->failed = true;
        return false;
    }
    text->bytes = grown;
    return true;
}

/* Makes room for length more bytes and the NUL; false once failed.  Most have
 * it: a table of CSV is millions of short texts. */
static inline bool reserve(ms_text *text, size_t length)
{
    if (text->bytes != NULL && !text->failed &&
        length < text->capacity - text->length)
        return true;
    return grow(text, length);
}

void ms_text_put(ms_text *text, const char *bytes, size_t length)
{
    if (!reserve(text, length))
        return;
    if (length > 0)
        memcpy(text->bytes + text->length, bytes, length);
    text->length += (uint32_t)length;
    text->bytes[text->length] = '\0';
}

void ms_text_add(ms_text *text, const char *format, ...)
{
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    int length = vsnprintf(NULL, 0, format, args);
    va_end(args);
    if (length < 0)
        text->failed = true;
    else if (reserve(text, (size_t)length)) {
        vsnprintf(text->bytes + text->length, (size_t)length + 1, format,
                  again);
        text->length += (uint32_t)length;
    }
    va_end(again);
}

void ms_text_u64(ms_text *text, uint64_t value)
{
    char digits[20];
    size_t at = sizeof digits;
    do {
        digits[--at] = (char)('0' + value % 10);
        value /= 10;
    } while (value != 0);
    ms_text_put(text, digits + at, sizeof digits - at);
}

void ms_text_i64(ms_text *text, int64_t value)
{
    if (value < 0)
        ms_text_put(text, "-", 1);
    ms_text_u64(text, value < 0 ? 0 - (uint64_t)value : (uint64_t)value);
}

/* Overlong forms and surrogates are not valid (Unicode 15, table 3-7).  Stops
 * at the NUL, which is no continuation byte. */
size_t ms_text_character(const char *string)
{
    const unsigned char *bytes = (const unsigned char *)string;
    static const struct {
        unsigned char first, last, low, high, length;
    } forms[] = {
        {0x01, 0x7f, 0x00, 0x00, 1}, {0xc2, 0xdf, 0x80, 0xbf, 2},
        {0xe0, 0xe0, 0xa0, 0xbf, 3}, {0xe1, 0xec, 0x80, 0xbf, 3},
        {0xed, 0xed, 0x80, 0x9f, 3}, {0xee, 0xef, 0x80, 0xbf, 3},
        {0xf0, 0xf0, 0x90, 0xbf, 4}, {0xf1, 0xf3, 0x80, 0xbf, 4},
        {0xf4, 0xf4, 0x80, 0x8f, 4},
    };
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
        if (bytes[0] < forms[i].first || bytes[0] > forms[i].last)
            continue;
        size_t length = forms[i].length;
        if (length > 1 && (bytes[1] < forms[i].low || bytes[1] > forms[i].high))
            return 0;
        for (size_t k = 2; k < length; k++)
            if ((bytes[k] & 0xc0) != 0x80)
                return 0;
        return length;
    }
    return 0;
}

static void put_escaped(ms_text *text, unsigned char c)
{
    static const char plain[] = "\"\\\b\f\n\r\t";
    static const char letter[] = "\"\\bfnrt";
    const char *known = strchr(plain, c);
    if (known != NULL)
        ms_text_add(text, "\\%c", letter[known - plain]);
    else
        ms_text_add(text, "\\u%04x", (unsigned)c);
}

/* The length of the printable ASCII at the start, which needs no escape. */
static size_t plain_length(const char *at)
{
    const char *from = at;
    while (*at >= 0x20 && *at < 0x7f && *at != '"' && *at != '\\')
        at++;
    return (size_t)(at - from);
}

void ms_text_json(ms_text *text, const char *string)
{
    ms_text_put(text, "\"", 1);
    for (;;) {
        size_t plain = plain_length(string);
        ms_text_put(text, string, plain);
        string += plain;
        if (*string == '\0')
            break;
        size_t length = ms_text_character(string);
        unsigned char c = (unsigned char)*string;
        if (length == 0)
            ms_text_put(text, "\xef\xbf\xbd", 3);
        else if (c < 0x20 || c == '"' || c == '\\')
            put_escaped(text, c);
        else
            ms_text_put(text, string, length);
        string += length == 0 ? 1 : length;
    }
    ms_text_put(text, "\"", 1);
}

/* Only the decimal point depends on the locale, and it may be several bytes: it
 * is whatever cannot be part of a number. */
static void put_number(ms_text *text, const char *local)
{
    bool in_point = false;
    for (; *local != '\0'; local++) {
        bool number = strchr("0123456789+-e", *local) != NULL;
        if (number)
            ms_text_put(text, local, 1);
        else if (!in_point)
            ms_text_put(text, ".", 1);
        in_point = !number;
    }
}

void ms_text_double(ms_text *text, double value)
{
    char local[64];
    snprintf(local, sizeof local, "%.6g", value);
    if (isfinite(value))
        put_number(text, local);
    else
        ms_text_put(text, "null", 4);
}

void ms_text_exact(ms_text *text, double value)
{
    char local[64];
    snprintf(local, sizeof local, "%.6g", value);
    if (strtod(local, NULL) != value)
        snprintf(local, sizeof local, "%.17g", value);
    if (isfinite(value))
        put_number(text, local);
    else
        ms_text_put(text, "null", 4);
}
