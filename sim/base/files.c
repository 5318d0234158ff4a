/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "sim/base/files.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static ms_err fail_system(const char *path, ms_fault *fault)
{
    return ms_fail(fault, MS_ESYSTEM, path, NULL, "cannot read: %s",
                   strerror(errno));
}

static ms_err read_stream(FILE *file, const char *path, uint64_t max_bytes,
                          ms_arena *arena, char **bytes, size_t *length,
                          ms_fault *fault)
{
    struct stat status;
    uint32_t capacity = 0;
    uint64_t room = 1 << 16;
    if (fstat(fileno(file), &status) == 0 && S_ISREG(status.st_mode) &&
        status.st_size >= 0)
        room = (uint64_t)status.st_size + 2;
    *bytes = NULL;
    *length = 0;
    for (;;) {
        if (room > max_bytes + 2)
            room = max_bytes + 2;
        *bytes = ms_arena_grow(arena, *bytes, &capacity, (uint32_t)room, 1);
        if (*bytes == NULL)
            return ms_fail_nomem(fault);
        errno = 0;
        *length += fread(*bytes + *length, 1, room - 1 - *length, file);
        if (ferror(file))
            return fail_system(path, fault);
        if (*length > max_bytes)
            return ms_fail(fault, MS_EINPUT, path, NULL,
                           "larger than %" PRIu64 " bytes", max_bytes);
        if (feof(file))
            break;
        room *= 2;
    }
    (*bytes)[*length] = '\0';
    return MS_OK;
}

ms_err ms_files_read(const char *path, uint64_t max_bytes, ms_arena *arena,
                     char **bytes, size_t *length, ms_fault *fault)
{
    if (max_bytes > UINT32_MAX / 2)
        max_bytes = UINT32_MAX / 2;
    if (strcmp(path, "-") == 0)
        return read_stream(stdin, "standard input", max_bytes, arena, bytes,
                           length, fault);
    FILE *file = fopen(path, "rb");
    if (file == NULL)
        return fail_system(path, fault);
    ms_err err =
        read_stream(file, path, max_bytes, arena, bytes, length, fault);
    fclose(file);
    return err;
}
