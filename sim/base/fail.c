/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "sim/base/base.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static bool is_control(char c)
{
    return (unsigned char)c < 0x20 || c == 0x7f;
}

static bool is_continuation(char c)
{
    return ((unsigned char)c & 0xc0) == 0x80;
}

/* A text that snprintf has cut may end inside a UTF-8 character; that character
 * is cut off, too. */
static void trim_partial(char *text, size_t size)
{
    size_t end = strlen(text);
    if (end + 1 < size)
        return;
    size_t lead = end;
    while (lead > 0 && end - lead < 3 && is_continuation(text[lead - 1]))
        lead--;
    if (lead > 0 && (unsigned char)text[lead - 1] >= 0xc0)
        text[lead - 1] = '\0';
}

/* Names come from files, and a control character in one must not reach a
 * terminal. */
static void clean(char *text, size_t size, char spared)
{
    trim_partial(text, size);
    for (char *c = text; *c != '\0'; c++)
        if (is_control(*c) && *c != spared)
            *c = '?';
}

static void copy(char *to, size_t size, const char *from)
{
    snprintf(to, size, "%s", from == NULL ? "" : from);
}

static void fill(ms_fault *fault, ms_err err, const char *where,
                 const char *hint)
{
    fault->err = err;
    if (fault->source[0] == '\0')
        fault->caret = -1;
    copy(fault->where, sizeof fault->where, where);
    copy(fault->hint, sizeof fault->hint, hint);
    clean(fault->where, sizeof fault->where, '\0');
    clean(fault->what, sizeof fault->what, '\0');
    clean(fault->hint, sizeof fault->hint, '\n');
}

ms_err ms_fail(ms_fault *fault, ms_err err, const char *where, const char *hint,
               const char *format, ...)
{
    if (fault == NULL || fault->err != MS_OK)
        return err;
    va_list args;
    va_start(args, format);
    vsnprintf(fault->what, sizeof fault->what, format, args);
    va_end(args);
    fill(fault, err, where, hint);
    return err;
}

ms_err ms_fail_nomem(ms_fault *fault)
{
    return ms_fail(fault, MS_ENOMEM, NULL,
                   "a smaller model or fewer micro-batches need less memory",
                   "out of memory on this host");
}

bool ms_fail_is_refusal(ms_err err)
{
    return err == MS_EUSAGE || err == MS_EINPUT || err == MS_EINFEASIBLE;
}

ms_err ms_fail_but_refusal(ms_err err, const ms_fault *own, ms_fault *fault)
{
    if (err == MS_OK || ms_fail_is_refusal(err))
        return MS_OK;
    if (fault != NULL && fault->err == MS_OK)
        *fault = *own;
    return err;
}

/* Copies the line around offset; of a long line only a window is kept. */
void ms_fail_quote(ms_fault *fault, const char *bytes, size_t length,
                   size_t offset)
{
    if (fault == NULL || fault->err != MS_OK)
        return;
    size_t room = sizeof fault->source - 1;
    size_t begin = offset, end = offset;
    while (begin > 0 && bytes[begin - 1] != '\n' && offset - begin < room / 2)
        begin--;
    while (begin < offset && is_continuation(bytes[begin]))
        begin++;
    while (end < length && bytes[end] != '\n' && end - begin < room)
        end++;
    fault->caret = 0;
    for (size_t i = begin; i < end; i++) {
        char c = bytes[i];
        fault->source[i - begin] = is_control(c) ? ' ' : c;
        fault->caret += i < offset && !is_continuation(c);
    }
    fault->source[end - begin] = '\0';
    trim_partial(fault->source, sizeof fault->source);
}

/* Finds line and column, both from 1; columns count characters, not bytes. */
static void locate(const ms_quote *at, size_t *line, size_t *column)
{
    *line = 1;
    *column = 1;
    for (size_t i = 0; i < at->offset && i < at->length; i++) {
        if (at->bytes[i] == '\n') {
            (*line)++;
            *column = 1;
        } else if (!is_continuation(at->bytes[i])) {
            (*column)++;
        }
    }
}

ms_err ms_fail_at(ms_fault *fault, ms_err err, const ms_quote *at,
                  const char *hint, const char *format, ...)
{
    if (fault == NULL || fault->err != MS_OK)
        return err;
    va_list args;
    va_start(args, format);
    vsnprintf(fault->what, sizeof fault->what, format, args);
    va_end(args);
    size_t line, column;
    locate(at, &line, &column);
    ms_fail_quote(fault, at->bytes, at->length, at->offset);
    char where[sizeof fault->where];
    snprintf(where, sizeof where, "%.200s:%zu:%zu", at->name, line, column);
    fill(fault, err, where, hint);
    return err;
}
