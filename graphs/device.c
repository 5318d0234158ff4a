/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "graphs/graphs.h"

#include <stdio.h>
#include <string.h>

#define MAX_NAMES 128u

ms_err ms_device_find(const char *name, const ms_device **device,
                      ms_fault *fault)
{
    const char *names[MAX_NAMES];
    uint32_t n = 0;
    for (uint32_t i = 0; i < ms_devices_n; i++) {
        const ms_device *row = &ms_devices[i];
        bool alias = row->alias[0] != '\0';
        if (strcmp(name, row->name) == 0 ||
            (alias && strcmp(name, row->alias) == 0)) {
            *device = row;
            return MS_OK;
        }
        if (n + 2 > MAX_NAMES)
            continue;
        names[n++] = row->name;
        if (alias)
            names[n++] = row->alias;
    }
    char hint[96] = "see memsim help devices";
    const char *near = ms_names_nearest(name, names, n);
    if (near != NULL)
        snprintf(hint, sizeof hint, "did you mean \"%s\"?", near);
    return ms_fail(fault, MS_EUSAGE, NULL, hint, "unknown device \"%s\"", name);
}
