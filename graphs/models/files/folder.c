/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "graphs/models/files/folder.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

static const char config[] = "config.json";

ms_err ms_folder_file(const char *path, bool *there, ms_fault *fault)
{
    struct stat status;
    *there = stat(path, &status) == 0;
    if (!*there && (errno == ENOENT || errno == ENOTDIR))
        return MS_OK;
    if (!*there)
        return ms_fail(fault, MS_ESYSTEM, path, NULL, "cannot read: %s",
                       strerror(errno));
    if (S_ISREG(status.st_mode))
        return MS_OK;
    return ms_fail(fault, MS_EINPUT, path, "move it out of the model's folder",
                   "is %s, not a file",
                   S_ISDIR(status.st_mode)    ? "a folder"
                   : S_ISFIFO(status.st_mode) ? "a pipe (FIFO)"
                   : S_ISSOCK(status.st_mode) ? "a socket"
                                              : "a device");
}

static ms_err find_config(const char **path, bool may_be_ours, bool *here,
                          ms_arena *arena, ms_fault *fault)
{
    size_t length = strlen(*path);
    while (length > 1 && (*path)[length - 1] == '/')
        length--;
    const char *inner =
        ms_arena_format(arena, "%.*s/%s", (int)length, *path, config);
    if (inner == NULL)
        return ms_fail_nomem(fault);
    MS_TRY(ms_folder_file(inner, here, fault));
    if (*here)
        *path = inner;
    if (*here || may_be_ours)
        return MS_OK;
    return ms_fail(fault, MS_EINPUT, *path,
                   "name a model file, or a folder with the config.json of "
                   "Hugging Face",
                   "a folder without config.json");
}

ms_err ms_folder_find(const char **path, bool may_be_ours, const char **folder,
                      bool *here, ms_arena *arena, ms_fault *fault)
{
    struct stat status;
    *folder = NULL;
    *here = stat(*path, &status) == 0;
    if (*here && S_ISDIR(status.st_mode))
        MS_TRY(find_config(path, may_be_ours, here, arena, fault));
    if (!*here)
        return MS_OK;
    const char *slash = strrchr(*path, '/');
    const char *base = slash == NULL ? *path : slash + 1;
    if (strcmp(base, config) != 0)
        return MS_OK;
    *folder = slash == NULL
                  ? ""
                  : ms_arena_text(arena, *path, (size_t)(slash - *path));
    return *folder == NULL ? ms_fail_nomem(fault) : MS_OK;
}
