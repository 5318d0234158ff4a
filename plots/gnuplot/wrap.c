/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A canonical policy has no blanks and may be longer than a figure is wide:
 * nothing of it is ever cut, it goes on in the next line. */

#include <math.h>
#include <string.h>

#include "plots/gnuplot/escape.h"
#include "plots/gnuplot/wrap.h"

static bool may_end(const char *words, size_t at)
{
    return words[at] == ' ' || strchr("+,/;", words[at - 1]) != NULL;
}

size_t ms_wrap_first(const char *words, double size_px, bool is_bold,
                     double limit_px)
{
    size_t fits = ms_escape_fits(words, size_px, is_bold, limit_px);
    if (words[fits] == '\0')
        return fits;
    for (size_t at = fits; at > 0; at--)
        if (may_end(words, at))
            return at;
    if (fits > 0)
        return fits;
    for (fits = 1; ((unsigned char)words[fits] & 0xc0) == 0x80; fits++)
        continue; /* a whole character, however narrow the line */
    return fits;
}

double ms_wrap_least(const char *words, double size_px, bool is_bold,
                     ms_arena *arena)
{
    double most = 0.0;
    for (size_t from = 0, at = 1; words[from] != '\0' && words[at - 1] != '\0';
         at++) {
        if (words[at] != '\0' && !may_end(words, at))
            continue;
        const char *piece = ms_arena_text(arena, words + from, at - from);
        if (piece != NULL)
            most = fmax(most, ms_escape_width(piece, size_px, is_bold));
        from = at;
    }
    return most;
}

const char **ms_wrap_lines(const char *words, double size_px, bool is_bold,
                           double limit_px, ms_arena *arena, uint32_t *n)
{
    const char **lines =
        ms_arena_take(arena, MS_WRAP_MOST, sizeof(const char *));
    *n = 0;
    while (lines != NULL && *words != '\0') {
        size_t length = *n + 1 == MS_WRAP_MOST
                            ? strlen(words)
                            : ms_wrap_first(words, size_px, is_bold, limit_px);
        lines[*n] = ms_arena_text(arena, words, length);
        if (lines[(*n)++] == NULL)
            return NULL;
        words += length;
        words += strspn(words, " ");
    }
    return lines;
}

double ms_wrap_width(const char *const *lines, uint32_t n, double size_px,
                     bool is_bold)
{
    double most = 0.0;
    for (uint32_t i = 0; i < n; i++)
        most = fmax(most, ms_escape_width(lines[i], size_px, is_bold));
    return most;
}
