/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Reads the operations of memsim alloc. */

#include "sim/pools/history/alloctrace.h"
#include "tools/cli/alloc/alloc.h"
#include "tools/recordings/recordings.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#define PIECE_BYTES (1u << 16)
#define MOST_BYTES (1u << 30)

static ms_err fail_system(const ms_alloc_source *source, ms_fault *fault)
{
    return ms_fail(fault, errno == ENOENT ? MS_EINPUT : MS_ESYSTEM,
                   source->name, NULL, "cannot read: %s", strerror(errno));
}

/* Reads the next piece of the file behind what is left, which is moved to
 * the front; room for a NUL stays. */
static ms_err read_piece(ms_alloc_source *source, ms_arena *arena,
                         ms_fault *fault)
{
    size_t left = source->end - source->at;
    if (source->at > 0)
        memmove(source->bytes, source->bytes + source->at, left);
    source->at = 0;
    source->end = left;
    if (source->capacity < left + PIECE_BYTES + 1) {
        source->bytes = ms_arena_grow(arena, source->bytes, &source->capacity,
                                      (uint32_t)left + PIECE_BYTES + 1, 1);
        if (source->bytes == NULL)
            return ms_fail_nomem(fault);
    }
    ssize_t n;
    do
        n = read(source->file, source->bytes + left,
                 source->capacity - left - 1);
    while (n < 0 && errno == EINTR);
    if (n < 0)
        return fail_system(source, fault);
    source->end += (size_t)n;
    source->ended = n == 0;
    return MS_OK;
}

/* the byte order mark that some editors put before UTF-8 */
#define MARK "\xEF\xBB\xBF"

/* Says whether the file begins with the headings of minimalloc, in any
 * order. */
static bool is_csv(const ms_alloc_source *source)
{
    static const char *const words[] = {"id,", "lower,", "upper,", "size,"};
    const char *bytes = source->bytes + source->at;
    size_t length = source->end - source->at;
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (length >= strlen(words[i]) &&
            memcmp(bytes, words[i], strlen(words[i])) == 0)
            return true;
    return false;
}

/* Tells the kind of the file by its first bytes. */
static ms_err look(ms_alloc_source *source, ms_fault *fault)
{
    const unsigned char *bytes = (const unsigned char *)source->bytes;
    if (source->end >= 2 && bytes[0] == 0x1f && bytes[1] == 0x8b)
        return ms_fail(fault, MS_EINPUT, source->name,
                       "gzip -dc TRACE.gz | memsim alloc -", "is compressed");
    source->is_pickle = source->end > 0 && bytes[0] == 0x80;
    if (source->end >= strlen(MARK) &&
        memcmp(source->bytes, MARK, strlen(MARK)) == 0)
        source->at = strlen(MARK);
    source->is_csv = is_csv(source);
    size_t at = source->at;
    while (at < source->end && strchr(" \t\r\n", source->bytes[at]) != NULL &&
           source->bytes[at] != '\0')
        at++;
    source->is_recorded =
        source->is_pickle || (at < source->end && source->bytes[at] == '{');
    return MS_OK;
}

ms_err ms_alloc_read_all(ms_alloc_source *source, ms_arena *arena,
                         ms_fault *fault)
{
    while (!source->ended) {
        if (source->end > MOST_BYTES)
            return ms_fail(fault, MS_EINPUT, source->name, NULL,
                           "larger than %u bytes", MOST_BYTES);
        MS_TRY(read_piece(source, arena, fault));
    }
    source->bytes[source->end] = '\0';
    return MS_OK;
}

static ms_err read_whole(ms_alloc_source *source, ms_arena *arena,
                         ms_fault *fault)
{
    MS_TRY(ms_alloc_read_all(source, arena, fault));
    if (source->is_pickle)
        return ms_snapshot_read(source->name, source->bytes, source->end, arena,
                                &source->recording, fault);
    return ms_recording_read(source->name, source->bytes, source->end, arena,
                             &source->recording, fault);
}

ms_err ms_alloc_read_open(ms_alloc_source *source, const char *path,
                          ms_arena *arena, ms_fault *fault)
{
    bool input = strcmp(path, "-") == 0;
    *source = (ms_alloc_source){.path = path,
                                .name = input ? "standard input" : path,
                                .file = STDIN_FILENO};
    if (!input)
        source->file = open(path, O_RDONLY | O_CLOEXEC);
    if (source->file < 0)
        return fail_system(source, fault);
    MS_TRY(read_piece(source, arena, fault));
    MS_TRY(look(source, fault));
    return source->is_recorded ? read_whole(source, arena, fault) : MS_OK;
}

ms_err ms_alloc_read_empty(const ms_alloc_source *source, ms_fault *fault)
{
    return ms_fail(fault, MS_EINPUT, source->name,
                   "did the recording begin before the first allocation?",
                   "there is nothing in it: no allocation");
}

void ms_alloc_read_close(ms_alloc_source *source)
{
    if (source->file > STDERR_FILENO)
        close(source->file);
    source->file = -1;
}

ms_err ms_alloc_read_line(ms_alloc_source *source, ms_arena *arena, char **line,
                          size_t *length, ms_fault *fault)
{
    char *end = NULL;
    for (;;) {
        *line = source->bytes + source->at;
        *length = source->end - source->at;
        end = *length > 0 ? memchr(*line, '\n', *length) : NULL;
        if (end != NULL || source->ended || *length > MS_ALLOCTEXT_MOST)
            break;
        MS_TRY(read_piece(source, arena, fault));
    }
    source->line++;
    if (end != NULL)
        *length = (size_t)(end - *line);
    if (*length > MS_ALLOCTEXT_MOST)
        return ms_allocplay_fail(
            &(ms_alloctrace_spot){source->name, source->line, 0}, fault, NULL,
            "a line of more than %u bytes", MS_ALLOCTEXT_MOST);
    (*line)[*length] = '\0';
    source->at += *length + (end != NULL);
    if (end == NULL && *length == 0)
        *line = NULL;
    return MS_OK;
}
