/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "graphs/device.h"
#include "graphs/json/json.h"
#include "graphs/machines/devicefile.h"
#include "graphs/model.h"
#include "graphs/models/files/namewords.h"
#include "sim/base/files.h"

#include <string.h>

#define MAX_FILE_BYTES (UINT64_C(1) << 20)

double ms_device_share(const ms_device *device, uint32_t ranks)
{
    uint32_t sharers =
        ranks < device->gpus_per_node ? ranks : device->gpus_per_node;
    return 1.0 / (sharers > 0 ? sharers : 1);
}

double ms_device_host_rate(const ms_device *device, uint32_t ranks,
                           uint32_t threads)
{
    double part = device->dram_bytes_per_s * ms_device_share(device, ranks);
    double most = device->thread_bytes_per_s * (double)threads;
    return threads > 0 && most < part ? most : part;
}

double ms_device_disk_rate(const ms_device *device, uint32_t ranks, bool write)
{
    double rate =
        write ? device->nvme_write_bytes_per_s : device->nvme_read_bytes_per_s;
    double part = rate * ms_device_share(device, ranks);
    double block = (double)device->nvme_block_bytes;
    double s = (double)device->nvme_latency_ns / 1e9 + block / rate;
    double most = block * device->nvme_depth * device->nvme_threads / s;
    return most < part ? most : part;
}

ms_err ms_device_find(const char *name, const ms_device **device,
                      ms_fault *fault)
{
    char hint[384];
    uint32_t row = ms_namewords_device(name, hint, sizeof hint);
    if (row == MS_NONE)
        return ms_fail(fault, MS_EUSAGE, NULL, hint, "unknown device \"%s\"",
                       name);
    *device = ms_devicerows_at(row);
    return *device != NULL ? MS_OK : ms_fail_nomem(fault);
}

/* ---- a file -------------------------------------------------------------- */

/* What the text's "like" stands for, where it has one. */
static ms_err take_like(ms_devicefile *file, bool *given)
{
    const char *like = NULL;
    char hint[384];
    MS_TRY(ms_devicefile_text(file, "like", &like));
    *given = like != NULL;
    if (like == NULL)
        return MS_OK;
    uint32_t row = ms_namewords_device(like, hint, sizeof hint);
    if (row == MS_NONE)
        return ms_json_fail(&file->json, ms_json_find(&file->json, 0, "like"),
                            file->fault, hint, "unknown device \"%s\"", like);
    const ms_device *model = ms_devicerows_at(row);
    if (model == NULL)
        return ms_fail_nomem(file->fault);
    *file->device = *model;
    return MS_OK;
}

static ms_err read_file(const char *path, ms_arena *arena, ms_device *device,
                        ms_fault *fault)
{
    ms_devicefile file = {.arena = arena, .device = device, .fault = fault};
    char *bytes;
    size_t length;
    bool like;
    MS_TRY(ms_files_read(path, MAX_FILE_BYTES, arena, &bytes, &length, fault));
    MS_TRY(ms_devicefile_open(&file, path, bytes, length));
    MS_TRY(take_like(&file, &like));
    return ms_devicefile_read(&file, path, like);
}

ms_err ms_device_read(const char *name, ms_arena *arena,
                      const ms_device **device, ms_fault *fault)
{
    size_t length = strlen(name);
    bool ends = length > 5 && strcmp(name + length - 5, ".json") == 0;
    if (!ends && strchr(name, '/') == NULL)
        return ms_device_find(name, device, fault);
    ms_device *made = ms_arena_take(arena, 1, sizeof *made);
    if (made == NULL)
        return ms_fail_nomem(fault);
    *device = made;
    return read_file(name, arena, made, fault);
}
