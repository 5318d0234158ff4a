/* SPDX-License-Identifier: GPL-3.0-or-later */

#include <string.h>

#include "plots/gnuplot/escape.h"
#include "plots/gnuplot/widths.h"

#define INVALID UINT32_MAX
#define ELLIPSIS 0x2026u
#define APOSTROPHE 0x2019u
#define ELLIPSIS_UTF8 "\xe2\x80\xa6"

/* Reads one code point, strictly: no overlong forms, surrogates or values
 * beyond U+10FFFF.  A bad sequence counts as one INVALID per byte. */
static uint32_t decode(const unsigned char **at)
{
    static const uint32_t least[] = {0, 0x80, 0x800, 0x10000};
    const unsigned char *p = *at;
    uint32_t code = *p++;
    uint32_t more = code < 0x80   ? 0
                    : code < 0xc0 ? 4
                    : code < 0xe0 ? 1
                    : code < 0xf0 ? 2
                    : code < 0xf8 ? 3
                                  : 4;
    *at = p;
    if (more == 0)
        return code;
    if (more == 4)
        return INVALID;
    code &= 0x3fu >> more;
    for (uint32_t i = 0; i < more; i++) {
        if ((*p & 0xc0) != 0x80)
            return INVALID;
        code = code << 6 | (*p++ & 0x3fu);
    }
    if (code < least[more] || code > 0x10ffff || (code >> 11) == 0x1b)
        return INVALID;
    *at = p;
    return code;
}

static bool is_space(uint32_t code)
{
    return code <= 0x20 || (code >= 0x7f && code <= 0xa0) ||
           (code >= 0x2000 && code <= 0x200a) ||
           (code >= 0x2028 && code <= 0x2029) || code == 0x202f ||
           code == 0x205f || code == 0x3000;
}

/* What takes no room of its own: combining and joining marks, signs of
 * direction, the byte order mark. */
static bool is_silent(uint32_t code)
{
    return code == 0xad || (code >= 0x300 && code <= 0x36f) ||
           (code >= 0x200b && code <= 0x200f) ||
           (code >= 0x202a && code <= 0x202e) ||
           (code >= 0x2060 && code <= 0x206f) ||
           (code >= 0xfe00 && code <= 0xfe0f) || code == 0xfeff;
}

/* The code point that stands for the next one; 0: nothing is drawn. */
static uint32_t next_drawn(const unsigned char **at)
{
    uint32_t code = decode(at);
    if (code == INVALID)
        return '?';
    if (is_silent(code))
        return 0;
    if (is_space(code))
        return ' ';
    if (code == '\'')
        return APOSTROPHE;
    return ms_widths_of(code, false) > 0 ? code : '?';
}

static double width_of(uint32_t code, double size_px, bool is_bold)
{
    return code == 0 ? 0.0 : ms_widths_of(code, is_bold) * size_px / 1000.0;
}

/* The end of what fits: of all, or of what leaves room for an ellipsis. */
static const unsigned char *fit(const unsigned char *at, double size_px,
                                bool is_bold, double limit_px)
{
    const unsigned char *cut = at;
    double width = 0.0, mark = width_of(ELLIPSIS, size_px, is_bold);
    while (*at != '\0') {
        width += width_of(next_drawn(&at), size_px, is_bold);
        if (width > limit_px)
            return cut;
        if (width + mark <= limit_px)
            cut = at;
    }
    return at;
}

double ms_escape_width(const char *bytes, double size_px, bool is_bold)
{
    const unsigned char *at = (const unsigned char *)bytes;
    double width = 0.0;
    while (*at != '\0')
        width += width_of(next_drawn(&at), size_px, is_bold);
    return width;
}

size_t ms_escape_fits(const char *bytes, double size_px, bool is_bold,
                      double limit_px)
{
    const unsigned char *at = (const unsigned char *)bytes, *end = at;
    double width = 0.0;
    while (*at != '\0') {
        width += width_of(next_drawn(&at), size_px, is_bold);
        if (width > limit_px)
            break;
        end = at;
    }
    return (size_t)(end - (const unsigned char *)bytes);
}

static void put_code(ms_text *text, uint32_t code, bool is_bold)
{
    unsigned char utf8[4];
    size_t n = 0;
    if (is_bold && code < 0x80 && strchr("\\^_@&~{}", (int)code) != NULL)
        utf8[n++] = '\\';
    if (code < 0x80) {
        utf8[n++] = (unsigned char)code;
    } else if (code < 0x800) {
        utf8[n++] = (unsigned char)(0xc0 | code >> 6);
        utf8[n++] = (unsigned char)(0x80 | (code & 0x3f));
    } else { /* no code point that is drawn lies beyond U+FFFF */
        utf8[n++] = (unsigned char)(0xe0 | code >> 12);
        utf8[n++] = (unsigned char)(0x80 | (code >> 6 & 0x3f));
        utf8[n++] = (unsigned char)(0x80 | (code & 0x3f));
    }
    ms_text_put(text, (const char *)utf8, n);
}

void ms_escape_literal(ms_text *text, const char *bytes, double size_px,
                       bool is_bold, double limit_px)
{
    const unsigned char *at = (const unsigned char *)bytes;
    const unsigned char *end = fit(at, size_px, is_bold, limit_px);
    ms_text_add(text, "%s", is_bold ? "'{/:Bold " : "'");
    while (at < end) {
        uint32_t code = next_drawn(&at);
        if (code != 0)
            put_code(text, code, is_bold);
    }
    if (*end != '\0')
        ms_text_put(text, ELLIPSIS_UTF8, strlen(ELLIPSIS_UTF8));
    ms_text_add(text, "%s", is_bold ? "}'" : "'");
}
