/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_FOLDER_H
#define MS_FOLDER_H

/* Folders as models: "models/llama" means "models/llama/config.json". */

#include "sim/base/base.h"

/* Is there a file at the path, which memsim tries by itself and the user did
 * not name?  What stands there but is no file that can be read and ends (a
 * pipe, a link that leads nowhere but to itself) is a fault. */
ms_err ms_folder_file(const char *path, bool *there, ms_fault *fault);
/* Is there a file at *path?  A folder is replaced by its config.json (one that
 * has none is MS_EINPUT, unless may_be_ours: then it is as if it were not
 * there).  *folder: that of a config.json without the last slash, "" for this
 * one, else NULL. */
ms_err ms_folder_find(const char **path, bool may_be_ours, const char **folder,
                      bool *here, ms_arena *arena, ms_fault *fault);

/* The names NAME of the files NAME.json in a folder, sorted; none where it
 * cannot be read.  NULL: out of memory. */
const char **ms_folder_pages(const char *folder, ms_arena *arena, uint32_t *n);

#endif
