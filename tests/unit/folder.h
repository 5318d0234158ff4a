/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_TESTS_FOLDER_H
#define MS_TESTS_FOLDER_H

/* A temporary folder for the files that one test writes. */

#include <stddef.h>

/* Makes it; its path stays valid until close. */
const char *folder_open(void);
/* Removes it and the files in it, also where it was made read-only. */
void folder_close(void);
/* How many entries it has. */
int folder_entries(void);
/* The path of a file in it; valid until the next call. */
const char *folder_path(const char *name);
/* A file's bytes, cut to size - 1 and ended by NUL; how many. */
size_t folder_read(const char *path, char *bytes, size_t size);

#endif
