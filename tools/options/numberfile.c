/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/options/numberfile.h"
#include "graphs/model.h"
#include "sim/base/files.h"

#include <stdio.h>
#include <string.h>

#define MOST_BYTES (1u << 20)
#define BETWEEN " \t\r\n,/"

static ms_err fail_word(const char *path, const char *bytes, const char *word,
                        size_t length, ms_fault *fault)
{
    uint32_t line = 1;
    char where[512];
    for (const char *at = bytes; at < word; at++)
        line += *at == '\n';
    snprintf(where, sizeof where, "%s:%u", path, line);
    return ms_fail(fault, MS_EINPUT, where,
                   "it has numbers such as 1.5, apart by blanks or lines",
                   "\"%.*s\" is no number", (int)(length < 40 ? length : 40),
                   word);
}

/* The numbers of bytes, joined by slashes, behind what text has. */
static ms_err add_numbers(const char *path, const char *bytes, ms_text *text,
                          ms_fault *fault)
{
    bool first = true;
    for (const char *at = bytes; *at != '\0';) {
        size_t length = strcspn(at, BETWEEN "#");
        if (length > 0) {
            if (strspn(at, "0123456789.") < length)
                return fail_word(path, bytes, at, length, fault);
            ms_text_add(text, "%s%.*s", first ? "" : "/", (int)length, at);
            first = false;
        }
        at += length;
        if (*at == '#')
            at += strcspn(at, "\n");
        at += strspn(at, BETWEEN);
    }
    return first ? ms_fail(fault, MS_EINPUT, path,
                           "give a number for each expert, for example",
                           "there are no numbers in it")
                 : MS_OK;
}

static ms_err add_file(const char *name, size_t length, ms_arena *arena,
                       ms_text *text, ms_fault *fault)
{
    char *bytes;
    size_t n;
    const char *path = ms_arena_text(arena, name, length);
    if (path == NULL)
        return ms_fail_nomem(fault);
    MS_TRY(ms_files_read(path, MOST_BYTES, arena, &bytes, &n, fault));
    return add_numbers(path, bytes, text, fault);
}

ms_err ms_numberfile_expand(const char *text, ms_arena *arena,
                            const char **expanded, ms_fault *fault)
{
    ms_text whole = {.arena = arena};
    const char *at = text, *named = strstr(text, "=@");
    *expanded = text;
    if (named == NULL)
        return MS_OK;
    for (; named != NULL; named = strstr(at, "=@")) {
        size_t length = strcspn(named + 2, ",+");
        ms_text_put(&whole, at, (size_t)(named + 1 - at));
        MS_TRY(add_file(named + 2, length, arena, &whole, fault));
        at = named + 2 + length;
    }
    ms_text_add(&whole, "%s", at);
    *expanded = whole.bytes;
    return whole.failed ? ms_fail_nomem(fault) : MS_OK;
}

ms_err ms_numberfile_parse(const char *text, ms_arena *arena, ms_spec *spec,
                           ms_fault *fault)
{
    const char *expanded;
    MS_TRY(ms_numberfile_expand(text, arena, &expanded, fault));
    return ms_spec_parse(expanded, arena, spec, fault);
}
