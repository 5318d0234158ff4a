/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/from/pairs/pairs.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

ms_err ms_pairs_fail(const ms_pairs *pairs, size_t at, ms_fault *fault,
                     const char *hint, const char *format, ...)
{
    char what[256];
    ms_quote place = pairs->source;
    place.offset = at < place.length ? at : place.length;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    return ms_fail_at(fault, MS_EINPUT, &place, hint, "%s", what);
}

const char *ms_pairs_name(const ms_pair *pair)
{
    return pair->old_key != NULL ? pair->old_key : pair->key;
}

const char *ms_pairs_value(const ms_pair *pair)
{
    return pair->old_value != NULL ? pair->old_value : pair->value;
}

const ms_pair *ms_pairs_find(const ms_pairs *pairs, const char *key)
{
    for (uint32_t i = 0; i < pairs->n; i++)
        if (strcmp(pairs->all[i].key, key) == 0)
            return &pairs->all[i];
    return NULL;
}

uint32_t ms_pairs_line(const ms_pairs *pairs, size_t at)
{
    uint32_t line = 1;
    for (size_t i = 0; i < at && i < pairs->source.length; i++)
        line += pairs->source.bytes[i] == '\n';
    return line;
}

const char *ms_pairs_key(ms_arena *arena, const char *outer, const char *inner,
                         size_t length)
{
    return *outer == '\0'
               ? ms_arena_text(arena, inner, length)
               : ms_arena_format(arena, "%s.%.*s", outer, (int)length, inner);
}

/* So many keys are more than any of these files has, and few enough to look
 * through one by one. */
#define MOST 4096u

ms_err ms_pairs_add(ms_pairs *pairs, const char *key, const char *value,
                    size_t at, bool again, ms_fault *fault)
{
    if (key == NULL || value == NULL)
        return ms_fail_nomem(fault);
    for (uint32_t i = 0; i < pairs->n; i++) {
        if (strcmp(pairs->all[i].key, key) != 0)
            continue;
        if (!again)
            return ms_pairs_fail(pairs, at, fault, "leave one of the two out",
                                 "\"%s\" is there twice, in line %u, too", key,
                                 ms_pairs_line(pairs, pairs->all[i].at));
        pairs->all[i].value = value;
        pairs->all[i].at = at;
        return MS_OK;
    }
    if (pairs->n == MOST)
        return ms_pairs_fail(pairs, at, fault, "is it a file of settings?",
                             "there are more than %u keys", MOST);
    ms_pair *all = ms_arena_grow(pairs->arena, pairs->all, &pairs->capacity,
                                 pairs->n + 1, sizeof *all);
    if (all == NULL)
        return ms_fail_nomem(fault);
    pairs->all = all;
    all[pairs->n++] = (ms_pair){.key = key, .value = value, .at = at};
    return MS_OK;
}
