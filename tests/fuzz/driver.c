/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "sim/base/base.h"
#include "tests/fuzz/fuzz.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PATH_BYTES 4096

static int replay_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    if (file == NULL || fseek(file, 0, SEEK_END) != 0) {
        perror(path);
        return 1;
    }
    long length = ftell(file);
    rewind(file);
    uint8_t *bytes = malloc(length > 0 ? (size_t)length : 1);
    if (bytes == NULL ||
        fread(bytes, 1, (size_t)length, file) < (size_t)length) {
        perror(path);
        return 1;
    }
    fclose(file);
    LLVMFuzzerTestOneInput(bytes, (size_t)length);
    free(bytes);
    return 0;
}

/* Replays the files of a folder, and of those in it. Entries that are no inputs
 * (., ..) begin with a dot. */
static int replay_folder(const char *folder, int *n)
{
    DIR *directory = opendir(folder);
    if (directory == NULL) {
        perror(folder);
        return 1;
    }
    int failed = 0;
    for (struct dirent *entry; (entry = readdir(directory)) != NULL;) {
        char path[PATH_BYTES];
        if (entry->d_name[0] == '.')
            continue;
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        DIR *inner = opendir(path);
        if (inner != NULL) {
            closedir(inner);
            failed |= replay_folder(path, n);
            continue;
        }
        failed |= replay_file(path);
        ++*n;
    }
    closedir(directory);
    return failed;
}

int main(int argc, char **argv)
{
    int failed = 0;
    int n = 0;
    for (int i = 1; i < argc; i++)
        failed |= replay_folder(argv[i], &n);
    printf("%d inputs\n", n);
    return failed != 0 || n == 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
