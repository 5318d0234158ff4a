/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/from/keys/formatkeys.h"

#include <string.h>
#include <strings.h>

bool ms_formatkeys_match(const char *pattern, const char *key)
{
    const char *star = strchr(pattern, '*');
    if (star == NULL)
        return strcmp(pattern, key) == 0;
    size_t before = (size_t)(star - pattern), after = strlen(star + 1);
    size_t length = strlen(key);
    return length >= before + after && memcmp(pattern, key, before) == 0 &&
           (after == 0 || strcmp(key + length - after, star + 1) == 0);
}

const char *ms_formatkeys_strip(const ms_format *format, const char *key)
{
    size_t n = format->strips != NULL ? strlen(format->strips) : 0;
    return n > 0 && strncmp(key, format->strips, n) == 0 ? key + n : key;
}

bool ms_formatkeys_is_passed(const ms_format *format, const char *key)
{
    for (uint32_t i = 0; format->passed[i] != NULL; i++)
        if (ms_formatkeys_match(format->passed[i], key))
            return true;
    return false;
}

bool ms_formatkeys_one_of(const char *words, const char *value)
{
    size_t length = strlen(value);
    for (const char *w = words; w != NULL;) {
        size_t n = strcspn(w, "|");
        if (n == length && strncasecmp(w, value, n) == 0)
            return true;
        w = w[n] == '|' ? w + n + 1 : NULL;
    }
    return false;
}

const char *ms_formatkeys_value(ms_arena *arena, const char *values,
                                const char *value, bool *known)
{
    size_t length = strlen(value);
    *known = true;
    for (const char *w = values; w != NULL;) {
        size_t n = strcspn(w, "|"), left = strcspn(w, "=|");
        bool any = left == 1 && *w == '*';
        if (any || (left == length && strncasecmp(w, value, left) == 0)) {
            if (left == n)
                return ms_arena_text(arena, w, n);
            const char *at = memchr(w + left, '@', n - left);
            if (at == NULL)
                return ms_arena_text(arena, w + left + 1, n - left - 1);
            return ms_arena_format(arena, "%.*s%s",
                                   (int)(at - w - (long)left - 1), w + left + 1,
                                   value);
        }
        w = w[n] == '|' ? w + n + 1 : NULL;
    }
    *known = values == NULL;
    return value;
}
