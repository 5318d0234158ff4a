/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/unit/folder.h"

#include <check.h>
#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[64];

const char *folder_open(void)
{
    strcpy(folder, "/tmp/memsim-files-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    return folder;
}

static int count(bool remove_them)
{
    char path[512];
    struct dirent *entry;
    int n = 0;
    DIR *dir = opendir(folder);
    ck_assert_ptr_nonnull(dir);
    while ((entry = readdir(dir)) != NULL) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        n++;
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        if (remove_them)
            unlink(path);
    }
    closedir(dir);
    return n;
}

void folder_close(void)
{
    chmod(folder, 0700);
    count(true);
    rmdir(folder);
}

int folder_entries(void)
{
    return count(false);
}

const char *folder_path(const char *name)
{
    static char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

size_t folder_read(const char *path, char *bytes, size_t size)
{
    FILE *file = fopen(path, "rb");
    ck_assert_ptr_nonnull(file);
    size_t n = fread(bytes, 1, size - 1, file);
    fclose(file);
    bytes[n] = '\0';
    return n;
}
