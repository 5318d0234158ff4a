/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Faults to standard error: where, what, the line with a caret, what next.
 *
 *     memsim: gpt3.json:12:5: unknown key "hiden" in "config"
 *        12 |   "hiden": 12288,
 *           |   ^
 *       did you mean "hidden"?
 *
 * Nothing here allocates: "out of memory" must be printed, too. */

#include "tools/terminal/screen.h"

#include <stdio.h>
#include <string.h>

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

static void put_source(const ms_fault *fault, const ms_style *style)
{
    char line[12], safe[sizeof fault->source];
    line_of(fault->where, line);
    ms_screen_safe(fault->source, safe, sizeof safe);
    fprintf(stderr, "%s%5s |%s %s\n", style->faint, line, style->plain, safe);
    if (fault->caret < 0)
        return;
    fprintf(stderr, "%s%5s |%s %*s%s^%s\n", style->faint, "", style->plain,
            fault->caret, "", style->bad, style->plain);
}

/* Each line of a hint is indented. */
static void put_hint(const char *hint)
{
    char line[sizeof((ms_fault *)NULL)->hint];
    char safe[sizeof line];
    while (*hint != '\0') {
        size_t length = strcspn(hint, "\n");
        memcpy(line, hint, length);
        line[length] = '\0';
        fprintf(stderr, "  %s\n", ms_screen_safe(line, safe, sizeof safe));
        hint += length + (hint[length] == '\n');
    }
}

void ms_complain(const ms_fault *fault, const char *colour_mode)
{
    const ms_style *style = ms_screen_style(2, colour_mode);
    char where[sizeof fault->where], what[sizeof fault->what];
    ms_screen_safe(fault->where, where, sizeof where);
    ms_screen_safe(fault->what, what, sizeof what);
    fprintf(stderr, "%smemsim:%s ", style->bad, style->plain);
    if (where[0] != '\0')
        fprintf(stderr, "%s%s:%s ", style->strong, where, style->plain);
    fprintf(stderr, "%s\n", what);
    if (fault->source[0] != '\0')
        put_source(fault, style);
    put_hint(fault->hint);
}

void ms_complain_note(const char *what, const char *name)
{
    char safe[256];
    fprintf(stderr, "memsim: %s %s\n", what,
            ms_screen_safe(name, safe, sizeof safe));
}

void ms_complain_line(const char *a, const char *b, const char *c)
{
    const char *const parts[] = {a, b, c};
    char safe[256], piece[sizeof safe / 4];
    fprintf(stderr, "memsim: ");
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        for (const char *at = parts[i]; *at != '\0';) {
            size_t n = 0;
            while (at[n] != '\0' && n + 5 < sizeof piece) {
                size_t character = ms_text_character(at + n);
                n += character > 0 ? character : 1;
            }
            memcpy(piece, at, n);
            piece[n] = '\0';
            fprintf(stderr, "%s", ms_screen_safe(piece, safe, sizeof safe));
            at += n;
        }
    fprintf(stderr, "\n");
}

int ms_complain_status(ms_err err)
{
    return (int)err / 10; /* exit statuses are an ms_err's tens: see base.h */
}
