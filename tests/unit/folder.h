/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_TESTS_FOLDER_H
#define MS_TESTS_FOLDER_H

/* A temporary folder for the files that one test writes. */

#include <stddef.h>

/* Makes the folder; its path is valid until close. */
const char *folder_open(void);
/* Removes it with its files, even where it was made read-only. */
void folder_close(void);
/* The number of its entries. */
int folder_entries(void);
/* The path of a file in it; valid until the next call. */
const char *folder_path(const char *name);
/* Reads a file's bytes, at most size - 1, and ends them by NUL; returns how
 * many. */
size_t folder_read(const char *path, char *bytes, size_t size);

#endif
