/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Faults to standard error: where, what, the line with a caret, what next.
 *
 *     memsim: gpt3.json:12:5: unknown key "hiden" in "config"
 *        12 |   "hiden": 12288,
 *           |   ^
 *       did you mean "hidden"?
 *
 * On a terminal lines are filled to its width.  Nothing here allocates: "out of
 * memory" must be printed, too. */

#include "tools/terminal/screen.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define INDENT 4u        /* of what goes on below a line */
#define NAME_COLUMNS 8u  /* of "memsim: " */
#define SOURCE_COLUMN 8u /* in which a quoted line begins */

/* ---- filled lines -------------------------------------------------------- */

/* The first n bytes of words, made safe piece by piece. */
static void put_safe(const char *words, size_t n)
{
    char safe[256], piece[sizeof safe / 4];
    for (size_t from = 0, to = 0; from < n; from = to) {
        while (to < n && to - from + 5 < sizeof piece) {
            size_t character = ms_text_character(words + to);
            to += character > 0 ? character : 1;
        }
        memcpy(piece, words + from, to - from);
        piece[to - from] = '\0';
        fprintf(stderr, "%s", ms_screen_safe(piece, safe, sizeof safe));
    }
}

/* Words behind `column` columns of a line, filled on a terminal.  A command to
 * copy is not broken.  Returns the column in which they end. */
static uint32_t put_filled(uint32_t column, const char *words)
{
    uint32_t columns = ms_screen_columns(STDERR_FILENO), width;
    if (!ms_screen_is_terminal(STDERR_FILENO) ||
        strncmp(words, "memsim ", 7) == 0) {
        put_safe(words, strlen(words));
        return column + ms_screen_width(words, strlen(words));
    }
    while (*words != '\0') {
        int blanks = (int)strspn(words, " ");
        size_t n = ms_screen_word(words + blanks, columns - INDENT, &width);
        words += blanks;
        if (column > INDENT && column + (uint32_t)blanks + width > columns) {
            fprintf(stderr, "\n%*s", (int)INDENT, "");
            column = INDENT;
            blanks = 0;
        }
        fprintf(stderr, "%*s", blanks, "");
        put_safe(words, n);
        column += (uint32_t)blanks + width;
        words += n;
        if (*words != ' ' && *words != '\0') /* a part of a word */
            column = columns;
    }
    return column;
}

/* ---- faults -------------------------------------------------------------- */

/* Copies LINE of a place "file:LINE:COLUMN", or "" where it is another place.
 */
static void line_of(const char *where, char line[12])
{
    static const char digits[] = "0123456789";
    size_t end = strlen(where);
    for (int part = 0; part < 2; part++) {
        size_t at = end;
        while (at > 0 && strchr(digits, where[at - 1]) != NULL)
            at--;
        if (at == end || at == 0 || where[at - 1] != ':' || end - at > 10)
            break;
        if (part == 1) {
            memcpy(line, where + at, end - at);
            line[end - at] = '\0';
            return;
        }
        end = at - 1;
    }
    line[0] = '\0';
}

/* How many bytes of a line are left out before what is shown, so that a
 * terminal has the caret in view. */
static size_t left_out(const char *source, int caret, uint32_t room)
{
    const char *at = source, *end = source + strlen(source);
    uint32_t column = 0, width;
    if (caret < 0 || (uint32_t)caret + room / 4 < room)
        return 0;
    for (; at < end && column + room / 2 < (uint32_t)caret; column += width)
        at += ms_screen_step(at, end, &width);
    return (size_t)(at - source);
}

/* The bytes that fit in the room; all where there is no terminal. */
static size_t fitting(const char *source, uint32_t room)
{
    const char *at = source, *end = source + strlen(source);
    uint32_t column = 0, width;
    if (!ms_screen_is_terminal(STDERR_FILENO))
        return (size_t)(end - source);
    while (at < end) {
        size_t n = ms_screen_step(at, end, &width);
        column += width;
        if (column > room)
            break;
        at += n;
    }
    return (size_t)(at - source);
}

static void put_source(const ms_fault *fault, const ms_style *style)
{
    char line[12], safe[sizeof fault->source];
    uint32_t room = ms_screen_columns(STDERR_FILENO) - SOURCE_COLUMN;
    line_of(fault->where, line);
    ms_screen_safe(fault->source, safe, sizeof safe);
    size_t out = ms_screen_is_terminal(STDERR_FILENO)
                     ? left_out(safe, fault->caret, room)
                     : 0;
    int caret = fault->caret - (int)ms_screen_width(safe, out);
    fprintf(stderr, "%s%5s |%s %.*s\n", style->faint, line, style->plain,
            (int)fitting(safe + out, room), safe + out);
    if (fault->caret < 0)
        return;
    fprintf(stderr, "%s%5s |%s %*s%s^%s\n", style->faint, "", style->plain,
            caret, "", style->bad, style->plain);
}

/* Each line of a hint is indented. */
static void put_hint(const char *hint)
{
    char line[sizeof((ms_fault *)NULL)->hint];
    while (*hint != '\0') {
        size_t length = strcspn(hint, "\n");
        memcpy(line, hint, length);
        line[length] = '\0';
        fprintf(stderr, "  ");
        put_filled(2, line);
        fprintf(stderr, "\n");
        hint += length + (hint[length] == '\n');
    }
}

void ms_complain(const ms_fault *fault, const char *colour_mode)
{
    const ms_style *style = ms_screen_style(2, colour_mode);
    uint32_t column = NAME_COLUMNS;
    fprintf(stderr, "%smemsim:%s ", style->bad, style->plain);
    if (fault->where[0] != '\0') {
        fprintf(stderr, "%s", style->strong);
        column = put_filled(column, fault->where);
        fprintf(stderr, ":%s ", style->plain);
        column += 2;
    }
    put_filled(column, fault->what);
    fprintf(stderr, "\n");
    if (fault->source[0] != '\0')
        put_source(fault, style);
    put_hint(fault->hint);
}

void ms_complain_line(const char *a, const char *b, const char *c)
{
    uint32_t column = NAME_COLUMNS;
    fprintf(stderr, "memsim: ");
    column = put_filled(column, a);
    column = put_filled(column, b);
    put_filled(column, c);
    fprintf(stderr, "\n");
}

void ms_complain_note(const char *what, const char *name)
{
    ms_complain_line(what, " ", name);
}

int ms_complain_status(ms_err err)
{
    return (int)err / 10; /* exit statuses are an ms_err's tens: see base.h */
}
