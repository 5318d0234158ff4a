/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/differ.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define SHOWN 120  /* bytes of a line */
#define BEFORE 60u /* of them before the difference */

/* ---- tables -------------------------------------------------------------- */

static void tell(differ_table *table, const char *row, const char *column,
                 const char *expected, const char *got, const char *at)
{
    size_t length = strlen(table->told), room = DIFFER_TOLD - length;
    if (table->different++ > 0)
        snprintf(table->told + length, room,
                 "and %s, %s: expected %s, got %s\n", row, column, expected,
                 got);
    else
        snprintf(table->told, room,
                 "    row:      %s\n    column:   %s\n"
                 "    expected: %s\n    got:      %s\n%s%s%s",
                 row, column, expected, got, at ? "    look at:  " : "",
                 at ? at : "", at ? "\n" : "");
}

bool differ_number(differ_table *table, const char *row, const char *column,
                   uint64_t expected, uint64_t got, const char *at)
{
    char is[32], was[96];
    table->compared++;
    if (expected == got)
        return true;
    snprintf(is, sizeof is, "%" PRIu64, expected);
    int n = snprintf(was, sizeof was, "%" PRIu64 " (%+" PRId64, got,
                     (int64_t)(got - expected));
    if (expected > 0)
        n += snprintf(was + n, sizeof was - (size_t)n, ", %+.3g %%",
                      100 * ((double)got / (double)expected - 1));
    snprintf(was + n, sizeof was - (size_t)n, ")");
    tell(table, row, column, is, was, at);
    return false;
}

bool differ_words(differ_table *table, const char *row, const char *column,
                  const char *expected, const char *got, const char *at)
{
    table->compared++;
    if (strcmp(expected, got) == 0)
        return true;
    tell(table, row, column, expected, got, at);
    return false;
}

const char *differ_told(differ_table *table)
{
    static char all[DIFFER_TOLD + 256];
    snprintf(all, sizeof all,
             "%s: %" PRIu32 " of %" PRIu32 " differ; the first:\n%s",
             table->name, table->different, table->compared, table->told);
    return all;
}

/* ---- texts --------------------------------------------------------------- */

/* The line in which byte `at` of text lies, or what of it is around there. */
static const char *line_at(const char *text, size_t at, char shown[SHOWN])
{
    size_t from = at, end = at + strcspn(text + at, "\n");
    if (text[at] == '\0' && (at == 0 || text[at - 1] == '\n'))
        return "the end of the text";
    while (from > 0 && text[from - 1] != '\n' && at - from < BEFORE)
        from--;
    snprintf(shown, SHOWN, "%.*s", (int)(end - from), text + from);
    return shown;
}

const char *differ_texts(const char *what, const char *got,
                         const char *expected)
{
    static char told[512];
    char is[SHOWN], was[SHOWN];
    size_t at = 0, line = 1, column = 1;
    if (!got || !expected) {
        snprintf(told, sizeof told, "%s: there is no text", what);
        return got == expected ? NULL : told;
    }
    for (; got[at] == expected[at]; at++) {
        if (got[at] == '\0')
            return NULL;
        column = got[at] == '\n' ? 1 : column + 1;
        line += got[at] == '\n';
    }
    snprintf(told, sizeof told,
             "%.120s:%zu: the first difference, in column %zu\n"
             "    expected: %s\n    got:      %s",
             what, line, column, line_at(expected, at, is),
             line_at(got, at, was));
    return told;
}
