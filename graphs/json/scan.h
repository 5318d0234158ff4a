/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_SCAN_H
#define MS_SCAN_H

/* Private to json.c: the pieces of a JSON text, strictly read.  Refused are
 * leading zeros, "1.", raw control characters, invalid UTF-8, a byte order
 * mark, lone surrogates, \u0000, integers beyond 64 bits and numbers of more
 * than 63 characters; each with line:column and what the writer probably
 * meant (MS_EINPUT). */

#include "sim/base/base.h"

typedef struct ms_scan {
    const ms_quote *source;
    const unsigned char *start, *at, *end;
    const unsigned char *line_start;
    uint32_t line;
    uint32_t continuation; /* bytes of this line that start no character */
    ms_fault *fault;
} ms_scan;

/* A string as it stands in the text, without its quotes. */
typedef struct ms_scan_text {
    const unsigned char *first;
    size_t length;
    bool escapes; /* there is a backslash in it */
} ms_scan_text;

typedef struct ms_scan_number {
    bool integer;
    union {
        int64_t i;
        double f; /* infinite: beyond the range of a double */
    } value;
} ms_scan_number;

/* At the offset of source, in the given line. */
void ms_scan_open(ms_scan *s, const ms_quote *source, uint32_t line,
                  ms_fault *fault);
void ms_scan_over_blanks(ms_scan *s);
/* Most tokens have none before them. */
static inline void ms_scan_blanks(ms_scan *s)
{
    if (s->at < s->end && *s->at <= ' ')
        ms_scan_over_blanks(s);
}

/* In characters, from 1. */
static inline uint32_t ms_scan_column(const ms_scan *s)
{
    return (uint32_t)(s->at - s->line_start - (ptrdiff_t)s->continuation + 1);
}

/* What stands at s->at, behind which it is moved. */
ms_err ms_scan_string(ms_scan *s, ms_scan_text *text);
ms_err ms_scan_digits(ms_scan *s, ms_scan_number *number);
/* The word there: 't', 'f' or 'n' of true, false, null. */
ms_err ms_scan_word(ms_scan *s, unsigned char *first);
/* Fails at s->at. */
ms_err ms_scan_unexpected(const ms_scan *s, const char *wanted);
/* Fails at a byte of the source. */
ms_err ms_scan_fail(const ms_scan *s, const unsigned char *byte,
                    const char *hint, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

#endif
