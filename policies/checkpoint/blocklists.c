/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "policies/checkpoint/blocklists.h"
#include "sim/names.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* "7" or "3-7"; false: it is neither. */
static bool read_range(const char *at, size_t length, uint64_t *first,
                       uint64_t *last)
{
    char *end;
    if (length == 0 || strspn(at, "0123456789-") < length || *at == '-')
        return false;
    *first = *last = strtoull(at, &end, 10);
    if (*end == '-' && end[1] >= '0' && end[1] <= '9')
        *last = strtoull(end + 1, &end, 10);
    return end == at + length && *first <= *last;
}

ms_err ms_blocklists_numbers(const char *list, const char *where,
                             const char *of, uint32_t n, bool *flag,
                             ms_fault *fault)
{
    char hint[64];
    for (bool more = true; more;) {
        size_t length = strcspn(list, "/");
        int shown = length < 60 ? (int)length : 60;
        uint64_t first, last;
        if (!read_range(list, length, &first, &last))
            return ms_fail(fault, MS_EUSAGE, where, "write 0-3/7, for example",
                           "\"%.*s\" is no number and no range", shown, list);
        snprintf(hint, sizeof hint, "they go from 0 to %" PRIu32, n - 1);
        if (last >= n)
            return ms_fail(fault, MS_EUSAGE, where, hint,
                           "%.*s is beyond the %s", shown, list, of);
        for (uint64_t i = first; i <= last; i++)
            flag[i] = true;
        more = list[length] != '\0';
        list += length + more;
    }
    return MS_OK;
}

static ms_err find_name(const char *name, const char *where,
                        const char *const *names, uint32_t n, uint32_t *found,
                        ms_fault *fault)
{
    char hint[192];
    for (*found = 0; *found < n; (*found)++)
        if (strcmp(names[*found], name) == 0)
            return MS_OK;
    const char *nearest = ms_names_nearest(name, names, n);
    if (nearest != NULL)
        snprintf(hint, sizeof hint, "did you mean \"%.60s\"?", nearest);
    else
        snprintf(hint, sizeof hint, "blocks go from \"%.60s\" to \"%.60s\"",
                 names[0], names[n - 1]);
    return ms_fail(fault, MS_EUSAGE, where, hint,
                   "the model has no block \"%.60s\"", name);
}

ms_err ms_blocklists_names(const char *list, const char *where,
                           const char *const *names, uint32_t n,
                           ms_arena *arena, bool *flag, ms_fault *fault)
{
    for (bool more = true; more;) {
        uint32_t found;
        size_t length = strcspn(list, "/");
        char *name = ms_arena_text(arena, list, length);
        if (name == NULL)
            return ms_fail_nomem(fault);
        MS_TRY(find_name(name, where, names, n, &found, fault));
        flag[found] = true;
        more = list[length] != '\0';
        list += length + more;
    }
    return MS_OK;
}

int64_t ms_blocklists_number(const char *list, uint32_t stage)
{
    for (; stage > 0 && strchr(list, '/') != NULL; stage--)
        list = strchr(list, '/') + 1;
    return strtoll(list, NULL, 10);
}

ms_err ms_blocklists_check(const char *list, const char *where, uint32_t stages,
                           ms_fault *fault)
{
    uint32_t n = 1;
    const char *name = strchr(where, ':') + 1;
    for (const char *at = list; *at != '\0'; at++)
        n += *at == '/';
    if (n == 1 || n == stages)
        return MS_OK;
    return ms_fail(fault, MS_EUSAGE, where,
                   stages == 1 ? "give one number, or add pipeline:N"
                               : "give one number for all of them, or one each",
                   "there %s %u stage%s, %s= has %u numbers",
                   stages == 1 ? "is" : "are", stages, stages == 1 ? "" : "s",
                   name, n);
}
