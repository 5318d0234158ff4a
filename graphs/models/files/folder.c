/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "graphs/models/files/folder.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
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

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static const char **list(DIR *directory, ms_arena *arena, uint32_t *n)
{
    const char **names = ms_arena_take(arena, 1, sizeof *names);
    uint32_t capacity = 1;
    for (struct dirent *entry;
         names != NULL && (entry = readdir(directory)) != NULL;) {
        size_t length = strlen(entry->d_name);
        if (length <= 5 || *entry->d_name == '.' ||
            strcmp(entry->d_name + length - 5, ".json") != 0)
            continue;
        names = ms_arena_grow(arena, names, &capacity, *n + 1, sizeof *names);
        if (names == NULL)
            return NULL;
        names[*n] = ms_arena_text(arena, entry->d_name, length - 5);
        if (names[(*n)++] == NULL)
            return NULL;
    }
    return names;
}

const char **ms_folder_pages(const char *folder, ms_arena *arena, uint32_t *n)
{
    static const char *none[1];
    DIR *directory = opendir(folder);
    *n = 0;
    if (directory == NULL)
        return none;
    const char **names = list(directory, arena, n);
    closedir(directory);
    if (names != NULL)
        qsort(names, *n, sizeof *names, by_name);
    return names;
}
