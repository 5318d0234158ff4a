/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/from/formats.h"
#include "sim/base/files.h"

#include <string.h>

const ms_format *const ms_formats_all[] = {
    &ms_deepspeedkeys_format, &ms_acceleratekeys_format,
    &ms_trainerkeys_format,   &ms_llamafactorykeys_format,
    &ms_axolotlkeys_format,   &ms_torchtitankeys_format,
    &ms_megatronkeys_format,  &ms_foundrykeys_format};
const uint32_t ms_formats_n = sizeof ms_formats_all / sizeof ms_formats_all[0];

#define NAME "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-"

/* ---- syntax -------------------------------------------------------------- */

typedef ms_err read_syntax(ms_pairs *pairs, ms_fault *fault);

/* Does a word --name stand in the line, with no colon behind it? */
static bool has_option(const char *line, size_t length)
{
    for (size_t i = 0; i + 3 < length && line[i] != '#'; i++) {
        bool begins = i == 0 || strchr(" \t\"'(=", line[i - 1]) != NULL;
        if (!begins || line[i] != '-' || line[i + 1] != '-' ||
            line[i + 2] < 'A' || line[i + 2] > 'z')
            continue;
        size_t n = i + 2 + strspn(line + i + 2, NAME);
        if (n < length && line[n] == ':')
            return false;
        return true;
    }
    return false;
}

/* Is the line "KEY:" or "KEY: VALUE", or an element of a list? */
static bool is_yaml(const char *line, size_t length)
{
    size_t at = strspn(line, " ");
    size_t n = at + strspn(line + at, NAME ".");
    return n > at && n < length && line[n] == ':' &&
           (n + 1 == length || strchr(" \t\r", line[n + 1]) != NULL);
}

static read_syntax *syntax_of(const char *bytes, size_t length)
{
    bool yaml = false;
    size_t begin = strspn(bytes, " \t\r\n");
    if (begin < length && bytes[begin] == '{')
        return ms_jsonpairs_read;
    for (size_t at = 0; at < length; at++) {
        const char *end = memchr(bytes + at, '\n', length - at);
        size_t n = (end != NULL ? (size_t)(end - bytes) : length) - at;
        if (has_option(bytes + at, n))
            return ms_wordpairs_read;
        yaml = yaml || is_yaml(bytes + at, n);
        at += n;
    }
    return yaml ? ms_yamlpairs_read : ms_tomlpairs_read;
}

/* ---- format -------------------------------------------------------------- */

/* mark: a key, one with * behind it, or key=value. */
static bool has_key(const ms_pairs *pairs, const ms_format *format,
                    const char *mark, size_t length)
{
    size_t strip = format->strips != NULL ? strlen(format->strips) : 0;
    size_t n = strcspn(mark, "=|");
    bool open = n > 0 && mark[n - 1] == '*', by_value = n < length;
    for (uint32_t i = 0; i < pairs->n; i++) {
        const char *key = pairs->all[i].key, *value = pairs->all[i].value;
        if (strip > 0 && strncmp(key, format->strips, strip) == 0)
            key += strip;
        if (by_value && (strlen(value) != length - n - 1 ||
                         memcmp(value, mark + n + 1, length - n - 1) != 0))
            continue;
        if (open ? strncmp(key, mark, n - 1) == 0
                 : strlen(key) == n && memcmp(key, mark, n) == 0)
            return true;
    }
    return false;
}

static uint32_t marks_in(const ms_pairs *pairs, const ms_format *format)
{
    uint32_t marks = 0;
    for (const char *w = format->marks; *w != '\0';) {
        size_t n = strcspn(w, "|");
        marks += has_key(pairs, format, w, n);
        w += n + (w[n] == '|');
    }
    return marks;
}

static ms_err fail_format(const ms_pairs *pairs, ms_fault *fault)
{
    bool model = ms_pairs_find(pairs, "model_type") != NULL ||
                 ms_pairs_find(pairs, "architectures") != NULL ||
                 ms_pairs_find(pairs, "memsim") != NULL;
    if (model)
        return ms_fail(fault, MS_EINPUT, pairs->source.name,
                       "write it as MODEL: memsim run FILE --from SETTINGS",
                       "this is a model, no settings");
    return ms_fail(fault, MS_EINPUT, pairs->source.name,
                   "memsim help from lists the formats and the keys that mark "
                   "them",
                   "these settings are of no format that memsim knows: none of "
                   "their %u keys marks one",
                   pairs->n);
}

ms_err ms_formats_read(const char *name, const char *bytes, size_t length,
                       ms_arena *arena, ms_pairs *pairs,
                       const ms_format **format, ms_fault *fault)
{
    uint32_t most = 0;
    *format = NULL;
    *pairs =
        (ms_pairs){.source = {.name = name, .bytes = bytes, .length = length},
                   .arena = arena};
    if (strlen(bytes) < length)
        return ms_pairs_fail(pairs, strlen(bytes), fault,
                             "is it a file of settings?",
                             "there is a byte 0 in the text");
    if (strspn(bytes, " \t\r\n") == length)
        return ms_fail(fault, MS_EINPUT, name, "is the file whole?",
                       "it is empty");
    MS_TRY(syntax_of(bytes, length)(pairs, fault));
    for (uint32_t i = 0; i < ms_formats_n; i++) {
        uint32_t marks = marks_in(pairs, ms_formats_all[i]);
        if (marks > most)
            *format = ms_formats_all[i];
        most = marks > most ? marks : most;
    }
    return *format != NULL ? MS_OK : fail_format(pairs, fault);
}

ms_err ms_formats_open(const char *path, ms_arena *arena, ms_pairs *pairs,
                       const ms_format **format, ms_fault *fault)
{
    char *bytes;
    size_t length;
    MS_TRY(
        ms_files_read(path, MS_PAIRS_MAX_BYTES, arena, &bytes, &length, fault));
    if (strncmp(bytes, "\xef\xbb\xbf", 3) == 0) { /* a mark of UTF-8 */
        bytes += 3;
        length -= 3;
    }
    return ms_formats_read(path, bytes, length, arena, pairs, format, fault);
}
