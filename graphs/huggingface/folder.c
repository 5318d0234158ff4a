/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "graphs/huggingface/folder.h"

#include <string.h>
#include <sys/stat.h>

static const char config[] = "config.json";

static ms_err find_config(const char **path, bool may_be_ours, bool *here,
                          ms_arena *arena, ms_fault *fault)
{
    struct stat status;
    size_t length = strlen(*path);
    while (length > 1 && (*path)[length - 1] == '/')
        length--;
    const char *inner =
        ms_arena_format(arena, "%.*s/%s", (int)length, *path, config);
    if (inner == NULL)
        return ms_fail_nomem(fault);
    *here = stat(inner, &status) == 0;
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
