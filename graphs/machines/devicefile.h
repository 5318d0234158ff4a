/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_GRAPHS_DEVICEFILE_H
#define MS_GRAPHS_DEVICEFILE_H

/* Private to graphs/: the text of a device as a row of numbers.  The files of
 * graphs/devices/, which are compiled in as they are, and those of users go
 * the same way:
 *
 *     ms_devicefile file = {.arena = arena, .device = device, .fault = fault};
 *     MS_TRY(ms_devicefile_open(&file, path, bytes, length));
 *     ... *device is that of "like", where the text has it ...
 *     MS_TRY(ms_devicefile_read(&file, path, like));
 */

#include "graphs/device.h"
#include "graphs/json/json.h"

typedef struct ms_devicefile {
    ms_json json;
    ms_arena *arena;
    ms_device *device;
    ms_fault *fault;
} ms_devicefile;

/* Its version is checked, nothing else is read. */
ms_err ms_devicefile_open(ms_devicefile *file, const char *path,
                          const char *bytes, size_t length);
/* A string of the file; *text stays where the key is not given. */
ms_err ms_devicefile_text(const ms_devicefile *file, const char *key,
                          const char **text);
/* like: what the text leaves out stays as it is, else it is the default. */
ms_err ms_devicefile_read(const ms_devicefile *file, const char *path,
                          bool like);

#endif
