/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "sim/base/words.h"

#include <stdio.h>
#include <string.h>

/* ---- loosely the same ---------------------------------------------------- */

/* The next byte that is compared, in lower case; '\0': the end. */
static char next(const char **at, const char *end)
{
    while (*at < end && (**at == '-' || **at == '_' || **at == ' '))
        ++*at;
    if (*at == end)
        return '\0';
    char c = *(*at)++;
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

bool ms_words_same(const char *a, size_t n, const char *b, size_t m)
{
    const char *a_end = a + n, *b_end = b + m;
    for (;;) {
        char x = next(&a, a_end), y = next(&b, b_end);
        if (x != y)
            return false;
        if (x == '\0')
            return true;
    }
}

/* Is the word the pattern, or does it begin with what stands before its "*"? */
static bool matches(const char *pattern, size_t n, const char *word, size_t m)
{
    if (n == 0 || pattern[n - 1] != '*')
        return ms_words_same(pattern, n, word, m);
    for (size_t head = 0; head <= m; head++)
        if (ms_words_same(pattern, n - 1, word, head))
            return true;
    return false;
}

int ms_words_index(const char *words, const char *word, size_t length)
{
    for (int index = 0;; index++) {
        size_t n = strcspn(words, "|");
        if (matches(words, n, word, length))
            return index;
        if (words[n] == '\0')
            return -1;
        words += n + 1;
    }
}

/* ---- rows ---------------------------------------------------------------- */

static bool is_of(const ms_word *row, const char *of)
{
    return of == NULL || row->of == NULL || strcmp(row->of, of) == 0;
}

const ms_word *ms_words_find(const ms_words *table, const char *of,
                             const char *word, size_t length)
{
    for (uint32_t i = 0; i < table->n; i++)
        if (is_of(&table->rows[i], of) &&
            ms_words_index(table->rows[i].words, word, length) >= 0)
            return &table->rows[i];
    return NULL;
}

void ms_words_hint(const ms_word *row, char *hint, size_t size)
{
    if (row->instead == NULL)
        snprintf(hint, size, "%s", row->say);
    else if (row->say == NULL)
        snprintf(hint, size, "write %s", row->instead);
    else
        snprintf(hint, size, "write %s: %s", row->instead, row->say);
}
